"""Facts written in bulk and one by one, beside SQLite's own full-text table and the peers in the same run."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path

import apsw

import octavo
from bench import harness
from bench.peers_data import Vectors, synthetic
from bench.texts import Texts

_TITLE = "Facts"
_AT_ONCE = 1_000
_PEERS = {"lancedb": "LanceDB", "langgraph": "LangGraph's store", "chroma": "Chroma", "mem0": "Mem0"}


def main(argv: Sequence[str] | None = None) -> None:
    """Talk-like and one-form facts at growing sizes: facts a CPU-second, one `remember`, bytes by part."""
    bench = harness.begin("facts", _TITLE, argv)
    sizes = [60, 120] if bench.smoke else [1_000, 10_000, 100_000]
    for form, texts in (("talk", _talk), ("one form", _form)):
        rates: list[float] = []
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                rates.append(_bulk(bench, Path(folder), form, size, texts))
        bench.figure(
            f"cost of a fact at {sizes[-1]:,} / at {sizes[0]:,}, {form}",
            rates[0] / rates[-1],
            "×",
            at_most=1.5,
        )
    floor = sizes[-2]
    bench.figure(f"SQLite FTS5, {floor:,} talk facts", floor / _fts(list(_talk(floor))), "/s")
    for name, called in _PEERS.items():
        _peer(bench, name, called, floor)
    bench.note(
        "Facts a CPU-second of the whole process: gate, rules, ledger (synced), state and words, by "
        f"`remember_many` of {_AT_ONCE:,} and `catch_up`; no embedding. SQLite's table has no gate."
    )
    bench.finish()


def _bulk(
    bench: harness.Bench, folder: Path, form: str, size: int, texts: Callable[[int], Iterator[str]]
) -> float:
    items = [{"text": text} for text in texts(size)]
    with (
        octavo.open(folder / "one", actor="human:bench", embedder=False) as account,
        octavo.open(folder / "other", actor="human:bench", embedder=False) as other,
    ):
        other.remember_many(items[:_AT_ONCE])
        before = time.process_time()
        for start in range(0, size, _AT_ONCE):
            account.remember_many(items[start : start + _AT_ONCE])
        account.catch_up()
        rate = size / (time.process_time() - before)
        target = 2_500.0 if size >= 10_000 else None
        bench.figure(f"bulk, {size:,} facts, {form}", rate, "/s", at_least=target)
        each = [_timed(account, text) for text in _talk(20, seed=9)]
        bench.figure(
            f"one `remember` on {size:,}, {form}",
            statistics.median(each),
            "ms CPU",
            at_most=2.0,
            samples=each,
        )
        ratio = _after_a_write(account, other, form)
        bench.figure(f"recall after a write / on a current index, {size:,}, {form}", ratio, "×", at_most=1.3)
    if form == "talk" and size >= 1_000:
        parts = _parts(folder / "one")
        for part, found in parts.items():
            bench.figure(f"bytes a fact on {size:,}: {part}", found / size, "B")
        *others, rows = parts.values()
        bench.figure(f"look-alike rows of all bytes on {size:,}", rows / sum(others), "×", at_most=0.2)
    return rate


def _after_a_write(account: octavo.Account, other: octavo.Account, form: str) -> float:
    """The CPU time of the asking thread: recall right after one write against recall on a current index.

    The same questions on both sides, all of them asked before. Before a question to the current index another
    account is written to, so that the processor has as much else in its caches there.
    """
    questions = list(_talk(40, seed=21) if form == "talk" else _orders(40))

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


def _talk(count: int, seed: int = 3) -> Iterator[str]:
    texts = Texts(seed)
    return (texts.sentence() for _ in range(count))


def _form(count: int) -> Iterator[str]:
    return (f"Order number {n} was sent to customer {n * 7 % 9_973} on day {n % 365}" for n in range(count))


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


def _peer(bench: harness.Bench, name: str, called: str, size: int) -> None:
    """The same number of texts in a peer that is installed, its vectors made before the clock starts."""
    try:
        module = import_module(f"bench.peers_{name}")
    except ModuleNotFoundError:
        bench.note(f"{called} is not installed here (bench/requirements-peers.txt).")
        return
    documents, vectors = synthetic(size, 0, seed=3).documents, Vectors(synthetic=True)
    vectors([text for document in documents for text in (document.dated, document.line, document.text)])
    with tempfile.TemporaryDirectory() as folder:
        peer = module.Peer(Path(folder), vectors)
        before = time.process_time()
        for start in range(0, size, _AT_ONCE):
            peer.add(documents[start : start + _AT_ONCE])
        peer.ready()
        bench.figure(f"{called}, {size:,} talk facts", size / (time.process_time() - before), "/s")
        peer.close()


if __name__ == "__main__":
    main()
