"""A memory's words on a terminal: safe to print, short where a line is all there is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from octavo.domain.patterns import pattern
from octavo.interfaces.render.shapes import Text
from octavo.later import Later

if TYPE_CHECKING:
    from octavo.domain.memory import Memory

plain = Later("octavo.interfaces.plain")

# What would move a cursor, change colours or turn the reading direction; tabs and line ends may stay.
_STEERING = pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_LONGEST = 200


def clean(text: str) -> str:
    """The text with every steering character shown as its number."""
    return _STEERING.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def one_line(text: str) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(clean(text).split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]}…"


def said(memory: Memory) -> Text:
    """A memory in a line: its topic and tags, and its text or, without one, its data."""
    topic = (f"{clean(memory.topic)}  ", "cyan") if memory.topic else ""
    tags = (f"  #{clean(' #'.join(memory.tags))}", "dim") if memory.tags else ""
    bare = json.dumps(plain.plain(memory.data), ensure_ascii=False)
    text = memory.text if memory.kind != "episode" else " · ".join(memory.text.splitlines())
    return Text.assemble(topic, one_line(text or bare), tags)
