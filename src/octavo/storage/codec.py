"""Where bytes become values: the lines of a version, the lines of a buffer, the policy file.

Records omit their defaults and refuse unknown fields, so a line written by a newer Octavo is never half read.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, cast

import msgspec

from octavo.domain import buffer as entries
from octavo.domain import memory as records
from octavo.domain.memory import Change, Memory
from octavo.domain.policy import Policy
from octavo.domain.records import shape_of
from octavo.errors import BadPolicy, IndexDamaged, NewerFormat

FORMAT = 1
REDACTED = "[redacted]"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

encode_json = msgspec.json.Encoder().encode
decode_json = msgspec.json.Decoder().decode


class Header(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The first line of a version: what it is, who made it and what it stands on; no user text.

    The ledger sets what has a default here and belongs in every header; `key`, in version 1 alone, is the
    fingerprint of the account's key.
    """

    format: int
    version: int = 0
    parent: int
    at: datetime
    cause: str
    actor: str
    commit: str
    policy: str
    count: int = -1
    root: str = ""
    parent_hash: str = ""
    scope: str | None = None
    session: int | None = None
    sandbox: str | None = None
    last_line: int | None = None
    key: str | None = None


class Line(msgspec.Struct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One line of a version: a hash over envelope and salted body, so that a body can be erased."""

    t: str
    hash: str
    envelope: msgspec.Raw
    salt: str | None = None
    body: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    body_hash: str | None = None

    def expected_hash(self) -> str:
        """The hash that the line's own bytes give."""
        parts = (self.t.encode(), bytes(self.envelope), self.hash_of_body().encode())
        return hashlib.sha256(b"\0".join(parts)).hexdigest()

    def hash_of_body(self) -> str:
        """The hash of the salted body, or what an erased body left."""
        if self.body is msgspec.UNSET:
            return self.body_hash or ""
        return hashlib.sha256((self.salt or "").encode() + bytes(self.body)).hexdigest()

    def body_bytes(self) -> bytes | None:
        """The body as it stands, None if there is none or it was erased."""
        return None if self.body is msgspec.UNSET else bytes(self.body)

    def erased(self) -> Line:
        """The same line without its body; its hash still holds."""
        return Line(t=self.t, hash=self.hash, envelope=self.envelope, body_hash=self.hash_of_body())


# Each change by its tag: its record, the fields of its body, and what stands in for a body that was erased.
_CHANGES: dict[str, tuple[type[Any], frozenset[str], dict[str, Any]]] = {
    "memory": (
        records.Memory,
        frozenset({"text", "topic", "category", "tags", "emotion", "turns", "data"}),
        {"text": REDACTED},
    ),
    "proposal": (records.Proposal, frozenset({"memory", "reason"}), {}),
    "decision": (records.Decision, frozenset({"reason"}), {}),
    "rejection": (records.Rejection, frozenset({"reason"}), {}),
    "use": (records.Use, frozenset(), {}),
    "refusal": (records.Refusal, frozenset({"detail", "text"}), {"text": REDACTED, "detail": REDACTED}),
    "merge": (records.Merge, frozenset({"text"}), {"text": REDACTED}),
    "clash": (records.Clash, frozenset({"detail"}), {"detail": REDACTED}),
    "redaction": (records.Redaction, frozenset({"reason"}), {}),
}
_TAGS: dict[type[Any], str] = {record: tag for tag, (record, _, _) in _CHANGES.items()}
_READERS = {record: msgspec.json.Decoder(record) for record in (*_TAGS, *entries.TAGS)}
_header = msgspec.json.Decoder(Header)
decode_line = msgspec.json.Decoder(Line).decode  # raises msgspec.DecodeError on anything else


class _Said(TypedDict, total=False):
    text: str  # what of a body is read alone


_said = msgspec.json.Decoder(_Said)


def encode_change(change: Change, salt: str) -> Line:
    """A change as a line."""
    tag = _TAGS[type(change)]
    in_body = _CHANGES[tag][1]
    outer: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    for name, value in msgspec.to_builtins(change, builtin_types=(datetime,)).items():
        (inner if name in in_body else outer)[name] = value
    if isinstance(change, Memory) and change.turns and change.text == records.transcript(change.turns):
        inner.pop("text", None)  # an episode's text follows from its turns
    line = Line(t=tag, hash="", envelope=msgspec.Raw(encode_json(outer)))
    if in_body:
        line.salt, line.body = salt, msgspec.Raw(encode_json(inner))
    line.hash = line.expected_hash()
    return line


def decode_change(tag: str, envelope: bytes, body: bytes | None) -> Change:
    """A line's envelope and body as a change; an erased body reads as `[redacted]`."""
    if tag not in _CHANGES:
        raise NewerFormat(f"a line has the unknown tag {tag!r}")
    record, in_body, mask = _CHANGES[tag]
    if body is None and in_body:
        if tag == "proposal":  # a memory that is known to be no other stands in for what it said
            head = decode_json(envelope)
            erased = {"id": f"{head['id']}.redacted", "kind": "fact", "at": head["at"], "text": REDACTED}
            mask = {"memory": erased}
        body = encode_json(mask)
    try:
        return _told(_READERS[record].decode(_joined(envelope, body)))
    except msgspec.ValidationError as error:
        raise NewerFormat(f"a {tag} line holds what this Octavo does not know: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError, AttributeError) as error:
        # A line of the ledger has passed its hash by now, so these bytes come from what is derived; one bit
        # makes a text, a number or nothing of them.
        raise IndexDamaged(f"a {tag} line is no JSON: {error}") from error


def decode_memory(envelope: bytes, body: bytes | None) -> Memory:
    """A memory as the state keeps it."""
    return cast(Memory, decode_change("memory", envelope, body))


def text_in(body: bytes | None) -> str:
    """The text alone of a memory's body, for who asks many and wants few."""
    try:
        return REDACTED if body is None else _said.decode(body).get("text", "")
    except msgspec.MsgspecError as error:
        raise IndexDamaged(f"a memory line is no JSON: {error}") from error


def encode_header(header: Header) -> Line:
    """A header as the first line of its version."""
    line = Line(t="version", hash="", envelope=msgspec.Raw(encode_json(header)))
    line.hash = line.expected_hash()
    return line


def decode_header(line: Line) -> Header:
    """The header that a first line holds."""
    try:
        header = _header.decode(line.envelope)
    except msgspec.ValidationError as error:
        raise NewerFormat(f"a version's header holds what this Octavo does not know: {error}") from error
    if header.format > FORMAT:
        raise NewerFormat(f"version {header.version} has format {header.format}; this Octavo reads {FORMAT}")
    return header


def encode_line(line: Line) -> bytes:
    """A line as the bytes of one line of text."""
    return encode_json(line) + b"\n"


def root_of(hashes: Iterator[str]) -> str:
    """The root over the hashes of a version's lines."""
    root = hashlib.sha256()
    for value in hashes:
        root.update(bytes.fromhex(value))
    return root.hexdigest()


def encode_entry(seq: int, entry: entries.Entry) -> bytes:
    """A buffer entry as one numbered, checksummed line."""
    tag, body = entries.TAGS[type(entry)], encode_json(entry)
    crc = _crc(seq, tag, body)
    return b'{"seq":%d,"t":"%s","crc":"%s","body":%s}\n' % (seq, tag.encode(), crc.encode(), body)


def decode_entry(raw: bytes) -> tuple[int, entries.Entry]:
    """One buffer line as its number and entry; raises msgspec.DecodeError on damage."""
    line = _buffer_line.decode(raw)
    body = bytes(line.body)
    if line.crc != _crc(line.seq, line.t, body):
        raise msgspec.DecodeError("the checksum does not match")
    cls = entries.CLASSES.get(line.t)
    if cls is None:
        raise NewerFormat(f"a buffer line has the unknown tag {line.t!r}")
    try:
        entry: entries.Entry = _READERS[cls].decode(body)
    except msgspec.ValidationError as error:
        raise NewerFormat(f"a buffer line holds what this Octavo does not know: {error}") from error
    return line.seq, entry


def decode_policy(text: bytes, name: str) -> Policy:
    """The policy that a TOML file sets on top of the defaults; a wrong key is named."""
    try:
        found = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadPolicy(f"{name} is not TOML: {error}") from error
    merged = _merged(msgspec.to_builtins(Policy()), found, name, ())
    try:
        policy = msgspec.convert(merged, shape_of(Policy))
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$.")
        raise BadPolicy(f"{name}: {path.rstrip('`')}: {message}") from error
    return policy


def policy_hash(policy: Policy) -> str:
    """A short name of exactly these rules and numbers."""
    return hashlib.sha256(encode_json(policy)).hexdigest()[:16]


def micros(moment: datetime) -> int:
    """A moment as whole microseconds since 1970, exact."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_of(value: int) -> datetime:
    """Microseconds since 1970 as a moment."""
    return _EPOCH + timedelta(microseconds=value)


def _joined(envelope: bytes, body: bytes | None) -> bytes:
    """Envelope and body as one object; what is not whole is handed on to fail in the decoder."""
    if body is None or body == b"{}" or not (envelope.endswith(b"}") and body.startswith(b"{")):
        return envelope if body is None or body == b"{}" else envelope + body
    return envelope[:-1] + b"," + body[1:]


def _told(change: Change) -> Change:
    """An episode's text follows from its turns, so it is written but once."""
    if isinstance(change, Memory) and change.turns and not change.text:
        msgspec.structs.force_setattr(change, "text", records.transcript(change.turns))
    return change


class _BufferLine(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    seq: int
    t: str
    crc: str
    body: msgspec.Raw


_buffer_line = msgspec.json.Decoder(_BufferLine)


def _crc(seq: int, tag: str, body: bytes) -> str:
    return hashlib.sha256(b"%d\0%s\0%s" % (seq, tag.encode(), body)).hexdigest()[:16]


def _merged(defaults: Any, found: Any, name: str, path: tuple[str, ...]) -> Any:
    """Lay what the file says over the defaults, refusing keys that do not exist."""
    if not isinstance(defaults, dict) or not isinstance(found, dict):
        return found
    for key in found:
        if key not in defaults:
            known = ", ".join(sorted(defaults))
            raise BadPolicy(f"{name}: unknown key {'.'.join((*path, key))!r}; known here: {known}")
    return {
        key: _merged(value, found[key], name, (*path, key)) if key in found else value
        for key, value in defaults.items()
    }
