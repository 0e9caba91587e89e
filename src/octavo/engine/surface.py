"""The public face of a handle: what does not fit a signature is bad input, said in the signature's words.

Names, types, choices, bounds, whole Unicode, finite numbers and a length for every text are proved here, once
for all methods, from the annotations that every door reads too; what leaves as an error repeats no secret.
"""

from __future__ import annotations

import inspect
import math
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import wraps
from numbers import Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union

import msgspec
from msgspec import Meta

from octavo.domain import privacy
from octavo.errors import BadInput, BadVector, OctavoError

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
Fits = Callable[[Any], bool]

MAX_TEXT = 4_000_000
MAX_NUMBER = 2**53
MAX_DEPTH = 64
_MOST_NAME, _MOST_PATH = 255, 4000  # what file systems take

HALF = re.compile("[\ud800-\udfff]")
_PLAIN = (str, int, float, bool, datetime, NoneType, Path)


def public(cls: C) -> C:
    """Let every public method of a class answer an argument that does not fit with `BadInput`."""
    for name, method in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if inspect.isfunction(method):
            setattr(cls, name, fitted(method))
        elif isinstance(method, classmethod | staticmethod):
            setattr(cls, name, type(method)(fitted(method.__func__)))
    return cls


def fitted(method: F) -> F:
    """A function that proves its arguments before it runs, and whose errors repeat no secret."""
    signature = _spelt_out(method)
    prove = _prover(method, signature)

    @wraps(method)
    def call(*args: Any, **named: Any) -> Any:
        try:
            prove(args, named)
            return method(*args, **named)
        except OctavoError as error:
            raise _without_secrets(error)  # noqa: B904  # it is the same error
        except TypeError as error:
            trace = error.__traceback__
            if trace is None or trace.tb_next is not None:
                raise  # it comes from inside, not from how the method was called
            said = str(error).partition("() ")[2] or str(error)
            raise _without_secrets(_misfit(method, signature, said)) from None

    call.__signature__ = signature  # type: ignore[attr-defined]  # what inspect and help read
    return typing.cast(F, call)


def _spelt_out(method: Callable[..., Any]) -> inspect.Signature:
    """A method's signature, with the keys of its `**fields: Unpack[...]` as parameters of their own."""
    signature = inspect.signature(method)
    parameters: list[inspect.Parameter] = []
    for p in signature.parameters.values():
        if p.kind is not p.VAR_KEYWORD or not str(p.annotation).startswith("Unpack["):
            parameters.append(p)
            continue
        (fields,) = typing.get_args(typing.get_type_hints(method)[p.name])
        for name, hint in typing.get_type_hints(fields, include_extras=True).items():
            parameters.append(p.replace(name=name, kind=p.KEYWORD_ONLY, default=..., annotation=hint))
    return signature.replace(parameters=parameters)


