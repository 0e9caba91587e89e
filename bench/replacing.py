"""Fit what tells by words and vectors whether the newer of two facts is what a question wants.

`python -m bench.replacing FILE… --write src/octavo/models`: each file holds pairs as `bench.corrections`
measures them (`pairs.jsonl` once, corpora and development set twice). Halves that nothing may be fitted on
are left out. With `--apart` each hand, as the rows call it, is left out of the fit in turn, and measured.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from octavo.domain.corrections import REPLACES, is_about_the_past, present
from octavo.domain.query import read_question
from octavo.domain.replacing import FRAME
from octavo.domain.wording import phrases_of
from octavo.models.embedders import offline_embedder
from octavo.models.replacing import ALIKE, AXES, SAYS, cosines, row_of

LEFT = ("test", "blind", "held", "own6", "own9", "verdict", "outside", "later", "last")
HIDDEN, NETS, STEPS, BATCH, RATE, DECAY = 128, 4, 24, 256, 2e-3, 2e-2
DROP, DROP_WORDS, DROP_CUES = 0.4, 0.1, 0.2
SHARE, CUE = 0.5, 1.5  # what an axis and a cue count beside a feature
CUES = {False: 400, True: 200}  # of English and of Thai
HANDS_OF_CUE, LEAST_OF_CUE = 4, 10  # so many hands and pairs have a cue
# What such pairs weigh beside a correction or a control.
SWAPPED, PAST, CROSSED, BACK = 0.1, 0.3, 0.2, 0.1
# What a hand's pairs count: the development set's more, those that were to be mean less.
COUNTS = {"dev": 4.0, "study": 4.0, "hand_e": 0.6, "hand_f": 0.6, "hand_g": 0.6, "hand_h": 0.6}
# An account holds much that is no answer: of so many facts the nearest are told apart from corrections.
ACCOUNT, STRANGERS, OTHERS, EACH = 60, 6, 0.05, 0.12
# Where left-out hands are told apart best stands where `corrections` draws its line, and this much steeper.
LINE, STEEP = -0.33, 2.0


class Pair(NamedTuple):
    """What is asked, what the vector is of, two facts, whether the newer wins, and what that weighs."""

    hand: str
    kind: str
    asked: str
    question: str
    older: str
    newer: str
    goal: float
    weight: float


def main() -> None:
    """Fit on every file and write the table, or tell how well each hand is told by the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--apart", action="store_true", help="leave out each hand in turn")
    parser.add_argument("--write", type=Path, help="the folder that the table and the cues go to")
    options = parser.parse_args()
    rows = [row for file in options.files for row in rows_of(file)]
    if options.apart:
        pairs = Pairs([*pairs_of(rows)])
        for hand in sorted(set(pairs.hands)):
            pairs.tell(hand)
    if options.write:
        pairs = Pairs([*pairs_of(row for row in rows if row["half"] not in LEFT)])
        cues, table = pairs.fit(np.full(len(pairs.hands), True), NETS)
        (options.write / "replacing.bin").write_bytes(table.astype("<f2").tobytes())
        (options.write / "replacing.txt").write_text("".join(f"{cue}\n" for cue in cues), "utf-8")


