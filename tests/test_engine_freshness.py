"""Freshness: what cannot be embedded holds up nobody; drift is found by id and revision, and healed."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import octavo
from indexes import fact
from octavo.domain.units import Watermark
from octavo.errors import ModelFailed, NotFound
from octavo.models.embedders import CallableEmbedder, is_offline_installed
from octavo.storage.codec import moment_of
from octavo.storage.index import current, extend
from octavo.storage.retries import ATTEMPTS, MODEL, after_attempt, due, outage
from octavo.storage.rows import Units, open_units
from octavo.storage.vectors import ModelManifest, Vectors
from octavo.testing.clocks import SettableClock

TEXTS = [
    "the violin is old",
    "แมวชอบนอนบนโซฟา",
    "a train to Rayong",
    "กาแฟดำไม่ใส่น้ำตาล",
    "winter at the harbour",
]


class Fragile:
    """An embedder that counts letters, cannot take some texts, and may be out altogether."""

    name, dimension = "fragile", 5

    def __init__(self, *bad):
        self.bad, self.is_out, self.asked = set(bad), False, []

    def embed(self, texts):
        self.asked.append(list(texts))
        if self.is_out or self.bad & set(texts):
            raise ModelFailed(f"cannot embed {texts}")
        return [[text.count(c) + 0.1 for c in "aeiกอ"] for text in texts]


@pytest.fixture
def clock():
    return SettableClock()


@pytest.fixture
def index(root):
    """Where words and vectors lie."""
    return root / "+user01" / "index" / "recall"


def filled(account, texts=TEXTS):
    return [account.remember(text, kind="register", topic=text).memory for text in texts]


def stored(index):
    path = current(index) / "vectors-fragile"
    history = octavo.storage.codec.decode_json((path / "manifest.json").read_bytes())["body"]["history"]
    return Vectors.open(path, ModelManifest(model="fragile", dimension=5, history=history))


def test_a_text_that_cannot_be_embedded_holds_up_nobody_and_gets_its_vector_later(opened, clock, index):
    embedder = Fragile(TEXTS[1])
    account = opened(embedder=embedder, clock=clock)
    memories = filled(account)
    account.catch_up()
    assert [account.freshness(m.id).has_vector for m in memories] == [True, False, True, True, True]
    assert all(account.freshness(m.id).is_fresh for m in memories)
    hits = account.recall("แมว")
    assert hits[0].memory.id == memories[1].id
    assert any("1 passages have no vector yet" in note for note in hits.notes)
    assert hits[0].parts["meaning"] == 0
    lag = account._indexing.lag()
    assert (lag.passages, lag.waiting, lag.dead) == (1, 1, 0)
    assert account.check()
    assert [n for n in account.check().notes if f"1 passage has no vector: {memories[1].id}" in n]
    embedder.bad.clear()
    embedder.asked.clear()
    account.catch_up()
    assert embedder.asked == []  # not before its time
    again = opened(embedder=embedder, clock=clock)
    came = clock.advance(seconds=60)
    again.catch_up()
    assert embedder.asked == [[TEXTS[1]]]
    assert again.freshness(memories[1].id).vector_index_updated_at == came
    assert again.freshness(memories[0].id).vector_index_updated_at == came - timedelta(seconds=60)
    assert again._indexing.lag().passages == 0
    assert again.check().notes == ()
    np.testing.assert_allclose(np.linalg.norm(stored(index).floats.astype(float), axis=1), 1, atol=1e-2)


def test_after_five_attempts_a_passage_is_given_up_until_the_index_is_made_anew(opened, clock):
    embedder = Fragile(TEXTS[0], TEXTS[3])
    account = opened(embedder=embedder, clock=clock)
    memories = filled(account)
    tries = []
    for _ in range(8):
        embedder.asked.clear()
        account.catch_up()
        tries.append(sum(asked == [TEXTS[0]] for asked in embedder.asked))
        clock.advance(hours=1)
    assert tries == [1] * ATTEMPTS + [0] * 3
    again = opened(embedder=embedder, clock=clock)
    assert again._indexing.lag().dead == 2
    (note,) = again.check().notes
    assert note.startswith("2 passages have no vector: ")
    assert memories[0].id in note
    assert again.check()
    embedder.bad.clear()
    again.reindex()
    assert again._indexing.lag().passages == 0
    assert again.check().notes == ()


def test_a_model_that_is_out_is_asked_little_and_later_and_nothing_is_lost(opened, clock):
    embedder = Fragile()
    account = opened(embedder=embedder, clock=clock)
    memories = filled(account)
    embedder.is_out = True
    with pytest.raises(ModelFailed):
        account.catch_up()
    assert len(embedder.asked) == 2  # the texts, and one more to see whether the model answers at all
    again = opened(embedder=embedder, clock=clock)
    with pytest.raises(ModelFailed, match="failed 1 times in a row"):
        again.catch_up()
    assert len(embedder.asked) == 2
    assert any("tried again after 2026-01-05 09:01:00 UTC" in note for note in again.check().notes)
    hits = again.recall("train Rayong")
    assert hits[0].memory.id == memories[2].id
    assert any("words alone" in note for note in hits.notes)
    clock.advance(seconds=61)
    with pytest.raises(ModelFailed):
        again.catch_up()
    embedder.is_out = False
    clock.advance(seconds=61)
    with pytest.raises(ModelFailed, match="failed 2 times"):
        again.catch_up()  # the second wait is longer
    clock.advance(seconds=60)
    again.catch_up()
    assert all(again.freshness(m.id).has_vector for m in memories)
    assert again.check().notes == ()


def test_neither_the_letters_nor_the_log_hold_any_text(opened, clock, index, caplog):
    caplog.set_level(logging.DEBUG)
    account = opened(embedder=Fragile(TEXTS[0]), clock=clock)
    filled(account)
    account.catch_up()
    manifest = (index / "vectors-fragile" / "manifest.json").read_text()
    assert '"ModelFailed"' in manifest
    assert "embedding failed" in caplog.text
    for place in (manifest, caplog.text):
        assert "violin" not in place


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bad=st.sets(st.sampled_from(TEXTS)))
def test_whichever_texts_fail_the_others_have_their_vectors_and_in_the_end_all(tmp_path_factory, bad):
    clock, embedder = SettableClock(), Fragile(*bad)
    root = tmp_path_factory.mktemp("p")
    with octavo.open(root, "User01", embedder=embedder, clock=clock) as account:
        memories = filled(account)
        account.catch_up()
        has = {m.text: account.freshness(m.id).has_vector for m in memories}
        assert has == {text: text not in bad for text in TEXTS}
        embedder.bad.clear()
        clock.advance(minutes=1)
        account.catch_up()
        late = stored(root / "+user01" / "index" / "recall").floats.copy()
        account.reindex()
        assert (late == stored(root / "+user01" / "index" / "recall").floats).all()


@given(failures=st.integers(1, 12), row=st.sampled_from([MODEL, 0, 7]))
def test_each_wait_is_at_least_as_long_as_the_one_before_and_bounded(failures, row):
    now, letters, waits = datetime(2026, 1, 5, tzinfo=UTC), (), []
    for _ in range(failures):
        letters = (
            after_attempt(letters, [], {row: "ModelFailed"}, now)
            if row == MODEL
            else after_attempt(letters, [row], {row: "ModelFailed"}, now)
        )
        (letter,) = letters
        if letter.is_dead:
            assert letter.attempts == ATTEMPTS
            assert row != MODEL
            assert due(letters, now + timedelta(days=999)) == []
            return
        waits.append(moment_of(letter.next_at) - now)
        assert due(letters, now) == []
        now = moment_of(letter.next_at)
        assert due(letters, now) == ([] if row == MODEL else [row])
        assert outage(letters, now) is None
    assert waits == sorted(waits)
    assert waits[0] == timedelta(minutes=1)
    assert waits[-1] <= timedelta(minutes=10)


@pytest.mark.parametrize("place", [0, 10])  # a row of its own, and the one whose vector comes late
def test_a_torn_late_vector_is_found_and_the_vectors_are_made_anew(opened, clock, index, place):
    embedder = Fragile(TEXTS[1])
    account = opened(embedder=embedder, clock=clock)
    memories = filled(account)
    account.catch_up()
    account.wait()  # nobody reads the file while it is torn
    path = index / "vectors-fragile" / "floats.bin"
    data = bytearray(path.read_bytes())
    data[place : place + 4] = b"torn"  # as if the process had died before the manifest was published
    path.write_bytes(bytes(data))
    assert [p for p in account.check().problems if "floats.bin" in p]
    embedder.bad.clear()
    clock.advance(minutes=1)
    account.catch_up()
    assert account.check()
    assert all(account.freshness(m.id).has_vector for m in memories)
    healed = stored(index).floats.copy()
    account.reindex()
    assert (healed == stored(index).floats).all()


def test_an_embedder_that_gives_too_few_vectors_is_not_believed(opened, clock):
    short = CallableEmbedder(
        name="short", dimension=2, function=lambda texts: [[1.0, 0.0]] * (len(texts) - 1)
    )
    account = opened(embedder=short, clock=clock)
    filled(account)
    with pytest.raises(ModelFailed, match="vectors for"):
        account.catch_up()
    assert account.recall("แมว")[0].memory.text == TEXTS[1]


def test_a_vector_of_the_wrong_dimension_handed_in_earlier_costs_only_itself(opened, clock):
    early = opened(embedder=False, clock=clock)
    early.remember("ดาวเหนือ", vector=("fragile", [1.0, 0.0]))
    early.remember("the southern cross")
    account = opened(embedder=Fragile(), clock=clock)
    assert account.recall("ดาวเหนือ")[0].memory.text == "ดาวเหนือ"
    account.catch_up()
    assert account._indexing.lag().waiting == 1
    assert account.recall("ดาวเหนือ")[0].memory.text == "ดาวเหนือ"


def test_freshness_is_by_revision_and_only_the_index_path_moves_the_stamp(opened, clock):
    account = opened(embedder=Fragile(), clock=clock)
    (memory,) = filled(account, TEXTS[:1])
    new = account.freshness(memory.id)
    assert (new.rev, new.indexed_rev, new.is_fresh, new.has_words, new.has_vector) == (
        1,
        None,
        False,
        False,
        False,
    )
    assert new.vector_index_updated_at is None
    first = clock.advance(hours=1)
    account.catch_up()
    indexed = account.freshness(memory.id)
    assert (indexed.indexed_rev, indexed.is_fresh, indexed.has_vector) == (1, True, True)
    assert indexed.vector_index_updated_at == first
    clock.advance(hours=1)
    account.revise(memory.id, text="the violin is new")
    revised = account.freshness(memory.id)
    assert (revised.rev, revised.indexed_rev, revised.is_fresh, revised.has_vector) == (2, 1, False, False)
    assert revised.vector_index_updated_at == first
    second = clock.advance(hours=1)
    account.catch_up()
    assert account.freshness(memory.id).vector_index_updated_at == second
    clock.advance(days=9)
    account.catch_up()
    assert opened(embedder=Fragile(), clock=clock).freshness(memory.id).vector_index_updated_at == second
    with pytest.raises(NotFound):
        account.freshness("nothere")


def test_a_hit_is_fresh_exactly_when_its_memory_is(opened):
    account = opened(embedder=False)
    place = account.remember("the harbour of Rayong").memory
    account.catch_up()
    account.remember("ยายเกิดที่นั่น", links={"about": place.id})
    for fresh in ([True, False], [True, True]):
        hits = account.recall("harbour Rayong")
        assert [hit.is_fresh for hit in hits] == fresh
        assert [account.freshness(hit.memory.id).is_fresh for hit in hits] == fresh
        assert [hit.version for hit in hits] == [1, 2]
        account.catch_up()


def test_ghosts_and_missing_revisions_are_found_by_id_and_revision_and_healed(opened, index):
    account = opened(embedder=Fragile())
    account._worker.stop()  # or the revision would be indexed in the background
    memories = filled(account)
    account.catch_up()
    assert account.check()
    mark = open_units(index).manifest.watermark
    extend(index, [fact("ghost", "ผีในดัชนี", version=1)], [], mark, since=mark)
    assert account.check().problems == ("index/recall holds revision 1 of ghost, which is none",)
    assert account.repair()
    assert account.check()
    account.revise(memories[0].id, text="the violin is new")
    head = Watermark(version=account.version, header=account._spine.ledger.hash_of(account.version))
    open_units(current(index)).publish(watermark=head)
    assert account.check().problems == (f"index/recall lacks revision 2 of {memories[0].id}",)
    assert account.repair()
    assert account.recall("violin new")[0].memory.rev == 2
    assert all(account.freshness(m.id).has_vector for m in memories)


def test_an_index_of_another_account_is_found_and_healed(opened, root, index):
    account, other = opened(embedder=False), opened(account="User02", embedder=False)
    filled(account)
    filled(other, ["something else entirely", "อื่น ๆ", "x", "y", "z"])
    for handle in (account, other):
        handle.catch_up()
        handle._worker.stop()  # nobody looks while the files change
    shutil.rmtree(index)
    shutil.copytree(root / "+user02" / "index" / "recall", index)
    assert account.check().problems == ("index/recall was made from another version 5",)
    assert account.repair()
    assert account.recall("แมว")[0].memory.text == TEXTS[1]


def test_a_check_changes_nothing(opened, index):
    account = opened(embedder=Fragile())
    filled(account)
    account.catch_up()
    (index / "vectors-fragile" / "bits.bin").unlink()
    before = {p: p.read_bytes() for p in index.rglob("*") if p.is_file()}
    assert not account.check()
    assert {p: p.read_bytes() for p in index.rglob("*") if p.is_file()} == before
    assert account.repair()


def test_after_a_change_of_the_embedder_the_old_vectors_serve_until_the_new_ones_are_made(opened):
    assert is_offline_installed()
    old = opened()
    old.remember("our puppy loves long walks in the park")
    old.remember("the invoice is due on Friday")
    old.remember("ลูกหมาชอบเดินเล่นในสวน")
    old.catch_up()
    embedder = Fragile()
    embedder.is_out = True
    account = opened(embedder=embedder)
    hits = account.recall("dog")
    assert {h.memory.text for h in hits[:2]} == {
        "our puppy loves long walks in the park",
        "ลูกหมาชอบเดินเล่นในสวน",
    }
    assert hits.notes == ("3 passages have no vector yet; use-multilingual-3 serves meanwhile",)


@pytest.mark.parametrize("by", [-1, 1])
def test_an_index_that_another_octavo_made_is_made_anew(root, index, monkeypatch, by):
    monkeypatch.setattr(Units, "FORMAT", Units.FORMAT + by)
    with octavo.open(root, "User01", embedder=False) as account:
        account.remember("แมวชอบนอนบนโซฟา")
        account.catch_up()
    monkeypatch.undo()
    with octavo.open(root, "User01", embedder=False) as account:
        assert [hit.memory.text for hit in account.recall("แมวชอบนอนที่ไหน")] == ["แมวชอบนอนบนโซฟา"]
        account.catch_up()
        assert account.check().problems == ()
    assert open_units(current(index)).manifest.rows == 1


def test_threads_that_catch_up_together_try_a_passage_once(opened, clock, monkeypatch):
    embed, embedder = Fragile.embed, Fragile(TEXTS[0])
    monkeypatch.setattr(Fragile, "embed", lambda self, texts: time.sleep(0.05) or embed(self, texts))
    account = opened(embedder=embedder, clock=clock)
    filled(account)
    together = [threading.Thread(target=account.catch_up) for _ in range(4)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert sum(asked == [TEXTS[0]] for asked in embedder.asked) == 1
