"""What indexing reads of a revision: who said what and when, without decoding the rest of the record."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from octavo.domain.units import Spoken, searched
from octavo.storage.codec import REDACTED, moment_of

COLUMNS = "id, rev, kind, scope, layer, category, tags, session, at, gone, envelope, body"


class _Turn(msgspec.Struct):
    speaker: str
    text: str
    at: datetime | None = None


class _Envelope(msgspec.Struct):
    salience: float = 0.5


class _Body(msgspec.Struct):
    text: str = ""
    turns: tuple[_Turn, ...] = ()


class _Told(msgspec.Struct):
    data: dict[str, Any] = {}


_envelope = msgspec.json.Decoder(_Envelope)
_body = msgspec.json.Decoder(_Body)
_told = msgspec.json.Decoder(_Told)
_tags = msgspec.json.Decoder(tuple[str, ...])
_QUOTING = ("core", "sphere")
_ERASED = _Body(text=REDACTED)


def spoken_of(row: Sequence[Any]) -> Spoken:
    """A row of `COLUMNS`; it was checked against its hash when it came into the state."""
    id_, rev, kind, scope, layer, category, tags, session, at, gone, envelope, body = row
    said = _ERASED if body is None else _body.decode(body)
    known = _tags.decode(tags) if tags else ()
    text = searched(said.text, _told.decode(body).data) if body and kind in _QUOTING else said.text
    return Spoken(
        id_, rev, kind, scope, layer, category, known, session, moment_of(at), bool(gone), text,
        said.turns, _envelope.decode(envelope).salience,
    )  # fmt: skip
