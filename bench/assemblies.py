"""Assemblies: what they change on LoCoMo, what a recall and a commit pay for them, and what forming costs."""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
from msgspec.structs import replace

import octavo
from bench.harness import Bench, begin, percentile
from bench.locomo import Turn, measure, turns_of
from octavo.domain.compression import CompressionPolicy
from octavo.domain.policy import AssemblyPolicy, Policy
from octavo.models.embedders import CallableEmbedder

TITLE = "assemblies"
DIMENSION, EACH = 128, 25  # so many memories of each subject
OFF = AssemblyPolicy(mode="manual", boost=0.0)
MODES: tuple[Literal["off", "background"], ...] = ("off", "background", "off", "background")
SETTINGS = {
    "on": AssemblyPolicy(mode="manual"),
    "on, likeness .55": AssemblyPolicy(mode="manual", likeness=0.55),
    "on, boost .02": AssemblyPolicy(mode="manual", boost=0.02),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure forming and recall on a made-up account, and LoCoMo if its data is there."""
    data = {"type": Path, "default": None, "help": "the folder that holds locomo-dev.json"}
    size = {"type": int, "default": 10_000, "help": "memories of the made-up account"}
    bench = begin("assemblies", TITLE, argv, data=data, size=size)
    speed(bench, bench.pick(bench.options.size, 300))
    if bench.options.data is not None:
        bench.command = "python -m bench.assemblies --data locomo"
        locomo(bench, json.loads((bench.options.data / "locomo-dev.json").read_text()))
    bench.finish()


def speed(bench: Bench, size: int) -> None:
    """Form assemblies of seeded memories; recall and commit with and without them."""
    subjects = size // EACH
    centres = np.random.default_rng(7).standard_normal((subjects, DIMENSION)).astype(np.float32)

    def embed(texts: Sequence[str]) -> list[list[float]]:
        numbers = [[int(word) for word in text.split() if word.isdigit()] for text in texts]
        noise = [np.random.default_rng(n[1] if len(n) > 1 else 1).standard_normal(DIMENSION) for n in numbers]
        return [(centres[n[0] % subjects] + 0.6 * more).tolist() if n else more.tolist()
                for n, more in zip(numbers, noise, strict=True)]  # fmt: skip

    embedder = CallableEmbedder(name="seeded", dimension=DIMENSION, function=embed)
    with tempfile.TemporaryDirectory() as folder:
        account = _opened(folder, embedder, SETTINGS["on"])
        for start in range(0, size, 5_000):
            some = range(start, min(start + 5_000, size))
            account.remember_many(
                {"text": f"topic {n % subjects} and turn {n} of the talk", "kind": "episode"} for n in some
            )
        account.catch_up()
        began = time.perf_counter()
        account.assemble()
        took = time.perf_counter() - began
        count = account.stats().by_kind.get("assembly", 0)
        bench.figure(f"forming, a memory of {size:,}", 1000 * took / size, "ms", at_most=10.0)
        bench.figure("assemblies formed", count, "assemblies")
        began = time.perf_counter()
        merged = 0
        while done := len(account.upkeep().merged):
            merged += done
            if merged >= 100:
                break
        if merged:
            bench.figure("merging, an assembly", 1000 * (time.perf_counter() - began) / merged, "ms")
        account.close()
        asked = [
            f"topic {n} turn"
            for n in random.Random(5).sample(range(subjects), min(subjects, bench.pick(200, 20)))
        ]
        medians = {}
        for name, policy in (
            ("off", OFF),
            ("on", SETTINGS["on"]),
            ("off again", OFF),
            ("on again", SETTINGS["on"]),
        ):
            opened = _opened(folder, embedder, policy)
            opened.recall(asked[0])
            samples = [_recall_seconds(opened, question) for question in asked]
            medians[name] = 1000 * percentile(samples, 50)
            opened.close()
        _commits(bench, folder, embedder)
        off = min(medians["off"], medians["off again"])
        bench.figure("recall p50 without boost", off, "ms")
        more = min(medians["on"], medians["on again"]) - off
        bench.figure("recall p50, more with boost", more, "ms", at_most=0.3)


def _commits(bench: Bench, folder: str, embedder: Any) -> None:
    """What a commit costs while assemblies form in the background, and while there are none."""
    each = bench.pick(200, 10)
    medians: dict[str, float] = {}
    for turn, mode in enumerate(MODES):
        account = _opened(folder, embedder, AssemblyPolicy(mode=mode))
        samples = []
        for n in range(each):
            began = time.perf_counter()
            account.remember(f"topic {n} and turn {turn * each + n} of the evening", kind="episode")
            samples.append(time.perf_counter() - began)
        account.close()
        medians[mode] = min(1000 * percentile(samples, 50), medians.get(mode, float("inf")))
    bench.figure("commit p50, assemblies off", medians["off"], "ms")
    bench.figure("commit p50, more with assemblies", medians["background"] - medians["off"], "ms")


def locomo(bench: Bench, conversations: list[dict[str, Any]]) -> None:
    """R@10 by category with and without assemblies on the same accounts, and the paired bootstrap."""
    rows: dict[str, list[tuple[int, float]]] = {}
    for conversation in conversations:
        turns = list(turns_of(conversation["conversation"], captions=True))
        for likeness in sorted({policy.likeness for policy in SETTINGS.values()}):
            named = {n: p for n, p in SETTINGS.items() if p.likeness == likeness}
            with tempfile.TemporaryDirectory() as folder:
                _store(folder, turns, next(iter(named.values())))
                if likeness == AssemblyPolicy().likeness:
                    named = {"off": replace(OFF, likeness=likeness), **named}
                for name, policy in named.items():
                    rows.setdefault(name, []).extend(_asked(folder, conversation["qa"], turns, policy))
    for name, measured in rows.items():
        for category in (None, 1, 2, 3, 4):
            pairs = [
                (value, base)
                for (kind, value), (_, base) in zip(measured, rows["off"], strict=True)
                if kind != 5 and category in (None, kind)
            ]
            what = "R@10" if category is None else f"R@10 of category {category}"
            if name == "off":
                bench.figure(f"LoCoMo {what}, off", 100 * statistics.mean(v for v, _ in pairs), "%")
            else:
                low, high = bootstrap([value - base for value, base in pairs])
                gain = 100 * statistics.mean(value - base for value, base in pairs)
                bench.figure(f"LoCoMo {what}, {name}: gain", gain, "points", at_least=-0.1)
                bench.note(f"{what}, {name}: 95 % of resamples between {low:+.2f} and {high:+.2f} points")


def bootstrap(differences: Sequence[float], rounds: int = 2_000) -> tuple[float, float]:
    """Between what the mean difference lies in 95 % of resamples, in points."""
    array = np.array(differences)
    picks = np.random.default_rng(3).integers(0, len(array), (rounds, len(array)))
    low, high = np.percentile(100 * array[picks].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


def _store(folder: str, turns: list[Turn], policy: AssemblyPolicy) -> None:
    account = _opened(folder, None, policy)
    for _, said in groupby(turns, key=lambda turn: turn.session):
        session = list(said)
        with account.sandbox(started_at=session[0].at) as sandbox:
            for turn in session:
                sandbox.turn(turn.speaker, turn.text, at=turn.at, data={"number": turn.id})
    account.catch_up()
    account.assemble()
    account.catch_up()
    account.close()


def _asked(
    folder: str, questions: list[dict[str, Any]], turns: list[Turn], policy: AssemblyPolicy
) -> Iterator[tuple[int, float]]:
    session_of = {turn.id: turn.session for turn in turns}
    account = _opened(folder, None, policy)
    for asked in questions:
        evidence = {turn for turn in asked["evidence"] if turn in session_of}
        if evidence:
            hits = account.recall(asked["question"], k=20, unit="turn")
            found = [hit.memory.turns[hit.turn].data["number"] for hit in hits if hit.turn is not None]
            yield asked["category"], measure(found, evidence, session_of)["R@10"]
    account.close()


def _opened(folder: str, embedder: Any, policy: AssemblyPolicy) -> octavo.Account:
    rules = Policy(compression=CompressionPolicy(mode="manual"), assemblies=policy)
    return octavo.open(folder, actor="human:bench", policy=rules, embedder=embedder)


def _recall_seconds(account: octavo.Account, question: str) -> float:
    began = time.perf_counter()
    account.recall(question)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
