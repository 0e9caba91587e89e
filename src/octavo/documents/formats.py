"""Files of other systems, in and out: a table of what writes each format, and one of what reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from octavo.documents.brain import exchange
from octavo.documents.consciousness import files as consciousness
from octavo.documents.imports import chats, markdown, records
from octavo.documents.imports.guessing import guessed
from octavo.documents.imports.taking import Group, take
from octavo.documents.msp import files as msp
from octavo.documents.synthians import files as synthians
from octavo.documents.vault import lines as vault
from octavo.domain.ports import Progress
from octavo.engine.account import Account
from octavo.errors import BadFile, BadInput

# What is told of an export or import is its value; an export of a robot's episodes takes a choice of them.
CHOOSING = ("minari", "rlds")
EXPORTS: dict[str, Callable[..., Any]] = {
    "consciousness": consciousness.export,
    "minari": exchange.export_minari,
    "msp": msp.export,
    "rlds": exchange.export_rlds,
    "skills": exchange.export_skills,
    "synthians": synthians.export,
    "vault": vault.export,
}
# What other products keep comes in through one door, which tells how far it has come.
_TAKEN: dict[str, Callable[[Account, Path], list[Group]]] = {
    "chatgpt": chats.chatgpt,
    "claude": chats.claude,
    "langgraph": records.langgraph,
    "markdown": markdown.notes,
    "mem0": records.mem0,
}
IMPORTS: dict[str, Callable[..., Any]] = {
    **_TAKEN,
    "consciousness": consciousness.import_,
    "msp": msp.import_,
    "rlds": exchange.import_rlds,
    "skills": exchange.import_skills,
    "synthians": synthians.import_,
    "vault": vault.import_,
}


def export_account(account: Account, path: str | Path, format: str = "msp", **chosen: Any) -> Any:  # noqa: A002
    """Write an account, or what is chosen of it, as the files of a format."""
    export = _of(EXPORTS, format, "is only read")
    if chosen and format not in CHOOSING:
        raise BadInput(f"{', '.join(chosen)}: the format {format!r} takes no choice", hint="leave it out")
    return export(account, Path(path), **chosen)


def import_account(
    account: Account,
    path: str | Path,
    format: str | None = None,  # noqa: A002
    progress: Progress | None = None,
) -> Any:
    """Read the files of a format into an account, through the gate; regular files and folders only.

    Without a format it is the one that they have the shape of.
    """
    place = Path(path)
    if place.exists() and not place.is_file() and not place.is_dir():
        raise BadFile(f"{place} is neither a file nor a folder", hint="name what an export wrote")
    if format is None:
        format = guessed(place, sorted(IMPORTS))  # noqa: A001
    read = _of(IMPORTS, format, "is only written")
    came = read(account, place)
    return take(account, format, came, progress) if format in _TAKEN else came


def _of(table: Mapping[str, Callable[..., Any]], name: str, otherwise: str) -> Callable[..., Any]:
    if name not in table:
        is_known = name in (*EXPORTS, *IMPORTS)
        what = f"the format {name!r} {otherwise}" if is_known else f"there is no format {name!r}"
        raise BadInput(what, hint=f"use one of {', '.join(sorted(table))}")
    return table[name]
