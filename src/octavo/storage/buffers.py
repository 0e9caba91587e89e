"""Session buffers: numbered lines, each durable before it is acknowledged, one owner at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from octavo.domain.buffer import Discarded, Entry, Opened, Reopened, Sealed, SessionBuffer
from octavo.domain.ports import Lease, Store
from octavo.errors import BufferDamaged, LeaseLost, NewerFormat, NotFound, SandboxBusy, SandboxClosed
from octavo.storage import codec
from octavo.storage.stores.entries import every

_FOLDER = "buffers/"
LEASE_SECONDS = 60.0  # how long nobody else may take a buffer over after its owner was last heard of


class Buffer:
    """The owner's hold on one sandbox's buffer."""

    def __init__(self, store: Store, sandbox: str, lines: Lease, raws: Sequence[bytes]) -> None:
        self.sandbox = sandbox
        self._store = store
        self._lines = lines
        self._entries = _decoded(sandbox, raws)

    @classmethod
    def create(cls, store: Store, opened: Opened) -> Buffer:
        """Begin a sandbox durably."""
        if not store.create(_key(opened.sandbox), codec.encode_entry(0, opened)):
            raise SandboxBusy(f"a sandbox {opened.sandbox!r} exists already")
        return cls.resume(store, opened.sandbox)

    @classmethod
    def resume(cls, store: Store, sandbox: str) -> Buffer:
        """Take hold of a sandbox that exists; SandboxBusy if somebody else has it."""
        lines = store.hold(_key(sandbox), LEASE_SECONDS)
        try:
            return cls(store, sandbox, lines, lines.lines())
        except BaseException:
            lines.close()
            raise

    def append(self, entry: Entry) -> None:
        """Add an entry; on return it is durable."""
        last = self._entries[-1] if self._entries else None
        is_sealed = isinstance(last, Sealed) and not isinstance(entry, Reopened | Discarded)
        if is_sealed or isinstance(last, Discarded):
            raise SandboxClosed(f"sandbox {self.sandbox!r} is sealed or discarded; nothing can be added")
        line = codec.encode_entry(len(self._entries), entry)
        try:
            self._lines.append(line)
        except LeaseLost as lost:
            self._take_back(lost)
            self._lines.append(line)
        self._entries.append(entry)

    def read(self) -> SessionBuffer:
        """The buffer as a value."""
        return _value(self.sandbox, self._entries, self._lines.torn)

    def entries(self) -> Sequence[Entry]:
        """Every entry, the opening line included."""
        return self._entries

    def delete(self) -> None:
        """Remove the buffer; the commit it went into, or its discarding, is durable."""
        self._lines.delete()

    def close(self) -> None:
        """Let go; the buffer stays."""
        self._lines.close()

    def _take_back(self, lost: LeaseLost) -> None:
        """Hold it again, if whoever took it let it go without a word, as a redaction elsewhere does."""
        try:
            lines = self._store.hold(_key(self.sandbox), LEASE_SECONDS)
        except (NotFound, SandboxBusy):
            raise lost from None
        entries = _decoded(self.sandbox, lines.lines())
        if len(entries) != len(self._entries):
            lines.close()
            raise lost
        self._lines, self._entries = lines, entries


def read(store: Store, sandbox: str) -> SessionBuffer:
    """A sandbox's buffer, read without owning it."""
    found = store.lines(_key(sandbox))
    if found is None:
        raise NotFound(
            f"there is no sandbox {sandbox!r}", hint="`octavo sandboxes` lists those that are open"
        )
    lines, torn = found
    return _value(sandbox, _decoded(sandbox, lines), torn)


def scope_of(store: Store, sandbox: str) -> str | None:
    """The scope that a sandbox was opened for: None if it is not there, empty if nobody can tell."""
    found = store.lines(_key(sandbox))
    if found is None:
        return None
    try:
        return _value(sandbox, _decoded(sandbox, found[0][:1]), 0).opened.scope
    except (BufferDamaged, NewerFormat):
        return ""


def rewrite(store: Store, sandbox: str, change: Callable[[Entry], Entry]) -> None:
    """Replace a buffer's entries as its owner; redaction's sweep does this, SandboxBusy if it cannot."""
    held = store.hold(_key(sandbox), LEASE_SECONDS)
    try:
        entries = [change(entry) for entry in _decoded(sandbox, held.lines())]
        held.replace(b"".join(codec.encode_entry(n, e) for n, e in enumerate(entries)))
    finally:
        held.close()


def names(store: Store) -> list[str]:
    """The ids of all sandboxes that have a buffer."""
    return [
        key.removeprefix(_FOLDER).removesuffix(".jsonl")
        for key in every(store, _FOLDER)
        if key.endswith(".jsonl")
    ]


def _key(sandbox: str) -> str:
    return f"{_FOLDER}{sandbox}.jsonl"


def _decoded(sandbox: str, raws: Sequence[bytes]) -> list[Entry]:
    entries: list[Entry] = []
    for number, raw in enumerate(raws):
        try:
            seq, entry = codec.decode_entry(raw)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BufferDamaged(f"{_key(sandbox)}, line {number + 1}: {error}") from error
        except NewerFormat as error:
            raise NewerFormat(f"{_key(sandbox)}, line {number + 1}: {error.message}") from error
        if seq != number:
            raise BufferDamaged(f"{_key(sandbox)}, line {number + 1}: it is numbered {seq}, not {number}")
        entries.append(entry)
    return entries


def _value(sandbox: str, entries: Sequence[Entry], torn: int) -> SessionBuffer:
    if not entries or not isinstance(entries[0], Opened):
        raise BufferDamaged(f"{_key(sandbox)}, line 1: the opening line is missing")
    last = entries[-1]
    return SessionBuffer(
        opened=entries[0],
        entries=tuple(entries[1:]),
        last_line=len(entries) - 1,
        is_sealed=isinstance(last, Sealed),
        is_discarded=isinstance(last, Discarded),
        torn=torn,
    )
