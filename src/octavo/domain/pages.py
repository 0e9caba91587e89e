"""Cores and spheres as pages that a person enjoys: dated quotations under a few headings, in one language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import TypeVar

from msgspec.structs import replace

from octavo import words
from octavo.domain import cues
from octavo.domain.cores import STATISTICAL, SYNTHESIS, Core, KeyEvent, Sphere, Statement
from octavo.domain.patterns import pattern
from octavo.domain.sentences import is_person, shorten
from octavo.domain.statements import KINDS, holding

Made = TypeVar("Made", Core, Sphere)

CORE_CHARACTERS = 1_200
_LISTED = 4
_LETTER = pattern(r"[^\W\d_]")


def language_of(texts: Iterable[str]) -> str:
    """The language of a frame: that of most of the words it holds."""
    thai = letters = 0
    for text in texts:
        thai += len(cues.THAI.findall(text))
        letters += len(_LETTER.findall(text))
    return "th" if thai > 0.5 * letters else "en"


def phrase(name: str, language: str, /, **parts: object) -> str:
    """A phrase that pages show, in a language, with its parts filled in."""
    return words.block(f"page.{name}", language).format(**parts)


def dated(at: date, language: str, *, year: bool = False) -> str:
    """A day as people write it: `8 May`, `8 พ.ค.`; with the year if asked."""
    month = words.block("page.months", language).split()[at.month - 1]
    return f"{at.day} {month} {at.year}" if year else f"{at.day} {month}"


def period(first: datetime, last: datetime, language: str) -> str:
    """A span of days, as short as it stays clear."""
    if first.date() == last.date():
        return dated(first, language, year=True)
    end = dated(last, language, year=True)
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day}–{end}"
    return f"{dated(first, language, year=first.year != last.year)} – {end}"


def quoted(speaker: str | None, text: str) -> str:
    """What somebody said, in quotation marks, with the name of who said it if one is given."""
    inner = f"“{text[:1].upper()}{text[1:]}”"
    return f"{shorten(speaker, 30)} {inner}" if speaker else inner


def quotes(rows: Iterable[tuple[str | None, str]], named: Sequence[str]) -> str:
    """What several people said one after the other, each named where another one begins to speak."""
    before: str | None = None
    lines = []
    for speaker, text in rows:
        lines.append(quoted(speaker if speaker in named and speaker != before else None, text))
        before = speaker
    return " ".join(lines)


def told(row: KeyEvent | Statement, named: Sequence[str], language: str, *, year: bool = False) -> str:
    """One thing that was said, with its day and, where several people speak, who said it."""
    text = row.event if isinstance(row, KeyEvent) else row.text
    return _day(row.at, language, year) + quoted(row.speaker if row.speaker in named else None, text)


def listed(names: Sequence[str], language: str) -> str:
    """Names in a row with an `and` before the last."""
    comma, last = phrase("comma", language), phrase("and", language)
    return comma.join(names[:-1]) + last + names[-1] if len(names) > 1 else "".join(names)


def names_of(speakers: Iterable[str | None]) -> list[str]:
    """Who is to be named: the people that speak if there are several, else nobody."""
    people = [name for name in dict.fromkeys(speakers) if name and is_person(name)]
    return people if len(people) > 1 else []


def event_lines(
    events: Sequence[KeyEvent],
    named: Sequence[str],
    language: str,
    *,
    milestones: Sequence[str] = (),
    year: bool = False,
) -> list[str]:
    """One line a session with what was said there; a milestone has a mark of its own."""
    sessions: dict[str, list[KeyEvent]] = {}
    for event in events:
        sessions.setdefault(event.from_session or event.event, []).append(event)
    lines = []
    for rows in sessions.values():
        mark = "•" if any(row.episode in milestones for row in rows) else "-"
        said = quotes(((row.speaker, row.event) for row in rows), named)
        lines.append(f"{mark} {_day(rows[0].at, language, year)}{said}")
    return lines


def core_page(core: Core) -> str:
    """The whole core to read, within 1,200 characters where nothing but code wrote it."""
    story = core.compressed_narrative
    is_ours = core.meta.compression_method == STATISTICAL and bool(story.traces)
    opening = story.traces[0].sentence if is_ours else story.summary
    language = language_of(
        [*(event.event for event in story.key_events), *story.recurring_themes] or [opening]
    )
    parts = [opening]
    lines = event_lines(story.key_events, story.people, language, milestones=core.milestones)
    if lines:
        parts.append("\n".join([phrase("events", language), *lines]))
    themes = _themes(core, language)
    room = CORE_CHARACTERS - len("\n\n".join([*parts, *themes]))
    quoted_already = " ".join(event.event for event in story.key_events)
    able = [row for row in holding(story.statements) if row.text not in quoted_already]
    for kind in KINDS:
        rows = [row for row in able if row.kind == kind][:_LISTED]
        block = _fitting(phrase(kind, language), rows, story.people, language, room)
        parts += block
        room -= sum(len(text) + 2 for text in block)
    return "\n\n".join([*parts, *themes])


def sphere_page(sphere: Sphere) -> str:
    """The whole sphere to read: milestones, what changed, what holds, what was decided."""
    known = sphere.abstracted_knowledge
    is_ours = sphere.meta.compression_method == SYNTHESIS and bool(known.traces)
    opening = known.traces[0].sentence if is_ours else known.summary
    language = language_of([*(event.event for event in known.milestones), *known.core_beliefs] or [opening])
    blocks: list[tuple[str, list[str]]] = [
        ("milestones", event_lines(known.milestones, known.people, language, year=True)),
        (
            "changed",
            [
                "- "
                + " → ".join(
                    told(side, known.people, language, year=True) for side in (row.earlier, row.later) if side
                )
                for row in known.changed
            ],
        ),
    ]
    for kind in ("preference", "decision"):
        rows = [row for row in known.statements if row.kind == kind]
        blocks.append((kind, [f"- {told(row, known.people, language, year=True)}" for row in rows]))
    blocks.append(("beliefs", [f"- {belief}" for belief in known.core_beliefs]))
    if not is_ours:  # what recurs stands in our own opening
        rows_of = known.behavioral_patterns
        blocks.append(("patterns", [_pattern(row.pattern, row.frequency, row.context) for row in rows_of]))
    shown = ["\n".join([phrase(name, language), *lines]) for name, lines in blocks if lines]
    return "\n\n".join([opening, *shown])


def page_of(made: Core | Sphere) -> str:
    """A core or sphere to read."""
    return core_page(made) if isinstance(made, Core) else sphere_page(made)


def measured(made: Made, source_characters: int) -> Made:
    """A core or sphere with the share of its sources' characters that its page keeps."""
    kept = min(1.0, round(len(page_of(made)) / source_characters, 4)) if source_characters else None
    counted: dict[str, int] = {"source_characters": source_characters} if isinstance(made, Core) else {}
    return replace(made, meta=replace(made.meta, detail_retention=kept, **counted))


def _themes(core: Core, language: str) -> list[str]:
    told = core.compressed_narrative
    counts = {concept.theme: concept.sessions for concept in told.concept_clusters}
    shown = [f"{name} ({counts[name]})" if counts.get(name) else name for name in told.recurring_themes]
    return [f"{phrase('themes', language)}: {', '.join(shown)}"] if shown else []


def _fitting(
    heading: str, rows: Sequence[Statement], named: Sequence[str], language: str, room: int
) -> list[str]:
    """A list of statements in the order they were said, as far as there is room."""
    kept: list[tuple[str, str]] = []
    room -= len(heading) + 2
    for row in rows:
        line = f"- {told(row, named, language)}"
        if len(line) + 1 <= room:
            kept.append((row.at or "", line))
            room -= len(line) + 1
    return ["\n".join([heading, *(line for _, line in sorted(kept))])] if kept else []


def _day(at: str | None, language: str, year: bool) -> str:
    return f"{dated(datetime.fromisoformat(at), language, year=year)} " if at else ""


def _pattern(pattern: str, frequency: str | None, context: str | None) -> str:
    return f"- {pattern}" + (f" ({frequency}; {context})" if context else "")
