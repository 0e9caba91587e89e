"""Patterns: what repeats, with real counts, times and sources, each kind with its own threshold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from octavo.documents.brain.patterns import patterns_of, triples
from octavo.domain.policy import PatternPolicy
from octavo.domain.runs import Outcome
from octavo.storage.mirror_tree import unfit

NOW = datetime(2026, 1, 20, 12, tzinfo=UTC)
WALK = ("forward", "left", "forward")


def trace(source="e1", days=1.0, *, actions=(), intents=(), denials=(), outcomes=()):
    """What one episode or session tells."""
    seen = [("actions", key, None) for key in triples(actions)]
    seen += [("intents", "-".join(pair), None) for pair in pairwise(intents)]
    seen += [("denials", key, None) for key in denials]
    seen += [("outcomes", outcome.condition, outcome) for outcome in outcomes]
    return [(kind, key, NOW - timedelta(days=days), source, outcome) for kind, key, outcome in seen]


def found(*traces):
    return patterns_of([sighting for trace in traces for sighting in trace], PatternPolicy())


def lava(result="denied", holding=False):
    return Outcome(command="forward", tile="lava", holding=holding, result=result)


def firm(*traces):
    return [pattern for pattern in found(*traces) if pattern.is_firm]


def test_a_triple_seen_three_times_in_two_episodes_is_firm_with_its_count_times_and_sources():
    traces = [trace(f"e{n}", days=n, actions=WALK) for n in (1, 2, 3)]
    (pattern,) = firm(*traces)
    assert (pattern.kind, pattern.key, pattern.count) == ("actions", "forward-left-forward", 3)
    assert pattern.confidence == 0.75
    assert (pattern.first, pattern.last) == (NOW - timedelta(days=3), NOW - timedelta(days=1))
    assert pattern.sources == ("e1", "e2", "e3")
    assert pattern.topic == "pattern/actions/forward-left-forward"
    assert pattern.page == "strategies"


def test_below_the_threshold_or_within_one_episode_a_triple_is_only_found():
    assert firm(trace("e1", actions=WALK), trace("e2", actions=WALK)) == []
    once = found(trace("e1", actions=(*WALK, "right", *WALK, "right", *WALK)))
    assert {p.count for p in once if p.key == "forward-left-forward"} == {3}
    assert not any(p.is_firm for p in once)


def test_a_run_of_repeats_tells_its_triple_once():
    assert triples(["forward"] * 10) == ["forward-forward-forward"]
    assert triples(["a", "b"]) == []


def test_intents_of_a_person_pair_up():
    traces = [trace(f"s{n}", intents=("START_TEACHING", "DONE")) for n in range(3)]
    (pattern,) = firm(*traces)
    assert (pattern.page, pattern.count) == ("interaction_patterns", 3)


def test_a_denial_seen_twice_is_firm_and_one_is_not():
    (pattern,) = firm(trace(denials=("forward-lava", "forward-lava")))
    assert (pattern.confidence, pattern.page) == (0.9, "safety_constraints")
    assert firm(trace(denials=("forward-lava",))) == []


def test_an_outcome_is_firm_when_it_is_nearly_always_the_same():
    (pattern,) = firm(trace(outcomes=(lava(), lava())))
    assert pattern.text == "forward onto lava without a key: denied"
    assert pattern.confidence > 0.7, "the gate's floor for facts"
    mixed = (*[lava()] * 8, *[lava("moved")] * 2)
    (doubtful,) = found(trace(outcomes=mixed))
    assert (doubtful.is_firm, doubtful.consistency, doubtful.count) == (False, 0.8, 8)
    assert len(firm(trace(outcomes=(lava(), lava(), lava("moved", True), lava("moved", True))))) == 2


def test_five_sources_at_most_are_named_the_newest_first():
    (pattern,) = firm(*(trace(f"e{n}", days=n / 2, actions=WALK) for n in range(9)))
    assert pattern.sources == ("e0", "e1", "e2", "e3", "e4")


def test_a_topic_can_be_no_path_in_any_language():
    wild = ("../../etc/passwd", "C:\\x", "เดินหน้า", "ถอยหลัง", "a\x00b", "", "x" * 500, "A")
    topics = [firm(trace(denials=(key, key)))[0].topic for key in (*wild, "forward-left")]
    assert topics[-1] == "pattern/denials/forward-left"
    keys = {topic.removeprefix("pattern/denials/") for topic in topics}
    assert all("/" not in key and unfit(key) is None and 0 < len(key) < 90 for key in keys)
    assert len({key.casefold() for key in keys}) == len(wild) + 1


@given(st.lists(st.sampled_from(["forward", "left", "right"]), max_size=60))
def test_triples_lose_nothing_but_repeats(actions):
    windows = {"-".join(actions[n : n + 3]) for n in range(len(actions) - 2)}
    assert set(triples(actions)) == windows
