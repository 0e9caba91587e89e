"""Account ids as folder names: safe on file systems that fold case, readable where they can be."""

from __future__ import annotations

import re

from octavo.errors import BadInput

_PLAIN = re.compile(r"[a-z0-9_-]")
_UPPER = re.compile(r"[A-Z]")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)", re.IGNORECASE)
_ESCAPED = re.compile(r"\+([a-z])|%([0-9a-f]{2})|([a-z0-9_.-])")


def folder_of(account: str) -> str:
    """`User01` becomes `+user01`; anything unusual becomes its bytes in hexadecimal."""
    if not isinstance(account, str) or not account or account != account.strip() or not account.isprintable():
        raise BadInput(f"account {account!r} cannot be used", hint="name it with visible characters")
    folder = "".join(_escaped(c, first=n == 0) for n, c in enumerate(account))
    if _RESERVED.fullmatch(folder):
        folder = f"%{ord(folder[0]):02x}{folder[1:]}"
    if len(folder) > 200:
        raise BadInput(f"account {account[:40]!r}… is too long", hint="use a shorter name")
    return folder


def account_of(folder: str) -> str | None:
    """The account a folder stands for, None if it is no account's folder."""
    raw = bytearray()
    at = 0
    while at < len(folder):
        found = _ESCAPED.match(folder, at)
        if found is None:
            return None
        upper, code, plain = found.groups()
        raw += upper.upper().encode() if upper else bytes.fromhex(code) if code else plain.encode()
        at = found.end()
    try:
        return raw.decode() or None
    except UnicodeDecodeError:
        return None


def _escaped(character: str, *, first: bool) -> str:
    if _PLAIN.fullmatch(character) or (character == "." and not first):
        return character
    if _UPPER.fullmatch(character):
        return f"+{character.lower()}"
    return "".join(f"%{byte:02x}" for byte in character.encode())
