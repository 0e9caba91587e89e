"""Seed 003's own words: entries, assemblies and the core by their names, and files in every spelling."""

from __future__ import annotations

import asyncio
import inspect
import json
import math

import jsonschema
import pytest

from octavo.documents import AsyncMemoryCore, MemoryAssembly, MemoryCore, MemoryEntry
from octavo.documents.synthians import quickrecal
from octavo.domain.memory import Emotion
from octavo.domain.moods import resonance
from octavo.domain.policy import EmotionPolicy, Policy
from octavo.errors import BadInput, Refused
from octavo.testing.clocks import SettableClock
from test_assemblies import POTTERY, Subjects, manual, remember

ENTRY = ["id", "content", "embedding", "timestamp", "memory_type", "metadata", "quick_recal_score", "tags"]
GROUP = ["id", "name", "composite_embedding", "memory_ids", "created_at", "updated_at", "tags", "topics"]
GROUP += ["merged_from", "assembly_schema_version", "vector_index_updated_at", "activation_count"]
STRINGS = {"type": "array", "items": {"type": "string"}}
SCHEMAS = {
    "mem": {
        "type": "object",
        "required": [*ENTRY, "emotion_metadata"],
        "properties": {"quick_recal_score": {"type": "number", "minimum": 0, "maximum": 1}, "tags": STRINGS},
    },
    "asm": {
        "type": "object",
        "required": GROUP,
        "properties": {
            "memory_ids": STRINGS,
            "merged_from": STRINGS,
            "activation_count": {"type": "integer"},
        },
    },
}


@pytest.fixture
def account(opened):
    return opened(embedder=Subjects(), clock=SettableClock(), policy=manual())


def store(folder, entries, groups):
    for name, items in (("memories", entries), ("assemblies", groups)):
        (folder / name).mkdir(parents=True)
        for path, item in items.items():
            text = item if isinstance(item, str) else json.dumps(item)
            (folder / name / path).write_text(text)
    return folder


def entry(n, text, **more):
    return {"id": f"mem_{n}", "content": text, "embedding": [0.1, 0.2 * n, 0.3], **more}


def test_the_constructors_have_the_seeds_parameters_in_its_order():
    assert [*inspect.signature(MemoryEntry).parameters] == [*ENTRY, "emotion_metadata"]
    assert [*inspect.signature(MemoryAssembly).parameters] == GROUP


def test_an_entry_copies_its_lists_clamps_its_score_and_has_an_aware_time():
    tags = ["a"]
    one = MemoryEntry("m", "text", [0.1], timestamp="2025-04-01T10:00:00", quick_recal_score=7, tags=tags)
    tags.append("b")
    assert (one.tags, one.quick_recal_score, one.timestamp) == (["a"], 1.0, "2025-04-01T10:00:00+00:00")
    assert one == MemoryEntry("m", "other", [])
    assert one != MemoryAssembly("m")
    assert MemoryEntry.from_dict(one.to_dict()).to_dict() == one.to_dict()


@pytest.mark.parametrize(
    "time", ["2025-04-01T10:00:00", "2025-04-01T10:00:00+00:00Z", 1743501600, "2025-04-01T17:00:00+07:00"]
)
def test_every_spelling_of_a_time_is_the_same_time(time):
    assert MemoryEntry("m", "t", timestamp=time).timestamp == "2025-04-01T10:00:00+00:00"


def test_every_spelling_of_a_field_is_read_and_an_unknown_one_kept():
    told = {"assembly_id": "a", "name": "n", "memories": [{"id": "x"}, "y"], "creation_time": 0, "odd": 1}
    group = MemoryAssembly.from_dict(told)
    assert (group.id, group.memory_ids, group.created_at[:4]) == ("a", ["x", "y"], "1970")
    assert group.to_dict()["odd"] == 1
    assert (
        MemoryEntry.from_dict({"id": "m", "content": "c", "quickrecal_score": 0.9}).quick_recal_score == 0.9
    )
    with pytest.raises(BadInput):
        MemoryEntry.from_dict({"id": "m"})


