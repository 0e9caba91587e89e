"""URLs of places: how they may be shown, and what in them must not be."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit

from octavo.errors import BadInput


def shown(url: str) -> str:
    """A URL as it may be shown: without a password, a query or a fragment."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    user, at, host = authority.rpartition("@")
    if not scheme or not rest:
        raise BadInput(
            "that is no URL of a place", hint="postgresql://user@host/database, s3://bucket/prefix"
        )
    return f"{scheme}://{user.partition(':')[0]}{at}{host}{slash}{path}"


def secrets_in(url: str) -> list[str]:
    """What in a URL must never be shown, as it stands there and as it is meant."""
    parts = urlsplit(url)
    passwords = [parts.password or "", *parse_qs(parts.query).get("password", [])]
    return [secret for word in passwords for secret in (word, unquote(word)) if secret]
