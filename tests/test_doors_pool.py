"""The pool: accounts that stay open between requests, bounded, and never answer once closed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import octavo
from octavo.doors.operations import OPERATIONS
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.errors import NotFound, OutOfScope, Unavailable
from octavo.storage.stores.names import folder_of

BY_NAME = {operation.name: operation for operation in OPERATIONS}


@pytest.fixture
def pool() -> Iterator[Pool]:
    """A pool that is closed behind the test."""
    with Pool() as pool:
        yield pool


def who(root: Path, account: str = "User01", actor: str = "human:you", scope: str | None = None) -> Settings:
    return Settings(root=root, account=account, actor=actor, scope=scope)


def remember(pool: Pool, asking: Settings, text: str) -> str:
    return pool.perform(BY_NAME["remember"], asking, {"text": text}).memory.id


def test_an_account_stays_open_between_requests(pool: Pool, root: Path) -> None:
    asking = who(root)
    id_ = remember(pool, asking, "lives in Chiang Mai")
    assert pool.perform(BY_NAME["get"], asking, {"id": id_}).text == "lives in Chiang Mai"
    assert pool.counts == {"accounts": 1, "leases": 0, "opened": 1, "closed": 0}


def test_another_actor_or_scope_has_a_handle_of_its_own(pool: Pool, root: Path) -> None:
    remember(pool, who(root), "likes green tea")
    bound = who(root, actor="agent:bot", scope="orion")
    with pool.account(bound) as account:
        assert (account.actor, account.scope) == ("agent:bot", "orion")
        with pytest.raises(OutOfScope):
            account.remember("a secret plan of the others", scope="elysia")
    assert pool.counts["accounts"] == 2


def test_the_least_recently_used_account_is_closed(root: Path) -> None:
    for name in ("a", "b", "c"):
        octavo.open(root, name).close()
    with Pool(most=2) as pool:
        with pool.account(who(root, "a")) as a, pool.account(who(root, "b")):
            pass
        with pool.account(who(root, "a")) as again:
            assert again is a
        with pool.account(who(root, "c")):
            pass
        with pool.account(who(root, "a")) as again:
            assert again is a  # b was closed
        assert pool.counts["closed"] == 1


def test_an_account_in_use_is_never_closed_under_its_user(root: Path) -> None:
    names = [f"account-{n}" for n in range(6)]
    for name in names:
        octavo.open(root, name, embedder=False).close()
    errors: list[BaseException] = []
    with Pool(most=3) as pool:

        def work(seed: int) -> None:
            try:
                for turn in range(12):
                    asking = who(root, names[(seed * 5 + turn) % len(names)])
                    with pool.account(asking) as account:
                        written = account.remember(
                            f"worker {seed} wrote note number {turn}", key=f"{seed}-{turn}"
                        )
                        assert account.get(written.memory.id) is not None
            except BaseException as error:
                errors.append(error)

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(work, range(8)))
        assert not errors
        assert pool.counts["accounts"] <= 3
    total = 0
    for name in names:
        with octavo.open(root, name, embedder=False) as account:
            total += account.stats().memories
    assert total == 8 * 12


def test_what_is_written_is_indexed_in_the_background(pool: Pool, root: Path) -> None:
    id_ = remember(pool, who(root), "ชอบกินข้าวซอยที่เชียงใหม่")
    with pool.account(who(root)) as account:
        assert account.wait(30)
        assert account.freshness(id_).is_fresh
        assert account.recall("ข้าวซอย")[0].text == "ชอบกินข้าวซอยที่เชียงใหม่"


def test_an_account_deleted_elsewhere_is_not_answered_from_memory(pool: Pool, root: Path) -> None:
    remember(pool, who(root), "likes green tea")
    octavo.delete_account(root, "User01")
    octavo.open(root, "Other").close()
    with pytest.raises(NotFound):
        pool.perform(BY_NAME["memories"], who(root), {})


def test_deleting_an_account_closes_it_for_everybody(pool: Pool, root: Path) -> None:
    remember(pool, who(root), "likes green tea")
    remember(pool, who(root, actor="agent"), "dislikes black coffee")
    assert pool.perform(BY_NAME["delete_account"], who(root), {"name": "User01"}) == {"deleted": "User01"}
    assert pool.counts["accounts"] == 0


def test_a_changed_policy_is_used_at_once(pool: Pool, root: Path) -> None:
    remember(pool, who(root), "likes green tea")
    (root / folder_of("User01") / "policy.toml").write_text("[kinds.fact]\nmax_length = 30\n")
    verdict = pool.perform(
        BY_NAME["remember"], who(root), {"text": "a fact that is longer than thirty letters"}
    )
    assert not verdict


def test_a_sandbox_stays_open_for_whoever_of_the_clients_comes_next(pool: Pool, root: Path) -> None:
    asking, other = who(root), who(root, actor="agent:bot")
    id_ = pool.perform(BY_NAME["sandbox"], asking, {"name": "Sandbox 09:30"})["id"]
    for role, text in (("user", "I moved to Chiang Mai."), ("assistant", "How is it?")):
        pool.perform(BY_NAME["turn"], asking, {"sandbox": id_, "role": role, "text": text})
    pool.perform(BY_NAME["turn"], other, {"sandbox": "Sandbox 09:30", "role": "user", "text": "Warm."})
    assert pool.perform(BY_NAME["consolidate"], asking, {"sandbox": id_}).version == 1
    assert pool.perform(BY_NAME["consolidate"], asking, {"sandbox": id_}).version == 1  # as often as asked


def test_many_clients_write_into_one_sandbox_in_turn(pool: Pool, root: Path) -> None:
    id_ = pool.perform(BY_NAME["sandbox"], who(root), {})["id"]
    asking = [who(root, actor=f"agent:{n % 3}") for n in range(12)]

    def speak(n: int) -> str:
        said = {"sandbox": id_, "role": "user", "text": f"this is remark number {n}"}
        return pool.perform(BY_NAME["turn"], asking[n], said)["episode"]

    with ThreadPoolExecutor(6) as threads:
        assert len(list(threads.map(speak, range(12)))) == 12
    done = pool.perform(BY_NAME["consolidate"], who(root), {"sandbox": id_})
    with pool.account(who(root)) as account:
        spoken = [turn.text for memory in account.memories(kind="episode") for turn in memory.turns]
    assert done.version == 1
    assert sorted(spoken) == sorted(f"this is remark number {n}" for n in range(12))


def test_a_sandbox_is_free_for_other_processes_between_two_requests(pool: Pool, root: Path) -> None:
    id_ = pool.perform(BY_NAME["sandbox"], who(root), {})["id"]
    pool.perform(BY_NAME["turn"], who(root), {"sandbox": id_, "role": "user", "text": "Hello there."})
    with octavo.open(root, "User01", actor="agent") as outside:
        with outside.resume(id_) as held:
            held.turn("assistant", "Hello.")
            said = {"sandbox": id_, "role": "user", "text": "How are you?"}
            waiting = threading.Thread(target=pool.perform, args=(BY_NAME["turn"], who(root), said))
            waiting.start()
            held.close()
        waiting.join()
        assert len(outside.buffer(id_).entries) == 3


def test_a_closed_pool_answers_nobody(root: Path) -> None:
    pool = Pool()
    remember(pool, who(root), "likes green tea")
    pool.close()
    with pytest.raises(Unavailable, match="ending"):
        pool.perform(BY_NAME["memories"], who(root), {})


@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_pool_in_order(root: Path, told: signal.Signals) -> None:
    with Pool().until_told() as pool:
        remember(pool, who(root), "likes green tea")
        os.kill(os.getpid(), told)
        threading.Event().wait(10)
        raise AssertionError("the signal did not end it")
    assert pool.counts["closed"] == 1
