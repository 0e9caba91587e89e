"""XQuAD in Thai: how often recall puts the right passage first, and among the first ten."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from octavo.domain.units import Unit, Watermark
from octavo.models.embedders import offline_embedder
from octavo.storage.index import Index, extend, passages_of
from octavo.storage.vectors import append_vectors, open_vectors
from octavo.storage.words import Wanted

NOW = datetime(2024, 6, 1, tzinfo=UTC)


def main() -> None:
    """Ask every question and print the shares."""
    options = _options()
    articles = json.loads((options.data / "xquad-th.json").read_text())["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    with tempfile.TemporaryDirectory() as folder:
        texts = [paragraph["context"] for paragraph in paragraphs]
        recall = store(Path(folder), texts, embedder=options.embedder)
        ranks = [
            _rank(recall(asked["question"], 10), number)
            for number, paragraph in enumerate(paragraphs)
            for asked in paragraph["qas"]
        ]
    shares = {f"R@{k}": round(100 * sum(rank < k for rank in ranks) / len(ranks), 2) for k in (1, 10)}
    print(json.dumps({"questions": len(ranks), **shares}, indent=2))


def store(folder: Path, texts: list[str], *, embedder: str) -> Callable[[str, int], list[int]]:
    """Put passages into an account, one memory each; its recall: a question and k, to their numbers."""
    model = offline_embedder() if embedder == "use" else None
    index = Index(folder)
    units = [_unit(number, text) for number, text in enumerate(texts)]
    extend(folder, units, [], Watermark(version=1, header="1"), since=Watermark(version=0, header=""))
    vectors = None
    if model is not None:
        empty = open_vectors(folder / "vectors", embedder=model.name, dimension=model.dimension, history="")
        vectors = append_vectors(empty, model.embed(passages_of(units)))

    def recall(question: str, k: int) -> list[int]:
        asked = index.read(question, now=NOW.date(), version=1, scopes=None)
        query = None if model is None else sum(model.embed(list(asked.phrasings)))
        matches = index.search(asked, Wanted(version=1), limit=k, vectors=vectors, query=query)
        return [int(match.memory) for match in matches]

    return recall


def _rank(found: list[int], wanted: int) -> int:
    return found.index(wanted) if wanted in found else 10


def _unit(number: int, text: str) -> Unit:
    return Unit(
        memory=str(number),
        rev=1,
        turn=None,
        scope="shared",
        kind="fact",
        layer="semantic",
        text=text,
        at=NOW,
        valid_from=1,
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder that holds xquad-th.json")
    parser.add_argument("--embedder", default="use", choices=["use", "none"])
    options = parser.parse_args()
    if not (options.data / "xquad-th.json").exists():
        parser.error(f"{options.data} holds no xquad-th.json; see the data folder's README")
    return options


if __name__ == "__main__":
    main()
