"""LangGraph's store in SQLite, with its index of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langgraph.store.base import PutOp
from langgraph.store.sqlite import SqliteStore

from bench.peers_data import DIMENSION, Document, Vectors

try:  # its vectors need extensions, which some builds of Python leave out
    import pysqlite3 as sqlite3
except ImportError:
    import sqlite3  # type: ignore[no-redef]

_NAMESPACE = ("bench",)


class Peer:
    """One store, one namespace."""

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        self._vectors = vectors
        folder.mkdir(parents=True, exist_ok=True)
        # As SqliteStore.from_conn_string opens it.
        self._db = sqlite3.connect(str(folder / "store.db"), check_same_thread=False, isolation_level=None)
        # The store reads text_fields; under the documented name, fields, it embeds the whole item.
        index: Any = {"dims": DIMENSION, "embed": self._embed, "text_fields": ["text"]}
        self._store = SqliteStore(self._db, index=index)
        self._store.setup()

    def add(self, documents: Sequence[Document]) -> None:
        """Put items in one batch."""
        self._store.batch(
            [PutOp(_NAMESPACE, d.id, {"text": d.dated, "session": d.session}) for d in documents]
        )

    def add_one(self, document: Document) -> None:
        """Put one item."""
        self._store.put(_NAMESPACE, document.id, {"text": document.dated, "session": document.session})

    load, update = add, add_one

    def ready(self) -> None:
        """Nothing to do: the store compares every vector."""

    def ask(self, question: str, vector: Any, k: int) -> list[str]:
        """The keys of the nearest items; the store takes no vector, so it is looked up."""
        return [item.key for item in self._store.search(_NAMESPACE, query=question, limit=k)]

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        return [list(row) for row in self._vectors(texts).tolist()]
