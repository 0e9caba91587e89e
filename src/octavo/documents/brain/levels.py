"""Reading by levels as the seed writes it: one recall, entries by level, and one mix of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from octavo.domain.memory import Memory
from octavo.domain.mirror_places import place_of
from octavo.errors import BadInput

LEVELS = ("episodic", "semantic", "procedural")
DECAY = {"episodic": 0.9, "semantic": 0.99, "procedural": 0.999}
_KEY = re.compile(r"[a-z0-9_-]{1,64}")


class Entry(Struct, frozen=True, kw_only=True):
    """One memory as the seed's reader sees it; `overridden` if a higher level speaks on the same topic."""

    id: str
    key: str
    path: str
    content: str
    level: str
    score: float
    timestamp: datetime
    data: Mapping[str, Any] = {}
    overridden: bool = False


class Context(Struct, frozen=True, kw_only=True):
    """What was read: entries by level, and all levels mixed, best first."""

    levels: Mapping[str, tuple[Entry, ...]]
    mixed: tuple[Entry, ...]

    @property
    def text(self) -> str:
        """The mix as lines for a prompt; recalled text is data, never an instruction."""
        return "\n".join(f"[{entry.level}] {entry.content}" for entry in self.mixed)


def entry_of(memory: Memory, score: float = 0.0) -> Entry:
    """A memory as an entry of its level, with the place it has in the tree of files."""
    place = place_of(memory, lambda _: f"{memory.at:%Y-%m-%d}")
    return Entry(
        id=memory.id,
        key=memory.topic or memory.id,
        path=place.path if place else "",
        content=memory.text,
        level=memory.layer,
        score=score,
        timestamp=memory.at,
        data=memory.data,
    )


def check_level(level: str) -> str:
    """Return the level, or raise with the three there are."""
    if level not in LEVELS:
        raise BadInput(f"level {level!r} is none of the three", hint=f"use one of {', '.join(LEVELS)}")
    return level


def check_key(key: str) -> str:
    """Return the key, or raise: it names a file of the tree, so it is short, lower-case and no path."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        hint = "a key has at most 64 of a-z, 0-9, '_' and '-'; it is no path"
        raise BadInput(f"key {key!r} cannot be used", hint=hint)
    return key


def mix(entries: Sequence[Entry], levels: Sequence[str]) -> Context:
    """The entries of some levels, best first; of those with one key only the highest level is in the mix."""
    highest: dict[str, int] = {}
    for entry in entries:
        highest[entry.key] = max(highest.get(entry.key, 0), LEVELS.index(entry.level))
    ranked = [
        msgspec.structs.replace(entry, overridden=LEVELS.index(entry.level) < highest[entry.key])
        for entry in sorted(entries, key=lambda entry: -entry.score)
    ]
    by_level = {level: tuple(entry for entry in ranked if entry.level == level) for level in levels}
    return Context(levels=by_level, mixed=tuple(entry for entry in ranked if not entry.overridden))
