"""Fit the directions that the second look keeps of MiniLM's tokens, without labels, from turns of talk.

The tokens of some turns are run through the model; the 96 directions in which they differ most (principal
components) are written as `minilm_axes.bin`. Only development text belongs here, never a question that recall
is judged by: `python -m bench.axes <data>/locomo-dev.json --write src/octavo/models/minilm_axes.bin`.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import numpy as np

from bench.locomo import turns_of
from octavo.models.rerank import _minilm

DIMENSION, WIDTH, BATCH = 96, 384, 16


def main() -> None:
    """Fit, say how much of the variance is kept and how like the shipped directions it is, and write."""
    options = _options()
    conversations = json.loads(options.data.read_text())
    texts = [turn.text for one in conversations for turn in turns_of(one["conversation"], captions=False)]
    random.Random(7).shuffle(texts)
    axes, kept = fitted(texts[: options.texts])
    shipped = np.frombuffer(options.shipped.read_bytes(), dtype="<f2").reshape(-1, DIMENSION)
    overlap = np.linalg.norm(axes.T @ np.linalg.qr(shipped.astype(np.float64))[0]) ** 2 / DIMENSION
    told = {"texts": min(options.texts, len(texts)), "variance kept": round(kept, 4)}
    print(json.dumps({**told, "shared with the shipped": round(overlap, 4)}))
    if options.write:
        options.write.write_bytes(axes.astype("<f2").tobytes())


def fitted(texts: list[str]) -> tuple[np.ndarray, float]:
    """The directions in which the tokens of some texts differ most, and the share of their variance."""
    model = _minilm()
    model.encode(["loaded"])
    model._axes = np.eye(
        WIDTH, dtype=np.float32
    )  # the whole vectors, of length one, instead of the shipped part
    count, total, products = 0, np.zeros(WIDTH), np.zeros((WIDTH, WIDTH))
    for start in range(0, len(texts), BATCH):
        for _, vectors in model.encode(texts[start : start + BATCH]):
            tokens = vectors.astype(np.float64)
            count, total, products = (
                count + len(tokens),
                total + tokens.sum(axis=0),
                products + tokens.T @ tokens,
            )
    mean = total / count
    variances, directions = np.linalg.eigh(products / count - np.outer(mean, mean))
    return directions[:, ::-1][:, :DIMENSION], float(variances[::-1][:DIMENSION].sum() / variances.sum())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a file of conversations (locomo-dev.json)")
    parser.add_argument("--texts", type=int, default=1_500, help="so many turns at most")
    parser.add_argument("--write", type=Path, help="where to write the directions")
    own = Path(__file__).parent.parent / "src" / "octavo" / "models" / "minilm_axes.bin"
    parser.add_argument("--shipped", type=Path, default=own, help="the directions to compare with")
    return parser.parse_args()


if __name__ == "__main__":
    main()
