"""Compression when something else happens too: forgetting, restoring, a new policy, a secret in a belief."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

import octavo
from octavo.domain import cores
from octavo.domain.compression import CompressionPolicy, Due
from octavo.domain.cores import Belief, Core, Sphere
from octavo.domain.sentences import SessionSource
from octavo.errors import BadPolicy
from octavo.models.summarisers import Summariser

NOW = octavo.Policy(compression=CompressionPolicy(mode="immediate"))
RETIRING = octavo.Policy(compression=CompressionPolicy(mode="immediate", retire=True))

Opened = Callable[..., octavo.Account]


def live(account: octavo.Account, sessions: int, say: str = "I planted a mango tree in Chiang Mai.") -> None:
    for _ in range(sessions):
        with account.sandbox() as sandbox:
            sandbox.turn("user", say)
            sandbox.turn("assistant", "ดีมากเลยค่ะ")


def made(account: octavo.Account) -> list[str]:
    return sorted(memory.id for memory in account.memories(kind=["core", "sphere"]))


def episodes(account: octavo.Account, session: int | None = None) -> list[str]:
    name = None if session is None else account.sessions()[session].sandbox
    return [memory.id for memory in account.memories(kind="episode", from_sandbox=name)]


def with_radix(radix: int, **more: bool) -> octavo.Policy:
    levels = tuple(replace(level, radix=radix) for level in CompressionPolicy().levels)
    return octavo.Policy(compression=CompressionPolicy(mode="immediate", levels=levels, **more))


def test_a_session_forgotten_whole_before_the_eighth_closes_does_not_stop_the_core(opened: Opened) -> None:
    account = opened(policy=NOW)
    live(account, 3)
    account.forget(*episodes(account, 2))
    live(account, 5)
    core = account.get("core_000_000")
    assert core is not None
    assert core.data["session_count"] == 8
    assert len(core.linked("part")) == 7


def test_of_sessions_that_were_all_forgotten_the_core_says_that_nothing_is_left(opened: Opened) -> None:
    account = opened(policy=NOW)
    live(account, 8)
    account.forget(*episodes(account))
    account.upkeep()
    core = account.get("core_000_000")
    assert core is not None
    assert "nothing of them is left" in core.text
    assert "mango" not in f"{core.text}{core.data}"
    assert core.links == ()


def test_what_is_forgotten_leaves_the_sphere_as_well_as_the_core(opened: Opened) -> None:
    account = opened(policy=with_radix(2))
    live(account, 4, "I always drink green tea with my sister Anna.")
    assert "green tea" in str(account.get("sphere_000"))
    account.forget(*episodes(account))
    assert account.upkeep().made == ("core_000_000", "core_000_001", "sphere_000")
    assert "green tea" not in str([account.get(id_) for id_ in made(account)])
    assert account.upkeep().made == ()


def test_after_a_restore_ordinals_go_on_and_no_core_is_made_twice(opened: Opened) -> None:
    account = opened(policy=NOW)
    live(account, 8)
    account.restore(4)
    live(account, 8, "We sailed to Koh Chang.")
    assert account.counters()["Total_sessions"] == 16
    assert made(account) == ["core_000_000", "core_000_001"]
    first, second = account.get("core_000_000"), account.get("core_000_001")
    assert first is not None
    assert second is not None
    assert set(first.linked("part")) == set(episodes(account)[:4])
    assert "Koh Chang" in second.text


def test_a_restore_brings_back_a_removal_as_a_removal(opened: Opened) -> None:
    account = opened(policy=NOW)
    live(account, 8)
    account.uncompress("core_000_000")
    removed = account.version
    account.compress("core_000_000")
    account.restore(removed)
    assert account.upkeep().made == ()
    assert made(account) == []


def test_originals_retired_by_a_restore_come_back_when_their_core_is_removed(opened: Opened) -> None:
    account = opened(policy=RETIRING)
    live(account, 8)
    account.upkeep()
    retired = account.version
    account.uncompress("core_000_000")
    account.restore(retired)
    assert episodes(account) == []
    account.uncompress("core_000_000")
    assert len(episodes(account)) == 8


def test_what_was_archived_before_stays_in_the_archive(opened: Opened, root: Path) -> None:
    account = opened(policy=RETIRING)
    live(account, 7)
    with account.sandbox() as sandbox:
        sandbox.turn("user", "เราแต่งงานกันแล้ว", salience=0.85)
        sandbox.turn("assistant", "ยินดีด้วยค่ะ", salience=0.1)
    assert len(account.upkeep().retired) == 7
    milder = CompressionPolicy(retire=True, milestone_salience=0.99, routine_salience=0.99)
    later = opened(policy=octavo.Policy(compression=milder))
    assert len(later.upkeep().retired) == 1
    archive = root / "+user01" / "archive" / "core_000_000.jsonl"
    assert len(set(archive.read_text("utf-8").splitlines())) == 8


def test_another_radix_after_the_first_core_is_an_error_and_changes_nothing(opened: Opened) -> None:
    account = opened(policy=NOW)
    live(account, 8)
    before = account.version
    for radix in (4, 16):
        with pytest.raises(BadPolicy, match="another table of compression levels"):
            opened(policy=with_radix(radix)).compress()
    assert account.version == before
    assert opened(policy=NOW).compress() == []


class Telling(Summariser):
    """Adds beliefs to every sphere, as a model might."""

    def sphere(self, due: Due, cores: Sequence[Core], *, made_at: datetime) -> Sphere:
        plain = Summariser().sphere(due, cores, made_at=made_at)
        beliefs = tuple(
            Belief(belief=text, confidence=0.6, evidence=("core_000_000",))
            for text in (
                "The user's key is sk-live-4242424242424242abcdef",
                "The user trusts Anna",
                "ชอบอากาศเย็น",
            )
        )
        return replace(plain, abstracted_knowledge=replace(plain.abstracted_knowledge, beliefs=beliefs))

    def core(self, due: Due, sessions: Sequence[SessionSource], *, made_at: datetime) -> Core:
        return Summariser().core(due, sessions, made_at=made_at)


def test_a_secret_in_a_belief_is_masked_and_what_a_person_refused_is_not_asked_again(opened: Opened) -> None:
    account = opened(policy=with_radix(2), summariser=Telling())
    account.reject("The user trusts Anna")
    live(account, 4)
    sphere = account.get("sphere_000")
    assert sphere is not None
    assert "sk-live" not in f"{sphere}{account.proposals()}"
    assert len(cores.read(cores.Sphere, sphere.data).abstracted_knowledge.beliefs) == 3
    assert [p.memory.text for p in account.proposals()] == [
        "The user's key is [openai_key]",
        "ชอบอากาศเย็น",
    ]


def test_a_belief_that_a_person_approved_is_not_asked_again(opened: Opened) -> None:
    account = opened(policy=with_radix(2), summariser=Telling())
    live(account, 4)
    for proposal in account.proposals():
        account.approve(proposal.id)
    account.uncompress("sphere_000")
    account.compress("sphere_000")
    assert account.proposals() == []
    assert len(account.memories(kind="canon", category="worldview")) == 3


def test_two_handles_with_a_worker_each_make_one_core(opened: Opened) -> None:
    one, two = opened(), opened()
    live(one, 7)
    live(two, 1)
    live(one, 8)
    assert one.wait(60)
    assert two.wait(60)
    assert made(one) == ["core_000_000", "core_000_001"]
    assert all(len(two.history(id_)) == 1 for id_ in made(two))


def test_erasing_an_episode_erases_the_belief_that_was_proposed_from_it(opened: Opened, root: Path) -> None:
    account = opened(policy=with_radix(2))
    live(account, 4, "I always drink zebraquux tea with my sister Anna.")
    assert "zebraquux" in account.proposals()[0].memory.text
    for id_ in episodes(account):
        account.redact(id_, reason="asked to")
    account.upkeep()
    assert account.proposals() == []
    assert [path.name for path in root.rglob("*.*") if b"zebraquux" in path.read_bytes()] == []
    assert account.check()
