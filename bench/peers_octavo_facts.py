"""Octavo among its peers, each text a fact through the gate, found by words and by meaning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import octavo
from bench import peers_octavo
from bench.peers_data import Document, Vectors
from octavo.domain.policy import AssemblyPolicy, Policy

_ALONE = Policy(assemblies=AssemblyPolicy(mode="off"))  # no peer groups what belongs together


class Peer(peers_octavo.Peer):
    """An account of facts alone."""

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        self._vectors = vectors
        self._account = octavo.open(folder, "bench", embedder=self, policy=_ALONE)

    def load(self, documents: Sequence[Document]) -> None:
        """Remember many texts: one commit."""
        self._account.remember_many([{"text": document.dated} for document in documents])

    def ready(self) -> None:
        """Bring words and vectors up to the ledger."""
        self._account.catch_up()
