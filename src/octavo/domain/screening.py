"""One walk over every string of every record, so that a field added tomorrow is looked at too.

A name (an id, an actor, a scope) cannot be masked: one that holds a secret is refused, without repeating it.
Every other string is masked. A memory within a record has been through the gate and is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache, lru_cache, partial
from operator import attrgetter, is_
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import privacy
from octavo.domain.memory import Memory, Turn, transcript
from octavo.domain.patterns import pattern
from octavo.domain.policy import PrivacyPolicy
from octavo.errors import BadInput

# Fields that others refer to by what they say; a mask in one would point nowhere.
NAMES = frozenset({
    "id", "memory", "memories", "episode", "sandbox", "session", "alias", "to", "proposal",
    "into", "look", "actor", "by", "approved", "scope", "key", "fields", "commit", "policy", "salts",
})  # fmt: skip
# Ids that the engine makes hold no secret, nor do short words and numbers; nearly all are of these forms.
_OWN = pattern(
    r"(?:sandbox_)?[0-9a-z]{20}|key_[0-9a-f]{24}|[0-9a-f]{64}|[0-9a-f]{32}|[a-z_]{1,12}"
    r"|(?!pin|otp|cv[vc])[a-z]{1,7}(?:[_-]?[0-9]{1,4}){1,2}"
)
_PERSONAL = frozenset({"email", "phone"})

_JUDGED = (Memory, Turn)
_MUTE = {int, float, bool, datetime, NoneType}

R = TypeVar("R", bound=Struct)
_Reader = Callable[[Struct], tuple[Any, ...]]


def findings(record: Struct, policy: PrivacyPolicy) -> set[str]:
    """The names of all secrets in a record's strings, however deep they lie, but for its names."""
    texts: list[str] = []
    nested: list[Any] = []
    _collect(record, texts, nested)
    found: set[str] = set()
    if privacy.is_suspect("\n".join(texts), policy):  # one look at all of them clears nearly every record
        found.update(what for text in texts for what, *_ in privacy.find(text, policy))
    for data in nested:
        found |= privacy.clean_data(data, policy)[1]
    return found


def masked(record: R, policy: PrivacyPolicy) -> R:
    """The same record with every finding masked; the text of an episode follows its turns."""
    clean: R = mapped(record, partial(_masked_text, policy), partial(_masked_data, policy))
    return clean


def screened(record: R, policy: PrivacyPolicy) -> R:
    """A record as it may be written: its names proved clean, its other strings masked."""
    must_be_clean(record)
    text, data = partial(_masked_text, policy), partial(_masked_data, policy)
    own = ((name, part) for name, part in _told(record) if not isinstance(part, _JUDGED))
    changes = {name: new for name, part in own if (new := mapped(part, text, data)) is not part}
    return replace(record, **changes) if changes else record


def must_be_clean(record: Struct) -> None:
    """Raise if a name within a record holds a secret."""
    kind = type(record)
    for place, value in enumerate(_reader(kind, "names")(record)):
        if value and (type(value) is not str or not _OWN.fullmatch(value)):
            for name in value if isinstance(value, tuple) else (value,):
                check_name(name, _fields(kind)[0][place])
    for value in _reader(kind, "records")(record):
        if value:
            for part in value if isinstance(value, tuple) else (value,):
                if type(part) not in _JUDGED and isinstance(part, Struct):
                    must_be_clean(part)


def check_name(name: str, what: str) -> str:
    """Return a name, or raise if it holds a secret; the error does not repeat it."""
    if not isinstance(name, str) or _OWN.fullmatch(name):
        return name
    if _is_secret(name):
        raise BadInput(f"{what} holds a secret", hint="choose another name; this one was not kept")
    return name


@lru_cache(maxsize=64)  # an actor comes with every record
def _is_secret(name: str) -> bool:
    return any(what not in _PERSONAL for what, *_ in privacy.find(name, privacy.HARD))


