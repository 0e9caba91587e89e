"""Fit what tells whether an order or a wish applies to a question, on pairs of our own.

    python -m bench.applying --write src/octavo/models/applying.bin

The pairs are those of `orders.jsonl`, of the corpora of orders, and of the domains of `leanings.json`.
With `--apart` each hand is left out of the fit in turn and measured.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.leanings import LEFT, SENTENCES, asked, is_thai, vectors
from octavo.domain.orders import condition_of
from octavo.domain.wording import phrases_of
from octavo.models.applying import AXES, HIDDEN, RANK, TOLD, Applying, put, read, share_words
from octavo.models.leanings import SHAPES

HERE = Path(__file__).parent
CORPORA = HERE.parent / "tests" / "corpora"
HANDS = {"orders": "dev", "orders_fresh": "dev", "orders_blind": "dev", "orders_oblique": "unseen"}
NETS, EPOCHS, BATCH, RATE = 3, 10, 512, 3e-3
DROP, DROP_UNITS, DROP_SEEN = 0.2, 0.5, 0.4  # of what is told, of the units, of vectors and cues
DECAY, DECAY_PRODUCTS = 0.1, 0.03
CROSSED, FAR, OF_DOMAINS, SAME_HAND, KEPT = 0.05, 0.03, 0.02, 1.0, 0.3
STRANGERS = 3  # questions of the same hand's other accounts beside each order
SHARE = 0.35  # of the pairs that weigh less, so many at a time
LONG = 5.0  # how much longer vectors are in the fit than they are
CUES = {False: 250, True: 120}  # of English and of Thai
HANDS_OF_CUE, LEAST_OF_CUE = 3, 12  # so many hands and pairs have a cue
LINE = -0.6  # where what is shown and what is absent are right as often, of hands left out
Pair = tuple[str, bool, str, bool, float, str]  # sentence, wish, question, whether it applies, weight, hand


def main() -> None:
    """Fit on every pair and write; or say how well each hand is told by the others'."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="the folder that the table and the cues go to")
    parser.add_argument("--apart", action="store_true", help="leave out each hand in turn")
    options = parser.parse_args()
    pairs = Pairs([*of_rows(), *of_domains()])
    for hand in sorted(set(pairs.hands) - {"domains"}) if options.apart else ():
        pairs.tell(hand)
    if options.write:
        cues, table = pairs.fit(np.full(len(pairs.hands), True))
        (options.write / "applying.bin").write_bytes(table.astype("<f2").tobytes())
        (options.write / "applying.txt").write_text("".join(f"{cue}\n" for cue in cues), "utf-8")


