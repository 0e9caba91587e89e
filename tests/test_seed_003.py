"""Seed 003, line by line: every acceptance behaviour of its origin, by name."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

import numpy as np
import pytest
from msgspec.structs import replace

from octavo.documents import MemoryAssembly, MemoryCore, MemoryEntry
from octavo.documents.formats import export_account, import_account
from octavo.documents.synthians import explaining
from octavo.domain.policy import AssemblyPolicy, IndexPolicy, Policy
from octavo.doors import rest, rest_seeds
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.errors import BadInput, HumanOnly
from octavo.storage import composites
from octavo.testing.clocks import SettableClock
from test_assemblies import POTTERY, SURGERY, Subjects, grouped, lift, manual, remember
from test_doors_rest import client_of, made

ASKED = "pottery class"


@pytest.fixture
def clock():
    return SettableClock()


@pytest.fixture
def embedder():
    return Subjects()


@pytest.fixture
def account(opened, clock, embedder):
    return opened(embedder=embedder, clock=clock, policy=manual())


@pytest.fixture
def core(account):
    return MemoryCore(account)


def lifts(account):
    return set(lift(account.recall(ASKED)).values())


def test_a_new_assembly_has_no_index_time_and_boosting_returns_the_base_score(account, monkeypatch):
    ids = remember(account, *POTTERY)
    account.catch_up()
    base = {hit.memory.id: hit.score for hit in account.recall(ASKED)}
    monkeypatch.setattr(account._indexing.composing, "follow", lambda *_: None)  # indexing stands still
    (new,) = account.assemble(*ids, name="pots")
    assert account.explained.assembly(new.id).vector_index_updated_at is None
    assert {hit.memory.id: hit.score for hit in account.recall(ASKED)} == pytest.approx(base)


def test_after_an_index_update_it_boosts_two_hours_later_not_and_with_a_larger_drift_again(
    opened, clock, embedder
):
    account = opened(embedder=embedder, clock=clock, policy=manual())
    new = grouped(account, *POTTERY)
    assert max(lifts(account)) > 0
    clock.advance(hours=2)
    told = account.freshness(new.id)
    assert lifts(account) == {0.0}
    assert (told.is_drifted, told.drift_reason) == (True, "age")
    assert told.age_seconds >= 7000
    policy = Policy(
        assemblies=AssemblyPolicy(mode="manual"), index=IndexPolicy(max_allowed_drift_seconds=86_400)
    )
    assert max(lifts(opened(embedder=embedder, clock=clock, policy=policy))) > 0


def test_of_a_synced_and_an_unsynced_assembly_only_the_synced_activates(account, core):
    pottery, surgery = (remember(account, *texts) for texts in (POTTERY, SURGERY))
    new = account.assemble()
    account.revise(next(m.id for m in new if surgery[0] in m.linked("part")), tags=["unsynced"])
    found = core.retrieve_memories("the pottery class and the surgery of mother", top_k=20)["memories"]
    told = {one["id"]: one["boost_info"] for one in found}
    assert told[pottery[0]]["assembly_boost"] > 0
    assert told[pottery[0]]["boost_reason"].startswith("linear(")
    assert told[surgery[0]]["assembly_boost"] == 0
    assert told[surgery[0]]["boost_reason"] == "no_activated_assemblies"


@pytest.mark.parametrize("models", [{"OCTAVO_EMBEDDER": "none"}, {}], ids=["no embedder", "the default"])
def test_get_assembly_shows_whether_it_is_synchronized_and_since_when(root, models):
    settings = Settings(root=root, account="User01", actor="human:you", models=models)
    visitors = Visitors(settings)
    app = rest.app(Pool(), settings, visitors=visitors, mounts=(rest_seeds.add,))
    with client_of(app, visitors) as client:
        new = _assembled(client)
        assert client.post("/accounts/User01/operations/catch_up", json={}).status_code == 200
        told = client.get(f"/assemblies/{new}").json()
    if models:
        assert (told["is_synchronized"], told["vector_index_updated_at"]) == (False, None)
        assert told["drift_reason"] == "no_vector"
    else:
        assert told["is_synchronized"] is True
        assert datetime.fromisoformat(told["vector_index_updated_at"])
        assert told["drift_reason"] is None


def _assembled(client):
    texts = ("the kiln fires clay pots", "the wheel turns clay bowls")
    ids = [
        client.post("/accounts/User01/memories", json={"text": text}).json()["memory"]["id"] for text in texts
    ]
    body = {"ids": ids, "name": "pottery"}
    return client.post("/accounts/User01/operations/assemble", json=body).json()["assemblies"][0]["id"]


def test_saved_and_loaded_again_an_assembly_is_the_same(opened, clock, embedder, tmp_path):
    account = opened(embedder=embedder, clock=clock, policy=manual())
    ids = remember(account, *POTTERY)
    one, two = (account.assemble(*ids[n : n + 2], name=f"n{n}", tags=["craft"])[0] for n in (0, 1))
    whole = MemoryCore(account).merge_assemblies([one.id, two.id])
    account.catch_up()
    before = MemoryCore(account).get_assembly(whole).to_dict()
    account.close()
    again = MemoryCore(opened(embedder=embedder, clock=clock, policy=manual())).get_assembly(whole).to_dict()
    assert np.allclose(before.pop("composite_embedding"), again.pop("composite_embedding"))
    assert before == again
    assert again["merged_from"] == [one.id, two.id]
    assert again["vector_index_updated_at"] is not None
    export_account(opened(embedder=embedder, clock=clock), tmp_path, "synthians")
    elsewhere = opened(account="Other", embedder=embedder, clock=clock, policy=manual())
    import_account(elsewhere, tmp_path, "synthians")
    loaded = MemoryCore(elsewhere).get_assembly(whole).to_dict()
    for name in ("id", "name", "memory_ids", "tags", "topics", "merged_from"):
        assert loaded[name] == again[name], name


def test_a_failed_index_update_is_queued_and_the_retry_empties_the_queue(account, embedder):
    embedder.poison = POTTERY[1]
    ids = remember(account, *POTTERY[:2])
    (new,) = account.assemble(*ids, name="pots")
    account.catch_up()
    assert account.lag().waiting == 1
    assert account.explained.assembly(new.id).vector_index_updated_at is None
    embedder.poison = None
    account.catch_up(force=True)
    assert account.lag().waiting == 0
    assert account.explained.assembly(new.id).vector_index_updated_at is not None


def test_a_fresh_index_has_no_drift_ghosts_are_named_and_a_repair_heals(account, core):
    grouped(account, *POTTERY)
    assert account.wait(30)  # what is indexed beside would heal what is damaged below
    assert core.check_index_integrity()["is_consistent"]
    held = account._indexing.composing.held()
    ghosts = tuple(replace(row, basis=f"ghost{row.basis}") for row in held.rows)
    composites.publish(account._indexing.embedding.folder, replace(held, rows=ghosts))
    told = core.check_index_integrity()
    assert not told["is_consistent"]
    assert any("composites" in problem for problem in told["problems"])
    assert core.check_index_integrity() == told  # looking changes nothing
    for mode in ("auto", "recreate_mapping", "rebuild_from_persistence"):
        assert core.repair_index(mode)["success"]
    assert core.check_index_integrity()["is_consistent"]
    with pytest.raises(BadInput):
        core.repair_index("by magic")


@pytest.mark.parametrize("vector", [[math.nan] * 12, [math.inf] * 12, [0.0] * 12, []])
def test_a_vector_that_cannot_be_used_is_refused_and_search_goes_on(account, core, vector):
    grouped(account, *POTTERY)
    with pytest.raises(BadInput):
        core.process_memory("a harbour wall", embedding=vector)
    assert core.retrieve_memories(ASKED)["success"]


@pytest.mark.parametrize("size", [5, 40])
def test_a_shorter_or_longer_vector_crashes_neither_adding_nor_searching(account, core, size):
    grouped(account, *POTTERY)
    entry = core.process_memory("a harbour wall", embedding=[0.5] * size)
    account.catch_up()
    assert core.retrieve_memories("harbour wall")["memories"][0]["id"] == entry.id
    assert core.check_index_integrity()["is_consistent"]


def test_a_score_of_nine_tenths_is_stored_and_an_unknown_id_is_none(core):
    entry = core.process_memory("a harbour wall", embedding=[3.0, 4.0, *[0.0] * 10])
    assert core.update_quickrecal_score(entry.id, 0.9)
    assert core.get_memory(entry.id).quick_recal_score == pytest.approx(0.9)
    core.account.catch_up()
    assert np.allclose(core.get_memory(entry.id).embedding, [0.6, 0.8, *[0.0] * 10], atol=1e-3)
    assert core.get_memory("mem_unknown") is None
    assert not core.update_quickrecal_score("mem_unknown", 0.9)
    assert not core.provide_feedback("mem_unknown", relevant=True)
    assert core.get_assembly("asm_unknown") is None


def test_top_k_is_respected_the_best_is_first_and_a_low_threshold_returns_no_fewer(account, core):
    ids = remember(account, *POTTERY, *SURGERY)
    found = core.retrieve_memories(POTTERY[0], top_k=2)["memories"]
    assert len(found) == 2
    assert found[0]["id"] == ids[0]
    low, high = (core.retrieve_memories(ASKED, top_k=20, threshold=t)["memories"] for t in (0.1, 0.9))
    assert len(low) >= len(high)
    assert all(one["boost_info"]["base_similarity"] >= 0.9 for one in high)


def test_one_retrieval_counts_one_activation_and_it_survives_a_restart(opened, clock, embedder):
    account = opened(embedder=embedder, clock=clock, policy=manual())
    new = grouped(account, *POTTERY)
    with account.sandbox() as sandbox:
        sandbox.recall(ASKED)
        sandbox.turn("user", "how is the pottery class?")
    account.close()
    again = opened(embedder=embedder, clock=clock, policy=manual())
    assert again.explained.assembly(new.id).activation_count == 1


def test_explaining_what_is_missing_says_not_found_and_the_flag_closes_all_of_it(opened, account):
    (memory,) = remember(account, POTTERY[0])
    assert "not found" in explaining.activation(account, "asm_none", memory)["notes"]
    assert "not found" in explaining.merge(account, "asm_none")["notes"]
    closed = opened(embedder=False, policy=manual(explain=False))
    for ask in (lambda: explaining.log(closed), lambda: explaining.merge(closed, "asm_none")):
        with pytest.raises(HumanOnly) as caught:
            ask()
        assert caught.value.http_status == 403


def test_with_explaining_off_every_path_answers_403(root):
    app, visitors = made(root)
    with client_of(app, visitors) as client:
        new = _assembled(client)
    (folder,) = [path for path in root.iterdir() if path.is_dir() and (path / "ledger").exists()]
    (folder / "policy.toml").write_text("[assemblies]\nexplain = false\n")
    app, visitors = made(root)
    with client_of(app, visitors) as client:
        paths = (f"/assemblies/{new}/lineage", f"/assemblies/{new}/explain_merge", "/diagnostics/merge_log")
        assert {client.get(path).status_code for path in paths} == {403}
        assert client.get(f"/assemblies/{new}").status_code == 200


def test_the_seeds_classes_stand_as_it_writes_them():
    seed = datetime(2026, 3, 1, tzinfo=UTC).isoformat()
    entry = MemoryEntry("mem_1", "said", [0.1], seed, "general", {"a": 1}, 2.0, ["t"], {"label": "joy"})
    assert (entry.memory_type, entry.quick_recal_score, entry.metadata) == ("general", 1.0, {"a": 1})
    group = MemoryAssembly("asm_1", "pots", [0.1], ["mem_1"], seed, None, ["t"], ["clay"], ["asm_0"])
    assert (group.updated_at, group.assembly_schema_version, group.activation_count) == (seed, "1.0", 0)
    assert group.vector_index_updated_at is None
    assert MemoryAssembly.from_dict(group.to_dict()).to_dict() == group.to_dict()
    assert group == MemoryAssembly("asm_1")


def test_an_id_has_one_convention_and_merged_from_stands_in_the_first_revision(account):
    ids = remember(account, *POTTERY)
    one, two = (account.assemble(*ids[n : n + 2])[0].id for n in (0, 1))
    whole = account.merge_assemblies(one, two)
    assert all(re.fullmatch("asm_[0-9a-z]+", id_) for id_ in (one, two, whole.id))
    first = account.history(whole.id)[0]
    assert first.memory.linked("merged_from") == (one, two)
    gone = {revision.version for id_ in (one, two) for revision in account.history(id_)[-1:]}
    assert gone == {first.version}  # C and the end of A and B are one commit
