"""The rows of the index, one a passage: fixed records, terms and names of every unit, in columns.

The manifest also says what the codes in the records mean, and up to which version they follow the ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from octavo.domain.filters import Filter
from octavo.domain.memory import KINDS, LAYERS
from octavo.domain.units import Watermark
from octavo.libraries import Array, np
from octavo.storage.columns import Columns, Files

OPEN = 2**63 - 1
NO_POSITION = 2**32 - 1
# Of `marks` the lowest bit says that a person spoke; the others are what `domain.units.substance` found.
# A record is a multiple of four bytes long, so that its fields are aligned in memory.
ROW = [
    ("terms", "<u8"), ("key", "<u8"), ("session", "<u8"), ("valid_from", "<i8"), ("at", "<i8"),
    ("name", "<u8"), ("position", "<u4"), ("rev", "<u4"), ("turn", "<i4"), ("speaker", "<u4"),
    ("unit_length", "<u4"), ("name_length", "<u4"), ("salience", "<f4"),
    ("scope", "<u2"), ("length", "<u2"), ("passage", "<u2"), ("passages", "<u2"),
    ("kind", "u1"), ("layer", "u1"), ("marks", "u1"), ("address", "u1"),
]  # fmt: skip
END = [("row", "<u8"), ("valid_to", "<i8")]
RUN = [("session", "<u8"), ("first", "<u8"), ("count", "<u8")]
_NAME = msgspec.json.Decoder(list[str | None])
_CODES = ("scopes", "speakers", "said_since")
FILES = {"rows": ROW, "terms": "<u4", "names": "u1", "ends": END, "runs": RUN}


class Manifest(Struct, frozen=True, kw_only=True):
    """How much of each file counts, what the codes in the records mean, and the watermark."""

    watermark: Watermark
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FILES, 0))
    checksums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FILES, 0))
    scopes: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    said_since: tuple[tuple[int, int, int], ...] = ()  # speaker, scope, first version
    lived: tuple[int, int] | None = None
    words: int = 0  # tantivy's stamp of the commit that belongs to this manifest
    base: int = 0  # rows that the counted document frequencies cover

    @property
    def rows(self) -> int:
        """How many passages are indexed."""
        return self.counts["rows"]

    def heard(self, version: int, scopes: Iterable[str] | None) -> list[str]:
        """Who has spoken in some scopes (None: in any) up to a version."""
        seen = {code for code, name in enumerate(self.scopes) if scopes is None or name in scopes}
        return sorted({self.speakers[s] for s, scope, v in self.said_since if scope in seen and v <= version})


class Turns(NamedTuple):
    """The turns of all sessions, one session behind the other as they began, counted by ordinals.

    In the rows other memories stand between the turns of a session, and turns of other sessions; a stretch is
    what stands together.
    """

    ordinal: Array  # per stretch: its first ordinal
    behind: Array  # the ordinal behind its last
    shift: Array  # how many rows behind its ordinals its rows are
    first: Array  # the first ordinal of its session
    end: Array  # the ordinal behind its session's last
    # Whether the session is looked at whole: turns are not in order, some have ended, or not all may be seen.
    whole: Array
    by_row: tuple[Array, Array]  # the first rows of all runs in order, and which runs these are
    by_session: tuple[Array, Array]  # all sessions in order, and the first stretch of each

    def stretch_of(self, rows: Array) -> Array:
        """The runs that some rows of turns are in."""
        found: Array = self.by_row[1][np.searchsorted(self.by_row[0], rows, "right") - 1]
        return found

    def stretch_at(self, ordinals: Array) -> Array:
        """The runs that some ordinals are in."""
        found: Array = np.searchsorted(self.ordinal, ordinals, "right") - 1
        return found

    def of(self, sessions: Array) -> Array:
        """The first stretches of some sessions, those that have turns."""
        place, behind = (np.searchsorted(self.by_session[0], sessions, side) for side in ("left", "right"))
        found: Array = self.by_session[1][place[place < behind]]
        return found


EMPTY = Manifest(watermark=Watermark(version=0, header=""))


class Units(Columns[Manifest]):
    """One reader's or writer's view of the rows, pinned to one manifest."""

    FORMAT = 7

    counted: Any = None  # what `frequencies` counted for the first question
    searched: Any = None  # and the word index that was opened for it

    def _layout(self, manifest: Manifest) -> Files:
        return {name: (dtype, (manifest.counts[name],)) for name, dtype in FILES.items()}

    @cached_property
    def valid_to(self) -> Array:
        """The version at which each row ceases to be valid."""
        ends = np.full(self.manifest.rows, OPEN, dtype=np.int64)
        log = self.column("ends")
        ends[log["row"]] = log["valid_to"]
        return ends

    @cached_property
    def turns(self) -> Turns:
        """Where the turns of every session are."""
        ended = self.column("ends")["row"].astype(np.int64)
        return _turns(self.column("runs"), self.column("rows"), ended)

    def take(self, rows: Array) -> Array:
        """The records of some rows."""
        return picked(self.column("rows"), rows)

    def visible(self, rows: Array, version: int, scopes: Array) -> Array:
        """Which of some rows are valid at a version and lie in one of the scopes."""
        seen = np.ones(len(rows), dtype=bool)
        if version < self.manifest.watermark.version:
            seen &= self.column("rows")["valid_from"][rows] <= version
        if self.manifest.counts["ends"]:
            seen &= self.valid_to[rows] > version
        if len(scopes) < len(self.manifest.scopes):
            seen &= np.isin(self.column("rows")["scope"][rows], scopes)
        return seen

    def fitting(self, filter_: Filter) -> Array:
        """Every row that passes a filter, looked at one by one."""
        records = self.column("rows")
        fits = np.ones(len(records), dtype=bool)
        for name, known, values in (("kind", KINDS, filter_.kinds), ("layer", LAYERS, filter_.layers)):
            if values is not None:
                fits &= np.isin(records[name], [code for code, value in enumerate(known) if value in values])
        if filter_.since is not None:
            fits &= records["at"] >= int(filter_.since.timestamp())
        if filter_.until is not None:
            fits &= records["at"] <= int(filter_.until.timestamp())
        if filter_.category is not None or filter_.sandbox is not None or filter_.tags:
            for row in np.flatnonzero(fits).tolist():
                place = (int(records["name"][row]), int(records["name_length"][row]))
                _, session, category, *tags = self.words_at(*place)
                is_meant = filter_.category in (None, category) and filter_.sandbox in (None, session)
                fits[row] = is_meant and set(filter_.tags or ()) <= set(tags)
        return np.flatnonzero(fits)

    def scope_codes(self, scopes: Collection[str] | None) -> Array:
        """The codes of some scopes (None: of all)."""
        known = self.manifest.scopes
        codes = [code for code, name in enumerate(known) if scopes is None or name in scopes]
        return np.array(codes, dtype=np.uint16)

    def words_at(self, start: int, length: int) -> list[str | None]:
        """The id of the memory whose words stand there, its session and category, and its tags."""
        return _NAME.decode(self.column("names").data[start : start + length])

    def memory_of(self, record: Any) -> str:
        """The id of the memory that a record belongs to."""
        return self.words_at(int(record["name"]), int(record["name_length"]))[0] or ""

    def rows_until(self, version: int) -> int:
        """How many rows became valid at or before a version; rows are in version order."""
        if version >= self.manifest.watermark.version:
            return self.manifest.rows
        return int(np.searchsorted(self.column("rows")["valid_from"], version, "right"))

    def rows_of(self, revisions: Iterable[tuple[str, int]]) -> list[tuple[int, tuple[str, int]]]:
        """The rows of some revisions, each with the revision it belongs to."""
        wanted = set(revisions)
        keys = np.array([key_code(memory) for memory, _ in wanted], dtype=np.uint64)
        found = np.flatnonzero(np.isin(self.column("rows")["key"], keys))
        records = self.column("rows")[found]
        named = ((self.memory_of(record), int(record["rev"])) for record in records)
        return [(int(row), name) for row, name in zip(found, named, strict=True) if name in wanted]


def open_units(folder: Path) -> Units:
    """The rows as last published."""
    return Units.open(folder, EMPTY)


def behind(units: Units) -> Units:
    """No rows yet, to be held in memory behind those of an index; its codes mean the same here."""
    known = units.manifest
    return Units(units.folder, replace(EMPTY, **{name: getattr(known, name) for name in _CODES}))


def key_code(name: str) -> int:
    """The 64-bit code of a memory's or a session's id."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def _turns(runs: Array, records: Array, ended: Array) -> Turns:
    position, scope = records["position"], records["scope"]
    named, first = np.unique(runs["session"], return_index=True)
    first = first[np.searchsorted(named, runs["session"])]
    order = np.lexsort((runs["first"], runs["first"][first]))
    session, row = runs["session"][order], runs["first"][order].astype(np.int64)
    count = runs["count"][order].astype(np.int64)
    end = np.cumsum(count)
    head = np.ones(len(order), dtype=bool)
    head[1:] = session[1:] != session[:-1]
    group, heads = np.cumsum(head) - 1, np.flatnonzero(head)
    back = ~head
    is_behind = position[row[1:]] < position[row[:-1] + count[:-1] - 1]
    back[1:] &= is_behind | (scope[row[1:]] != scope[row[:-1]])
    by_row = np.argsort(row, kind="stable")
    gone = ended[position[ended] != NO_POSITION]
    back[by_row[np.searchsorted(row[by_row], gone, "right") - 1]] = True
    by_session = heads[np.argsort(session[heads])]
    return Turns(
        ordinal=end - count,
        behind=end,
        shift=row - end + count,
        first=(end - count)[heads][group],
        end=end[np.append(heads[1:], len(order)) - 1][group] if len(order) else end,
        whole=np.bincount(group, weights=back)[group] > 0,
        by_row=(row[by_row], by_row),
        by_session=(session[by_session], by_session),
    )


def ranges(low: Array, high: Array) -> Array:
    """Every index of the half-open ranges, one after the other."""
    lengths = high - low
    starts = np.repeat(low - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
    return starts + np.arange(int(lengths.sum()))


def picked(records: Array, places: Array) -> Array:
    """Some of the records; copied as plain bytes, which is many times faster than by field."""
    return np.take(records.view(f"V{records.itemsize}"), places).view(records.dtype)


def joined(some: Sequence[Array]) -> Array:
    """Arrays of records, one behind the other; joined as plain bytes, thirty times faster than by field."""
    return np.frombuffer(b"".join([array.tobytes() for array in some]), dtype=some[0].dtype)


def distinct(values: Array) -> Array:
    """The values once each, in order."""
    return tallied(values)[0]  # without counts numpy hashes, which takes a hundred times as long


def tallied(values: Array) -> tuple[Array, Array]:
    """The values once each, in order, and how often each occurs."""
    return np.unique(values, return_counts=True)
