"""The ledger: one file a version, written once, chained by hashes; creating the file is the commit."""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from octavo.domain.memory import Change
from octavo.domain.ports import Store
from octavo.errors import Damaged, LedgerDamaged, LedgerTruncated, NewerFormat, OctavoError
from octavo.storage import codec, segments
from octavo.storage.codec import Header, Line
from octavo.storage.stores.entries import every

GENESIS = "0" * 64
_HEADER_BYTES = 4096
_BATCH_BYTES = 4_000_000  # versions are read many at a time until so much comes at once
_LOCK_SECONDS = 10.0


class Version(Struct, frozen=True, kw_only=True):
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
        try:
            return codec.decode_change(line.t, bytes(line.envelope), line.body_bytes())
        except NewerFormat as error:
            raise _newer(self.header.version, position + 2, error) from error

    def changes(self) -> Iterator[Change]:
        """The changes it holds, in order."""
        return (self.change(position) for position in range(len(self.lines)))


class Ledger:
    """The versions of one account, in a store: one entry each, or a thousand in a segment."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._segment: tuple[str, list[bytes]] | None = None  # the one last unpacked
        self._seen = 0  # the version last looked at: a commit on top of it need not look again

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

    def proved(self, head: int) -> Iterator[Version | OctavoError]:
        """Every version up to one, its changes read too, or why it is not what was written."""
        before: str | None = GENESIS
        for number in range(1, head + 1):
            expected, before = before, None  # what comes behind damage stands on whatever was there
            try:
                found = self.read(number)
                before = found.hash
                deque(found.changes(), maxlen=0)
                _must_stand(found, expected or found.header.parent_hash)
            except OctavoError as error:
                yield error
            else:
                yield found

    def whole_until(self) -> int:
        """The last version before the first damage: all up to it are there and stand on each other."""
        head = max(listed(self._store)[0], default=0)
        for number, found in enumerate(self.proved(head)):
            if isinstance(found, Damaged):
                return number
            if isinstance(found, OctavoError):
                raise found
        return head

    def exists(self, version: int) -> bool:
        """Whether a version exists; version 0 is the empty account."""
        keys = (key_of(version), segments.key_of(version))
        return version == 0 or any(self._store.read(key, first=1) is not None for key in keys)

    def goes_beyond(self, version: int) -> bool:
        """Whether there is a version after one that was there; LedgerTruncated if that one has gone."""
        keys = [key_of(version + 1), segments.key_of(version + 1), key_of(version)][: 3 if version else 2]
        newer, sealed, *known = self._store.read_many(keys, first=1)
        if newer is None and sealed is None and known == [None] and not self.exists(version):
            raise LedgerTruncated(f"{key_of(version)} has gone, and nothing is written on top of a gap")
        self._seen = version
        return newer is not None or sealed is not None

    def holds(self, version: int, header: str) -> bool:
        """Whether it has that very version, by the hash of its header."""
        return self.exists(version) and self.hash_of(version) == header

    def hash_of(self, version: int) -> str:
        """The header's hash of a version, checked."""
        return GENESIS if version == 0 else self.header(version)[1]

    def header(self, version: int) -> tuple[Header, str]:
        """The header of a version and its hash; reads only the first bytes of its entry."""
        first = self._store.read(key_of(version), first=_HEADER_BYTES)
        if first is None:
            first = self.bytes_of(version)
        raw, newline, _ = first.partition(b"\n")
        if not newline:
            raise _damage(version, 1, "the header has no end")
        line = _parsed(version, 1, raw)
        return _header_of(version, line), line.hash

    def read(self, version: int) -> Version:
        """A version, every hash checked."""
        return _version(version, self.bytes_of(version))

    def newer(self, version: int, hash_: str, *, upto: int | None = None) -> Iterator[Version]:
        """Every version after one, or all up to another, each checked to stand on the one before it.

        They are read many at a time.
        """
        self._segment = None  # somebody may have erased something meanwhile
        for number, data in enumerate(self.entries(version + 1, upto), start=version + 1):
            found = _must_stand(_version(number, data), hash_)
            yield found
            self._seen, hash_ = number, found.hash

    def commit(
        self, draft: Header, changes: Sequence[Change], parent_hash: str, parent_at: datetime | None
    ) -> Version | None:
        """Write the version after the draft's parent; None if another writer took its number.

        A lost reply makes one's own success look like a loss, so a taken number is read back and
        compared by commit id.
        """
        parent, version = draft.parent, draft.parent + 1
        if parent != self._seen and not self.exists(parent):
            raise LedgerTruncated(f"{key_of(parent)} has gone, and nothing is written on top of a gap")
        drawn = secrets.token_hex(16 * len(changes))  # at once, 128 random bits each
        salts = (drawn[place : place + 32] for place in range(0, len(drawn), 32))
        lines = list(map(codec.encode_change, changes, salts))
        header = replace(
            draft,
            version=version,
            at=draft.at if parent_at is None else max(draft.at, parent_at),
            count=len(lines),
            root=codec.root_of(line.hash for line in lines),
            parent_hash=parent_hash,
            key=draft.key if version == 1 else None,
        )
        first = codec.encode_header(header)
        data = b"".join(codec.encode_line(line) for line in (first, *lines))
        is_mine = self._store.create(key_of(version), data, unless=segments.key_of(version))
        if is_mine or self.header(version)[0].commit == draft.commit:
            return Version(header=header, hash=first.hash, lines=lines, written=changes)
        return None

    def make_durable(self, version: int) -> None:
        """Make a version durable that somebody else wrote, who may have stopped before its sync."""
        data = self._store.read(key_of(version))
        if data is not None:
            # It exists, so this only waits until it is durable.
            self._store.create(key_of(version), data, unless=segments.key_of(version))

    def rewrite(self, version: int, lines: Sequence[Line]) -> None:
        """Replace a version's lines by ones with the same hashes; only redaction's sweep does this."""
        old = self.read(version)
        if [line.hash for line in lines] != [line.hash for line in old.lines]:
            raise _damage(version, 1, "a sweep may erase bodies, never change a hash")
        data = b"".join(codec.encode_line(line) for line in (codec.encode_header(old.header), *lines))
        if self._store.read(key_of(version), first=1) is not None:
            self._store.replace(key_of(version), data)
        key = segments.key_of(version)
        with self._store.lock(_LOCK_SECONDS):  # two sweeps in one segment must not undo each other's work
            packed = self._store.read(key)
            if packed is not None:
                index, versions = segments.unpack(key, packed)
                versions[version - index.first] = data
                self._store.replace(key, segments.pack(index.first, versions, index.hashes))
        self._segment = None

    def forget(self) -> None:
        """Read anew what was read before; a sweep does this, because others may have sealed meanwhile."""
        self._segment = None

    def seal(self, head: int, *, unless: str) -> int:
        """Put whole thousands of versions into segments, and remove the entries of those that are in one."""
        sealed = 0
        singles = [number for number in sorted(listed_singles(self._store)[0]) if number <= head]
        for first in range(1, head - segments.SIZE + 2, segments.SIZE):
            last = first + segments.SIZE - 1
            apart = singles[bisect_left(singles, first) : bisect_right(singles, last)]
            if not apart:
                continue
            key = segments.key_of(first)
            if self._store.read(key, first=1) is None:
                if not self._store.create(key, self._packed(first, last), unless=unless):
                    break  # a redaction is under way: what was read may hold what it erases
                sealed += segments.SIZE
            self._store.delete(*map(key_of, apart))
        return sealed

    def _packed(self, first: int, last: int) -> bytes:
        """A segment of versions that are whole and stand on each other."""
        packed, hashes, parent_hash = [], [], self.hash_of(first - 1)
        for number, data in zip(range(first, last + 1), self.entries(first, last), strict=True):
            version = _must_stand(_version(number, data), parent_hash)
            packed.append(data)
            hashes.append(parent_hash := version.hash)
        return segments.pack(first, packed, hashes)

    def bytes_of(self, version: int) -> bytes:
        """What a version's entry holds, or what it held before it was sealed."""
        return next(self.entries(version, version))

    def entries(self, version: int, upto: int | None) -> Iterator[bytes]:
        """The bytes of every version from one on, until there is none, or of all up to the last asked for."""
        many = 4
        while upto is None or version <= upto:
            key, place = segments.key_of(version), (version - 1) % segments.SIZE
            most = segments.SIZE - place if upto is None else min(segments.SIZE - place, upto - version + 1)
            if self._segment is None or self._segment[0] != key:
                numbers = range(version, version + min(many, most))
                *singles, packed = self._store.read_many((*map(key_of, numbers), key))
                if packed is None and None in singles:
                    packed = self._store.read(key)  # sealed between two looks, or there are no more
                if packed is None:
                    for data in singles:
                        if data is None and upto is None:
                            return
                        if data is None:
                            raise LedgerDamaged(f"{key_of(version)} is missing", hint=_RESTORE)
                        yield data
                        version += 1
                    if sum(map(len, filter(None, singles))) < _BATCH_BYTES:
                        many = min(many * 4, 256)
                    continue
                self._segment = (key, segments.unpack(key, packed)[1])
            yield from self._segment[1][place : place + most]
            version += most


