"""The second look: token vectors that follow the indexed passages, made when those are indexed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from octavo.domain.query import Question
from octavo.engine.embedding import Following, texts_of
from octavo.engine.spine import Spine
from octavo.errors import ModelFailed
from octavo.libraries import np
from octavo.models.rerank import TokenReranker
from octavo.storage.tokens import Encoded, TokenManifest, Tokens, append_tokens


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

    def _made(self, rows: Sequence[int]) -> list[Encoded]:
        return self._encoded([text for _, text in texts_of(self._spine, self.index, rows)])

    def _keep(self, columns: Tokens, rows: Sequence[int], made: list[Encoded]) -> None:
        append_tokens(columns, made)

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
