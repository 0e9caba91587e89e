"""Seed 001, line by line: every acceptance behaviour of compression, and the document's JSON examples."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from bench import summaries

import octavo
from llm_server import Reply, hangs, llm_server, misses_the_schema
from octavo.documents.formats import export_account
from octavo.documents.schemas import schema
from octavo.domain import cores
from octavo.domain.compression import CompressionPolicy, due
from octavo.domain.cores import is_intact, to_json
from octavo.domain.memory import Memory
from octavo.domain.pages import core_page, sphere_page
from octavo.domain.summary import summarise_core
from octavo.models.llm import Endpoint
from octavo.models.summarisers import Summariser
from octavo.storage.stores.local import LocalStore
from octavo.testing import Stopped, StoppingDisk, open_on
from seed_001 import SEED_CORE, SEED_SPHERE
from talks import ENGLISH, THAI, Talk, sessions_of

MANUAL = octavo.Policy(compression=CompressionPolicy(mode="manual"))
NOW = octavo.Policy(compression=CompressionPolicy(mode="immediate"))
RETIRING = octavo.Policy(compression=CompressionPolicy(mode="immediate", retire=True))
TEA = "I always drink green tea in the morning with my sister Anna."

Opened = Callable[..., octavo.Account]


def live(account: octavo.Account, sessions: int, say: str = TEA, scope: str = "shared") -> None:
    for _ in range(sessions):
        with account.sandbox(scope=scope) as sandbox:
            sandbox.turn("user", say)
            sandbox.turn("assistant", "ดีมากเลยค่ะ")


def relive(account: octavo.Account, talk: Talk) -> None:
    for _, turns in talk:
        with account.sandbox() as sandbox:
            for speaker, text in turns:
                sandbox.turn(speaker, text)


def counted(account: octavo.Account) -> tuple[int, int, int]:
    found = account.counters()
    return found["Session_seq"], found["Core_seq"], found["Sphere_seq"]


def made(account: octavo.Account) -> list[str]:
    return sorted(memory.id for memory in account.memories(kind=["core", "sphere"]))


def there(account: octavo.Account, id_: str) -> Memory:
    memory = account.get(id_)
    assert memory is not None
    return memory


def test_ten_counted_sessions_show_two_one_nought(opened: Opened) -> None:
    account = opened(policy=MANUAL)
    assert counted(account) == (0, 0, 0)
    live(account, 10)
    assert counted(account) == (2, 1, 0)
    assert account.counters()["Total_sessions"] == 10


def test_a_stored_episode_has_its_compression_meta(opened: Opened, tmp_path: Path) -> None:
    account = opened(policy=MANUAL)
    live(account, 12)
    export_account(account, tmp_path, "consciousness")
    files = tmp_path.rglob("ep_*.json")
    metas = [json.loads(path.read_bytes())["compression_meta"] for path in files]
    assert {"session_seq": 3, "core_seq": 1, "sphere_seq": 0} in metas
    assert all(meta.keys() == {"session_seq", "core_seq", "sphere_seq"} for meta in metas)


def test_a_session_memory_names_a_file_with_the_same_summary_and_the_counters(
    opened: Opened, tmp_path: Path
) -> None:
    account = opened(policy=NOW)
    relive(account, THAI)
    export_account(account, tmp_path, "consciousness")
    for n, session in enumerate(account.sessions(), start=1):
        path = tmp_path / "consciousness" / "04_Session_Memory" / f"User01_SP1C1_SS{n}.json"
        page = json.loads(path.read_bytes())
        assert page["session_id"] == session.sandbox
        said = " ".join(there(account, id_).text for id_ in page["episodes"])
        quotes = re.findall("“(.*?)”", page["summary"])
        assert all(quote in said for quote in quotes)
        assert len(quotes) >= (0 if n == 4 else 2)  # the fourth is nothing but greetings
        assert len(page["summary"]) <= 280
        assert page["counters"]["Total_sessions"] == n
        assert page["compression_meta"] == session.position


@pytest.mark.parametrize(
    ("closed", "counters", "name"),
    [
        (6, (6, 0, 0), "User01_SP1C1_SS6"),
        (9, (1, 1, 0), "User01_SP1C2_SS1"),
        (65, (1, 0, 1), "User01_SP2C1_SS1"),
    ],
)
def test_session_memories_are_named_by_sphere_core_and_session_from_one(
    opened: Opened, tmp_path: Path, closed: int, counters: tuple[int, int, int], name: str
) -> None:
    account = opened(policy=MANUAL)
    live(account, closed)
    assert counted(account) == counters
    export_account(account, tmp_path, "consciousness")
    written = {path.stem for path in tmp_path.rglob("User01_*.json")}
    assert len(written) == closed
    assert name in written


def test_seven_sessions_make_no_core_and_the_eighth_makes_exactly_one_of_eight(opened: Opened) -> None:
    account = opened(policy=NOW)
    live(account, 7)
    assert made(account) == []
    live(account, 1)
    assert made(account) == ["core_000_000"]
    assert len(set(there(account, "core_000_000").data["source_sessions"])) == 8


def test_sixteen_sessions_make_the_second_core(opened: Opened) -> None:
    account = opened(policy=NOW)
    live(account, 16)
    assert made(account) == ["core_000_000", "core_000_001"]
    assert counted(account) == (0, 2, 0)


def test_sixty_four_sessions_make_eight_cores_and_the_first_sphere(opened: Opened) -> None:
    account = opened(policy=NOW)
    live(account, 64)
    names = [f"core_000_{n:03d}" for n in range(8)]
    assert made(account) == [*names, "sphere_000"]
    sphere = cores.read(cores.Sphere, there(account, "sphere_000").data)
    assert (list(sphere.source_cores), sphere.session_count) == (names, 64)
    assert counted(account) == (0, 0, 1)


def test_sixty_five_sessions_show_one_nought_one_and_at_seventy_two_the_next_core_is_of_the_next_sphere(
    opened: Opened,
) -> None:
    account = opened(policy=NOW)
    live(account, 65)
    assert counted(account) == (1, 0, 1)
    live(account, 7)
    assert "core_001_000" in made(account)
    assert counted(account) == (0, 1, 1)


def test_one_session_of_twenty_episodes_counts_once(account: octavo.Account) -> None:
    with account.sandbox() as sandbox:
        for n in range(20):
            sandbox.turn("user", f"เรื่องที่ {n}")
            sandbox.turn("assistant", "yes")
    assert len(account.memories(kind="episode")) == 20
    assert counted(account) == (1, 0, 0)


def test_a_session_closed_twice_counts_once(account: octavo.Account) -> None:
    with account.sandbox() as sandbox:
        sandbox.turn("user", TEA)
    sandbox.consolidate()
    account.resume(sandbox.id).consolidate()
    assert counted(account) == (1, 0, 0)


def test_a_milestone_is_kept_whole_and_told(opened: Opened) -> None:
    account = opened(policy=RETIRING)
    live(account, 7)
    with account.sandbox() as sandbox:
        id_ = sandbox.turn("user", "ขอบคุณที่มาส่งที่สนามบินเมื่อเช้า คิดถึงนะ", salience=0.85)
    account.upkeep()
    core = cores.read(cores.Core, there(account, "core_000_000").data)
    assert there(account, id_).turns[0].text == "ขอบคุณที่มาส่งที่สนามบินเมื่อเช้า คิดถึงนะ"
    assert core.milestones == (id_,)
    told = [event.episode for event in core.compressed_narrative.key_events]
    assert id_ in told + [anchor.episode for anchor in core.salience_anchors]


@pytest.mark.parametrize("talk", [ENGLISH, THAI])
def test_without_a_model_the_core_is_made_and_names_the_statistical_method(
    opened: Opened, talk: Talk
) -> None:
    account = opened(policy=NOW)
    relive(account, talk)
    core = there(account, "core_000_000")
    assert core.data["meta"]["compression_method"] == "statistical_aggregation"
    assert "PostgreSQL" in core.text


@pytest.mark.parametrize("behaviour", [misses_the_schema(), hangs(5)])
def test_when_the_model_fails_the_deterministic_summary_is_used_and_recorded(
    opened: Opened, behaviour: Reply
) -> None:
    plain = opened(policy=NOW, account="plain")
    relive(plain, THAI)
    with llm_server(behaviour) as server:
        endpoint = Endpoint(url=server.base_url, model="m", timeout_seconds=0.2, attempts=2)
        model = Summariser(endpoint=endpoint, sleep=lambda _: None)
        account = opened(policy=NOW, summariser=model)
        relive(account, THAI)
    core = there(account, "core_000_000")
    assert core.data["meta"]["fallback_reason"]
    assert core.text == there(plain, "core_000_000").text


def test_originals_are_kept_by_default(opened: Opened) -> None:
    account = opened(policy=NOW)
    live(account, 8)
    account.upkeep()
    core = there(account, "core_000_000")
    assert len(core.linked("part")) == 8
    assert all(TEA in there(account, id_).text for id_ in core.linked("part"))


def test_by_policy_originals_go_only_after_a_durable_verified_core_and_milestones_remain(
    opened: Opened, root: Path
) -> None:
    account = opened(policy=RETIRING)
    live(account, 7)
    assert account.upkeep().retired == ()
    with account.sandbox() as sandbox:
        milestone = sandbox.turn("user", "เราแต่งงานกันแล้ว", salience=0.9)
    retired = account.upkeep().retired
    assert is_intact(cores.read(cores.Core, there(account, "core_000_000").data))
    assert len(retired) == 7
    assert [memory.id for memory in account.memories(kind="episode")] == [milestone]
    archive = root / "+user01" / "archive" / "core_000_000.jsonl"
    assert len(archive.read_text("utf-8").splitlines()) == 7
    order = [commit.cause for commit in account.versions()]
    assert order.index("compress core_000_000") < order.index("retire core_000_000")


def test_a_crash_while_the_eighth_session_closes_leaves_no_drift_and_no_second_core(tmp_path: Path) -> None:
    with octavo.open(tmp_path / "data", policy=NOW) as account:
        live(account, 7)
        held = account.sandbox("eighth")
        held.turn("user", TEA)
        held.close()
    stopped, stop_at = True, 0
    while stopped:
        stop_at += 1
        root = tmp_path / f"run{stop_at}"
        shutil.copytree(tmp_path / "data", root)
        disk = StoppingDisk(stop_at)
        try:
            with open_on(
                LocalStore(root / "default", disk=disk), root / "default" / "index", policy=NOW
            ) as one:
                one.resume(held.id).consolidate()
        except Stopped:
            pass
        stopped = disk.stopped
        with octavo.open(root, policy=NOW) as again:
            again.resume(held.id).consolidate()
            again.compress()
            assert counted(again) == (0, 1, 0)
            assert made(again) == ["core_000_000"]
            assert len(again.history("core_000_000")) == 1
        shutil.rmtree(root)


def test_two_processes_closing_sessions_give_unique_numbers_and_no_session_two_cores(
    opened: Opened, root: Path
) -> None:
    script = (
        "import octavo, sys\n"
        "from octavo.domain.compression import CompressionPolicy\n"
        "policy = octavo.Policy(compression=CompressionPolicy(mode='immediate'))\n"
        "with octavo.open(sys.argv[1], 'User01', policy=policy) as account:\n"
        "    for n in range(12):\n"
        "        with account.sandbox() as sandbox:\n"
        "            sandbox.turn('user', f'เรื่องที่ {n}')\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", script, root]) for _ in range(2)]
    assert [process.wait(120) for process in running] == [0, 0]
    account = opened(policy=NOW)
    account.compress()
    assert [session.ordinal for session in account.sessions()] == list(range(1, 25))
    folded = [name for id_ in made(account) for name in there(account, id_).data["source_sessions"]]
    assert len(folded) == len(set(folded)) == 24
    assert all(len(account.history(id_)) == 1 for id_ in made(account))


def test_a_belief_is_answered_by_the_sphere_first_and_a_detail_by_the_episode(opened: Opened) -> None:
    account = opened(policy=NOW, embedder=False)
    live(account, 63)
    with account.sandbox() as sandbox:
        for month in ("March", "April", "May", "June"):  # news enough that the core quotes no detail
            sandbox.turn("user", f"In {month} I signed the contract for a harbour house with Mr. {month}s.")
            sandbox.turn("assistant", "Congratulations!")
        id_ = sandbox.turn("user", "By the way, a plumber's wrench is still there.")
    abstract = account.recall("green tea in the morning with sister Anna", strategy="layered")
    assert abstract.trail[0].layer == "sphere"
    assert abstract.trail[0].sufficed
    assert abstract[0].memory.id == "sphere_000"
    detail = account.recall("plumber's wrench", strategy="layered")
    assert [step.layer for step in detail.trail] == ["sphere", "core", "episode"]
    assert id_ in [hit.memory.id for hit in detail]
    assert account.recall("plumber's wrench")[0].memory.id == id_


def test_of_greetings_nothing_is_kept_and_a_decision_is_kept_without_a_model(opened: Opened) -> None:
    account = opened(policy=NOW)
    relive(account, ENGLISH)
    digests = there(account, "core_000_000").data["compressed_narrative"]["digests"]
    assert digests[2]["text"] == ""
    assert "We decided to move the bakery's ordering system to PostgreSQL" in digests[3]["text"]


def standing(account: octavo.Account) -> str:
    """What the brief tells as canon; a core that quotes who said it is told as a core."""
    return "\n".join(line for line in account.brief().text.splitlines() if ", canon, " in line)


def test_a_belief_is_a_hypothesis_with_evidence_and_outside_the_prompt_until_approved(opened: Opened) -> None:
    account = opened(policy=NOW)
    live(account, 64)
    belief = cores.read(cores.Sphere, there(account, "sphere_000").data).abstracted_knowledge.beliefs[0]
    assert (belief.epistemic_state, belief.confidence < 0.75) == ("hypothesis", True)
    assert all(there(account, id_) for id_ in belief.evidence)
    assert "green tea" not in standing(account)
    account.approve(account.proposals()[0].id)
    assert "green tea" in standing(account)


def test_a_contested_belief_leaves_the_prompt_again(opened: Opened) -> None:
    account = opened(policy=NOW)
    live(account, 64)
    approved = account.approve(account.proposals()[0].id)
    assert approved is not None
    live(account, 3, approved.text.replace("always drink", "do not drink"))
    assert account.upkeep().contested == (approved.id,)
    assert "green tea" not in standing(account)
    assert there(account, approved.id).data["epistemic_state"] == "contested"


def test_scopes_do_not_see_each_others_beliefs(opened: Opened) -> None:
    account = opened(policy=NOW)
    live(account, 64, scope="orion")
    assert [proposal.memory.scope for proposal in account.proposals()] == ["orion"]
    account.approve(account.proposals()[0].id)
    elysia = opened("agent:elysia", scope="elysia")
    assert elysia.get("sphere_000@orion") is None
    assert elysia.proposals() == []
    assert "green tea" not in elysia.brief().text
    assert "green tea" in opened("agent:orion", scope="orion").brief().text


def shipped(name: str) -> Any:
    return schema(name)


def has_shape(value: Any, example: Any) -> bool:
    """Whether a value has every field of an example, of its type or null, all the way down."""
    match example:
        case Mapping():
            return isinstance(value, Mapping) and all(
                key in value and (value[key] is None or has_shape(value[key], inner))
                for key, inner in example.items()
            )
        case list():
            return isinstance(value, list) and all(has_shape(item, example[0]) for item in value)
        case float() | int():
            return isinstance(value, int | float)
        case _:
            return isinstance(value, type(example))


@pytest.mark.parametrize(("name", "example"), [("core", SEED_CORE), ("sphere", SEED_SPHERE)])
def test_the_seeds_example_is_valid_by_our_schema_and_read_and_written_without_loss(
    name: str, example: dict[str, Any]
) -> None:
    jsonschema.validate(example, shipped(name), cls=jsonschema.Draft202012Validator)
    assert to_json(cores.read(cores.TYPES[name], example)) == example


@pytest.mark.parametrize(
    ("id_", "name", "example"),
    [("core_000_001", "core", SEED_CORE), ("sphere_000", "sphere", SEED_SPHERE)],
)
def test_what_we_write_is_valid_by_our_schema_and_has_the_seeds_shape(
    opened: Opened, tmp_path: Path, id_: str, name: str, example: dict[str, Any]
) -> None:
    account = opened(policy=NOW)
    live(account, 64)
    export_account(account, tmp_path, "consciousness")
    (path,) = tmp_path.rglob(f"{id_}.json")
    written = json.loads(path.read_bytes())
    jsonschema.validate(written, shipped(name), cls=jsonschema.Draft202012Validator)
    assert has_shape(written, example)


@pytest.mark.parametrize(("name", "talk"), [("English", ENGLISH), ("Thai", THAI)])
def test_the_cores_shown_on_the_page_about_compression_are_those_that_are_made(name: str, talk: Talk) -> None:
    page = (Path(__file__).parent.parent / "docs" / "compression.md").read_text("utf-8")
    shown = page.split(f"<!-- core: {name} -->\n```text\n")[1].split("\n```")[0]
    assert shown == core_page(summarise_core(due(8)[0], sessions_of(talk), made_at=datetime.now(UTC)))


def test_the_sphere_shown_on_that_page_is_the_one_that_is_made() -> None:
    page = (Path(__file__).parent.parent / "docs" / "compression.md").read_text("utf-8")
    shown = page.split("<!-- sphere -->\n```text\n")[1].split("\n```")[0]
    (path,) = summaries.OWN.glob("story_*.json")
    sphere = summaries.sphere_of(summaries.sessions_of(json.loads(path.read_text("utf-8"))))
    assert shown == sphere_page(sphere)
