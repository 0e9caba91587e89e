"""The actions of seed 002's agent tool, and which of them whose vault allows."""

from __future__ import annotations

from collections.abc import Sequence

from octavo.domain.memory import is_human
from octavo.errors import BadInput

ACTIONS = (
    *("add", "bulk_add", "remember", "search", "recall", "get", "list", "update", "delete", "stats"),
    *("bulk_delete", "compact", "rebuild_index"),
)

# What acts on the vault as a whole is a person's, unless a profile or a caller says otherwise.
_WHOLE = ("bulk_delete", "compact", "rebuild_index")


def allowed(given: Sequence[str] | None, actor: str) -> tuple[str, ...]:
    """The actions a vault's tool allows: those given, else all for a person, the small ones for others."""
    if given is None:
        return tuple(action for action in ACTIONS if is_human(actor) or action not in _WHOLE)
    for action in given:
        if action not in ACTIONS:
            raise BadInput(f"action {action!r} is unknown", hint=f"use some of {', '.join(ACTIONS)}")
    return tuple(dict.fromkeys(given))
