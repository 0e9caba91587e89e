"""Which lines of a file of JSON lines hold an erased text, pure: by memory, by text, or by a piece of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from octavo.domain.text import UNSPACED, key_of

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_UNENDED = re.compile(r':\s*"((?:[^"\\]|\\.)*)\\?$')
_CUT = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$")
_UNICODE = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_UNSPACED = re.compile(f"[{UNSPACED}]")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What has to go: memories by their ids, texts by recognition, and the wordings while they are known.

    `mask` is the text of a line that was erased already. `is_other` says of an id that the account knows it
    as a memory that stays; such a line is left alone.
    """

    ids: Collection[str]
    is_erased: Callable[[str], bool]
    mask: str
    wordings: Collection[str] = ()
    is_other: Callable[[str], bool] = lambda id_: False

    def without(
        self,
        data: bytes,
        instead: Callable[[bytes], bytes] | None = None,
        named: Mapping[int, str] | None = None,
    ) -> bytes:
        """The lines that may stay, the others replaced or left out.

        `named` gives, by the line's number, the ids of memories that a line itself calls otherwise.
        """
        *ended, last = data.split(b"\n")
        kept: list[bytes] = []
        for number, (line, end) in enumerate([*((line, b"\n") for line in ended), (last, b"")], start=1):
            if not line.strip() or not self._holds(line, (named or {}).get(number)):
                kept.append(line + end)
            elif instead is not None:
                kept.append(instead(line) + end)
        return b"".join(kept)

    def _holds(self, line: bytes, id_: str | None) -> bool:
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            return self._holds_piece(line.decode("utf-8", "replace"), id_)
        if not isinstance(given, dict):
            return any(map(self.is_erased, _strings(given)))
        own = id_ or given.get("id")
        text = given.get("text")
        if own in self.ids:
            return text != self.mask
        said = [text] if isinstance(text, str) else list(_strings(given))
        return any(map(self.is_erased, said)) and not (isinstance(own, str) and self.is_other(own))

    def _holds_piece(self, line: str, id_: str | None) -> bool:
        """Whether a line that nobody can read names an erased memory, or holds its text or a start of it."""
        if id_ in self.ids or any(f'"{name}"' in line for name in self.ids):
            return True
        if any(self.is_erased(plain(quoted)) for quoted in _QUOTED.findall(line)):
            return True
        begun = _UNENDED.search(line)
        start = key_of(plain(_CUT.sub("", begun[1]))) if begun else ""
        whole = key_of(plain(line))
        keys = [key for wording in self.wordings if (key := key_of(wording))]
        return any(_is_within(key, whole) or (start and key.startswith(start)) for key in keys)


def plain(quoted: str) -> str:
    """What a JSON string says, even one that is no good: every escape that can be undone is undone."""

    def unicode(found: re.Match[str]) -> str:
        units = bytes.fromhex(found[0].replace("\\u", ""))
        return units.decode("utf-16-be", "replace")

    return _ESCAPE.sub(lambda m: _PLAIN.get(m[1], m[1]), _UNICODE.sub(unicode, quoted))


def _is_within(key: str, whole: str) -> bool:
    """Whether a wording stands in a text, between words where the script has them."""
    if _UNSPACED.search(key):
        return key in whole
    return f" {key} " in f" {whole} "


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _strings(item)
        case list():
            for item in value:
                yield from _strings(item)
