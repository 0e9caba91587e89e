"""Octavo: long-term memory for AI agents, versioned, explained and undoable."""

from octavo.domain.memory import KINDS, LAYERS, Emotion, Link, Memory, Proposal, Refusal, Turn
from octavo.domain.policy import Policy
from octavo.domain.verdicts import Consolidation, Verdict
from octavo.engine.account import Account
from octavo.engine.opening import accounts, delete_account, open  # noqa: A004  # the public name
from octavo.engine.sandbox import Sandbox
from octavo.errors import OctavoError

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
