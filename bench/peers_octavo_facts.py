"""Octavo among its peers, each text a fact through the gate."""

from __future__ import annotations

from collections.abc import Sequence

from bench import peers_octavo
from bench.peers_data import Document


class Peer(peers_octavo.Peer):
    """The same account, filled with facts."""

    def load(self, documents: Sequence[Document]) -> None:
        """Remember many texts: one commit."""
        self._account.remember_many([{"text": document.dated} for document in documents])
