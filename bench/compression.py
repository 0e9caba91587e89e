"""How small cores are, how long they take, and how much of LoCoMo can be found from their text alone.

    python bench/compression.py <folder with locomo-dev.json> [--show 2]

Each conversation folds into one core for every eight sessions (the sessions after the last full eight stay
out, and so do questions about them). A question of categories 1-4 counts once for each of its evidence
sessions. Its words are ranked by BM25 against all cores of all conversations together; an evidence session is
*reachable* when the core that holds it comes first, or among the first two. For comparison the same is done
with the summaries alone and with the whole text of the eight sessions, and once more session by session: the
digest of the evidence session among the first five of all digests.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import log
from pathlib import Path
from statistics import mean, median
from time import process_time
from typing import Any

from octavo.domain.compression import backlog
from octavo.domain.cores import Core, to_json
from octavo.domain.memory import Memory, Turn
from octavo.domain.pages import core_page
from octavo.domain.sentences import SessionSource, content
from octavo.domain.summary import summarise_core, text_of
from octavo.domain.units import searched

_EVIDENCE = re.compile(r"D(\d+):\d+")


def conversations(folder: Path) -> list[dict[str, Any]]:
    path = folder / "locomo-dev.json"
    if not path.is_file():
        sys.exit(f"{path} is absent: hand in the folder that holds locomo-dev.json (LoCoMo, CC BY-NC 4.0)")
    loaded: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    return loaded


def sessions_of(talk: dict[str, Any], prefix: str) -> list[SessionSource]:
    found = []
    number = 1
    while f"session_{number}" in talk:
        start = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(
            tzinfo=UTC
        )
        name = f"{prefix}:{number}"
        found.append(_session(name, number, start, talk[f"session_{number}"]))
        number += 1
    return found


def _session(name: str, number: int, start: datetime, turns: Sequence[dict[str, str]]) -> SessionSource:
    episodes = tuple(
        Memory(
            id=f"{name}:{place // 2}",
            kind="episode",
            at=start + timedelta(seconds=20 * place),
            sandbox=name,
            turns=tuple(
                Turn(speaker=turn["speaker"], text=turn["text"]) for turn in turns[place : place + 2]
            ),
        )
        for place in range(0, len(turns), 2)
    )
    end = start + timedelta(seconds=20 * len(turns))
    return SessionSource(id=name, ordinal=number, started_at=start, ended_at=end, episodes=episodes)


def questions(talk: dict[str, Any], prefix: str, folded: set[str]) -> Iterator[tuple[str, str]]:
    """Each question with each of its evidence sessions that is in a core."""
    for row in talk["qa"]:
        if row["category"] in (1, 2, 3, 4):
            names = {f"{prefix}:{number}" for cited in row["evidence"] for number in _EVIDENCE.findall(cited)}
            for name in sorted(names & folded):
                yield row["question"], name


def rank(query: str, texts: Sequence[Sequence[str]]) -> list[int]:
    """The places of the texts (bags of words), best BM25 first."""
    asked = set(content(query))
    usual = mean(len(text) for text in texts)
    scores = [0.0] * len(texts)
    for word in sorted(asked):
        holding = [place for place, text in enumerate(texts) if word in text]
        rarity = log(1 + (len(texts) - len(holding) + 0.5) / (len(holding) + 0.5))
        for place in holding:
            often = texts[place].count(word)
            scores[place] += rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * len(texts[place]) / usual))
    return sorted(range(len(texts)), key=lambda place: (-scores[place], place))


def reachable(asked: Sequence[tuple[str, int]], texts: Sequence[str], depth: int) -> float:
    """The share of questions whose text of evidence stands among the first few."""
    bags = [content(text) for text in texts]
    return mean(place in rank(question, bags)[:depth] for question, place in asked)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", type=int, default=0, help="print this many cores in full")
    given = parser.parse_args()
    cores: list[Core] = []
    whole: list[str] = []
    seconds: list[float] = []
    asked: list[tuple[str, str]] = []
    for number, row in enumerate(conversations(given.folder)):
        sessions = sessions_of(row["conversation"], str(number))
        for due in backlog(len(sessions)):
            eight = [sessions[ordinal - 1] for ordinal in due.sessions]
            begun = process_time()
            cores.append(summarise_core(due, eight, made_at=eight[-1].ended_at))
            seconds.append(process_time() - begun)
            whole.append("\n".join(text_of(episode) for session in eight for episode in session.episodes))
        asked.extend(questions(row, str(number), {name for core in cores for name in core.source_sessions}))
    report(cores, whole, seconds, asked)
    for core in cores[: given.show]:
        print(
            f"\n--- {core.core_id}, {core.meta.source_characters} characters of source\n\n{core_page(core)}"
        )


def report(
    cores: Sequence[Core], whole: Sequence[str], seconds: Sequence[float], asked: Sequence[tuple[str, str]]
) -> None:
    pages = [core_page(core) for core in cores]
    digests = [row for core in cores for row in core.compressed_narrative.digests]
    home = {name: place for place, core in enumerate(cores) for name in core.source_sessions}
    spot = {row.session: place for place, row in enumerate(digests)}
    by_core = [(question, home[name]) for question, name in asked]
    by_session = [(question, spot[name]) for question, name in asked]
    print(f"Python {platform.python_version()}, {platform.machine()}")
    print(f"cores {len(cores)}, sessions {len(digests)}, (question, evidence session) pairs {len(asked)}")
    ratio = sum(map(len, whole)) / sum(map(len, pages))
    print(f"characters: source {sum(map(len, whole))}, pages {sum(map(len, pages))}, ratio {ratio:.1f} : 1")
    print(f"longest summary {max(len(core.compressed_narrative.summary) for core in cores)} characters")
    print(f"CPU time per core: median {median(seconds) * 1000:.0f} ms, longest {max(seconds) * 1000:.0f} ms")
    summaries = [core.compressed_narrative.summary for core in cores]
    print(f"evidence session reachable, {len(cores)} cores in one pool:   first   first two")
    held = [searched(page, to_json(core)) for page, core in zip(pages, cores, strict=True)]
    print(f"characters that recall searches: {sum(map(len, held))}")
    rows = (
        ("recall's text", held),
        ("core page", pages),
        ("summary only", summaries),
        ("whole source", whole),
    )
    for name, texts in rows:
        first, second = (reachable(by_core, texts, depth) for depth in (1, 2))
        print(f"  {name:<15} {first:34.1%} {second:9.1%}")
    by_chance = min(1.0, 5 / len(digests))
    five = reachable(by_session, [row.text for row in digests], 5)
    print(f"  its digest among the first five of {len(digests)}: {five:.1%} (by chance {by_chance:.1%})")


if __name__ == "__main__":
    main()
