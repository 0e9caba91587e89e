"""The page's words: records told as sentences, and texts as HTML in which every string is escaped."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from octavo.domain.memory import Memory, Proposal, is_human
from octavo.domain.pages import dated
from octavo.domain.patterns import pattern
from octavo.domain.sentences import shorten
from octavo.domain.text import runs, terms_of_run
from octavo.doors.render.diff import word_steps
from octavo.engine.versions import Diff
from octavo.storage.codec import REDACTED
from octavo.storage.state_log import Commit

_THAI = pattern("([\u0e00-\u0e7f]+(?:\\s+[\u0e00-\u0e7f]+)*)")
_WORD = pattern(r"([^\W_]+(?:['’][^\W_]+)*)")
_GIST = 180


@cache
def words(table: str) -> dict[str, Any]:
    """One table of the page's words."""
    tables = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
    return dict(tables[table])


def html(form: str, *values: Any) -> str:
    """A piece of HTML of our own with values in it, each escaped unless it is such a piece itself."""
    from markupsafe import Markup

    return Markup(form).format(*values)  # noqa: S704  # forms are literals of this module


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


def span(page: Memory) -> str:
    """The days that a core or sphere tells of."""
    return page.text.partition("\n")[0].partition(":")[0]


def sentence(reasons: list[str]) -> str:
    """Reasons as one sentence about a hit."""
    *others, last = reasons
    return f"It {', '.join(others)} and {last}." if others else f"It {last}."


def label(memory: Memory) -> str:
    """What a memory is about: its topic's last part, as a word."""
    return _capital((memory.topic or "").rpartition("/")[2].replace("_", " "))


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
    if verb in words("acts"):
        form = words("acts")[verb][not is_human(commit.actor)]
        return form.format(name_of(commit.actor), rest), said
    return f"{name_of(commit.actor)}: {verb}" if verb else "Something in another scope", said


def look(commit: Commit) -> str:
    """How a version is marked on the line: by you, by an agent, or a fold."""
    return "you" if is_human(commit.actor) else "fold" if commit.cause.startswith("compress") else "agent"


def asks(proposal: Proposal) -> str:
    """What somebody would like, as the beginning of a sentence."""
    wish = "change" if proposal.action == "write" and proposal.base_rev else proposal.action
    return f"{name_of(proposal.by)} would like to {words('wishes')[wish]}"


def sure(memory: Memory) -> str:
    """How sure a memory is, in words."""
    if is_human(memory.actor):
        return "certain, because you said it"
    steps = ((0.9, "very sure"), (0.7, "sure"), (0.4, "not very sure"), (0.0, "a guess"))
    return "you said yes to it" if memory.approved else next(w for n, w in steps if memory.confidence >= n)


def day(at: datetime) -> str:
    """A day as people write it."""
    return dated(at, "en", year=True)


def when(at: datetime, form: str = "") -> str:
    """A time for people, exact for machines and for who points at it; `form` may be `clock` or `short`."""
    exact = f"{day(at)}, {at:%H:%M:%S} UTC"
    shown = f"{at:%H:%M}" if form == "clock" else dated(at, "en", year=form != "short")
    return html('<time datetime="{}" title="{}">{}</time>', at.isoformat(), exact, shown)


def speech(text: str, marks: Collection[str] = ()) -> str:
    """A text with its Thai runs named as Thai, and asked words marked."""
    pieces = [(bool(i % 2), piece) for i, piece in enumerate(_THAI.split(text)) if piece]
    return _joined(_thai(piece, marks) if is_thai else _marked(piece, marks) for is_thai, piece in pieces)


def change(before: str, after: str) -> str:
    """Two texts in one: what went and what came, down to the word."""
    forms = {"=": "{}", "-": "<del>{}</del>", "+": "<ins>{}</ins>"}
    return _joined(html(forms[sign], speech(piece)) for sign, piece in word_steps(before, after))


def terms(text: str) -> frozenset[str]:
    """The terms by which a text is looked up."""
    return frozenset(term for run in runs(text) for term in terms_of_run(run))


def _marked(piece: str, marks: Collection[str]) -> str:
    """A piece of text whose words that share a term with the question are marked."""
    forms = ("{}", "<mark>{}</mark>")
    split = enumerate(_WORD.split(piece))
    return _joined(html(forms[bool(i % 2 and terms(word).intersection(marks))], word) for i, word in split)


def _thai(piece: str, marks: Collection[str]) -> str:
    """A Thai run in which every letter that a gram of the question covers is marked."""
    grams = [gram for gram in marks if gram in piece]
    covered = {at for gram in grams for m in re.finditer(re.escape(gram), piece) for at in range(*m.span())}
    parts: list[tuple[str, str]] = []
    for at, letter in enumerate(piece):
        form = "<mark>{}</mark>" if at in covered else "{}"
        before = parts.pop()[1] if parts and parts[-1][0] == form else ""
        parts.append((form, before + letter))
    return html('<span lang="th">{}</span>', _joined(html(form, letters) for form, letters in parts))


def _joined(pieces: Iterable[str]) -> str:
    from markupsafe import Markup

    return Markup("").join(pieces)


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]
