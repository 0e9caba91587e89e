"""Recall speed: words, vectors and ranking over 10k, 100k and 1M units, query vector given, one thread.

The index alone is measured at every size; at 100k units also `account.recall`, as a caller sees it.
"""

from __future__ import annotations

import shutil
import time
import zlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import faiss
import numpy as np

import octavo
from bench import accounts
from bench.harness import Bench, begin, percentile, resident_bytes
from bench.texts import Texts
from octavo.domain.compression import CompressionPolicy
from octavo.domain.filters import Filter
from octavo.domain.policy import Policy
from octavo.domain.units import Unit, Watermark
from octavo.models.embedders import CallableEmbedder
from octavo.storage.index import Index, extend
from octavo.storage.rows import FORMAT
from octavo.storage.vectors import Vectors, append_vectors, open_vectors, signs

TITLE = "recall speed"
START = datetime(2023, 1, 1, tzinfo=UTC)
TURNS, CHUNK, DIMENSION, CENTRES = 30, 20_000, 512, 2000
TARGET_MS = {100_000: 5.0, 1_000_000: 15.0}
WHOLE = 100_000  # units of the account that is asked through the public API


def main(argv: Sequence[str] | None = None) -> None:
    """Build or reuse each account and measure it."""
    bench = begin("recall_speed", TITLE, argv, units={"type": int, "action": "append", "help": "a size"})
    sizes = bench.options.units or [10_000, 100_000, 1_000_000]
    for size in [2_000] if bench.smoke else sizes:
        measure(bench, size)
        if bench.smoke or size == WHOLE:
            measure_account(bench, size)
    bench.finish()


def measure(bench: Bench, size: int) -> None:
    """Ask seeded questions of an account of one size and note the figures."""
    folder = bench.cache / f"recall-{size}-v{FORMAT}"
    if not (folder / "done").exists():
        build(bench, folder, size)
    before = resident_bytes()
    index, vectors = Index(folder), vectors_of(folder)
    version, took, bare = index.watermark.version, [], []
    for text, query in questions(folder, bench.pick(300, 20)):
        began = time.perf_counter()
        question = index.read(text, now=START.date(), version=version, scopes=None)
        index.search(question, Filter(), version=version, limit=10, vectors=vectors, query=query)
        took.append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        faiss.knn_hamming(signs(query[None, :]), vectors.bits, 10, "mc")
        bare.append((time.perf_counter() - began) * 1000)
    warm = took[len(took) // 3 :]
    p50 = percentile(warm, 50)
    bench.figure(f"p50, {size:,} units", p50, "ms", at_most=TARGET_MS.get(size), samples=warm)
    bench.figure(f"p95, {size:,} units", percentile(warm, 95), "ms")
    bench.figure(
        f"a bare scan of the vectors' signs, {size:,} units", percentile(bare, 50), "ms", samples=bare
    )
    bench.figure(f"first recall, {size:,} units", took[0], "ms")
    bench.figure(f"memory added, {size:,} units", (resident_bytes() - before) / 2**20, "MiB")
    for part, pattern in (("columns", "*.bin"), ("words", "words/*"), ("vectors", "vectors/*")):
        used = sum(path.stat().st_size for path in folder.glob(pattern))
        bench.figure(f"{part} a unit, {size:,} units", used / size, "bytes")


def measure_account(bench: Bench, size: int) -> None:
    """Ask an account with as many units, really written, the way a caller asks it."""
    memories = round(size / 1.9)  # of ten memories nine are episodes of two turns, one is a fact
    root = accounts.account(bench.cache, memories)
    manual = Policy(compression=CompressionPolicy(mode="manual"))
    with octavo.open(root, accounts.NAME, embedder=embedder(), policy=manual) as account:
        account.catch_up()
        texts, took = Texts(11), []
        for number in range(bench.pick(300, 20)):
            text = texts.sentence()
            vector = seeded_vector(f"question {number}").tolist()
            began = time.perf_counter()
            account.recall(text, vector=vector)
            took.append((time.perf_counter() - began) * 1000)
    warm = took[len(took) // 3 :]
    p50, named = percentile(warm, 50), f"account.recall, {size:,} units"
    bench.figure(f"p50, {named}", p50, "ms", at_most=TARGET_MS.get(size), samples=warm)
    bench.figure(f"p95, {named}", percentile(warm, 95), "ms")


def embedder() -> CallableEmbedder:
    """Seeded vectors around seeded topics, so that embedding costs next to nothing."""
    return CallableEmbedder(
        name="synthetic", dimension=DIMENSION, function=lambda texts: [seeded_vector(text) for text in texts]
    )


def seeded_vector(text: str) -> np.ndarray:
    """A vector that follows from the text alone."""
    seed = zlib.crc32(text.encode())
    topic = np.random.default_rng(seed % CENTRES).standard_normal(DIMENSION, dtype=np.float32)
    noise = np.random.default_rng(seed).standard_normal(DIMENSION, dtype=np.float32)
    return np.asarray(topic + noise)


def build(bench: Bench, folder: Path, size: int) -> None:
    """Index seeded conversations of thirty turns and seeded vectors around seeded topics."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    texts, draw = Texts(7), np.random.default_rng(7)
    centres = draw.standard_normal((CENTRES, DIMENSION)).astype(np.float32)
    vectors, since, seconds = vectors_of(folder), Watermark(version=0, header=""), 0.0
    for first in range(0, size, CHUNK):
        units = [unit(number, texts.sentence()) for number in range(first, min(first + CHUNK, size))]
        reached = Watermark(version=since.version + 1, header=str(since.version + 1))
        began = time.perf_counter()
        extend(folder, units, [], reached, since=since)
        seconds += time.perf_counter() - began
        topics = centres[draw.integers(0, CENTRES, len(units))]
        noise = draw.standard_normal(topics.shape).astype(np.float32)
        vectors = append_vectors(vectors, topics + noise)
        since = reached
    bench.figure(f"words indexed, {size:,} units", size / seconds, "units/s")
    (folder / "done").touch()


def unit(number: int, text: str) -> Unit:
    """The n-th turn of the synthetic account."""
    session, position = divmod(number, TURNS)
    return Unit(
        memory=f"ep{number // 2:08d}",
        rev=1,
        turn=number % 2,
        scope="shared",
        kind="episode",
        layer="episodic",
        text=text,
        at=START + timedelta(hours=session % 20_000),
        valid_from=number // CHUNK + 1,
        session=f"session-{session}",
        position=position,
        speaker=("user", "assistant")[number % 2],
    )


def questions(folder: Path, count: int) -> list[tuple[str, np.ndarray]]:
    """Seeded questions, each with a vector near that of some unit."""
    texts, draw = Texts(11), np.random.default_rng(11)
    floats = vectors_of(folder).floats
    near = floats[np.sort(draw.integers(0, len(floats), count))].astype(np.float32)
    noise = draw.standard_normal(near.shape).astype(np.float32) * 0.02
    return [(texts.sentence(), vector) for vector in near + noise]


def vectors_of(folder: Path) -> Vectors:
    """The synthetic account's vectors."""
    return open_vectors(folder / "vectors", embedder="synthetic", dimension=DIMENSION, history="")


if __name__ == "__main__":
    main()
