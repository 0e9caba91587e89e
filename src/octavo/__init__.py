"""Octavo: long-term memory for AI agents, versioned, explained and undoable."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from octavo.errors import OctavoError

if TYPE_CHECKING:
    from octavo.domain.memory import KINDS, LAYERS, Emotion, Link, Memory, Proposal, Refusal, Turn
    from octavo.domain.policy import Policy
    from octavo.domain.verdicts import Consolidation, Verdict
    from octavo.engine.account import Account
    from octavo.engine.opening import accounts, delete_account
    from octavo.engine.sandbox import Sandbox
    from octavo.interfaces.python import open  # noqa: A004  # the public name

__all__ = [
    "KINDS",
    "LAYERS",
    "Account",
    "Consolidation",
    "Emotion",
    "Link",
    "Memory",
    "OctavoError",
    "Policy",
    "Proposal",
    "Refusal",
    "Sandbox",
    "Turn",
    "Verdict",
    "accounts",
    "delete_account",
    "open",
]

# A name loads its module when it is first used: every import of any room of this package runs this
# file, and `octavo --help` and shell completion must not wait for the engine.
_HOMES = {
    "domain.memory": ("KINDS", "LAYERS", "Emotion", "Link", "Memory", "Proposal", "Refusal", "Turn"),
    "domain.policy": ("Policy",),
    "domain.verdicts": ("Consolidation", "Verdict"),
    "engine.account": ("Account",),
    "engine.opening": ("accounts", "delete_account"),
    "interfaces.python": ("open",),
    "engine.sandbox": ("Sandbox",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = getattr(import_module(f"octavo.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'octavo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
