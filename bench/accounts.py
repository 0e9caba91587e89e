"""Big synthetic accounts, built once from a seed and kept in the cache so that rounds can be repeated."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import octavo
from bench.harness import progress
from bench.texts import Texts
from octavo.domain.memory import Change, Link, Memory, Turn, transcript
from octavo.storage import codec
from octavo.storage.codec import FORMAT, Header
from octavo.storage.ledger import GENESIS, Ledger
from octavo.storage.state_db import StateDb
from octavo.storage.state_file import SCHEMA
from octavo.storage.stores.disk import Disk
from octavo.storage.stores.local import LocalStore
from octavo.storage.stores.names import folder_of

NAME = "bench"
GENERATOR = 1  # raised when the texts change, so that an older cache is not taken for this one
_BEGAN = datetime(2020, 1, 1, tzinfo=UTC)


class _Unsynced(Disk):
    """A disk that never waits; a half-built account is thrown away, not repaired."""

    def sync(self, fd: int) -> None:
        """Leave it to the operating system."""

    def sync_folder(self, folder: Path) -> None:
        """Leave it to the operating system."""


def account(cache: Path, memories: int, *, facts: float = 0.1) -> Path:
    """The root of an account of so many memories, built if the cache does not hold it."""
    name = f"{memories}-facts{round(facts * 100)}-v{codec.FORMAT}.{SCHEMA}.{GENERATOR}"
    root = cache / name
    if not (root / "built.json").exists():
        shutil.rmtree(root, ignore_errors=True)
        began = time.perf_counter()
        build(root, memories, facts=facts)
        took = {"memories": memories, "seconds": round(time.perf_counter() - began, 1)}
        (root / "built.json").write_text(json.dumps(took) + "\n")
    return root


def building_seconds(root: Path) -> float:
    """How long building a cached account took."""
    return float(json.loads((root / "built.json").read_text())["seconds"])


def working_copy(root: Path, target: Path) -> Path:
    """An account that may be written to: version files are written once and shared by hard links."""
    shutil.rmtree(target, ignore_errors=True)
    source, copy = root / folder_of(NAME), target / folder_of(NAME)
    shutil.copytree(source / "ledger", copy / "ledger", copy_function=os.link)
    shutil.copytree(source / "index", copy / "index")
    shutil.copy2(source / "account.json", copy / "account.json")
    return target


def build(root: Path, memories: int, *, facts: float, seed: int = 8) -> None:
    """Write an account of episodes, facts and registers in versions of some hundreds of changes."""
    octavo.open(root, NAME).close()
    folder = root / folder_of(NAME)
    ledger = Ledger(LocalStore(folder, disk=_Unsynced()))
    state = StateDb(folder / "index" / "state.db", ledger)
    texts = Texts(seed)
    per_version = max(10, min(330, memories // 30))
    hash_, at, scope_sessions = GENESIS, None, 0
    with progress(f"building {memories:,} memories", memories) as step:
        for number, changes in enumerate(_versions(texts, memories, per_version, facts)):
            scope_sessions += 1
            draft = Header(
                format=FORMAT,
                parent=number,
                cause="consolidate",
                actor="agent",
                commit=secrets.token_hex(16),
                policy="0" * 16,
                at=_BEGAN + timedelta(hours=number),
                scope="shared",
                session=scope_sessions,
                sandbox=_sandbox(number),
                last_line=len(changes),
            )
            version = ledger.commit(draft, changes, hash_, at)
            if version is None:
                raise RuntimeError("somebody else writes into the cache")
            state.apply(version)
            hash_, at = version.hash, version.header.at
            step(len(changes))
    state.close()


def _versions(texts: Texts, memories: int, size: int, facts: float) -> Iterator[list[Change]]:
    """Changes a version: mostly episodes, some facts, and two registers that each version revises."""
    made = 0
    number = 0
    while made < memories:
        at = _BEGAN + timedelta(hours=number)
        batch: list[Change] = []
        for _ in range(min(size, memories - made)):
            id_ = id_of(made)
            moment = at + timedelta(seconds=len(batch))
            if texts.number() < facts:
                batch.append(fact(texts, id_, moment, session=_sandbox(number)))
            else:
                batch.append(episode(texts, id_, moment, session=_sandbox(number)))
            made += 1
        for name in ("ire_state", "ehm_state"):
            batch.append(_state(texts, name, number + 1, at))
        yield batch
        number += 1


def id_of(number: int) -> str:
    """The id of the numbered memory: twenty characters that sort by time, like the engine's own."""
    return f"m{number:019d}"


def episode(texts: Texts, id_: str, at: datetime, session: str | None = None) -> Memory:
    """An episode of two turns."""
    turns = tuple(Turn(speaker=speaker, text=text, at=at) for speaker, text in texts.turns())
    return Memory(
        id=id_,
        kind="episode",
        text=transcript(turns),
        at=at,
        salience=round(texts.number(), 2),
        sandbox=session,
        turns=turns,
        tags=("travel",) if texts.number() < 0.05 else (),
    )


def fact(texts: Texts, id_: str, at: datetime, session: str | None = None) -> Memory:
    """A fact; one of five points to where it came from."""
    number = texts.whole(1 << 20)
    links = (Link(name="evidence", to=id_of(number)),) if number % 5 == 0 else ()
    return Memory(
        id=id_, kind="fact", text=texts.sentence(), at=at, confidence=0.9, links=links, sandbox=session
    )


def _state(texts: Texts, name: str, rev: int, at: datetime) -> Memory:
    return Memory(
        id=f"state_{name}",
        rev=rev,
        kind="register",
        topic=name,
        category="state",
        at=at,
        data={"calm": round(texts.number(), 3), "joy": round(texts.number(), 3)},
    )


def _sandbox(number: int) -> str:
    return f"sandbox_{id_of(number)}"