def test_a_store_comes_in_and_goes_out_with_everything_it_had(account, tmp_path):
    entries = {
        "mem_1.mem.json": entry(1, POTTERY[0], tags=["craft"], metadata={"deep": {"a": 1}}, odd="kept"),
        "mem_2.json": entry(2, "แม่ชอบมะม่วงจากต้นหลังบ้าน", quickrecal_score=0.9),
        "mem_3.mem.json": entry(
            3, "long " * 400, emotion_metadata={"dominant_emotion": "joy", "valence": 0.8}
        ),
    }
    groups = {
        "asm-1.asm.json": {
            "id": "asm:1",
            "name": "Anna",
            "memory_ids": ["mem_1", "mem_2"],
            "composite_embedding": [1.0, 0.0],
            "topics": ["craft"],
            "assembly_schema_version": "2.0",
            "future": True,
        }
    }
    done = account.import_(store(tmp_path / "in", entries, groups), format="synthians")
    assert dict(done.counts) == {"fact": 2, "episode": 1, "assembly": 1}
    assert account.get("mem_2").salience == 0.9
    assert account.get("mem_3").emotion.label == "joy"
    again = account.import_(tmp_path / "in", format="synthians")
    assert (dict(again.counts), again.unchanged) == ({}, 4)
    out = account.export(tmp_path / "out", format="synthians")
    assert dict(out.counts) == {"memory": 3, "assembly": 1}
    one = json.loads((tmp_path / "out/memories/mem_1.mem.json").read_text())
    assert (one["embedding"], one["metadata"], one["odd"]) == ([0.1, 0.2, 0.3], {"deep": {"a": 1}}, "kept")
    whole = json.loads((tmp_path / "out/assemblies/asm-1.asm.json").read_text())
    assert (whole["id"], whole["memory_ids"], whole["future"]) == ("asm:1", ["mem_1", "mem_2"], True)
    for path in (tmp_path / "out").rglob("*.json"):
        kind = path.name.split(".")[-2]
        if kind in SCHEMAS:
            jsonschema.validate(json.loads(path.read_text()), SCHEMAS[kind])


def test_one_bad_file_costs_one_file_and_bad_vectors_cost_the_vector(account, tmp_path):
    entries = {
        "bad.mem.json": "{not json",
        "nan.mem.json": entry(1, "a fact about tea", embedding=["x"]),
        "zero.mem.json": entry(2, "a fact about harbours", embedding=[0.0, 0.0]),
        "fine.mem.json": entry(3, "a fact about mangoes"),
    }
    done = account.import_(store(tmp_path / "in", entries, {}), format="synthians")
    assert dict(done.counts) == {"fact": 3}
    assert [note.place for note in done.left_out] == ["memories/bad.mem.json"]
    assert {note.place for note in done.notes} == {"memories/nan.mem.json", "memories/zero.mem.json"}
    assert "vector" not in account.get("mem_1").data


def test_a_name_that_cannot_be_and_numbers_that_are_none_cost_that_alone(account, tmp_path):
    entries = {
        "a.mem.json": entry(1, "a fact about tea", embedding=[math.nan, math.inf]),
        "b.mem.json": entry(2, "a fact about harbours", embedding=[1.0], metadata={"embedder": "subjects"}),
        "c.mem.json": entry(3, "a fact about mangoes") | {"id": "no id"},
    }
    members = {"name": "A", "memory_ids": ["mem_1", "mem_2"]}
    groups = {
        "a.asm.json": {"id": "a", **members, "composite_embedding": [math.nan] * 12},
        "b.asm.json": {"id": "b", **members, "composite_embedding": [1.0], "embedder": "subjects"},
        "c.asm.json": {"id": "no id", **members},
        "d.asm.json": {"id": "d", "name": "D", "memory_ids": ["mem_1", "mem_1", "nobody"]},
    }
    done = account.import_(store(tmp_path / "in", entries, groups), format="synthians")
    assert dict(done.counts) == {"fact": 2, "assembly": 2}
    assert [note.place[-10:] for note in done.left_out] == ["c.mem.json", "c.asm.json", "d.asm.json"]
    told = {note.place: note.reason for note in done.notes}
    for name, reason in (("a", "NaN"), ("b", "those of subjects have 12")):
        assert reason in told[f"memories/{name}.mem.json"]
        assert reason in told[f"assemblies/{name}.asm.json"]
    account.catch_up()
    assert all(one.is_synchronized for one in account.explained.assemblies())
    assert account.check()


