"""How many facts cores tell: on stories whose facts were listed first, in equal space with simpler rules.

    python bench/summaries.py <folder with story_*.json> [more stories] [--show NUMBER] [--sphere]
    python bench/summaries.py --write docs/compression.md

A story is a JSON file of sessions and of facts; a fact is told when its pattern stands on the page of the
core that holds its session. The page (at most 1,200 characters) is counted alone; the summary is compared
with three rules that fill as many characters, in the same frame: the first statements of each session
(*lead*), the sentences most like all others (*LexRank*), and milestone turns before first statements.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import log, sqrt
from pathlib import Path
from typing import Any

from octavo.domain.compression import DEFAULT, backlog
from octavo.domain.cores import Core, Sphere
from octavo.domain.memory import Memory, Turn
from octavo.domain.pages import core_page, dated, sphere_page
from octavo.domain.sentences import SessionSource, content, is_person, is_question, is_thin, said, split
from octavo.domain.spheres import summarise_sphere
from octavo.domain.summary import summarise_core

OWN = Path(__file__).parent / "stories"
Quote = tuple[int, int, datetime, str]  # session, place in it, when, what


def sessions_of(story: dict[str, Any]) -> list[SessionSource]:
    """The sessions of a story, their turns paired into episodes as a sandbox pairs them."""
    sessions = []
    for row in story["sessions"]:
        start = datetime.fromisoformat(row["date"]).replace(hour=18, tzinfo=UTC)
        name = f"s{row['session']}"
        turns = [
            Turn(speaker=turn["speaker"], text=turn["text"], salience=turn["salience"])
            for turn in row["turns"]
        ]
        episodes = tuple(
            _episode(f"{name}:{place}", name, start + timedelta(seconds=20 * place), turns[place : place + 2])
            for place in range(0, len(turns), 2)
        )
        end = start + timedelta(seconds=20 * len(turns))
        sessions.append(
            SessionSource(id=name, ordinal=row["session"], started_at=start, ended_at=end, episodes=episodes)
        )
    return sessions


def _episode(id_: str, session: str, at: datetime, turns: Sequence[Turn]) -> Memory:
    rated = [turn.salience for turn in turns if turn.salience is not None]
    salience = max(rated, default=0.5)
    return Memory(id=id_, kind="episode", at=at, sandbox=session, salience=salience, turns=tuple(turns))


def quotes(sessions: Sequence[SessionSource]) -> Iterator[Quote]:
    """Every statement of a person, in order."""
    for number, session in enumerate(sessions):
        place = 0
        for _, turn in said(session):
            for text in split(turn.text) if is_person(turn.speaker) else ():
                if not is_question(text) and not is_thin(text):
                    yield number, place, session.started_at, text
                    place += 1


def lead(sessions: Sequence[SessionSource]) -> list[Quote]:
    """First statements first, session by session."""
    return sorted(quotes(sessions), key=lambda row: (row[1], row[0]))


def milestones_then_lead(sessions: Sequence[SessionSource]) -> list[Quote]:
    """The sentences of milestone turns, then first statements."""
    marked = {
        text
        for session in sessions
        for _, turn in said(session)
        if (turn.salience or 0) > DEFAULT.milestone_salience
        for text in split(turn.text)
    }
    return sorted(quotes(sessions), key=lambda row: (row[3] not in marked, row[1], row[0]))


def lexrank(sessions: Sequence[SessionSource]) -> list[Quote]:
    """Continuous LexRank: sentences by the weight that a walk over their likeness gives them."""
    rows = list(quotes(sessions))
    bags = [content(row[3]) for row in rows]
    seen: dict[str, int] = {}
    for bag in bags:
        for word in dict.fromkeys(bag):
            seen[word] = seen.get(word, 0) + 1
    vectors = [
        {word: bag.count(word) * log(len(rows) / seen[word] + 1) for word in dict.fromkeys(bag)}
        for bag in bags
    ]
    norms = [sqrt(sum(value * value for value in vector.values())) or 1.0 for vector in vectors]
    likeness = [
        [
            sum(v * other.get(w, 0.0) for w, v in one.items()) / (a * b)
            for other, b in zip(vectors, norms, strict=True)
        ]
        for one, a in zip(vectors, norms, strict=True)
    ]
    degree = [sum(line) or 1.0 for line in likeness]
    weight = [1.0 / len(rows)] * len(rows)
    for _ in range(30):
        weight = [
            0.15 / len(rows) + 0.85 * sum(likeness[m][n] * weight[m] / degree[m] for m in range(len(rows)))
            for n in range(len(rows))
        ]
    return [rows[n] for n in sorted(range(len(rows)), key=lambda n: (-weight[n], n))]


def filled(rows: Sequence[Quote], room: int, language: str) -> str:
    """As many quotations as fit, each on a line with its day."""
    lines: list[str] = []
    for _, _, at, text in rows:
        line = f"{dated(at, language)} “{text}”"
        if len(line) + 1 <= room:
            room -= len(line) + 1
            lines.append(line)
    return "\n".join(lines)


def count(facts: Sequence[dict[str, Any]], texts: dict[int, str]) -> int:
    """How many facts are told where their session is told; `texts` has that text by session."""
    return sum(re.search(fact["pattern"], texts.get(fact["session"], "")) is not None for fact in facts)


def of_milestones(story: dict[str, Any], milestone: float) -> list[dict[str, Any]]:
    """The facts whose pattern stands in a milestone turn of their session."""
    turns: dict[int, str] = {}
    for row in story["sessions"]:
        rated = [turn["text"] for turn in row["turns"] if (turn["salience"] or 0) > milestone]
        turns[row["session"]] = "\n".join(rated)
    return [fact for fact in story["facts"] if re.search(fact["pattern"], turns[fact["session"]])]


def report(path: Path, show: int | None, sphere: bool) -> None:
    """One story: facts told by pages, and by summaries against other rules."""
    story = json.loads(path.read_text("utf-8"))
    sessions = sessions_of(story)
    cores: list[Core] = []
    told: dict[str, dict[int, str]] = {}
    for due in backlog(len(sessions)):
        if due.kind != "core":
            continue
        eight = [sessions[ordinal - 1] for ordinal in due.sessions]
        core = summarise_core(due, eight, made_at=eight[-1].ended_at)
        cores.append(core)
        summary = core.compressed_narrative.summary.partition("\n")[2]
        room = len(summary) + 1
        rules = {"lead": lead, "milestones, lead": milestones_then_lead, "LexRank": lexrank}
        texts = {"page": core_page(core), "summary": summary}
        texts |= {name: filled(rule(eight), room, story["language"]) for name, rule in rules.items()}
        texts["digests"] = "\n".join(row.text for row in core.compressed_narrative.digests)
        for name, text in texts.items():
            told.setdefault(name, {}).update(dict.fromkeys(due.sessions, text))
        if show == len(cores) - 1:
            print(f"\n{core_page(core)}\n")
    facts = [fact for fact in story["facts"] if fact["session"] <= 8 * len(cores)]
    pages = [len(core_page(core)) for core in cores]
    marked = of_milestones(story, DEFAULT.milestone_salience)
    print(f"{path.stem}: {len(sessions)} sessions, {len(cores)} cores, {len(facts)} facts")
    print(f"  page: longest {max(pages)} characters, mean {sum(pages) / len(pages):.0f}")
    for name, texts in told.items():
        number = count(facts, texts)
        share, kept = f"{number / len(facts):6.1%}", f"{count(marked, texts)}/{len(marked)}"
        print(f"  {name:<17} {number:3d} told, {share}, of milestones {kept}")
    missed = [fact["fact"] for fact in facts if not re.search(fact["pattern"], told["page"][fact["session"]])]
    print("  not on a page: " + "; ".join(missed))
    if sphere and len(cores) == 8:
        print(f"\n{sphere_page(sphere_of(sessions))}\n")


def shown() -> dict[str, str]:
    """The pages that docs/compression.md shows: two cores of the tests' talks, the sphere of our story."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from talks import ENGLISH, THAI
    from talks import sessions_of as spoken_in

    made = {
        name: core_page(summarise_core(next(backlog(8)), spoken_in(talk), made_at=datetime.now(UTC)))
        for name, talk in (("core: English", ENGLISH), ("core: Thai", THAI))
    }
    (story,) = (json.loads(path.read_text("utf-8")) for path in OWN.glob("story_*.json"))
    return made | {"sphere": sphere_page(sphere_of(sessions_of(story)))}


