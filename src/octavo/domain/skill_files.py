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

PREFIX = "skills/"  # how the topic of a skill begins
_LONGEST_NAME, _LONGEST_DESCRIPTION = 64, 1024
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_CAPABILITY = re.compile(r"^## Capability[ \t]*\n+(.+?)(?=\n\s*\n|\n#|\Z)", re.MULTILINE | re.DOTALL)
_OWN, _METADATA, _FRONT = ("name", "description", "license"), "metadata", "front"
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
    """The file of a skill; what else its front matter said, `allowed-tools` for instance, is kept."""
    title = " ".join(word.capitalize() for word in name.split("-"))
    is_plain = not _HEADING.search(memory.text)
    front, licensed = memory.data.get(_FRONT), memory.data.get("license")
    others = dict(front) if isinstance(front, Mapping) else {}
    marks = {**others.pop(_METADATA, {}), "octavo-id": memory.id, "octavo-rev": str(memory.rev)}
    marks |= {"octavo-approved": memory.approved} if memory.approved else {}
    marks |= {_PLAIN: title} if is_plain else {}
    own = memory.data.get("description")
    description = (_shortened(own) if isinstance(own, str) else "") or _derived(memory.text)
    fields = {"name": name, "description": description}
    fields |= {"license": str(licensed)} if licensed else {}
    body = f"{_wrapping(title) if is_plain else ''}{blocks.escaped(memory.text)}"
    return f"{blocks.front_matter({**fields, **others, _METADATA: marks})}\n{body}\n"


def parse(text: str) -> tuple[dict[str, Any], str | None]:
    """What a file says of its skill, and the id it bears; one without front matter is read too.

    It says no `description` where that follows from the text.
    """
    fields, body = blocks.front_of(text)
    others = {key: value for key, value in fields.items() if key not in _OWN}
    marks = metadata if isinstance(metadata := others.pop(_METADATA, None), Mapping) else {}
    body = body.removeprefix("\n").removesuffix("\n") if fields else body.strip("\n")
    plain = body.removeprefix(_wrapping(str(marks.get(_PLAIN))))
    text = blocks.unescaped(body if _HEADING.search(plain) else plain)
    if theirs := {key: value for key, value in marks.items() if not str(key).startswith("octavo-")}:
        others[_METADATA] = theirs
    description = str(fields.get("description") or "")
    data = {
        "description": description if description not in ("", _derived(text)) else None,
        "license": str(fields.get("license") or "") or None,
        _FRONT: msgspec.to_builtins(others, str_keys=True) or None,
    }
    return {"text": text, "data": data}, str(marks["octavo-id"]) if marks.get("octavo-id") else None


def _derived(text: str) -> str:
    """The description that a text gives itself: its capability, else its first words."""
    capability = _CAPABILITY.search(text)
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    return _shortened(capability[1] if capability else lines[0] if lines else "") or "A skill."


def _shortened(text: str) -> str:
    line = " ".join("".join(c for c in text if c.isprintable() or c.isspace()).split())
    return line if len(line) <= _LONGEST_DESCRIPTION else f"{line[: _LONGEST_DESCRIPTION - 1]}…"


def _wrapping(title: str) -> str:
    return f"# {title} Skill\n\n## Capability\n\n"
