"""What texts are filed under, in the state's file: numbers with the rows of their texts, in runs.

A version's places are written as a run of their own, together with the newest runs that are not much larger,
so that a write costs what it writes and never touches pages that lie all over. A run lies in parts by the
first bits of its numbers, of which a look-up reads a few. Of each number only the newest rows stay.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, groupby, pairwise

import apsw
import msgspec

from octavo.domain.likeness import NUMBER_BITS
from octavo.domain.state import CANDIDATES, MANY, NEWEST, most_shared
from octavo.libraries import Array, np
from octavo.storage.rows import ranges, tallied
from octavo.storage.state_log import AMONG, StateLog, listed

ROW_BITS = 27  # with a number before it a row is a place of seven bytes
_ROW = (1 << ROW_BITS) - 1
_RUN_BITS = 32  # of a part's key, before those of the part in its run
_FEW = 1_024  # places that are written anew with every version
_LARGEST = 2_000_000  # places of a run that is written anew: so long may a commit take, and so much memory
_PART = 1_024
_MANY = 10_000  # places or numbers for which it pays to load numpy
_SOME = f"SELECT part, places FROM filed WHERE part {AMONG} ORDER BY part"
_RUNS = "SELECT value FROM meta WHERE key = 'filed'"

Run = list[int]  # by how many bits it is parted, and how many places it was written with


def place_of(number: int, row: int) -> int:
    """A number and a row under it as one."""
    return number << ROW_BITS | row


def add(db: apsw.Connection, places: Sequence[int]) -> None:
    """Add the places of new rows inside an open transaction."""
    runs, count = _read(db.execute(_RUNS).get), len(places)
    while runs and runs[-1][1] <= max(_FEW, min(2 * count, _LARGEST)):
        count += runs.pop()[1]
    first = len(runs) << _RUN_BITS
    older = db.execute("SELECT places FROM filed WHERE part >= ? ORDER BY part", (first,))
    merged = _merged(b"".join([array("Q", places).tobytes(), *(bytes(row[0]) for row in older)]))
    bits = (len(merged) // _PART).bit_length()
    shift = NUMBER_BITS - bits + ROW_BITS
    edges = pairwise(bisect_left(merged, part << shift) for part in range((1 << bits) + 1))
    parts = [
        (key, merged[low:high].tobytes()) for key, (low, high) in enumerate(edges, start=first) if low < high
    ]
    db.execute("DELETE FROM filed WHERE part >= ?", (first,))
    db.executemany("INSERT INTO filed VALUES (?, ?)", parts)
    told = msgspec.json.encode([*runs, [bits, len(merged)]]).decode()
    db.execute("UPDATE meta SET value = ? WHERE key = 'filed'", (told,))


def remove(db: apsw.Connection, places: Collection[int]) -> None:
    """Take places out, wherever they stand."""
    keys = _parts(_read(db.execute(_RUNS).get), [place >> ROW_BITS for place in places])
    found: list[tuple[int, bytes]] = list(db.execute(_SOME, (listed(keys),)))
    for part, blob in found:
        kept = array("Q", [place for place in array("Q", blob) if place not in places])
        db.execute("UPDATE filed SET places = ? WHERE part = ?", (kept.tobytes(), part))


def most_alike(db: StateLog, sought: Sequence[Sequence[int]]) -> Sequence[Sequence[int]]:
    """For each of some texts the rows that share most of the numbers it is sought under."""
    numbers = list(chain.from_iterable(sought))
    parts = db.rows(_SOME, (listed(_parts(_read(db.one(_RUNS)), numbers)),))
    grouped = groupby(parts, lambda part: part[0] >> _RUN_BITS)
    held = [memoryview(b"".join(blob for _, blob in run)).cast("Q") for _, run in grouped]
    runs = [run for run in reversed(held) if len(run)]
    if len(numbers) >= _MANY and runs:
        return _counted(runs, sought, np.array(numbers))
    found = {number: _newest(runs, number) for number in numbers}
    return [most_shared([found[number] for number in some], len(some)) for some in sought]


def _newest(runs: Sequence[memoryview], number: int) -> list[int]:
    """The newest rows under a number, by runs of which the newest comes first."""
    rows: list[int] = []
    for places in runs:
        high = bisect_left(places, number + 1 << ROW_BITS)
        if high and places[high - 1] >> ROW_BITS == number:
            low = bisect_left(places, number << ROW_BITS, max(0, high - NEWEST + len(rows)), high)
            rows += [place & _ROW for place in places[low:high]]
    return rows


def _counted(runs: Sequence[memoryview], sought: Sequence[Sequence[int]], numbers: Array) -> list[list[int]]:
    """What `most_shared` finds for many texts, in arrays."""
    lengths = np.array(list(map(len, sought)))
    order = np.argsort(numbers)
    numbers, text = numbers[order], np.repeat(np.arange(len(sought)), lengths)[order]
    room, shared = np.full(len(numbers), NEWEST), []
    for run in runs:
        places = np.frombuffer(run, np.int64)
        low = np.searchsorted(places, numbers << ROW_BITS)
        held = np.flatnonzero(places[np.minimum(low, len(places) - 1)] >> ROW_BITS == numbers)
        high = np.searchsorted(places, numbers[held] + 1 << ROW_BITS)
        low = np.maximum(low[held], high - room[held])
        room[held] -= high - low
        shared.append(np.repeat(text[held], high - low) << ROW_BITS | places[ranges(low, high)] & _ROW)
    pairs, counts = tallied(np.concatenate(shared))
    text = pairs >> ROW_BITS
    enough = counts >= np.where(lengths > MANY, 2, 1)[text]
    # By texts, then those that share most, of equals the newest.
    ranked = np.sort((text << 6 | 63 - counts)[enough] << ROW_BITS | _ROW - (pairs & _ROW)[enough])
    edges = np.searchsorted(ranked, np.arange(len(sought) + 1) << 6 + ROW_BITS).tolist()
    rows = (_ROW - (ranked & _ROW)).tolist()
    return [rows[low : min(high, low + CANDIDATES)] for low, high in pairwise(edges)]


def _read(runs: str) -> list[Run]:
    return msgspec.json.decode(runs, type=list[list[int]])


def _parts(runs: Sequence[Run], numbers: Iterable[int]) -> list[int]:
    """The keys of the parts that hold what is filed under some numbers."""
    found: list[int] = []
    known = NUMBER_BITS
    for bits, first in sorted(((run[0], first) for first, run in enumerate(runs)), reverse=True):
        numbers, known = {number >> known - bits for number in numbers}, bits
        found += [first << _RUN_BITS | number for number in numbers]
    return found


def _merged(data: bytes) -> array[int]:
    """Some places in order; of many only the newest of each number."""
    if len(data) < 8 * _MANY:
        return array("Q", sorted(memoryview(data).cast("Q")))
    places = np.sort(np.frombuffer(data, np.uint64), kind="stable")
    is_kept = np.ones(len(places), dtype=bool)
    is_kept[:-NEWEST] = places[:-NEWEST] >> ROW_BITS != places[NEWEST:] >> ROW_BITS
    return array("Q", places[is_kept].tobytes())
