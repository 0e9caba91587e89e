"""The account's rules and numbers: one row a kind, defaults from the documents, every one settable."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from octavo.domain.compression import CompressionPolicy
from octavo.domain.memory import Kind

Rule = Literal["append_all", "validate_and_merge", "latest_wins", "careful_merge", "made"]
Treatment = Literal["allow", "mask", "refuse"]


class KindPolicy(Struct, frozen=True, kw_only=True):
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


class KindPolicies(Struct, frozen=True, kw_only=True):
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


class SandboxPolicy(Struct, frozen=True, kw_only=True):
    """Limits of one conversation; the documents' ones are off unless asked for.

    `max_episodes` 30 and `write_levels` true are seed 000's session limit and RI write levels.
    """

    max_episodes: int | None = None
    write_levels: bool = False


class CanonPolicy(Struct, frozen=True, kw_only=True):
    """Whether a sure enough agent may write canon that clashes with nothing (None: never)."""

    pass_confidence: float | None = None


class GatePolicy(Struct, frozen=True, kw_only=True):
    """Numbers and words of the gate's checks."""

    token_overlap: float = 0.60
    sequence_ratio: float = 0.70
    signals: tuple[str, ...] = (
        "tick marker", "runtime snapshot", "check-in", "heartbeat", "burst tick", "no changes",
        "nothing to report", "status unchanged", "routine scan", "ephemeral",
    )  # fmt: skip
    refusals_kept: int = 1000


class PrivacyPolicy(Struct, frozen=True, kw_only=True):
    """What happens to personal data that is not a secret."""

    phone: Treatment = "allow"
    email: Treatment = "allow"


class CommitPolicy(Struct, frozen=True, kw_only=True):
    """How often a commit tries again, and how long it waits in line before it goes on without the lock."""

    attempts: int = 50
    wait_seconds: float = 10.0


class ReviewPolicy(Struct, frozen=True, kw_only=True):
    """After how many days a proposal lapses and a register counts as stale (None: never)."""

    expire_days: float | None = 90.0
    stale_days: float | None = 90.0


class IndexPolicy(Struct, frozen=True, kw_only=True):
    """How long vectors count as fresh without being verified (None: for ever); whether recall looks twice."""

    max_allowed_drift_seconds: float | None = 3600.0
    rerank: bool = True


class RetentionPolicy(Struct, frozen=True, kw_only=True):
    """How old, how many and how large groups of episodes may get; nothing goes unless `mode` is on."""

    mode: Literal["off", "on"] = "off"
    conversations: dict[str, float] = field(default_factory=lambda: {"max_age_days": 30.0, "max_files": 100})
    events: dict[str, float] = field(default_factory=lambda: {"max_age_days": 7.0, "max_size_mb": 100.0})
    rlds_episodes: dict[str, float] = field(default_factory=lambda: {"max_age_days": 90.0, "max_files": 1000})
    versions_shown: int = 10


class PatternPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When something seen again counts: the seed's look-back and thresholds."""

    days: float = 7.0
    min_count: int = 3
    min_sources: int = 2
    min_denials: int = 2
    min_outcomes: int = 2
    consistency: float = 0.9
    denial_confidence: float = 0.9
    stable_days: float = 30.0
    min_uses: int = 3


class MirrorPolicy(Struct, frozen=True, kw_only=True):
    """When the files of a mirror follow: when asked, at upkeep too, or after every commit."""

    mode: Literal["off", "manual", "after_commit"] = "off"


class AssemblyPolicy(Struct, frozen=True, kw_only=True):
    """When memories are grouped, how alike they must be, and how far a group that fits lifts its members."""

    mode: Literal["background", "immediate", "manual", "off"] = "background"
    likeness: float = 0.35
    max_per_memory: int = 3
    max_members: int = 64
    max_assemblies: int = 5000
    merging: Literal["auto", "propose", "off"] = "auto"
    merge_likeness: float = 0.85
    merges_per_pass: int = 10
    activation: float = 0.5
    boost: float = 0.015
    boost_mode: Literal["linear", "sigmoid", "multiplicative"] = "linear"
    explain: bool = True


class EmotionPolicy(Struct, frozen=True, kw_only=True):
    """Whether a recall with a mood leaves out what would weigh on whoever is in it."""

    gate: bool = False


class Policy(Struct, frozen=True, kw_only=True):
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
    retention: RetentionPolicy = field(default_factory=RetentionPolicy)
    patterns: PatternPolicy = field(default_factory=PatternPolicy)
    mirror: MirrorPolicy = field(default_factory=MirrorPolicy)
    assemblies: AssemblyPolicy = field(default_factory=AssemblyPolicy)
    emotion: EmotionPolicy = field(default_factory=EmotionPolicy)
