"""Explanations: what is said of an assembly, an activation and a merge, in the origin's words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from octavo.domain.memory import Memory


class Assembly(Struct, frozen=True, kw_only=True):
    """One assembly as a person meets it: what it is about, its members, and whether it may lift them."""

    assembly_id: str
    name: str
    scope: str
    topics: tuple[str, ...]
    tags: tuple[str, ...]
    memory_ids: tuple[str, ...]
    members: tuple[Memory, ...] = ()
    keywords: tuple[str, ...] = ()
    emotion_profile: Mapping[str, float] = {}
    merged_from: tuple[str, ...] = ()
    formed: Mapping[str, Any] = {}
    created_at: datetime
    updated_at: datetime
    activation_count: int = 0
    last_activation: datetime | None = None
    vector_index_updated_at: datetime | None = None
    is_synchronized: bool = False
    drift_seconds: float | None = None
    drift_reason: str | None = None


class StateBefore(Struct, frozen=True, kw_only=True):
    """An assembly just before it was checked."""

    memory_count: int
    last_activation_time: datetime | None
    is_synchronized: bool
    drift_reason: str | None


class ActivationExplained(Struct, frozen=True, kw_only=True):
    """Whether an assembly is activated, and what that gives a memory."""

    assembly_id: str
    memory_id: str
    check_timestamp: datetime | None = None
    trigger_context: str | None = None
    assembly_state_before_check: StateBefore | None = None
    calculated_similarity: float | None = None
    activation_threshold: float | None = None
    passed_threshold: bool | None = None
    is_member: bool | None = None
    boost: float | None = None
    notes: str = ""


class MergeExplained(Struct, frozen=True, kw_only=True):
    """Which merge made an assembly, of what, how alike they were."""

    target_assembly_id: str
    merge_event_id: str | None = None
    merge_timestamp: datetime | None = None
    source_assembly_ids: tuple[str, ...] = ()
    source_assembly_names: tuple[str, ...] = ()
    similarity_at_merge: float | None = None
    threshold_at_merge: float | None = None
    reconciled_cleanup_status: str | None = None
    cleanup_details: Mapping[str, Any] = {}
    notes: str = ""


class MergeEvent(Struct, frozen=True, kw_only=True):
    """One merge of the log; sources end in the commit that makes the target, so it is always completed."""

    merge_event_id: str
    creation_timestamp: datetime
    source_assembly_ids: tuple[str, ...]
    target_assembly_id: str
    similarity_at_merge: float | None
    merge_threshold: float | None
    final_cleanup_status: str = "completed"
    cleanup_timestamp: datetime
    cleanup_error: str | None = None


class MergeLog(Struct, frozen=True, kw_only=True):
    """The merges there were, newest first: a view of the ledger, which forgets none."""

    reconciled_log_entries: tuple[MergeEvent, ...]
    count: int
