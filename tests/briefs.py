"""Memories for briefs, and a strict reader that takes a brief apart again."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from octavo.domain import brief_page
from octavo.domain.memory import Memory

DAY = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
_LINE = re.compile(r"- \[([^\[\],]+), ([a-z]+), (\d{4}-\d\d-\d\d)(?:, ((?:\\.|[^\\\[\]])+))?\] (.*)")
_SAID = re.compile(r"- \[(\d+)\] (.*)")
_NOTE = re.compile(r"\((\d+) more lines? do(?:es)? not fit the budget\)")


def memory(id_: str, text: str, kind: str = "canon", **more: Any) -> Memory:
    """A memory with the fields a brief looks at."""
    return Memory(id=id_, kind=kind, text=text, at=more.pop("at", DAY), **more)  # type: ignore[arg-type]


@dataclass
class Read:
    """A brief taken apart."""

    sections: dict[str, list[tuple[str, str, str, str | None, str]]] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)

    @property
    def texts(self) -> list[str]:
        return [line[4] for lines in self.sections.values() for line in lines]

    @property
    def ids(self) -> list[str]:
        return [line[0] for lines in self.sections.values() for line in lines]


def read(text: str) -> Read:
    """Take a Markdown brief apart; anything that is not one well-formed block is an error."""
    lines = text.split("\n")
    assert lines[:3] == [brief_page.OPEN, brief_page.NOTICE, ""], lines[:3]
    assert lines[-2:] == ["", brief_page.CLOSE]
    assert text.count("<") == text.count(">") == 2
    found, heading = Read(), ""
    for line in lines[3:-2]:
        note, item = _NOTE.fullmatch(line), _LINE.fullmatch(line)
        if line.startswith(("## ", "### ")):
            heading = line.lstrip("#").strip()
            found.sections.setdefault(heading, [])
        elif note:
            found.notes[heading] = int(note[1])
        elif said := _SAID.fullmatch(line):
            found.sections[heading].append((said[1], "turn", "", None, _unescaped(said[2])))
        elif line:
            assert item is not None, f"not a line of ours: {line!r}"
            topic = None if item[4] is None else _unescaped(item[4])
            found.sections[heading].append((item[1], item[2], item[3], topic, _unescaped(item[5])))
    return found


def _unescaped(text: str) -> str:
    return html.unescape(re.sub(r"\\(.)", r"\1", text))
