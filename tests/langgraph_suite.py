"""A pytest plugin that runs LangGraph's own tests of stores with ours in place of the one in memory."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import tempfile
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import langgraph.store.memory
import pytest

import octavo
from octavo.doors.adapters.langgraph import OctavoStore
from octavo.models.embedders import CallableEmbedder

for _name in ("fsync", "fdatasync"):  # this is about answers; other tests prove what is durable
    setattr(os, _name, lambda _: None)


class Store(OctavoStore):
    """Made as theirs is, on an account of its own that embeds with what the test hands in."""

    def __init__(self, *, index: Any = None, ttl: Any = None) -> None:
        self.index_config, embed = index, (index or {}).get("embed")
        embedder: Any = False
        if embed is not None:
            embedder = CallableEmbedder(
                name="characters", dimension=embed.dims, function=embed.embed_documents
            )
        account = octavo.open(tempfile.mkdtemp(), actor="agent:graph", embedder=embedder)
        super().__init__(account, index=index, ttl=ttl)


langgraph.store.memory.InMemoryStore = Store  # type: ignore[misc]
_mock = types.ModuleType("pytest_mock")
_mock.MockerFixture = object  # type: ignore[attr-defined]
sys.modules["pytest_mock"] = _mock


class Mocker:
    """The two things that their tests ask of pytest-mock."""

    def __init__(self) -> None:
        self.patches: list[Any] = []

    def stub(self) -> mock.MagicMock:
        return mock.MagicMock()

    def spy(self, owner: Any, name: str) -> Any:
        self.patches.append(mock.patch.object(owner, name, autospec=True, side_effect=getattr(owner, name)))
        return self.patches[-1].start()


@pytest.fixture
def mocker() -> Iterator[Mocker]:
    made = Mocker()
    yield made
    for patch in made.patches:
        patch.stop()


def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
