"""Whether the newer of two facts is what a question wants, by their words and their vectors together.

"Wax is out, the table is full of mugs" replaces "our stall sells candles" though they share no word. A few
small nets see what the words tell of a pair, how near question, older and newer lie, the newer's vector and
where it parts from the older's; they were fitted once, on pairs of our own (`bench.replacing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files

from octavo.domain.readings import read
from octavo.domain.replacing import FRAME, WEIGHTS, features, score
from octavo.domain.wording import phrases_of, shape
from octavo.libraries import Array, np, product

_DIMENSION, AXES = 512, 80  # of a vector, and of what the nets see of it
_NEAR, _MOST = 0.12, 20  # how near what is compared lies at least, and how many
_LEAN, _SHORT = 30.0, 1e-9
SAYS = 1.0  # so much the vectors may add to the words where two facts are put alike
ALIKE = 1 + [*WEIGHTS].index("alike")  # its place in a row


class Scorer:
    """What the vectors of a question and of facts tell, for `corrections.arrange`."""

    def __init__(self, question: Array, vectors: Mapping[str, Array]) -> None:
        every = np.array([question, *vectors.values()], dtype=np.float32)
        every /= np.maximum(np.linalg.norm(every, axis=1, keepdims=True), _SHORT)
        self._question = every[0]
        self._vectors: dict[str, Array] = dict(zip(vectors, every[1:], strict=True))

    def is_known(self, *ids: str) -> bool:
        """Whether facts have vectors."""
        return all(id_ in self._vectors for id_ in ids)

    def nearest(self, one: str, others: Sequence[str]) -> Sequence[str]:
        """Those of other facts that are near one by what they mean, the nearest first."""
        known = [id_ for id_ in others if id_ in self._vectors] if one in self._vectors else []
        if not known:
            return []
        cosines = product(np.array([self._vectors[id_] for id_ in known]), self._vectors[one])
        best = np.argsort(-cosines)[:_MOST]
        return [known[place] for place in best.tolist() if cosines[place] >= _NEAR]

    def probabilities(self, question: str, pairs: Sequence[tuple[str, str, str, str]]) -> Sequence[float]:
        """Of pairs, the older's id and text and the newer's, whether the newer is what a question wants."""
        older, newer = (np.array([self._vectors[pair[place]] for pair in pairs]) for place in (0, 2))
        told = np.array([row_of(question, one, other) for _, one, _, other in pairs], dtype=np.float32)
        asked = np.broadcast_to(self._question, older.shape)
        cues, axes, lines = _table()
        has = np.zeros((len(pairs), len(cues)), dtype=np.float32)
        for place, (_, one, _, other) in enumerate(pairs):
            has[place, [*_cues_in(other) - _cues_in(one)]] = 1
        meant = product(newer, axes.T), product(newer - older, axes.T)
        seen = np.concatenate([told, cosines(asked, older, newer), has, *meant], axis=1)
        lit = product(seen, lines[:, :-2].T) + lines[:, -2]
        lean = product(np.maximum(lit[:, :-1], 0), lines[:-1, -1]) + lit[:, -1]
        # What is put alike is another value or another thing: there the words have to agree.
        lean = np.where(told[:, ALIKE] >= FRAME, np.minimum(lean, told[:, 0] + SAYS), lean)
        found: Sequence[float] = (1 / (1 + np.exp(-np.clip(lean, -_LEAN, _LEAN)))).tolist()
        return found


def row_of(asked: str, older: str, newer: str) -> list[float]:
    """What the words of a pair tell together, then each of its features, then its shape."""
    readings = read(asked), read(older), read(newer)
    told = features(*readings)
    return [score(*readings, told), *told.values(), *shape(*readings)]


def cosines(question: Array, older: Array, newer: Array) -> Array:
    """How near question, older and newer lie, pair by pair."""
    now, before = (question * newer).sum(axis=1), (question * older).sum(axis=1)
    return np.stack([now, before, (older * newer).sum(axis=1), now - before], axis=1)


@lru_cache(maxsize=4096)
def _cues_in(text: str) -> frozenset[int]:
    cues = _table()[0]
    return frozenset(cues[phrase] for phrase in cues.keys() & phrases_of(text))


@cache
def _table() -> tuple[Mapping[str, int], Array, Array]:
    """The cues, each with its column; the axes; a line for each unit and one beside them.

    A line has the features, the cosines, the cues and the axes twice, then its offset and what it counts.
    """
    folder = files("octavo.models")
    cues = {cue: n for n, cue in enumerate((folder / "replacing.txt").read_text("utf-8").splitlines())}
    numbers = np.frombuffer((folder / "replacing.bin").read_bytes(), dtype="<f2").astype(np.float32)
    axes, lines = np.split(numbers, [AXES * _DIMENSION])
    width = len(row_of("", "", "")) + 4 + len(cues) + 2 * AXES + 2
    return cues, axes.reshape(AXES, _DIMENSION), lines.reshape(-1, width)
