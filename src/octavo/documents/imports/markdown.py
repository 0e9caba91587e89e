"""A folder of Markdown notes, as basic-memory and Obsidian keep them: front matter, text and links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.imports.taking import id_of, must_be_bounded, take_memories, time_of
from octavo.documents.transfer import Imported, Note
from octavo.domain.memory import SHARED, Link, Memory
from octavo.engine.account import Account
from octavo.errors import BadFile
from octavo.storage.projections import Progress

FORMAT = "markdown"
_MOST_BYTES, _MOST_FRONT, _MOST_FILES = 4_000_000, 64_000, 200_000
_FRONT = re.compile(r"\A---\r?\n(.*?)\r?\n---\s*?(?:\n|\Z)", re.DOTALL)
_LINK = re.compile(r"\[\[([^][|#\n]{1,200}+)[^][\n]{0,200}+\]\]")
_TIMES = ("modified", "updated", "updated_at", "created", "created_at", "date")


class _Page(Struct, frozen=True, kw_only=True):
    """One note: where it lies, what its front matter says, and its text."""

    place: str
    front: Mapping[str, Any]
    text: str
    at: datetime

    @property
    def title(self) -> str:
        """Its title, else its file's name."""
        return str(self.front.get("title") or Path(self.place).stem)

    @property
    def key(self) -> str:
        """What names it for good: its permalink, else its place."""
        return str(self.front.get("permalink") or self.place)


def import_(account: Account, path: Path, progress: Progress | None = None) -> Imported:
    """Take in the notes of a folder, or one note; a long one comes in passages. Links are not followed."""
    pages, left_out = _read(path)
    limit = account.policy.kinds.fact.max_length or _MOST_BYTES
    first = {name: id_of(account, FORMAT, page.key, "1") for page in pages for name in _names(page)}
    memories = [pair for page in pages for pair in _memories(account, page, first, limit)]
    done = take_memories(account, FORMAT, memories, progress)
    return replace(done, left_out=(*left_out, *done.left_out))


def _read(path: Path) -> tuple[list[_Page], list[Note]]:
    if path.is_dir() and not path.is_symlink():
        names, left_out = trees.files_below(path)
        notes = [name for name in names if name.endswith(".md") and not _is_hidden(name)]
    else:
        must_be_bounded(path, _MOST_BYTES, "name a folder of Markdown files")
        path, notes, left_out = path.parent, [path.name], []
    if len(notes) > _MOST_FILES:
        raise BadFile(f"{path} holds {len(notes)} notes, at most {_MOST_FILES} are read")
    pages = []
    for name in notes:
        try:
            must_be_bounded(path / name, _MOST_BYTES, "split the note")
            pages.append(_page(path / name, name))
        except BadFile as error:
            left_out.append(Note(place=name, reason=error.message.removeprefix(f"{path / name}: ")))
    return pages, left_out


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def _page(file: Path, name: str) -> _Page:
    try:
        text = trees.read_bytes(file).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadFile(f"{file}: not UTF-8") from error
    written = _FRONT.match(text)
    front = _front(written[1], file) if written else {}
    lately = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    at = next((time_of(front[key], lately) for key in _TIMES if front.get(key)), lately)
    body = text[written.end() :] if written else text
    return _Page(place=name, front=front, text=body.replace("\r\n", "\n").strip(), at=at)


def _front(written: str, file: Path) -> Mapping[str, Any]:
    if len(written) > _MOST_FRONT:
        raise BadFile(f"{file}: its front matter is longer than {_MOST_FRONT} characters")
    try:
        front = msgspec.yaml.decode(written)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadFile(f"{file}: its front matter is no YAML") from error
    return {str(k): v for k, v in front.items() if _is_plain(v)} if isinstance(front, Mapping) else {}


def _is_plain(value: Any) -> bool:
    """Whether a value is one of those that are used, which keeps deep and tangled ones out."""
    single = (str, int, float, datetime)
    return isinstance(value, single) or hasattr(value, "isoformat") or _is_list(value, single)


def _is_list(value: Any, of: tuple[type, ...]) -> bool:
    return isinstance(value, list) and len(value) <= 200 and all(isinstance(item, of) for item in value)


def _names(page: _Page) -> set[str]:
    """What a link to the note may call it."""
    return {page.title, page.key, Path(page.place).stem, page.place.removesuffix(".md")}


def _memories(
    account: Account, page: _Page, first: Mapping[str, str], limit: int
) -> Iterator[tuple[str, Memory]]:
    linked = [first[name.strip()] for name in _LINK.findall(page.text) if name.strip() in first]
    for number, passage in enumerate(_passages(page, limit), start=1):
        id_ = id_of(account, FORMAT, page.key, str(number))
        about = dict.fromkeys(to for to in linked if to != id_) if number == 1 else ()
        yield (
            page.place,
            Memory(
                id=id_,
                kind="fact",
                text=passage,
                scope=account.scope or SHARED,
                category="note",
                tags=_tags(page.front.get("tags")),
                source="manual",
                at=page.at,
                links=tuple(Link(name="about", to=to) for to in about),
                data={FORMAT: {"title": page.title, "place": page.place, "part": number, "text": passage}},
            ),
        )


def _tags(value: Any) -> tuple[str, ...]:
    tags: Sequence[Any] = (
        value.split(",") if isinstance(value, str) else value if _is_list(value, (str,)) else ()
    )
    return tuple(dict.fromkeys(tag.strip().lstrip("#")[:100] for tag in tags if tag.strip("# ")))


def _passages(page: _Page, limit: int) -> list[str]:
    """The note in pieces that a fact may hold, cut at paragraphs, each under the note's title."""
    head = f"{page.title[:200]}\n\n"
    room = max(limit - len(head), 1)
    pieces: list[str] = []
    for paragraph in re.split(r"\n\s*\n", page.text):
        for start in range(0, len(paragraph), room):
            part = paragraph[start : start + room]
            if pieces and len(pieces[-1]) + len(part) + 2 <= room:
                pieces[-1] += f"\n\n{part}"
            elif part.strip():
                pieces.append(part)
    return [piece if piece.startswith(f"# {page.title}") else head + piece for piece in pieces]
