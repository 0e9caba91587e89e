"""Import of 100,000 episodes by the engine's bulk path: gate, rules, ledger, state and words."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import octavo
from bench import harness
from bench.texts import Texts
from octavo.domain.buffer import Wrote
from octavo.domain.memory import Memory, Turn, transcript

_TITLE = "Importing episodes"
_BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
_AT_ONCE = 2_000
_SKIP = frozenset({"duplicate", "capacity"})

Talk = Sequence[tuple[str, str]]


def main(argv: Sequence[str] | None = None) -> None:
    """Import the same talk into a fresh account in each round."""
    bench = harness.begin("importing", _TITLE, argv)
    rounds, episodes = bench.options.rounds or bench.pick(3, 1), bench.pick(100_000, 50)
    texts = Texts(100)
    talks = [texts.turns() for _ in range(episodes)]
    taken = [_import(talks) for _ in range(rounds)]
    both = [episodes / (written + indexed) for written, indexed in taken]
    committed = [episodes / written for written, _ in taken]
    bench.figure("committed and indexed", statistics.median(both), "/s", at_least=10_000, samples=both)
    bench.figure("committed", statistics.median(committed), "/s", samples=committed)
    bench.note(
        f"{rounds} rounds of {episodes:,} episodes of two turns in English and Thai, {_AT_ONCE:,} a commit, "
        "durable; from speakers and texts to acknowledged commits and an index of words that has caught up; "
        "a second process makes it meanwhile. Nothing is embedded."
    )
    bench.finish()


def _import(talks: Sequence[Talk]) -> tuple[float, float]:
    """Seconds until all is committed, and until the words are indexed."""
    with tempfile.TemporaryDirectory() as folder, octavo.open(folder, "bench", embedder=False) as account:
        began = time.perf_counter()
        with account.intake.importing(), harness.progress("episodes", len(talks)) as step:
            for first in range(0, len(talks), _AT_ONCE):
                batch = talks[first : first + _AT_ONCE]
                wanted = [_candidate(n, talk) for n, talk in enumerate(batch, start=first)]
                verdicts = account.intake.write_many(wanted, cause="import", skip=_SKIP)
                assert all(verdicts)
                step(len(batch))
            written = time.perf_counter()
        account.catch_up()
        return written - began, time.perf_counter() - written


def _candidate(number: int, talk: Talk) -> Wrote:
    at = _BEGAN + timedelta(minutes=number)
    turns = tuple(Turn(speaker=speaker, text=text, at=at) for speaker, text in talk)
    return Wrote(memory=Memory(id="", kind="episode", text=transcript(turns), at=at, turns=turns))


if __name__ == "__main__":
    main()
