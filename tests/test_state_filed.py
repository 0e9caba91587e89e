"""What texts are filed under: runs of places say what a plain dictionary would, whatever was merged."""

from __future__ import annotations

import random
from array import array
from contextlib import closing

import pytest

from octavo.domain.state import MANY, NEWEST, most_shared
from octavo.storage import state_file, state_filed
from octavo.storage.state_log import StateLog


class Asked(StateLog):
    def __init__(self, db):
        self.db = db

    def rows(self, sql, values=()):
        return self.db.execute(sql, values).fetchall()


@pytest.fixture
def db(tmp_path):
    with closing(state_file.opened(tmp_path / "state.db", read_only=False)) as db:
        yield db


def naively(filed, sought):
    newest = {number: rows[-NEWEST:] for number, rows in filed.items()}
    return [most_shared([newest[n] for n in some if n in newest], len(some)) for some in sought]


def drawn(draw):
    """A number of 29 bits; some come often, and many begin alike."""
    first = draw.choice((0, 5, 9_000, (1 << 14) - 1, draw.randrange(1 << 14)))
    return first << 15 | draw.choice((0, (1 << 15) - 1, draw.randrange(300)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("many", [10, 10_000])
@pytest.mark.parametrize("largest", [1_500, 2_000_000])
def test_however_places_were_merged_they_are_found_as_in_a_dictionary(db, monkeypatch, seed, many, largest):
    monkeypatch.setattr(state_filed, "_MANY", many)
    monkeypatch.setattr(state_filed, "_LARGEST", largest)
    draw, filed, rows = random.Random(seed), {}, 0
    for size in [draw.choice((1, 1, 2, 5, 40, 300)) for _ in range(60)]:
        places = set()
        for row in range(rows + 1, rows + 1 + size):
            for number in {drawn(draw) for _ in range(draw.randrange(1, 18))}:
                filed.setdefault(number, []).append(row)
                places.add(state_filed.place_of(number, row))
        rows += size
        state_filed.add(db, list(places))
        sought = [[drawn(draw) for _ in range(draw.randrange(1, MANY + 4))] for _ in range(9)]
        sought = [list(dict.fromkeys(some)) for some in sought]
        assert list(map(list, state_filed.most_alike(Asked(db), sought))) == naively(filed, sought)


def held(db):
    return [place for (blob,) in db.execute("SELECT places FROM filed") for place in array("Q", blob)]


def test_what_is_removed_stands_nowhere_any_more(db):
    draw = random.Random(7)
    places = {state_filed.place_of(drawn(draw), row) for row in range(900) for _ in range(9)}
    for row in range(900):
        state_filed.add(db, [place for place in places if place % (1 << state_filed.ROW_BITS) == row])
    gone = {place for place in held(db) if place % 7 == 0}
    state_filed.remove(db, gone)
    assert gone
    assert gone.isdisjoint(held(db))
    assert all(place in places for place in held(db))


def test_of_a_run_from_which_everything_was_removed_nothing_is_found(db, monkeypatch):
    state_filed.add(db, [state_filed.place_of(number, 1) for number in range(3_000)])
    state_filed.add(db, [state_filed.place_of(number, 2) for number in range(9)])
    state_filed.remove(db, {state_filed.place_of(number, 2) for number in range(9)})
    for many in (1, 10_000):
        monkeypatch.setattr(state_filed, "_MANY", many)
        assert list(map(list, state_filed.most_alike(Asked(db), [[1, 2], [3]]))) == [[1], [1]]
    state_filed.remove(db, set(held(db)))
    for many in (1, 10_000):
        monkeypatch.setattr(state_filed, "_MANY", many)
        assert list(map(list, state_filed.most_alike(Asked(db), [[1, 2], [3]]))) == [[], []]


def test_a_write_of_one_text_writes_little_of_what_is_filed(db):
    places = [state_filed.place_of(number * 65_537 % (1 << 29), number) for number in range(1, 200_000)]
    state_filed.add(db, places)
    before = dict(db.execute("SELECT part, places FROM filed"))
    state_filed.add(db, [state_filed.place_of(number, 200_000) for number in range(17)])
    after = dict(db.execute("SELECT part, places FROM filed"))
    assert len(before) > 100
    assert before.items() < after.items()
    assert len(after) == len(before) + 1
    assert sum(map(len, before.values())) == 8 * len(places)
