"""Every public method of an account and of a sandbox with arguments that fit, for tests that try them all."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

import octavo
from octavo import documents
from octavo.domain.buffer import Wrote
from octavo.domain.memory import Memory


class World(Struct, kw_only=True):
    """An account with one of everything, and a sandbox."""

    account: octavo.Account
    sandbox: octavo.Sandbox
    folder: Path
    fact: str
    other: str
    canon: str
    proposal: str


def world(opened: Callable[..., octavo.Account], folder: Path) -> World:
    """A small account: facts, canon, an episode, a proposal, a rejection, an open sandbox."""
    account = opened(embedder=False)
    fact = account.remember("likes green tea, ชอบชาเขียว", tags=["food"]).or_raise()
    other = account.remember("lives near the river").or_raise()
    canon = account.remember("values kindness", kind="canon").or_raise()
    with account.sandbox("first") as first:
        first.turn("user", "Good morning from Chiang Mai")
        first.turn("assistant", "Good morning!")
    account.reject("hates tea")
    proposal = opened("agent:bot", embedder=False).remember("values obedience", kind="canon").proposal
    sandbox = account.sandbox("second", scope="shared")
    sandbox.turn("user", "hello")
    return World(
        account=account,
        sandbox=sandbox,
        folder=folder,
        fact=fact.id,
        other=other.id,
        canon=canon.id,
        proposal=proposal or "",
    )


READING: dict[str, Callable[[World], dict[str, Any]]] = {
    "brief": lambda w: {"query": "tea"},
    "drifted": lambda w: {"hits": ()},
    "explain": lambda w: {"query": "tea", "id_": w.fact},
    "get": lambda w: {"id_": w.fact},
    "grouped": lambda w: {"ids": w.fact},
    "history": lambda w: {"id_": w.fact},
    "memories": lambda w: {},
    "orders": lambda w: {},
    "recall": lambda w: {"query": "tea"},
    "quotes": lambda w: {},
    "referring": lambda w: {"id_": w.fact},
    "revisions": lambda w: {},
    "sees": lambda w: {"scope": "shared"},
    "stats": lambda w: {},
    "uses": lambda w: {"ids": w.fact},
}
OF_ACCOUNT: dict[str, Callable[[World], dict[str, Any]]] = {
    **READING,
    "aged": lambda w: {},
    "approve": lambda w: {"id_": w.proposal, "seen": "x"},
    "alias": lambda w: {"name": "Kate", "means": "Emi"},
    "assemble": lambda w: {"ids": w.fact, "name": "tea"},
    "at": lambda w: {"when": 1},
    "backup": lambda w: {"path": w.folder / "backup"},
    "buffer": lambda w: {"sandbox": w.sandbox.id},
    "catch_up": lambda w: {},
    "check": lambda w: {},
    "close": lambda w: {},
    "compress": lambda w: {},
    "counters": lambda w: {},
    "decline": lambda w: {"id_": w.proposal},
    "deletion_candidates": lambda w: {},
    "diff": lambda w: {"before": 1},
    "end_order": lambda w: {"id_": w.fact},
    "export": lambda w: {"path": w.folder / "export"},
    "forget": lambda w: {"ids": w.other},
    "freshness": lambda w: {"id_": w.fact},
    "import_": lambda w: {"path": w.folder / "nothing"},
    "lag": lambda w: {},
    "merge_assemblies": lambda w: {"first": w.fact, "second": w.other},
    "merge_candidates": lambda w: {},
    "mirror": lambda w: {},
    "promote": lambda w: {"id_": w.fact},
    "proposal": lambda w: {"id_": w.proposal},
    "proposals": lambda w: {},
    "propose_deletions": lambda w: {},
    "propose_merge": lambda w: {"first": w.fact, "second": w.other},
    "redact": lambda w: {"id_": w.other, "reason": "asked to"},
    "refusals": lambda w: {},
    "reindex": lambda w: {},
    "reject": lambda w: {"value": "hates rivers"},
    "rejections": lambda w: {},
    "remember": lambda w: {"text": "keeps two cats"},
    "remember_many": lambda w: {"items": [{"text": "keeps three dogs"}]},
    "reopen": lambda w: {"id_": w.proposal},
    "repair": lambda w: {},
    "restore": lambda w: {"version": 1},
    "resume": lambda w: {"sandbox": "sandbox_nowhere"},
    "retire_aged": lambda w: {},
    "revert": lambda w: {"version": 1},
    "revise": lambda w: {"id_": w.fact, "salience": 0.6},
    "salvage": lambda w: {"path": w.folder / "salvaged"},
    "sandbox": lambda w: {},
    "sandboxes": lambda w: {},
    "sessions": lambda w: {},
    "sync": lambda w: {},
    "uncompress": lambda w: {"id_": "core_000_001"},
    "unmerge": lambda w: {"id_": w.fact},
    "unreject": lambda w: {"value": "hates tea"},
    "upkeep": lambda w: {},
    "versions": lambda w: {},
    "wait": lambda w: {"seconds": 0.01},
}
OF_INTAKE: dict[str, Callable[[World], dict[str, Any]]] = {
    "adopt": lambda w: {"id_": "core_000_001", "given": {}},
    "as_agent": lambda w: {},
    "finish_merge": lambda w: {"id_": w.fact},
    "importing": lambda w: {},
    "must_fit": lambda w: {"item": {"text": "hello"}},
    "write_many": lambda w: {"wanted": [Wrote(memory=_memory(w))], "cause": "test"},
}
OF_HANDLE = OF_ACCOUNT | OF_INTAKE
OF_SANDBOX: dict[str, Callable[[World], dict[str, Any]]] = {
    **READING,
    "close": lambda w: {},
    "consolidate": lambda w: {},
    "discard": lambda w: {},
    "forget": lambda w: {"id_": w.other},
    "remember": lambda w: {"text": "plays the violin"},
    "revise": lambda w: {"id_": w.fact, "salience": 0.7},
    "turn": lambda w: {"role": "user", "text": "hello again"},
    "update_state": lambda w: {"name": "mood", "data": {"now": "calm"}},
    "use": lambda w: {"id_": w.fact},
    "write_episode": lambda w: {"episode": {"turn_1": "hello"}},
}
ENDING = ("close", "consolidate", "discard")
# The documents' own interfaces, each over a folder; any of their methods takes what it needs from FITTING.
OF_DOCUMENTS: dict[str, Callable[[Path], Any]] = {
    "FilesystemMemory": lambda folder: documents.FilesystemMemory(folder, embedder=False),
    "MSP": lambda folder: documents.MSP(folder, "User01"),
    "MemoryCore": lambda folder: documents.MemoryCore(octavo.open(folder, actor="human:op", embedder=False)),
    "MemoryVault": lambda folder: documents.MemoryVault(folder / "vault.jsonl"),
}
FITTING: dict[str, Any] = {
    "text": "keeps two cats", "content": "keeps three dogs", "query": "cats", "scope": "shared",
    "category": "x", "user_id": "User01", "level": "semantic", "key": "knowledge/pets", "name": "tea",
    "data": {"now": "calm"}, "metadata": {}, "buffer": {}, "state": {}, "ids": [], "items": [],
    "embedding": [0.6, 0.8], "reason": "asked to",
}  # fmt: skip


def acts(handle: Any) -> list[str]:
    """The names of everything that can be called on a handle, but what ends it."""
    names = [name for name in dir(handle) if not name.startswith("_") and name not in ("close", "account")]
    return [name for name in names if callable(getattr(handle, name))]


def needed(method: Callable[..., Any]) -> dict[str, Any]:
    """Arguments for what a method cannot do without."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(method).parameters.values()
    return {
        p.name: FITTING.get(p.name, "hello") for p in parameters if p.default is p.empty and p.kind in kinds
    }


