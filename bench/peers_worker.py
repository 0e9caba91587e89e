"""One peer in a process of its own, on one core: it does what it is told and says how long that took."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.peers_data import Document, Vectors, marked

# Not Tokio's and Lance's own settings: with one thread each, a write of LanceDB hung. The one core that every
# worker is kept on bounds them all alike.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
)


def serve(name: str, folder: Path, known: Path, synthetic: bool, line: Any) -> None:
    """Open a peer and answer calls until the line closes; an error is an answer too."""
    pin()
    vectors = Vectors(synthetic=synthetic)
    vectors.load(known)
    try:
        peer = import_module(f"bench.peers_{name}").Peer(folder, vectors)
        line.send(("done", None))
        while True:
            verb, arguments = line.recv()
            line.send(("done", _VERBS[verb](peer, vectors, *arguments)))
            if verb == "close":
                return
    except EOFError:
        return
    except Exception as error:  # a peer may raise anything; the table says what it was
        line.send(("failed", f"{type(error).__name__}: {error}"))


def pin() -> None:
    """Keep this process on one core, whatever threads it starts."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def _taken(vectors: Vectors, run: Callable[[], Any]) -> float:
    """Seconds of a call without what embedding took in it."""
    embedding, began = vectors.seconds, time.perf_counter()
    run()
    return time.perf_counter() - began - (vectors.seconds - embedding)


def _add(peer: Any, vectors: Vectors, documents: list[Document]) -> float:
    return _taken(vectors, lambda: peer.add(documents))


def _load(peer: Any, vectors: Vectors, documents: list[Document]) -> float:
    return _taken(vectors, lambda: peer.load(documents))


def _ready(peer: Any, vectors: Vectors) -> float:
    return _taken(vectors, peer.ready)


def _fill(peer: Any, vectors: Vectors, documents: list[Document], at_once: int) -> float:
    """CPU seconds of writing documents in batches and finishing the index, without what embedding took.

    A few others come first, so that nobody is timed while he loads what he needs.
    """
    peer.load([marked(number) for number in range(10)])
    peer.ready()
    before, embedding = time.process_time(), vectors.cpu_seconds
    for start in range(0, len(documents), at_once):
        peer.load(documents[start : start + at_once])
    peer.ready()
    return time.process_time() - before - (vectors.cpu_seconds - embedding)


def _find(peer: Any, vectors: Vectors, question: str, k: int) -> list[str]:
    found: list[str] = peer.ask(question, None, k)
    return found


def _ask(peer: Any, vectors: Vectors, question: str, k: int) -> tuple[float, float]:
    """Milliseconds on the wall and of the processor; the query's vector is there already."""
    vector = vectors([question])[0]
    began, worked = time.perf_counter(), time.process_time()
    peer.ask(question, vector, k)
    return (time.perf_counter() - began) * 1e3, (time.process_time() - worked) * 1e3


def _add_one(peer: Any, vectors: Vectors, document: Document) -> None:
    peer.add_one(document)


def _update(peer: Any, vectors: Vectors, document: Document) -> tuple[bool, float]:
    """Whether a document is found right after it was written, and how long write and query took."""
    found: list[str] = []

    def run() -> None:
        peer.update(document)
        found.extend(peer.ask(document.dated, None, 5))

    took = _taken(vectors, run)
    return document.id in found, took * 1e3


def _close(peer: Any, vectors: Vectors) -> None:
    peer.close()


_VERBS: dict[str, Callable[..., Any]] = {
    "add": _add,
    "load": _load,
    "fill": _fill,
    "ready": _ready,
    "find": _find,
    "ask": _ask,
    "add_one": _add_one,
    "update": _update,
    "close": _close,
}


def first_answer(name: str, folder: str, known: str, question: str, line: str) -> None:
    """Import, open and ask once, then say so; whoever started this process has the time."""
    pin()
    vectors = Vectors(synthetic=True)
    vectors.load(Path(known))
    peer = import_module(f"bench.peers_{name}").Peer(Path(folder), vectors)
    peer.ask(question, vectors([question])[0], 10)
    os.write(int(line), b"answered\n")
    peer.close()


if __name__ == "__main__":
    first_answer(*sys.argv[1:])
