"""The Python API for asyncio: the same methods, awaited, and nothing of its own."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

import octavo
from octavo import aio
from octavo.engine.reading import Reader, Snapshot
from octavo.errors import BadInput, Refused


def public(cls: Any) -> set[str]:
    return {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("sync", "awaited"),
    [(octavo.Account, aio.Account), (octavo.Sandbox, aio.Sandbox), (Snapshot, aio.Snapshot)],
)
def test_every_method_is_there_with_its_signature_and_its_sentence(sync: Any, awaited: Any) -> None:
    assert public(sync) <= public(awaited)
    for name in public(sync):
        assert inspect.iscoroutinefunction(getattr(awaited, name)), name
        assert inspect.getdoc(getattr(awaited, name)) == inspect.getdoc(getattr(sync, name)), name
    assert "recall" in vars(aio.Account.__mro__[2])  # spelt, hence typed
    assert inspect.signature(aio.Account.recall) == inspect.signature(Reader.recall)


def test_a_conversation_is_kept_and_recalled(root: Path) -> None:
    async def talk() -> None:
        async with await aio.open(root, "User01", actor="human:you", embedder=False) as account:
            async with await account.sandbox("breakfast") as sandbox:
                turns = [sandbox.turn("user", f"I drank oolong tea, cup {n}") for n in range(6)]
                await asyncio.gather(*turns)
                await sandbox.remember("ชอบชาไทยไม่หวาน")
                assert len((await sandbox.buffer()).entries) == 7
            hits, facts = await asyncio.gather(account.recall("oolong tea"), account.memories(kind="fact"))
            assert "oolong" in hits[0].memory.text
            assert [fact.text for fact in facts] == ["ชอบชาไทยไม่หวาน"]
            assert await (await account.at(0)).memories() == []
            assert (await account.version(), account.name, account.actor) == (1, "User01", "human:you")

    asyncio.run(talk())


def test_an_exception_leaves_the_sandbox_open_and_it_is_resumed(root: Path) -> None:
    async def break_off(account: aio.Account) -> None:
        sandbox = await account.sandbox("night")
        async with sandbox:
            await sandbox.turn("user", "good night")
            raise ZeroDivisionError(sandbox.id)

    async def talk() -> None:
        async with await aio.open(root, "User01", embedder=False) as account:
            with pytest.raises(ZeroDivisionError) as broken:
                await break_off(account)
            id_ = str(broken.value)
            assert await account.version() == 0
            async with await account.resume(id_) as again:
                await again.turn("assistant", "sleep well")
            assert len((await account.memories(kind="episode"))[0].turns) == 2

    asyncio.run(talk())


def test_errors_and_scopes_are_those_of_the_account(root: Path) -> None:
    async def talk() -> None:
        async with await aio.open(root, "User01", actor="agent:bot", embedder=False) as account:
            with pytest.raises(BadInput, match="it takes"):
                await account.recall("tea", colour="red")  # type: ignore[call-arg]
            with pytest.raises(Refused):
                (await account.remember("my key is AKIAIOSFODNN7EXAMPLE")).or_raise()
            async with await aio.open(root, "User01", scope="orion", embedder=False) as bound:
                await bound.remember("Orion likes maps")
                assert bound.scope == "orion"
            assert [m.scope for m in await account.memories()] == ["orion"]

    asyncio.run(talk())
