"""Units on their way into the columns: analysed, coded, appended."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from octavo.domain.memory import KINDS, LAYERS
from octavo.domain.text import passages, terms
from octavo.domain.units import End, Unit, Watermark, is_person
from octavo.storage.libraries import np
from octavo.storage.units import END, FILES, NO_POSITION, ROW, RUN, Manifest, Units, append, key_code, size_of


@dataclass(slots=True)
class Batch:
    """Rows on their way into the files, with the codes they use."""

    manifest: Manifest
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    codes: list[list[int]] = field(default_factory=list)
    names: bytearray = field(default_factory=bytearray)
    runs: list[list[int]] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    _terms: int = 0
    _scopes: dict[str, int] = field(default_factory=dict)
    _speakers: dict[str, int] = field(default_factory=dict)
    _since: dict[tuple[int, int], int] = field(default_factory=dict)
    _lived: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._scopes = {name: code for code, name in enumerate(self.manifest.scopes)}
        self._speakers = {name: code for code, name in enumerate(self.manifest.speakers)}
        self._since = {(s, c): v for s, c, v in self.manifest.said_since}
        self._lived = list(self.manifest.lived or ())

    def add(self, unit: Unit) -> None:
        """Analyse a unit and take it in, one row a passage."""
        pieces = passages(unit.text)
        coded = [codes_of(piece) for piece in pieces]
        total = sum(map(len, coded))
        name = msgspec.json.encode([unit.memory, unit.session, unit.category, *unit.tags])
        name_at = self.manifest.counts["names"] + len(self.names)
        self.names += name
        session = key_code(unit.session or "")
        at = int(unit.at.timestamp())
        scope, speaker = self._code_of(unit)
        first = self.manifest.rows + len(self.rows)
        for index, codes in enumerate(coded):
            self.rows.append(
                (
                    self.manifest.counts["terms"] + self._terms, key_code(unit.memory), session,
                    unit.valid_from, at, name_at,
                    NO_POSITION if unit.position is None else unit.position, unit.rev,
                    -1 if unit.turn is None else unit.turn, speaker, total, scope, min(len(codes), 65535),
                    index, len(coded), len(name), KINDS.index(unit.kind), LAYERS.index(unit.layer),
                    is_person(unit.speaker),
                    (0, 0, 0),
                )
            )  # fmt: skip
            self.codes.append(codes)
            self.units.append(unit)
            self._terms += len(codes)
        self.texts.extend(pieces)
        if unit.position is not None:
            self._extend_run(session, first, len(coded))
        self._lived = [min([at, *self._lived[:1]]), max([at, *self._lived[1:]])]

    def _code_of(self, unit: Unit) -> tuple[int, int]:
        scope = self._scopes.setdefault(unit.scope, len(self._scopes))
        if unit.speaker is None:
            return scope, 0
        speaker = self._speakers.setdefault(unit.speaker, len(self._speakers))
        self._since.setdefault((speaker, scope), unit.valid_from)
        return scope, speaker + 1

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
            "rows": np.array(self.rows, dtype=ROW),
            "terms": np.fromiter((c for codes in self.codes for c in codes), "<u4", count=self._terms),
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
            lived=(self._lived[0], self._lived[1]) if self._lived else None,
        )


def codes_of(text: str) -> list[int]:
    """The terms of a text as 32-bit codes."""
    return [code_of(term) for term in terms(text)]


@lru_cache(maxsize=500_000)
def code_of(term: str) -> int:
    """The code of a term, the same in every process."""
    return zlib.crc32(term.encode())


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
