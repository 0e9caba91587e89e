"""What an operation is: an annotated function or method, and what every door reads from its signature."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Meta, Struct
from msgspec.structs import replace

from octavo.documents.brain import FilesystemMemory
from octavo.documents.synthians import MemoryCore
from octavo.domain.ports import Place
from octavo.doors.settings import Settings
from octavo.engine.account import Account
from octavo.engine.fields import OPTION, Feeling, Links
from octavo.engine.reading import Reader, Snapshot
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput

Progress = Callable[[int, int], None]

TABLE = tomllib.loads(Path(__file__).with_name("table.toml").read_text("utf-8"))
LETTERS: dict[str, str] = TABLE["_letters"]
EXISTS = Meta(extra={"exists": True})  # a file or folder that must be there before anything is opened
# Of what Python takes in several forms, the one that a door hands in.
_HANDED_IN: dict[Any, Any] = {
    Sequence[str]: list[str],
    str | Sequence[str]: list[str],
    str | Sequence[str] | Mapping[str, float]: list[str],
    Mapping[str, Any]: dict[str, Any],
    Iterable[Mapping[str, Any]]: list[dict[str, Any]],
    Links: dict[str, list[str]],
    Union[get_args(Feeling)[:-1]]: str,  # noqa: UP007  # without None
    str | Path: Path,
    str | Path | Place: str,
}
# What of an account has the methods of another class.
PARTS: dict[str, Any] = {
    "Explainer": attrgetter("explained"),
    "FilesystemMemory": FilesystemMemory,
    "MemoryCore": MemoryCore,
}
_READERS = (Account, Snapshot, Sandbox)


class Parameter(Struct, frozen=True, kw_only=True):
    """One parameter of an operation: `type` is without None."""

    name: str
    summary: str
    type: Any = str
    default: Any = None
    is_required: bool = False
    is_positional: bool = False
    least: float | None = None
    most: float | None = None
    must_exist: bool = False

    @property
    def short(self) -> str | None:
        """Its option of one letter, if it has one."""
        return None if self.is_positional else LETTERS.get(self.name)

    @property
    def is_many(self) -> bool:
        """Whether it may be said several times."""
        return self.type in (list[str], dict[str, list[str]]) or (self.choices != () and _is_list(self.type))

    @property
    def choices(self) -> tuple[str, ...]:
        """What it may be, if only some values will do."""
        one = get_args(self.type)[0] if _is_list(self.type) else self.type
        return get_args(one) if get_origin(one) is Literal else ()


AT = Parameter(name="at", type=int | datetime, summary="Read an older version: its number, or a time.")
SANDBOX = Parameter(name="sandbox", summary="Do it inside this open sandbox.")
IN_SANDBOX = Parameter(
    name="sandbox",
    summary="The sandbox's id, or its name if only one has it.",
    is_required=True,
    is_positional=True,
)
WORDS = Parameter(name="words", type=bool, default=False, summary="Use words alone; no model is loaded.")


class Operation(Struct, frozen=True, kw_only=True):
    """One row of the table.

    Only one that `writes` may change anything; one that `indexes` may bring up to date what is derived, and
    does without where it may not write; one that `begins` may make the first account of an empty folder.
    A `local` one takes files of this machine: no door but the command line and Python has it. A `human` one
    is for people only; the engine enforces it. `result` names what a bare value or list is. `asks` is what a
    person is asked before it is done. A `long` one shows that it is at work, one with a `span` tells
    OpenTelemetry. One that is `like` a method takes what that is given, too.
    """

    name: str
    function: Callable[..., Any]
    section: str
    example: str
    writes: bool = False
    indexes: bool = False
    begins: bool = False
    local: bool = False
    human: bool = False
    long: bool = False
    asks: str | None = None
    span: str | None = None
    result: str | None = None
    like: Callable[..., Any] | None = None

    def __call__(self, subject: Any, *args: Any, **values: Any) -> Any:
        """Do it on what is already open; what has a result and gives none gives what it was told first."""
        act: Callable[..., Any] = partial(self.function, subject)
        if _is_method(self.function):
            part = PARTS.get(self.function.__qualname__.partition(".")[0])
            act = getattr(part(subject) if part else subject, self.function.__name__)
        taken = inspect.signature(self.like or act).parameters
        names = {name.rstrip("_"): name for name in taken}
        if self.like is None and (strange := values.keys() - names.keys() - {"progress"}):
            hint = f"leave out --{min(strange)} or --sandbox"
            raise BadInput(f"{min(strange)} has no use inside a sandbox", hint=hint)
        told = {names.get(name, name): value for name, value in values.items()}
        own = inspect.signature(act).parameters.values()
        rest = (told.pop(one.name, ()) for one in own if one.kind is one.VAR_POSITIONAL)
        value = act(*args, *chain.from_iterable(rest), **told)
        if value is None and self.result:
            return next(iter(values.values()), getattr(subject, "id", None))
        return value

    @property
    def summary(self) -> str:
        """What it does, in a sentence; what it returns is shown."""
        return re.sub(
            r"[;.] returns .*", ".", (inspect.getdoc(self.function) or "").partition("\n")[0], flags=re.I
        )

    @property
    def subjects(self) -> tuple[type, ...]:
        """What it can be asked of, from the type of its first parameter."""
        return _read(self.function)[0]

    @property
    def takes_progress(self) -> bool:
        """Whether it tells how far it has come."""
        return _read(self.like or self.function)[2]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it is given: what its subject needs, its own, and how the account is opened for it."""
        subjects, own, _ = _read(self.function)
        own = own if self.like is None else (*_read(self.like)[1], *own)
        before = (IN_SANDBOX,) if subjects == (Sandbox,) else ()
        after = [WORDS] if self.indexes else []
        after += [AT] if Snapshot in subjects else []
        after += [SANDBOX] if Sandbox in subjects and not before else []
        return (*before, *own, *after)


