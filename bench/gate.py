"""What the gate costs a write: the text checks a turn, and the look for near-duplicates among facts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

import octavo
from bench import accounts, harness
from bench.texts import Texts
from octavo.domain import gate
from octavo.domain.memory import Memory
from octavo.domain.policy import Policy
from octavo.storage.state_view import DbView

_TITLE = "The gate"


def main(argv: Sequence[str] | None = None) -> None:
    """Check the same candidates against accounts of two sizes, in turn."""
    bench = harness.begin("gate", _TITLE, argv)
    sizes = (30, 60) if bench.smoke else (1_000, 100_000)
    rounds = bench.options.rounds or bench.pick(9, 1)
    checks = bench.pick(200, 5)
    opened = {
        size: octavo.open(accounts.account(bench.cache, size, facts=1.0), accounts.NAME, read_only=True)
        for size in sizes
    }
    runs: dict[str, Callable[[], float | None]] = {}
    slowest: dict[str, list[float]] = {}
    processor: dict[str, list[float]] = {}
    for size, account in opened.items():
        view = account._spine.head()
        for what, facts in (("a new fact", _new(checks)), ("a restated fact", _restated(account, checks))):
            name = f"near-duplicates of {what} among {size:,}"
            slowest[name], processor[name] = [], []
            runs[name] = partial(_look, view, facts, slowest[name], processor[name])
    turns = _turns(bench.pick(2_000, 10))
    runs["text checks of a turn"] = partial(_text_checks, turns)
    samples = harness.interleaved(rounds, runs, what="checks")
    for account in opened.values():
        account.close()
    microseconds = [s * 1e6 for s in samples.pop("text checks of a turn")]
    bench.figure(
        "text checks of a turn", statistics.median(microseconds), "µs", at_most=100, samples=microseconds
    )
    for name, taken in samples.items():
        milliseconds = [s * 1e3 for s in taken]
        bench.figure(name, statistics.median(milliseconds), "ms", at_most=5, samples=milliseconds)
        bench.figure(
            f"… its processor time, {name.rpartition(' ')[2]}", statistics.mean(processor[name]) * 1e3, "ms"
        )
        slow = harness.percentile(slowest[name], 99) * 1e3
        bench.figure(f"… the slowest one in a hundred, {name.rpartition(' ')[2]}", slow, "ms")
    bench.note(
        f"{rounds} interleaved rounds of {checks} facts; a restated one is a fact of the account and a word "
        "more. Time on the clock, the mean of a round, then the median of the rounds."
    )
    bench.finish()


def _look(view: DbView, facts: Sequence[Memory], each: list[float], processor: list[float]) -> float:
    """Mean seconds to find what says nearly the same."""
    policy = Policy().gate
    for fact in facts:
        began, worked = time.perf_counter(), time.process_time()
        gate.nearest(view, fact, policy)
        each.append(time.perf_counter() - began)
        processor.append(time.process_time() - worked)
    return statistics.mean(each[-len(facts) :])


def _text_checks(turns: Sequence[Memory]) -> float:
    """Mean seconds of the checks that run before a turn is buffered."""
    policy = Policy()
    began = time.perf_counter()
    for turn in turns:
        gate.check_text(turn, policy)
    return (time.perf_counter() - began) / len(turns)


def _new(checks: int) -> list[Memory]:
    texts = Texts(99)
    now = datetime.now(UTC)
    return [accounts.fact(texts, f"new_{n}", now) for n in range(checks)]


def _restated(account: octavo.Account, checks: int) -> list[Memory]:
    texts = Texts(98)
    now = datetime.now(UTC)
    known = account.memories(kind="fact", limit=checks)
    return [Memory(id=f"r_{m.id}", kind="fact", text=texts.restated(m.text), at=now) for m in known]


def _turns(count: int) -> list[Memory]:
    texts = Texts(97)
    now = datetime.now(UTC)
    found = []
    for n in range(count):
        whole = accounts.episode(texts, f"turn_{n}", now)
        said = whole.turns[:1]
        found.append(Memory(id=whole.id, kind="episode", text=said[0].text, at=now, turns=said))
    return found


if __name__ == "__main__":
    main()