def _prover(
    method: Callable[..., Any], signature: inspect.Signature
) -> Callable[[tuple[Any, ...], Mapping[str, Any]], None]:
    """What proves the arguments of a call: those by place, then those by name."""
    parameters = signature.parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)]
    rest = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    is_open = any(p.kind is p.VAR_KEYWORD for p in parameters)
    first = 1 if names[:1] in (["self"], ["cls"]) else 0
    del names[:first]
    fits: dict[str, tuple[Fits, str]] = {}
    texts: dict[str, int] = {}  # how long a plain text may be, of those that it fits

    def prove(args: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        if not fits:  # at the first call, when every name of an annotation can be resolved
            hints = typing.get_type_hints(method, include_extras=True)
            for p in parameters:
                hint = hints.get(p.name, Any if isinstance(p.annotation, str) else p.annotation)
                fit, spelt = _fit(hint), ", ".join((_spelt(hint), *map(_told, _notes(hint))))
                fits[p.name] = fit, spelt
                if fit("a") and fit("b") and "Path" not in spelt:
                    texts[p.name] = min([MAX_TEXT, *(n.max_length for n in _notes(hint) if n.max_length)])
        by_place = args[first:]
        places = [*names, *rest * (len(by_place) - len(names))] if rest else names
        for name, value in (*zip(places, by_place), *named.items()):  # noqa: B905 - the others come by name
            is_text = type(value) is str and 0 < len(value) <= texts.get(name, 0)  # most are, and whole
            if is_text and not value.isspace() and (value.isascii() or not HALF.search(value)):
                continue
            if name in fits:
                _must_fit(method.__name__, name, value, *fits[name])
            elif name in named and not is_open:
                raise _misfit(method, signature, f"got an unexpected keyword argument {name!r}")

    return prove


def _misfit(method: Callable[..., Any], signature: inspect.Signature, said: str) -> BadInput:
    taken = [name for name in signature.parameters if name != "self"]
    return BadInput(f"{method.__name__}: {said}", hint=f"it takes {', '.join(taken)}")


def _must_fit(method: str, name: str, value: Any, fits: Fits, spelt: str) -> None:
    if not fits(value):
        is_named = "one of" in spelt or (isinstance(value, str) and "str" in spelt)
        is_plain = is_named or isinstance(value, int | float | None)
        what = f"{value!r:.80}" if is_plain else type(value).__name__
        error = BadVector if name == "vector" else BadInput
        raise error(f"{method}: {name} is {what}", hint=f"{name} is {spelt}")
    if not isinstance(value, int | float | None):
        _must_be_whole(value, name, 0)
        if "Path" in spelt and isinstance(value, str | Path):
            _must_name_a_place(value, name)


def _must_be_whole(value: Any, name: str, depth: int) -> None:
    """Raise if a text cannot be written or is without bound, or a number is no number, however deep."""
    match value:
        case str():
            if len(value) > MAX_TEXT:
                raise BadInput(f"{name} has {len(value)} characters", hint=f"at most {MAX_TEXT} are taken")
            if half := HALF.search(value):
                detail = f"{name} holds half a character at place {half.start()}"
                raise BadInput(detail, hint="send whole Unicode")
        case float() if not math.isfinite(value):
            raise BadInput(f"{name} holds {value}, which is no number")
        case Mapping() | list() | tuple():
            if depth > MAX_DEPTH:
                raise BadInput(f"{name} is nested deeper than {MAX_DEPTH}", hint="flatten it")
            parts = [*value, *value.values()] if isinstance(value, Mapping) else value
            for part in parts:
                is_sound = math.isfinite(part) if type(part) is float else part is None or type(part) is int
                if not is_sound:  # a vector has hundreds of numbers
                    _must_be_whole(part, name, depth + 1)


def _must_name_a_place(value: str | Path, name: str) -> None:
    parts = [part.encode(errors="surrogatepass") for part in str(value).split("/")]
    if any(b"\0" in part or len(part) > _MOST_NAME for part in parts) or len(str(value)) > _MOST_PATH:
        raise BadInput(
            f"{name} can be no path", hint=f"each name in it has at most {_MOST_NAME} bytes, no NUL"
        )


def _fit(hint: Any) -> Fits:
    """What tells whether a value fits an annotation; what cannot be told from it fits."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        fit, within = _fit(inner[0]), [_within(note) for note in inner if isinstance(note, Meta)]
        return lambda value: fit(value) and (value is None or all(one(value) for one in within))
    if origin in (Union, UnionType):
        some = [_fit(one) for one in inner]
        return lambda value: any(fits(value) for fits in some)
    if origin is Literal:
        return lambda value: value in inner
    if origin is tuple:
        parts = [_fit(one) for one in inner]
        return lambda value: (
            isinstance(value, list | tuple)
            and len(value) == len(parts)
            and all(fits(part) for fits, part in zip(parts, value, strict=True))
        )
    if origin in (Sequence, Iterable, list, frozenset):
        each = _fit(inner[0])
        lazy = origin is Iterable  # a generator is taken once, so nothing is proved of what it gives
        return lambda value: (
            isinstance(value, Iterable)
            and not isinstance(value, str | bytes | Mapping)
            and (all(map(each, value)) if hasattr(value, "__len__") else lazy)
        )
    if origin in (Mapping, dict):
        key, item = map(_fit, inner)
        return lambda value: (
            isinstance(value, Mapping)
            and all(map(key, value))
            and (inner[1] is Any or all(map(item, value.values())))
        )
    if origin is not None:  # Callable and the like
        return callable if origin is Callable else lambda value: True
    return _single(hint)


def _within(note: Meta) -> Fits:
    """What tells whether names are among some, a text is short and not empty, a number lies in its bounds."""
    if names := (note.extra or {}).get("one_of"):
        return lambda value: value in names if isinstance(value, str) else set(names).issuperset(value)
    if (longest := note.max_length) is not None:
        return lambda value: len(value) <= longest and not (value == "" or value.isspace())
    least, most = note.ge, note.le
    return lambda value: (least is None or value >= least) and (most is None or value <= most)


def _single(hint: Any) -> Fits:
    if hint is float:
        # Numpy's numbers, too; a vector has hundreds, nearly always plain ones.
        return lambda value: (type(value) is float and abs(value) <= MAX_NUMBER) or _is_number(value, Real)
    if hint is int:
        return lambda value: _is_number(value, int)
    if hint is None or hint in _PLAIN:
        plain = NoneType if hint is None else hint
        return lambda value: isinstance(value, plain)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return lambda value: isinstance(value, hint)
    if getattr(hint, "_is_protocol", False):
        told = {name for one in hint.__mro__ for name in (*vars(one), *inspect.get_annotations(one))}
        names = [name for name in told if not name.startswith("_")]
        return lambda value: callable(value) if not names else all(hasattr(value, name) for name in names)
    return lambda value: True


def _is_number(value: Any, kind: Any) -> bool:
    """Whether it is a number of a kind, neither NaN nor without bound."""
    return isinstance(value, kind) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER


def _spelt(hint: Any) -> str:
    """A type as people write it, without the modules of its names."""
    inner = typing.get_args(hint)
    if typing.get_origin(hint) is Annotated:
        return _spelt(inner[0])
    if typing.get_origin(hint) in (Union, UnionType):
        return " | ".join("None" if one is NoneType else _spelt(one) for one in inner)
    spelt = hint.__name__ if isinstance(hint, type) else str(hint)
    spelt = re.sub(r"Literal\[([^][]*)\]", r"one of \1", spelt)
    return re.sub(r"Optional\[([^][]*)\]", r"\1 | None", re.sub(r"\b[a-z_]+\.(?=\w)", "", spelt))


def _notes(hint: Any) -> Iterator[Meta]:
    """What an annotation says of a value besides its type."""
    if isinstance(hint, Meta):
        yield hint
    elif typing.get_origin(hint) in (Annotated, Union, UnionType):
        yield from (note for one in typing.get_args(hint) for note in _notes(one))


def _told(note: Meta) -> str:
    if names := (note.extra or {}).get("one_of"):
        return f"one of {', '.join(names)}"
    if note.max_length is not None:
        return f"not empty and at most {note.max_length} characters"
    return f"at least {note.ge:g}" if note.le is None else f"between {note.ge:g} and {note.le:g}"


def _without_secrets(error: OctavoError) -> OctavoError:
    """An error that repeats what was handed in repeats no secret, nor does what it was raised from."""
    message, advice = map(privacy.tellable, (error.message, error.advice))
    if (message, advice) != (error.message, error.advice):
        error.message, error.advice, error.args = message, advice, (message,)
        error.__cause__, error.__context__, error.__suppress_context__ = None, None, True
    return error
