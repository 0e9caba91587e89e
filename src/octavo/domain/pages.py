"""Cores and spheres as pages that a person enjoys; also the text that recall searches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from octavo.domain import cues
from octavo.domain.cores import Core, Sphere, Statement
from octavo.domain.sentences import shorten

_MONTHS = cues.listed("January February March April May June July August September October November December")
_MONTHS_TH = cues.listed("ม.ค. ก.พ. มี.ค. เม.ย. พ.ค. มิ.ย. ก.ค. ส.ค. ก.ย. ต.ค. พ.ย. ธ.ค.")
_THAI = re.compile("[\u0e00-\u0e7f]")
_LETTER = re.compile(r"[^\W\d_]")
_ROLES = frozenset({"user", "assistant", "system", "tool", "human", "ai", "agent"})

_WORDS = {
    "sessions": ("Session by session", "ทีละครั้ง"),
    "decision": ("Decided", "ตัดสินใจแล้ว"),
    "commitment": ("Planned or promised", "วางแผนหรือสัญญาไว้"),
    "preference": ("Said of themselves", "เล่าถึงตัวเอง"),
    "themes": ("Themes", "เรื่องที่คุยบ่อย"),
    "beliefs": ("Seems to hold (not yet approved)", "น่าจะเป็นเช่นนี้ (ยังไม่ได้รับการยืนยัน)"),
    "patterns": ("What recurs", "สิ่งที่เกิดซ้ำ"),
    "quiet": ("nothing but greetings", "มีแต่คำทักทาย"),
}


def is_thai(texts: Iterable[str]) -> bool:
    """Whether Thai makes up a good part of what was said."""
    thai = letters = 0
    for text in texts:
        thai += len(_THAI.findall(text))
        letters += len(_LETTER.findall(text))
    return thai > 0.3 * letters


def dated(at: datetime, *, thai: bool, year: bool = False) -> str:
    """A day as people write it: `8 May`, `8 พ.ค.`; with the year if asked."""
    month = (_MONTHS_TH if thai else _MONTHS)[at.month - 1]
    return f"{at.day} {month} {at.year}" if year else f"{at.day} {month}"


def period(first: datetime, last: datetime, *, thai: bool) -> str:
    """A span of days, as short as it stays clear."""
    if first.date() == last.date():
        return dated(first, thai=thai, year=True)
    end = dated(last, thai=thai, year=True)
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day}–{end}"
    return f"{dated(first, thai=thai, year=first.year != last.year)} – {end}"


def shown_name(speaker: str) -> str:
    """A speaker as people write names, at most 30 characters; a bare role gets a capital."""
    return speaker.capitalize() if speaker in _ROLES else shorten(speaker, 30)


def quoted(speaker: str | None, text: str) -> str:
    """What somebody said, in quotation marks, with who said it."""
    inner = text[0].upper() + text[1:]
    return f"{shown_name(speaker)}: “{inner}”" if speaker else f"“{inner}”"


def on_day(at: datetime, line: str, *, thai: bool) -> str:
    """A line with its day before it."""
    return f"{dated(at, thai=thai)}{' ' if thai else ', '}{line}"


def listed(names: Sequence[str], *, thai: bool) -> str:
    """Names in a row with an `and` before the last; more than four are counted."""
    shown = list(names[:4])
    if len(names) > 4:
        shown = [*names[:3], f"อีก {len(names) - 3}" if thai else f"{len(names) - 3} more"]
    if len(shown) < 2:
        return "".join(shown)
    return (
        (" ".join(shown[:-1]) + f" และ{shown[-1]}") if thai else (", ".join(shown[:-1]) + f" and {shown[-1]}")
    )


def core_page(core: Core) -> str:
    """The whole core to read: summary, each session, decisions and plans, themes."""
    told = core.compressed_narrative
    # The language of its first words, before any quotation, so that the page speaks one.
    thai = is_thai([told.summary.partition(":")[0]])
    parts = [told.summary]
    if any(digest.text for digest in told.digests):
        rows = (
            f"{dated(datetime.fromisoformat(digest.at), thai=thai, year=True)} — "
            f"{digest.text or _word('quiet', thai)}"
            for digest in told.digests
        )
        parts.append("\n".join([_word("sessions", thai), *rows]))
    parts.extend(_statements(told.statements, thai))
    if told.recurring_themes:
        parts.append(f"{_word('themes', thai)}: {', '.join(told.recurring_themes)}")
    return "\n\n".join(parts)


def sphere_page(sphere: Sphere) -> str:
    """The whole sphere to read: summary, beliefs, patterns."""
    known = sphere.abstracted_knowledge
    thai = is_thai([known.summary.partition(":")[0]])
    parts = [known.summary]
    if known.core_beliefs:
        parts.append("\n".join([_word("beliefs", thai), *(f"- {belief}" for belief in known.core_beliefs)]))
    if known.behavioral_patterns:
        rows = (
            f"- {row.pattern}" + (f" ({row.frequency}; {row.context})" if row.context else "")
            for row in known.behavioral_patterns
        )
        parts.append("\n".join([_word("patterns", thai), *rows]))
    return "\n\n".join(parts)


def _statements(statements: Sequence[Statement], thai: bool) -> list[str]:
    parts = []
    for kind in ("decision", "commitment", "preference"):
        rows = [
            f"- {_when(row, thai)}{quoted(row.speaker, row.text)}" for row in statements if row.kind == kind
        ]
        if rows:
            parts.append("\n".join([_word(kind, thai), *rows]))
    return parts


def _when(row: Statement, thai: bool) -> str:
    return on_day(datetime.fromisoformat(row.at), "", thai=thai) if row.at else ""


def _word(name: str, thai: bool) -> str:
    return _WORDS[name][thai]
