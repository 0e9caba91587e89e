"""Octavo among its peers with the rerank extra: the same account, and a second look at its hits."""

from __future__ import annotations

import octavo
from bench import peers_octavo


class Peer(peers_octavo.Peer):
    """An account as it is where the extra is installed."""

    reranker = octavo.offline_reranker()
