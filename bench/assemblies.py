"""Assemblies: what they change on LoCoMo, what a recall and a commit pay for them, and what forming costs."""

from __future__ import annotations

import json
import random
import shutil
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
from octavo.engine import assemble
from octavo.models.embedders import CallableEmbedder

TITLE = "assemblies"
DIMENSION, EACH = 128, 25  # so many memories of each subject
OFF = AssemblyPolicy(mode="manual", boost=0.0)
SMALL = AssemblyPolicy(mode="manual", max_members=4, max_assemblies=50_000)  # many, so that many can merge
MERGING = AssemblyPolicy(merges_per_pass=10_000, max_assemblies=50_000)
MODES: tuple[Literal["off", "background"], ...] = ("off", "background", "off", "background")
SETTINGS = {
    "on": AssemblyPolicy(mode="manual"),
    "on, likeness .55": AssemblyPolicy(mode="manual", likeness=0.55),
    "on, boost .05": AssemblyPolicy(mode="manual", boost=0.05),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure forming, merging and recall on a made-up account, and LoCoMo if its data is there."""
    data = {"type": Path, "default": None, "help": "the folder that holds locomo-dev.json"}
    size = {"type": int, "default": 100_000, "help": "memories of the made-up account"}
    bench = begin("assemblies", TITLE, argv, data=data, size=size)
    speed(bench, bench.pick(bench.options.size, 300))
    if bench.options.data is not None:
        bench.command = "python -m bench.assemblies --data locomo"
        locomo(bench, json.loads((bench.options.data / "locomo-dev.json").read_text()))
    bench.finish()


def speed(bench: Bench, size: int) -> None:
    """Form small assemblies of seeded memories and merge them; recall and commit with and without them.

    All is processor time, of a recall and a commit that of their own thread: what else runs counts little.
    """
    subjects = size // EACH
    centres = np.random.default_rng(7).standard_normal((subjects, DIMENSION)).astype(np.float32)

    def embed(texts: Sequence[str]) -> list[list[float]]:
        numbers = [[int(word) for word in text.split() if word.isdigit()] for text in texts]
        noise = [np.random.default_rng(n[1] if len(n) > 1 else 1).standard_normal(DIMENSION) for n in numbers]
        return [(centres[n[0] % subjects] + 0.6 * more).tolist() if n else more.tolist()
                for n, more in zip(numbers, noise, strict=True)]  # fmt: skip

    embedder = CallableEmbedder(name="seeded", dimension=DIMENSION, function=embed)
    with tempfile.TemporaryDirectory() as place:
        folder = str(shutil.copytree(_written(bench, size, embedder), Path(place) / "account"))
        account = _opened(folder, embedder, SMALL)
        began = time.process_time()
        account.assemble()
        took = time.process_time() - began
        bench.figure(f"forming, a memory of {size:,}", 1000 * took / size, "ms of CPU", at_most=10.0)
        bench.figure("assemblies formed", account.stats().by_kind.get("assembly", 0), "assemblies")
        account.close()
        _merges(bench, folder, embedder)
        _recalls(bench, folder, embedder, subjects)
        _commits(bench, folder, embedder)


def _written(bench: Bench, size: int, embedder: Any) -> Path:
    """An account of so many memories with their vectors, kept between runs."""
    folder = bench.cache / f"assemblies-named-{size}"
    if not folder.exists():
        making = folder.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        account = _opened(str(making), embedder, OFF)
        for start in range(0, size, 5_000):
            some = range(start, min(start + 5_000, size))
            subjects = (n % (size // EACH) for n in some)
            texts = (
                f"topic {s} of {_word(s)} and turn {n} of the talk"
                for n, s in zip(some, subjects, strict=True)
            )
            account.remember_many({"text": text, "kind": "episode"} for text in texts)
        account.catch_up()
        account.close()
        making.rename(folder)
    return folder


def _word(number: int) -> str:
    """A word for a subject, which all that is said of it shares."""
    return "".join("bokadefigomupirusetu"[2 * int(digit) :][:2] for digit in f"{number:04d}")


def _merges(bench: Bench, folder: str, embedder: Any) -> None:
    """What merging costs until no two are alike, or ten thousand have gone."""
    account = _opened(folder, embedder, MERGING)
    began, merges = time.process_time(), 0
    while merges < 10_000 and (done := len(assemble.merge_alike(account._spine, account._indexing))):
        merges += done
    took = time.process_time() - began
    bench.figure("merges", merges, "merges")
    bench.figure("merging, a merge", 1000 * took / max(1, merges), "ms of CPU")
    bench.figure("assemblies left", account.stats().by_kind.get("assembly", 0), "assemblies")
    account.close()


def _recalls(bench: Bench, folder: str, embedder: Any, subjects: int) -> None:
    """What the boost adds to a recall: the same question to two handles, one after the other and in turn."""
    chosen = random.Random(5).sample(range(subjects), min(subjects, bench.pick(300, 20)))
    handles = [
        (name, _opened(folder, embedder, policy)) for name, policy in (("off", OFF), ("on", SETTINGS["on"]))
    ]
    seconds: dict[str, list[float]] = {name: [] for name, _ in handles}
    for asked in (f"topic {n} turn" for n in (*chosen[:20], *chosen)):  # the first ones only warm up
        handles.reverse()
        for name, account in handles:
            began = time.thread_time()
            account.recall(asked)
            seconds[name].append(time.thread_time() - began)
    for _, account in handles:
        account.close()
    off, on = (seconds[name][20:] for name in ("off", "on"))
    more = [with_it - without for with_it, without in zip(on, off, strict=True)]
    bench.figure("recall p50 without boost", 1000 * percentile(off, 50), "ms of CPU")
    bench.figure("recall, more with boost, p50", 1000 * percentile(more, 50), "ms of CPU", at_most=0.3)


def _commits(bench: Bench, folder: str, embedder: Any) -> None:
    """What a commit costs its own thread while assemblies form beside it, and while there are none."""
    each = bench.pick(200, 10)
    medians: dict[str, float] = {}
    for turn, mode in enumerate(MODES):
        account = _opened(folder, embedder, AssemblyPolicy(mode=mode))
        samples = []
        for n in range(each):
            began = time.thread_time()
            account.remember(f"topic {n} and turn {turn * each + n} of the evening", kind="episode")
            samples.append(time.thread_time() - began)
        account.close()
        medians[mode] = min(1000 * percentile(samples, 50), medians.get(mode, float("inf")))
    bench.figure("commit p50, assemblies off", medians["off"], "ms of CPU")
    bench.figure("commit p50, more with assemblies", medians["background"] - medians["off"], "ms of CPU")


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
                least = -0.1 if name == "on" else None  # what is promised is of the default
                bench.figure(f"LoCoMo {what}, {name}: gain", gain, "points", at_least=least)
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


if __name__ == "__main__":
    main()
