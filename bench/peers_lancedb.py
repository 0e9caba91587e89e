"""LanceDB: a table with vectors and a full-text index, searched together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("LANCEDB_LOG", "error")  # a warning a query would cost time

import lancedb
import pyarrow as pa
from lancedb.index import IvfPq
from lancedb.rerankers import LinearCombinationReranker

from bench.peers_data import DIMENSION, Document, Vectors

_SCHEMA = pa.schema(
    [("id", pa.string()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), DIMENSION))]
)


# The best of the mergers tried on the questions; the default, reciprocal ranks, finds less (docs/peers.md).
_MIX = LinearCombinationReranker(weight=0.3)


class Peer:
    """One table; its indexes are made when the documents are in."""

    approximate_from: int | None = 50_000  # rows; below that every vector is compared

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        self._vectors = vectors
        self._table = lancedb.connect(folder).create_table("bench", schema=_SCHEMA, exist_ok=True)

    def add(self, documents: Sequence[Document]) -> None:
        """Add rows in one call."""
        texts = [document.dated for document in documents]
        found = self._vectors(texts)
        self._table.add(
            pa.table(
                {
                    "id": [document.id for document in documents],
                    "text": texts,
                    "vector": pa.FixedSizeListArray.from_arrays(pa.array(found.ravel()), DIMENSION),
                },
                schema=_SCHEMA,
            )
        )

    def add_one(self, document: Document) -> None:
        """Add one row."""
        self.add([document])

    load, update = add, add_one

    def ready(self) -> None:
        """Make the full-text index and compact; a big table gets an index of vectors too."""
        self._table.create_fts_index(
            "text", replace=True, stem=True, remove_stop_words=True, language="English"
        )
        if self.approximate_from is not None and self._table.count_rows() >= self.approximate_from:
            self._table.create_index("vector", config=IvfPq(distance_type="cosine"), replace=True)
        self._table.optimize()

    def ask(self, question: str, vector: Any, k: int) -> list[str]:
        """The ids of the best rows by words and vectors, their scores mixed."""
        query = self._vectors([question])[0] if vector is None else vector
        search = self._table.search(query_type="hybrid", vector_column_name="vector", fts_columns="text")
        rows = (
            search.vector(query)
            .text(question)
            .distance_type("cosine")
            .rerank(_MIX)
            .limit(k)
            .select(["id"])
            .to_list()
        )
        return [row["id"] for row in rows]

    def close(self) -> None:
        """Nothing to do: every write is on disk."""
