"""LanceDB without an index of vectors: it compares every one, at any size."""

from __future__ import annotations

from bench import peers_lancedb


class Peer(peers_lancedb.Peer):
    """The same table; slower when it is big, and it misses nothing."""

    approximate_from = None