def sphere_of(sessions: Sequence[SessionSource]) -> Sphere:
    """The sphere of 64 sessions."""
    *folded, last = backlog(64)
    rows = [[sessions[ordinal - 1] for ordinal in due.sessions] for due in folded]
    cores = [
        summarise_core(due, eight, made_at=eight[-1].ended_at)
        for due, eight in zip(folded, rows, strict=True)
    ]
    return summarise_sphere(last, cores, made_at=sessions[-1].ended_at)


def write(page: Path) -> None:
    """Put the pages of today's code into a document, behind their marks."""
    text = page.read_text("utf-8")
    for name, made in shown().items():
        block = re.compile(rf"(<!-- {name} -->\n```text\n).*?(\n```)", re.DOTALL)
        text = block.sub(lambda match, made=made: match[1] + made + match[2], text)
    page.write_text(text, "utf-8")


def main() -> None:
    """Report every story of the folders."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stories", type=Path, nargs="*", help="files, or folders that hold story_*.json")
    parser.add_argument("--show", type=int, help="print the page of this core of each story")
    parser.add_argument("--sphere", action="store_true", help="print the sphere of a story of 64 sessions")
    parser.add_argument("--write", type=Path, help="put the pages shown in a document into it, and end")
    asked = parser.parse_args()
    if asked.write:
        write(asked.write)
        return
    for place in (*asked.stories, OWN):
        for path in sorted(place.glob("story_*.json")) if place.is_dir() else [place]:
            report(path, asked.show, asked.sphere)


if __name__ == "__main__":
    main()
