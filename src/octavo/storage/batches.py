"""Units on their way into the columns, in files or in memory: analysed, coded, appended."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from pathlib import Path
from struct import Struct
from typing import Any

import msgspec
from msgspec.structs import replace

from octavo.domain.memory import KINDS, LAYERS
from octavo.domain.text import gram_size, passages, runs, terms_of_run
from octavo.domain.units import Unit, address, is_person, substance
from octavo.libraries import Array, np
from octavo.storage.rows import END, NO_POSITION, ROW, RUN, Manifest, Units, joined, key_code

_LETTERS = {"u8": "Q", "i8": "q", "u4": "I", "i4": "i", "f4": "f", "u2": "H", "u1": "B"}
_KIND = {kind: code for code, kind in enumerate(KINDS)}
_LAYER = {layer: code for code, layer in enumerate(LAYERS)}
_RECORD = Struct("<" + "".join(_LETTERS[kind.lstrip("<")] for _, kind in ROW))
_KEPT = 200_000  # words whose codes are remembered


def batch_of(units: Sequence[Unit], manifest: Manifest) -> tuple[Manifest, dict[str, Array]]:
    """Analyse units, at least one, a row a passage, to stand behind what a manifest counts.

    Returns what every file gets and the manifest that counts it, but for the checksums.
    """
    pieces = [passages(unit.text) for unit in units]
    terms, lengths = analysed(list(chain.from_iterable(pieces)))
    known = _known(units, manifest)
    named, names = _named(units, manifest.counts["names"])
    each = iter(lengths.tolist())
    sizes = [list(islice(each, len(some))) for some in pieces]
    records = _records(units, known, named, sizes, manifest.counts["terms"])
    times = (*(manifest.lived or ()), int(records["at"].min()), int(records["at"].max()))
    arrays = {
        "rows": records,
        "terms": terms,
        "names": np.frombuffer(names, dtype="u1"),
        "runs": _runs(records, manifest.rows),
    }
    counts = _counted(manifest, arrays)
    return replace(known, counts=counts, lived=(min(times), max(times))), arrays


def write_batch(folder: Path, units: Sequence[Unit], manifest: Manifest) -> Manifest:
    """Append units to the files durably, and return the manifest that would publish them."""
    after, arrays = batch_of(units, manifest)
    return replace(after, checksums=Units(folder, manifest).add(arrays))


def grown(held: Units, units: Sequence[Unit]) -> Units:
    """Columns that are held in memory, with the rows of some units more."""
    if not units:
        return held
    manifest, arrays = batch_of(units, held.manifest)
    arrays = {name: joined([held.column(name), more]) for name, more in arrays.items()}
    return Units(held.folder, manifest, arrays)


def _known(units: Sequence[Unit], manifest: Manifest) -> Manifest:
    """A manifest with codes for the scopes and speakers of some units, and who speaks where since when."""
    scopes = {name: code for code, name in enumerate(manifest.scopes)}
    speakers = {name: code for code, name in enumerate(manifest.speakers)}
    since = {(speaker, scope): version for speaker, scope, version in manifest.said_since}
    voices: set[tuple[str, str | None]] = set()
    for unit in units:
        voice = (unit.scope, unit.speaker)
        if voice in voices:
            continue
        voices.add(voice)
        scope = scopes.setdefault(unit.scope, len(scopes))
        if unit.speaker is not None:
            speaker = speakers.setdefault(unit.speaker, len(speakers))
            since.setdefault((speaker, scope), unit.valid_from)
    said = tuple((speaker, scope, version) for (speaker, scope), version in since.items())
    return replace(manifest, scopes=tuple(scopes), speakers=tuple(speakers), said_since=said)


def _records(
    units: Sequence[Unit],
    known: Manifest,
    named: Sequence[tuple[int, int, int]],
    sizes: Sequence[Sequence[int]],
    first: int,
) -> Array:
    """A record for each passage, by how many terms it has; the first term of all stands at a place."""
    scopes = {name: code for code, name in enumerate(known.scopes)}
    speakers: dict[str | None, int] = {name: code for code, name in enumerate(known.speakers, start=1)}
    sessions: dict[str | None, int] = {}
    data = bytearray()
    for unit, (key, name, name_length), lengths in zip(units, named, sizes, strict=True):
        voice, session, position = unit.speaker, unit.session, unit.position
        if session not in sessions:
            sessions[session] = key_code(session or "")
        marks = is_person(voice) | (0 if voice is None else substance(unit.text, voice) << 1)
        addressed = 0 if voice is None else round(255 * address(unit.text))
        length = sum(lengths)
        for passage, size in enumerate(lengths):
            data += _RECORD.pack(
                *(first, key, sessions[session], unit.valid_from, int(unit.at.timestamp()), name),
                *(NO_POSITION if position is None else position, unit.rev),
                *(-1 if unit.turn is None else unit.turn, speakers.get(voice, 0), length, name_length),
                *(unit.salience, scopes[unit.scope], size, passage, len(lengths)),
                *(_KIND[unit.kind], _LAYER[unit.layer], marks, addressed),
            )
            first += size
    return np.frombuffer(data, dtype=_row())


def _runs(records: Array, first: int) -> Array:
    """The runs of turns that stand together, each of one session and one scope."""
    rows = np.flatnonzero(records["position"] != NO_POSITION)
    if not len(rows):
        return np.empty(0, dtype=RUN)
    session, scope = records["session"][rows], records["scope"][rows]
    fresh = np.ones(len(rows), dtype=bool)
    fresh[1:] = (np.diff(rows) != 1) | (session[1:] != session[:-1]) | (scope[1:] != scope[:-1])
    begin = np.flatnonzero(fresh)
    runs = np.empty(len(begin), dtype=RUN)
    runs["session"], runs["first"] = session[begin], first + rows[begin]
    runs["count"] = np.diff(begin, append=len(rows))
    return runs


def _named(units: Sequence[Unit], first: int) -> tuple[list[tuple[int, int, int]], bytes]:
    """Of each unit its memory's code and where the words of its revision stand from `first` on; these words.

    Units of one revision come one after the other and share them.
    """
    written, places = bytearray(), []
    place, last = (0, 0, 0), ("", 0)
    for unit in units:
        if last != (unit.memory, unit.rev):
            last = (unit.memory, unit.rev)
            name = msgspec.json.encode([unit.memory, unit.session, unit.category, *unit.tags])
            place = (key_code(unit.memory), first + len(written), len(name))
            written += name
        places.append(place)
    return places, bytes(written)


@cache
def _row() -> Any:
    return np.dtype(ROW)  # which takes longer than a search may spend on nothing


def analysed(texts: Sequence[str]) -> tuple[Array, Array]:
    """The terms of some texts as 32-bit codes, one text's behind the other's, and how many each text has."""
    codes = [list(chain.from_iterable(map(_codes_of_run, runs(text)))) for text in texts]
    lengths = np.fromiter(map(len, codes), np.int64, len(codes))
    return np.fromiter(chain.from_iterable(codes), "<u4", int(lengths.sum())), lengths


def code_of(term: str) -> int:
    """The code of a term, the same in every process."""
    return zlib.crc32(term.encode())


class _Runs(dict[str, Sequence[int]]):
    """The codes of words seen before, up to a bound; runs of a script without spaces hardly come again."""

    def __missing__(self, run: str) -> Sequence[int]:
        size = 3 * gram_size(run)  # in such scripts every character has three bytes
        if size:
            data = run.encode()
            return [zlib.crc32(data[i : i + size]) for i in range(0, max(len(data) - size, 0) + 3, 3)]
        codes = tuple(map(code_of, terms_of_run(run)))
        if len(self) < _KEPT:
            self[run] = codes
        return codes


_codes_of_run = _Runs().__getitem__


def write_ends(
    folder: Path, manifest: Manifest, ends: Iterable[tuple[str, int, int]]
) -> tuple[Manifest, list[tuple[int, int]]]:
    """Append when revisions cease to be valid; returns the manifest with it, and the rows that end."""
    wanted = {(memory, rev): valid_to for memory, rev, valid_to in ends}
    if not wanted:
        return manifest, []
    units = Units(folder, manifest)
    found = sorted((row, wanted[named]) for row, named in units.rows_of(wanted))
    arrays = {"ends": np.array(found, dtype=END)}
    return replace(manifest, counts=_counted(manifest, arrays), checksums=units.add(arrays)), found


def _counted(manifest: Manifest, arrays: Mapping[str, Array]) -> dict[str, int]:
    """How much of every file counts with some arrays behind it."""
    return {name: count + len(arrays.get(name, ())) for name, count in manifest.counts.items()}
