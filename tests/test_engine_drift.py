"""Drift: vectors that nobody verified for too long are not fresh; verifying them makes them so again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from octavo.domain.policy import IndexPolicy, Policy
from octavo.testing.clocks import SettableClock


class Letters:
    """An embedder that counts letters."""

    name, dimension = "letters", 5

    def embed(self, texts):
        return [[text.count(c) + 0.1 for c in "aeiกอ"] for text in texts]


@pytest.fixture
def clock():
    return SettableClock()


@pytest.fixture
def account(opened, clock):
    return opened(embedder=Letters(), clock=clock)


def indexed(account, text="แมวชอบนอนบนโซฟา"):
    memory = account.remember(text, kind="register", topic="แมว").memory
    account.catch_up()
    return memory.id


def test_what_is_verified_in_time_never_ages_out(account, clock):
    id_, came = indexed(account), clock.now
    assert (account.freshness(id_).is_fresh, account.freshness(id_).age_seconds) == (True, 0)
    clock.advance(hours=1)
    assert account.freshness(id_).is_fresh
    clock.advance(hours=1)
    aged = account.freshness(id_)
    assert (aged.is_fresh, aged.is_drifted, aged.age_seconds) == (False, True, 7200)
    assert aged.has_words
    assert aged.has_vector
    verified = clock.now
    assert account.upkeep().problems == ()
    again = account.freshness(id_)
    assert (again.is_fresh, again.verified_at, again.age_seconds) == (True, verified, 0)
    assert again.vector_index_updated_at == came  # only indexing sets it
    clock.advance(minutes=59)
    assert account.freshness(id_).is_fresh
    clock.advance(minutes=2)
    assert not account.freshness(id_).is_fresh


def test_a_check_changes_nothing_and_so_refreshes_nothing(account, clock):
    id_ = indexed(account)
    clock.advance(hours=2)
    assert account.check()
    assert account.freshness(id_).is_drifted


def test_a_revised_memory_is_not_fresh_whatever_the_age(account, clock):
    id_ = indexed(account)
    account._worker.stop()  # or it would be indexed in the background
    account.revise(id_, text="แมวชอบนอนบนตู้เย็น")
    stale = account.freshness(id_)
    assert (stale.is_fresh, stale.has_words, stale.is_drifted) == (False, False, False)
    account.upkeep()
    assert not account.freshness(id_).is_fresh
    account.catch_up()
    assert account.freshness(id_).is_fresh


def test_a_policy_may_allow_more_drift_or_any(opened, clock):
    for allowed, is_drifted in ((7300.0, False), (7100.0, True), (None, False)):
        policy = Policy(index=IndexPolicy(max_allowed_drift_seconds=allowed))
        account = opened(embedder=Letters(), clock=clock, policy=policy)
        id_ = indexed(account, f"แมวตัวที่ {allowed}")
        clock.advance(hours=2)
        assert account.freshness(id_).is_drifted is is_drifted, allowed


def test_verifying_survives_a_restart_and_new_vectors(opened, account, clock):
    id_ = indexed(account)
    clock.advance(hours=2)
    verified = clock.now
    account.upkeep()
    account.remember("กาแฟดำไม่ใส่น้ำตาล")
    account.catch_up()
    again = opened(embedder=Letters(), clock=clock)
    assert again.freshness(id_).verified_at == verified
    assert again.lag().verified_at == verified
    assert again.freshness(id_).is_fresh
    assert again.check()


def test_a_damaged_index_is_not_stamped_as_verified(account, clock, root):
    id_ = indexed(account)
    clock.advance(hours=2)
    (floats,) = root.rglob("vectors-letters/floats.bin")
    floats.write_bytes(b"\xff" * floats.stat().st_size)
    (problem,) = account.upkeep().problems
    assert "checksum" in problem
    assert account.freshness(id_).is_drifted


def test_words_alone_do_not_drift(opened, clock):
    account = opened(embedder=False, clock=clock)
    id_ = indexed(account)
    clock.advance(days=30)
    found = account.freshness(id_)
    assert (found.is_fresh, found.has_vector, found.age_seconds) == (True, False, None)


def test_an_explanation_says_what_has_drifted(account, clock):
    id_ = indexed(account)
    assert "drifted" not in account.explain("แมว", id_)
    clock.advance(hours=2)
    assert "drifted: its vectors were last verified longer ago" in account.explain("แมว", id_)
    hits = account.recall("แมว")
    assert account.drifted(hits) == {id_}
    account.upkeep()
    assert account.drifted(hits) == set()
    assert account.freshness(id_).age_seconds == timedelta(0).total_seconds()
