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
        runs: dict[str, list[tuple[float, float]]] = {"back to back": [], "after a rest": []}
        for number in range(rounds):
            for way, found in runs.items():
                path = Path(folder) / f"bare-{number}-{len(found)}-{way[:4]}"
                found.append(_round(account, path, texts, lines, rest=way == "after a rest"))
        account.close()
    for way, found in runs.items():
        ratios = [turn / bare for turn, bare in found]
        bench.figure(
            f"a turn / a bare append + fdatasync, {way}",
            statistics.median(ratios), "×", at_most=1.5, samples=ratios,
        )  # fmt: skip
        for what, taken in (
            ("a turn", [t for t, _ in found]),
            ("a bare append + fdatasync", [b for _, b in found]),
        ):
            micros = [seconds * 1e6 for seconds in taken]
            bench.figure(f"{what}, {way}", statistics.median(micros), "µs", samples=micros)
    size = statistics.mean(map(len, lines))
    bench.note(
        f"{rounds} rounds of {turns} turns in English and Thai, {size:.0f} bytes a line; every turn is "
        "followed by a bare append of the same bytes to another file of the same folder, at once or after "
        "half a millisecond; rounds of both ways alternate."
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
    account: octavo.Account,
    path: Path,
    turns: Sequence[tuple[str, str]],
    lines: Sequence[bytes],
    *,
    rest: bool,
) -> tuple[float, float]:
    """The median seconds of a turn and of a bare append."""
    sandbox = account.sandbox("round")
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    spoken: list[float] = []
    bare: list[float] = []
    for turn, line in zip(turns, lines, strict=True):
        _rest(rest)
        spoken.append(_speak(sandbox, turn))
        _rest(rest)
        began = time.perf_counter()
        os.write(fd, line)
        os.fdatasync(fd)
        bare.append(time.perf_counter() - began)
    os.close(fd)
    sandbox.discard()
    return statistics.median(spoken), statistics.median(bare)


def _rest(wanted: bool) -> None:
    """Half a millisecond before a write, if wanted, so that it does not start as the other's flush ends."""
    until = time.perf_counter() + (0.0005 if wanted else 0.0)
    while time.perf_counter() < until:
        pass


def _speak(sandbox: Sandbox, turn: tuple[str, str]) -> float:
    began = time.perf_counter()
    sandbox.turn(*turn)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
