"""A folder of Markdown notes, as basic-memory and Obsidian keep them: front matter, text and links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from octavo.documents import trees
from octavo.documents.imports.taking import Group, Item, batches, fact_of, id_of, time_of
from octavo.domain.memory import Link
from octavo.engine.account import Account
from octavo.errors import BadFile

FORMAT = "markdown"
_MOST_BYTES, _MOST_FRONT = 4_000_000, 64_000
_FRONT = re.compile(r"\A---\r?\n(.*?)\r?\n---\s*?(?:\n|\Z)", re.DOTALL)
_LINK = re.compile(r"\[\[([^][|#\n]{1,200}+)[^][\n]{0,200}+\]\]")
_TIMES = ("modified", "updated", "updated_at", "created", "created_at", "date")

# A note: its place, title, name for good, tags, text and time.
Page = tuple[str, str, str, tuple[str, ...], str, datetime]


def notes(account: Account, path: Path) -> list[Group]:
    """The notes of a folder, or one note; a long one comes in passages. Links are not followed."""
    items: list[Item] = []
    if path.is_dir() and not path.is_symlink():
        names, links = trees.files_below(path)
        items += [(note.place, note.reason) for note in links]
        names = [name for name in names if name.endswith(".md") and not re.search(r"(^|/)\.", name)]
    else:
        path, names = path.parent, [path.name]
    pages = []
    for name in names:
        try:
            pages.append(_page(path / name, name, items))
        except BadFile as error:
            items.append((name, error.message.removeprefix(f"{path / name}: ")))
    first: dict[str, str] = {}  # the first passage of each note, by all that a link may call it
    for place, title, key, *_ in pages:
        called = {title, key, Path(place).stem, place.removesuffix(".md")}
        first |= dict.fromkeys(called, id_of(account, FORMAT, key, "1"))
    return batches([*items, *(item for page in pages for item in _passages(account, page, first))])


def _page(file: Path, place: str, items: list[Item]) -> Page:
    try:
        text = trees.read_bytes(file, _MOST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadFile(f"{file}: not UTF-8") from error
    written, front = _FRONT.match(text), None
    if written and len(written[1]) > _MOST_FRONT:
        raise BadFile(f"{file}: its front matter is longer than {_MOST_FRONT} characters")
    try:
        front = msgspec.yaml.decode(written[1]) if written else None
    except (msgspec.DecodeError, ValueError, RecursionError):
        items.append((place, "its front matter is no YAML and is left out"))
    told = front if isinstance(front, Mapping) else {}
    lately = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    at = next((time_of(told[key], lately) for key in _TIMES if told.get(key)), lately)
    names = {name: str(told[name]) for name in told if isinstance(told[name], str | int | float)}
    title, key = names.get("title") or Path(place).stem, names.get("permalink") or place
    body = text[written.end() :] if written else text
    return place, title, key, _tags(told.get("tags")), body.replace("\r\n", "\n").strip(), at


def _passages(account: Account, page: Page, first: Mapping[str, str]) -> Iterator[Item]:
    """A note's passages as memories; the first of them has its links."""
    place, title, key, tags, text, at = page
    linked = [first[name.strip()] for name in _LINK.findall(text) if name.strip() in first]
    passages = _cut(title, text, account.policy.kinds.fact.max_length or _MOST_BYTES)
    if not passages:
        yield place, "there is no text in it"
    for number, passage in enumerate(passages, start=1):
        id_ = id_of(account, FORMAT, key, str(number))
        about = dict.fromkeys(to for to in linked if to != id_) if number == 1 else ()
        how: dict[str, Any] = {"category": "note", "tags": tags, "source": "manual"}
        how["links"] = tuple(Link(name="about", to=to) for to in about)
        data = {FORMAT: {"title": title, "place": place, "part": number, "text": passage}}
        yield place, fact_of(account, id_, passage, at, data, **how)


def _tags(value: Any) -> tuple[str, ...]:
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    tags = [tag.strip().lstrip("#")[:100] for tag in listed[:200] if isinstance(tag, str)]
    return tuple(dict.fromkeys(tag for tag in tags if tag.strip()))


def _cut(title: str, text: str, limit: int) -> list[str]:
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
