"""Operations of the levels: what repeats, what is too old, and what a robot is taught."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import Annotated, Any

from octavo.documents.brain import FilesystemMemory
from octavo.documents.brain import patterns as found
from octavo.documents.brain.patterns import Consolidated, Pattern
from octavo.documents.brain.teaching import Reply, Teaching, behaviors_of
from octavo.doors.operations.table import operation
from octavo.engine.account import Account


@operation("octavo patterns", result="patterns")
def patterns(account: Account) -> list[Pattern]:
    """List what repeats in recent episodes, how often, and where it was seen."""
    return found.find(account, datetime.now(UTC), account.policy.patterns)


@operation("octavo learn --promote", writes=True)
def learn(
    account: Account,
    *,
    promote: Annotated[bool, "Also ask a person about knowledge that has stood for long."] = False,
) -> Consolidated:
    """Make knowledge of what repeats; running again revises and never doubles."""
    return found.consolidate(account, datetime.now(UTC), account.policy.patterns, promote=promote)


@operation("octavo retention", writes=True, result="aged")
def retention(
    account: Account, *, apply: Annotated[bool, "Move them to the archive."] = False
) -> list[dict[str, Any]]:
    """List the episodes that are past the limits of the policy; nothing goes unless asked."""
    old = {name: [m.id for m in some] for name, some in account.aged().items()} if not apply else {}
    aged = account.retire_aged() if apply else old
    return [{"group": name, "episodes": ids, "is_done": apply} for name, ids in aged.items()]


@operation('octavo teach "teach dance"', writes=True, begins=True)
def teach(
    account: Account, line: Annotated[str, "What is said (teach dance, forward, left, done, cancel)."]
) -> Reply:
    """Say one line to a robot that is taught by showing; a recording goes on with the next line."""
    with closing(Teaching(FilesystemMemory(account))) as teaching:
        return teaching.say(line)


@operation("octavo invoke dance", writes=True)
def invoke(account: Account, name: Annotated[str, "The behaviour."]) -> Reply:
    """Do a behaviour: its actions in order, each checked against guardrails and sandbox rules."""
    with closing(Teaching(FilesystemMemory(account))) as teaching:
        return teaching.invoke(name)


@operation("octavo behaviors", result="behaviors")
def behaviors(account: Account) -> list[dict[str, Any]]:
    """List the behaviours that were taught."""
    return list(behaviors_of(account).values())
