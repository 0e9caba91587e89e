"""The Python door: `octavo.open`, with the file formats at hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from octavo.engine import opening
from octavo.engine.account import Account
from octavo.later import Later

P = ParamSpec("P")
_formats = Later("octavo.interfaces.formats")


def _with_formats(open_: Callable[P, Account]) -> Callable[P, Account]:
    """Opening an account whose `export` and `import_` know every format; the engine itself knows none."""

    @wraps(open_)
    def opened(*args: P.args, **kwargs: P.kwargs) -> Account:
        account = open_(*args, **kwargs)
        account.formats = _formats
        return account

    return opened


open = _with_formats(opening.open)  # noqa: A001  # octavo.open is the public name
