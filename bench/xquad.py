"""XQuAD in Thai: how often recall puts the right passage first, and among the first ten."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import octavo

NOW = datetime(2024, 6, 1, tzinfo=UTC)


def main() -> None:
    """Ask every question and print the shares."""
    options = _options()
    articles = json.loads((options.data / "xquad-th.json").read_text())["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    with tempfile.TemporaryDirectory() as folder:
        texts = [paragraph["context"] for paragraph in paragraphs]
        recall = store(Path(folder), texts, embedder=options.embedder, rerank=options.rerank)
        ranks = [
            _rank(recall(asked["question"], 10), number)
            for number, paragraph in enumerate(paragraphs)
            for asked in paragraph["qas"]
        ]
    shares = {f"R@{k}": round(100 * sum(rank < k for rank in ranks) / len(ranks), 2) for k in (1, 10)}
    print(json.dumps({"questions": len(ranks), **shares}, indent=2))


def store(
    folder: Path, texts: list[str], *, embedder: str, rerank: bool = False
) -> Callable[[str, int], list[int]]:
    """Put passages into an account, one memory each, and return its recall as their numbers."""
    account = octavo.open(
        folder,
        actor="human:bench",
        embedder=None if embedder == "use" else False,
        reranker=octavo.offline_reranker() if rerank else False,
    )
    items = [{"text": text, "kind": "episode"} for text in texts]  # a fact is at most 1,200 characters
    verdicts = account.remember_many(items)
    number_of = {verdict.or_raise().id: number for number, verdict in enumerate(verdicts)}
    account.catch_up()

    def recall(question: str, k: int) -> list[int]:
        return [number_of[hit.memory.id] for hit in account.recall(question, k=k)]

    return recall


def _rank(found: list[int], wanted: int) -> int:
    return found.index(wanted) if wanted in found else 10


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder that holds xquad-th.json")
    parser.add_argument("--embedder", default="use", choices=["use", "none"])
    parser.add_argument("--rerank", action="store_true", help="with the rerank extra")
    options = parser.parse_args()
    if not (options.data / "xquad-th.json").exists():
        parser.error(f"{options.data} holds no xquad-th.json; see the data folder's README")
    return options


if __name__ == "__main__":
    main()
