"""The account's rules and numbers: one row a kind, defaults from the documents, every one settable."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from octavo.domain.compression import CompressionPolicy
from octavo.domain.memory import Kind

Rule = Literal["append_all", "validate_and_merge", "latest_wins", "careful_merge", "made"]
Treatment = Literal["allow", "mask", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindPolicy:
    """How the gate and the rules treat one kind.

    `min_confidence` must be exceeded; `decay` is the factor a day (1.0: none); None means no limit.
    """

    rule: Rule
    decay: float = 1.0
    max_length: int | None = 1200
    capacity: int | None = None
    min_confidence: float | None = None
    noise: bool = True
    secrets: Treatment = "refuse"
    duplicates: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KindPolicies:
    """The eight rows."""

    episode: KindPolicy = KindPolicy(
        rule="append_all", decay=0.9, max_length=1_000_000, noise=False, secrets="mask"
    )
    fact: KindPolicy = KindPolicy(rule="validate_and_merge", decay=0.99, min_confidence=0.7, duplicates=True)
    register: KindPolicy = KindPolicy(rule="latest_wins", duplicates=True)
    canon: KindPolicy = KindPolicy(rule="careful_merge", min_confidence=0.7, duplicates=True)
    skill: KindPolicy = KindPolicy(rule="latest_wins", decay=0.999, max_length=None)
    core: KindPolicy = KindPolicy(rule="made", decay=0.99, max_length=None, noise=False, secrets="mask")
    sphere: KindPolicy = KindPolicy(rule="made", decay=0.999, max_length=None, noise=False, secrets="mask")
    assembly: KindPolicy = KindPolicy(rule="made", decay=0.99, max_length=None, noise=False, secrets="mask")

    def of(self, kind: Kind) -> KindPolicy:
        """The row of a kind."""
        row: KindPolicy = getattr(self, kind)
        return row


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxPolicy:
    """Limits of one conversation; the documents' ones are off unless asked for.

    `max_episodes` 30 and `write_levels` true are seed 000's session limit and RI write levels.
    """

    max_episodes: int | None = None
    write_levels: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CanonPolicy:
    """Whether a sure enough agent may write canon that clashes with nothing (None: never)."""

    pass_confidence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePolicy:
    """Numbers and words of the gate's checks."""

    token_overlap: float = 0.60
    sequence_ratio: float = 0.70
    signals: tuple[str, ...] = (
        "tick marker",
        "runtime snapshot",
        "check-in",
        "heartbeat",
        "burst tick",
        "no changes",
        "nothing to report",
        "status unchanged",
        "routine scan",
        "ephemeral",
    )
    refusals_kept: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyPolicy:
    """What happens to personal data that is not a secret."""

    phone: Treatment = "allow"
    email: Treatment = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPolicy:
    """How often a commit tries again, and how long it waits in line before it goes on without the lock."""

    attempts: int = 50
    wait_seconds: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPolicy:
    """After how many days a proposal lapses and a register counts as stale (None: never)."""

    expire_days: float | None = 90.0
    stale_days: float | None = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexPolicy:
    """How long vectors count as fresh without having been verified (None: for ever)."""

    max_allowed_drift_seconds: float | None = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything an account's owner can set."""

    kinds: KindPolicies = field(default_factory=KindPolicies)
    sandbox: SandboxPolicy = field(default_factory=SandboxPolicy)
    canon: CanonPolicy = field(default_factory=CanonPolicy)
    gate: GatePolicy = field(default_factory=GatePolicy)
    privacy: PrivacyPolicy = field(default_factory=PrivacyPolicy)
    review: ReviewPolicy = field(default_factory=ReviewPolicy)
    compression: CompressionPolicy = field(default_factory=CompressionPolicy)
    commit: CommitPolicy = field(default_factory=CommitPolicy)
    index: IndexPolicy = field(default_factory=IndexPolicy)
