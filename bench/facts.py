"""Facts written in bulk and one by one, beside SQLite's own full-text table and the peers in the same run.

The peers want an environment of their own, with Octavo in it: docs/peers.md says how.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import apsw

import octavo
from bench import harness
from bench.peers_crew import PeerFailed, Worker
from bench.peers_data import synthetic
from bench.texts import Texts

_TITLE = "Facts"
_AT_ONCE = 1_000
_FEW, _TIMES = 1_000, 7  # of the smallest size so many accounts, because one is over in a moment
_PEERS = {
    "octavo_facts": "Octavo, vectors and words",
    "lancedb": "LanceDB",
    "langgraph": "LangGraph's store",
    "chroma": "Chroma",
    "mem0": "Mem0",
}
_BEHIND = ("chroma", "mem0")  # whom Octavo is to be ahead of


def main(argv: Sequence[str] | None = None) -> None:
    """Talk-like and one-form facts at growing sizes: facts a CPU-second, one `remember`, bytes by part."""
    bench = harness.begin("facts", _TITLE, argv)
    sizes = [60, 120] if bench.smoke else [1_000, 10_000, 100_000]
    for form, texts in (("talk", _talk), ("one form", _form)):
        costs: dict[int, float] = {}
        for size in sizes:
            runs = [_bulk(bench, form, list(texts(size, seed)), seed) for seed in range(_times(size))]
            costs[size] = statistics.median(runs)
            target = 2_500.0 if size >= 10_000 else None
            bench.figure(f"bulk, {size:,} facts, {form}", size / costs[size], "/s", at_least=target)
        first, last = (costs[size] / size for size in (sizes[0], sizes[-1]))
        bench.figure(
            f"cost of a fact at {sizes[-1]:,} / at {sizes[0]:,}, {form}", last / first, "×", at_most=1.5
        )
    for size in sizes[:-1]:
        bench.figure(f"SQLite FTS5, {size:,} talk facts", size / _fts(list(_talk(size, 3))), "/s")
        _peers(bench, size)
    bench.note(
        "Facts a CPU-second of the whole process: gate, rules, ledger (synced), state and words, by "
        f"`remember_many` of {_AT_ONCE:,} and `catch_up`; no embedding. SQLite's table has no gate. Beside "
        "the peers, which keep vectors, Octavo keeps them too; what embedding takes is taken off for all, "
        "and nothing is grouped into assemblies."
    )
    bench.finish()


def _times(size: int) -> int:
    return _TIMES if size == _FEW else 1


def _bulk(bench: harness.Bench, form: str, texts: Sequence[str], seed: int) -> float:
    """CPU seconds of writing facts; of the first account of a size also what it does then, and its bytes."""
    size, items = len(texts), [{"text": text} for text in texts]
    with tempfile.TemporaryDirectory() as folder:
        with (
            octavo.open(Path(folder) / "one", actor="human:bench", embedder=False) as account,
            octavo.open(Path(folder) / "other", actor="human:bench", embedder=False) as other,
        ):
            # Texts that are not measured: the same ones would be taken apart already when they are.
            other.remember_many([{"text": text} for text in _talk(_AT_ONCE, 90 + seed)])
            before = time.process_time()
            for start in range(0, size, _AT_ONCE):
                account.remember_many(items[start : start + _AT_ONCE])
            account.catch_up()
            taken = time.process_time() - before
            if seed == 0:
                _then(bench, account, other, form, size)
        if seed == 0 and form == "talk" and size >= _FEW:
            _bytes(bench, Path(folder) / "one", size)
    return taken


def _then(bench: harness.Bench, account: octavo.Account, other: octavo.Account, form: str, size: int) -> None:
    each = [_timed(account, text) for text in _talk(20, 9)]
    took = statistics.median(each)
    bench.figure(f"one `remember` on {size:,}, {form}", took, "ms CPU", at_most=2.0, samples=each)
    ratio = _after_a_write(account, other, form)
    bench.figure(f"recall after a write / on a current index, {size:,}, {form}", ratio, "×", at_most=1.3)


def _bytes(bench: harness.Bench, folder: Path, size: int) -> None:
    parts = _parts(folder)
    for part, found in parts.items():
        bench.figure(f"bytes a fact on {size:,}: {part}", found / size, "B")
    *others, rows = parts.values()
    bench.figure(f"look-alike rows of all bytes on {size:,}", rows / sum(others), "×", at_most=0.2)


def _after_a_write(account: octavo.Account, other: octavo.Account, form: str) -> float:
    """The CPU time of the asking thread: recall right after one write against recall on a current index.

    The same questions on both sides, all of them asked before. Before a question to the current index another
    account is written to, so that the processor has as much else in its caches there.
    """
    questions = list(_talk(40, 21) if form == "talk" else _orders(40))

    def asked(question: str) -> float:
        before = time.thread_time()
        account.recall(question)
        return time.thread_time() - before

    account.catch_up()
    for question in questions:
        account.recall(question)
    current, after = list[float](), list[float]()
    for number, question in enumerate(questions):
        text = f"note {number} about the lights of harbour {7 * number}"
        other.remember(text)
        current.append(asked(question))
        account.remember(text)
        after.append(asked(question))
        account.catch_up()
        account.recall(questions[number - 1])  # whoever opens what was indexed meanwhile
    return statistics.median(after) / statistics.median(current)


def _timed(account: octavo.Account, text: str) -> float:
    before = time.process_time()
    account.remember(text)
    return (time.process_time() - before) * 1e3


def _talk(count: int, seed: int) -> Iterator[str]:
    texts = Texts(seed)
    return (texts.sentence() for _ in range(count))


def _form(count: int, seed: int) -> Iterator[str]:
    numbers = range(seed * count, (seed + 1) * count)
    return (f"Order number {n} was sent to customer {n * 7 % 9_973} on day {n % 365}" for n in numbers)


def _orders(count: int) -> Iterator[str]:
    return (f"when was order number {n * 7} sent to customer {n * 49 % 9_973}?" for n in range(count))


def _parts(folder: Path) -> dict[str, int]:
    """Bytes of the ledger, the state, the look-alike rows in it, and the words."""
    [account] = [path for path in folder.iterdir() if path.is_dir()]
    sizes = {"ledger": 0, "state": 0, "words": 0}
    for path in account.rglob("*"):
        if path.is_file():
            part = path.relative_to(account).parts
            name = "ledger" if part[0] in ("ledger", "segments") else "words" if "recall" in part else "state"
            sizes[name] += path.stat().st_size if part[0] in ("ledger", "segments", "index") else 0
    db = apsw.Connection(str(account / "index" / "state.db"))
    rows = db.execute("SELECT sum(pgsize) FROM dbstat WHERE name = 'filed'").fetchone()
    db.close()
    return {**sizes, "look-alike rows, of the state": int((rows and rows[0]) or 0)}


def _fts(texts: Sequence[str]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        db = apsw.Connection(str(Path(folder) / "fts.db"))
        db.execute("CREATE VIRTUAL TABLE fact USING fts5(text)")
        before = time.process_time()
        with db:
            db.executemany("INSERT INTO fact VALUES (?)", [(text,) for text in texts])
        taken = time.process_time() - before
        db.close()
        return taken


def _peers(bench: harness.Bench, size: int) -> None:
    """The same texts in every peer that is installed, each in a process of its own."""
    documents, rates = synthetic(size, 0, seed=3).documents, dict[str, float]()
    for name, called in _PEERS.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                worker = Worker(name, Path(folder) / "store", Path(folder), synthetic=True)
                rates[name] = size / worker.call("fill", documents, _AT_ONCE)
                worker.close()
            except PeerFailed as failure:
                bench.note(f"{called} took no part at {size:,}: {failure}")
                continue
        bench.figure(f"{called}, {size:,} talk facts", rates[name], "/s")
    for name in _BEHIND:
        if name in rates:
            ahead = rates["octavo_facts"] / rates[name]
            bench.figure(f"Octavo / {_PEERS[name]}, {size:,} talk facts", ahead, "×", at_least=1)


if __name__ == "__main__":
    main()
