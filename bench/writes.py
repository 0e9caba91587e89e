"""A turn written durably, against a bare append and fdatasync of the same bytes."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import octavo
from bench import harness
from bench.texts import Texts
from octavo.engine.sandbox import Sandbox

_TITLE = "A turn written durably"


def main(argv: Sequence[str] | None = None) -> None:
    """Alternate turns and bare appends in one folder; the ratio is taken round by round."""
    bench = harness.begin("writes", _TITLE, argv)
    rounds, turns = bench.options.rounds or bench.pick(9, 2), bench.pick(400, 10)
    with tempfile.TemporaryDirectory() as folder:
        account = octavo.open(folder, "bench")
        texts = _spoken(turns)
        lines = _lines_of(account, texts)
        results = [_round(account, Path(folder) / f"bare-{n}", texts, lines) for n in range(rounds)]
        account.close()
    turn = [statistics.median(t) for t, _ in results]
    bare = [statistics.median(b) for _, b in results]
    ratios = [t / b for t, b in zip(turn, bare, strict=True)]
    bench.figure(
        "a turn / a bare append + fdatasync", statistics.median(ratios), "×", at_most=1.5, samples=ratios
    )
    bench.figure("a turn", statistics.median(turn) * 1e6, "µs", samples=[s * 1e6 for s in turn])
    bench.figure(
        "a bare append + fdatasync", statistics.median(bare) * 1e6, "µs", samples=[s * 1e6 for s in bare]
    )
    own = [(t - b) * 1e6 for t, b in zip(turn, bare, strict=True)]
    bench.figure("what the engine adds", statistics.median(own), "µs", samples=own)
    size = statistics.mean(map(len, lines))
    bench.note(
        f"{rounds} rounds of {turns} turns in English and Thai, {size:.0f} bytes a line; every turn is "
        "followed by a bare append of the same bytes to another file of the same folder."
    )
    bench.finish()


def _spoken(turns: int) -> list[tuple[str, str]]:
    texts = Texts(1)
    return [turn for _ in range((turns + 1) // 2) for turn in texts.turns()][:turns]


def _lines_of(account: octavo.Account, turns: Sequence[tuple[str, str]]) -> list[bytes]:
    """The bytes that the turns become in a buffer."""
    sandbox = account.sandbox("lines")
    store = account._spine.store
    for speaker, text in turns:
        sandbox.turn(speaker, text)
    found = store.lines(f"buffers/{sandbox.id}.jsonl")
    sandbox.discard()
    return [] if found is None else list(found[0])[1:]


def _round(
    account: octavo.Account, path: Path, turns: Sequence[tuple[str, str]], lines: Sequence[bytes]
) -> tuple[list[float], list[float]]:
    sandbox = account.sandbox("round")
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    spoken: list[float] = []
    bare: list[float] = []
    for turn, line in zip(turns, lines, strict=True):
        _rest()
        spoken.append(_speak(sandbox, turn))
        _rest()
        began = time.perf_counter()
        os.write(fd, line)
        os.fdatasync(fd)
        bare.append(time.perf_counter() - began)
    os.close(fd)
    sandbox.discard()
    return spoken, bare


def _rest() -> None:
    """A moment between two writes, so that neither finds the disk as the other has just left it."""
    until = time.perf_counter() + 0.0005
    while time.perf_counter() < until:
        pass


def _speak(sandbox: Sandbox, turn: tuple[str, str]) -> float:
    began = time.perf_counter()
    sandbox.turn(*turn)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
