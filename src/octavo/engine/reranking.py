"""The second look: token vectors that follow the indexed passages, made when those are indexed."""

from __future__ import annotations

from pathlib import Path

from octavo.domain.query import Question
from octavo.engine.embedding import Following, texts_of
from octavo.engine.spine import Spine
from octavo.errors import ModelFailed
from octavo.libraries import np
from octavo.models.rerank import TokenReranker
from octavo.storage.columns import writing
from octavo.storage.rows import open_units
from octavo.storage.tokens import Encoded, TokenManifest, Tokens, append_tokens

BATCH = 64  # passages encoded before they are published


class SecondLook(Following[Tokens]):
    """The token vectors of one reranker for one account's index; a question is all that recall encodes."""

    def __init__(self, spine: Spine, index: Path, reranker: TokenReranker) -> None:
        super().__init__(spine, index, "tokens", reranker.name)
        self.reranker = reranker

    def ask(self, question: Question) -> Encoded | None:
        """The tokens of a question, None if the model does not read its script."""
        if not self.reranker.reads(question.text):
            return None
        return self._encoded([question.phrasings[0]])[0]

    def missing(self, rows: int) -> int:
        """How many of the indexed passages nobody looked at yet."""
        return max(0, rows - self.now().manifest.rows)

    def add(self, limit: int | None = None) -> int:
        """Encode passages that nobody looked at yet; returns how many are left.

        The model works outside the write lock: an indexing pass does not wait for it. Whoever was quicker
        wins, and what belongs to an index that is no more is thrown away.
        """
        done = 0
        while True:
            total = open_units(self.index).manifest.rows
            first = self._healed().manifest.rows
            if first >= total or (limit is not None and done >= limit):
                return max(0, total - first)
            rows = range(first, min(total, first + BATCH))
            encoded = self._encoded([text for _, text in texts_of(self._spine, self.index, rows)])
            with writing(self.index):
                tokens = self._healed()
                if tokens.manifest.rows == first and open_units(self.index).manifest.rows >= rows.stop:
                    append_tokens(tokens, encoded)
            done += len(rows)

    def _encoded(self, texts: list[str]) -> list[Encoded]:
        """The tokens of each text, none of one that the model does not read."""
        none = (np.empty(0), np.empty((0, self.reranker.dimension)))
        read = [place for place, text in enumerate(texts) if self.reranker.reads(text)]
        found = dict(zip(read, self.reranker.encode([texts[place] for place in read]), strict=True))
        for ids, vectors in found.values():
            if np.shape(vectors) != (len(ids), self.reranker.dimension) or not np.isfinite(vectors).all():
                raise ModelFailed(f"the reranker {self.reranker.name} gave no usable vectors for the tokens")
        return [found.get(place, none) for place in range(len(texts))]

    def _open(self, folder: Path) -> Tokens:
        name, dimension = self.reranker.name, self.reranker.dimension
        return Tokens.open(folder, TokenManifest(model=name, dimension=dimension, history=self._history()))
