"""SKILL.md in the Agent Skills format, pure: a skill as front matter and Markdown, and back."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

import msgspec

from octavo.domain import blocks
from octavo.domain.memory import Memory
from octavo.errors import BadInput

PREFIX = "skills/"  # how the topic of a skill begins
_LONGEST_NAME, _LONGEST_DESCRIPTION = 64, 1024
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_CAPABILITY = re.compile(r"^## Capability[ \t]*\n+(.+?)(?=\n\s*\n|\n#|\Z)", re.MULTILINE | re.DOTALL)
_PLAIN = "octavo-plain"  # set where the skill is one text, and its headings are the file's alone


def name_of(topic: str) -> str:
    """The name that a topic has as a folder: lower-case letters, digits and hyphens, kept apart by a hash."""
    said = topic.removeprefix(PREFIX)
    plain = said.replace("_", "-")
    slug = unicodedata.normalize("NFKC", said).lower()
    slug = re.sub("-+", "-", "".join(c if c.isalnum() else "-" for c in slug)).strip("-")
    if slug == plain and len(slug) <= _LONGEST_NAME:
        return slug
    mark = hashlib.sha256(said.encode()).hexdigest()[:6]
    return f"{slug[: _LONGEST_NAME - 7].strip('-')}-{mark}".removeprefix("-")


def render(memory: Memory, name: str) -> str:
    """The file of a skill."""
    is_plain = not _HEADING.search(memory.text)
    title = " ".join(word.capitalize() for word in name.split("-"))
    body = blocks.escaped(memory.text)
    if is_plain:
        body = f"{_wrapping(title)}{body}"
    metadata = {"octavo-id": memory.id, "octavo-rev": str(memory.rev)}
    metadata |= {"octavo-approved": memory.approved} if memory.approved else {}
    metadata |= {_PLAIN: title} if is_plain else {}
    fields: dict[str, Any] = {"name": name, "description": description_of(memory)}
    if licensed := memory.data.get("license"):
        fields["license"] = str(licensed)
    return f"{blocks.front_matter(fields | {'metadata': metadata})}\n{body}\n"


def parse(text: str) -> tuple[dict[str, Any], str | None]:
    """What a file says, as `said_by` gives it, and the id it bears; one without front matter is read too."""
    front, body = blocks.front_of("\n".join(blocks.lines_of(text)))
    fields = {} if front is None else _fields(front)
    metadata = fields.get("metadata")
    marks: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    body = body.removeprefix("\n").removesuffix("\n") if front is not None else body.strip("\n")
    plain = body.removeprefix(_wrapping(str(marks.get(_PLAIN))))
    text = blocks.unescaped(body if _HEADING.search(plain) else plain)
    said = _said(text, str(fields.get("description") or ""), fields.get("license"))
    return said, str(marks["octavo-id"]) if marks.get("octavo-id") else None


def said_by(memory: Memory) -> dict[str, Any]:
    """What the file of a skill says of it; there is no `description` where it follows from the text."""
    return _said(memory.text, description_of(memory), memory.data.get("license"))


def _said(text: str, description: str, licensed: Any) -> dict[str, Any]:
    own = description if description != _derived(text) else ""
    return {"text": text, "data": {"description": own or None, "license": str(licensed or "") or None}}


def description_of(memory: Memory) -> str:
    """What the skill is for, in at most 1,024 characters on one line."""
    own = memory.data.get("description")
    return (_shortened(own) if isinstance(own, str) else "") or _derived(memory.text)


def _derived(text: str) -> str:
    """The description that a text gives itself: its capability, else its first words."""
    capability = _CAPABILITY.search(text)
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    return _shortened(capability[1] if capability else lines[0] if lines else "") or "A skill."


def _shortened(text: str) -> str:
    line = "".join(c for c in " ".join(text.split()) if c.isprintable())
    return line if len(line) <= _LONGEST_DESCRIPTION else f"{line[: _LONGEST_DESCRIPTION - 1]}…"


def _wrapping(title: str) -> str:
    return f"# {title} Skill\n\n## Capability\n\n"


def _fields(front: str) -> Mapping[str, Any]:
    try:
        value = msgspec.yaml.decode(front.encode())
    except msgspec.DecodeError as error:
        raise BadInput(f"the front matter is no YAML: {str(error).splitlines()[0]}") from error
    return value if isinstance(value, Mapping) else {}
