"""Where bytes become values: the lines of a version, the lines of a buffer, the policy file.

Every domain dataclass gets a wire twin that omits defaults and refuses unknown fields, so the domain
stays free of third parties and a line written by a newer Octavo is never half read.
"""

from __future__ import annotations

import dataclasses
import hashlib
import types
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from octavo.domain import memory as records
from octavo.domain.memory import Change, Memory
from octavo.domain.policy import Policy
from octavo.errors import BadPolicy, IndexDamaged, NewerFormat
from octavo.later import Later

if TYPE_CHECKING:
    import tomllib

    from octavo.domain import buffer as entries
else:
    # Who reads versions reads no buffer, and most accounts have no policy file.
    entries = Later("octavo.domain.buffer")
    tomllib = Later("tomllib")

FORMAT = 1
REDACTED = "[redacted]"
_ERASED = b'{"text":"%s"}' % REDACTED.encode()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

encode_json = msgspec.json.Encoder().encode
decode_json = msgspec.json.Decoder().decode


class Header(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The first line of a version: what it is, who made it and what it stands on; no user text."""

    format: int
    version: int
    parent: int
    at: datetime
    cause: str
    actor: str
    commit: str
    policy: str
    count: int
    root: str
    parent_hash: str
    scope: str | None = None
    session: int | None = None
    sandbox: str | None = None
    last_line: int | None = None


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
        return line_hash(self.t, bytes(self.envelope), self.hash_of_body())

    def hash_of_body(self) -> str:
        """The hash of the salted body, or what an erased body left."""
        if self.body is msgspec.UNSET:
            return self.body_hash or ""
        return body_hash(self.salt or "", bytes(self.body))

    def body_bytes(self) -> bytes | None:
        """The body as it stands, None if there is none or it was erased."""
        return None if self.body is msgspec.UNSET else bytes(self.body)

    def erased(self) -> Line:
        """The same line without its body; its hash still holds."""
        return Line(t=self.t, hash=self.hash, envelope=self.envelope, body_hash=self.hash_of_body())


class _Twin(NamedTuple):
    """How one dataclass is split into envelope and body, and put together again."""

    cls: type[Any]
    envelope: type[Any]
    body: type[Any] | None
    read_envelope: msgspec.json.Decoder[Any]
    read_body: msgspec.json.Decoder[Any] | None
    plain: tuple[str, ...]
    plain_body: tuple[str, ...]
    nested: dict[str, Any]


_MEMORY_BODY = frozenset({"text", "topic", "category", "tags", "emotion", "turns", "data"})
_BODIES: dict[str, tuple[type[Any], frozenset[str]]] = {
    "memory": (records.Memory, _MEMORY_BODY),
    "proposal": (records.Proposal, frozenset({"memory", "reason"})),
    "decision": (records.Decision, frozenset({"reason"})),
    "rejection": (records.Rejection, frozenset({"reason"})),
    "use": (records.Use, frozenset()),
    "refusal": (records.Refusal, frozenset({"detail", "text"})),
    "merge": (records.Merge, frozenset({"text"})),
    "clash": (records.Clash, frozenset({"detail"})),
    "redaction": (records.Redaction, frozenset({"reason"})),
}
_TAGS: dict[type[Any], str] = {cls: tag for tag, (cls, _) in _BODIES.items()}
_twins: dict[tuple[type[Any], frozenset[str]], type[Any]] = {}
_tables: dict[str, _Twin] = {}
_line = msgspec.json.Decoder(Line)
_header = msgspec.json.Decoder(Header)


def line_hash(tag: str, envelope: bytes, hash_of_body: str) -> str:
    """The hash that stands on a line."""
    return hashlib.sha256(b"\0".join((tag.encode(), envelope, hash_of_body.encode()))).hexdigest()


def body_hash(salt: str, body: bytes) -> str:
    """The hash of a body under its salt."""
    return hashlib.sha256(salt.encode() + body).hexdigest()


def encode_change(change: Change, salt: str) -> Line:
    """A change as a line."""
    tag = _TAGS[type(change)]
    twin = _table(tag)
    envelope = encode_json(msgspec.convert(change, twin.envelope, from_attributes=True))
    if twin.body is None:
        return Line(t=tag, hash=line_hash(tag, envelope, ""), envelope=msgspec.Raw(envelope))
    body = msgspec.convert(change, twin.body, from_attributes=True)
    if isinstance(change, Memory) and change.turns and change.text == records.transcript(change.turns):
        body.text = ""  # an episode's text follows from its turns
    raw = encode_json(body)
    return Line(
        t=tag,
        hash=line_hash(tag, envelope, body_hash(salt, raw)),
        envelope=msgspec.Raw(envelope),
        salt=salt,
        body=msgspec.Raw(raw),
    )


def decode_change(tag: str, envelope: bytes, body: bytes | None) -> Change:
    """A line's envelope and body as a change; an erased body reads as `[redacted]`."""
    if tag not in _BODIES:
        raise NewerFormat(f"a line has the unknown tag {tag!r}")
    twin = _table(tag)
    try:
        values = _values(twin.read_envelope.decode(envelope), twin.plain, twin.nested)
        if body is not None and twin.read_body is not None:
            values |= _values(twin.read_body.decode(body), twin.plain_body, twin.nested)
    except msgspec.ValidationError as error:
        raise NewerFormat(f"a {tag} line holds what this Octavo does not know: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # A line of the ledger has passed its hash by now, so these bytes come from what is derived.
        raise IndexDamaged(f"a {tag} line is no JSON: {error}") from error
    if body is None and twin.body is not None:
        values |= _masked(tag, values)
    if tag == "memory" and values.get("turns") and not values.get("text"):
        values["text"] = records.transcript(values["turns"])
    change: Change = twin.cls(**values)
    return change


def decode_memory(envelope: bytes, body: bytes | None) -> Memory:
    """A memory as the state keeps it, envelope and body at once: the same value in half the time."""
    wire = _joined(envelope, _ERASED if body is None else body)
    if wire is None:
        return cast(Memory, decode_change("memory", envelope, body))  # it says what is wrong
    if wire.turns and not wire.text:
        wire.text = records.transcript(wire.turns)
    return msgspec.convert(wire, Memory, from_attributes=True)


def encode_header(header: Header) -> Line:
    """A header as the first line of its version."""
    envelope = encode_json(header)
    return Line(t="version", hash=line_hash("version", envelope, ""), envelope=msgspec.Raw(envelope))


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


def decode_line(raw: bytes) -> Line:
    """One line of text as a line; raises msgspec.DecodeError on anything else."""
    return _line.decode(raw)


def root_of(hashes: Iterator[str]) -> str:
    """The root over the hashes of a version's lines."""
    root = hashlib.sha256()
    for value in hashes:
        root.update(bytes.fromhex(value))
    return root.hexdigest()


def encode_entry(seq: int, entry: entries.Entry) -> bytes:
    """A buffer entry as one numbered, checksummed line."""
    tag = entries.TAGS[type(entry)]
    body = encode_json(msgspec.convert(entry, _twin(type(entry)), from_attributes=True))
    line = _BufferLine(seq=seq, t=tag, crc=_crc(seq, tag, body), body=msgspec.Raw(body))
    return encode_json(line) + b"\n"


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
        wire = msgspec.json.decode(body, type=_twin(cls))
    except msgspec.ValidationError as error:
        raise NewerFormat(f"a buffer line holds what this Octavo does not know: {error}") from error
    entry: entries.Entry = msgspec.convert(wire, cls, from_attributes=True)
    return line.seq, entry


def decode_policy(text: bytes, name: str) -> Policy:
    """The policy that a TOML file sets on top of the defaults; a wrong key is named."""
    try:
        found = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadPolicy(f"{name} is not TOML: {error}") from error
    merged = _merged(plain(Policy()), found, name, ())
    try:
        policy = msgspec.convert(merged, Policy)
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


def plain(value: Any) -> Any:
    """Any of our values as plain JSON values (dicts, lists, strings, numbers)."""
    return msgspec.to_builtins(value)


def _joined(envelope: bytes, body: bytes) -> Any:
    """A memory's envelope and body as one twin of it, None if they are not whole."""
    if not (envelope.endswith(b"}") and body.startswith(b"{")):
        return None
    try:
        return _whole_memory().decode(envelope if body == b"{}" else envelope[:-1] + b"," + body[1:])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


@cache
def _whole_memory() -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_twin(Memory))


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


def _masked(tag: str, values: dict[str, Any]) -> dict[str, Any]:
    """What stands in for an erased body."""
    match tag:
        case "memory" | "refusal" | "merge":
            return {"text": REDACTED, **({"detail": REDACTED} if tag == "refusal" else {})}
        case "clash":
            return {"detail": REDACTED}
        case "proposal":
            erased = Memory(id=f"{values['id']}.redacted", kind="fact", at=values["at"], text=REDACTED)
            return {"memory": erased}
        case _:
            return {}


def _values(wire: Any, names: tuple[str, ...], nested: dict[str, Any]) -> dict[str, Any]:
    values = {name: getattr(wire, name) for name in names}
    for name, kind in nested.items():
        if values.get(name):
            values[name] = msgspec.convert(values[name], kind, from_attributes=True)
    return values


def _table(tag: str) -> _Twin:
    if tag not in _tables:
        cls, in_body = _BODIES[tag]
        names = [f.name for f in dataclasses.fields(cls)]
        hints = get_type_hints(cls)
        nested = {n: hints[n] for n in names if _wire(hints[n]) != hints[n]}
        envelope = tuple(n for n in names if n not in in_body)
        head = _twin(cls, frozenset(envelope))
        body = _twin(cls, in_body) if in_body else None
        _tables[tag] = _Twin(
            cls,
            head,
            body,
            msgspec.json.Decoder(head),
            msgspec.json.Decoder(body) if body else None,
            envelope,
            tuple(n for n in names if n in in_body),
            nested,
        )
    return _tables[tag]


def _twin(cls: type[Any], names: frozenset[str] = frozenset()) -> type[Any]:
    """The wire type of a dataclass, or of some of its fields."""
    if (cls, names) not in _twins:
        hints = get_type_hints(cls)
        fields = [
            (f.name, _wire(hints[f.name]), *_default(f))
            for f in dataclasses.fields(cls)
            if not names or f.name in names
        ]
        _twins[cls, names] = msgspec.defstruct(
            cls.__name__, fields, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
        )
    return _twins[cls, names]


def _default(f: dataclasses.Field[Any]) -> tuple[Any, ...]:
    if f.default is not dataclasses.MISSING:
        return (f.default,)
    if f.default_factory is not dataclasses.MISSING:
        return (msgspec.field(default_factory=f.default_factory),)
    return ()


def _wire(hint: Any) -> Any:
    """A type hint with every dataclass in it replaced by its twin."""
    if dataclasses.is_dataclass(hint):
        return _twin(hint)  # type: ignore[arg-type]  # a class, not an instance, stands in a hint
    args = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        return Union[tuple(_wire(a) for a in args)]  # noqa: UP007  # built at run time
    if get_origin(hint) is tuple:
        return tuple.__class_getitem__(tuple(a if a is Ellipsis else _wire(a) for a in args))
    return hint