def test_a_file_brings_no_memory_of_another_scope_into_an_assembly(account, opened, tmp_path):
    (secret,) = remember(account, "the pottery class of orion", scope="orion")
    entries = {f"{n}.mem.json": entry(n, text) for n, text in enumerate(POTTERY, start=1)}
    groups = {"a.asm.json": {"id": "a", "name": "A", "memory_ids": ["mem_1", "mem_2", secret]}}
    done = account.import_(store(tmp_path / "in", entries, groups), format="synthians")
    assert any("2 of its 3 members" in note.reason for note in done.notes)
    elysia = opened(embedder=Subjects(), actor="agent:elysia", scope="elysia", policy=manual())
    assert [m.id for m in elysia.explained.assembly("a").members] == ["mem_1", "mem_2"]


def test_a_merge_that_was_not_finished_elsewhere_is_finished_and_no_member_is_lost(account, tmp_path):
    entries = {f"{n}.mem.json": entry(n, text) for n, text in enumerate(POTTERY, start=1)}
    ids = [f"mem_{n}" for n in (1, 2, 3)]
    groups = {
        "a.asm.json": {"id": "a", "name": "A", "memory_ids": ids[:2]},
        "b.asm.json": {"id": "b", "name": "B", "memory_ids": ids[1:]},
        "c.asm.json": {"id": "c", "name": "C", "memory_ids": ids, "merged_from": ["a", "b"]},
    }
    done = account.import_(store(tmp_path / "in", entries, groups), format="synthians")
    assert any("finished" in note.reason for note in done.notes)
    assert [account.get(name) is None for name in "abc"] == [True, True, False]
    told = {row.assembly_id: row for row in account.explained.lineage("c").lineage}
    assert (told["a"].name, told["a"].memory_count, told["a"].ended) == ("A", 2, True)
    assert account.unmerge("c") == ["a", "b"]


def test_an_imported_merge_ends_assemblies_and_nothing_else_that_it_names(account, tmp_path):
    entries = {f"{n}.mem.json": entry(n, text) for n, text in enumerate(POTTERY, start=1)}
    ids = [f"mem_{n}" for n in (1, 2, 3)]
    groups = {"c.asm.json": {"id": "c", "name": "C", "memory_ids": ids, "merged_from": ["mem_1"]}}
    account.import_(store(tmp_path / "in", entries, groups), format="synthians")
    assert account.get("mem_1") is not None


def test_a_cycle_in_imported_files_is_said(account, tmp_path):
    entries = {f"{n}.mem.json": entry(n, text) for n, text in enumerate(POTTERY, start=1)}
    groups = {
        "a.asm.json": {"id": "a", "name": "A", "memory_ids": ["mem_1", "mem_2"], "merged_from": ["b"]},
        "b.asm.json": {"id": "b", "name": "B", "memory_ids": ["mem_1", "mem_2"], "merged_from": ["a"]},
    }
    account.import_(store(tmp_path / "in", entries, groups), format="synthians")
    assert account.explained.lineage("a").cycles_detected


