"""Where the mirror shows a memory, pure: places of the tree, names that every file system can hold."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

from msgspec import Struct

from octavo.domain import blocks
from octavo.domain.memory import SCOPE, SHARED, STATE, Kind, Memory
from octavo.errors import BadInput

Form = Literal[
    "page", "skill", "text", "json", "behaviors", "talk", "events", "run", "told", "listed", "kept"
]
EDITABLE: tuple[Form, ...] = ("page", "skill", "text", "json", "behaviors")
BEHAVIOR = "behavior"
BLOCKS = 1000  # on one page; more go to a second one
GENERAL, STEPS = "general", "steps.jsonl"
SKILLS = "skills/"  # how the topic of a skill begins
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # as a name, on some systems
_UNSAFE = re.compile(r"[\x00-\x1f<>:\"/\\|?*^#\[\]]")
_STATE = {"category": STATE}
_NUMBERED = re.compile(r"(.*?)(/SKILL\.md|\.\w+)")
_LONGEST_SKILL = 64
NEVER = datetime(1970, 1, 1, tzinfo=UTC)

# The tree: a path and what it is named by, its form, and the kind and fields of what is shown there; the
# first row that fits counts.
_ROWS: tuple[tuple[str, str, Form, Kind, dict[str, Any]], ...] = (
    ("semantic/knowledge/{}.md", "category", "page", "fact", {}),
    ("semantic/canon.md", "", "page", "canon", {}),
    ("episodic/checkpoints/ckpt_latest.json", "", "kept", "register", {**_STATE, "topic": "ckpt_latest"}),
    ("episodic/checkpoints/ckpt_backup.json", "", "kept", "register", {**_STATE, "topic": "ckpt_backup"}),
    ("semantic/states/{}.json", "topic", "json", "register", _STATE),
    ("semantic/registers.md", "", "page", "register", {}),
    ("semantic/behaviors/behaviors.json", "", "behaviors", "skill", {"category": BEHAVIOR}),
    ("procedural/AGENTS.md", "", "text", "skill", {"topic": "agents", "approved": True}),
    ("procedural/capabilities.json", "", "json", "skill", {"topic": "capabilities", "approved": True}),
    ("procedural/guardrails.json", "", "json", "skill", {"topic": "guardrails", "approved": True}),
    ("procedural/sandbox_rules.json", "", "json", "skill", {"topic": "sandbox_rules", "approved": True}),
    ("procedural/mcp.json", "", "json", "skill", {"topic": "mcp", "approved": True}),
    ("procedural/skills/{}/SKILL.md", "skill", "skill", "skill", {"approved": True}),
    ("semantic/skills/{}/SKILL.md", "skill", "skill", "skill", {}),
    ("episodic/events/events.jsonl", "", "events", "episode", {"category": "event"}),
    ("episodic/events/game_events.jsonl", "", "events", "episode", {"category": "game_event"}),
    ("episodic/rlds_episodes/{}/metadata.json", "id", "run", "episode", {"category": "rlds"}),
    ("episodic/conversations/{}.json", "session", "talk", "episode", {}),
    ("semantic/assemblies.md", "", "listed", "assembly", {}),
    ("semantic/cores/{}.md", "id", "told", "core", {}),
    ("semantic/spheres/{}.md", "id", "told", "sphere", {}),
)
# What every tree has, from the first day on.
FOLDERS = sorted({re.sub(r"/(\{\}.*|[^/{]*)$", "", path) for path, *_ in _ROWS})


@cache
def safe(name: str) -> str:
    """A name that is one on every file system: NFC, lower-case, nothing reserved; a hash tells it apart."""
    plain = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
    slug = _UNSAFE.sub("-", plain).strip(". ")[:80]
    if not slug or RESERVED.fullmatch(slug) or re.search(r"-\d{4}$", slug):
        slug = f"{slug}_"
    if slug == name:
        return slug
    return f"{slug}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def skill_name(topic: str) -> str:
    """The name that a topic has as a folder: lower-case letters, digits and hyphens, kept apart by a hash."""
    said = topic.removeprefix(SKILLS)
    plain = said.replace("_", "-")
    slug = re.sub(r"[\W_]+", "-", unicodedata.normalize("NFKC", said).lower()).strip("-")
    if slug == plain and len(slug) <= _LONGEST_SKILL:
        return slug
    mark = hashlib.sha256(said.encode()).hexdigest()[:6]
    return f"{slug[: _LONGEST_SKILL - 7].strip('-')}-{mark}".removeprefix("-")


# What a path is named by, as a memory has it; nothing if it has no such thing.
_NAMES: dict[str, Callable[[Memory, Callable[[str], str]], str]] = {
    "category": lambda memory, _: safe(memory.category or GENERAL),
    "topic": lambda memory, _: safe(memory.topic) if memory.topic else "",
    "skill": lambda memory, _: skill_name(memory.topic or memory.id),
    "id": lambda memory, _: safe(memory.id),
    "session": lambda memory, named: safe(
        named(memory.sandbox) if memory.sandbox else f"{memory.at:%Y-%m-%d}"
    ),
}


class Place(Struct, frozen=True, kw_only=True):
    """A file of the tree, or the first of several that are one page: its form and what its memories are."""

    path: str
    form: Form
    kind: Kind
    scope: str = SHARED
    category: str | None = None
    topic: str | None = None

    @property
    def page(self) -> str:
        """What it is called if it is a page."""
        return self.category or {"register": "registers", "assembly": "assemblies"}.get(self.kind, self.kind)


def place_of(memory: Memory, session_name: Callable[[str], str] = str) -> Place | None:
    """Where the tree shows a memory; `session_name` gives the file's name for a session."""
    for path, variable, form, kind, fields in _ROWS:
        if kind == memory.kind and all(
            getattr(memory, name) == value or (value is True and getattr(memory, name))
            for name, value in fields.items()
        ):
            name = _NAMES[variable](memory, session_name) if variable else path
            if not name:
                continue
            scope = "" if memory.scope == SHARED else f"scopes/{safe(memory.scope)}/"
            category = fields.get("category") or (memory.category or GENERAL if kind == "fact" else None)
            own = memory.topic if form in ("json", "text", "skill") else None
            topic = {"id": memory.id, "session": memory.sandbox}.get(variable, own)
            told: dict[str, Any] = {"form": form, "kind": kind, "category": category, "topic": topic}
            return Place(path=scope + path.format(name), scope=memory.scope, **told)
    return None


