"""Recall: right at once, right after rebuild and restart, exact in scope and version, and it says why."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import octavo
from octavo.engine.embedding import Embedding
from octavo.errors import BadInput, BadVector, ModelFailed, OutOfScope
from octavo.models.embedders import CallableEmbedder
from octavo.storage.columns import writing
from octavo.storage.index import Index

WORDS = ["mango", "harbour", "violin", "winter", "Anna", "curry", "train", "กาแฟ", "ทะเล", "แมว"]


def letters(texts):
    """A small deterministic embedder: counts of letters."""
    return [[float(text.lower().count(c)) + 0.01 for c in "abcdefghijklmnopก"] for text in texts]


LETTERS = CallableEmbedder(name="letters", dimension=17, function=letters)


def found(reader, query, **more):
    return [hit.memory.text for hit in reader.recall(query, **more)]


@pytest.fixture
def words(opened):
    """An account that recalls by words alone."""
    return opened(embedder=False)


@pytest.mark.parametrize("index_first", [False, True])
def test_what_was_written_is_found_at_once_and_after_rebuild_and_restart(opened, words, index_first):
    if index_first:
        words.catch_up()
    words.remember("plays the violin every Sunday")
    words.remember("แมวชอบนอนบนโซฟา")
    with words.sandbox() as sandbox:
        sandbox.turn("user", "The harbour was full of lights last winter.")
    for account in (words, opened(embedder=False)):
        assert found(account, "violin")[0] == "plays the violin every Sunday"
        assert found(account, "แมว")[0] == "แมวชอบนอนบนโซฟา"
        assert account.recall("harbour lights")[0].turn == 0
        account.reindex()
        assert found(account, "violin")[0] == "plays the violin every Sunday"
        assert account.recall("harbour lights")[0].text.startswith("The harbour")


@pytest.mark.parametrize("indexed", [False, True])
def test_updates_forgets_redactions_and_restores_are_right_at_once_and_after_a_rebuild(words, indexed):
    def settle():
        if indexed:
            words.catch_up()

    cat = words.remember("the cat is called Mali").memory
    words.remember("the dog is called Bruno")
    settle()
    words.revise(cat.id, text="the parrot is called Mali")
    settle()
    assert "the cat is called Mali" not in found(words, "cat Mali")
    assert found(words, "parrot Mali")[0] == "the parrot is called Mali"
    assert found(words.at(2), "cat Mali")[0] == "the cat is called Mali"
    words.restore(2)
    settle()
    assert found(words, "cat Mali")[0] == "the cat is called Mali"
    words.forget(cat.id)
    settle()
    assert found(words, "Mali") == []
    words.restore(2)
    words.redact(cat.id, reason="asked to")
    for _ in range(2):
        assert found(words, "cat called Mali") == ["the dog is called Bruno"]
        assert found(words.at(2), "cat called Mali") == ["the dog is called Bruno"]
        words.reindex()


def test_a_sandbox_finds_its_own_buffer_and_nobody_elses(words):
    words.remember("the train leaves at nine")
    sandbox, other = words.sandbox(), words.sandbox()
    sandbox.turn("user", "The train was late again.")
    sandbox.remember("hates late trains")
    assert set(found(sandbox, "late train")) == {
        "user: The train was late again.",
        "hates late trains",
        "the train leaves at nine",
    }
    assert found(other, "late train") == found(words, "late train") == ["the train leaves at nine"]


def test_a_turn_is_named_and_two_turns_of_one_episode_can_be_two_hits(words):
    with words.sandbox() as sandbox:
        sandbox.turn("user", "I love mango ice cream.")
        sandbox.turn("assistant", "Mango ice cream is lovely indeed.")
    assert len(words.recall("mango ice cream")) == 1
    turns = words.recall("mango ice cream", unit="turn")
    assert {(hit.turn, hit.text) for hit in turns} == {
        (0, "I love mango ice cream."),
        (1, "Mango ice cream is lovely indeed."),
    }


FRUIT = CallableEmbedder(
    name="fruit",
    dimension=8,
    function=lambda texts: [[3.0] * 6 + [float("mango" in t), float("มะม่วง" in t)] for t in texts],
)


@pytest.mark.parametrize("embedder", [False, FRUIT], ids=["by words", "by meaning too"])
@pytest.mark.parametrize("indexed", [False, True])
def test_an_episode_of_many_turns_takes_no_other_memorys_place(opened, embedder, indexed):
    account = opened(embedder=embedder)
    with account.sandbox() as sandbox:
        for n in range(150):
            sandbox.turn("user", f"mango mango {n}")
            sandbox.turn("user", f"มะม่วงมะม่วง {n}")
    shops = [f"the {word} shop sells one mango on Sundays" for word in WORDS[1:7]]
    for text in [*shops, "ร้านริมทะเลขายมะม่วงวันอาทิตย์"]:
        account.remember(text)
    if indexed:
        account.catch_up()
    assert [hit.memory.kind for hit in account.recall("mango", k=5)].count("fact") == 4
    assert set(shops) < set(found(account, "mango", k=20))
    assert "ร้านริมทะเลขายมะม่วงวันอาทิตย์" in found(account, "มะม่วง", k=5)
    assert len({hit.turn for hit in account.recall("mango", k=40, unit="turn")}) > 30


@pytest.mark.parametrize("indexed", [False, True])
def test_fewer_hits_are_the_first_of_more_whatever_their_age_salience_and_kind(words, indexed):
    draw, start = np.random.default_rng(5), datetime(2026, 1, 1, tzinfo=UTC)
    for n in range(120):
        other = ["".join(draw.choice(list("aeiouklmnprst"), 7)) for _ in range(5)]
        said = " ".join(["mango", *draw.choice(WORDS, 2), *other])
        at = start + timedelta(days=int(draw.integers(0, 300)))
        words.remember(said, at=at, kind=("fact", "canon")[n % 2], salience=float(draw.uniform()))
    if indexed:
        words.catch_up()
    for query in ("mango", "mango violin กาแฟ", "mango winter curry"):
        many = found(words, query, k=60)
        assert len(many) == 60
        assert [found(words, query, k=k) for k in (1, 3, 10, 25)] == [many[:k] for k in (1, 3, 10, 25)]


def test_filters_narrow_inside_the_search(words):
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for n in range(30):
        words.remember(
            f"mango note {WORDS[n % 7]} {n}", at=start.replace(day=n + 1), tags=["even"] if n % 2 == 0 else []
        )
    words.remember("mango is the canon", kind="canon", category="rule")
    for _ in range(2):
        assert len(words.recall("mango", k=50, tags=["even"])) == 15
        assert found(words, "mango", kinds="canon") == ["mango is the canon"]
        assert found(words, "mango", category="rule") == ["mango is the canon"]
        assert len(words.recall("mango", k=50, since=start.replace(day=10), until=start.replace(day=12))) == 3
        assert words.recall("mango", layers="procedural") == []
        words.catch_up()


def test_a_bound_handle_recalls_shared_and_its_own_only(opened, words):
    words.remember("elysia hides the mango", scope="elysia")
    words.remember("everybody knows the mango")
    words.remember("orion keeps a mango", scope="orion")
    orion = opened("agent:orion", scope="orion", embedder=False)
    for _ in range(2):
        assert sorted(found(orion, "mango")) == ["everybody knows the mango", "orion keeps a mango"]
        assert sorted(found(words, "mango", scope="elysia")) == [
            "elysia hides the mango",
            "everybody knows the mango",
        ]
        words.catch_up()
    with pytest.raises(OutOfScope):
        orion.recall("mango", scope="elysia")
    with pytest.raises(BadInput):
        orion.recall("mango", scope="*")


def test_bad_requests_are_typed_errors(words):
    for bad in ({"unit": "page"}, {"strategy": "magic"}, {"k": -1}, {"streams": ["rumour"]}, {"kinds": "x"}):
        with pytest.raises(BadInput):
            words.recall("mango", **bad)
    assert words.recall("   ") == []
    assert words.recall("mango", k=0) == []


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_scope_and_version_are_exact_and_k_is_never_exceeded(tmp_path_factory, data):
    account = octavo.open(tmp_path_factory.mktemp("p"), actor="human:you", embedder=False)
    sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
    alive: list[str] = []
    written: set[str] = set()
    members = [set()]
    for n in range(data.draw(st.integers(1, 8))):
        act = data.draw(st.sampled_from(["add", "add", "revise", "forget", "index"]))
        if act == "index":
            account.catch_up()
            continue
        if act == "add" or not alive:
            kind = data.draw(st.sampled_from(["register", "skill"]))
            scope = data.draw(st.sampled_from(["shared", "orion", "elysia"]))
            verdict = account.remember(f"{data.draw(sentence)} x{n}", kind=kind, topic=f"t{n}", scope=scope)
            alive.append(verdict.memory.id)
            written.add(scope)
        elif act == "revise":
            account.revise(data.draw(st.sampled_from(alive)), text=f"{data.draw(sentence)} y{n}")
        else:
            account.forget(alive.pop(data.draw(st.integers(0, len(alive) - 1))))
        members.append({(m.id, m.text) for m in account.memories()})
    version = data.draw(st.integers(0, account.version))
    query, k = data.draw(sentence), data.draw(st.integers(1, 5))
    scopes = data.draw(st.sampled_from([None, *sorted(written - {"shared"})]))
    snapshot = account.at(version)
    hits = snapshot.recall(query, k=k, scope=scopes)
    assert len(hits) <= k
    assert {(h.memory.id, h.memory.text) for h in hits} <= members[version]
    assert all(scopes is None or h.memory.scope in ("shared", scopes) for h in hits)
    for hit in hits:
        assert set(query.split()) & set(hit.memory.text.split())
    if not hits:
        seen = snapshot.memories(scope=None if scopes is None else ["shared", scopes])
        assert not [m for m in seen if set(query.split()) & set(m.text.split())]
    before = [(h.memory.id, round(h.score, 5)) for h in account.recall(query, k=10)]
    account.reindex()
    assert [(h.memory.id, round(h.score, 5)) for h in account.recall(query, k=10)] == before
    account.close()


def test_a_snapshot_ranks_like_an_account_that_stopped_there(tmp_path):
    early = octavo.open(tmp_path / "early", embedder=False)
    late = octavo.open(tmp_path / "late", embedder=False)
    for n, word in enumerate(WORDS):
        for account in (early, late):
            account.remember(f"{word} mango {n}", kind="register", topic=str(n), key=str(n))
    for n in range(20):
        late.remember(f"later mango {n} {WORDS[n % 7]}", kind="register", topic=f"late{n}")
    late.catch_up()

    def ranking(reader):
        hits = reader.recall("mango harbour", k=20)
        return sorted((-round(h.score, 4), h.memory.topic) for h in hits)

    assert ranking(late.at(10)) == ranking(early)
    assert len(ranking(early)) == 10


def test_meaning_finds_what_words_do_not_and_words_alone_say_so(opened, account):
    account.remember("our puppy loves long walks in the park")
    account.remember("the invoice is due on Friday")
    account.remember("ลูกหมาชอบเดินเล่นในสวน")
    hits = account.recall("dog")
    assert {h.memory.text for h in hits[:2]} == {
        "our puppy loves long walks in the park",
        "ลูกหมาชอบเดินเล่นในสวน",
    }
    assert hits[0].parts["meaning"] > 0
    plain = opened(embedder=False).recall("invoice")
    assert any("words alone" in note for note in plain.notes)


def test_one_of_the_first_memories_is_found_by_its_meaning_after_it_was_indexed_as_before(opened):
    account = opened(embedder=None)
    account.remember("I moved to Chiang Mai last week.")
    before = account.recall("where do I live?")
    account.catch_up()
    (hit,) = account.recall("where do I live?")
    assert hit.parts["meaning"] == pytest.approx(before[0].parts["meaning"], abs=1e-3)
    account.remember("likes tea")
    account.catch_up()
    assert "I moved to Chiang Mai last week." in found(account, "where do I live?")


def test_a_failing_embedder_costs_its_stream_and_not_the_answer(opened):
    def fail(texts):
        raise ModelFailed("the model is out")

    account = opened(embedder=CallableEmbedder(name="broken", dimension=3, function=fail))
    account.remember("plays the violin")
    hits = account.recall("violin")
    assert [h.memory.text for h in hits] == ["plays the violin"]
    assert any("the model is out" in note for note in hits.notes)


def test_a_changed_embedder_is_indexed_under_its_own_name(opened, root):
    first = opened(embedder=LETTERS)
    first.remember("abba")
    first.remember("the cafe")
    assert found(first, "abab", k=1) == ["abba"]
    first.catch_up()
    second = opened(embedder=CallableEmbedder(name="other", dimension=17, function=letters))
    assert found(second, "abab", k=1) == ["abba"]
    second.catch_up()
    folders = {p.name for p in (root / "+user01" / "index" / "recall").glob("vectors-*")}
    assert folders == {"vectors-letters", "vectors-other"}
    assert found(opened(embedder=LETTERS), "abab", k=1) == ["abba"]


def test_who_asks_what_is_indexed_does_not_wait_for_a_writer_of_the_index(opened, root):
    account = opened(embedder=LETTERS)
    account.remember("แมวชอบนอนบนโซฟา")
    account.catch_up()
    (lock,) = root.glob("*/index/recall/lock")
    with writing(lock.parent):  # as another process holds it while it embeds
        assert found(account, "แมว") == ["แมวชอบนอนบนโซฟา"]


def test_a_question_waits_for_nobody_who_indexes_a_pile_already(opened, root):
    account, hits = opened(embedder=LETTERS), []
    account.remember("แมวชอบนอนบนโซฟา")
    account.catch_up()
    (lock,) = root.glob("*/index/recall/lock")
    asking = threading.Thread(target=lambda: hits.append(account.recall("แมว boat 7", k=20)), daemon=True)
    with writing(lock.parent):  # as whoever is in the middle of a pass holds it
        account.remember_many([{"text": f"note {n} about boat {n}"} for n in range(100)])
        asking.start()
        asking.join(60)
        assert not asking.is_alive()
    texts = [hit.memory.text for hit in hits[0]]
    assert {"แมวชอบนอนบนโซฟา", "note 7 about boat 7"} <= set(texts)
    assert "100 new memories are compared by words only" in hits[0].notes


def test_a_question_leaves_a_pile_to_the_background_that_is_about_to_begin(opened):
    account = opened(embedder=LETTERS)
    account.remember("แมวชอบนอนบนโซฟา")
    account.catch_up()
    account.wait()
    account._worker._delay_seconds = 60  # in which it waits for more to do at once
    account.remember_many([{"text": f"note {n} about boat {n}"} for n in range(100)])
    hits = account.recall("แมว boat 7", k=20)
    assert {"แมวชอบนอนบนโซฟา", "note 7 about boat 7"} <= {hit.memory.text for hit in hits}
    assert "100 new memories are compared by words only" in hits.notes
    assert account._indexing.watermark().version < account.version


def test_who_asks_while_a_pass_ends_finds_what_there_was_and_what_is_new(words, monkeypatch):
    words.remember("a boat in the harbour")
    words.catch_up()
    words.recall("boat")
    warm, seen = Index.warm, []

    def asked_meanwhile(index, units):
        seen.append((words._indexing.watermark(), sorted(found(words, "boat"))))
        warm(index, units)

    monkeypatch.setattr(Index, "warm", asked_meanwhile)
    mark = words._indexing.watermark()
    words.remember("a boat at sea")
    words.catch_up()
    assert seen[0] == (mark, ["a boat at sea", "a boat in the harbour"])
    assert words._indexing.watermark().version == words.version
    assert words._indexing.index.units().searched is not None  # nobody who asks now opens it


def test_words_and_their_vectors_are_seen_together(opened, monkeypatch):
    account, seen, keep = opened(embedder=LETTERS), [], Embedding._keep
    account.remember("แมวชอบนอนบนโซฟา")
    account.recall("แมว")
    account.catch_up()
    account.wait()
    mark = account._indexing.watermark()

    def told_meanwhile(embedding, *made):
        seen.append((account._indexing.watermark(), account._indexing.missing()))
        keep(embedding, *made)

    monkeypatch.setattr(Embedding, "_keep", told_meanwhile)
    account.remember("a boat at sea")
    assert account.wait(60)
    assert seen == [(mark, 0)]
    assert account._indexing.watermark().version == account.version
    assert account._indexing.missing() == 0


def test_words_are_seen_though_the_model_is_out(opened, monkeypatch):
    def embed(texts):
        if is_out:
            raise ModelFailed("the model is out")
        return letters(texts)

    monkeypatch.setattr("octavo.engine.worker._BACKOFF_SECONDS", 0.01)
    is_out = []
    account = opened(embedder=CallableEmbedder(name="letters", dimension=17, function=embed))
    account.remember("แมวชอบนอนบนโซฟา")
    account.recall("แมว")
    account.catch_up()
    account.wait()
    is_out.append(True)
    account.remember("a boat at sea")
    assert account.wait(60)
    assert account._indexing.watermark().version == account.version
    assert account._indexing.missing() == 1
    assert found(account, "boat") == ["a boat at sea"]


def test_an_index_that_was_written_on_while_a_question_waited_is_not_thrown_away(opened, root):
    writer = opened(embedder=False)
    writer.remember_many([{"text": f"note {n} about boat {n}", "kind": "episode"} for n in range(2_100)])
    writer.catch_up()
    waiting = []

    def embed(texts):
        while waiting:  # while the question is embedded, so much is indexed that the terms are counted anew
            writer.remember_many([{"text": f"later {n}", "kind": "episode"} for n in range(waiting.pop())])
            writer.catch_up()
        return [[1.0, 0.0]] * len(texts)

    reader = opened(embedder=CallableEmbedder(name="waits", dimension=2, function=embed))
    reader.catch_up()
    waiting.append(2_100)
    (manifest,) = root.glob("*/index/recall/manifest.json")
    assert found(reader, "boat 7", k=1) == ["user: note 7 about boat 7"]
    assert not waiting
    assert manifest.exists()


def test_within_a_budget_more_short_turns_come_than_long_ones(opened):
    account = opened(embedder=False)
    with account.sandbox() as sandbox:
        for n in range(40):
            sandbox.turn("user", f"boat {n}")
            sandbox.turn("assistant", f"A ship {n} " + "sailed far over the quiet sea and back again " * 6)
    account.catch_up()

    def count(question, **more):
        return len(account.recall(question, unit="turn", **more))

    assert (count("boat"), count("ship")) == (10, 10)
    short, long = count("boat", budget=400), count("ship", budget=400)
    assert short > 20
    assert long < 10
    assert count("boat", budget=400, k=7) == 7
    assert count("boat", budget=0) == 0


def test_vectors_handed_in_are_kept_in_the_ledger_and_wrong_ones_refused(opened):
    account = opened(
        embedder=CallableEmbedder(name="mine", dimension=2, function=lambda t: [[1.0, 0.0]] * len(t))
    )
    account.remember("north star", vector=("mine", [0.0, 1.0]))
    account.remember("south cross")
    for _ in range(2):
        assert found(account, "zzz", vector=[0.0, 1.0], k=1) == ["north star"]
        account.reindex()
    for bad in ([1.0], [1.0, float("nan")], [float("inf"), 0.0], "text"):
        with pytest.raises(BadVector):
            account.remember("broken compass", vector=("mine", bad))
        with pytest.raises(BadVector):
            account.recall("north", vector=bad)


def test_feedback_moves_a_memory_by_fold_bounded_and_reproducibly(opened, words):
    good = words.remember("a mango shop stands near our river").memory
    bad = words.remember("they sell one mango at this lake shop").memory
    with words.sandbox() as sandbox:
        for _ in range(4):
            sandbox.use(bad.id, feedback=-1)
            sandbox.use(good.id, feedback=1)
    assert found(words, "mango shop")[0] == good.text
    again = opened(embedder=False)
    again.repair()
    same = [[round(h.score, 6) for h in reader.recall("mango shop")] for reader in (again, words)]
    assert same[0] == same[1]
    assert all(abs(h.parts.get("salience", 0)) <= 0.05 for h in words.recall("mango shop"))


def test_of_two_that_contradict_the_newer_comes_first_and_the_older_is_marked(words):
    words.remember("Alice likes green tea in the morning")
    words.remember("Alice does not like green tea in the morning")
    hits = words.recall("does Alice like green tea")
    assert [h.memory.text for h in hits] == [
        "Alice does not like green tea in the morning",
        "Alice likes green tea in the morning",
    ]
    assert hits[1].replaced.newer == hits[0].memory.id
    assert any("replaced by" in note for note in hits[1].notes)
    assert not hits[0].notes


def test_who_asks_about_themselves_finds_what_they_told_in_other_words(words):
    said = {
        "where do I live?": "I moved to Bangkok last week and the flat is tiny.",
        "what's my job?": "Joined Acme as a data engineer on Monday!",
        "what's my dog called?": "We got a puppy yesterday, so we named her Toffee.",
        "ฉันอยู่ที่ไหน": "เพิ่งย้ายมาเชียงใหม่เมื่อเดือนก่อน",
    }
    small = ("Work was long.", "The dog next door barked.", "My sister lives in Leeds.", "ร้านนี้อยู่ที่ไหน")
    with words.sandbox() as sandbox:
        for text in (*said.values(), "We had soup at the harbour.", *small):
            sandbox.turn("user", text)
            sandbox.turn("assistant", "Noted.")
    for question, told in said.items():
        assert told in [hit.text for hit in words.recall(question, k=3, unit="turn")]


def test_what_is_linked_to_a_hit_comes_too(words):
    place = words.remember("the harbour of Rayong").memory
    words.remember("where grandmother was born", links={"about": place.id})
    hits = words.recall("harbour Rayong")
    assert [h.memory.text for h in hits] == ["the harbour of Rayong", "where grandmother was born"]
    assert hits[1].parts["links"] > 0


def test_explain_says_why_it_came_and_why_it_did_not(words):
    tea = words.remember("likes green tea").memory
    car = words.remember("drives an old car").memory
    state = None
    with words.sandbox() as sandbox:
        state = sandbox.update_state("ire_state", {"calm": 1}).memory
    assert "hit 1" in words.explain("green tea", tea.id)
    assert "did not come" in words.explain("green tea", car.id)
    assert "not searched" in words.explain("green tea", state.id)
    assert "not among" in words.explain("green tea", "nothere")
    (hit,) = words.recall("green tea")
    assert "words" in hit.why
    assert (hit.version, hit.memory.actor) == (1, "human:you")


def test_layered_recall_leaves_a_trail(opened):
    policy = octavo.Policy(compression=octavo.domain.compression.CompressionPolicy(mode="immediate"))
    account = opened(policy=policy, embedder=False)
    for n in range(8):
        with account.sandbox() as sandbox:
            sandbox.turn("user", f"I planted {n} mango trees behind the house with Anna.")
    trail = account.recall("mango trees Anna", strategy="layered").trail
    assert [step.layer for step in trail][:2] == ["sphere", "core"]
    detail = account.recall("planted 5 mango trees")
    assert "5 mango" in detail[0].text
    assert detail[0].parts["abstraction"] > 0


def test_damaged_or_deleted_index_files_heal_and_never_answer_wrongly(opened, words, root):
    for n, word in enumerate(WORDS):
        words.remember(f"{word} story number {n}", kind="register", topic=str(n))
    words.catch_up()
    expected = {word: found(words, word) for word in WORDS}
    words.close()
    index = root / "+user01" / "index" / "recall"
    files = sorted(p.relative_to(index) for p in index.rglob("*") if p.is_file() and p.stat().st_size)
    for victim in files:
        for harm in ("delete", "flip", "truncate"):
            copy = index.with_name("copy")
            shutil.copytree(index, copy)
            _harm(index / victim, harm)
            with octavo.open(root, "User01", embedder=False) as account:
                assert {word: found(account, word) for word in WORDS} == expected, (victim, harm)
                account.remember("something about Saturn", kind="register", topic="new")
                assert found(account, "Saturn") == ["something about Saturn"]
            shutil.rmtree(index)
            copy.rename(index)


def _harm(path, harm):
    data = path.read_bytes()
    if harm == "delete":
        path.unlink()
    elif harm == "truncate":
        path.write_bytes(data[: len(data) // 2])
    else:
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :])


@pytest.mark.slow
def test_killed_while_indexing_the_next_one_finds_everything(opened, words, root):
    for n in range(40):
        words.remember_many(
            {"text": f"{WORDS[i % 10]} entry {n} {i}", "kind": "register", "topic": f"{n}-{i}"}
            for i in range(25)
        )
    script = "import octavo, sys; octavo.open(sys.argv[1], 'User01', embedder=False).reindex()"
    for round_ in range(8):
        process = subprocess.Popen([sys.executable, "-c", script, root])
        time.sleep(0.15 + 0.07 * round_)
        process.send_signal(signal.SIGKILL)
        process.wait()
        account = opened(embedder=False)
        assert len(account.recall("violin", k=200)) == 120
        assert found(account, "entry 39 24", k=1) == ["Anna entry 39 24"]


@pytest.mark.slow
def test_two_processes_recall_while_a_third_consolidates(opened, words, root):
    words.remember("the anchor memory about Saturn")
    writer = (
        "import octavo, sys\n"
        "a = octavo.open(sys.argv[1], 'User01', embedder=False)\n"
        "for n in range(40):\n"
        "    with a.sandbox() as s:\n"
        "        s.turn('user', f'mango number {n}')\n"
        "    a.catch_up()\n"
    )
    reader = (
        "import octavo, sys\n"
        "a = octavo.open(sys.argv[1], 'User01', embedder=False)\n"
        "last = 0\n"
        "for n in range(60):\n"
        "    hits = a.recall('mango', k=100)\n"
        "    assert len(hits) >= last, (len(hits), last)\n"
        "    last = len(hits)\n"
        "    assert a.recall('Saturn')[0].memory.text == 'the anchor memory about Saturn'\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, root]) for code in (writer, reader, reader)]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    assert len(words.recall("mango", k=100)) == 40
    assert words.check()


def test_a_courtesy_beside_an_answer_is_no_answer_but_a_short_answer_of_a_person_is(opened):
    account = opened()
    for told, courtesy in (
        ("We got a cat, named him Pretzel.", "Adorable!"),
        ("My sister bakes on Sundays.", "Good decision."),
        ("แมวของผมชื่อส้ม", "น่ารักมาก"),
    ):
        with account.sandbox() as sandbox:
            sandbox.turn("user", told)
            sandbox.turn("assistant", courtesy)
    with account.sandbox() as sandbox:
        sandbox.turn("assistant", "Which colour shall the boat have?")
        sandbox.turn("user", "Blue.")
    account.catch_up()
    hits = account.recall("what is my cat called?", k=3, unit="turn")
    assert hits[0].text.startswith("We got a cat")
    assert not {"Adorable!", "Good decision.", "น่ารักมาก"} & {hit.text for hit in hits}
    assert "Blue." in [hit.text for hit in account.recall("which colour has the boat?", k=2, unit="turn")]
