"""Operations on cores, spheres and the odometer."""

# ruff: noqa: A002  # a memory's id is `id`, in every door
from __future__ import annotations

from typing import Any

from octavo.domain.memory import Memory
from octavo.doors.operations.memories import live
from octavo.doors.operations.table import operation
from octavo.engine.account import Account
from octavo.engine.fields import MemoryId
from octavo.engine.reading import Reader, Snapshot

compress = operation("octavo compress", writes=True, result="made")(Account.compress)
uncompress = operation("octavo uncompress core_000_001", writes=True, result="removed")(Account.uncompress)


@operation("octavo cores", result="cores")
def cores(reader: Account | Snapshot) -> list[Memory]:
    """List the cores: eight sessions each."""
    return reader.memories(kind="core")


@operation("octavo spheres", result="spheres")
def spheres(reader: Account | Snapshot) -> list[Memory]:
    """List the spheres: eight cores each."""
    return reader.memories(kind="sphere")


@operation("octavo show core_000_001")
def show(reader: Reader, id: MemoryId) -> Memory:
    """Show a core or sphere as a page to read; any other memory as `get` does."""
    return live(reader, id)


@operation("octavo counters --scope orion", result="counters")
def counters(account: Account) -> dict[str, Any]:
    """Show where the odometer of sessions, cores and spheres stands."""
    return account.counters(account.scope or "shared")


sessions = operation("octavo sessions --scope orion", result="sessions")(Account.sessions)
