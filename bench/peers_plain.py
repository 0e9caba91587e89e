"""The plainest peer: a file of lines and an exact comparison of all vectors, to prove the harness."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers_data import Document, Vectors


class Peer:
    """A file of JSON lines, read whole when opened."""

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._vectors = vectors
        self._path = folder / "lines.jsonl"
        self._path.touch()
        self._lines = [json.loads(line) for line in self._path.read_text().splitlines()]

    def add(self, documents: Sequence[Document]) -> None:
        """Append lines and wait for the disk."""
        lines = [(document.id, document.dated) for document in documents]
        with self._path.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        self._lines += lines

    def add_one(self, document: Document) -> None:
        """Append one line."""
        self.add([document])

    load, update = add, add_one

    def ready(self) -> None:
        """Nothing to do."""

    def ask(self, question: str, vector: Any, k: int) -> list[str]:
        """The ids of the nearest lines."""
        query = self._vectors([question])[0] if vector is None else vector
        scores = self._vectors([text for _, text in self._lines]) @ query
        return [self._lines[place][0] for place in scores.argsort()[::-1][:k]]

    def close(self) -> None:
        """Nothing to do."""
