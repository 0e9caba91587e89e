"""In how many passages each term occurs, by scope: a counted base, and what came after it."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import NamedTuple

from octavo.errors import Damaged
from octavo.libraries import Array, np
from octavo.storage.columns import append, damaged, must_be_file
from octavo.storage.rows import Units, distinct, tallied

_ENTRY_BYTES = 12  # all 64-bit keys, sorted, then all 32-bit counts: each a plain array to search in
_TAIL_ROWS = 2_048
_TAIL_SHARE = 64
_HALF, _LOW = 32, 0xFFFFFFFF

Counted = tuple[Array, Array]  # scopes and terms as keys in order, and in how many passages each occurs


class Occurrences(NamedTuple):
    """Where the question's terms stand: the row and the term of each occurrence."""

    row: Array
    term: Array

    def among(self, kept: Array) -> Occurrences:
        """Those in some of the rows, which are counted anew."""
        place, is_kept = np.cumsum(kept) - 1, kept[self.row]
        return Occurrences(row=place[self.row[is_kept]], term=self.term[is_kept])


def containing(units: Units, codes: Array, scopes: Array, rows: int) -> Array:
    """In how many of the first `rows` passages, in some scopes, each term occurs.

    Every passage that ever became valid counts, so that the numbers follow from the version alone and not
    from the order in which the index was made.
    """
    found = np.zeros(len(codes), dtype=np.int64)
    for keys, counts in counted(units):
        for scope in scopes.tolist() if len(keys) else ():
            wanted = (np.uint64(scope) << np.uint64(32)) | codes.astype(np.uint64)
            at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
            found += np.where(keys[at] == wanted, counts[at], 0)
    later = units.column("rows")[rows:]  # what an older version does not count
    if len(later) and len(codes):
        behind = occurrences_in(units.column("terms")[int(later["terms"][0]) :], later["length"], codes)
        if len(scopes) < len(units.manifest.scopes):
            behind = behind.among(np.isin(later["scope"], scopes))
        pairs = distinct(behind.row * len(codes) + behind.term)  # each term of a row once
        found -= np.bincount(pairs % len(codes), minlength=len(codes))
    return found


def counted(units: Units) -> tuple[Counted, Counted]:
    """The terms of the base with their counts, and those of the rows behind it, counted once."""
    if units.counted is None:
        base = units.manifest.base
        before = _base(units) if base else _counts_of(units, 0, 0)
        units.counted = (before, _counts_of(units, base, units.manifest.rows))
    before, behind = units.counted
    return before, behind


def matches(tokens: Array, codes: Array) -> tuple[Array, Array]:
    """Where in an array of terms each of a few codes stands: positions, and which code."""
    # One look-up in a small table rejects nearly every term; only the rest is compared in full.
    table = np.zeros(65536, dtype=bool)
    table[codes & 0xFFFF] = True
    places = np.flatnonzero(np.take(table, tokens & 0xFFFF))
    order = np.argsort(codes, kind="stable")
    ranked = codes[order]
    which = np.minimum(np.searchsorted(ranked, tokens[places]), len(codes) - 1)
    hit = ranked[which] == tokens[places]
    return places[hit], order[which[hit]]


def occurrences_in(terms: Array, lengths: Array, codes: Array) -> Occurrences:
    """Where a question's terms stand among those of some rows, which follow one another."""
    if len(terms) == 0 or len(codes) == 0:
        return Occurrences(row=np.empty(0, dtype=np.int64), term=np.empty(0, dtype=np.int64))
    places, term = matches(terms, codes)
    return Occurrences(row=np.searchsorted(np.cumsum(lengths, dtype=np.int64), places, "right"), term=term)


def rebase(units: Units) -> int:
    """Add the scanned tail to the counted base when it grew long; returns the rows the base covers."""
    manifest = units.manifest
    if manifest.rows - manifest.base <= max(_TAIL_ROWS, manifest.base // _TAIL_SHARE):
        return manifest.base
    try:
        old, new = counted(units)
        both, added = np.concatenate([old[0], new[0]]), np.concatenate([old[1], new[1]])
        order = np.argsort(both, kind="stable")
        firsts = np.flatnonzero(np.diff(both[order], prepend=both[order][:1] - 1))
        keys, counts = both[order][firsts], np.add.reduceat(added[order], firsts)
    except Damaged:
        keys, counts = _counts_of(units, 0, manifest.rows)
    data = keys.astype("<u8").tobytes() + counts.astype("<u4").tobytes()
    append(_path(units.folder, manifest.rows), data + zlib.crc32(data).to_bytes(4, "little"), at=0)
    return manifest.rows


def _counts_of(units: Units, first: int, last: int) -> Counted:
    """The terms of some rows with their scopes, as sorted keys, and in how many of the rows each occurs."""
    if first == last:
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    rows = units.column("rows")[first:last]
    lengths = rows["length"].astype(np.int64)
    start = int(rows["terms"][0])
    tokens = units.column("terms")[start : start + int(lengths.sum())].astype(np.uint64)
    owner = np.repeat(np.arange(len(rows), dtype=np.uint64), lengths)
    pairs = distinct((owner << _HALF) | tokens)  # each term of a row once
    scope = rows["scope"].astype(np.uint64)[pairs >> _HALF]
    return tallied((scope << _HALF) | (pairs & _LOW))


def sweep(units: Units) -> None:
    """Remove the bases that no manifest names any more."""
    keep = _path(units.folder, units.manifest.base)
    for path in units.folder.glob("frequencies-*.bin"):
        if path != keep:
            path.unlink(missing_ok=True)


def _base(units: Units) -> Counted:
    path = _path(units.folder, units.manifest.base)
    must_be_file(path)
    try:
        data = np.memmap(path, dtype="u1", mode="r")
    except (FileNotFoundError, ValueError) as error:
        raise damaged(path, "it is missing or empty") from error
    size = (len(data) - 4) // _ENTRY_BYTES
    if zlib.crc32(data[:-4].data).to_bytes(4, "little") != bytes(data[-4:]):
        raise damaged(path, "its checksum is wrong")
    keys, counts = data[: 8 * size].view("<u8"), data[8 * size : -4].view("<u4")
    return np.asarray(keys), np.asarray(counts)


def _path(folder: Path, rows: int) -> Path:
    return folder / f"frequencies-{rows}.bin"