def listed(store: Store) -> tuple[set[int], list[str]]:
    """The versions there are, sealed or not, and the names in the ledger that are none."""
    versions, strays = listed_singles(store)
    for key in every(store, segments.FOLDER):
        first = segments.first_of(key)
        if first is None:
            strays.append(key)
        else:
            versions |= set(range(first, first + segments.SIZE))
    return versions, strays


def listed_singles(store: Store) -> tuple[set[int], list[str]]:
    """The versions that have an entry of their own, and the names beside them that are none."""
    versions, strays = set(), []
    for key in every(store, "ledger/"):
        number = key.removeprefix("ledger/").removesuffix(".jsonl")
        if number.isdecimal() and key == key_of(int(number)):
            versions.add(int(number))
        else:
            strays.append(key)
    return versions, strays


def key_of(version: int) -> str:
    """Where a version lies."""
    return f"ledger/{version:020d}.jsonl"


_RESTORE = (
    "put the file back from a backup; `octavo salvage <folder>` copies what lies before it to a new account, "
    "and octavo.open(..., read_only=True, accept_loss=True) reads it"
)


def _damage(version: int, line: int, why: str) -> LedgerDamaged:
    return LedgerDamaged(f"{key_of(version)}, line {line}: {why}", hint=_RESTORE)


