"""Names as they are written and shown: account ids as folders, URLs of places without their secrets."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, unquote, urlsplit

from octavo.errors import BadInput

_UNUSUAL = re.compile(r"^\.|[^a-z0-9_.-]")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)
_FOLDER = re.compile(r"(?!\.)(\+[a-z]|%[0-9a-f]{2}|[a-z0-9_.-])+")
_ESCAPED = re.compile(rb"\+([a-z])|%([0-9a-f]{2})")


def folder_of(account: str) -> str:
    """`User01` becomes `+user01`, for file systems that fold case; anything unusual becomes hexadecimal."""
    if not isinstance(account, str) or not account or account != account.strip() or not account.isprintable():
        raise BadInput(f"account {account!r} cannot be used", hint="name it with visible characters")
    folder = _UNUSUAL.sub(_escaped, account)
    if _RESERVED.fullmatch(folder):
        folder = f"%{ord(folder[0]):02x}{folder[1:]}"
    if len(folder) > 200:
        raise BadInput(f"account {account[:40]!r}… is too long", hint="use a shorter name")
    return folder


def account_of(folder: str) -> str | None:
    """The account a folder stands for, None if it is no account's folder."""
    if not _FOLDER.fullmatch(folder):
        return None
    try:
        return _ESCAPED.sub(_meant, folder.encode()).decode()
    except UnicodeDecodeError:
        return None


def _meant(escaped: re.Match[bytes]) -> bytes:
    return escaped[1].upper() if escaped[1] else bytes.fromhex(escaped[2].decode())


def _escaped(unusual: re.Match[str]) -> str:
    character = unusual[0]
    if "A" <= character <= "Z":
        return f"+{character.lower()}"
    return "".join(f"%{byte:02x}" for byte in character.encode())


def shown(url: str) -> str:
    """A URL as it may be shown: without a password, a query or a fragment."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    user, at, host = authority.rpartition("@")
    if not scheme or not rest:
        hint = "postgresql://user@host/database, s3://bucket/prefix"
        raise BadInput("that is no URL of a place", hint=hint)
    return f"{scheme}://{user.partition(':')[0]}{at}{host}{slash}{path}"


def secrets_in(url: str) -> list[str]:
    """What in a URL must never be shown, as it stands there and as it is meant."""
    parts = urlsplit(url)
    passwords = [parts.password or "", *parse_qs(parts.query).get("password", [])]
    return [secret for word in passwords for secret in (word, unquote(word)) if secret]
