"""Units on their way into the columns: analysed, coded, appended."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from octavo.domain.memory import KINDS, LAYERS
from octavo.domain.text import passages, runs, terms_of_run
from octavo.domain.units import End, Unit, Watermark, address, is_person
from octavo.storage.libraries import Array, np
from octavo.storage.units import END, FILES, NO_POSITION, ROW, RUN, Manifest, Units, append, key_code, size_of

_PACK = struct.Struct("<QQQqqQIIiIIHHHHHBBBB2x").pack  # a record as `ROW` lays it out
_KIND = {kind: code for code, kind in enumerate(KINDS)}
_LAYER = {layer: code for code, layer in enumerate(LAYERS)}
_KEPT = 200_000  # terms and words whose codes are remembered
_WORD_LENGTH = 12  # longer runs are mostly sentences of a script without spaces, which hardly come again


class _Revision(NamedTuple):
    memory: str
    rev: int
    key: int
    session: int
    scope: int
    name_at: int
    name_length: int
    kind: int
    layer: int


@dataclass(slots=True)
class Batch:
    """Rows on their way into the files, with the codes they use."""

    manifest: Manifest
    rows: bytearray = field(default_factory=bytearray)
    codes: list[list[int]] = field(default_factory=list)
    names: bytearray = field(default_factory=bytearray)
    runs: list[list[int]] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    _terms: int = 0
    _scopes: dict[str, int] = field(default_factory=dict)
    _speakers: dict[str, int] = field(default_factory=dict)
    _since: dict[tuple[int, int], int] = field(default_factory=dict)
    _lived: tuple[int, int] | None = None
    _last: _Revision | None = None

    def __post_init__(self) -> None:
        self._terms = self.manifest.counts["terms"]
        self._scopes = {name: code for code, name in enumerate(self.manifest.scopes)}
        self._speakers = {name: code for code, name in enumerate(self.manifest.speakers)}
        self._since = {(s, c): v for s, c, v in self.manifest.said_since}
        self._lived = self.manifest.lived

    def add(self, unit: Unit) -> None:
        """Analyse a unit and take it in, one row a passage."""
        pieces = passages(unit.text)
        coded = [codes_of(piece) for piece in pieces]
        total = sum(map(len, coded))
        own = self._of_revision(unit)
        at = int(unit.at.timestamp())
        speaker = self._speaker(unit, own.scope)
        addressed = 0 if unit.speaker is None else round(255 * address(unit.text))
        first = self.manifest.rows + len(self.units)
        for index, codes in enumerate(coded):
            self.rows += _PACK(
                self._terms, own.key, own.session, unit.valid_from, at, own.name_at,
                NO_POSITION if unit.position is None else unit.position, unit.rev,
                -1 if unit.turn is None else unit.turn, speaker, total, own.scope, min(len(codes), 65535),
                index, len(coded), own.name_length, own.kind, own.layer, is_person(unit.speaker), addressed,
            )  # fmt: skip
            self.codes.append(codes)
            self.units.append(unit)
            self._terms += len(codes)
        self.texts += pieces
        if unit.position is not None:
            self._extend_run(own.session, first, len(coded))
        if self._lived is None:
            self._lived = (at, at)
        elif not self._lived[0] <= at <= self._lived[1]:
            self._lived = (min(self._lived[0], at), max(self._lived[1], at))

    def records(self) -> Array:
        """The rows as the file will hold them."""
        return np.frombuffer(bytes(self.rows), dtype=ROW)

    def _of_revision(self, unit: Unit) -> _Revision:
        """The codes that all units of one revision share, and where the words that belong to it stand."""
        last = self._last
        if last is not None and (last.memory, last.rev) == (unit.memory, unit.rev):
            return last
        name = msgspec.json.encode([unit.memory, unit.session, unit.category, *unit.tags])
        self._last = _Revision(
            memory=unit.memory,
            rev=unit.rev,
            key=key_code(unit.memory),
            session=key_code(unit.session or ""),
            scope=self._scopes.setdefault(unit.scope, len(self._scopes)),
            name_at=self.manifest.counts["names"] + len(self.names),
            name_length=len(name),
            kind=_KIND[unit.kind],
            layer=_LAYER[unit.layer],
        )
        self.names += name
        return self._last

    def _speaker(self, unit: Unit, scope: int) -> int:
        if unit.speaker is None:
            return 0
        speaker = self._speakers.setdefault(unit.speaker, len(self._speakers))
        self._since.setdefault((speaker, scope), unit.valid_from)
        return speaker + 1

    def _extend_run(self, session: int, first: int, count: int) -> None:
        last = self.runs[-1] if self.runs else None
        if last is not None and last[0] == session and last[1] + last[2] == first:
            last[2] += count
        else:
            self.runs.append([session, first, count])

    def speaker_code(self, speaker: str) -> int:
        """The code that stands for a speaker in the records, -1 if nobody of that name has spoken."""
        return self._speakers.get(speaker, -2) + 1

    def write(self, folder: Path, ends: Sequence[tuple[int, int]], watermark: Watermark) -> Manifest:
        """Append everything to the files durably and return the manifest that would publish it."""
        arrays = {
            "rows": self.records(),
            "terms": np.array(list(chain.from_iterable(self.codes)), dtype="<u4"),
            "names": np.frombuffer(bytes(self.names), dtype="u1"),
            "ends": np.array(list(ends), dtype=END),
            "runs": np.array([tuple(run) for run in self.runs], dtype=RUN),
        }
        old = self.manifest
        counts, checksums = dict(old.counts), dict(old.checksums)
        for name, array in arrays.items():
            data = array.tobytes()
            append(folder / f"{name}.bin", data, at=counts[name] * size_of(FILES[name]))
            counts[name] += len(array)
            checksums[name] = zlib.crc32(data, checksums[name])
        return replace(
            old,
            watermark=watermark,
            counts=counts,
            checksums=checksums,
            scopes=tuple(self._scopes),
            speakers=tuple(self._speakers),
            said_since=tuple((s, c, v) for (s, c), v in self._since.items()),
            lived=self._lived,
        )


def codes_of(text: str) -> list[int]:
    """The terms of a text as 32-bit codes."""
    found: list[int] = []
    for run in runs(text):
        found += _WORDS[run] if len(run) <= _WORD_LENGTH else map(code_of, terms_of_run(run))
    return found


class _Codes(dict[str, int]):
    """The codes of terms seen before, up to a bound; the same in every process."""

    def __missing__(self, term: str) -> int:
        code = zlib.crc32(term.encode())
        if len(self) < _KEPT:
            self[term] = code
        return code


class _Words(dict[str, tuple[int, ...]]):
    """The codes of words seen before, up to a bound."""

    def __missing__(self, word: str) -> tuple[int, ...]:
        codes = tuple(map(code_of, terms_of_run(word)))
        if len(self) < _KEPT:
            self[word] = codes
        return codes


_WORDS = _Words()
code_of = _Codes().__getitem__


def end_rows(units: Units, batch: Batch, ends: Iterable[End]) -> list[tuple[int, int]]:
    """The rows that some ended revisions occupy, in the files or in the batch, with their last version."""
    wanted = {(end.memory, end.rev): end.valid_to for end in ends}
    if not wanted:
        return []
    found = [
        (units.manifest.rows + index, wanted[key])
        for index, unit in enumerate(batch.units)
        if (key := (unit.memory, unit.rev)) in wanted
    ]
    found.extend((row, wanted[revision]) for row, revision in units.rows_of(wanted))
    return sorted(found)
