"""Mem0 without an LLM (`infer=False`), with its local vector store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Its client of an LLM wants a key even when no LLM is asked.
os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none"}

from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase

from bench.peers_data import DIMENSION, Document, Vectors


class Peer:
    """One memory of one user."""

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        qdrant = {"path": str(folder / "qdrant"), "on_disk": True, "embedding_model_dims": DIMENSION}
        self._memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": qdrant},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = _SameVectors(vectors)

    def add(self, documents: Sequence[Document]) -> None:
        """Add messages one by one; a call's metadata is one, and it carries the document's id."""
        for document in documents:
            self.add_one(document)

    def add_one(self, document: Document) -> None:
        """Add one message."""
        self._memory.add(
            [{"role": "user", "content": document.dated}],
            user_id="bench",
            metadata={"document": document.id},
            infer=False,
        )

    load, update = add, add_one

    def ready(self) -> None:
        """Nothing to do: the local store compares every vector."""

    def ask(self, question: str, vector: Any, k: int) -> list[str]:
        """The ids of the nearest messages; search takes no vector, so it is looked up."""
        found = self._memory.search(question, top_k=k, filters={"user_id": "bench"}, threshold=0.0)
        return [hit["metadata"]["document"] for hit in found["results"]]

    def close(self) -> None:
        """Let go of the folder."""
        self._memory.vector_store.client.close()


class _SameVectors(EmbeddingBase):
    def __init__(self, vectors: Vectors) -> None:
        super().__init__()
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return list(self._vectors([text])[0].tolist())
