"""The sessions of seed 001's tree: in which order they closed, and the page of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from octavo.domain import compression
from octavo.domain.compression import CompressionPolicy, Due, recognise
from octavo.domain.episodes import iso
from octavo.domain.memory import SHARED, Memory
from octavo.domain.rules import counts_as_episode
from octavo.domain.sentences import SessionSource
from octavo.domain.summary import digest
from octavo.engine.counts import Session
from octavo.interfaces.formats.consciousness_tree import (
    SEQUENCES,
    SESSIONS,
    Tree,
    place_of,
    session_name,
)

_PAGE = re.compile(r"(.+)_SP\d+C\d+_SS\d+(@.+)?")
_ELLIPSIS = ("...", "…")


def scopes(tree: Tree) -> list[str]:
    """The scopes that a tree speaks of."""
    found = {memory.scope for memory in tree.episodes.values()} | set(tree.counters)
    return sorted(found | {id_.partition("@")[2] or SHARED for id_ in tree.made})


def order(tree: Tree, scope: str, policy: CompressionPolicy) -> list[str]:
    """The sessions of a scope in the order they closed; one that is counted but not named gets a name.

    What a core lists decides, then what a session's page says, then the places of the episodes, then time.
    """
    spoken = _spoken(tree, scope)
    slots: dict[int, str] = {}
    for due, value in _made(tree, scope, policy):
        if due.kind == "core":
            _fill(slots, due.sessions, value["source_sessions"])
    for page in tree.pages.values():
        place, name = place_of(page), page.get("session_id")
        if place and isinstance(name, str) and page.get("scope", SHARED) == scope:
            ordinal = _ordinal(place, policy)
            if ordinal <= len(spoken) + len(tree.pages) and session_name(name) not in slots.values():
                slots.setdefault(ordinal, session_name(name))
    left = [name for name in _by_place(spoken) if name not in slots.values()]
    last = max([*slots, *(due.sessions[-1] for due, _ in _made(tree, scope, policy))], default=0)
    free = [ordinal for ordinal in range(1, last + len(left) + 1) if ordinal not in slots]
    slots |= zip(free, left, strict=False)
    last = max(last, *slots) if slots else last
    return [slots.get(ordinal) or _unnamed(ordinal, scope, policy) for ordinal in range(1, last + 1)]


def developer(tree: Tree) -> str | None:
    """Whose name the pages of a tree carry most."""
    found = [_PAGE.fullmatch(PurePosixPath(name).stem) for name in tree.pages]
    counted = Counter(match[1] for match in found if match)
    return counted.most_common(1)[0][0] if counted else None


def pages(
    sessions: Iterable[Session], said: Mapping[str, Sequence[Memory]], name: str, policy: CompressionPolicy
) -> dict[str, dict[str, Any]]:
    """The page of each session by its path: a digest, its episodes, and the counters before and after it."""
    found = {}
    for session in sessions:
        suffix = "" if session.scope == SHARED else f"@{session.scope}"
        title = compression.display_name(name, session.ordinal, policy)
        found[f"{SESSIONS}/{title}{suffix}.json"] = _page(session, said.get(session.sandbox, ()), policy)
    return found


def _page(session: Session, episodes: Sequence[Memory], policy: CompressionPolicy) -> dict[str, Any]:
    times = [turn.at or m.at for m in episodes for turn in m.turns] or [m.at for m in episodes]
    source = SessionSource(
        id=session.sandbox,
        ordinal=session.ordinal,
        started_at=min(times, default=session.at),
        ended_at=max(times, default=session.at),
        episodes=tuple(episodes),
    )
    return {
        "session_id": session.sandbox,
        **({} if session.scope == SHARED else {"scope": session.scope}),
        "timestamp_start": iso(source.started_at) if times else None,
        "timestamp_end": iso(source.ended_at) if times else None,
        "summary": digest(source, policy).text,
        "episodes": [m.id for m in episodes],
        "compression_meta": dict(session.position),
        "counters": compression.counters(session.ordinal, policy),
    }


def _spoken(tree: Tree, scope: str) -> dict[str, list[Memory]]:
    found: dict[str, list[Memory]] = {}
    for memory in tree.episodes.values():
        if memory.scope == scope and memory.session is not None and counts_as_episode(memory):
            found.setdefault(memory.session, []).append(memory)
    return found


def _by_place(spoken: Mapping[str, Sequence[Memory]]) -> list[str]:
    """Sessions by the places of their episodes if all have one, else by time."""
    places = {
        name: min((p for m in said if (p := place_of(m.data))), default=None) for name, said in spoken.items()
    }
    known = all(places.values())
    times = {name: min(m.at for m in said) for name, said in spoken.items()}
    return sorted(spoken, key=lambda name: (places[name] if known else (), times[name], name))


def _made(tree: Tree, scope: str, policy: CompressionPolicy) -> list[tuple[Due, dict[str, Any]]]:
    found = [(recognise(id_, policy), value) for id_, value in sorted(tree.made.items())]
    return [(due, value) for due, value in found if due is not None and due.scope == scope]


def _fill(slots: dict[int, str], ordinals: range, given: Sequence[str]) -> None:
    """Put a core's sessions in their places; a list that leaves some out fills the first places it can."""
    names = [session_name(name) for name in given if name not in _ELLIPSIS]
    fresh = [name for name in dict.fromkeys(names) if name not in slots.values()]
    slots |= zip([ordinal for ordinal in ordinals if ordinal not in slots], fresh, strict=False)


def _ordinal(place: Sequence[int], policy: CompressionPolicy) -> int:
    number = 0
    for value, level in zip(place, (None, *reversed(policy.levels)), strict=False):
        number = number * (level.radix if level else 1) + value
    return number + 1


def _unnamed(ordinal: int, scope: str, policy: CompressionPolicy) -> str:
    place = compression.position(ordinal, policy)
    numbers = "_".join(f"{place[name]:03d}" for name in SEQUENCES)
    return f"session_{numbers}" if scope == SHARED else f"session_{numbers}@{scope}"
