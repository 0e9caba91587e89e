"""The MSP: every function of seed 000's API, its spellings, and what it does where the seed is silent."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import octavo.documents
from octavo.documents import MSP, MasterState
from octavo.errors import BadInput, Immutable, NotFound, Refused, SandboxBusy, SandboxClosed, VersionConflict


@pytest.fixture
def msp(root: Path) -> Iterator[MSP]:
    with MSP(root) as found:
        yield found


def episode(number: int) -> dict[str, Any]:
    return {"episode_id": f"ep_{number}", "turn_1": {"speaker": "user", "text": f"เรื่องที่ {number}"}}


def test_every_function_of_the_api_design_is_called_as_written(msp: MSP) -> None:
    state = msp.load_master_state("User01")
    state["episodic_memory"] = [episode(1)]
    msp.save_master_state("User01", state)
    assert msp.get_master_version("User01") == 1

    sandbox_id = msp.create_sandbox("User01", "Sandbox 09:30")
    assert msp.load_sandbox(sandbox_id).name == "Sandbox 09:30"
    msp.write_episode(sandbox_id, episode(2))
    msp.update_state(sandbox_id, "ire_state", {"calm": 0.8})
    buffer = msp.get_session_buffer(sandbox_id)
    master = msp.load_master_state("User01")

    consolidated = msp.apply_consolidation_rules(buffer, master)
    assert msp.merge_into_master(master, consolidated).version == 2
    assert msp.consolidate_session(sandbox_id).version == 2

    other = msp.create_sandbox("User01", "Sandbox 10:15")
    msp.delete_sandbox(other)
    with pytest.raises(NotFound):
        msp.load_sandbox(other)


def test_it_is_found_where_users_look_for_it() -> None:
    assert octavo.documents.MSP is MSP


@pytest.mark.parametrize(
    "name", ["User01", "accout/User01/core/", "account/User01/core", "/srv/accout/User01/", "User01/core/"]
)
def test_a_user_is_named_by_id_or_by_path(msp: MSP, name: str) -> None:
    assert msp.load_master_state(name)["user_id"] == "User01"


def test_a_thai_user_is_served_like_any_other(msp: MSP) -> None:
    sandbox = msp.create_sandbox("สมชาย", "เช้านี้")
    msp.write_episode(sandbox, episode(1))

    assert msp.consolidate_session(sandbox)["user_id"] == "สมชาย"


def test_one_instance_serves_several_users(msp: MSP) -> None:
    a, b = msp.create_sandbox("A", "Sandbox"), msp.create_sandbox("B", "Sandbox")
    msp.write_episode(a, episode(1))
    msp.write_episode(b, episode(2))

    assert msp.consolidate_session(b)["user_id"] == "B"
    assert msp.consolidate_session(a)["user_id"] == "A"
    assert [e["episode_id"] for e in msp.load_master_state("B").episodic] == ["ep_2"]


def test_a_name_alone_means_the_instances_user_or_the_last_one_named(root: Path) -> None:
    with MSP(root, "Me") as mine:
        mine.load_master_state("Other")
        assert mine.load_sandbox(mine.create_sandbox("Sandbox")).user_id == "Me"
    with MSP(root) as anybody:
        with pytest.raises(BadInput, match="which user"):
            anybody.create_sandbox("Sandbox")
        anybody.load_master_state("accout/Other/core/")
        assert anybody.load_sandbox(anybody.create_sandbox("Sandbox")).user_id == "Other"


def test_the_actor_is_the_operator_unless_said_otherwise(root: Path) -> None:
    with MSP(root, "A") as one, MSP(root, "B", actor="agent:eva") as other:
        for msp in (one, other):
            sandbox = msp.create_sandbox("Sandbox")
            msp.write_episode(sandbox, episode(1))
            msp.consolidate_session(sandbox)
        assert one.account().versions()[0].actor == "human:operator"
        assert other.account().versions()[0].actor == "agent:eva"


def test_both_spellings_of_the_buffer_are_read_and_the_schemas_is_written(msp: MSP) -> None:
    sandbox = msp.create_sandbox("A", "Sandbox")
    fact = {"type": "fact", "content": "ชอบกาแฟ", "confidence": 0.9}
    other = {"type": "fact", "content": "lives in Chiang Mai", "confidence": 0.8}

    msp.write_to_session_buffer(
        sandbox,
        {"episodes": [episode(1)], "semantic_updates": [fact], "state_changes": {"ire_state": {"a": 1}}},
    )
    msp.write_to_session_buffer(
        sandbox,
        {
            "new_episodes": [episode(2)],
            "semantic_candidates": [other],
            "state_deltas": {"ehm_state": {"b": 2}},
        },
    )

    buffer = msp.get_session_buffer(sandbox)
    assert buffer["new_episodes"] == [episode(1), episode(2)]
    assert buffer["semantic_candidates"] == [fact, other]
    assert buffer["state_deltas"] == {"ire_state": {"a": 1}, "ehm_state": {"b": 2}}
    assert not {"episodes", "semantic_updates", "state_changes"} & set(buffer)


def test_one_part_under_two_names_is_refused(msp: MSP) -> None:
    sandbox = msp.create_sandbox("A", "Sandbox")

    with pytest.raises(BadInput, match="new_episodes under two names"):
        msp.write_to_session_buffer(sandbox, {"episodes": [], "new_episodes": []})


def test_a_part_that_the_buffer_has_no_place_for_is_refused_before_anything_is_written(msp: MSP) -> None:
    sandbox = msp.create_sandbox("A", "Sandbox")

    with pytest.raises(BadInput, match="no place for"):
        msp.write_to_session_buffer(sandbox, {"episode": episode(1), "moods": []})
    with pytest.raises(BadInput, match="not a list"):
        msp.write_to_session_buffer(sandbox, {"episodes": {"a": 1}})
    with pytest.raises(BadInput, match="not an object"):
        msp.write_to_session_buffer(sandbox, {"state_deltas": {"ire_state": 1}, "semantic_updates": ["ชา"]})
    assert msp.get_session_buffer(sandbox)["new_episodes"] == []
    assert msp.get_session_buffer(sandbox)["semantic_candidates"] == []


def test_all_seven_stores_go_through_a_sandbox(msp: MSP) -> None:
    sandbox = msp.create_sandbox("A", "Sandbox")
    sensory = [{"sensory_id": "s1", "modality": "sound", "description": "ฝนตก", "level": 0.3}]
    profile = {"city": "เชียงใหม่", "likes": ["กาแฟ", "แมว"]}
    gks = {"Master": {"rule": "first"}, "nodes": [{"id": "n1", "label": "กาแฟ"}]}
    core = {"identity": {"name": "EVA", "traits": {"kind": True}}, "values": ["ซื่อสัตย์"], "worldview": {"a": 1}}
    knowledge = [
        {"type": "concept", "concept": "กาแฟ", "content": "เครื่องดื่ม", "confidence": 0.9},
        {
            "type": "relationship",
            "subject": "user",
            "predicate": "likes",
            "object": "กาแฟ",
            "confidence": 0.9,
        },
        {"type": "fact", "content": "ชอบตื่นเช้า", "confidence": 0.9},
    ]
    msp.write_to_session_buffer(
        sandbox,
        {
            "episode": episode(1),
            "semantic_updates": knowledge,
            "sensory": sensory,
            "core_updates": core,
            "user_profile": profile,
            "gks_data": gks,
            "state_updates": {"ire_state": {"calm": 0.8}},
        },
    )
    before = msp.get_session_buffer(sandbox)

    state = msp.consolidate_session(sandbox)

    assert (before["sensory_candidates"], before["core_updates"], before["gks_data"]) == (sensory, core, gks)
    assert state.semantic == {
        "facts": knowledge[2:],
        "concepts": knowledge[:1],
        "relationships": knowledge[1:2],
    }
    assert (state.sensory, state.core, state.profile, state.gks) == (sensory, core, profile, gks)
    assert state["metadata"]["total_episodes"] == 1
    account = msp.account("A")
    concept = account.memories(topic="concept/กาแฟ")[0]
    assert account.memories(category="relationship")[0].linked("about") == (concept.id,)


def test_nothing_the_caller_hands_in_is_changed(msp: MSP) -> None:
    written = {
        "episode": {"turn_1": {"text": "หิว"}},
        "semantic_updates": [{"content": "ชา"}],
        "core_updates": {"values": ["ก"]},
    }
    state = msp.load_master_state("A")
    state["episodic_memory"] = [{"turn_1": {"text": "ไม่มีรหัส"}}]
    before = copy.deepcopy((written, dict(state)))
    sandbox = msp.create_sandbox("A", "Sandbox")

    msp.write_to_session_buffer(sandbox, written)
    msp.write_episode(sandbox, written["episode"], pulse_snapshot={"bpm": 60})  # type: ignore[arg-type]
    msp.apply_consolidation_rules(written, state)
    msp.merge_into_master(state, msp.apply_consolidation_rules(written, state))
    msp.merge(state)
    msp.update_core({"values": ["ข"]}, written["core_updates"])  # type: ignore[arg-type]
    msp.save_master_state("A", state)

    assert (written, dict(state)) == before


def test_what_is_loaded_is_the_callers_own(msp: MSP) -> None:
    state = msp.load_master_state("A")
    state["episodic_memory"] = [episode(1)]
    msp.save_master_state("A", state)

    loaded = msp.load_master_state("A")
    loaded["episodic_memory"].clear()
    loaded["states"]["ire_state"] = {}

    assert len(msp.load_master_state("A").episodic) == 1


def test_saving_what_was_loaded_makes_no_version(msp: MSP) -> None:
    state = msp.load_master_state("A")
    state |= {"episodic_memory": [episode(1)], "mood": "ดี", "user_profile": {"name": "สมชาย"}}
    assert msp.save_master_state("A", state) == 1

    assert msp.save_master_state("A", msp.load_master_state("A")) == 1
    assert msp.save_master_state("A", json.loads(json.dumps(msp.load_master_state("A")))) == 1


def test_unknown_fields_survive_everywhere(msp: MSP) -> None:
    state = msp.load_master_state("A")
    state["mood"] = {"วันนี้": "ดี"}
    state["nothing"] = None
    state["metadata"]["note"] = "kept"
    state["episodic_memory"] = [{**episode(1), "หมายเหตุ": [1, {"a": None}]}]
    state["semantic_memory"] |= {"facts": [{"content": "ชา", "why": "เพราะ"}], "graph": {"edges": 3}}
    state["core_memory"] |= {"charter": "v1", "values": [{"value": "ซื่อสัตย์", "weight": 2}]}
    wanted = copy.deepcopy(dict(state))

    msp.save_master_state("A", state)
    found = msp.load_master_state("A")

    assert found["metadata"]["note"] == "kept"
    counted = ("version", "timestamp", "metadata")
    assert {k: v for k, v in found.items() if k not in counted} == {
        k: v for k, v in wanted.items() if k not in counted
    }


def test_a_save_is_one_commit_of_what_differs(msp: MSP) -> None:
    state = msp.load_master_state("A")
    state["semantic_memory"]["facts"] = [
        {"id": "f1", "content": "ชอบชา"},
        {"id": "f2", "content": "has a cat"},
    ]
    state["user_profile"] = {"city": "กรุงเทพ", "pet": "แมว"}
    state["states"] = {"ire_state": {"calm": 1}, "ehm_state": {"x": 1}}
    msp.save_master_state("A", state)

    state = msp.load_master_state("A")
    state["semantic_memory"]["facts"] = [{"id": "f1", "content": "ชอบกาแฟ"}]
    state["user_profile"] = {"city": "เชียงใหม่"}
    state["states"] = {"ire_state": {"calm": 0}}
    assert msp.save_master_state("A", state) == 2

    found = msp.load_master_state("A")
    assert found.semantic["facts"] == [{"id": "f1", "content": "ชอบกาแฟ"}]
    assert (found.profile, found.states) == ({"city": "เชียงใหม่"}, {"ire_state": {"calm": 0}})
    account = msp.account("A")
    (fact,) = account.memories(kind="fact")
    assert [r.memory.text for r in account.history(fact.id)] == ["ชอบชา", "ชอบกาแฟ"]
    assert account.versions()[1].cause == "save master state"


def test_a_section_that_is_left_out_stays_as_it_is(msp: MSP) -> None:
    state = msp.load_master_state("A")
    state |= {"episodic_memory": [episode(1)], "user_profile": {"city": "กรุงเทพ"}}
    msp.save_master_state("A", state)

    msp.save_master_state("A", msp.merge({"states": {"ire_state": {}}, "version": 2}))

    found = msp.load_master_state("A")
    assert (len(found.episodic), found.profile, found.states) == (1, {"city": "กรุงเทพ"}, {"ire_state": {}})


@pytest.mark.parametrize("plain", [False, True])
def test_a_stale_state_is_a_version_conflict(msp: MSP, plain: bool) -> None:
    begun: Any = msp.load_master_state("A")
    begun["episodic_memory"] = [episode(1)]
    msp.save_master_state("A", begun)
    stale: Any = msp.load_master_state("A")
    merged: Any = msp.merge({**stale, "version": 2})
    sandbox = msp.create_sandbox("A", "Sandbox")
    msp.write_episode(sandbox, episode(2))
    msp.consolidate_session(sandbox)

    for state in (stale, merged, {**stale, "version": 9}):
        with pytest.raises(VersionConflict):
            msp.save_master_state(
                "A",
                json.loads(json.dumps(state))
                if plain
                else MasterState.on(getattr(state, "base", None), state),
            )
    assert len(msp.load_master_state("A").episodic) == 2


def test_a_dropped_episode_is_refused(msp: MSP) -> None:
    state = msp.load_master_state("A")
    state["episodic_memory"] = [episode(1), episode(2)]
    msp.save_master_state("A", state)
    state = msp.load_master_state("A")
    state["episodic_memory"].pop()
    state["user_profile"] = {"city": "กรุงเทพ"}

    with pytest.raises(Immutable, match="ep_2"):
        msp.save_master_state("A", state)
    assert msp.load_master_state("A").profile == {}


def test_two_episodes_of_one_id_cannot_be_saved(msp: MSP) -> None:
    state = msp.load_master_state("A")
    state["episodic_memory"] = [episode(1), {**episode(2), "episode_id": "ep_1"}]

    with pytest.raises(Immutable, match="ep_1"):
        msp.save_master_state("A", state)
    assert msp.get_master_version("A") == 0


def test_a_save_that_the_gate_refuses_in_part_writes_nothing(msp: MSP) -> None:
    state = msp.load_master_state("A")
    state["episodic_memory"] = [episode(1)]
    state["user_profile"] = {"door": "password: hunter2secret9"}

    with pytest.raises(Refused, match="secret"):
        msp.save_master_state("A", state)
    assert (msp.get_master_version("A"), msp.load_master_state("A").episodic) == (0, [])


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("version", "1"),
        ("version", None),
        ("episodic_memory", {}),
        ("episodic_memory", ["คำ"]),
        ("semantic_memory", []),
        ("states", {"ire_state": 3}),
        ("gks_data", "x"),
    ],
)
def test_a_state_of_the_wrong_shape_says_where(msp: MSP, field: str, wrong: Any) -> None:
    state = msp.load_master_state("A")
    state[field] = wrong

    with pytest.raises(BadInput):
        msp.save_master_state("A", state)
    assert msp.get_master_version("A") == 0


def test_a_temporary_id_in_a_saved_state_becomes_permanent(msp: MSP) -> None:
    state = msp.load_master_state("A")
    state["episodic_memory"] = [
        {**episode(1), "episode_id": "ep_temp_001"},
        {**episode(2), "crosslinks": {"causal": ["ep_temp_001"]}},
    ]
    msp.save_master_state("A", state)

    first, second = msp.load_master_state("A").episodic

    assert not first["episode_id"].startswith("ep_temp")
    assert second["crosslinks"] == {"causal": [first["episode_id"]]}


def test_the_rules_on_documents_say_what_a_consolidation_then_does(msp: MSP) -> None:
    state = msp.load_master_state("A")
    state["semantic_memory"]["facts"] = [{"content": "User likes coffee", "confidence": 0.9}]
    state["core_memory"]["identity"] = {"name": "EVA"}
    msp.save_master_state("A", state)
    sandbox = msp.create_sandbox("A", "Sandbox")
    msp.write_to_session_buffer(
        sandbox,
        {
            "episode": {**episode(1), "episode_id": "ep_temp_001"},
            "semantic_updates": [
                {"content": "User likes coffee", "confidence": 0.8},
                {"content": "ชอบแมว", "confidence": 0.9},
                {"content": "ไม่แน่ใจ", "confidence": 0.2},
                {"type": "identity", "key": "name", "content": "อีวา", "confidence": 0.3},
            ],
            "state_updates": {"ire_state": {"calm": 1}},
        },
    )
    master = msp.load_master_state("A")

    found = msp.apply_consolidation_rules(msp.get_session_buffer(sandbox), master)
    rehearsed = msp.merge_into_master(master, found)
    real = msp.consolidate_session(sandbox)

    assert [r["value"] for r in found.refused] == [{"content": "ไม่แน่ใจ", "confidence": 0.2}, "อีวา"]
    assert found.knowledge == [{"content": "ชอบแมว", "confidence": 0.9}]
    assert found.episodes[0]["session_id"] == sandbox
    assert not found.episodes[0]["episode_id"].startswith("ep_temp")
    assert (rehearsed.semantic, rehearsed.core, rehearsed.states) == (real.semantic, real.core, real.states)
    assert len(rehearsed.episodic) == len(real.episodic) == 1


def test_an_update_of_the_core_rehearsed_and_saved_by_hand_stands_in_the_core(msp: MSP) -> None:
    buffer = {
        "semantic_updates": [
            {"type": "identity", "key": "name", "content": "อีวา", "confidence": 0.95},
            {"type": "value", "content": "ซื่อสัตย์", "confidence": 0.95},
        ]
    }
    master = msp.load_master_state("A")

    found = msp.apply_consolidation_rules(buffer, master)
    msp.save_master_state("A", msp.merge_into_master(master, found))

    assert (found.knowledge, found.core_updates) == (
        [],
        {"identity": {"name": "อีวา"}, "values": ["ซื่อสัตย์"]},
    )
    core = msp.load_master_state("A").core
    assert (core["identity"], core["values"]) == ({"name": "อีวา"}, ["ซื่อสัตย์"])


def test_a_surer_restatement_saved_by_hand_replaces_the_weaker_one(msp: MSP) -> None:
    state = msp.load_master_state("A")
    state["semantic_memory"]["concepts"] = [{"concept": "coffee", "content": "a drink", "confidence": 0.8}]
    msp.save_master_state("A", state)
    master = msp.load_master_state("A")
    surer = {"type": "concept", "concept": "coffee", "content": "เครื่องดื่มจากเมล็ดคั่ว", "confidence": 0.95}

    found = msp.apply_consolidation_rules({"semantic_updates": [surer]}, master)
    msp.save_master_state("A", msp.merge_into_master(master, found))

    (concept,) = msp.load_master_state("A").semantic["concepts"]
    assert (concept["content"], concept["confidence"]) == ("เครื่องดื่มจากเมล็ดคั่ว", 0.95)


def test_the_core_is_updated_by_name_and_its_lists_grow(msp: MSP) -> None:
    core = {"identity": {"name": "EVA", "age": 1}, "values": ["ซื่อสัตย์"], "charter": "v1"}

    found = msp.update_core(core, {"identity": {"age": 2}, "values": ["ซื่อสัตย์", "กล้า"], "worldview": {"a": 1}})

    assert found == {
        "identity": {"name": "EVA", "age": 2},
        "values": ["ซื่อสัตย์", "กล้า"],
        "charter": "v1",
        "worldview": {"a": 1},
    }


def test_a_sandbox_has_one_owner_and_another_instance_waits(msp: MSP, root: Path) -> None:
    sandbox = msp.create_sandbox("A", "Sandbox")

    with MSP(root) as other:
        with pytest.raises(SandboxBusy):
            other.write_episode(sandbox, episode(1))
        msp.close()
        other.write_episode(sandbox, episode(1))
        assert other.consolidate_session(sandbox).version == 1


def test_a_closed_sandbox_takes_nothing_more(msp: MSP) -> None:
    sandbox = msp.create_sandbox("A", "Sandbox")
    msp.write_episode(sandbox, episode(1))
    msp.consolidate_session(sandbox)

    with pytest.raises(SandboxClosed):
        msp.write_episode(sandbox, episode(2))
    msp.delete_session_buffer(sandbox)
    assert msp.get_master_version("A") == 1


def test_an_unknown_sandbox_is_not_found(msp: MSP) -> None:
    msp.load_master_state("A")

    for call in (msp.load_sandbox, msp.get_session_buffer, msp.delete_sandbox, msp.delete_session_buffer):
        with pytest.raises(NotFound, match="no sandbox"):
            call("sandbox_unknown")


def test_a_thai_episode_id_goes_through_a_sandbox(msp: MSP) -> None:
    sandbox = msp.create_sandbox("A", "Sandbox")
    msp.write_episode(sandbox, {**episode(1), "episode_id": "อีวา_EP01"})

    assert msp.get_session_buffer(sandbox)["new_episodes"][0]["episode_id"] == "อีวา_EP01"
    assert msp.consolidate_session(sandbox).episodic[0]["episode_id"] == "อีวา_EP01"


def test_what_was_remembered_without_documents_is_shown_in_their_form(msp: MSP) -> None:
    account = msp.account("A")
    with account.sandbox() as sandbox:
        sandbox.turn("user", "สวัสดี")
        sandbox.remember("likes coffee", confidence=0.9)
    account.remember("กรุงเทพ", kind="register", topic="profile/city")

    state = msp.load_master_state("A")

    assert state.episodic[0]["turn_1"]["text"] == "สวัสดี"
    assert state.semantic["facts"] == [{"type": "fact", "content": "likes coffee", "confidence": 0.9}]
    assert state.profile == {"city": "กรุงเทพ"}
    assert msp.save_master_state("A", state) == state.version


def test_a_text_revised_here_is_what_the_document_shows(msp: MSP) -> None:
    state = msp.load_master_state("A")
    state["user_profile"] = {"city": "กรุงเทพ"}
    state["semantic_memory"]["facts"] = [{"statement": "ชอบชา", "why": 1}]
    msp.save_master_state("A", state)
    account = msp.account("A")

    account.revise(account.memories(topic="profile/city")[0].id, text="city: เชียงใหม่")
    account.revise(account.memories(kind="fact")[0].id, text="ชอบกาแฟ")

    found = msp.load_master_state("A")
    assert found.profile == {"city": "เชียงใหม่"}
    assert found.semantic["facts"] == [{"statement": "ชอบกาแฟ", "why": 1}]
