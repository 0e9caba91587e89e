"""A memory's words in a view, short where a line is all there is."""

from __future__ import annotations

import json

from octavo.domain.memory import Memory
from octavo.doors import plain
from octavo.doors.render.shapes import Line, line

_LONGEST = 200


def one_line(text: str) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(plain.clean(text).split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]}…"


def said(memory: Memory) -> Line:
    """A memory in a line: its topic and tags, and its text or, without one, its data."""
    tags = line((f"  {one_line(' '.join(f'#{tag}' for tag in memory.tags))}", "dim")) if memory.tags else ""
    text = memory.text if memory.kind != "episode" else " · ".join(memory.text.splitlines())
    if not text:
        text = json.dumps(plain.plain(memory.data), ensure_ascii=False)
    return line(topic(memory), one_line(text), tags)


def topic(memory: Memory) -> Line:
    """The topic of a memory, before its text."""
    return line((f"{one_line(memory.topic)}  ", "cyan")) if memory.topic else line()
