"""Bytes on disk a memory: the ledger, the state and its parts, the index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import apsw

import octavo
from bench import accounts, harness
from octavo.storage.stores.names import folder_of

_TITLE = "Bytes on disk a memory"


def main(argv: Sequence[str] | None = None) -> None:
    """Add up the files of a synthetic account, and the pages of each table and index of its state."""
    bench = harness.begin("size", _TITLE, argv)
    size = bench.pick(1_000_000, 300)
    root = accounts.account(bench.cache, size)
    folder = root / folder_of(accounts.NAME)
    text = _text_bytes(folder)
    ledger = _bytes(folder / "ledger")
    state = sum(path.stat().st_size for path in (folder / "index").glob("state.db*"))
    indexed = bench.pick(100_000, 300)
    words = _word_bytes(bench, indexed) / indexed
    bench.figure("ledger", ledger / size, "B")
    bench.figure("state", state / size, "B")
    bench.figure("words", words, "B")
    bench.figure("all of it", (ledger + state) / size + words, "B")
    bench.figure(
        "all of it / the JSON that holds the text", ((ledger + state) / size + words) * size / text, "×"
    )
    for name, taken in _parts(folder / "index" / "state.db"):
        bench.figure(f"state: {name}", taken / size, "B")
    versions = sum(1 for _ in (folder / "ledger").iterdir())
    bench.note(
        f"{size:,} memories (nine episodes of two turns to one fact) in {versions:,} versions, each of which "
        f"also revises two registers; the JSON that holds their text is {text / size:.0f} bytes a memory. "
        f"The words are those of {indexed:,} memories; there are no vectors. Bytes of files, not of blocks."
    )
    bench.finish()


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _word_bytes(bench: harness.Bench, size: int) -> int:
    """What the index of words adds to an account of that size."""
    root = accounts.working_copy(accounts.account(bench.cache, size), bench.cache / "size")
    index = root / folder_of(accounts.NAME) / "index"
    before = _bytes(index)
    with octavo.open(root, accounts.NAME, embedder=False) as account:
        account.catch_up()
    return _bytes(index) - before


def _text_bytes(folder: Path) -> int:
    db = apsw.Connection(str(folder / "index" / "state.db"), flags=apsw.SQLITE_OPEN_READONLY)
    rows = cast(list[tuple[int]], db.execute("SELECT sum(length(body)) FROM revision").fetchall())
    return rows[0][0]


def _parts(path: Path) -> list[tuple[str, int]]:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    sql = "SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC"
    rows = cast(list[tuple[str, int]], db.execute(sql).fetchall())
    return [(name, taken) for name, taken in rows if taken > 1 << 16][:10]


if __name__ == "__main__":
    main()
