"""Recall speed: words, vectors and ranking over 10k, 100k and 1M units, query vector given, one thread.

The index alone is measured at every size; at 100k units also `account.recall`, as a caller sees it. With
`--lived N` accounts live through the front door instead: sessions of 20 and of 2,000 turns with facts beside
them, cores and spheres made, asked beside that work, at rest, and right after each write, and by a process of
its own; and what token vectors cost is measured.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

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
from octavo.models.rerank import is_rerank_installed, offline_reranker
from octavo.storage.index import Index, extend
from octavo.storage.rows import Units
from octavo.storage.vectors import ModelManifest, Vectors, append_vectors, signs

TITLE = "recall speed"
LIVED_NAME, LIVED_TITLE = "recall_lived", "recall, lived through the front door"
START = datetime(2023, 1, 1, tzinfo=UTC)
TURNS, CHUNK, DIMENSION, CENTRES = 30, 20_000, 512, 2000
TARGET_MS = {100_000: 5.0, 1_000_000: 15.0}
LIVED, LIVED_MS = (20, 2_000), 8.0
WHOLE = 100_000  # units of the account that is asked through the public API


def main(argv: Sequence[str] | None = None) -> None:
    """Build or reuse each account and measure it."""
    size_of = {"type": int, "action": "append"}
    options = {"units": {**size_of, "help": "a size"}, "lived": {**size_of, "help": "turns lived through"}}
    bench = begin("recall_speed", TITLE, argv, **options)
    if bench.options.lived:  # kept beside the figures of the index, not in their place
        bench.name, bench.title = LIVED_NAME, LIVED_TITLE
    for turns in [400] if bench.smoke else bench.options.lived or []:
        for session in LIVED:
            measure_lived(bench, turns, min(session, turns // 2))
    if bench.options.lived:
        measure_tokens(bench, bench.pick(2_000, 40))
        bench.finish()
        return
    sizes = bench.options.units or [10_000, 100_000, 1_000_000]
    for size in [2_000] if bench.smoke else sizes:
        measure(bench, size)
        if bench.smoke or size == WHOLE:
            measure_account(bench, size)
    bench.finish()


def measure(bench: Bench, size: int) -> None:
    """Ask seeded questions of an account of one size and note the figures."""
    folder = bench.cache / f"recall-{size}-v{Units.FORMAT}"
    if not (folder / "done").exists():
        build(bench, folder, size)
    before = resident_bytes()
    index, vectors = Index(folder), vectors_of(folder)
    version, took, bare = index.units().manifest.watermark.version, [], []
    for text, query in questions(folder, bench.pick(300, 20)):
        began = time.perf_counter()
        question = index.read(text, now=START.date(), version=version, scopes=None)
        index.search(question, Filter(), version=version, limit=10, vectors=vectors, query=query)
        took.append((time.perf_counter() - began) * 1000)
        began = time.perf_counter()
        faiss.knn_hamming(signs(query[None, :]), vectors.column("bits"), 10, "mc")
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
    with lived(root, policy=manual) as account:
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


def measure_lived(bench: Bench, turns: int, session: int) -> None:
    """Live through sessions of one length, and ask as a caller does."""
    texts, named = Texts(13), f"{turns:,} turns lived in sessions of {session:,}"
    bench.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=bench.cache) as root:
        with lived(root) as account:
            used = time.process_time()
            for _ in range(0, turns, session):
                with account.sandbox() as sandbox:
                    for number in range(session):
                        sandbox.turn(("user", "assistant")[number % 2], texts.sentence())
                        if number % 20 == 19:
                            sandbox.remember(texts.sentence())
            ask(bench, account, f"beside background work, {named}", bench.pick(60, 5))
            account.wait()
            account.catch_up()
            each = (time.process_time() - used) / turns * 1000
            bench.figure(f"to live and be indexed, cores and spheres made, {named}", each, "ms CPU a turn")
            ask(bench, account, f"at rest, {named}", bench.pick(300, 10))
            write = lambda: account.remember(texts.sentence())  # noqa: E731
            ask(bench, account, f"after a write, {named}", bench.pick(60, 5), write)
            made = account.stats().by_kind
            told = ", ".join(f"{made.get(kind, 0):,} {kind}s" for kind in ("fact", "core", "sphere"))
            bench.note(f"{named}: {made.get('episode', 0):,} episodes, {told}.")
        with get_context("spawn").Pool(1) as alone:
            took = alone.apply(first_recall, (root,))
        bench.figure(f"the first recall of a process, with opening, {named}", took, "ms")
        for part, size in parts_of(Path(root)).items():
            bench.figure(f"{part} a turn, {named}", size / turns, "bytes")


def lived(root: str | Path, **more: Any) -> octavo.Account:
    """The account that is lived in; what a second look costs is measured apart from it."""
    more = {"embedder": embedder(), "reranker": False, **more}
    return octavo.open(root, accounts.NAME, actor="agent:bench", **more)


def first_recall(root: str) -> float:
    """The milliseconds that a process takes to open an account and answer its first question."""
    began = time.perf_counter()
    with lived(root) as account:
        account.recall("What did the harbour look like?", vector=seeded_vector("first").tolist())
        return (time.perf_counter() - began) * 1000


def parts_of(root: Path) -> dict[str, int]:
    """The bytes of an account on disk, by part."""
    sizes = dict.fromkeys(("ledger", "state", "columns and words", "vectors", "everything else"), 0)
    for path in root.rglob("*"):
        if path.is_file():
            top, *rest = path.relative_to(root).parts[1:] or ("",)
            part = "ledger" if top in ("ledger", "segments") else "everything else"
            if top == "index":
                is_vector = any(name.startswith(("vectors-", "tokens-")) for name in rest)
                part = "vectors" if is_vector else "columns and words" if rest[0] == "recall" else "state"
            sizes[part] += path.stat().st_size
    return sizes


def measure_tokens(bench: Bench, turns: int) -> None:
    """What the second look costs when turns are indexed: processor time and bytes, with the extra's model."""
    if not is_rerank_installed():
        bench.note("The extra `rerank` is not installed here: no cost of token vectors.")
        return
    texts, used = Texts(17), {}
    bench.cache.mkdir(parents=True, exist_ok=True)
    for name, reranker in (("without", False), ("with", offline_reranker())):
        with tempfile.TemporaryDirectory(dir=bench.cache) as root, lived(root, reranker=reranker) as account:
            with account.sandbox() as sandbox:
                for number in range(turns):
                    sandbox.turn(("user", "assistant")[number % 2], texts.sentence())
            began = time.process_time()
            account.catch_up()
            used[name] = (time.process_time() - began) / turns * 1000
            tokens = sum(path.stat().st_size for path in Path(root).rglob("tokens-*/*"))
    bench.figure("token vectors made for a turn", used["with"] - used["without"], "ms CPU")
    bench.figure("token vectors of a turn", tokens / turns, "bytes")


def ask(
    bench: Bench, account: octavo.Account, named: str, count: int, before: Callable[[], object] | None = None
) -> None:
    """Ask so many questions, each after something else was done, and note the figures."""
    texts, wall, worked = Texts(11), [], []
    for number in range(count):
        if before is not None:
            before()
        text, vector = texts.sentence(), seeded_vector(f"question {number}").tolist()
        began, used = time.perf_counter(), time.thread_time()
        account.recall(text, vector=vector)
        wall.append((time.perf_counter() - began) * 1000)
        worked.append((time.thread_time() - used) * 1000)
    for what, took in (("", wall), ("processor time, ", worked)):
        p50, p95 = percentile(took, 50), percentile(took, 95)
        bench.figure(f"p50, {what}{named}", p50, "ms", at_most=LIVED_MS, samples=took)
        bench.figure(f"p95, {what}{named}", p95, "ms", at_most=3 * p50)


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
    return Vectors.open(folder / "vectors", ModelManifest(model="synthetic", dimension=DIMENSION, history=""))


if __name__ == "__main__":
    main()