def _memory(w: World) -> Memory:
    return Memory(id="", kind="fact", text="owns a red bicycle", at=w.account.get(w.fact).at)  # type: ignore[union-attr]


def holder(account: octavo.Account, name: str) -> Any:
    """Who has a method: the account, or what brings finished things into it."""
    return account.intake if name in OF_INTAKE else account


def methods(cls: type) -> set[str]:
    """The names of a class's public methods."""
    return {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if not name.startswith("_")}


def call(handle: Any, name: str, arguments: dict[str, Any]) -> Any:
    """Call a method with arguments by the names of its parameters, `*ids` included."""
    method = getattr(handle, name)
    args: list[Any] = []
    named: dict[str, Any] = {}
    for parameter in inspect.signature(method).parameters.values():
        if parameter.name not in arguments:
            continue
        value = arguments[parameter.name]
        match parameter.kind:
            case parameter.VAR_POSITIONAL:
                args.append(value)
            case parameter.POSITIONAL_ONLY:
                args.append(value)
            case _:
                named[parameter.name] = value
    return method(*args, **named)


def variants(handle: Any, name: str, base: dict[str, Any], values: list[Any]) -> Iterator[dict[str, Any]]:
    """The arguments of a call with each parameter in turn replaced by each value."""
    for parameter in inspect.signature(getattr(handle, name)).parameters:
        yield from ({**base, parameter: value} for value in values)
