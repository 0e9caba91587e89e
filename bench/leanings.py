"""Fit what tells orders and wishes, and what they are about, from the offline embedder's vectors.

The sentences are our own (`leanings.json`, `orders.jsonl` and the corpora, English and Thai):
`python -m bench.leanings --write src/octavo/models/leanings.bin`.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from octavo.domain.orders import shape_of
from octavo.domain.query import read_question
from octavo.models.embedders import offline_embedder
from octavo.models.leanings import SHAPE, SHAPES, without

SENTENCES = Path(__file__).with_name("leanings.json")
ROWS = SENTENCES.with_name("orders.jsonl")
CORPORA = SENTENCES.parent.parent / "tests" / "corpora"
LEFT = ("verdict", "outside", "later")  # hands that nothing is fitted on
LATER = ("hand_q", "hand_r")  # whose sentences recognise few more and take statements for orders
STEPS, RATE, PUSH, RIDGE = 500, 9.0, 0.9, 1e-4
ADVICE_RIDGE = 1e-3
LEAST = (1.2, 1.6)
LEFT_OUT = 5  # one of so many is left out to see how well the rest tells it
Groups = Sequence[tuple[np.ndarray, float]]  # vectors, and what their group weighs


def main() -> None:
    """Fit, say how well each part tells what it was not fitted on, and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, help="where the table goes")
    parser.add_argument("--sentences", type=Path, default=SENTENCES, help="what it is fitted on")
    options = parser.parse_args()
    given = json.loads(options.sentences.read_text("utf-8"))
    kinds, advice = directions(given), advised(given)
    means, domains = subjects(given["domains"] + given["lived"]["domains"])
    if options.write:
        table = np.concatenate([kinds, advice, wide(means), wide(domains)])
        options.write.write_bytes(table.astype("<f2").tobytes())


def directions(given: dict[str, Any]) -> np.ndarray:
    """The directions of orders, of wishes, and of those among them that are about every answer."""
    special, general, wishes, others = sentences(given)
    said = {
        (kind, form): [t for d in given["domains"] if bool(d.get("form")) == form for t in d.get(kind, ())]
        for kind in ("orders", "wishes")
        for form in (False, True)
    }
    asks = [t for d in given["domains"] for t in d.get("requests", ()) if not t.endswith("?")]
    of_domains = {kind: said[kind, False] + said[kind, True] for kind in ("orders", "wishes")}
    lived = given["lived"]
    talk = {k: kept_apart(texts + lived[k]) for k, texts in given["talk"].items()}  # fitted on, and left out
    hands = said_by_hands()
    groups = [
        [
            (special + general, 0.25),
            (of_domains["orders"], 0.35),
            (talk["orders"][0], 0.6),
            (hands["order"], 1.2),
        ],
        [(wishes, 0.25), (of_domains["wishes"], 0.35), (talk["wishes"][0], 0.6), (hands["wish"], 1.2)],
        [(others, 0.5), (talk["others"][0], 1.7), (asks, 0.3), (lived["plain"], 1.6)],
    ]
    texts = [text for group in groups for some, _ in group for text in some]
    goal = np.repeat(np.eye(3)[:, :2], [sum(len(some) for some, _ in group) for group in groups], axis=0)
    share = np.concatenate([np.full(len(s), weight / len(s)) for group in groups for s, weight in group])
    kinds = logistic(shaped(texts), goal, share / share.sum(), ridge=RIDGE / 5)
    for name, (_, left_out) in talk.items():
        for language, some in (
            ("en", [t for t in left_out if not is_thai(t)]),
            ("th", [*filter(is_thai, left_out)]),
        ):
            shares = np.bincount(leaning(kinds, some), minlength=3) / len(some)
            print(f"{name} {language}, {len(some)} left out: order, wish, neither {shares.round(3)}")
    about_all = [
        (vectors(some), w)
        for some, w in (
            *((general, 0.4), (said["orders", True], 0.5), (said["wishes", True], 0.5)),
            (lived["general"], 0.3),
        )
    ]
    lived_some = [t for k in ("orders", "wishes") for t in lived[k] if t not in lived["general"]]
    about_some = [
        (vectors(some), 0.5) for some in (special, said["orders", False], said["wishes", False], lived_some)
    ]
    line = weighed(about_all, about_some)
    right = [
        np.concatenate([v for v, _ in side]) @ line[:-1] + line[-1] > 0 for side in (about_all, about_some)
    ]
    print(f"general: {right[0].mean():.3f} on its side, {1 - right[1].mean():.3f} of the others not")
    return np.concatenate([kinds, wide(line[None, :])])


def said_by_hands() -> dict[str, list[str]]:
    """The orders and wishes that other hands wrote, with what they apply to."""
    found: dict[str, list[str]] = {"order": [], "wish": []}
    for path in (ROWS, *sorted(CORPORA.glob("orders*.jsonl"))):
        for row in map(json.loads, path.read_text("utf-8").splitlines()):
            if row["half"] not in (*LEFT, *LATER):
                found[row["kind"]].append(row["text"])
    return found


