"""Which memories to list, as a value, and the test it stands for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from octavo.domain.memory import Memory
from octavo.errors import BadInput


class Filter(Struct, frozen=True, kw_only=True):
    """A condition for each field that is not None; `after` continues behind a place in the order."""

    kinds: tuple[str, ...] | None = None
    layers: tuple[str, ...] | None = None
    scopes: tuple[str, ...] | None = None
    topic: str | None = None
    category: str | None = None
    tags: tuple[str, ...] | None = None
    sandbox: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None
    after: tuple[datetime, str] | None = None  # when it happened, and the id
    newest: bool = False

    @property
    def is_narrow(self) -> bool:
        """Whether a search is restricted by anything but the scopes."""
        fields = (self.kinds, self.layers, self.category, self.tags, self.sandbox, self.since, self.until)
        return any(field is not None for field in fields)


def passes(memory: Memory, wanted: Filter) -> bool:
    """Whether a live memory fits the filter; `limit` and `after` are the lister's business."""
    return (
        (wanted.kinds is None or memory.kind in wanted.kinds)
        and (wanted.layers is None or memory.layer in wanted.layers)
        and (wanted.scopes is None or memory.scope in wanted.scopes)
        and wanted.topic in (None, memory.topic)
        and wanted.category in (None, memory.category)
        and (wanted.tags is None or all(tag in memory.tags for tag in wanted.tags))
        and wanted.sandbox in (None, memory.sandbox)
        and (wanted.since is None or memory.at >= wanted.since)
        and (wanted.until is None or memory.at <= wanted.until)
    )


def behind(last: Memory | None, after: str, sees: Callable[[str], bool]) -> tuple[datetime, str]:
    """The place of the memory that a page ended with, whatever became of it since."""
    if last is None or not sees(last.scope):
        hint = "begin again without `after`; what goes there is the id that a page ends with"
        raise BadInput(f"there is no memory {after!r} to continue behind", hint=hint)
    return last.at, last.id
