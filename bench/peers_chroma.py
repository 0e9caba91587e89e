"""Chroma: a vector store in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chromadb
from chromadb.config import Settings

from bench.peers_data import Document, Vectors


class Peer:
    """A persistent client with one collection; embeddings are handed in."""

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        self._vectors = vectors
        client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
        self._collection = client.get_or_create_collection(
            "bench", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def add(self, documents: Sequence[Document]) -> None:
        """Add documents in one call."""
        texts = [document.dated for document in documents]
        self._collection.add(
            ids=[document.id for document in documents],
            documents=texts,
            embeddings=self._vectors(texts),
            metadatas=[{"session": d.session, "at": d.at.isoformat()} for d in documents],
        )

    def add_one(self, document: Document) -> None:
        """Add one document."""
        self.add([document])

    load, update = add, add_one

    def ready(self) -> None:
        """Nothing to do: Chroma indexes by itself."""

    def ask(self, question: str, vector: Any, k: int) -> list[str]:
        """The ids of the nearest documents."""
        query = self._vectors([question])[0] if vector is None else vector
        return list(self._collection.query(query_embeddings=[query], n_results=k, include=[])["ids"][0])

    def close(self) -> None:
        """Nothing to do: every write is on disk."""
