"""Octavo among its peers, by its public calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import octavo
from bench.peers_data import DIMENSION, Document, Vectors
from octavo.domain.buffer import Wrote
from octavo.domain.memory import transcript


class Peer:
    """An account; what is acknowledged is in a sandbox's buffer or in a version."""

    name, dimension = "same-vectors", DIMENSION  # an embedder, as octavo.open takes one
    reranker: Any = False  # no second look, installed or not

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        self._vectors = vectors
        self._account = octavo.open(folder, "bench", embedder=self, reranker=self.reranker)
        self._finish_sandboxes()

    def embed(self, texts: Sequence[str]) -> Any:
        """The vectors that every peer is given."""
        return self._vectors(texts)

    def add(self, documents: Sequence[Document]) -> None:
        """Write each session in a sandbox of its own and consolidate it."""
        for _, session in groupby(documents, key=lambda document: document.session):
            with self._account.sandbox() as sandbox:
                for document in session:
                    _say(sandbox, document)

    def load(self, documents: Sequence[Document]) -> None:
        """Write many at once, two turns an episode, as imports do: one commit."""
        episodes = [documents[first : first + 2] for first in range(0, len(documents), 2)]
        self._account.intake.write_many([_episode(turns) for turns in episodes], cause="import")

    def add_one(self, document: Document) -> None:
        """Write one turn into a sandbox that stays open; it is durable on return."""
        _say(self._account.sandbox(), document)

    def update(self, document: Document) -> None:
        """Write one turn and make it part of the account."""
        self.add([document])

    def ready(self) -> None:
        """Bring the index up to the ledger and wait for cores and spheres."""
        self._account.catch_up()
        self._account.wait()
        self._account.catch_up()

    def ask(self, question: str, vector: Any, k: int) -> list[str]:
        """The ids of the turns that answer best; without a vector the account embeds the question itself."""
        hits = self._account.recall(question, k=k, unit="turn", vector=vector)
        return [hit.memory.turns[hit.turn].data["document"] for hit in hits if hit.turn is not None]

    def close(self) -> None:
        """Let go of the account."""
        self._account.close()

    def _finish_sandboxes(self) -> None:
        """Take up what a killed process left open, as its owner would."""
        for left in self._account.sandboxes():
            self._account.resume(left.id).consolidate()


def _say(sandbox: octavo.Sandbox, document: Document) -> None:
    sandbox.turn(document.speaker, document.text, at=document.at, data={"document": document.id})


def _episode(documents: Sequence[Document]) -> Wrote:
    turns = tuple(
        octavo.Turn(speaker=d.speaker, text=d.text, at=d.at, data={"document": d.id}) for d in documents
    )
    first = documents[0]
    return Wrote(
        memory=octavo.Memory(
            id="", kind="episode", text=transcript(turns), at=first.at, sandbox=first.session, turns=turns
        )
    )
