"""The ledger: one file a version, written once, chained by hashes; creating the file is the commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import msgspec

from octavo.domain.memory import Change
from octavo.domain.ports import Store
from octavo.errors import LedgerDamaged, LedgerTruncated, NewerFormat
from octavo.storage import codec
from octavo.storage.codec import Header, Line

GENESIS = "0" * 64
_HEADER_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a commit wants to write, before it knows which version it becomes."""

    changes: Sequence[Change]
    salts: Sequence[str]
    cause: str
    actor: str
    commit: str
    policy: str
    at: datetime
    scope: str | None = None
    session: int | None = None
    sandbox: str | None = None
    last_line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version as read: its header, its header's hash and its lines."""

    header: Header
    hash: str
    lines: Sequence[Line]
    written: Sequence[Change] | None = None

    def change(self, position: int) -> Change:
        """One of the changes it holds; who has just written them need not read them."""
        if self.written is not None:
            return self.written[position]
        line = self.lines[position]
        with _naming(self.header.version, position + 2):
            return codec.decode_change(line.t, bytes(line.envelope), line.body_bytes())

    def changes(self) -> Iterator[Change]:
        """The changes it holds, in order."""
        return (self.change(position) for position in range(len(self.lines)))


class Ledger:
    """The versions of one account, in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def head(self, hint: int) -> int:
        """The newest version, found from a hint by galloping probes, never by listing."""
        known, step = hint, 1
        if hint and not self.exists(hint):
            return self._head_below(hint)
        while self.exists(known + step):
            known, step = known + step, step * 2
        low, high = known, known + step
        while high - low > 1:
            middle = (low + high) // 2
            if self.exists(middle):
                low = middle
            else:
                high = middle
        return low

    def _head_below(self, hint: int) -> int:
        step = 1
        while hint - step > 0 and not self.exists(hint - step):
            step *= 2
        return self.head(max(hint - step, 0))

    def must_be_whole(self) -> int:
        """The newest version by listing, for those who read all of it anyway; a gap is damage."""
        versions, strays = listed(self._store)
        head = max(versions, default=0)
        missing = set(range(1, head + 1)) - versions
        if missing:
            raise LedgerDamaged(
                f"{key_of(min(missing))} is missing, and version {head} exists", hint=_RESTORE
            )
        if strays:
            raise LedgerDamaged(f"{strays[0]} is no version of the ledger", hint="move the file elsewhere")
        return head

    def exists(self, version: int) -> bool:
        """Whether a version exists; version 0 is the empty account."""
        return version == 0 or self._store.exists(key_of(version))

    def hash_of(self, version: int) -> str:
        """The header's hash of a version, checked."""
        return GENESIS if version == 0 else self.header(version)[1]

    def header(self, version: int) -> tuple[Header, str]:
        """The header of a version and its hash; reads only the first bytes of the file."""
        first = self._store.read(key_of(version), first=_HEADER_BYTES)
        if first is None:
            raise LedgerDamaged(f"{key_of(version)} is missing", hint=_RESTORE)
        raw, newline, _ = first.partition(b"\n")
        if not newline:
            raise _damage(version, 1, "the header has no end")
        line = _parsed(version, 1, raw)
        return _header_of(version, line), line.hash

    def read(self, version: int) -> Version:
        """A version, every hash checked."""
        data = self._store.read(key_of(version))
        if data is None:
            raise LedgerDamaged(f"{key_of(version)} is missing", hint=_RESTORE)
        raws = data.split(b"\n")
        if raws.pop() != b"":
            raise _damage(version, len(raws) + 1, "the last line has no end; the file was cut short")
        if not raws:
            raise _damage(version, 1, "the file is empty")
        first = _parsed(version, 1, raws[0])
        header = _header_of(version, first)
        if header.count != len(raws) - 1:
            missing = f"the header counts {header.count} lines, the file holds {len(raws) - 1}"
            raise _damage(version, len(raws), missing)
        lines = [_parsed(version, number, raw) for number, raw in enumerate(raws[1:], start=2)]
        if codec.root_of(line.hash for line in lines) != header.root:
            raise _damage(version, 1, "the lines are not those the header was made over")
        return Version(header=header, hash=first.hash, lines=lines)

    def chain(self, first: int, last: int, parent_hash: str) -> Iterator[Version]:
        """Versions first..last, each checked to stand on the one before it."""
        for version in range(first, last + 1):
            found = self.read(version)
            if found.header.parent_hash != parent_hash:
                raise _damage(version, 1, f"it does not stand on version {version - 1} as found")
            yield found
            parent_hash = found.hash

    def commit(
        self, draft: Draft, parent: int, parent_hash: str, parent_at: datetime | None
    ) -> Version | None:
        """Write the next version; None if another writer took its number.

        A lost reply makes one's own success look like a loss, so a taken number is read back and
        compared by commit id.
        """
        version = parent + 1
        if not self.exists(parent):
            raise LedgerTruncated(f"{key_of(parent)} has gone, and nothing is written on top of a gap")
        lines = [codec.encode_change(c, s) for c, s in zip(draft.changes, draft.salts, strict=True)]
        header = Header(
            format=codec.FORMAT,
            version=version,
            parent=parent,
            at=draft.at if parent_at is None else max(draft.at, parent_at),
            cause=draft.cause,
            actor=draft.actor,
            commit=draft.commit,
            policy=draft.policy,
            count=len(lines),
            root=codec.root_of(line.hash for line in lines),
            parent_hash=parent_hash,
            scope=draft.scope,
            session=draft.session,
            sandbox=draft.sandbox,
            last_line=draft.last_line,
        )
        first = codec.encode_header(header)
        data = b"".join(codec.encode_line(line) for line in (first, *lines))
        if self._store.create(key_of(version), data) or self.header(version)[0].commit == draft.commit:
            return Version(header=header, hash=first.hash, lines=lines, written=draft.changes)
        return None

    def settle(self, version: int) -> None:
        """Make a version durable that somebody else wrote, who may have stopped before its sync."""
        data = self._store.read(key_of(version))
        if data is not None:
            self._store.create(key_of(version), data)  # it exists, so this only waits until it is durable

    def rewrite(self, version: int, lines: Sequence[Line]) -> None:
        """Replace a version's lines by ones with the same hashes; only redaction's sweep does this."""
        old = self.read(version)
        if [line.hash for line in lines] != [line.hash for line in old.lines]:
            raise _damage(version, 1, "a sweep may erase bodies, never change a hash")
        data = b"".join(codec.encode_line(line) for line in (codec.encode_header(old.header), *lines))
        self._store.replace(key_of(version), data)