def _newer(version: int, line: int, error: Exception) -> NewerFormat:
    said = error.message if isinstance(error, NewerFormat) else error
    return NewerFormat(f"{key_of(version)}, line {line}: {said}")


def _parsed(version: int, number: int, raw: bytes) -> Line:
    try:
        line = codec.decode_line(raw)
    except msgspec.DecodeError as error:
        if "unknown field" in str(error):
            raise _newer(version, number, error) from error
        raise _damage(version, number, f"not a ledger line: {error}") from error
    except UnicodeDecodeError as error:
        raise _damage(version, number, f"not UTF-8: {error.reason}") from error
    if line.hash != line.expected_hash():
        raise _damage(version, number, "the hash does not match the line")
    return line


def _must_stand(version: Version, parent_hash: str) -> Version:
    if version.header.parent_hash != parent_hash:
        number = version.header.version
        raise _damage(number, 1, f"it does not stand on version {number - 1} as found")
    return version


def _version(version: int, data: bytes) -> Version:
    """A version read from its bytes, every hash checked."""
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


def _header_of(version: int, line: Line) -> Header:
    if line.t != "version":
        raise _damage(version, 1, "the first line is no header")
    try:
        header = codec.decode_header(line)
    except NewerFormat as error:
        raise _newer(version, 1, error) from error
    if header.version != version or header.parent != version - 1:
        raise _damage(version, 1, f"the file holds version {header.version}")
    return header
