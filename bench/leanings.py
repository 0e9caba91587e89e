"""Fit the directions in which orders and wishes lie among the offline embedder's vectors.

The sentences are our own (`leanings.json`, English with a little Thai, none of them from a set that recall is
judged by): `python -m bench.leanings --write src/octavo/models/leanings.bin`.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from octavo.domain.query import read_question
from octavo.models.embedders import offline_embedder

SENTENCES = Path(__file__).with_name("leanings.json")
STEPS, RATE, RIDGE = 1_500, 20.0, 1e-4


def main() -> None:
    """Fit, say how many of the sentences each direction tells apart, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="where the directions go")
    options = parser.parse_args()
    given = json.loads(SENTENCES.read_text("utf-8"))
    special, general, wishes, others = (vectors(list(some)) for some in sentences(given))
    orders = np.concatenate([special, general])
    rows = {
        "order": fitted(orders, np.concatenate([wishes, others])),
        "wish": fitted(wishes, np.concatenate([orders, others])),
        "general": fitted(general, special),
    }
    for name, told, rest in (
        ("order", orders, others),
        ("wish", wishes, others),
        ("general", general, special),
    ):
        line = rows[name]
        right = (told @ line[:-1] + line[-1] > 0).mean(), (rest @ line[:-1] + line[-1] < 0).mean()
        print(f"{name}: {len(told)} sentences, {right[0]:.3f} on its side, {right[1]:.3f} of the others not")
    for mean in (orders, wishes, vectors(given["subjects"]), asked(given["questions"])):
        rows[str(len(rows))] = np.append(mean.mean(axis=0), 0.0)
    if options.write:
        options.write.write_bytes(np.array(list(rows.values())).astype("<f2").tobytes())


def sentences(given: dict[str, Any]) -> Iterator[list[str]]:
    """Orders about something, orders about everything, wishes, and what is neither."""
    chance = random.Random(5)
    special, general, wishes = list(given["orders"]), [], list(given["wishes"])
    for topic in given["topics"]:
        for frames, acts, each, most in (("order_frames", "do", 6, 3), ("dont_frames", "dont", 3, 2)):
            for act in chance.sample(given[acts], each):
                special += [_put(frame, act, topic) for frame in chance.sample(given[frames], most)]
    special += [_put(frame, act) for act in given["dont"] for frame in given["never_frames"]]
    special += [_put(frame, act) for act in given["do"] for frame in given["always_frames"]]
    for act in given["general"]:
        general += [_put(frame, act) for frame in given["always_frames"] + given["general_frames"]]
    for thing in given["wish_things"]:
        capital = thing[0].upper() + thing[1:]
        wishes += [f.format(x=thing, X=capital) for f in chance.sample(given["wish_frames"], 11)]
    told = [
        f"{who[0].upper()}{who[1:]} {what}."
        for who in given["people"]
        for what in chance.sample(given["happenings"], 9)
    ]
    for topic in given["topics"]:
        told += [_put(frame, "", topic) for frame in chance.sample(given["request_frames"], 4)]
    for fact in given["facts"]:
        frames = chance.sample(given["fact_frames"], 4)
        told += [_put(frame, fact, chance.choice(given["topics"])) for frame in frames]
    thai = given["thai"]
    for topic in thai["topics"]:
        for frames, acts, most in (("order_frames", "do", 6), ("dont_frames", "dont", 3)):
            special += [
                _put(chance.choice(thai[frames]), act, topic) for act in chance.sample(thai[acts], most)
            ]
    general += [_put(frame, act) for act in thai["general"] for frame in thai["general_frames"]]
    for thing in thai["wish_things"]:
        wishes += [frame.format(x=thing) for frame in chance.sample(thai["wish_frames"], 6)]
    told += [_put(frame, act) for act in thai["facts"] for frame in thai["fact_frames"]]
    told += [_put(frame, act) for act in thai["requests"] for frame in thai["request_frames"]]
    yield from (special, general, wishes, told + given["others"])


def _put(frame: str, act: str, topic: str = "") -> str:
    capital = act[:1].upper() + act[1:]
    return frame.format(d=act, D=capital, f=act, F=capital, t=topic)


def vectors(texts: Sequence[str]) -> np.ndarray:
    """Texts as vectors of length one."""
    found = np.asarray(offline_embedder().embed(texts), dtype=np.float64)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def asked(questions: Sequence[str]) -> np.ndarray:
    """Questions as recall compares them."""
    read = [read_question(text, now=date(2026, 1, 1)).phrasings for text in questions]
    sums = np.array([vectors(phrasings).sum(axis=0) for phrasings in read])
    return sums / np.linalg.norm(sums, axis=1, keepdims=True)


def fitted(told: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """A direction and a threshold that tell some vectors from others: logistic, both sides weighed alike."""
    both = np.concatenate([told, rest])
    goal = np.repeat([1.0, 0.0], [len(told), len(rest)])
    share = np.repeat([1 / len(told), 1 / len(rest)], [len(told), len(rest)])
    line, offset = np.zeros(both.shape[1]), 0.0
    for _ in range(STEPS):
        error = (1 / (1 + np.exp(-(both @ line + offset))) - goal) * share
        line -= RATE * (both.T @ error + RIDGE * line)
        offset -= RATE * error.sum()
    return np.append(line, offset)


if __name__ == "__main__":
    main()
