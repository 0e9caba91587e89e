"""What a caller hands in for the fields of a memory: checked, bounded, and plain JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, TypedDict
from uuid import UUID

import msgspec
from msgspec import Meta
from msgspec.structs import asdict, replace

from octavo.domain import episodes
from octavo.domain.memory import KINDS, SOURCES, Emotion, Link, check_id, check_time
from octavo.domain.privacy import MAX_DEPTH
from octavo.domain.records import shape_of
from octavo.engine.surface import HALF
from octavo.errors import BadInput

Feeling = str | Emotion | Mapping[str, Any] | None
Links = Mapping[str, str | Sequence[str]] | Sequence[Link]


def one_of(names: Iterable[str]) -> Meta:
    """A note that a text may only be one of these names."""
    return Meta(extra={"one_of": tuple(names)})


# The sentence and the bounds of a parameter stand in its annotation, where every door reads them.
OPTION = "--"  # it is named on a command line, though Python takes it in order
Count = Annotated[int, Meta(ge=0)]
Unit = Annotated[float, Meta(ge=0, le=1)]
Name = Annotated[str, Meta(max_length=100)]
MemoryId = Annotated[str, "The memory's id."]
Key = Annotated[str | None, Meta(max_length=500), "Makes a retry safe: the same key never writes twice."]
_Topic = Annotated[str | None, "Its topic; a register or canon has one memory a topic."]
_Category = Annotated[str | None, "A word of your own to filter by."]
_Tags = Annotated[Sequence[str], "A tag; may be repeated."]
_At = Annotated[datetime, "When it happened (now if not said)."]
Salience = Annotated[Unit, "How much it matters, 0 to 1."]
_Confidence = Annotated[Unit, "How sure it is, 0 to 1."]
Felt = Annotated[Feeling, "How it felt, in a word."]
_Links = Annotated[Links, "An edge to another memory, name=id; may be repeated."]
Data = Annotated[Mapping[str, Any], "What it carries besides text, a JSON object."]
Override = Annotated[str | None, "Pass a check of the gate, with this reason (humans only)."]


class Changes(TypedDict, total=False):
    """What a revision may set."""

    text: Annotated[str, "Its new text."]
    topic: _Topic
    category: _Category
    tags: _Tags
    at: _At
    salience: Salience
    confidence: _Confidence
    emotion: Felt
    links: _Links
    data: Data


class Fields(TypedDict, total=False):
    """What may be said of a new memory besides its text; `vector` is the caller's own, and whose it is.

    Without a word it is a fact of now, half salient, and as sure as who writes it.
    """

    kind: Annotated[str, one_of(KINDS), "Which kind it is (fact if not said)."]
    topic: _Topic
    category: _Category
    tags: _Tags
    at: _At | None
    salience: Salience | None
    confidence: _Confidence | None
    emotion: Felt
    links: _Links
    data: Data | None
    override: Override
    source: Annotated[str | None, one_of(SOURCES), "Where it comes from."]
    id: Annotated[str | None, "An id of your own."]
    supersedes: Annotated[str | None, "The id or the text of the memory it replaces."]
    vector: tuple[str, Sequence[float]] | None


MAX_LABEL = 200
MAX_TAGS = 256
MAX_LINKS = 10_000
MAX_DATA = 16_000_000  # bytes of a memory's data as JSON


def checked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that fit their types, each within its bounds and in the form it is kept in."""
    return {name: _CHECKS[name](value) for name, value in fields.items()}


def feeling(value: Feeling) -> Emotion | None:
    """An emotion from a word, a mapping or an Emotion."""
    if value is None:
        return None
    said = {"label": value} if isinstance(value, str) else value
    told = asdict(said) if isinstance(said, Emotion) else said
    try:
        felt = msgspec.convert(told, shape_of(Emotion))
    except msgspec.ValidationError as error:
        raise BadInput(f"emotion: {error}", hint="use label, valence, intensity") from error
    if not all(map(math.isfinite, (felt.valence or 0, felt.intensity or 0))):
        raise BadInput("the valence or the intensity of an emotion is no number")
    return replace(felt, label=as_label(felt.label, "emotion"))


def as_label(value: Any, what: str) -> str | None:
    """A short line of text such as a topic, or None."""
    if value is None:
        return None
    is_line = isinstance(value, str) and value.strip() and not any(ord(c) < 32 for c in value)
    if not is_line or len(value) > MAX_LABEL:
        hint = f"use a line of text of at most {MAX_LABEL} characters"
        raise BadInput(f"{what} {value!r:.80} cannot be used", hint=hint)
    stripped: str = value.strip()
    return stripped


def as_tags(values: Collection[str]) -> tuple[str, ...]:
    """Tags without repetition, in order."""
    _must_be_few(values, MAX_TAGS, "tags")
    return tuple(dict.fromkeys(tag for value in values if (tag := as_label(value, "tag"))))


def as_links(links: Links) -> tuple[Link, ...]:
    """Links from a mapping of names to ids, or from a list of them."""
    if isinstance(links, Mapping):
        several = {name: [to] if isinstance(to, str) else to for name, to in links.items()}
        links = [Link(name=name, to=to) for name, many in several.items() for to in many]
    _must_be_few(links, MAX_LINKS, "links")
    for link in links:
        check_id(link.name, "link")
        check_id(link.to, "link target")
    return tuple(links)


def as_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """An object of plain JSON values, within its bound."""
    plain: dict[str, Any] = plain_json(data)
    size = len(msgspec.json.encode(plain))
    if size > MAX_DATA:
        raise BadInput(f"data has {size} bytes", hint=f"at most {MAX_DATA} are kept with a memory")
    return plain


def _must_be_few(values: Collection[Any], limit: int, what: str) -> None:
    if len(values) > limit:
        raise BadInput(f"{len(values)} {what} are too many", hint=f"hand in at most {limit}")


def plain_json(value: Any, depth: int = 0) -> Any:
    """A deep copy of plain JSON values; anything else is refused, so that nothing is pickled or lost."""
    if depth > MAX_DEPTH:
        raise BadInput(f"data is nested deeper than {MAX_DEPTH}", hint="flatten the data")
    match value:
        case str() if not value.isascii() and (half := HALF.search(value)):
            raise BadInput(f"data holds half a character at place {half.start()}", hint="send whole Unicode")
        case float() if not math.isfinite(value):
            raise BadInput(f"data holds {value}, which is no number")
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return episodes.iso(check_time(value))
        case UUID():
            return str(value)
        case Mapping():
            return {plain_json(str(key)): plain_json(item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [plain_json(item, depth + 1) for item in value]
        case _:
            raise BadInput(f"data holds a {type(value).__name__}; only JSON values can be kept")


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "text": str,
    "topic": partial(as_label, what="topic"),
    "category": partial(as_label, what="category"),
    "tags": as_tags,
    "source": str,
    "at": check_time,
    "salience": float,
    "confidence": float,
    "emotion": feeling,
    "links": as_links,
    "data": as_data,
}
