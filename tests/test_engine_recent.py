"""What is above the index is read and analysed once, and never answers for what is there no more."""

from __future__ import annotations

import random
import threading

import pytest

from octavo.models.embedders import CallableEmbedder
from octavo.storage import batches
from octavo.storage.columns import writing
from octavo.storage.state_db import StateDb

THINGS = ["harbour", "violin", "mango", "winter", "กาแฟ", "แมว", "train", "garden"]


class Work:
    """How many texts were analysed for the index's rows, and how many rows the state handed out.

    What the account's background thread does meanwhile is not counted.
    """

    def __init__(self, monkeypatch):
        self.texts = self.rows = 0
        analysed, rows = batches.analysed, StateDb.rows

        def counted(texts):
            self.texts += len(texts) * self.is_asking
            return analysed(texts)

        def handed_out(state, *asked):
            found = rows(state, *asked)
            self.rows += len(found) * self.is_asking
            return found

        monkeypatch.setattr(batches, "analysed", counted)
        monkeypatch.setattr(StateDb, "rows", handed_out)

    @property
    def is_asking(self):
        return threading.current_thread() is threading.main_thread()

    def of(self, act):
        """What one act costs: texts and rows."""
        self.texts = self.rows = 0
        act()
        return self.texts, self.rows


@pytest.fixture
def still(opened, root):
    """An account whose index nobody writes on: whoever would waits until the test is over."""
    account = opened(embedder=False)
    account.remember_many([{"text": f"note {n} about the {THINGS[n % 8]} of day {n}"} for n in range(80)])
    account.catch_up()
    (manifest,) = root.glob("*/index/recall/manifest.json")
    with writing(manifest.parent):
        yield account


def test_a_question_after_a_write_reads_and_analyses_what_was_written_and_no_more(still, monkeypatch):
    work = Work(monkeypatch)
    ask = lambda: still.recall("violin of day 9")  # noqa: E731
    ask()
    texts, usual = work.of(ask)
    assert texts == 0
    costs = []
    for n in range(40):
        still.remember(f"a later note {n} about tea")
        costs.append(work.of(ask))
        texts, rows = work.of(ask)  # a second question costs what one on a current index does
        assert texts == 0
        assert rows <= usual + 3
    assert {texts for texts, _ in costs} == {1}
    assert max(rows for _, rows in costs) <= usual + 6  # whatever came before this write


def test_the_turns_of_a_sandbox_are_analysed_once(still, monkeypatch):
    work = Work(monkeypatch)
    sandbox = still.sandbox()
    for n in range(20):
        sandbox.turn("user", f"I bought {n} mangoes at the harbour.")
        texts, _ = work.of(lambda: sandbox.recall("mangoes"))
        assert texts <= 2  # the pair that the turn ends, or begins
        assert work.of(lambda: sandbox.recall("mangoes"))[0] == 0
        still.recall("mangoes")
    sandbox.discard()


def test_what_is_written_is_embedded_once_whatever_was_asked_before(opened, root):
    texts = []
    name, embed = (
        "counting",
        lambda given: [texts.append(text) or [len(text), 1.0, 2.0, 3.0] for text in given],
    )
    account = opened(embedder=CallableEmbedder(name=name, dimension=4, function=embed))
    account.remember("note 0 about the harbour")
    account.catch_up()
    (manifest,) = root.glob("*/index/recall/manifest.json")
    with writing(manifest.parent):  # nobody indexes what comes now
        for n in range(1, 9):
            account.remember(f"note {n} about the harbour")
            for _ in range(2):
                assert len(account.recall("the harbour", k=20)) == n + 1
    assert [texts.count(f"note {n} about the harbour") for n in range(9)] == [1] * 9


@pytest.mark.parametrize(("missing", "embedded"), [(20, 21), (200, 1)])
def test_a_question_embeds_what_little_is_missing_and_leaves_a_pile_to_the_background(
    opened, missing, embedded
):
    texts = []

    def embed(given):
        if threading.current_thread() is threading.main_thread():
            texts.extend(given)
        return [[len(text), 1.0, 2.0, 3.0] for text in given]

    before = opened(embedder=False)
    before.remember_many([{"text": f"note {n} about the {THINGS[n % 8]}"} for n in range(missing)])
    before.catch_up()
    before.close()
    account = opened(embedder=CallableEmbedder(name="counting", dimension=4, function=embed))
    assert account.recall("harbour")
    assert len(texts) == embedded
    assert account.wait(60)
    assert not account._indexing.missing()


def test_what_another_handle_wrote_is_read_as_ones_own_is(still, opened, monkeypatch):
    still.recall("violin")
    other = opened("agent:other", embedder=False)
    other.remember("the violin is in the attic")
    work = Work(monkeypatch)
    assert work.of(lambda: still.recall("attic"))[0] == 1
    assert still.recall("attic")[0].memory.text == "the violin is in the attic"


def seen(hits):
    """Which hits there are; their scores move a little when the background indexes between two questions."""
    return {(hit.memory.id, hit.memory.rev, hit.turn) for hit in hits}


def talk(account, thing, step):
    with account.sandbox() as sandbox:
        sandbox.turn("Mali Srisuk", f"Hi Ann! The {thing} was fine on day {step}.")
        sandbox.turn("Anna", "Thanks, Mali. Always mention the weather when I ask about trains.")


ACTS = (
    lambda one, two, id_, thing, step: one.remember(f"note {step} about the {thing} of {step}"),
    lambda one, two, id_, thing, step: two.remember(f"note {step} about a {thing}"),
    lambda one, two, id_, thing, step: talk(one, thing, step),
    lambda one, two, id_, thing, step: talk(two, thing, step),
    lambda one, two, id_, thing, step: one.forget(id_),
    lambda one, two, id_, thing, step: two.redact(id_, reason="asked for"),
    lambda one, two, id_, thing, step: one.restore(max(1, one.version - step % 3)),
    lambda one, two, id_, thing, step: one.catch_up(),
    lambda one, two, id_, thing, step: two.catch_up(),
    lambda one, two, id_, thing, step: two.reindex(),
    lambda one, two, id_, thing, step: one.alias(f"Aunt{step}", "Anna"),
    lambda one, two, id_, thing, step: two.remember(f"I prefer the {thing} when I travel"),
)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_an_old_handle_answers_as_a_new_one_does(opened, seed):
    """Ends, redactions, restores, orders, names, other handles and indexing come between the questions."""
    draw = random.Random(seed)
    old, other = opened(embedder=False), opened("human:other", embedder=False)
    for step in range(24):
        live = [memory.id for memory in old.memories()]
        act = draw.choice(ACTS) if live else ACTS[0]
        act(old, other, draw.choice(live or [""]), draw.choice(THINGS), step)
        new = opened("human:new", embedder=False)
        for question in (f"what about the {draw.choice(THINGS)}?", "what did Mali say of trains?", "แมว"):
            hits, again = (one.recall(question, unit="turn", k=99) for one in (old, new))
            assert seen(hits) == seen(again)
            assert hits.orders == again.orders
            past = max(1, old.version - 2)
            assert seen(old.at(past).recall(question, k=99)) == seen(new.at(past).recall(question, k=99))
        new.close()
