"""What an import or an export of any format did: one pair of values for every document."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


class Note(Struct, frozen=True, kw_only=True):
    """Something that is not as the documents have it: where it stands, and why."""

    place: str
    reason: str


class Imported(Struct, frozen=True, kw_only=True):
    """What an import did; `changed`, `left_out` and `notes` are everything that is not as the files have it.

    `counts` says what came in by kind (`episode`, `fact`, `session`, `sandbox` …), `revised` how many
    memories got a new revision. `changed` names what the gate masked, `left_out` what stayed outside,
    `files` what nobody knows and is kept as it is.
    """

    format: str
    version: int
    account: str
    counts: Mapping[str, int] = field(default_factory=dict)
    revised: int = 0
    unchanged: int = 0
    changed: tuple[Note, ...] = ()
    left_out: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()
    files: tuple[str, ...] = ()


class Exported(Struct, frozen=True, kw_only=True):
    """What an export wrote; `left_out` counts what the format has no place for, by kind or scope."""

    format: str
    version: int
    account: str
    counts: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()