def test_the_core_remembers_retrieves_updates_and_takes_feedback(account):
    core = MemoryCore(account)
    made = [core.process_memory(text, metadata={"tags": ["craft"], "from": {"a": 1}}) for text in POTTERY]
    account.assemble()
    found = core.retrieve_memories("pottery class", top_k=2)
    assert (found["success"], len(found["memories"]), found["error"]) == (True, 2, None)
    info = found["memories"][0]["boost_info"]
    assert set(info) == {"base_similarity", "assembly_boost", "max_activation", "boost_reason"}
    assert info["assembly_boost"] > 0
    assert len(core.retrieve_memories("pottery class", threshold=99.0)["memories"]) == 0
    assert core.update_quickrecal_score(made[0].id, 0.9)
    assert core.get_memory(made[0].id).quick_recal_score == 0.9
    assert core.update_memory(made[0].id, {"metadata": {"from": {"b": 2}}})
    assert core.get_memory(made[0].id).metadata["from"] == {"a": 1, "b": 2}
    assert not core.update_quickrecal_score("nobody", 0.9)
    assert core.get_memory("nobody") is None
    assert core.provide_feedback(made[1].id, relevant=True)
    assert core.get_memory(made[1].id).quick_recal_score > 0.5
    (group,) = core.list_assemblies()
    assert core.get_assembly(group.id).memory_ids == group.memory_ids
    assert core.get_assembly("nobody") is None
    assert core.check_index_integrity()["is_consistent"]
    assert core.repair_index()["success"]
    with pytest.raises(BadInput):
        core.process_memory("tea", embedding=[math.nan])
    with pytest.raises(Refused):
        core.process_memory("my password is hunter2-Zq81!")


def test_the_async_core_is_the_same_table_through_threads(account):
    core = AsyncMemoryCore(account)

    async def talk():
        made = await core.process_memory("the harbour is quiet")
        return await core.get_memory(made.id)

    assert asyncio.run(talk()).content == "the harbour is quiet"
    with pytest.raises(AttributeError):
        core.nothing  # noqa: B018


def test_a_mood_moves_scores_by_resonance_and_the_gate_names_what_it_leaves_out(opened):
    policy = Policy(emotion=EmotionPolicy(gate=True))
    account = opened(embedder=False, policy=policy)
    sad = {"label": "sadness", "valence": -0.9, "intensity": 0.9}
    account.remember("the harbour trip ended in tears", emotion=sad)
    account.remember("the harbour trip was a joy to us", emotion={"label": "joy", "valence": 0.9})
    plain, gated = account.recall("harbour trip"), account.recall("harbour trip", mood=sad)
    assert (len(plain), len(gated)) == (2, 1)
    assert any("weigh on the mood" in note for note in gated.notes)
    glad = account.recall("harbour trip", mood={"label": "joy", "valence": 0.8})
    assert "joy" in glad[0].text
    assert glad[0].score == pytest.approx(sum(glad[0].parts.values()))
    assert resonance(Emotion(label="joy", valence=1.0), Emotion(label="ดีใจ", valence=0.5)) == 1.0
    assert resonance(None, Emotion(label="joy")) == 0.5


def test_quickrecal_compares_with_no_memory_of_another_scope(opened, account):
    (shared,) = remember(account, POTTERY[0])
    account.remember(POTTERY[0], scope="orion")
    twin = account.remember(f"{POTTERY[0]}!", scope="elysia").memory.id
    assert account.wait(30)
    alone = quickrecal.calculate(account, twin)["factors"]
    assert alone["causal_novelty"] == 1.0  # the others are of other scopes
    assert quickrecal.calculate(account, shared)["factors"]["causal_novelty"] == 1.0


def test_quickrecal_is_the_same_every_time_and_novelty_rises_with_distance(account):
    ids = remember(account, *POTTERY, "the printer is out of paper")
    account.assemble()
    one, two = (quickrecal.calculate(account, id_) for id_ in (ids[2], ids[3]))
    assert one == quickrecal.calculate(account, ids[2])
    assert two["factors"]["causal_novelty"] > one["factors"]["causal_novelty"]
    assert one["factors"]["self_org"] > two["factors"]["self_org"]
    assert 0 <= one["quickrecal_score"] <= 1
    assert quickrecal.score(one["factors"], "custom", {"recency": 1.0}) == one["factors"]["recency"]
    with pytest.raises(BadInput):
        quickrecal.score(one["factors"], "random")


def test_two_statements_with_opposite_words_contradict_each_other():
    one, two = "prices increase with demand in spring", "prices decrease with demand in spring"
    assert quickrecal.contradict(one, two, 0.9)
    assert not quickrecal.contradict(one, one, 0.9)
    assert not quickrecal.contradict(one, two, 0.5)
