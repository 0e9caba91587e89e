"""The odometer: counters, positions, names and what becomes due."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.domain.compression import (
    CompressionPolicy,
    Level,
    backlog,
    counters,
    display_name,
    due,
    is_milestone,
    position,
    recognise,
    retirable,
)
from octavo.domain.memory import Memory, check_id
from octavo.errors import BadInput, BadPolicy

ORDINALS = st.integers(min_value=1, max_value=100_000)
SCOPES = st.sampled_from(["shared", "orion", "elysia", "น้อง".encode().hex()])


def shown(closed: int) -> tuple[int, int, int]:
    seen = counters(closed)
    return seen["Session_seq"], seen["Core_seq"], seen["Sphere_seq"]


def ids(closed: int, scope: str = "shared") -> list[str]:
    return [item.id for item in due(closed, scope)]


def episode(salience: float) -> Memory:
    return Memory(id=f"ep_{salience}", kind="episode", at=datetime(2026, 1, 1, tzinfo=UTC), salience=salience)


def test_ten_sessions_show_session_2_core_1_sphere_0() -> None:
    assert counters(10) == {"Session_seq": 2, "Core_seq": 1, "Sphere_seq": 0, "Total_sessions": 10}


def test_fresh_counters_are_all_zero() -> None:
    assert set(counters(0).values()) == {0}


def test_a_position_has_session_core_and_sphere_before_its_own_increment() -> None:
    assert position(1) == {"session_seq": 0, "core_seq": 0, "sphere_seq": 0}
    assert position(8) == {"session_seq": 7, "core_seq": 0, "sphere_seq": 0}
    assert position(12) == {"session_seq": 3, "core_seq": 1, "sphere_seq": 0}
    assert position(64) == {"session_seq": 7, "core_seq": 7, "sphere_seq": 0}


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        ((6, 0, 0), "THA-01-S003_SP1C1_SS6"),
        ((1, 1, 0), "THA-01-S003_SP1C2_SS1"),
        ((1, 0, 1), "THA-01-S003_SP2C1_SS1"),
    ],
)
def test_the_name_of_the_session_that_left_these_counters(seen: tuple[int, int, int], name: str) -> None:
    session, core, sphere = seen
    ordinal = sphere * 64 + core * 8 + session
    assert shown(ordinal) == seen
    assert display_name("THA-01-S003", ordinal) == name


def test_the_eighth_and_the_last_session_are_named_within_1_to_8() -> None:
    assert display_name("d", 8) == "d_SP1C1_SS8"
    assert display_name("d", 64) == "d_SP1C8_SS8"


def test_seven_closed_sessions_make_no_core() -> None:
    assert list(backlog(7)) == []


def test_the_eighth_session_makes_exactly_core_000_000_of_eight_sessions() -> None:
    (core,) = backlog(8)
    assert (core.kind, core.id, list(core.sessions)) == (
        "core",
        "core_000_000",
        [1, 2, 3, 4, 5, 6, 7, 8],
    )


def test_sixteen_sessions_make_core_000_001_and_show_0_2_0() -> None:
    assert ids(16) == ["core_000_001"]
    assert shown(16) == (0, 2, 0)


def test_the_64th_session_makes_core_7_and_then_the_sphere_of_all_eight() -> None:
    core, sphere = due(64)
    assert (core.id, sphere.id) == ("core_000_007", "sphere_000")
    assert sphere.members == tuple(f"core_000_00{n}" for n in range(8))
    assert sphere.sessions == range(1, 65)
    assert shown(64) == (0, 0, 1)
    assert [item.kind for item in backlog(64)] == ["core"] * 8 + ["sphere"]


def test_65_sessions_show_1_0_1() -> None:
    assert shown(65) == (1, 0, 1)
    assert ids(65) == []


def test_the_72nd_session_makes_core_001_000() -> None:
    assert ids(72) == ["core_001_000"]


def test_two_private_scopes_never_share_an_id() -> None:
    assert ids(64, "orion") == ["core_000_007@orion", "sphere_000@orion"]
    assert due(64, "orion")[1].members[0] == "core_000_000@orion"
    assert not set(ids(64, "orion")) & set(ids(64, "elysia")) & set(ids(64))


def test_an_ordinal_below_one_is_refused() -> None:
    for act in (position, due):
        with pytest.raises(BadInput, match="ordinal 0"):
            act(0)
    with pytest.raises(BadInput, match="-1 closed"):
        counters(-1)


@pytest.mark.parametrize(
    "other", ["core_1", "core_000", "core_000_008", "sphere_000_000", "ep_1", "core_000_001@"]
)
def test_an_id_of_something_else_is_not_recognised(other: str) -> None:
    assert recognise(other) is None


def test_levels_and_radix_are_rows_of_the_policy() -> None:
    policy = CompressionPolicy(
        levels=(
            Level(kind="core", name="week", letters="W", radix=7),
            Level(kind="core", name="month", letters="M", radix=4),
            Level(kind="sphere", name="year", letters="Y", radix=12),
        )
    )
    assert counters(7 * 4 * 12 + 9, policy) == {
        "Session_seq": 2, "Week_seq": 1, "Month_seq": 0, "Year_seq": 1, "Total_sessions": 345,
    }  # fmt: skip
    assert [item.id for item in due(7 * 4 * 12, policy=policy)] == [
        "week_000_011_003",
        "month_000_011",
        "year_000",
    ]
    assert recognise("week_000_011_003", policy) == due(7 * 4 * 12, policy=policy)[0]


def test_a_level_that_folds_fewer_than_two_is_refused() -> None:
    with pytest.raises(BadPolicy, match="'core' folds 1"):
        Level(kind="core", name="core", letters="C", radix=1)


def test_a_milestone_exceeds_the_threshold() -> None:
    assert is_milestone(episode(0.85))
    assert not is_milestone(episode(0.8))


def test_originals_are_retired_only_by_policy_from_routine_sessions_and_never_milestones() -> None:
    routine = [episode(0.3), episode(0.85), episode(0.4)]
    assert retirable(routine) == ()
    asked = CompressionPolicy(retire=True)
    assert retirable(routine, asked) == ("ep_0.3", "ep_0.4")
    assert retirable([episode(0.7), episode(0.7)], asked) == ()
    assert retirable([], asked) == ()


@given(ORDINALS)
def test_the_counters_are_the_digits_of_the_number_of_sessions(closed: int) -> None:
    session, core, sphere = shown(closed)
    assert 0 <= session < 8
    assert 0 <= core < 8
    assert session + 8 * core + 64 * sphere == closed == counters(closed)["Total_sessions"]


@given(ORDINALS)
def test_a_position_is_the_counters_of_the_session_before(ordinal: int) -> None:
    before = counters(ordinal - 1)
    assert position(ordinal) == {
        key.lower(): before[key] for key in ("Session_seq", "Core_seq", "Sphere_seq")
    }


@given(ORDINALS, SCOPES)
def test_something_is_due_exactly_when_a_wheel_turns_over(closed: int, scope: str) -> None:
    kinds = [item.kind for item in due(closed, scope)]
    assert kinds == (["core"] if closed % 8 == 0 else []) + (["sphere"] if closed % 64 == 0 else [])


@given(st.integers(min_value=0, max_value=700))
def test_every_full_session_is_in_exactly_one_core_and_every_core_in_at_most_one_sphere(
    closed: int,
) -> None:
    made = list(backlog(closed))
    cores = [item for item in made if item.kind == "core"]
    assert [n for core in cores for n in core.sessions] == list(range(1, closed // 8 * 8 + 1))
    folded = [member for item in made if item.kind == "sphere" for member in item.members]
    assert folded == [core.id for core in cores[: closed // 64 * 8]]
    assert len({item.id for item in made}) == len(made)


@given(st.integers(min_value=0, max_value=700), st.integers(min_value=0, max_value=700))
def test_a_backlog_continues_where_an_earlier_one_ended(first: int, more: int) -> None:
    assert [*backlog(first), *backlog(first + more, after=first)] == list(backlog(first + more))


@given(ORDINALS, SCOPES)
def test_an_id_is_recognised_as_what_it_was_made_for(closed: int, scope: str) -> None:
    for item in due(closed * 8, scope):
        assert recognise(check_id(item.id)) == item
