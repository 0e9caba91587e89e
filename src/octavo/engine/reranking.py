"""The second look: token vectors that follow the indexed passages, made when those are indexed."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from octavo.domain.query import Question
from octavo.engine.embedding import stamp_of, texts_of
from octavo.engine.spine import Spine
from octavo.errors import Damaged
from octavo.libraries import np
from octavo.models.rerank import TokenReranker
from octavo.storage.columns import writing
from octavo.storage.ledger import GENESIS
from octavo.storage.rows import open_units
from octavo.storage.tokens import Encoded, TokenManifest, Tokens, append_tokens, open_tokens

_log = logging.getLogger("octavo.reranking")
BATCH = 64  # passages encoded before they are published


class SecondLook:
    """The token vectors of one reranker for one account's index; a question is all that recall encodes."""

    def __init__(self, spine: Spine, index: Path, reranker: TokenReranker) -> None:
        self._spine = spine
        self._index = index
        self._lock = threading.RLock()
        self._held: tuple[object, Tokens] | None = None
        self.reranker = reranker
        self.folder = index / f"tokens-{reranker.name}"

    def tokens(self) -> Tokens:
        """The token vectors as they are published now; none if they are damaged, they are made anew."""
        with self._lock:
            stamp = stamp_of(self.folder)
            if self._held is None or self._held[0] != stamp:
                self._held = (stamp, self._open())
            return self._held[1]

    def ask(self, question: Question) -> Encoded | None:
        """The tokens of a question, None if the model does not read its script."""
        if not self.reranker.reads(question.text):
            return None
        return self.reranker.encode([question.phrasings[0]])[0]

    def missing(self, rows: int) -> int:
        """How many of the indexed passages nobody looked at yet."""
        return max(0, rows - self.tokens().manifest.rows)

    def add(self, limit: int | None = None) -> int:
        """Encode passages that nobody looked at yet; returns how many are left.

        The model works outside the write lock: an indexing pass does not wait for it. Whoever was quicker
        wins, and what belongs to an index that is no more is thrown away.
        """
        done = 0
        while True:
            total = open_units(self._index).manifest.rows
            first = self._open().manifest.rows
            if first >= total or (limit is not None and done >= limit):
                return max(0, total - first)
            rows = range(first, min(total, first + BATCH))
            _, texts, _ = texts_of(self._spine, self._index, rows)
            encoded = self._encoded(texts)
            with writing(self._index):
                tokens = self._open()
                if tokens.manifest.rows == first and open_units(self._index).manifest.rows >= rows.stop:
                    append_tokens(tokens, encoded)
            done += len(rows)

    def verify(self, rows: int) -> None:
        """Raise `Damaged` unless the token vectors are what was written, for passages that are indexed."""
        tokens = open_tokens(self.folder, self._fresh())
        tokens.verify()
        if tokens.manifest.rows > rows:
            raise Damaged(f"{self.folder.name} holds tokens of passages that are not indexed")

    def _encoded(self, texts: list[str]) -> list[Encoded]:
        """The tokens of each text; none of a text that the model does not read."""
        none = (np.empty(0), np.empty((0, self.reranker.dimension)))
        read = [place for place, text in enumerate(texts) if self.reranker.reads(text)]
        found = dict(zip(read, self.reranker.encode([texts[place] for place in read]), strict=True))
        return [found.get(place, none) for place in range(len(texts))]

    def _open(self) -> Tokens:
        try:
            return open_tokens(self.folder, self._fresh())
        except Damaged as error:
            _log.warning("token vectors discarded reason=%s", type(error).__name__)
            if self._spine.read_only:
                return open_tokens(self.folder / "nothing", self._fresh())
            for path in self.folder.glob("*"):
                path.unlink(missing_ok=True)
            return open_tokens(self.folder, self._fresh())

    def _fresh(self) -> TokenManifest:
        ledger = self._spine.ledger
        history = ledger.hash_of(1) if ledger.exists(1) else GENESIS
        return TokenManifest(model=self.reranker.name, dimension=self.reranker.dimension, history=history)