def of_rows() -> Iterator[Pair]:
    """Each sentence with what it applies to, what it does not, and some of what its neighbours' rows ask."""
    chance = np.random.default_rng(0)
    accounts: dict[tuple[str, str], list[dict[str, Any]]] = {}
    asked_by: dict[tuple[str, str], list[str]] = {}
    for path in (HERE / "orders.jsonl", *sorted(CORPORA.glob("orders*.jsonl"))):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            hand = HANDS.get(path.stem, row["half"]) if path.parent == CORPORA else row["half"]
            if hand in LEFT:
                continue
            accounts.setdefault((hand, row["account"]), []).append(row)
            asked_by.setdefault((hand, row["lang"]), []).extend(row["applies"])
    for (hand, _), rows in accounts.items():
        for row in rows:
            if not row["idle"]:  # it is about every answer
                continue
            is_wish = row["kind"] == "wish"
            for goal, questions in ((True, row["applies"]), (False, row["idle"])):
                yield from ((row["text"], is_wish, text, goal, SAME_HAND, hand) for text in questions)
            others = [other for other in rows if other is not row]
            for weight, kind in ((CROSSED, "idle"), (FAR, "applies")):
                for text in (text for other in others for text in other[kind]):
                    if chance.random() < KEPT:
                        yield row["text"], is_wish, text, False, weight, hand
            for text in chance.choice(asked_by[hand, row["lang"]], STRANGERS).tolist():
                if text not in row["applies"]:
                    yield row["text"], is_wish, text, False, FAR, hand


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
        self.said, self.when = vectors(texts), vectors([condition_of(text) or text for text in texts])
        self.wishes = np.array([is_wish for _, is_wish in self.sentences])
        self.is_alone = np.array([condition_of(text) is None for text in texts])
        self.asking = asked(self.questions)
        every = self.asking.T @ self.asking + self.said.T @ self.said + self.when.T @ self.when
        self.axes = np.linalg.eigh(every)[1][:, ::-1][:, :AXES]
        self.told = np.zeros((len(pairs), TOLD), dtype=np.float32)
        for at, some in enumerate(np.split(np.argsort(self.to), np.cumsum(np.bincount(self.to))[:-1])):
            orders, shared = self._orders(some)
            self.told[some] = orders.told(self.asking[at], self.questions[at], shared)

    def tell(self, hand: str) -> None:
        """Print how much of what applies and of the rest the other hands' pairs tell, English and Thai."""
        own = np.flatnonzero((self.hands == hand) & (self.weights == SAME_HAND))
        cues, table = self.fit(self.hands != hand)
        nets, lean = read(table, len(cues)), np.zeros(len(self.of))
        place = {cue: at for at, cue in enumerate(cues)}
        for at in sorted(set(self.to[own])):
            some = own[self.to[own] == at]
            orders, shared = self._orders(some, nets)
            lean[some] = orders.fits(self.asking[at], self.questions[at], shared, place)
        right, thai = (lean >= 0) == self.goals, np.array([is_thai(text) for text in self.questions])[self.to]
        for language, mine in (("en", own[~thai[own]]), ("th", own[thai[own]])):
            parts = [mine[self.goals[mine] == goal] for goal in (True, False)]
            if all(map(len, parts)):
                shown, absent = (right[part].mean() for part in parts)
                print(f"{hand} {language}: {shown:.3f} of what applies, {absent:.3f} of the rest", flush=True)

    def fit(self, seen: np.ndarray) -> tuple[list[str], np.ndarray]:
        """The cues, and the table of a few small nets beside each other."""
        cues = self._cues(seen)
        place = {cue: at for at, cue in enumerate(cues)}
        asked_ = np.array([put(question, place) for question in self.questions])
        asked_[:, :SHAPES] *= LONG
        axes = LONG * self.axes
        seen_of = [
            np.concatenate([self.asking @ axes, asked_], axis=1).astype(np.float32),
            np.concatenate([self.said @ axes, self.when @ axes], axis=1).astype(np.float32),
        ]
        spread = self.told[seen].std(axis=0) + 1e-6
        spread[0] = 1.0  # what is one throughout
        found = [self._net(seen_of, self.told / spread, seen, seed) for seed in range(NETS)]
        of_question, of_order, asked_by, ordered_by, told, out, line, lean = (
            [net[name] for net in found] for name in found[0]
        )
        for some in (*asked_by, *lean):
            some[AXES : AXES + SHAPES] *= LONG
        line, lean = np.mean(line, axis=0) / spread, np.mean(lean, axis=0)
        line[0] -= LINE
        parts = [
            axes, np.hstack(of_question) / NETS, np.hstack(of_order), np.hstack(asked_by),
            np.hstack(ordered_by), np.hstack(told) / spread[:, None], np.hstack(out) / NETS, line, lean,
        ]  # fmt: skip
        return cues, np.concatenate([part.ravel() for part in parts])

    def _orders(
        self, some: np.ndarray, nets: Sequence[np.ndarray] | None = None
    ) -> tuple[Applying, np.ndarray]:
        """The orders of some pairs with one question, and which share a word with it."""
        of, question = self.of[some], self.questions[self.to[some[0]]]
        shared = np.array([share_words(question, self.sentences[one][0]) for one in of])
        return Applying(self.said[of], self.when[of], self.wishes[of], self.is_alone[of], nets), shared

    def _cues(self, seen: np.ndarray) -> list[str]:
        """The words and phrases of questions that tell best whether anything applies, in several hands."""
        has, applies, hands = Counter[str](), Counter[str](), defaultdict[str, set[str]](set)
        own = np.flatnonzero(seen & (self.weights == SAME_HAND))
        often = self.goals[own].mean()
        for pair in own.tolist():
            some = phrases_of(self.questions[self.to[pair]])
            has.update(some)
            applies.update(some if self.goals[pair] else ())
            for phrase in some:
                hands[phrase].add(self.hands[pair])
        worth = {
            phrase: (applies[phrase] - often * count) ** 2 / count
            for phrase, count in has.items()
            if count >= LEAST_OF_CUE and len(hands[phrase]) >= HANDS_OF_CUE
        }
        chosen: dict[bool, list[str]] = {False: [], True: []}
        for phrase in sorted(worth, key=lambda phrase: (-worth[phrase], -len(phrase), phrase)):
            is_of_thai = is_thai(phrase)
            some_ = chosen[is_of_thai]
            # A stretch of Thai that is nearly always part of another one tells the same.
            is_known = is_of_thai and any(
                (phrase in one or one in phrase)
                and abs(has[phrase] - has[one]) + abs(applies[phrase] - applies[one]) <= has[phrase] / 3
                for one in some_
            )
            if len(some_) < CUES[is_of_thai] and not is_known:
                some_.append(phrase)
        return chosen[False] + chosen[True]

    def _parts(self, cues: int, seed: int) -> dict[str, np.ndarray]:
        """What one of so many nets begins with."""
        chance, seen = np.random.default_rng(seed), AXES + SHAPES + cues
        rank, units = RANK // NETS, HIDDEN // NETS
        parts = {
            "of_question": chance.normal(0, 0.08, (AXES, rank)),
            "of_order": chance.normal(0, 0.08, (2 * AXES, rank)),
            "asked": chance.normal(0, 0.02, (seen, units)),
            "ordered": chance.normal(0, 0.02, (2 * AXES, units)),
            "told": chance.normal(0, TOLD**-0.5, (TOLD, units)),
            "out": chance.normal(0, 0.1 * units**-0.5, units),
            "line": np.zeros(TOLD),
            "lean": np.zeros((seen, 2)),
        }
        return {name: part.astype(np.float32) for name, part in parts.items()}

    def _net(
        self, seen_of: Sequence[np.ndarray], told: np.ndarray, seen: np.ndarray, seed: int
    ) -> dict[str, np.ndarray]:
        """One net, by Adam on a logistic loss, with parts left out at random."""
        chance = np.random.default_rng(seed)
        parts = self._parts(seen_of[0].shape[1] - AXES - SHAPES, seed)
        means, squares = ({n: np.zeros_like(part) for n, part in parts.items()} for _ in range(2))
        decays = {"of_question": DECAY_PRODUCTS, "of_order": DECAY_PRODUCTS, "line": 0.1 * DECAY}
        own = np.flatnonzero(seen & (self.weights == SAME_HAND))
        rest = np.flatnonzero(seen & (self.weights < SAME_HAND))
        few = int(SHARE * len(rest))
        weights = np.where(self.weights < SAME_HAND, self.weights / SHARE, 1.0).astype(np.float32)
        steps, step = EPOCHS * ((len(own) + few) // BATCH), 0

        def kept(array: np.ndarray, drop: float) -> np.ndarray:
            return array * ((chance.random(array.shape, dtype=np.float32) > drop) / np.float32(1 - drop))

        for _ in range(EPOCHS):
            every = chance.permutation(np.concatenate([own, chance.choice(rest, few, replace=False)]))
            for some in np.array_split(every, len(every) // BATCH):
                of, to, kind = self.of[some], self.to[some], self.wishes[self.of[some]].astype(int)
                row, ask, order = (
                    kept(told[some], DROP), kept(seen_of[0][to], DROP_SEEN), kept(seen_of[1][of], DROP_SEEN),
                )  # fmt: skip
                left, right = ask[:, :AXES] @ parts["of_question"], order @ parts["of_order"]
                lit = row @ parts["told"] + ask @ parts["asked"] + order @ parts["ordered"]
                mask = kept((lit > 0).astype(np.float32), DROP_UNITS)
                score = (lit * mask) @ parts["out"] + row @ parts["line"] + (left * right).sum(axis=1)
                score += (ask @ parts["lean"])[np.arange(len(some)), kind]
                wrong = 1 / (1 + np.exp(-np.clip(score, -30, 30))) - self.goals[some]
                wrong = (2 * wrong * weights[some] / len(some)).astype(np.float32)
                back = np.outer(wrong, parts["out"]) * mask
                slopes = {
                    "of_question": ask[:, :AXES].T @ (wrong[:, None] * right),
                    "of_order": order.T @ (wrong[:, None] * left),
                    "asked": ask.T @ back,
                    "ordered": order.T @ back,
                    "told": row.T @ back,
                    "out": (lit * mask).T @ wrong,
                    "line": row.T @ wrong,
                    "lean": ask.T @ (wrong[:, None] * np.eye(2, dtype=np.float32)[kind]),
                }
                step += 1
                rate = np.float32(RATE * min(1, (steps - step + 1) / (0.7 * steps)))
                for name, slope in slopes.items():
                    means[name] += 0.1 * (slope - means[name])
                    squares[name] += 0.001 * (slope**2 - squares[name])
                    size = np.sqrt(squares[name] / (1 - 0.999**step)) + 1e-8
                    pull = means[name] / (1 - 0.9**step) / size + decays.get(name, DECAY) * parts[name]
                    parts[name] -= rate * pull.astype(np.float32)
        return parts


if __name__ == "__main__":
    main()
