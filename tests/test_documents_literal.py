"""Seed 000 taken literally: its flow line by line, on the class, with the names it uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import octavo
from octavo.documents import (
    MSP,
    Episode,
    MemoryAssembly,
    MemoryCore,
    MemoryEntry,
    MemoryVault,
    SessionBuffer,
    VaultMemory,
    build_memory_block,
    check_pii,
    create_empty_buffer,
    create_sandbox,
    flush_proposed,
    vault_tool,
)
from octavo.errors import BadInput, OctavoError

CORE = "accout/User01/core/"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder of its own, as the seed's code has one."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    MSP.standing().close()


@pytest.fixture
def msp(root: Path) -> Iterator[MSP]:
    with MSP(root, "User01") as made:
        yield made


def archive_by_hand(msp: MSP, number: int) -> str:
    """Step 4 of the flow as the seed writes it out."""
    master_state = msp.load_master_state(CORE)
    sandbox_id = msp.create_sandbox(f"Sandbox {number}")
    said = {"speaker": "user", "text": f"เรื่องที่ {number}: I repaired the pump in Nan"}
    msp.write_to_session_buffer(sandbox_id, {"episode": {"turn_1": said}})
    buffer = msp.load_session_buffer(sandbox_id)
    consolidated = msp.apply_consolidation_rules(buffer, master_state)
    merged = msp.merge(
        {"episodic": master_state.episodic + consolidated.episodes, "version": master_state.version + 1}
    )
    msp.save_master_state(CORE, merged)
    msp.delete_session_buffer(sandbox_id)
    return sandbox_id


def test_the_flow_runs_on_the_class_itself(here: Path) -> None:
    MSP.stand(here / "data")
    master_state = MSP.load_master_state(CORE)
    sandbox_id = create_sandbox("Sandbox 09:30")
    sandbox = MSP.load_sandbox(sandbox_id)
    sandbox.master_ref = master_state
    sandbox.session_buffer = create_empty_buffer(sandbox_id, parent_version=master_state.version)
    MSP.write_episode(sandbox_id, Episode(turn_1={"speaker": "user", "text": "สวัสดี EVA"}))

    state = MSP.consolidate_session(sandbox_id)

    assert (state.version, len(MSP.load_master_state(CORE).episodic)) == (1, 1)
    assert sandbox.session_buffer["episodes"] == []


def test_a_call_on_the_class_and_one_on_an_instance_are_the_same_function(here: Path, msp: MSP) -> None:
    MSP.stand(here / "other", "Other")

    assert msp.load_master_state()["user_id"] == "User01"
    assert MSP.load_master_state()["user_id"] == "Other"


def test_nine_archives_by_hand_make_a_core(msp: MSP) -> None:
    sandboxes = [archive_by_hand(msp, number) for number in range(9)]

    account = msp.account("User01")
    assert [session.sandbox for session in account.sessions()] == sandboxes
    assert [memory.id for memory in account.memories(kind="core")] == ["core_000_000"]
    assert msp.load_master_state(CORE)["metadata"]["total_sessions"] == 9
    assert account.sandboxes() == []


def test_a_second_save_of_one_sandbox_is_the_same_session(msp: MSP) -> None:
    sandbox = msp.create_sandbox("User01", "Sandbox")
    for number in (1, 2):
        state = msp.load_master_state("User01")
        told = {"episode_id": f"ep_{number}", "session_id": sandbox, "turn_1": {"text": f"หนึ่ง {number}"}}
        state["episodic_memory"].append(told)
        msp.save_master_state("User01", state)

    assert [session.sandbox for session in msp.account("User01").sessions()] == [sandbox]


def test_a_buffer_answers_to_the_names_of_the_flow(msp: MSP) -> None:
    msp.save_master_state("User01", msp.merge({"states": {"ire_state": {}}, "version": 1}))
    sandbox = msp.create_sandbox("User01", "Sandbox")
    msp.write_to_session_buffer(
        sandbox,
        {
            "episode": {"turn_1": {"text": "หิว"}},
            "semantic_updates": ["likes tea"],
            "state_changes": {"a": {}},
        },
    )

    buffer = msp.get_session_buffer(sandbox)

    assert isinstance(buffer, SessionBuffer)
    assert buffer["episodes"] == buffer.get("episodes") == buffer["new_episodes"]
    assert (buffer["semantic_updates"], buffer["state_changes"]) == (["likes tea"], {"a": {}})
    assert (buffer["metadata"]["sandbox_id"], buffer["metadata"]["parent_version"]) == (sandbox, 1)
    with pytest.raises(KeyError):
        buffer["moods"]


def test_a_buffer_of_the_flow_goes_through_the_rules(msp: MSP) -> None:
    buffer = {
        "episodes": [{"turn_1": {"text": "ฝนตก"}}],
        "semantic_updates": [],
        "state_changes": {},
        "metadata": {"sandbox_id": "sandbox_9", "created_at": "2025-12-17T10:00:00Z", "parent_version": 0},
    }

    consolidated = msp.apply_consolidation_rules(buffer, msp.load_master_state("User01"))

    assert [episode["session_id"] for episode in consolidated.episodes] == ["sandbox_9"]


@pytest.mark.parametrize("nothing", [{"foo": 1}, {}, {"episode_id": "ep_1"}, {"turn_1": None}, "คำ"])
def test_an_object_that_says_nothing_is_no_episode(msp: MSP, nothing: Any) -> None:
    sandbox = msp.create_sandbox("User01", "Sandbox")

    with pytest.raises(BadInput, match="episode"):
        msp.write_episode(sandbox, nothing)
    with pytest.raises(BadInput, match="episode"):
        msp.write_to_session_buffer(sandbox, {"episodes": [{"turn_1": {"text": "หิว"}}, nothing]})
    assert msp.get_session_buffer(sandbox)["episodes"] == []


GRAPH: dict[str, Any] = {
    "edges": [{"source": "n1", "relation": "grows in", "target": "n2", "weight": 0.5}],
    "nodes": [{"id": "n1", "label": "กาแฟ"}, {"id": "n2", "label": "Doi Chang"}],
}


@pytest.mark.parametrize("by", ["save", "sandbox"])
def test_edges_of_the_knowledge_system_become_links(msp: MSP, by: str) -> None:
    if by == "save":
        msp.save_master_state("User01", msp.merge({"gks": GRAPH, "version": 1}))
    else:
        sandbox = msp.create_sandbox("User01", "Sandbox")
        msp.write_to_session_buffer(sandbox, {"gks_data": GRAPH})
        msp.consolidate_session(sandbox)

    account = msp.account("User01")
    memories = {m.data["original"].get("id", "edge"): m for m in account.memories(category="gks")}
    first, second, edge = (memories[name] for name in ("n1", "n2", "edge"))
    assert first.linked("grows_in") == (second.id,)
    assert edge.linked("about") == (first.id, second.id)
    assert edge.text == "n1 grows in n2"
    assert msp.load_master_state("User01").gks == GRAPH


@pytest.mark.parametrize("by", ["save", "sandbox"])
def test_a_later_edge_finds_the_nodes_that_are_there(msp: MSP, by: str) -> None:
    msp.save_master_state("User01", msp.merge({"gks": {"nodes": GRAPH["nodes"]}, "version": 1}))
    if by == "save":
        msp.save_master_state("User01", msp.merge({"gks": GRAPH, "version": 2}))
    else:
        sandbox = msp.create_sandbox("User01", "Sandbox")
        msp.write_to_session_buffer(sandbox, {"gks_updates": {"edges": GRAPH["edges"]}})
        msp.consolidate_session(sandbox)

    state = msp.load_master_state("User01")
    memories = msp.account("User01").memories(category="gks")
    assert [len(m.linked("about")) for m in memories if m.linked("about")] == [2]
    assert len([m for m in memories if m.linked("grows_in")]) == 1
    assert state.gks == GRAPH
    assert msp.save_master_state("User01", state) == state.version == 2


def test_a_graph_that_is_a_list_goes_through_the_rules(msp: MSP) -> None:
    buffer = {"gks_data": [{"id": "n1", "label": "กาแฟ"}]}

    consolidated = msp.apply_consolidation_rules(buffer, msp.load_master_state("User01"))
    msp.save_master_state("User01", msp.merge_into_master(msp.load_master_state("User01"), consolidated))

    assert consolidated.gks_updates == [{"id": "n1", "label": "กาแฟ"}]
    assert msp.load_master_state("User01").gks == {"facts": [{"id": "n1", "label": "กาแฟ"}]}


def test_words_alone_find_where_somebody_lives(tmp_path: Path) -> None:
    with octavo.open(tmp_path, "User01", actor="human:you", embedder=False) as account:
        account.remember_many(
            [{"text": text} for text in ("likes tea", "lives in Chiang Mai", "works at the port")]
        )
        assert [hit.memory.text for hit in account.recall("where does she live?")] == ["lives in Chiang Mai"]


@pytest.mark.parametrize("question", ["what did we plant last spring?", "ฤดูใบไม้ผลิที่แล้วปลูกอะไร"])
def test_last_spring_is_a_time(tmp_path: Path, question: str) -> None:
    def now() -> datetime:
        return datetime(2026, 11, 1, tzinfo=UTC)

    with octavo.open(tmp_path, "User01", actor="human:you", embedder=False, clock=now) as account:
        for month in (8, 4, 1):
            at = datetime(2026, month, 12, tzinfo=UTC)
            account.remember(f"We plant ปลูก number {month} by the wall", kind="fact", at=at)

        best = account.recall(question)[0]

    assert best.memory.at.month == 4
    assert best.parts["time"] > 0


def test_a_stream_of_the_documents_is_taken_by_its_own_name(msp: MSP) -> None:
    for number in range(8):
        archive_by_hand(msp, number)
    account = msp.account("User01")

    for layer in ("sphere", "core", "episode"):
        kinds = {hit.memory.kind for hit in account.recall("the pump in Nan", streams=[layer])}
        assert kinds == {layer} - {"sphere"}
    seven = ("narrative", "salience", "emotion", "temporal", "sensory", "intuition", "reflection")
    assert account.recall("the pump in Nan", streams=dict.fromkeys(seven, 0.5))
    assert account.recall("the pump in Nan", streams="narrative")


def test_the_interface_of_the_vault_is_that_of_the_seed(tmp_path: Path) -> None:
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as vault:
        for text in ("User prefers dark mode in every editor", "User prefers dark mode in every terminal"):
            vault.add_memory(text, "shared", "preference")
        assert len(vault.find_consolidation_candidates("shared", floor=0.4)) == 1
        assert vault.find_consolidation_candidates("shared", floor=0.99) == []

        with path.open("a") as file:
            file.write('{"id": "abcdefabcdef", "text": "appended by another process", "scope": "shared"}\n')
        appended = vault.get("abcdefabcdef")
        assert appended is not None
        assert appended.text == "appended by another process"

        with pytest.raises(ValueError, match="journal"):
            vault.add_memory("tick marker for burst 5", "shared", "x")
        vault.journal("tick marker for burst 5", "shared")
        vault.add_directive("Answer in Thai", "shared")
        assert [line.text for line in vault.read_journal("shared")] == ["user: tick marker for burst 5"]
        assert [rule.text for rule in vault.directives(scope="shared")] == ["Answer in Thai"]


def test_a_weight_that_nobody_gave_is_null(msp: MSP) -> None:
    with msp.account("User01").sandbox() as sandbox:
        sandbox.turn("user", "ฝนตก")
    with msp.account("User01").sandbox() as sandbox:
        sandbox.turn("user", "Grandma died", salience=0.95)

    plain, grave = msp.load_master_state("User01").episodic

    assert (plain["RI_global"], grave["RI_global"]) == (None, 0.95)


def test_an_original_is_erased_with_its_memory(msp: MSP, root: Path) -> None:
    fact = {"id": "f1", "statement": "Her sister Malee lives in Nan", "why": "เธอเล่าเอง"}
    msp.save_master_state("User01", msp.merge({"semantic": {"facts": [fact]}, "version": 1}))
    account = msp.account("User01")
    (memory,) = account.memories(kind="fact")
    assert memory.data["original"] == fact

    account.redact(memory.id, reason="she asked for it")

    assert msp.load_master_state("User01").semantic["facts"] == []
    assert not [
        path for path in root.rglob("*.jsonl") if "Malee" in path.read_text() or "เธอเล่า" in path.read_text()
    ]


def test_a_secret_in_an_original_does_not_pass(msp: MSP, root: Path) -> None:
    sandbox = msp.create_sandbox("User01", "Sandbox")
    noise = {"description": "rain", "wifi": {"password": "hunter2secret9"}}
    fact = {"content": "likes tea", "password": "hunter2secret9", "confidence": 0.9}
    verdicts = msp.write_to_session_buffer(sandbox, {"sensory": [noise], "semantic_updates": [fact]})
    msp.consolidate_session(sandbox)

    assert [verdict.check for verdict in verdicts] == ["secret", None]
    assert not [path for path in root.rglob("*") if path.is_file() and b"hunter2secret9" in path.read_bytes()]


def test_a_master_state_answers_to_the_names_of_the_schema_too(msp: MSP) -> None:
    state = msp.load_master_state("User01")

    assert state.semantic_memory is state.semantic is state["semantic_memory"] is state["semantic"]
    assert (state.user_id, state.timestamp, state.metadata["total_episodes"]) == ("User01", None, 0)
    assert msp.merge({"version": 1}).episodic == []
    with pytest.raises(AttributeError):
        state.moods  # noqa: B018


def test_parts_of_a_buffer_that_are_null_are_parts_that_are_not_there(msp: MSP) -> None:
    sandbox = msp.create_sandbox("User01", "Sandbox")
    nothing = {"episodes": None, "semantic_updates": None, "state_changes": None, "gks_data": None}

    assert msp.write_to_session_buffer(sandbox, {**nothing, "core_updates": None}) == []
    assert msp.apply_consolidation_rules(nothing, {}).episodes == []
    assert len(
        msp.merge_into_master({"version": 3}, {"episodes": None, "knowledge": ["x"]}).semantic["facts"]
    )


def test_an_episode_may_be_called_by_what_uuid_gives(msp: MSP) -> None:
    sandbox, id_ = msp.create_sandbox("User01", "Sandbox"), uuid4()
    msp.write_to_session_buffer(sandbox, {"episode": {"episode_id": id_, "turn_1": {"text": "สวัสดี EVA"}}})

    [episode] = msp.consolidate_session(sandbox).episodic

    assert episode["episode_id"] == str(id_)


ODD: list[Any] = [
    *(None, 3, -1, True, float("nan"), "", "x" * 5000, "a\0b", "\x1b[31m", "\ud800", "../..", b"x", object()),
    *([], [None], [b"x"], {"a": 1}, {"a": b"x"}),
]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: f"{odd!r:.12}".split(" at ")[0])
def test_no_function_of_the_documents_answers_odd_input_with_an_error_that_is_not_ours(
    msp: MSP, tmp_path: Path, odd: Any
) -> None:
    sandbox = msp.create_sandbox("User01", "Sandbox")
    vault = MemoryVault(tmp_path / "vault.jsonl")
    core = MemoryCore(msp.account("User01"))
    entry = core.process_memory("I moved to Nan")
    parts = ("episode", "new_episodes", "semantic_candidates", "sensory_candidates", "state_deltas")
    calls: list[Callable[[], object]] = [
        *(partial(msp.write_to_session_buffer, sandbox, {part: odd}) for part in parts),
        *(partial(msp.write_to_session_buffer, sandbox, {part: [odd]}) for part in parts),
        *(partial(msp.apply_consolidation_rules, {part: odd}, {}) for part in (*parts, "gks", "core")),
        *(partial(msp.save_master_state, "User02", {"version": 1, part: odd}) for part in ("core", "states")),
        *(
            partial(msp.merge_into_master, {}, {part: odd})
            for part in ("episodes", "knowledge", "gks_updates")
        ),
        *(partial(call, odd) for call in (msp.load_master_state, msp.merge, msp.load_sandbox, check_pii)),
        *(partial(call, odd, odd) for call in (msp.merge_into_master, msp.update_core, msp.update_states)),
        partial(msp.write_episode, sandbox, {"turn_1": odd, "RI_global": odd, "crosslinks": odd}),
        partial(msp.update_state, sandbox, odd, odd),
        *(partial(call, odd) for call in (vault.recall, vault.get, vault.bulk_add, vault.search_memories)),
        *(partial(call, odd) for call in (vault.journal, vault.delete_memory, VaultMemory.from_dict)),
        partial(vault.add_memory, odd, "shared", "x"),
        partial(vault.add_memory, "a text", odd, odd, odd, odd),
        partial(VaultMemory.from_dict, {"text": "x", "tags": odd, "version": odd}),
        *(partial(call, vault, odd) for call in (flush_proposed, vault_tool, build_memory_block)),
        partial(vault_tool, vault, "add", text=odd),
        partial(core.process_memory, odd),
        partial(core.process_memory, "a text", odd, odd),
        partial(core.retrieve_memories, "Nan", odd, odd, odd),
        partial(core.update_memory, entry.id, {"metadata": odd}),
        partial(core.update_memory, entry.id, {"tags": odd}),
        partial(core.provide_feedback, entry.id, odd),
        partial(core.provide_feedback, entry.id, None, odd),
        *(partial(MemoryEntry, "id", "text", **{n: odd}) for n in ("embedding", "metadata", "tags")),
        *(
            partial(MemoryAssembly, "id", **{n: odd})
            for n in ("memory_ids", "merged_from", "activation_count")
        ),
        *(partial(kind.from_dict, odd) for kind in (MemoryEntry, MemoryAssembly)),
    ]
    for call in calls:
        with suppress(OctavoError):
            call()
    vault.close()
    assert not msp.account("User01").check().problems
