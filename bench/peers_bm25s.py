"""bm25s: words alone, an index that is built once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bm25s
import Stemmer

from bench.peers_data import Document, Vectors


class Peer:
    """An index over a list; a new document means a new index."""

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        self._folder = folder
        self._stemmer = Stemmer.Stemmer("english")
        self._ids: list[str] = []
        self._texts: list[str] = []
        self._index: Any = None
        if (folder / "ids.json").exists():
            self._ids = json.loads((folder / "ids.json").read_text())
            self._index = bm25s.BM25.load(folder, mmap=True)

    def add(self, documents: Sequence[Document]) -> None:
        """Note documents for the next building of the index."""
        self._ids += [document.id for document in documents]
        self._texts += [document.dated for document in documents]

    def add_one(self, document: Document) -> None:
        """Note one document for the next building of the index."""
        self.add([document])

    load, update = add, add_one

    def ready(self) -> None:
        """Build the index of all documents, keep it and its texts."""
        self._index = bm25s.BM25(k1=1.2, b=0.4)
        self._index.index(self._tokens(self._texts), show_progress=False)
        self._index.save(self._folder, corpus=self._texts)
        (self._folder / "ids.json").write_text(json.dumps(self._ids))

    def ask(self, question: str, vector: Any, k: int) -> list[str]:
        """The ids of the documents that share the rarest words."""
        tokens = self._tokens([question])
        found, _ = self._index.retrieve(tokens, k=min(k, len(self._ids)), corpus=None, show_progress=False)
        return [self._ids[number if isinstance(number, int) else int(number)] for number in found[0]]

    def close(self) -> None:
        """Nothing to do."""

    def _tokens(self, texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="en_plus", stemmer=self._stemmer, show_progress=False)
