"""The page's words: what a record says to a person, as every template may ask; HTML is the templates' own."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

from octavo.domain.brief import lasting  # noqa: F401  # a filter of the templates
from octavo.domain.cores import TYPES, Core, Sphere, read
from octavo.domain.hits import Hit
from octavo.domain.memory import STATE, Memory, is_human
from octavo.domain.pages import dated
from octavo.domain.patterns import pattern
from octavo.domain.sentences import shorten
from octavo.domain.text import runs, terms_of_run
from octavo.engine.reading import Reader, Revision
from octavo.engine.versions import Diff
from octavo.errors import BadInput
from octavo.storage.codec import REDACTED
from octavo.storage.state_log import Commit

_THAI = pattern("([\u0e00-\u0e7f]+(?:\\s+[\u0e00-\u0e7f]+)*)")
_WORD = pattern(r"[^\W_]+(?:['’][^\W_]+)*")
_GIST = 180
_PARTS, _PART_LEAST, _REASONS = 5, 0.02, 3  # of a hit's score, as far as they are shown
_VERBS = ("shares", "stands", "means", "was", "is", "matters", "felt", "belongs", "fits")  # begin a reason


@cache
def words() -> dict[str, dict[str, Any]]:
    """The page's words, a table for each of their uses."""
    return tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))


def name_of(actor: str) -> str:
    """Who it was, as a person would say it; a person is `You`."""
    kind, _, name = actor.partition(":")
    if is_human(actor):
        return "You"
    return _capital(name) or {"system": "Octavo", "agent": "Your agent"}.get(kind, "A tool")


def gist(memory: Memory) -> str:
    """What a memory says, in a line: an episode's first words, a core's first line."""
    text = memory.turns[0].text if memory.turns else memory.text.partition("\n")[0]
    return "an erased text" if text == REDACTED else shorten(text, _GIST) if text else "a note without words"


def wording(memory: Memory) -> str:
    """All that a memory says, unless it was erased."""
    return "an erased text" if memory.text == REDACTED else memory.text


def label(memory: Memory) -> str:
    """What a memory is about: its topic's last part, as a word."""
    return _capital((memory.topic or "").rpartition("/")[2].replace("_", " "))


def day(at: datetime, *, year: bool = True) -> str:
    """A day as people write it."""
    return dated(at, "en", year=year)


def pieces(text: str, marks: frozenset[str] = frozenset()) -> Iterator[tuple[bool, list[tuple[bool, str]]]]:
    """A text's runs, Thai or not, in pieces that were asked for or not: letters in Thai, else whole words."""
    for number, run in enumerate(_THAI.split(text)):
        if number % 2:
            spans = [m.span() for gram in marks for m in re.finditer(re.escape(gram), run)]
        else:
            spans = [m.span() for m in _WORD.finditer(run) if terms(m[0]) & marks] if marks else []
        asked = {at for span in spans for at in range(*span)}
        told = groupby(range(len(run)), asked.__contains__)
        yield bool(number % 2), [(is_asked, "".join(run[at] for at in places)) for is_asked, places in told]


def terms(text: str) -> frozenset[str]:
    """The terms by which a text is looked up."""
    return frozenset(term for run in runs(text) for term in terms_of_run(run))


def why(hit: Hit) -> str:
    """What speaks most for a hit, as one sentence about it."""
    reasons = [words for value, words in hit.reasons if value > 0 and words.split()[0] in _VERBS]
    *others, last = reasons[:_REASONS] or [""]
    told = f"{', '.join(others)} and {last}" if others else last
    return f"It {told}." if told else "Nothing in particular speaks for it."


def parts(hit: Hit) -> list[tuple[str, float]]:
    """What a hit's score is mostly made of, in the page's words."""
    weighed = sorted(hit.parts.items(), key=lambda part: -abs(part[1]))
    shown = [(name, value) for name, value in weighed if abs(value) >= _PART_LEAST][:_PARTS]
    return [(words()["parts"].get(name, name), value) for name, value in shown]


def told(commit: Commit, difference: Diff) -> tuple[str, str]:
    """A version as a sentence, and the words it is about."""
    verb, _, rest = commit.cause.partition(" ")
    memories = [*difference.added, *(new for _, new in difference.changed), *difference.removed]
    memories.sort(key=lambda memory: memory.kind != "episode")
    said = gist(memories[0]) if memories else ""
    if commit.session is not None:
        return f"Conversation {commit.session} with {name_of(commit.actor)}", said
    if not memories and verb in ("remember", "revise", "forget", "promote", "propose"):
        verb = "ask"
    if verb in words()["acts"]:
        return words()["acts"][verb][not is_human(commit.actor)].format(name_of(commit.actor), rest), said
    return f"{name_of(commit.actor)}: {verb}" if verb else "Something in another scope", said


def look(commit: Commit) -> str:
    """How a version is marked on the line: by you, by an agent, or a fold."""
    return "you" if is_human(commit.actor) else "fold" if commit.cause.startswith("compress") else "agent"


def first_to_say(history: list[Revision]) -> Memory:
    """The revision that gave a memory the wording it has: who brings it back later did not write it."""
    spoken = [r.memory for r in history if not r.memory.gone] or [history[-1].memory]
    return list(takewhile(lambda memory: memory.text == spoken[-1].text, reversed(spoken)))[-1]


def held(reader: Reader) -> list[Memory]:
    """What holds now: who you are, then what was said last of each topic."""
    found = [m for kind in ("canon", "register") for m in reader.memories(kind=kind, limit=100, newest=True)]
    return [memory for memory in found if memory.category != STATE and memory.text]


def content(page: Memory) -> Core | Sphere | None:
    """What a core or sphere holds, None if it came from elsewhere in another shape."""
    try:
        return read(TYPES[page.kind], page.data)
    except BadInput:
        return None


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]
