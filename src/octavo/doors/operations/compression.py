"""Operations on cores, spheres and the odometer."""

# ruff: noqa: A002  # a memory's id is `id`, in every door
from __future__ import annotations

from typing import Annotated, Any

from octavo.domain.memory import Memory
from octavo.doors.operations.memories import live
from octavo.doors.operations.table import operation
from octavo.engine.account import Account
from octavo.engine.reading import Reader, Snapshot
from octavo.engine.versions import Session


@operation("octavo compress", writes=True, result="made")
def compress(
    account: Account, id: Annotated[str | None, "A removed core or sphere to make again."] = None
) -> list[Memory]:
    """Make the cores and spheres that are due, or one that was removed."""
    return account.compress(id)


@operation("octavo uncompress core_000_001", writes=True, result="removed")
def uncompress(account: Account, id: Annotated[str, "The core's or sphere's id."]) -> list[str]:
    """Remove a core or sphere until it is asked for again; its sources stay."""
    return account.uncompress(id)


@operation("octavo cores", result="cores")
def cores(reader: Account | Snapshot) -> list[Memory]:
    """List the cores: eight sessions each."""
    return reader.memories(kind="core")


@operation("octavo spheres", result="spheres")
def spheres(reader: Account | Snapshot) -> list[Memory]:
    """List the spheres: eight cores each."""
    return reader.memories(kind="sphere")


@operation("octavo show core_000_001")
def show(reader: Reader, id: Annotated[str, "The memory's id."]) -> Memory:
    """Show a core or sphere as a page to read; any other memory as `get` does."""
    return live(reader, id)


@operation("octavo counters --scope orion", result="counters")
def counters(account: Account) -> dict[str, Any]:
    """Show where the odometer of sessions, cores and spheres stands."""
    return account.counters(account.scope or "shared")


@operation("octavo sessions --scope orion", result="sessions")
def sessions(account: Account) -> list[Session]:
    """List the closed sessions and their places."""
    return account.sessions()