def rows_of(file: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, but for questions that both facts answer."""
    for line in file.read_text("utf-8").splitlines():
        if line.strip() and (row := json.loads(line))["kind"] != "both":
            yield row


def pairs_of(rows: Iterable[dict[str, Any]]) -> Iterator[Pair]:
    """Corrections, controls, either the other way round, one beside the other, facts about something else."""
    hands = defaultdict(list)
    for row in rows:
        hands[row["half"]].append(row)
    for hand, some in hands.items():
        told = defaultdict(list)
        for row in some:
            asked, older, newer = row["question"], row["older"], row["newer"]
            if row["kind"] == "past":
                if is_about_the_past(asked):
                    yield Pair(hand, "past", present(asked), asked, older, newer, 1.0, PAST)
                continue
            is_over = row["kind"] == "correction"
            told[asked, older].append((newer, is_over))
            yield Pair(hand, row["kind"], asked, asked, older, newer, float(is_over), 1.0)
            yield Pair(hand, "turned", asked, asked, newer, older, 1.0, BACK if is_over else SWAPPED)
        for (asked, _), facts in told.items():
            for one in (text for text, is_over in facts if is_over):
                for other, is_over in facts:
                    if other != one:
                        yield Pair(hand, "crossed", asked, asked, one, other, float(is_over), CROSSED)
        yield from strangers(hand, some)


def strangers(hand: str, rows: Sequence[dict[str, Any]]) -> Iterator[Pair]:
    """What lies near a question and its answer but is about something else, and some of another language."""
    beside, about = defaultdict(set), defaultdict(set)
    for row in rows:
        beside[row["lang"]] |= {row["older"], row["newer"]}
        for text in (row["older"], row["question"]):
            about[text] |= {row["older"], row["newer"]}
    pools = {language: sorted(texts) for language, texts in beside.items()}
    for row in rows:
        if row["kind"] == "past":
            continue
        asked, older = row["question"], row["older"]
        pool, chance = pools[row["lang"]], random.Random(asked + row["newer"])
        some = chance.sample(pool, min(ACCOUNT, len(pool)))
        others = [text for text in some if text not in about[older] | about[asked]]
        near = vectors(others) @ (vectors([asked])[0] + vectors([older])[0])
        strange = [others[int(place)] for place in np.argsort(-near)[:STRANGERS]]
        for language in sorted(pools.keys() - {row["lang"]}):
            strange += chance.sample(pools[language], 2)
        yield from (Pair(hand, "strange", asked, asked, older, text, 0.0, OTHERS) for text in strange)


class Pairs:
    """Pairs as numbers."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.hands, self.kinds = (np.array([pair[place] for pair in pairs]) for place in (0, 1))
        self.goals, self.weights = np.array([pair[6:] for pair in pairs], dtype=np.float32).T
        self.weights *= [COUNTS.get(hand, 1.0) for hand in self.hands]
        told = np.array([row_of(p.asked, p.older, p.newer) for p in pairs], dtype=np.float32)
        asked, older, self.newer = (
            vectors([pair[place] for pair in pairs], place == 3) for place in (3, 4, 5)
        )
        self.told = np.concatenate([told, cosines(asked, older, self.newer)], axis=1)
        self.parted = self.newer - older
        self.every = np.concatenate([asked, older, self.newer])
        self.texts = [(pair.older, pair.newer) for pair in pairs]

    def tell(self, hand: str) -> None:
        """Print how many corrections and controls of a hand the other hands tell."""
        own = self.hands == hand
        cues, table = self.fit(~own, 1)
        lean = self.lean(cues, table)
        parts = [own & (self.kinds == kind) for kind in ("correction", "control")]
        line = np.log(REPLACES / (1 - REPLACES))
        newer, kept = (lean[parts[0]] > line).mean(), (lean[parts[1]] < line).mean()
        order = np.argsort(np.argsort(lean[parts[0] | parts[1]]))
        count = [int(part.sum()) for part in parts]
        first = order[self.goals[parts[0] | parts[1]] > 0].sum() - count[0] * (count[0] - 1) / 2
        print(
            f"{hand:12} {count[0]:5} corrections, newer first {100 * newer:.1f} %, {count[1]:5} controls, "
            f"kept {100 * kept:.1f} %, told apart {100 * first / max(1, count[0] * count[1]):.1f} %",
            flush=True,
        )

    def lean(self, cues: Sequence[str], table: np.ndarray) -> np.ndarray:
        """What a table tells of each pair."""
        axes, lines = np.split(table.ravel(), [AXES * self.newer.shape[1]])
        lines = lines.reshape(-1, self.told.shape[1] + len(cues) + 2 * AXES + 2)
        seen = np.concatenate([self.told, self.has(cues), self.meant(axes.reshape(AXES, -1).T)], axis=1)
        lit = seen @ lines[:, :-2].T + lines[:, -2]
        found: np.ndarray = np.maximum(lit[:, :-1], 0) @ lines[:-1, -1] + lit[:, -1]
        return np.where(self.told[:, ALIKE] >= FRAME, np.minimum(found, self.told[:, 0] + SAYS), found)

    def meant(self, axes: np.ndarray) -> np.ndarray:
        """The newer of each pair, and where it parts from the older, on some axes."""
        return np.concatenate([self.newer @ axes, self.parted @ axes], axis=1)

    def has(self, cues: Sequence[str]) -> np.ndarray:
        """Which cues the newer of each pair has and the older has not."""
        place = {cue: column for column, cue in enumerate(cues)}
        has = {text: place.keys() & phrases_of(text) for pair in self.texts for text in pair}
        found = np.zeros((len(self.texts), len(cues)), dtype=np.float32)
        for row, (older, newer) in enumerate(self.texts):
            found[row, [place[cue] for cue in has[newer] - has[older]]] = 1
        return found

    def cues(self, seen: np.ndarray) -> list[str]:
        """The words and phrases that tell corrections and controls of several hands best apart."""
        over, kept, hands = Counter[str](), Counter[str](), defaultdict[str, set[str]](set)
        for row in np.flatnonzero(seen & np.isin(self.kinds, ("correction", "control"))).tolist():
            older, newer = map(phrases_of, self.texts[row])
            (over if self.goals[row] else kept).update(newer - older)
            for phrase in newer - older:
                hands[phrase].add(self.hands[row])
        often = sum(over.values()) / max(1, sum(kept.values()))
        worth = {
            phrase: (over[phrase] - often * kept[phrase]) ** 2 / (over[phrase] + often**2 * kept[phrase])
            for phrase, known in hands.items()
            if len(known) >= HANDS_OF_CUE and over[phrase] + kept[phrase] >= LEAST_OF_CUE
        }
        chosen: dict[bool, list[str]] = {False: [], True: []}
        for phrase in sorted(worth, key=lambda phrase: (-worth[phrase], -len(phrase), phrase)):
            is_thai = phrase > "\u0e00"
            some = chosen[is_thai]
            # A stretch of Thai that is nearly always part of another one tells the same.
            is_known = is_thai and any(
                (phrase in one or one in phrase)
                and abs(over[phrase] - over[one]) + abs(kept[phrase] - kept[one])
                <= (over[phrase] + kept[phrase]) / 4
                for one in some
            )
            if len(some) < CUES[is_thai] and not is_known:
                some.append(phrase)
        return chosen[False] + chosen[True]

    def fit(self, seen: np.ndarray, nets: int) -> tuple[list[str], np.ndarray]:
        """The cues, and the table of a few small nets with what makes the features alike folded into it."""
        cues = self.cues(seen)
        mine, every = np.flatnonzero(seen), self.every[np.tile(seen, 3)]
        _, found = np.linalg.eigh(np.cov(every.T))
        axes = found[:, ::-1][:, :AXES].astype(np.float32)
        told, meant = self.told, self.meant(axes)
        middle, wide = told[mine].mean(axis=0), told[mine].std(axis=0) + 1e-3
        centre, spread = meant[mine].mean(axis=0), meant[mine].std(axis=0) / SHARE
        x = np.concatenate([(told - middle) / wide, CUE * self.has(cues), (meant - centre) / spread], axis=1)
        x = x.astype(np.float32)
        drop = np.repeat([DROP_WORDS, DROP_CUES, DROP], [told.shape[1], len(cues), 2 * AXES])
        lines, last, skip = [], [], np.zeros(x.shape[1] + 1)
        for seed in range(nets):
            first, offset, out, base, through = self._net(
                x.astype(np.float32), drop.astype(np.float32), mine, seed
            )
            lines += [*np.vstack([first, offset]).T]
            last += [*STEEP * out / nets]
            skip += STEEP * np.append(through, base) / nets
        skip[-1] -= STEEP * LINE
        table = np.array([*lines, skip])
        scale = np.concatenate([1 / wide, np.full(len(cues), CUE), 1 / spread])
        shift = np.concatenate([middle, np.zeros(len(cues)), centre])
        weights = table[:, :-1] * scale
        offsets = table[:, -1] - weights @ shift
        return cues, np.concatenate(
            [axes.T.ravel(), np.column_stack([weights, offsets, [*last, 1.0]]).ravel()]
        )

    def _net(self, x: np.ndarray, drop: np.ndarray, mine: np.ndarray, seed: int) -> list[np.ndarray]:
        """One layer of rectified units beside a line, by Adam, with parts left out at random."""
        chance = np.random.default_rng(seed)
        size = x.shape[1]
        parts = [
            chance.normal(0, size**-0.5, (size, HIDDEN)), np.zeros(HIDDEN),
            chance.normal(0, HIDDEN**-0.5, HIDDEN), np.zeros(1), np.zeros(size),
        ]  # fmt: skip
        parts = [part.astype(np.float32) for part in parts]
        means, squares = ([np.zeros_like(part) for part in parts] for _ in range(2))
        is_strange = self.kinds[mine] == "strange"
        weights = self.weights * np.where(self.kinds == "strange", 1 / EACH, 1).astype(np.float32)
        step = 0
        for epoch in range(STEPS):
            rate = RATE * (1 - epoch / STEPS) + 1e-5
            strange = chance.choice(mine[is_strange], int(EACH * is_strange.sum()), replace=False)
            every = chance.permutation(np.concatenate([mine[~is_strange], strange]))
            for some in np.array_split(every, max(1, len(every) // BATCH)):
                seen = x[some] * (chance.random((len(some), size), dtype=np.float32) > drop) / (1 - drop)
                lit = seen @ parts[0] + parts[1]
                mask = (chance.random(lit.shape, dtype=np.float32) > DROP) / (1 - DROP) * (lit > 0)
                score = (lit * mask) @ parts[2] + parts[3] + seen @ parts[4]
                told = 1 / (1 + np.exp(-np.clip(score, -30, 30)))
                wrong = ((told - self.goals[some]) * weights[some] / len(some)).astype(np.float32)
                back = np.outer(wrong, parts[2]) * mask
                slopes = (
                    seen.T @ back, back.sum(axis=0), (lit * mask).T @ wrong,
                    wrong.sum(keepdims=True), seen.T @ wrong,
                )  # fmt: skip
                step += 1
                for place, slope in enumerate(slopes):
                    means[place] += 0.1 * (slope - means[place])
                    squares[place] += 0.001 * (slope**2 - squares[place])
                    size_of = np.sqrt(squares[place] / (1 - 0.999**step)) + 1e-8
                    parts[place] -= (rate * means[place] / (1 - 0.9**step) / size_of).astype(np.float32)
                    if place in (0, 2, 4):
                        parts[place] -= np.float32(rate * DECAY) * parts[place]
        return parts


_KNOWN: dict[tuple[str, bool], np.ndarray] = {}


def vectors(texts: Sequence[str], is_question: bool = False) -> np.ndarray:
    """Texts as vectors of length one, questions as recall compares them."""
    new = [text for text in dict.fromkeys(texts) if (text, is_question) not in _KNOWN]
    if new:
        said = [
            read_question(text, now=date(2026, 1, 1)).phrasings if is_question else (text,) for text in new
        ]
        every = iter(np.asarray(offline_embedder().embed([one for some in said for one in some]), np.float32))
        for text, some in zip(new, said, strict=True):
            made = sum(next(every) for _ in some)
            _KNOWN[text, is_question] = made / np.linalg.norm(made)
    return np.array([_KNOWN[text, is_question] for text in texts])


if __name__ == "__main__":
    main()