@cache
def _fields(kind: type[Struct]) -> tuple[list[str], list[str], list[str]]:
    """The fields of a record that are names, those that may hold records, and those that are told.

    What can only be a number or a time tells nothing.
    """
    hints = {name: set(_types(hint)) for name, hint in get_type_hints(kind).items()}
    records = [name for name, types in hints.items() if any(issubclass(t, Struct) for t in types)]
    own = [name for name in hints if name in NAMES and name not in records]
    return own, records, [name for name, types in hints.items() if name not in own and not types <= _MUTE]


@cache
def _reader(kind: type[Struct], what: Literal["names", "records", "told", "beside"]) -> _Reader:
    """What reads some of the fields of a record at once; `beside` are those told beside its text."""
    own, records, told = _fields(kind)
    fields = {"names": own, "records": records, "told": told, "beside": [n for n in told if n != "text"]}[
        what
    ]
    if len(fields) > 1:
        return attrgetter(*fields)
    return lambda record: tuple([getattr(record, name) for name in fields])


def _types(hint: Any) -> Iterator[type]:
    """The classes that an annotation names; whatever is no class may be anything."""
    if isinstance(hint, type):
        yield hint
    elif get_origin(hint) is Literal:
        yield NoneType  # one of a few words of ours
    else:
        parts = get_args(hint)
        yield from (found for part in parts for found in _types(part)) if parts else (object,)


def strings(value: Any) -> Iterator[str]:
    """Every string within a record or nested data, keys included, but for a record's names."""
    match value:
        case str():
            yield value
        case Struct():
            yield from (found for _, part in _told(value) for found in strings(part))
        case Mapping():
            yield from (found for pair in value.items() for part in pair for found in strings(part))
        case list() | tuple():
            yield from (found for part in value for found in strings(part))


def mapped(value: Any, change: Callable[[str], str], of_data: Callable[[Any], Any] | None = None) -> Any:
    """A record or nested data with every such string as a function makes it; the same if it changes none.

    `of_data` changes nested data as a whole.
    """
    match value:
        case str():
            return change(value)
        case Struct():
            changes = {
                n: new for n, part in _told(value) if (new := mapped(part, change, of_data)) is not part
            }
            if isinstance(value, Memory) and "turns" in changes:
                changes["text"] = transcript(changes["turns"])
            return replace(value, **changes) if changes else value
        case Mapping() if of_data is not None:
            return of_data(value)
        case Mapping():
            pairs = [(mapped(key, change), mapped(item, change)) for key, item in value.items()]
            olds = [part for pair in value.items() for part in pair]
            news = [part for pair in pairs for part in pair]
            return value if all(map(is_, news, olds)) else dict(pairs)
        case list() | tuple():
            parts = [mapped(part, change, of_data) for part in value]
            return value if all(map(is_, parts, value)) else type(value)(parts)
        case _:
            return value


def _told(record: Struct) -> Iterator[tuple[str, Any]]:
    """The fields that are no names, with their values; an episode's text is told by its turns."""
    turned = isinstance(record, Memory) and record.turns
    for name in _fields(type(record))[2]:
        value = getattr(record, name)
        if value and not (turned and name == "text"):
            yield name, value


def _masked_text(policy: PrivacyPolicy, text: str) -> str:
    return privacy.masked(text, policy) if privacy.is_suspect(text, policy) else text


def _masked_data(policy: PrivacyPolicy, data: Mapping[str, Any]) -> Mapping[str, Any]:
    clean, found = privacy.clean_data(data, policy)
    return clean if found else data


def _collect(record: Any, texts: list[str], nested: list[Any]) -> None:
    kind: type[Struct] = type(record)
    is_turned = kind is Memory and record.turns
    for value in _reader(kind, "beside" if is_turned else "told")(record):
        if not value:
            continue
        if type(value) is str:  # most are, and no others are asked about twice
            texts.append(value)
            continue
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, Struct):
                _collect(part, texts, nested)
            elif isinstance(part, Mapping):
                nested.append(part)