def operation(example: str, **marks: Any) -> Callable[[Callable[..., Any]], Operation]:
    """Make an operation of a function, with the marks of an Operation; its section is its module's name."""

    def made(function: Callable[..., Any]) -> Operation:
        section, name = function.__module__.rpartition(".")[2], example.split()[1].replace("-", "_")
        return Operation(name=name, function=function, example=example, section=section, **marks)

    return made


@cache
def _read(function: Callable[..., Any]) -> tuple[tuple[type, ...], tuple[Parameter, ...], bool]:
    """The subjects of a function or method, its parameters, and whether it reports progress."""
    hints = get_type_hints(function, include_extras=True)
    first, *others = inspect.signature(function).parameters.values()
    is_ours = _is_method(function) and function.__module__.startswith("octavo.engine.")
    subjects = (Account,) if _is_method(function) else _options(hints[first.name])
    if subjects == (Reader,):
        subjects = _READERS
    elif is_ours and function.__qualname__.partition(".")[0] not in PARTS:
        subjects = tuple(kind for kind in _READERS if hasattr(kind, function.__name__))
    assert subjects == (Settings,) or set(subjects) <= set(_READERS), function.__name__
    told = (_given(one, hints.get(one.name, one.annotation)) for one in others)
    given = [p for some in told for p in some if p.summary or not is_ours]
    return subjects, tuple(given), any(one.name == "progress" for one in others)


def _is_method(function: Callable[..., Any]) -> bool:
    return next(iter(inspect.signature(function).parameters)) == "self"


def _given(one: inspect.Parameter, hint: Any) -> Iterator[Parameter]:
    """The parameters that one of a signature stands for."""
    if one.kind is inspect.Parameter.VAR_POSITIONAL:
        yield replace(_parameter(one.name, hint, is_positional=True), type=list[str])
    elif one.name != "progress" and one.kind is not inspect.Parameter.VAR_KEYWORD:
        is_positional = one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        yield _parameter(one.name.rstrip("_"), hint, one.default, is_positional=is_positional)


def _parameter(name: str, hint: Any, default: Any = None, *, is_positional: bool = False) -> Parameter:
    type_, notes = _unwrapped(hint)
    type_ = _HANDED_IN.get(type_, type_)
    bounds = [note for note in notes if isinstance(note, Meta)]
    extra = {name: value for note in bounds for name, value in (note.extra or {}).items()}
    if "one_of" in extra:
        name_of: Any = Literal[extra["one_of"]]
        type_ = list[name_of] if _is_list(type_) else name_of
    is_required = default is inspect.Parameter.empty
    return Parameter(
        name=name,
        summary=next((note for note in notes if isinstance(note, str) and note != OPTION), ""),
        type=type_,
        default=None if is_required or default is ... else default,
        is_required=is_required,
        is_positional=is_positional and OPTION not in notes,
        least=next((note.ge for note in bounds if note.ge is not None), None),
        most=next((note.le for note in bounds if note.le is not None), None),
        must_exist="exists" in extra,
    )


def _unwrapped(hint: Any) -> tuple[Any, list[Any]]:
    """A type without None and annotations, and the annotations."""
    notes: list[Any] = []
    while True:
        options = _options(hint)
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            notes += more
        elif NoneType in options:
            rest = tuple(option for option in options if option is not NoneType)
            hint = Union[rest]  # noqa: UP007  # of types known only here
        else:
            return hint, notes


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _is_list(type_: Any) -> bool:
    return get_origin(type_) is list
