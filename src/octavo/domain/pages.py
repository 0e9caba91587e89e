"""Cores and spheres as pages that a person enjoys: dated quotations under a few headings, in one language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import TypeVar

from msgspec.structs import replace

from octavo import words
from octavo.domain import cues
from octavo.domain.cores import LLM, Core, KeyEvent, Sphere, Statement, Trace
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


def summarised(
    opening: Trace, events: Iterable[KeyEvent], named: Sequence[str], language: str, room: int | None = None
) -> tuple[Trace, ...]:
    """A summary, each line with its source: the opening, and events by their days as far as there is room."""
    lines = {told(event, named, language): event for event in events}
    days = [(event.at or "", line) for line, event in lines.items()]
    kept = lines if room is None else fitting(days, room - len(opening.sentence))
    return (opening, *(Trace(sentence=line, sources=(lines[line].episode or "",)) for line in kept))


def listed(names: Sequence[str], language: str) -> str:
    """Names in a row with an `and` before the last."""
    comma, last = phrase("comma", language), phrase("and", language)
    return comma.join(names[:-1]) + last + names[-1] if len(names) > 1 else "".join(names)


def names_of(speakers: Iterable[str | None]) -> list[str]:
    """Who is to be named: the people that speak if there are several, else nobody."""
    people = [name for name in dict.fromkeys(speakers) if name and is_person(name)]
    return people if len(people) > 1 else []


class _Page:
    """A page under way: its opening, then lists under their headings, in the language of what it quotes."""

    def __init__(self, made: Core | Sphere, quoted: Sequence[str], named: Sequence[str]) -> None:
        told = made.compressed_narrative if isinstance(made, Core) else made.abstracted_knowledge
        self.is_ours = made.meta.compression_method != LLM and bool(told.traces)
        self.parts = [told.traces[0].sentence if self.is_ours else told.summary]
        self.language, self.named = language_of(quoted or self.parts), named
        self.year = isinstance(made, Sphere)  # it spans more than one

    def told(self, *rows: KeyEvent | Statement) -> str:
        """What was said, one after the other, each with its day."""
        return " → ".join(told(row, self.named, self.language, year=self.year) for row in rows)

    def add(self, heading: str, lines: Iterable[str]) -> None:
        """Put a list on the page, if there is anything to list."""
        if shown := list(lines):
            self.parts.append("\n".join([phrase(heading, self.language), *shown]))

    def add_events(self, heading: str, events: Sequence[KeyEvent], milestones: Sequence[str] = ()) -> None:
        """One line a session with what was said there; a milestone has a mark of its own."""
        sessions: dict[str, list[KeyEvent]] = {}
        for event in events:
            sessions.setdefault(event.from_session or event.event, []).append(event)
        lines = []
        for rows in sessions.values():
            mark = "•" if any(row.episode in milestones for row in rows) else "-"
            said = quotes(((row.speaker, row.event) for row in rows), self.named)
            lines.append(f"{mark} {_day(rows[0].at, self.language, self.year)}{said}")
        self.add(heading, lines)


def core_page(core: Core) -> str:
    """The whole core to read, within 1,200 characters where nothing but code wrote it."""
    story = core.compressed_narrative
    quoted_already = [event.event for event in story.key_events]
    page = _Page(core, [*quoted_already, *story.recurring_themes], story.people)
    page.add_events("events", story.key_events, core.milestones)
    counts = {concept.theme: concept.sessions for concept in story.concept_clusters}
    shown = [f"{name} ({counts[name]})" if counts.get(name) else name for name in story.recurring_themes]
    themes = [f"{phrase('themes', page.language)}: {', '.join(shown)}"] if shown else []
    able = [row for row in holding(story.statements) if row.text not in " ".join(quoted_already)]
    for kind in KINDS:
        rows = [row for row in able if row.kind == kind][:_LISTED]
        room = CORE_CHARACTERS - len("\n\n".join([*page.parts, *themes])) - len(phrase(kind, page.language))
        page.add(kind, fitting([(row.at or "", f"- {page.told(row)}") for row in rows], room - 2))
    return "\n\n".join([*page.parts, *themes])


def sphere_page(sphere: Sphere) -> str:
    """The whole sphere to read: milestones, what changed, what holds, what was decided."""
    known = sphere.abstracted_knowledge
    page = _Page(sphere, [*(event.event for event in known.milestones), *known.core_beliefs], known.people)
    page.add_events("milestones", known.milestones)
    changed = ([side for side in (row.earlier, row.later) if side] for row in known.changed)
    page.add("changed", [f"- {page.told(*sides)}" for sides in changed])
    for kind in ("preference", "decision"):
        page.add(kind, [f"- {page.told(row)}" for row in known.statements if row.kind == kind])
    page.add("beliefs", [f"- {belief}" for belief in known.core_beliefs])
    if not page.is_ours:  # what recurs stands in our own opening
        recurs = known.behavioral_patterns
        page.add(
            "patterns",
            [f"- {p.pattern}" + f" ({p.frequency}; {p.context})" * bool(p.context) for p in recurs],
        )
    return "\n\n".join(page.parts)


def page_of(made: Core | Sphere) -> str:
    """A core or sphere to read."""
    return core_page(made) if isinstance(made, Core) else sphere_page(made)


def measured(made: Made, source_characters: int | None) -> Made:
    """A core or sphere with the share of its sources' characters that its page keeps."""
    kept = min(1.0, round(len(page_of(made)) / source_characters, 4)) if source_characters else None
    return replace(made, meta=replace(made.meta, detail_retention=kept, source_characters=source_characters))


def fitting(rows: Iterable[tuple[str, str]], room: int) -> list[str]:
    """Of lines with their days, the best first, those that there is room for, in the order of their days."""
    kept: list[tuple[str, str]] = []
    for day, line in rows:
        if len(line) + 1 <= room:
            kept.append((day, line))
            room -= len(line) + 1
    return [line for _, line in sorted(kept)]


def _day(at: str | None, language: str, year: bool) -> str:
    return f"{dated(datetime.fromisoformat(at), language, year=year)} " if at else ""
