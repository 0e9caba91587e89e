"""Octavo: long-term memory for AI agents, versioned, explained and undoable."""

from octavo.domain.brief import Brief, LeftOut
from octavo.domain.buffer import SessionBuffer
from octavo.domain.hits import Hit, Hits
from octavo.domain.memory import (
    KINDS,
    LAYERS,
    Clash,
    Emotion,
    Link,
    Memory,
    Merge,
    Proposal,
    Refusal,
    Rejection,
    Turn,
)
from octavo.domain.mirror import Edit, Held, Synced
from octavo.domain.orders import Order
from octavo.domain.policy import Policy
from octavo.domain.review import Doubt, Pair
from octavo.domain.verdicts import Consolidation, Verdict
from octavo.doors.python import open  # noqa: A004  # the public name
from octavo.engine.account import Account
from octavo.engine.freshness import Freshness, Lag
from octavo.engine.handle import SandboxInfo
from octavo.engine.health import Report
from octavo.engine.keeper import Upkeep
from octavo.engine.opening import accounts, delete_account
from octavo.engine.reading import Revision, Snapshot, Stats
from octavo.engine.redaction import Redacted
from octavo.engine.review import Waiting
from octavo.engine.sandbox import Sandbox
from octavo.engine.versions import Diff, Session
from octavo.errors import OctavoError
from octavo.models.embedders import Embedder
from octavo.models.rerank import offline_reranker
from octavo.models.summarisers import Summariser
from octavo.storage.state_log import Commit

__version__ = "0.1.0"

__all__ = [
    "KINDS", "LAYERS", "Account", "Brief", "Clash", "Commit", "Consolidation", "Diff",
    "Doubt", "Edit", "Embedder", "Emotion", "Freshness", "Held", "Hit", "Hits", "Lag", "LeftOut", "Link",
    "Memory", "Merge", "OctavoError", "Order", "Pair", "Policy", "Proposal", "Redacted", "Refusal",
    "Rejection", "Report", "Revision", "Sandbox", "SandboxInfo", "Session", "SessionBuffer", "Snapshot",
    "Stats", "Summariser", "Synced", "Turn", "Upkeep", "Verdict", "Waiting", "__version__", "accounts",
    "delete_account", "offline_reranker", "open",
]  # fmt: skip
