"""Operations on versions: what was, and the way back."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from octavo.doors.operations.table import operation
from octavo.engine.account import Account
from octavo.engine.fields import Count
from octavo.engine.versions import Diff


@operation("octavo versions --limit 5")
def versions(
    account: Account,
    *,
    after: Annotated[Count | None, "Begin behind this version instead."] = None,
    limit: Annotated[Count, "At most so many."] = 20,
) -> dict[str, Any]:
    """List the newest versions: when, why, by whom."""
    begin = max(account.version - limit, 0) if after is None else after
    page = account.versions(after=begin, limit=limit)
    last = page[-1].version if page else begin
    return {"versions": page, "next": last if last < account.version else None}


@operation("octavo diff 41 42")
def diff(
    account: Account,
    before: Annotated[int | datetime | None, "A version or time."] = None,
    after: Annotated[int | datetime | None, "Another; the newest if not said."] = None,
) -> Diff:
    """Show what differs between two versions (the last two if not said)."""
    return account.diff(max(account.version - 1, 0) if before is None else before, after)


restore = operation("octavo restore 41", writes=True, human=True, result="version")(Account.restore)
revert = operation("octavo revert 41", writes=True, human=True, result="version")(Account.revert)