def advised(given: dict[str, Any]) -> np.ndarray:
    """The direction of questions that ask for advice or work, against those about the world or the past."""
    lived = given["lived"]
    requests = [text for group in given["domains"] for text in group.get("requests", ())]
    texts = [*lived["advised"], *lived["known"], *requests]
    goal = np.array([True] * len(lived["advised"]) + [False] * len(lived["known"]) + [True] * len(requests))
    share = np.concatenate([np.ones(len(texts) - len(requests)), np.full(len(requests), 0.15)])
    shapes = SHAPE * np.array([shape_of(text) for text in texts])
    seen, out = np.concatenate([asked(texts), shapes], axis=1), np.arange(len(texts)) % LEFT_OUT == 0
    line = logistic(seen[~out], goal[~out, None], share[~out] / share[~out].sum(), ridge=ADVICE_RIDGE)[0]
    right = (seen @ line[:-1] + line[-1] > 0) == goal
    told = [right[out & (goal == wanted)].mean().round(3) for wanted in (True, False)]
    print(f"advice: {told[0]} of what asks for it, {told[1]} of the rest, left out, on their sides")
    return logistic(seen, goal[:, None], share / share.sum(), ridge=ADVICE_RIDGE)


def is_thai(text: str) -> bool:
    """Whether a sentence is written in Thai."""
    return any("\u0e00" <= letter <= "\u0e7f" for letter in text)


def kept_apart(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Most of some sentences, and the few that are left out."""
    out = np.random.default_rng(1).integers(0, LEFT_OUT, len(texts)) == 0
    return [t for t, o in zip(texts, out, strict=True) if not o], [
        t for t, o in zip(texts, out, strict=True) if o
    ]


def leaning(kinds: np.ndarray, texts: Sequence[str]) -> np.ndarray:
    """Which sentences are orders (0), wishes (1), or neither (2)."""
    seen = shaped(texts) @ kinds[:, :-1].T + kinds[:, -1] - LEAST
    return np.where(seen.max(axis=1) > 0, seen.argmax(axis=1), 2)


def shaped(texts: Sequence[str]) -> np.ndarray:
    """Sentences as vectors with their shapes beside them."""
    return np.concatenate([vectors(texts), SHAPE * np.array([shape_of(t) for t in texts])], axis=1)


def wide(lines: np.ndarray) -> np.ndarray:
    """Lines that know nothing of shapes, in the width of those that do."""
    return np.concatenate([lines[:, :-1], np.zeros((len(lines), SHAPES)), lines[:, -1:]], axis=1)


def subjects(given: list[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """The means of orders, wishes, conditions and questions; and a line for each domain they are about."""
    kinds = ("orders", "wishes", "subjects", "requests")
    names = list(dict.fromkeys(chain.from_iterable(group["about"] for group in given)))
    seen, goals, means = [], [], []
    for kind in kinds:
        groups = [group for group in given if not group.get("form")]
        texts = [text for group in groups for text in group.get(kind, ())]
        found = asked(texts) if kind == "requests" else vectors(texts)
        means.append(np.append(found.mean(axis=0), 0.0))
        seen.append(without(found, means[-1][:-1]))
        goals += [[n in group["about"] for n in names] for group in groups for _ in group.get(kind, ())]
    every, goal = np.concatenate(seen), np.array(goals, dtype=np.float32)
    out = np.random.default_rng(0).integers(0, LEFT_OUT, len(every)) == 0
    lines = logistic(every[~out], goal[~out])
    nearest = (every[out] @ lines[:, :-1].T + lines[:, -1]).argmax(axis=1)
    right = [bool(g[n]) for g, n in zip(goal[out], nearest, strict=True) if g.any()]
    print(
        f"{len(names)} domains, {len(every)} texts: {np.mean(right):.3f} of those left out in the right one"
    )
    return np.array(means), logistic(every, goal)


def logistic(
    seen: np.ndarray, goal: np.ndarray, share: np.ndarray | None = None, ridge: float = RIDGE
) -> np.ndarray:
    """A line and an offset for each column of a goal, fitted by gradient descent."""
    seen = np.column_stack([seen, np.ones(len(seen))]).astype(np.float32)
    share = np.full(len(seen), 1 / len(seen)) if share is None else share
    weights, kept = share[:, None].astype(np.float32), np.array([ridge] * (seen.shape[1] - 1) + [0.0])
    lines = np.zeros((goal.shape[1], seen.shape[1]), dtype=np.float32)
    moving = np.zeros_like(lines)
    for _ in range(STEPS):
        error = (1 / (1 + np.exp(-(seen @ lines.T))) - goal) * weights
        moving = PUSH * moving + error.T @ seen + kept.astype(np.float32) * lines
        lines -= RATE * moving
    return lines


def weighed(these: Groups, rest: Groups) -> np.ndarray:
    """A direction and a threshold that tell some groups of vectors from others."""
    every = np.concatenate([found for found, _ in (*these, *rest)])
    share = np.concatenate([np.full(len(found), weight / len(found)) for found, weight in (*these, *rest)])
    goal = np.arange(len(every)) < sum(len(found) for found, _ in these)
    line: np.ndarray = logistic(every, goal[:, None].astype(np.float64), share)[0]
    return line


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


if __name__ == "__main__":
    main()
