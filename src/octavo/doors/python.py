"""The Python door: `octavo.open`, with the file formats at hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from octavo.documents import formats as _formats
from octavo.doors import models, settings
from octavo.engine import opening
from octavo.engine.account import Account

P = ParamSpec("P")


def _with_formats(open_: Callable[P, Account]) -> Callable[P, Account]:
    """Opening an account as the environment says, whose `export` and `import_` know every format."""

    @wraps(open_)
    def opened(*args: P.args, **kwargs: P.kwargs) -> Account:
        if kwargs.get("reranker") is None:
            kwargs["reranker"] = models.reranker(settings.of_models())
        account = open_(*args, **kwargs)
        account.formats = _formats
        return account

    return opened


open = _with_formats(opening.open)  # noqa: A001  # octavo.open is the public name
