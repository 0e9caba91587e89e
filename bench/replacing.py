"""Fit what tells by words and vectors whether the newer of two facts is what a question wants.

`python -m bench.replacing FILE… --write src/octavo/models/replacing.bin`: each file holds pairs as
`bench.corrections` measures them: `pairs.jsonl` once, and more often, so that they count as much, the corpora
but for `corrections_talk.jsonl` (twice) and the development set (three times). Halves that nothing may be
fitted on are left out.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import numpy as np

from octavo.domain.corrections import is_about_the_past, present
from octavo.domain.query import read_question
from octavo.models.embedders import offline_embedder
from octavo.models.replacing import cosines, row_of

LEFT = ("test", "blind", "held", "own6")
HIDDEN, NETS, STEPS, BATCH, RATE, DECAY, DROP, DROP_WORDS = 48, 4, 40, 128, 2e-3, 2e-2, 0.4, 0.1
AXES, SHARE = 160, 0.5  # of the vectors, and what they count beside a word's feature
SWAPPED, PAST = 0.1, 0.3  # what such pairs weigh beside a correction or a control
# An account holds much that is no answer: of so many facts the nearest are told apart from corrections.
ACCOUNT, STRANGERS, OTHERS = 60, 6, 0.03
Pair = tuple[str, str, str, str, float, float]  # asked, its vector's text, older, newer, goal, weight


def main() -> None:
    """Fit on every file, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--leave", action="append", default=[], help="a half to leave out as well")
    parser.add_argument("--write", type=Path, help="where the table goes")
    options = parser.parse_args()
    table = fit([*pairs_of(options.files, (*LEFT, *options.leave))])
    if options.write:
        options.write.write_bytes(table.astype("<f2").tobytes())


def pairs_of(files: Sequence[Path], left: Sequence[str]) -> Iterator[Pair]:
    """Corrections, controls, controls the other way round, and facts about something else."""
    for file in files:
        rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
        rows = [row for row in rows if row["half"] not in left and row["kind"] != "both"]
        beside = defaultdict(set)
        about = defaultdict(set)
        for row in rows:
            beside[row["lang"]] |= {row["older"], row["newer"]}
            for text in (row["older"], row["question"]):
                about[text] |= {row["older"], row["newer"]}
        pools = {language: sorted(texts) for language, texts in beside.items()}
        for row in rows:
            asked, older, newer = row["question"], row["older"], row["newer"]
            if row["kind"] == "past":
                if is_about_the_past(asked):
                    yield present(asked), asked, older, newer, 1.0, PAST
                continue
            is_over = row["kind"] == "correction"
            yield asked, asked, older, newer, float(is_over), 1.0
            if not is_over:
                yield asked, asked, newer, older, 1.0, SWAPPED
            pool, chance = pools[row["lang"]], random.Random(asked + newer)
            some = chance.sample(pool, min(ACCOUNT, len(pool)))
            others = [text for text in some if text not in about[older] | about[asked]]
            near = vectors(others) @ (vectors([asked])[0] + vectors([older])[0])
            strange = [others[int(place)] for place in np.argsort(-near)[:STRANGERS]]
            strange += [
                text
                for language in pools.keys() - {row["lang"]}
                for text in chance.sample(pools[language], 2)
            ]
            for text in strange:
                yield asked, asked, older, text, 0.0, OTHERS


def fit(pairs: Sequence[Pair]) -> np.ndarray:
    """The table of a few small nets, with what makes the features alike folded into their first layer."""
    told = np.array([row_of(asked, older, newer) for asked, _, older, newer, _, _ in pairs])
    asked, older, newer = (vectors([pair[place] for pair in pairs], place == 1) for place in (1, 2, 3))
    told = np.concatenate([told, cosines(asked, older, newer)], axis=1)
    goal, weight = np.array([pair[4:] for pair in pairs], dtype=np.float32).T
    axes = _axes(np.concatenate([asked, older, newer]))
    seen = newer @ axes
    middle, wide = told.mean(axis=0), told.std(axis=0) + 1e-3
    centre, spread = seen.mean(axis=0), seen.std(axis=0) / SHARE
    x = np.concatenate([(told - middle) / wide, (seen - centre) / spread], axis=1).astype(np.float32)
    lines, last = [], []
    skip = np.zeros(x.shape[1] + 1)
    for seed in range(NETS):
        first, offset, out, base, through = _net(x, goal, weight, seed)
        lines += [*np.vstack([first, offset]).T]
        last += [*out / NETS]
        skip += np.append(through, base) / NETS
    lines = np.array([*lines, skip])
    words, meaning, offset = lines[:, : told.shape[1]], lines[:, told.shape[1] : -1], lines[:, -1]
    words, meaning = words / wide, meaning / spread
    offset = offset - words @ middle - meaning @ centre
    return np.column_stack([words, meaning @ axes.T, offset, np.append(last, 1.0)])


def _axes(every: np.ndarray) -> np.ndarray:
    """The directions in which texts differ most."""
    middle = every - every.mean(axis=0)
    _, found = np.linalg.eigh(middle.T @ middle)
    axes: np.ndarray = found[:, ::-1][:, :AXES]
    return axes


def _net(x: np.ndarray, goal: np.ndarray, weight: np.ndarray, seed: int) -> list[np.ndarray]:
    """One layer of rectified units beside a line, by Adam, with parts left out at random."""
    chance = np.random.default_rng(seed)
    count, size = x.shape
    drop = np.where(np.arange(size) < size - AXES, DROP_WORDS, DROP).astype(np.float32)
    parts = [
        chance.normal(0, size**-0.5, (size, HIDDEN)), np.zeros(HIDDEN),
        chance.normal(0, HIDDEN**-0.5, HIDDEN), np.zeros(1), np.zeros(size),
    ]  # fmt: skip
    parts = [part.astype(np.float32) for part in parts]
    means, squares = ([np.zeros_like(part) for part in parts] for _ in range(2))
    step = 0
    for epoch in range(STEPS):
        rate = RATE * (1 - epoch / STEPS) + 1e-5
        for some in np.array_split(chance.permutation(count), max(1, count // BATCH)):
            seen = x[some] * (chance.random((len(some), size), dtype=np.float32) > drop) / (1 - drop)
            lit = seen @ parts[0] + parts[1]
            mask = (chance.random(lit.shape, dtype=np.float32) > DROP) / (1 - DROP) * (lit > 0)
            score = (lit * mask) @ parts[2] + parts[3] + seen @ parts[4]
            wrong = (1 / (1 + np.exp(-np.clip(score, -30, 30))) - goal[some]) * weight[some] / len(some)
            back = np.outer(wrong, parts[2]) * mask
            slopes = (
                seen.T @ back,
                back.sum(axis=0),
                (lit * mask).T @ wrong,
                wrong.sum(keepdims=True),
                seen.T @ wrong,
            )
            step += 1
            for place, slope in enumerate(slopes):
                means[place] += 0.1 * (slope - means[place])
                squares[place] += 0.001 * (slope**2 - squares[place])
                size_of = np.sqrt(squares[place] / (1 - 0.999**step)) + 1e-8
                parts[place] -= rate * means[place] / (1 - 0.9**step) / size_of
                if place in (0, 2, 4):
                    parts[place] -= rate * DECAY * parts[place]
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
