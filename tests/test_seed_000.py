"""Seed 000, MSP memory versioning: its example flow, its behaviours by name, and its two JSON examples."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.structs import replace

import octavo
from octavo.documents import MSP
from octavo.documents.schemas import schema
from octavo.domain.policy import KindPolicies, Policy, SandboxPolicy
from octavo.errors import Immutable, Refused, VersionConflict

USER = "User01"

MASTER: dict[str, Any] = {
    "version": 42,
    "timestamp": "2025-12-17T09:30:00Z",
    "user_id": "User01",
    "episodic_memory": [
        {
            "episode_id": "ep_001",
            "session_id": "sandbox_123",
            "timestamp": "2025-12-17T09:00:00Z",
            "turn_1": {"speaker": "user", "text": "สวัสดี EVA"},
            "turn_2": {"speaker": "eva", "text": "สวัสดีค่ะ"},
            "RI_global": 0.85,
            "encoding_level": "L2_standard",
        }
    ],
    "semantic_memory": {
        "facts": [{"type": "fact", "content": "User likes coffee", "confidence": 0.9}],
        "concepts": [{"concept": "กาแฟ", "definition": "เครื่องดื่ม"}],
        "relationships": [{"subject": "user", "predicate": "likes", "object": "กาแฟ"}],
    },
    "core_memory": {
        "identity": {"name": "EVA"},
        "values": ["ซื่อสัตย์", "kindness"],
        "worldview": {"people": "are good"},
    },
    "states": {
        "ire_state": {"reflex_vector": {"calm": 0.8}},
        "ehm_state": {"eva_matrix_9d": [0.1, 0.2]},
        "rms_state": {"MAS": 1},
        "ri_state": {"RI": 0.5},
        "qualia_state": {"intensity": 0.5},
    },
    "metadata": {"total_episodes": 1234, "total_sessions": 56, "last_consolidation": "2025-12-17T09:30:00Z"},
}
BUFFER: dict[str, Any] = {
    "sandbox_id": "sandbox_456",
    "created_at": "2025-12-17T10:00:00Z",
    "parent_version": 42,
    "new_episodes": [
        {
            "episode_id": "ep_temp_001",
            "turn_1": {"speaker": "user", "text": "ชอบกาแฟ"},
            "turn_2": {"speaker": "eva", "text": "จำไว้แล้วค่ะ"},
        }
    ],
    "semantic_candidates": [{"type": "fact", "content": "User likes coffee", "confidence": 0.9}],
    "state_deltas": {
        "ire_state": {"reflex_vector": {"calm": 0.4}},
        "ehm_state": {"eva_matrix_9d": [0.3, 0.4]},
    },
    "metadata": {"turn_count": 5, "duration_seconds": 300},
}


class Clock:
    """The seed's day, told by hand."""

    def __init__(self) -> None:
        self.now = datetime(2025, 12, 17, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def at(self, hour: int, minute: int) -> None:
        self.now = self.now.replace(hour=hour, minute=minute)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def msp(root: Path, clock: Clock) -> Iterator[MSP]:
    with MSP(root, USER, clock=clock) as found:
        yield found


def episode(number: int, **more: Any) -> dict[str, Any]:
    return {
        "episode_id": f"ep_{number:03d}",
        "turn_1": {"speaker": "user", "text": f"เรื่องที่ {number}"},
        "turn_2": {"speaker": "eva", "text": f"story {number}"},
        **more,
    }


def begin(msp: MSP, episodes: int) -> None:
    """Version 1: a master state with this many episodes."""
    state = msp.load_master_state(USER)
    state["episodic_memory"] = [episode(n) for n in range(1, episodes + 1)]
    state["states"] = {"ire_state": {"calm": 0.5}}
    msp.save_master_state(USER, state)


def talk(msp: MSP, *numbers: int, name: str = "Sandbox") -> str:
    sandbox = msp.create_sandbox(USER, name)
    for number in numbers:
        msp.write_episode(sandbox, episode(number))
    return sandbox


def test_the_example_flow_of_the_seed(msp: MSP, clock: Clock) -> None:
    begin(msp, 100)
    assert (msp.get_master_version(USER), len(msp.load_master_state(USER).episodic)) == (1, 100)

    clock.at(9, 30)
    a = msp.create_sandbox("Sandbox A")
    assert msp.get_session_buffer(a)["new_episodes"] == []
    clock.at(9, 35)
    for number in (101, 102, 103):
        msp.write_episode(a, episode(number))
    assert [e["episode_id"] for e in msp.get_session_buffer(a)["new_episodes"]] == [
        "ep_101",
        "ep_102",
        "ep_103",
    ]
    assert len(msp.load_master_state(USER).episodic) == 100
    clock.at(10, 0)
    v2 = msp.consolidate_session(a)
    assert (v2.version, len(v2.episodic), v2["timestamp"]) == (2, 103, "2025-12-17T10:00:00Z")
    assert msp.account(USER).sandboxes() == []

    clock.at(10, 30)
    b = msp.create_sandbox("Sandbox B")
    assert msp.load_sandbox(b).master_ref == v2
    clock.at(10, 35)
    for number in (104, 105):
        msp.write_episode(b, episode(number))
    assert msp.load_master_state(USER) == v2
    clock.at(11, 0)
    v3 = msp.consolidate_session(b)
    assert (v3.version, len(v3.episodic)) == (3, 105)
    assert [e["episode_id"] for e in v3.episodic] == [f"ep_{n:03d}" for n in range(1, 106)]
    assert v3["metadata"] == {
        "total_episodes": 105,
        "total_sessions": 2,
        "last_consolidation": "2025-12-17T11:00:00Z",
    }


class TestVersioning:
    """BEHAVIOURS.md 1.3, line by line."""

    def test_master_still_reads_v1_with_100_while_a_sandbox_buffers_3(self, msp: MSP) -> None:
        begin(msp, 100)
        talk(msp, 101, 102, 103)

        state = msp.load_master_state(USER)
        assert (state.version, len(state.episodic)) == (1, 100)

    def test_an_archived_sandbox_makes_v2_with_103_and_its_buffer_is_gone(self, msp: MSP, root: Path) -> None:
        begin(msp, 100)
        sandbox = talk(msp, 101, 102, 103)

        state = msp.consolidate_session(sandbox)

        assert (state.version, len(state.episodic)) == (2, 103)
        assert list(root.rglob("buffers/*.jsonl")) == []

    def test_a_sandbox_on_v2_has_parent_version_2_and_a_view_of_103_episodes(self, msp: MSP) -> None:
        begin(msp, 100)
        msp.consolidate_session(talk(msp, 101, 102, 103))

        loaded = msp.load_sandbox(msp.create_sandbox(USER, "Sandbox B"))

        assert loaded.session_buffer["parent_version"] == loaded.parent_version == 2
        assert len(loaded.master_ref.episodic) == 103

    def test_a_discarded_sandbox_leaves_version_and_content_unchanged(self, msp: MSP) -> None:
        begin(msp, 3)
        before = msp.load_master_state(USER)

        msp.delete_sandbox(talk(msp, 4, 5))

        assert msp.load_master_state(USER) == before

    def test_consolidating_one_episode_on_v1_returns_2_and_version_1_is_the_backup(self, msp: MSP) -> None:
        msp.save_master_state(USER, msp.merge({"core": {"identity": {"name": "EVA"}}, "version": 1}))
        before = msp.load_master_state(USER)

        state = msp.consolidate_session(talk(msp, 1))

        assert (state.version, len(state.episodic)) == (2, 1)
        assert [commit.version for commit in msp.account(USER).versions()] == [1, 2]
        assert msp.load_master_state(USER, version=1) == before

    def test_a_pulse_snapshot_appears_in_the_episodes_msp_metadata(self, msp: MSP) -> None:
        sandbox = msp.create_sandbox(USER, "Sandbox")
        msp.write_episode(sandbox, episode(1, pulse_snapshot={"bpm": 62}))
        msp.write_episode(sandbox, episode(2), pulse_snapshot={"bpm": 80})

        first, second = msp.consolidate_session(sandbox).episodic

        assert (first["msp_metadata"]["pulse_snapshot"], second["msp_metadata"]["pulse_snapshot"]) == (
            {"bpm": 62},
            {"bpm": 80},
        )
        assert (first["msp_metadata"]["written_by"], first["msp_metadata"]["session_id"]) == ("MSP", sandbox)

    def test_only_a_candidate_strictly_above_0_70_is_merged(self, msp: MSP) -> None:
        sandbox = msp.create_sandbox(USER, "Sandbox")
        candidates = [
            {"type": "fact", "content": "ชอบชา", "confidence": 0.7},
            {"type": "fact", "content": "likes coffee", "confidence": 0.71},
        ]
        msp.write_to_session_buffer(sandbox, {"semantic_candidates": candidates})

        state = msp.consolidate_session(sandbox)

        assert state.semantic["facts"] == candidates[1:]
        assert state.consolidation is not None
        assert [(r.check, r.text) for r in state.consolidation.refused] == [("confidence", "ชอบชา")]

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_of_two_entries_for_one_concept_the_surer_remains_and_the_other_is_recorded(
        self, msp: MSP, order: tuple[int, int]
    ) -> None:
        entries = [
            {"type": "concept", "concept": "coffee", "content": "เครื่องดื่มจากเมล็ดคั่ว", "confidence": 0.95},
            {"type": "concept", "concept": "coffee", "content": "a hot drink", "confidence": 0.8},
        ]
        sandbox = msp.create_sandbox(USER, "Sandbox")
        msp.write_to_session_buffer(sandbox, {"semantic_candidates": [entries[n] for n in order]})

        state = msp.consolidate_session(sandbox)

        assert state.semantic["concepts"] == entries[:1]
        assert state.consolidation is not None
        assert [(m.text, m.confidence) for m in state.consolidation.merged] == [("a hot drink", 0.8)]

    def test_the_later_of_two_state_deltas_wins_and_the_earlier_is_in_history(self, msp: MSP) -> None:
        begin(msp, 1)
        sandbox = msp.create_sandbox(USER, "Sandbox")
        msp.update_state(sandbox, "ire_state", {"calm": 0.1})
        msp.update_state(sandbox, "ire_state", {"สงบ": 0.9})

        assert msp.consolidate_session(sandbox).states == {"ire_state": {"สงบ": 0.9}}

        account = msp.account(USER)
        (register,) = account.memories(topic="ire_state")
        history = [revision.memory.data for revision in account.history(register.id)]
        assert history == [{"calm": 0.5}, {"calm": 0.1}, {"สงบ": 0.9}]

    def test_a_low_confidence_core_update_leaves_the_core_unchanged_and_is_logged(self, msp: MSP) -> None:
        msp.save_master_state(USER, MASTER)
        before = msp.load_master_state(USER).core
        sandbox = msp.create_sandbox(USER, "Sandbox")
        update = {"type": "identity", "key": "name", "content": "อีวา", "confidence": 0.4}
        msp.write_to_session_buffer(sandbox, {"semantic_candidates": [update]})

        state = msp.consolidate_session(sandbox)

        assert state.core == before
        assert [(r.check, r.text) for r in msp.account(USER).refusals()] == [("confidence", "name: อีวา")]

    def test_a_sure_core_update_changes_the_core_and_keeps_the_old_value_in_history(self, msp: MSP) -> None:
        msp.save_master_state(USER, MASTER)
        sandbox = msp.create_sandbox(USER, "Sandbox")
        update = {"type": "identity", "key": "name", "content": "อีวา", "confidence": 0.95}
        msp.write_to_session_buffer(sandbox, {"semantic_candidates": [update]})

        assert msp.consolidate_session(sandbox).core["identity"] == {"name": "อีวา"}
        assert msp.load_master_state(USER, version=1).core["identity"] == {"name": "EVA"}

    def test_an_agents_core_update_waits_for_a_person(self, root: Path) -> None:
        with MSP(root, USER, actor="agent:eva") as msp:
            sandbox = msp.create_sandbox(USER, "Sandbox")
            msp.write_to_session_buffer(sandbox, {"core_updates": {"identity": {"name": "EVA"}}})
            state = msp.consolidate_session(sandbox)

        assert state.core["identity"] == {}
        assert state.consolidation is not None
        assert [p.memory.text for p in state.consolidation.proposals] == ["name: EVA"]

    def test_an_episode_in_master_cannot_be_changed_by_anything(self, msp: MSP) -> None:
        begin(msp, 2)
        changed = episode(1, RI_global=0.9)
        state = msp.load_master_state(USER)
        state["episodic_memory"][0] = changed
        sandbox = msp.create_sandbox(USER, "Sandbox")

        with pytest.raises(Immutable, match="ep_001"):
            msp.save_master_state(USER, state)
        with pytest.raises(Immutable, match="ep_001"):
            msp.write_episode(sandbox, changed)
        assert not msp.account(USER).revise("ep_001", text="อื่น")
        assert msp.load_master_state(USER).episodic == [episode(1), episode(2)]

    def test_a_temporary_id_becomes_permanent_and_crosslinks_to_it_resolve(self, msp: MSP) -> None:
        sandbox = msp.create_sandbox(USER, "Sandbox")
        kept = msp.write_episode(sandbox, {**episode(1), "episode_id": "ep_temp_001"})
        link = {"causal": ["ep_temp_001"], "temporal": "ep_temp_001"}
        msp.write_episode(sandbox, {**episode(2), "episode_id": "ep_temp_002", "crosslinks": link})

        first, second = msp.consolidate_session(sandbox).episodic

        assert first["episode_id"] == kept != "ep_temp_001"
        assert second["crosslinks"] == {"causal": [kept], "temporal": kept}
        assert msp.account(USER).get(second["episode_id"]).linked("causal") == (kept,)  # type: ignore[union-attr]

    def test_two_sandboxes_from_v1_both_archive_and_clashes_are_reported(self, msp: MSP) -> None:
        begin(msp, 1)
        a, b = talk(msp, 2), talk(msp, 3)
        msp.update_state(a, "ire_state", {"of": "A"})
        msp.update_state(b, "ire_state", {"of": "B"})

        msp.consolidate_session(a)
        state = msp.consolidate_session(b)

        assert (state.version, [e["episode_id"] for e in state.episodic]) == (
            3,
            ["ep_001", "ep_002", "ep_003"],
        )
        assert state.states == {"ire_state": {"of": "B"}}
        assert state.consolidation is not None
        assert [clash.parent_rev for clash in state.consolidation.clashes] == [1]
        assert msp.load_master_state(USER, version=2).states == {"ire_state": {"of": "A"}}

    def test_a_strict_sandbox_refuses_with_a_conflict(self, msp: MSP) -> None:
        begin(msp, 1)
        a = talk(msp, 2)
        b = msp.create_sandbox(USER, "Sandbox B", strict=True)
        msp.write_episode(b, episode(3))
        msp.consolidate_session(a)

        with pytest.raises(VersionConflict):
            msp.consolidate_session(b)
        assert len(msp.get_session_buffer(b)["new_episodes"]) == 1

    def test_a_consolidation_called_again_appends_nothing_twice(self, msp: MSP) -> None:
        begin(msp, 1)
        sandbox = talk(msp, 2)

        first = msp.consolidate_session(sandbox)

        assert msp.consolidate_session(sandbox) == first
        assert msp.get_master_version(USER) == 2

    def test_a_corrupt_master_is_an_error_and_never_an_empty_one(self, msp: MSP, root: Path) -> None:
        begin(msp, 3)
        msp.close()
        (version,) = root.rglob("ledger/*1.jsonl")
        version.write_bytes(version.read_bytes()[:-30])
        for derived in root.rglob("index/*"):
            derived.unlink()

        with pytest.raises(octavo.OctavoError, match=r"ledger/0*1\.jsonl"):
            msp.load_master_state(USER)

    def test_a_killed_process_leaves_the_sandbox_and_its_episodes(self, msp: MSP, root: Path) -> None:
        sandbox = talk(msp, 1, 2)
        msp.close()  # all that a killed process holds is a lock, and the system takes that

        with MSP(root) as later:
            assert len(later.load_session_buffer(sandbox)["new_episodes"]) == 2
            assert later.consolidate_session(sandbox).version == 1

    def test_an_older_version_can_be_read_and_rollback_makes_a_new_one(self, msp: MSP) -> None:
        begin(msp, 2)
        msp.consolidate_session(talk(msp, 3))
        old = msp.load_master_state(USER, version=1)

        assert msp.account(USER).restore(1) == 3

        now = msp.load_master_state(USER)
        assert (old.version, now.version) == (1, 3)
        assert now.episodic == old.episodic == [episode(1), episode(2)]


class TestSessions:
    """BEHAVIOURS.md 1.3, the lines about limit and levels, with their policy on."""

    def test_a_31st_episode_is_refused(self, root: Path) -> None:
        policy = Policy(sandbox=SandboxPolicy(max_episodes=30))
        with MSP(root, USER, policy=policy) as msp:
            sandbox = talk(msp, *range(1, 31))
            with pytest.raises(Refused, match="the limit is 30"):
                msp.write_episode(sandbox, episode(31))
            assert len(msp.consolidate_session(sandbox).episodic) == 30

    def test_the_limit_is_off_unless_asked_for(self, msp: MSP) -> None:
        assert len(msp.get_session_buffer(talk(msp, *range(1, 32)))["new_episodes"]) == 31

    @pytest.mark.parametrize(
        ("level", "kept"),
        [
            ("L1", {"state_snapshot"}),
            ("L2", {"state_snapshot", "summary"}),
            ("L3", {"state_snapshot", "summary", "turn_1", "turn_2", "situation"}),
        ],
    )
    def test_a_write_level_decides_what_is_stored(self, root: Path, level: str, kept: set[str]) -> None:
        more = {"state_snapshot": {"joy": 1}, "summary": "ทักทาย", "situation": "เช้า"}
        policy = Policy(sandbox=SandboxPolicy(write_levels=True))
        with MSP(root, USER, policy=policy) as msp:
            sandbox = msp.create_sandbox(USER, "Sandbox")
            msp.write_episode(sandbox, episode(1, **more), ri_level=level)
            (stored,) = msp.consolidate_session(sandbox).episodic

        assert set(stored) & {"turn_1", "turn_2", *more} == kept
        assert {"episode_id", "timestamp"} <= set(stored)


class TestExamples:
    """The seed's two JSON examples."""

    @pytest.mark.parametrize(("name", "example"), [("master_state", MASTER), ("session_buffer", BUFFER)])
    def test_an_example_validates(self, name: str, example: dict[str, Any]) -> None:
        jsonschema.validate(example, schema(name))

    @pytest.mark.parametrize("name", ["master_state", "session_buffer", "metadata"])
    def test_the_shipped_schema_is_a_schema(self, name: str) -> None:
        jsonschema.Draft202012Validator.check_schema(schema(name))

    @pytest.mark.parametrize(
        ("name", "path", "wrong"),
        [
            ("master_state", ("version",), "42"),
            ("master_state", ("states",), []),
            ("master_state", ("episodic_memory",), {}),
            ("session_buffer", ("parent_version",), -1),
            ("session_buffer", ("semantic_candidates",), [{"confidence": 2}]),
        ],
    )
    def test_a_wrong_document_does_not_validate(self, name: str, path: tuple[str], wrong: Any) -> None:
        example = copy.deepcopy({"master_state": MASTER, "session_buffer": BUFFER}[name])
        example[path[0]] = wrong

        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(example, schema(name))

    def test_the_master_state_is_saved_and_loaded_as_it_is(self, msp: MSP) -> None:
        before = copy.deepcopy(MASTER)

        assert msp.save_master_state(USER, MASTER) == 1
        state = msp.load_master_state(USER)

        counted = ("version", "timestamp", "metadata")  # what the account itself counts
        assert {k: v for k, v in state.items() if k in MASTER and k not in counted} == {
            k: v for k, v in MASTER.items() if k not in counted
        }
        assert before == MASTER
        jsonschema.validate(json.loads(json.dumps(state)), schema("master_state"))

    def test_the_session_buffer_is_written_and_read_as_it_is(self, msp: MSP) -> None:
        before = copy.deepcopy(BUFFER)
        sandbox = msp.create_sandbox(USER, "Sandbox 10:00")

        msp.write_to_session_buffer(sandbox, BUFFER)
        found = msp.get_session_buffer(sandbox)

        counted = ("sandbox_id", "created_at", "parent_version", "metadata")
        assert {k: v for k, v in found.items() if k not in counted} == {
            k: v for k, v in BUFFER.items() if k not in counted
        }
        assert before == BUFFER
        jsonschema.validate(found, schema("session_buffer"))


def test_the_seeds_steps_run_as_written(root: Path) -> None:
    """Sections 1 to 5 of the versioning flow, step 4 by hand."""
    with MSP(root) as msp:
        msp.save_master_state("accout/User01/core/", MASTER)
        master_state = msp.load_master_state("accout/User01/core/")
        sandbox_id = msp.create_sandbox("Sandbox 09:30")
        msp.write_to_session_buffer(
            sandbox_id,
            {
                "episode": {
                    "episode_id": "a1b2",
                    "turn_1": {"speaker": "user", "text": "สวัสดี EVA"},
                    "turn_2": {"speaker": "eva", "text": "สวัสดีค่ะ"},
                    "RI_global": 0.7,
                    "rms_annotation": {"MAS": 1},
                },
                "state_updates": {"ire_state": {"calm": 1}, "ehm_state": {"eva_matrix_9d": []}},
                "semantic_updates": [{"type": "fact", "content": "ชอบแมว", "confidence": 0.9}],
                "sensory": [{"modality": "sound", "description": "ฝนตก"}],
                "core_updates": {"values": ["ความกล้า"]},
            },
        )

        buffer = msp.load_session_buffer(sandbox_id)
        consolidated = msp.apply_consolidation_rules(buffer, master_state)
        master_state_v2 = msp.merge(
            {
                "episodic": master_state.episodic + consolidated.episodes,
                "semantic": master_state.semantic + consolidated.knowledge,
                "sensory": master_state.sensory + consolidated.sensory,
                "core": msp.update_core(master_state.core, consolidated.core_updates),
                "states": msp.update_states(master_state.states, consolidated.state_changes),
                "version": master_state.version + 1,
                "timestamp": datetime.now(UTC) + timedelta(seconds=1),
            }
        )
        msp.save_master_state("accout/User01/core/", master_state_v2)
        msp.delete_session_buffer(sandbox_id)

        new_sandbox_id = msp.create_sandbox("Sandbox 10:15")
        found = msp.load_master_state("accout/User01/core/")
        assert msp.load_sandbox(new_sandbox_id).master_ref == found
        assert found.version == 2
        assert [e["episode_id"] for e in found.episodic] == ["ep_001", "a1b2"]
        assert [f["content"] for f in found.semantic["facts"]] == ["User likes coffee", "ชอบแมว"]
        assert found.core["values"] == ["ซื่อสัตย์", "kindness", "ความกล้า"]
        assert found.states["ire_state"] == {"calm": 1}
        assert found.states["qualia_state"] == {"intensity": 0.5}
        assert found.sensory == [{"modality": "sound", "description": "ฝนตก"}]


def test_the_threshold_is_a_number_of_the_policy(root: Path) -> None:
    kinds = KindPolicies()
    policy = Policy(kinds=replace(kinds, fact=replace(kinds.fact, min_confidence=0.35)))
    with MSP(root, USER, policy=policy) as msp:
        sandbox = msp.create_sandbox(USER, "Sandbox")
        msp.write_to_session_buffer(sandbox, {"semantic_updates": [{"content": "ชอบชา", "confidence": 0.4}]})
        assert msp.consolidate_session(sandbox).semantic["facts"] == [{"content": "ชอบชา", "confidence": 0.4}]
