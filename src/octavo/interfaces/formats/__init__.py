"""Files of other systems, in and out: one table of formats, each a pair of functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from octavo.engine.account import Account
from octavo.errors import BadInput
from octavo.interfaces.formats import consciousness, msp, vault


class Format(NamedTuple):
    """How a format is written and read; each returns a value that says what was done."""

    export: Callable[[Account, Path], Any]
    import_: Callable[[Account, Path], Any]


FORMATS: dict[str, Format] = {
    "msp": Format(export=msp.export, import_=msp.import_),
    "consciousness": Format(export=consciousness.export, import_=consciousness.import_),
    "vault": Format(export=vault.export, import_=vault.import_),
}


def export_account(account: Account, path: str | Path, format: str = "msp") -> Any:  # noqa: A002
    """Write an account as the files of a format."""
    return _format(format).export(account, Path(path))


def import_account(account: Account, path: str | Path, format: str = "msp") -> Any:  # noqa: A002
    """Read the files of a format into an account, through the gate."""
    return _format(format).import_(account, Path(path))


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise BadInput(f"there is no format {name!r}", hint=f"use one of {', '.join(sorted(FORMATS))}")
    return FORMATS[name]
