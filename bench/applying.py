"""Fit what tells whether an order or a wish applies to a question, on pairs of our own.

    python -m bench.applying --write src/octavo/models/applying.bin

The pairs are those of `orders.jsonl`, of the corpora of orders, and of the domains of `leanings.json`.
With `--apart` each hand is left out of the fit in turn and measured.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.leanings import LEFT, SENTENCES, asked, vectors
from octavo.domain.orders import condition_of, shape_of
from octavo.models.leanings import SHAPE, features_of, share_words

HERE = Path(__file__).parent
CORPORA = HERE.parent / "tests" / "corpora"
HANDS = {"orders": "dev", "orders_fresh": "dev", "orders_blind": "dev", "orders_oblique": "unseen"}
AXES, WIDTH, STEPS, RATE = 128, 8, 150, 0.03
RIDGES = {"told": 1e-2, "asked": 5e-3, "ask": 1e-2, "said": 1e-2}
CROSSED, OF_DOMAINS, SAME_HAND, KEPT = 0.1, 0.01, 1.0, 0.3
LONG = 5.0  # how much longer vectors are in the fit than they are
SCALE = 0.4  # of what is fitted, as far as a doubt counts beside it
Pair = tuple[str, bool, str, bool, float, str]  # sentence, wish, question, whether it applies, weight, hand


def main() -> None:
    """Fit on every pair and write; or say how well each hand is told by the others'."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="where the table goes")
    parser.add_argument("--apart", action="store_true", help="leave out each hand in turn")
    options = parser.parse_args()
    pairs = Pairs([*of_rows(), *of_domains()])
    for hand in sorted(set(pairs.hands) - {"domains"}) if options.apart else ():
        own = (pairs.hands == hand) & (pairs.weights == SAME_HAND)
        right = (pairs.score(pairs.fit(pairs.hands != hand)) >= 0) == pairs.goals
        told = [right[own & (pairs.goals == goal)].mean() for goal in (True, False)]
        print(f"{hand}: the other hands' pairs tell {told[0]:.3f} of what applies, {told[1]:.3f} of the rest")
    if options.write:
        options.write.write_bytes(pairs.fit(~np.isin(pairs.hands, LEFT)).astype("<f2").tobytes())


def of_rows() -> Iterator[Pair]:
    """Each sentence with what it applies to, what it does not, and some of what its neighbours' rows ask."""
    chance = np.random.default_rng(0)
    accounts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for path in (HERE / "orders.jsonl", *sorted(CORPORA.glob("orders*.jsonl"))):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            hand = HANDS.get(path.stem, row["half"]) if path.parent == CORPORA else row["half"]
            accounts.setdefault((hand, row["account"]), []).append(row)
    for (hand, _), rows in accounts.items():
        for row in rows:
            if not row["idle"]:  # it is about every answer
                continue
            is_wish = row["kind"] == "wish"
            for goal, questions in ((True, row["applies"]), (False, row["idle"])):
                yield from ((row["text"], is_wish, text, goal, SAME_HAND, hand) for text in questions)
            others = [other for other in rows if other is not row]
            for weight, kind in ((CROSSED, "idle"), (0.6 * CROSSED, "applies")):
                for text in (text for other in others for text in other[kind]):
                    if chance.random() < KEPT:
                        yield row["text"], is_wish, text, False, weight, hand


def of_domains() -> Iterator[Pair]:
    """Orders and wishes of a domain with requests of it, of others, and with questions about the world."""
    chance = np.random.default_rng(0)
    given = json.loads(SENTENCES.read_text("utf-8"))
    groups = [
        g for g in given["domains"] + given["lived"]["domains"] if not g.get("form") and g.get("requests")
    ]
    for group in groups:
        about = set(group["about"])
        rest = [text for other in groups if not about & set(other["about"]) for text in other["requests"]]
        for kind in ("orders", "wishes"):
            for text in group.get(kind, ()):
                for goal, some in (
                    (True, group["requests"]),
                    (False, rest),
                    (False, given["lived"]["known"]),
                ):
                    for question in chance.choice(some, min(5, len(some)), replace=False).tolist():
                        yield text, kind == "wishes", question, goal, OF_DOMAINS, "domains"


