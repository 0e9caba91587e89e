"""What holds an erased text, pure: a change, a buffered entry, a line of a file, by memory, text or piece."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import buffer as entries
from octavo.domain.memory import Change, Clash, Memory, Merge, Proposal, Refusal, transcript
from octavo.domain.screening import mapped, strings
from octavo.domain.text import UNSPACED, key_of

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_UNENDED = re.compile(r':\s*"((?:[^"\\]|\\.)*)\\?$')
_CUT = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?$")
_UNICODE = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_UNSPACED = re.compile(f"[{UNSPACED}]")
# A block of Markdown as the mirror writes it: what leads it, and the id that ends it.
_LEAD = re.compile(r"^\s*(?:(?:[-*+>]|#+|\d+[.)])\s+)*")
_BLOCK_ID = re.compile(r"\s\^([\w.@-]+)\s*$")
_TELLING = 12  # letters of a wording that says something wherever it stands; a shorter one where it is all
_GONE = object()
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Erasure(Struct, frozen=True, kw_only=True):
    """What has to go: memories by their ids, texts by recognition, and the wordings while they are known.

    `mask` is the text of a line that was erased already. `is_other` says of an id that the account knows it
    as a memory that stays; such a line is left alone. `besides` is what the same memories carry besides their
    texts: topics, tags, data.
    """

    ids: Collection[str]
    is_erased: Callable[[str], bool]
    mask: str
    wordings: Collection[str] = ()
    besides: Collection[str] = ()
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

    def cleaned(self, name: str, data: bytes) -> bytes | None:
        """A file of an export without it: JSON, lines of JSON or text; None if nothing of the file may stay.

        What the memory itself is written as goes, whoever else contains its words loses these.
        """
        if any(part.partition(".")[0] in self.ids for part in name.split("/")):
            return None
        text = data.decode("utf-8", "surrogateescape")
        try:
            return _told_again(json.loads(text), self._without(json.loads(text)), data, indent=2)
        except (ValueError, RecursionError):
            lines = text.split("\n")
        if is_front_matter := lines[0] == "---":
            is_front_matter = self._spoken(text) != text
        kept = [new for line in lines if (new := self._cleaned_line(line)) is not None]
        return None if is_front_matter else "\n".join(kept).encode("utf-8", "surrogateescape")

    def _cleaned_line(self, line: str) -> str | None:
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            return self._spoken(line)
        again = _told_again(given, self._without(given), line.encode("utf-8", "surrogateescape"))
        return None if again is None else again.decode("utf-8", "surrogateescape")

    def _without(self, value: Any) -> Any:
        """Nested data without the memories and their words; `_GONE` if it is one of them."""
        match value:
            case str():
                return self._spoken(value)
            case list():
                return [new for item in value if (new := self._without(item)) is not _GONE]
            case dict() if _own_id(value) in self.ids:
                return _GONE
            case dict():
                new = {self._spoken(k): self._without(v) for k, v in value.items() if k not in self.ids}
                new = {key: item for key, item in new.items() if item is not _GONE}
                is_told = any(isinstance(v, str) and new.get(k) != v for k, v in value.items())
                return mapped(new, lambda s: self.mask if s in self.besides else s) if is_told else new
            case _:
                return value

    def _spoken(self, text: str) -> str:
        """A text without the wordings: those that stand in it, and the whole if it is one or begins one."""
        folded = key_of(text)
        keys = {key: wording for wording in self.wordings if (key := key_of(wording))}
        begun = folded if text.endswith(("…", "...")) else None
        if folded in keys or (begun and any(key.startswith(begun) for key in keys)):
            return self.mask
        # What an earlier redaction left of a text goes with the text.
        left = [key_of(part) for part in text.split(self.mask)] if self.mask in text else []
        if any(len(part) >= _TELLING and is_within(part, key) for part in left for key in keys):
            return self.mask
        held = [key for key in keys if len(key) >= _TELLING and is_within(key, folded)]
        for key in sorted(held, key=len, reverse=True):
            text = text.replace(keys[key], self.mask)
        return self.mask if any(is_within(key, key_of(text)) for key in held) else text

    def is_in(self, data: bytes) -> bool:
        """Whether a file of any sort of text still holds it: JSON, JSON lines or Markdown."""
        lines = [line for line in data.split(b"\n") if line.strip()]
        return any(self._holds(line, None) or self._is_block(line) for line in lines)

    def _is_block(self, line: bytes) -> bool:
        """Whether a block of a page is the memory, under its id, or says just the same."""
        said = _LEAD.sub("", line.decode("utf-8", "replace"))
        named = _BLOCK_ID.search(said)
        said = _BLOCK_ID.sub("", said).strip()
        if named and named[1] in self.ids:
            return said != self.mask
        return self.is_erased(said) and not (named is not None and self.is_other(named[1]))

    def holds(self, change: Change) -> bool:
        """Whether a change of the ledger must lose its body."""
        match change:
            case Memory():
                return change.id in self.ids
            case Proposal() if speaks_of(change.memory, self.ids):
                return True
            case Merge() if change.into in self.ids or change.id in self.ids:
                return True
            case Refusal(id=named) | Clash(memory=named) if named in self.ids:
                return True
            case _:
                return any(map(self.is_erased, strings(change)))

    def masked(self, entry: entries.Entry) -> entries.Entry:
        """A buffered entry without the text; the same entry if it does not hold it."""
        match entry:
            case entries.Spoke(turn=turn) if self.is_erased(turn.text):
                entry = replace(entry, turn=replace(turn, text=self.mask, data={}))
            case entries.Wrote(memory=memory) if self._says(memory):
                entry = replace(entry, memory=self._blank(memory))
            case entries.Revised(wanted=memory) if self._says(memory):
                entry = replace(entry, wanted=self._blank(memory))
        masked: entries.Entry = mapped(entry, lambda text: self.mask if self.is_erased(text) else text)
        return masked

    def _says(self, memory: Memory) -> bool:
        said = (memory.text, *(turn.text for turn in memory.turns), memory.topic or "")
        return memory.id in self.ids or any(map(self.is_erased, said))

    def _blank(self, memory: Memory) -> Memory:
        return replace(memory, text=self.mask, turns=(), data={}, topic=None, tags=())

    def _holds(self, line: bytes, id_: str | None) -> bool:
        try:
            given = json.loads(line)
        except (ValueError, RecursionError):
            return self._holds_piece(line.decode("utf-8", "replace"), id_)
        if not isinstance(given, dict):
            return any(map(self.is_erased, strings(given)))
        own = id_ or given.get("id")
        text = given.get("text")
        if own in self.ids:
            return text != self.mask
        said = [text] if isinstance(text, str) else list(strings(given))
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
        return any(is_within(key, whole) or (start and key.startswith(start)) for key in keys)


def _own_id(given: Mapping[str, Any]) -> Any:
    """What an object of a document is called itself, whatever others it names."""
    named = given.get("id") or next((v for k, v in given.items() if str(k).endswith("_id")), None)
    return named if isinstance(named, str) else None


def _told_again(before: Any, after: Any, data: bytes, indent: int | None = None) -> bytes | None:
    """A document after a change: the same bytes if nothing changed, None if nothing is left."""
    if after is _GONE:
        return None
    if after == before:
        return data
    again = json.dumps(after, ensure_ascii=False, indent=indent).encode("utf-8", "surrogateescape")
    return again + b"\n" * data.endswith(b"\n")


def speaks_of(memory: Memory, ids: Collection[str]) -> bool:
    """Whether a proposed memory is one of these, or a belief that rests on one."""
    return memory.id in ids or any(id_ in ids for id_ in memory.linked("evidence"))


def plain(quoted: str) -> str:
    """What a JSON string says, even one that is no good: every escape that can be undone is undone."""

    def unicode(found: re.Match[str]) -> str:
        units = bytes.fromhex(found[0].replace("\\u", ""))
        return units.decode("utf-16-be", "replace")

    return _ESCAPE.sub(lambda m: _PLAIN.get(m[1], m[1]), _UNICODE.sub(unicode, quoted))


def holding(texts: Iterable[str], keys: Collection[str]) -> set[str]:
    """Those of some texts that contain one of some folded texts."""
    return {text for text in texts if text and any(is_within(key, key_of(text)) for key in keys)}


def masked_episode(memory: Memory, keys: Collection[str], mask: str, *, whole: bool) -> Memory:
    """An episode without some folded texts: strings that say just this, or with `whole` that contain it."""

    def clean(text: str) -> str:
        folded = key_of(text)
        is_held = folded in keys or (whole and any(is_within(key, folded) for key in keys))
        return mask if is_held else text

    turns = tuple(replace(t, text=mask, data={}) if clean(t.text) is mask else t for t in memory.turns)
    masked: Memory = mapped(replace(memory, turns=turns, text=transcript(turns)), clean)
    return masked


def is_within(key: str, whole: str) -> bool:
    """Whether a wording stands in a text, between words where the script has them."""
    if _UNSPACED.search(key):
        return key in whole
    return f" {key} " in f" {whole} "
