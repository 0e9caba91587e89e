"""Files of other systems, in and out: one table of formats, each a pair of functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from octavo.documents import skills
from octavo.documents.brain import minari_set, rlds
from octavo.documents.consciousness import files as consciousness
from octavo.documents.imports import chats, langgraph_rows, markdown, mem0
from octavo.documents.msp import files as msp
from octavo.documents.synthians import files as synthians
from octavo.documents.vault import files as vault
from octavo.engine.account import Account
from octavo.errors import BadFile, BadInput
from octavo.storage.projections import Progress

Import = Callable[[Account, Path, Progress | None], Any]


class Format(NamedTuple):
    """How a format is written and read; each returns a value that says what was done. Some go one way only.

    What an export chooses from (`Filter` of an episode's success, denials, reward and tags) is its own.
    """

    export: Callable[..., Any] | None
    import_: Import | None


def _silent(import_: Callable[[Account, Path], Any]) -> Import:
    """An import that tells no progress."""
    return lambda account, path, progress: import_(account, path)


CHOOSING = ("minari", "rlds")
FORMATS: dict[str, Format] = {
    "chatgpt": Format(export=None, import_=chats.import_chatgpt),
    "claude": Format(export=None, import_=chats.import_claude),
    "consciousness": Format(export=consciousness.export, import_=_silent(consciousness.import_)),
    "langgraph": Format(export=None, import_=langgraph_rows.import_),
    "markdown": Format(export=None, import_=markdown.import_),
    "mem0": Format(export=None, import_=mem0.import_),
    "msp": Format(export=msp.export, import_=_silent(msp.import_)),
    "minari": Format(export=minari_set.export, import_=None),
    "rlds": Format(export=rlds.export, import_=_silent(rlds.import_)),
    "skills": Format(export=skills.export, import_=_silent(skills.import_)),
    "synthians": Format(export=synthians.export, import_=_silent(synthians.import_)),
    "vault": Format(export=vault.export, import_=_silent(vault.import_)),
}


def export_account(account: Account, path: str | Path, format: str = "msp", **chosen: Any) -> Any:  # noqa: A002
    """Write an account, or what is chosen of it, as the files of a format."""
    export = _format(format).export
    if export is None:
        written = ", ".join(name for name, one in FORMATS.items() if one.export is not None)
        raise BadInput(f"the format {format!r} is only read", hint=f"export one of {written}")
    if chosen and format not in CHOOSING:
        raise BadInput(f"{', '.join(chosen)}: the format {format!r} takes no choice", hint="leave it out")
    return export(account, Path(path), **chosen)


def import_account(
    account: Account,
    path: str | Path,
    format: str = "msp",  # noqa: A002
    progress: Progress | None = None,
) -> Any:
    """Read the files of a format into an account, through the gate; regular files and folders only."""
    reader, place = _format(format), Path(path)
    if place.exists() and not place.is_file() and not place.is_dir():
        raise BadFile(f"{place} is neither a file nor a folder", hint="name what an export wrote")
    if reader.import_ is None:
        raise BadInput(f"the format {format!r} is only written", hint="import rlds, which holds the same")
    return reader.import_(account, place, progress)


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise BadInput(f"there is no format {name!r}", hint=f"use one of {', '.join(sorted(FORMATS))}")
    return FORMATS[name]
