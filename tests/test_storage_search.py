"""The search of the index gives every unit the score that the recipe gives it, worked out one by one."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest

from indexes import START, fact, turn, write
from octavo.domain.filters import Filter
from octavo.domain.ranking import Recipe, frequency, passage_prior, saturated, term_weights
from octavo.domain.text import passages, runs, terms_of_run
from octavo.storage.index import Index, passages_of
from octavo.storage.vectors import ModelManifest, Vectors, append_vectors

RECIPE = Recipe()
WORDS = ["mango", "harbour", "violin", "winter", "curry", "train", "กาแฟ", "ทะเล", "แมว", "garden", "piano"]
QUESTIONS = ("the violin in winter", "mango curry at the harbour", "กาแฟริมทะเล", "แมว and a piano", "train")
SEVERAL = 150  # so many words are several passages


def terms(text):
    """The terms of a text, in order."""
    return [term for run in runs(text) for term in terms_of_run(run)]


def account(seed):
    """Units of eight sessions in two scopes, with facts between their turns."""
    draw, units = random.Random(seed), []
    for session in range(8):
        scope = ("shared", "orion")[session % 2]
        for place in range(draw.randint(1, 8)):
            said = draw.choices(WORDS, k=draw.choice((2, 4, 8, SEVERAL)))
            name = f"s{session}t{place}"
            units.append(turn(name, " ".join(said), session=f"s{session}", position=place, scope=scope))
            if draw.random() < 0.4:
                text = " ".join(draw.choices(WORDS, k=3))
                units.append(fact(f"{name}f", text, session=f"s{session}", scope=scope))
    return units


def dealt(units, seed):
    """The same units, the sessions' turns between one another, each session in its own order."""
    draw, waiting = random.Random(seed), {}
    for unit in units:
        waiting.setdefault(unit.session, []).append(unit)
    order = draw.sample([unit.session for unit in units], len(units))
    return [waiting[session].pop(0) for session in order]


class Plain:
    """The recipe as docs/recall.md tells it, one unit after the other."""

    def __init__(self, units, question, scopes, cosine):
        self.seen = [unit for unit in units if scopes is None or unit.scope in scopes]
        self.cosine = cosine
        self.held = {u.memory: [Counter(terms(p)) for p in passages(u.text)] for u in units}
        counted = [held for unit in units for held in self.held[unit.memory]]
        containing = {
            term: sum(term in held for unit in self.seen for held in self.held[unit.memory])
            for term in question.terms
        }
        weights = term_weights(question.terms, question.previous, containing, len(counted), RECIPE)
        self.weights = dict(zip(question.terms, weights, strict=True))
        self.average = sum(held.total() for held in counted) / len(counted)

    def at(self, unit, distance):
        """The turn so far from this one in its session, if there is one."""
        if unit.position is None:
            return None
        same = (unit.session, unit.position + distance)
        return next((u for u in self.seen if (u.session, u.position) == same), None)

    def fullness(self, unit):
        return min(1.0, RECIPE.full_length / max(1, sum(h.total() for h in self.held[unit.memory])))

    def own(self, unit, term):
        """The term's corrected frequency in each passage."""
        return [frequency(h[term], h.total(), self.average, RECIPE) for h in self.held[unit.memory]]

    def around(self, unit, term):
        total = 0.0
        for distance, share in enumerate(RECIPE.neighbours, 1):
            for other in (self.at(unit, -distance), self.at(unit, distance)):
                total += share * self.fullness(other) * max(self.own(other, term)) if other else 0.0
        together = [u for u in self.seen if u.position is not None and u.session == unit.session]
        session = [unit] if unit.position is None else together
        holding = [self.fullness(u) for u in session if max(self.own(u, term)) > 0]
        return total + RECIPE.session * max(holding, default=0.0)

    def words(self, unit):
        best = 0.0
        for number in range(len(self.held[unit.memory])):
            value = 0.0
            for term, weight in self.weights.items():
                own = self.own(unit, term)
                beside = own[max(0, number - 1) : number] + own[number + 1 : number + 2]
                total = own[number] + self.around(unit, term) + RECIPE.passages * any(beside)
                value += weight * saturated(total, RECIPE)
            best = max(best, value / sum(self.weights.values()))
        return best

    def meaning(self, unit):
        total = self.cosine(unit)
        for distance, share in enumerate(RECIPE.meaning_neighbours, 1):
            for other in (self.at(unit, -distance), self.at(unit, distance)):
                total += share * self.fullness(other) * self.cosine(other) if other else 0.0
        return RECIPE.meaning * total

    def length(self, unit):
        return passage_prior(len(self.held[unit.memory]), math.log, RECIPE)


@pytest.mark.parametrize("scopes", [None, ("shared",)])
@pytest.mark.parametrize("is_dealt", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_words_score_what_the_recipe_says(tmp_path, seed, scopes, is_dealt):
    units = dealt(account(seed), seed) if is_dealt else account(seed)
    write(tmp_path, 1, units)
    index, wanted = Index(tmp_path), Filter(scopes=scopes)
    for text in QUESTIONS:
        question = index.read(text, now=START.date(), version=1, scopes=scopes)
        plain = Plain(units, question, scopes, None)
        known = {unit.memory: unit for unit in plain.seen}
        found = index.search(question, wanted, version=1, limit=200)
        for match in found:
            unit = known[match.memory]
            assert match.parts["words"] == pytest.approx(plain.words(unit), abs=1e-4)
            assert match.parts["length"] == pytest.approx(plain.length(unit), abs=1e-4)
        named = {match.memory for match in found}
        assert named >= {u.memory for u in plain.seen if any(max(plain.own(u, t)) for t in question.terms)}
        assert [m.score for m in found] == sorted((m.score for m in found), reverse=True)


@pytest.mark.parametrize("seed", range(3))
def test_meaning_scores_what_the_recipe_says(tmp_path, seed):
    units = account(seed)
    write(tmp_path, 1, units)
    draw, owners = np.random.default_rng(seed), [u.memory for u in units for _ in passages(u.text)]
    given = draw.standard_normal((len(passages_of(units)), 64)).astype(np.float32)
    empty = Vectors.open(tmp_path / "vectors", ModelManifest(model="e", dimension=64, history=""))
    vectors = append_vectors(empty, given)
    query = draw.standard_normal(64).astype(np.float32)
    query /= np.linalg.norm(query)
    stored = vectors.floats.astype(np.float32)
    shift = float(stored[:256].mean(axis=0) @ query)
    cosines = dict.fromkeys(owners, -math.inf)
    for owner, cosine in zip(owners, (stored @ query).tolist(), strict=True):
        cosines[owner] = max(cosines[owner], cosine - shift)
    index = Index(tmp_path)
    question = index.read("the violin in winter", now=START.date(), version=1, scopes=None)
    plain = Plain(units, question, None, lambda unit: cosines[unit.memory])
    found = index.search(question, Filter(), version=1, limit=200, vectors=vectors, query=query)
    assert {match.memory for match in found} == set(owners)
    for match in found:
        unit = next(u for u in units if u.memory == match.memory)
        assert match.parts["meaning"] == pytest.approx(plain.meaning(unit), abs=1e-3)
        assert match.parts["words"] == pytest.approx(plain.words(unit), abs=1e-4)