class Pairs:
    """Pairs as numbers: each sentence and each question once."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.sentences = list(dict.fromkeys((text, is_wish) for text, is_wish, *_ in pairs))
        self.questions = list(dict.fromkeys(question for _, _, question, *_ in pairs))
        place = {name: at for at, name in enumerate(self.sentences)}
        where = {name: at for at, name in enumerate(self.questions)}
        self.of = np.array([place[text, is_wish] for text, is_wish, *_ in pairs])
        self.to = np.array([where[question] for _, _, question, *_ in pairs])
        self.goals, self.weights = np.array([p[3] for p in pairs]), np.array([p[4] for p in pairs])
        self.hands = np.array([pair[5] for pair in pairs])
        texts = [text for text, _ in self.sentences]
        said, when = vectors(texts), vectors([condition_of(text) or text for text in texts])
        wishes = np.array([is_wish for _, is_wish in self.sentences])
        is_alone = np.array([condition_of(text) is None for text in texts])
        asking = asked(self.questions)
        shapes = np.array([shape_of(question) for question in self.questions], dtype=float)
        rows = []
        for at, question in enumerate(self.questions):
            mine = self.of[self.to == at]
            shared = np.array([share_words(question, texts[one]) for one in mine])
            rows.append(
                features_of(
                    asking[at], shapes[at], said[mine], when[mine], wishes[mine], is_alone[mine], shared
                )
            )
        self.told = np.zeros((len(pairs), rows[0].shape[1]))
        for at, found in enumerate(rows):
            self.told[self.to == at] = found
        self.wish = wishes[self.of]
        self.ask, self.shapes = LONG * asking, LONG * SHAPE * shapes
        self.said = LONG * np.concatenate([said, when], axis=1)
        self.axes = np.linalg.eigh(asking.T @ asking + said.T @ said + when.T @ when)[1][:, ::-1][:, :AXES]

    def fit(self, seen: np.ndarray) -> np.ndarray:
        """The table of `applying.bin`, by Adam on a logistic loss over some of the pairs."""
        of, to, wish = self.of[seen], self.to[seen], self.wish[seen].astype(int)
        share = self.weights[seen] / self.weights[seen].sum()
        spread = self.told[seen].std(axis=0) + 1e-6
        spread[0] = 1.0  # what is one throughout
        told, chance = self.told[seen] / spread, np.random.default_rng(0)
        ask = self.ask @ self.axes
        said = np.concatenate(
            [self.said[:, : len(self.axes)] @ self.axes, self.said[:, len(self.axes) :] @ self.axes], 1
        )
        linear = np.concatenate([ask, self.shapes], axis=1)
        lines = {
            "told": np.zeros(told.shape[1]),
            "asked": np.zeros((2, linear.shape[1])),
            "ask": chance.normal(0, 0.04, (AXES, WIDTH)),
            "said": chance.normal(0, 0.04, (2 * AXES, WIDTH)),
        }
        first, second = ({name: np.zeros_like(line) for name, line in lines.items()} for _ in range(2))
        for step in range(1, STEPS + 1):
            left, right = (ask @ lines["ask"])[to], (said @ lines["said"])[of]
            score = told @ lines["told"] + (linear @ lines["asked"].T)[to, wish] + (left * right).sum(axis=1)
            error = (1 / (1 + np.exp(-np.clip(score, -30, 30))) - self.goals[seen]) * share
            slopes = {
                "told": told.T @ error,
                "asked": _summed(error[:, None] * np.eye(2)[wish], to, len(linear)).T @ linear,
                "ask": ask.T @ _summed(error[:, None] * right, to, len(ask)),
                "said": said.T @ _summed(error[:, None] * left, of, len(said)),
            }
            rate = RATE * min(1, 2 * (STEPS - step + 1) / STEPS)
            for name, pull in slopes.items():
                slope = pull + RIDGES[name] * lines[name]
                first[name] = 0.9 * first[name] + 0.1 * slope
                second[name] = 0.99 * second[name] + 0.01 * slope**2
                lines[name] -= (
                    rate * (first[name] / (1 - 0.9**step)) / (np.sqrt(second[name] / (1 - 0.99**step)) + 1e-7)
                )
        return self._table(lines, spread)

    def _table(self, lines: dict[str, np.ndarray], spread: np.ndarray) -> np.ndarray:
        """The lines in the space of vectors of length one, a row each, all of the same width."""
        asked_, said = lines["asked"], lines["said"]
        lean = np.concatenate(
            [LONG * asked_[:, :AXES] @ self.axes.T, LONG * SHAPE * asked_[:, AXES:]], axis=1
        )
        root = LONG * SCALE**0.5
        planes = [root * (self.axes @ some).T for some in (lines["ask"], said[:AXES], said[AXES:])]
        width = lean.shape[1]
        rows = [SCALE * lines["told"][None, :] / spread, SCALE * lean, *planes]
        return np.concatenate([np.pad(row, ((0, 0), (0, width - row.shape[1]))) for row in rows])

    def score(self, table: np.ndarray) -> np.ndarray:
        """What a table tells of each pair."""
        size = len(self.axes)
        told, lean, ask, said, when = np.split(table, [1, 3, 3 + WIDTH, 3 + 2 * WIDTH])
        linear = np.concatenate([self.ask, self.shapes / SHAPE], axis=1) / LONG
        left = self.ask @ ask[:, :size].T / LONG
        right = (self.said[:, :size] @ said[:, :size].T + self.said[:, size:] @ when[:, :size].T) / LONG
        found: np.ndarray = (
            self.told @ told[0, : self.told.shape[1]]
            + (linear @ lean.T)[self.to, self.wish.astype(int)]
            + (left[self.to] * right[self.of]).sum(axis=1)
        )
        return found


def _summed(values: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """Rows added up by their places."""
    return np.stack([np.bincount(places, column, count) for column in values.T], axis=1)


if __name__ == "__main__":
    main()
