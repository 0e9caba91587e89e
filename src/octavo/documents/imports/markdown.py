"""A folder of Markdown notes, as basic-memory and Obsidian keep them: front matter, text and links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.imports.taking import Item, batches, id_of, take, time_of
from octavo.documents.transfer import Imported, Note
from octavo.domain.memory import SHARED, Link, Memory
from octavo.engine.account import Account
from octavo.errors import BadFile
from octavo.storage.projections import Progress

FORMAT = "markdown"
_MOST_BYTES, _MOST_FRONT = 4_000_000, 64_000
_FRONT = re.compile(r"\A---\r?\n(.*?)\r?\n---\s*?(?:\n|\Z)", re.DOTALL)
_LINK = re.compile(r"\[\[([^][|#\n]{1,200}+)[^][\n]{0,200}+\]\]")
_TIMES = ("modified", "updated", "updated_at", "created", "created_at", "date")

Page = tuple[str, Mapping[str, Any], str, datetime]  # a note's place, front matter, text and time


def import_(account: Account, path: Path, progress: Progress | None = None) -> Imported:
    """Take in the notes of a folder, or one note; a long one comes in passages. Links are not followed."""
    pages, left_out = _read(path)
    first = {name: id_of(account, FORMAT, _key(page), "1") for page in pages for name in _names(page)}
    items = [item for page in pages for item in _items(account, page, first)]
    done = take(account, FORMAT, batches(items), progress)
    return replace(done, left_out=(*left_out, *done.left_out))


def _read(path: Path) -> tuple[list[Page], list[Note]]:
    if path.is_dir() and not path.is_symlink():
        names, left_out = trees.files_below(path)
        notes = [name for name in names if name.endswith(".md") and not re.search(r"(^|/)\.", name)]
    else:
        path, notes, left_out = path.parent, [path.name], []
    pages = []
    for name in notes:
        try:
            pages.append(_page(path / name, name))
        except BadFile as error:
            left_out.append(Note(place=name, reason=error.message.removeprefix(f"{path / name}: ")))
    return pages, left_out


def _page(file: Path, name: str) -> Page:
    try:
        text = trees.read_bytes(file, _MOST_BYTES).decode("utf-8-sig")
        written = _FRONT.match(text)
        if written and len(written[1]) > _MOST_FRONT:
            raise BadFile(f"{file}: its front matter is longer than {_MOST_FRONT} characters")
        front = msgspec.yaml.decode(written[1]) if written else {}
    except UnicodeDecodeError as error:
        raise BadFile(f"{file}: not UTF-8") from error
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadFile(f"{file}: its front matter is no YAML") from error
    front = front if isinstance(front, Mapping) else {}
    lately = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    at = next((time_of(front[key], lately) for key in _TIMES if front.get(key)), lately)
    body = text[written.end() :] if written else text
    return name, front, body.replace("\r\n", "\n").strip(), at


def _title(page: Page) -> str:
    return _plain(page[1].get("title")) or Path(page[0]).stem


def _key(page: Page) -> str:
    """What names a note for good: its permalink, else its place."""
    return _plain(page[1].get("permalink")) or page[0]


def _names(page: Page) -> set[str]:
    """What a link to the note may call it."""
    return {_title(page), _key(page), Path(page[0]).stem, page[0].removesuffix(".md")}


def _plain(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float) else ""


def _items(account: Account, page: Page, first: Mapping[str, str]) -> Iterator[Item]:
    place, front, text, at = page
    linked = [first[name.strip()] for name in _LINK.findall(text) if name.strip() in first]
    limit = account.policy.kinds.fact.max_length or _MOST_BYTES
    for number, passage in enumerate(_passages(_title(page), text, limit), start=1):
        id_ = id_of(account, FORMAT, _key(page), str(number))
        about = dict.fromkeys(to for to in linked if to != id_) if number == 1 else ()
        yield (
            place,
            Memory(
                id=id_,
                kind="fact",
                text=passage,
                scope=account.scope or SHARED,
                category="note",
                tags=_tags(front.get("tags")),
                source="manual",
                at=at,
                links=tuple(Link(name="about", to=to) for to in about),
                data={FORMAT: {"title": _title(page), "place": place, "part": number, "text": passage}},
            ),
        )


def _tags(value: Any) -> tuple[str, ...]:
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    tags = [tag.strip().lstrip("#")[:100] for tag in listed[:200] if isinstance(tag, str)]
    return tuple(dict.fromkeys(tag for tag in tags if tag.strip()))


def _passages(title: str, text: str, limit: int) -> list[str]:
    """The note in pieces that a fact may hold, cut at paragraphs, each under the note's title."""
    head = f"{title[:200]}\n\n"
    room = max(limit - len(head), 1)
    pieces: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        for start in range(0, len(paragraph), room):
            part = paragraph[start : start + room]
            if pieces and len(pieces[-1]) + len(part) + 2 <= room:
                pieces[-1] += f"\n\n{part}"
            elif part.strip():
                pieces.append(part)
    return [piece if piece.startswith(f"# {title}") else head + piece for piece in pieces]
