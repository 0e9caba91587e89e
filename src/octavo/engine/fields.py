"""What a caller hands in for the fields of a memory: checked, bounded, and plain JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict

import msgspec
from msgspec.structs import fields

from octavo.domain import episodes
from octavo.domain.memory import Emotion, Link, check_id, check_time, check_words
from octavo.domain.privacy import MAX_DEPTH
from octavo.errors import BadInput

Feeling = str | Emotion | Mapping[str, Any] | None
Links = Mapping[str, str | Sequence[str]] | Sequence[Link]


class Changes(TypedDict, total=False):
    """What a revision may set."""

    text: str
    topic: str | None
    category: str | None
    tags: Sequence[str]
    at: datetime
    salience: float
    confidence: float
    emotion: Feeling
    links: Links
    data: Mapping[str, Any]


class Fields(TypedDict, total=False):
    """What may be said of a new memory besides its text; `vector` is the caller's own, and whose it is.

    Without a word it is a fact of now, half salient, and as sure as who writes it.
    """

    kind: str
    topic: str | None
    category: str | None
    tags: Sequence[str]
    source: str | None
    at: datetime | None
    salience: float | None
    confidence: float | None
    emotion: Feeling
    links: Links
    data: Mapping[str, Any] | None
    id: str | None
    vector: tuple[str, Sequence[float]] | None
    supersedes: str | None
    override: str | None


MAX_LABEL = 200
MAX_TAGS = 256
MAX_LINKS = 10_000
MAX_DATA = 16_000_000  # bytes of a memory's data as JSON


def feeling(value: Feeling) -> Emotion | None:
    """An emotion from a word, a mapping or an Emotion."""
    match value:
        case None:
            return None
        case Emotion():
            return _emotion(value.label, value.valence, value.intensity)
        case str():
            return _emotion(value)
        case Mapping():
            unknown = set(value) - {f.name for f in fields(Emotion)}
            if unknown:
                raise BadInput(
                    f"emotion has unknown keys {sorted(unknown)}", hint="use label, valence, intensity"
                )
            return _emotion(**value)
        case _:
            raise BadInput(
                f"emotion {value!r} cannot be used", hint="use a word or label, valence, intensity"
            )


def _emotion(label: Any = None, valence: Any = None, intensity: Any = None) -> Emotion:
    for value, what in ((valence, "valence"), (intensity, "intensity")):
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if value is not None and not number:
            raise BadInput(f"{what} {value!r:.80} is not a number")
    return Emotion(label=as_label(label, "emotion"), valence=valence, intensity=intensity)


def as_text(value: Any) -> str:
    """A text, whole and of any script."""
    if not isinstance(value, str):
        raise BadInput(f"text is {type(value).__name__}, not text")
    return check_words(value)


def as_label(value: Any, what: str) -> str | None:
    """A short line of text such as a topic, or None."""
    if value is None:
        return None
    if (
        not isinstance(value, str)
        or not value.strip()
        or len(value) > MAX_LABEL
        or any(ord(c) < 32 for c in value)
    ):
        hint = f"use a line of text of at most {MAX_LABEL} characters"
        raise BadInput(f"{what} {value!r:.80} cannot be used", hint=hint)
    return check_words(value.strip(), what)


def as_tags(values: Sequence[str]) -> tuple[str, ...]:
    """Tags without repetition, in order."""
    if isinstance(values, str):
        raise BadInput(f"tags {values!r} is one text", hint="hand in a list of tags")
    _must_be_few(values, MAX_TAGS, "tags")
    return tuple(dict.fromkeys(tag for value in values if (tag := as_label(value, "tag"))))


def as_links(given: Links) -> tuple[Link, ...]:
    """Links from a mapping of names to ids, or from a list of them."""
    if isinstance(given, Mapping):
        pairs: list[tuple[str, Any]] = [
            (name, to)
            for name, many in given.items()
            for to in (many if isinstance(many, list | tuple) else [many])
        ]
        given = [Link(name=name, to=check_id(to, "link target")) for name, to in pairs]
    _must_be_few(given, MAX_LINKS, "links")
    if not all(isinstance(link, Link) for link in given):
        raise BadInput("links are no links", hint='hand in {"about": "<id>"} or a list of Link')
    return tuple(
        Link(name=check_id(link.name, "link"), to=check_id(link.to, "link target")) for link in given
    )


def as_data(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """An object of plain JSON values, within its bound."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise BadInput(f"data is {type(given).__name__}, not an object with text keys")
    data = {check_words(key, "data"): plain_json(value) for key, value in given.items()}
    size = len(msgspec.json.encode(data))
    if size > MAX_DATA:
        raise BadInput(f"data has {size} bytes", hint=f"at most {MAX_DATA} are kept with a memory")
    return data


def _must_be_few(values: Any, limit: int, what: str) -> None:
    if not isinstance(values, Collection) or len(values) > limit:
        raise BadInput(f"{what} cannot be used", hint=f"hand in a list of at most {limit}")


def plain_json(value: Any, depth: int = 0) -> Any:
    """A deep copy of plain JSON values; anything else is refused, so that nothing is pickled or lost."""
    if depth > MAX_DEPTH:
        raise BadInput(f"data is nested deeper than {MAX_DEPTH}", hint="flatten the data")
    match value:
        case None | bool() | int():
            return value
        case str():
            return check_words(value, "data")
        case float():
            if not math.isfinite(value):
                raise BadInput("data holds NaN or Inf, which JSON cannot say")
            return value
        case datetime():
            return episodes.iso(check_time(value))
        case Mapping():
            return {check_words(str(key), "data"): plain_json(item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [plain_json(item, depth + 1) for item in value]
        case _:
            raise BadInput(f"data holds a {type(value).__name__}; only JSON values can be kept")
