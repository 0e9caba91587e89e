"""Corrections: does recall put the newer of two facts first, keep the right one, and know the past?

Each pair is written to an account with forty other facts, and asked for through `account.recall`.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import octavo
from octavo.models.embedders import CallableEmbedder, offline_embedder

OTHERS = 40
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def main() -> None:
    """Measure every half of the set and print the table."""
    options = _options()
    file = options.data / "corrections.jsonl" if options.data.is_dir() else options.data
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    halves = options.half or sorted({row["half"] for row in rows})
    right: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    strange: Counter[tuple[str, str]] = Counter()
    seconds: list[float] = []
    embedder = _remembering() if not options.words else None
    for row in rows:
        if row["half"] in halves:
            is_right, is_strange, took = measure(row, others_of(row, rows), embedder)
            right[row["half"], row["kind"], row["lang"]].append(is_right)
            strange[row["half"], row["kind"]] += is_strange
            seconds.append(took)
            if options.errors and not is_right:
                print(
                    json.dumps(
                        {k: row[k] for k in ("half", "kind", "question", "older", "newer")},
                        ensure_ascii=False,
                    )
                )
    for half in halves:
        for kind in ("correction", "control", "past", "both"):
            told = [f"{kind:10} {half:7}"]
            every = [is_right for lang in ("en", "th") for is_right in right[half, kind, lang]]
            for name, some in (
                ("all", every),
                ("en", right[half, kind, "en"]),
                ("th", right[half, kind, "th"]),
            ):
                if some:
                    told.append(f"{name} {sum(some)}/{len(some)} = {100 * sum(some) / len(some):.1f} %")
            if len(told) > 1:
                print("  ".join(told), f" something else first {strange[half, kind]}")
    print(f"a recall: median {1000 * statistics.median(seconds):.2f} ms")


def measure(row: dict[str, Any], others: Sequence[str], embedder: Any) -> tuple[bool, bool, float]:
    """Whether the wanted one stands before the other, neither comes first, and how long the recall took."""
    with tempfile.TemporaryDirectory() as folder:
        account = octavo.open(
            folder, account="bench", actor="human:bench", embedder=embedder, clock=lambda: NOW
        )
        with account:
            items = [
                {"text": text, "at": datetime(2026, 1 + n % 10, 1 + n % 27, tzinfo=UTC)}
                for n, text in enumerate(others)
            ]
            account.remember_many(items)
            ids = {}
            for which in ("older", "newer"):
                at = datetime.fromisoformat(row[f"{which}_at"]).replace(tzinfo=UTC)
                ids[which] = _write(account, row[which], at, row.get("written", "fact"))
            account.catch_up()
            account.recall("warm up")
            start = time.perf_counter()
            hits = account.recall(row["question"], k=10)
            took = time.perf_counter() - start
    place = {hit.memory.id: place for place, hit in enumerate(hits)}
    is_strange = bool(hits) and hits[0].memory.id not in ids.values()
    if row["want"] == "both":
        is_kept = ids["older"] in place and ids["newer"] in place and not _is_replaced(hits, ids["older"])
        return is_kept, is_strange, took
    wanted, other = ids[row["want"]], ids["older" if row["want"] == "newer" else "newer"]
    return wanted in place and place[wanted] < place.get(other, len(hits)), is_strange, took


def _write(account: Any, text: str, at: datetime, kind: str) -> str | None:
    """Write a fact, a register without a topic or a turn; the id, None where the gate keeps it out.

    What the gate would refuse or merge is another matter: here the order is measured.
    """
    if kind == "turn":
        with account.sandbox() as sandbox:
            sandbox.turn("user", text, at=at)
            return sandbox.consolidate().added[0]
    verdict = account.remember(text, kind=kind, at=at, override="measured")
    return verdict.memory.id if verdict.memory else None


def _is_replaced(hits: Any, id_: str) -> bool:
    return any(hit.memory.id == id_ and hit.replaced is not None for hit in hits)


def others_of(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Forty facts of other rows and the same language, always the same for one row."""
    texts = sorted(
        {other["older"] for other in rows if other["row"] != row["row"] and other["lang"] == row["lang"]}
    )
    return random.Random(str(row["row"])).sample(texts, min(OTHERS, len(texts)))


def _remembering() -> CallableEmbedder:
    """The offline model, asked once for each text of the whole run."""
    model = offline_embedder()
    known: dict[str, Any] = {}

    def embed(texts: Sequence[str]) -> list[Any]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, model.embed(new), strict=True))
        return [known[text] for text in texts]

    return CallableEmbedder(name=model.name, dimension=model.dimension, function=embed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a file of pairs, or the folder that holds corrections.jsonl")
    parser.add_argument("--half", action="append", help="measure only this half (may be repeated)")
    parser.add_argument("--words", action="store_true", help="without an embedder")
    parser.add_argument("--errors", action="store_true", help="print each question that went wrong")
    return parser.parse_args()


if __name__ == "__main__":
    main()
