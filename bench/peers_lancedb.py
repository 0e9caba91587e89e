"""LanceDB: a table with vectors and a full-text index, searched together."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("LANCEDB_LOG", "error")  # a warning a query would cost time

import lancedb
import pyarrow as pa

from bench.peers_data import DIMENSION, Document, Vectors

_SCHEMA = pa.schema(
    [("id", pa.string()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), DIMENSION))]
)


class Peer:
    """One table; its full-text index is made when the documents are in."""

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
        """Make the full-text index and compact; the vectors are scanned, which finds all there is."""
        self._table.create_fts_index(
            "text", replace=True, stem=True, remove_stop_words=True, language="English"
        )
        self._table.optimize()

    def ask(self, question: str, vector: Any, k: int) -> list[str]:
        """The ids of the best rows by words and vectors, merged by the default (reciprocal ranks)."""
        query = self._vectors([question])[0] if vector is None else vector
        search = self._table.search(query_type="hybrid", vector_column_name="vector", fts_columns="text")
        rows = search.vector(query).text(question).distance_type("cosine").limit(k).select(["id"]).to_list()
        return [row["id"] for row in rows]

    def close(self) -> None:
        """Nothing to do: every write is on disk."""