def grouped(
    memories: Iterable[Memory], session_name: Callable[[str], str] = str
) -> dict[str, tuple[Place, list[Memory]]]:
    """Memories that the tree shows by the path of their place, each with the place."""
    groups: dict[str, tuple[Place, list[Memory]]] = {}
    for memory in memories:
        if (place := place_of(memory, session_name)) is not None:
            groups.setdefault(place.path, (place, []))[1].append(memory)
    return groups


def recognise(path: str, text: str) -> Place | None:
    """What a person's own file is: a place of the tree that can be edited, or nothing of ours."""
    in_scope = re.fullmatch(f"scopes/({SCOPE.pattern})/(.+)", path)
    scope, inside = in_scope.groups() if in_scope else (SHARED, path)
    own = re.sub(f"{STEPS}$", "metadata.json", inside)
    own = own.replace("procedural/agents.md", "procedural/AGENTS.md")  # the seed's own becomes this one
    for row, variable, form, kind, fields in _ROWS:
        named = re.fullmatch(row.replace("{}", "([^/.][^/]*)"), own)
        if named and form in (*EDITABLE, "run"):
            made: dict[str, Any] = {"id": "x", "at": NEVER, "kind": kind, "scope": scope, **fields}
            made |= {"approved": "person"} if "approved" in fields else {}
            if variable:
                name = named[1]
                if kind == "fact":  # a page is what its front matter says, unless it was renamed since
                    first, said = re.sub(r"-\d{4}$", "", name), said_page(text)
                    name = said if said and safe(said) in (name, first) else first
                made |= {"topic": f"{SKILLS}{name}"} if variable == "skill" else {variable: name}
            place = place_of(Memory(**made))
            return place if place and place.form == form else None  # a name no system can hold is another
    return None


def said_page(text: str) -> str:
    """The page that a file's front matter says it is; nothing if it says none."""
    with suppress(BadInput):  # whoever reads the page says so
        return str(blocks.front_of(text)[0].get("page", ""))
    return ""


def is_copy(path: str) -> bool:
    """Whether a file is the account's side of a conflict, laid beside the person's."""
    return re.search(r"\.octavo-\d+(\.\w+)?$", path) is not None


def apart(place: Place, memories: Sequence[Memory]) -> dict[str, list[Memory]]:
    """The files of a place: one each where two memories would share a name, two for a robot's run."""
    if place.form in ("skill", "json", "text") and (named := _NUMBERED.fullmatch(place.path)):
        numbers = ["", *(f"-{n}" for n in range(2, len(memories) + 1))]
        return {f"{named[1]}{n}{named[2]}": [m] for n, m in zip(numbers, memories, strict=False)}
    paths = [place.path] + [place.path.replace("metadata.json", STEPS)] * (place.form == "run")
    return {path: list(memories) for path in paths if memories}