def listed(store: Store) -> tuple[set[int], list[str]]:
    """The versions that have a file, and the names in the ledger that are none."""
    versions, strays = set(), []
    for key in store.list("ledger/"):
        number = key.removeprefix("ledger/").removesuffix(".jsonl")
        if number.isdecimal() and key == key_of(int(number)):
            versions.add(int(number))
        else:
            strays.append(key)
    return versions, strays


def key_of(version: int) -> str:
    """Where a version lies."""
    return f"ledger/{version:020d}.jsonl"


_RESTORE = "put the file back from a backup; versions are contiguous and none is ever removed"


def _damage(version: int, line: int, why: str) -> LedgerDamaged:
    return LedgerDamaged(f"{key_of(version)}, line {line}: {why}")


@contextmanager
def _naming(version: int, line: int) -> Iterator[None]:
    """Say where it is that a newer Octavo wrote."""
    try:
        yield
    except NewerFormat as error:
        raise NewerFormat(f"{key_of(version)}, line {line}: {error.message}") from error


def _parsed(version: int, number: int, raw: bytes) -> Line:
    try:
        line = codec.decode_line(raw)
    except msgspec.DecodeError as error:
        if "unknown field" in str(error):
            raise NewerFormat(f"{key_of(version)}, line {number}: {error}") from error
        raise _damage(version, number, f"not a ledger line: {error}") from error
    except UnicodeDecodeError as error:
        raise _damage(version, number, f"not UTF-8: {error.reason}") from error
    if line.hash != line.expected_hash():
        raise _damage(version, number, "the hash does not match the line")
    return line


def _header_of(version: int, line: Line) -> Header:
    if line.t != "version":
        raise _damage(version, 1, "the first line is no header")
    with _naming(version, 1):
        header = codec.decode_header(line)
    if header.version != version or header.parent != version - 1:
        raise _damage(version, 1, f"the file holds version {header.version}")
    return header
