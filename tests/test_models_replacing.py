"""Corrections by words and meaning: a newer fact that shares no word takes the older one's place."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from octavo.domain.corrections import Fact, arrange
from octavo.domain.readings import read
from octavo.domain.replacing import WEIGHTS, features
from octavo.models.embedders import offline_embedder
from octavo.models.replacing import Scorer, row_of

START = datetime(2026, 1, 5, tzinfo=UTC)
CORPORA = Path(__file__).with_name("corpora")


def arranged(question: str, *texts: str, fits: float = 0.1) -> tuple[list[str], list[str]]:
    """The order of facts a month apart, each a little less fitting, and those that are told as replaced."""
    vectors = np.asarray(offline_embedder().embed([question, *texts]))
    facts = [
        Fact(id=f"m{n}", text=text, at=START + timedelta(days=30 * n), version=n + 1, relevance=1 - n * fits)
        for n, text in enumerate(texts)
    ]
    known = {fact.id: vector for fact, vector in zip(facts, vectors[1:], strict=True)}
    order, replaced = arrange(question, facts, Scorer(vectors[0], known))
    return order, [one.older for one in replaced]


@pytest.mark.parametrize(
    "question", ["who is Maeve?", "what does Maeve do?", "does Maeve drink?", "what is Maeve training for?"]
)
def test_what_does_not_answer_the_question_is_replaced_by_nothing(question):
    texts = ("Maeve had knee surgery on 9 April", "Maeve works four days a week since September")
    assert arranged(question, *texts)[1] == []


@pytest.mark.parametrize(
    ("name", "newer", "kept"), [("talk", 0.57, 0.95), ("verdict", 0.8, 0.85), ("outside", 0.88, 0.75)]
)
def test_newer_facts_come_first_as_people_talk_and_others_stay_where_they_are(name, newer, kept):
    lines = (CORPORA / f"corrections_{name}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    right: dict[str, list[bool]] = {"correction": [], "control": []}
    for row in rows:
        if row["kind"] in right:
            order, _ = arranged(row["question"], row["older"], row["newer"])
            right[row["kind"]].append(order[0] == ("m1" if row["want"] == "newer" else "m0"))
    shares = {kind: sum(some) / len(some) for kind, some in right.items()}
    assert shares["correction"] >= newer
    assert shares["control"] >= kept


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("when does the pottery class begin?", "The pottery class begins at seven"),
        ("what is the upload limit of the gallery?", "Upload limit of the gallery: 20 MB"),
        ("who waters the plants?", "Ingrid waters the plants on Sundays"),
        ("how long is the warranty on the boiler?", "The boiler has a warranty of five years"),
        ("แมวกินอาหารยี่ห้ออะไร", "แมวกินอาหารยี่ห้อมีโอ"),
        ("what does the choir sing at Easter?", "The choir sings Duruflé at Easter"),
    ],
)
def test_what_has_nothing_to_do_with_a_question_never_comes_before_its_answer(question, answer):
    others = [
        "Nightly copies go to the box in the cellar", "Leo collects stamps from Peru",
        "The printer jams when the paper is damp", "Deploys are begun by hand with a script",
        "Karin's flat has a view of the harbour", "The client wants the banner in green",
        "ร้านกาแฟหน้าปากซอยปิดวันจันทร์", "พี่นัทเล่นกีตาร์", "We buy bread at the corner shop",
        "The bus to the lake runs twice a day", "Tomatoes do better beside the wall",
    ]  # fmt: skip
    # The question alone brings none of them: they are there for being newer and near the answer.
    assert arranged(question, answer, *others, fits=0.9)[0][0] == "m0"


def test_features_come_in_the_order_that_the_table_was_fitted_in():
    told = features(*map(read, ("where does Nora live?", "Nora lives in Porto", "Nora lives in Braga")))
    row = row_of("where does Nora live?", "Nora lives in Porto", "Nora lives in Braga")
    assert row[1 : 1 + len(told)] == [*told.values()]
    assert row[1 + [*WEIGHTS].index("alike")] == told["alike"] == 0.75


def test_a_fact_without_a_vector_is_told_by_its_words():
    question, older, newer = "where does Nora live?", "Nora lives in Porto", "Nora moved to Braga in March"
    vectors = np.asarray(offline_embedder().embed([question, older]))
    facts = [
        Fact(id=id_, text=text, at=START + timedelta(days=day), version=day, relevance=1.0)
        for id_, text, day in (("old", older, 1), ("new", newer, 2))
    ]
    order, replaced = arrange(question, facts, Scorer(vectors[0], {"old": vectors[1]}))
    assert order == ["new", "old"]
    assert [one.older for one in replaced] == ["old"]
