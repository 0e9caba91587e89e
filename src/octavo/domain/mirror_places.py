"""Where the mirror shows a memory, pure: places of the tree, names that every file system can hold."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from msgspec import Struct

from octavo.domain import blocks, skill_files
from octavo.domain.filters import Filter
from octavo.domain.memory import SHARED, STATE, Kind, Memory

Form = Literal["page", "skill", "text", "json", "behaviors", "talk", "events", "run", "told"]
EDITABLE: tuple[Form, ...] = ("page", "skill", "text", "json", "behaviors")
BEHAVIOR = "behavior"
BLOCKS = 1000  # on one page; more go to a second one
GENERAL, STEPS = "general", "steps.jsonl"
_RULES = ("capabilities", "guardrails", "sandbox_rules", "mcp")
_CHECKPOINTS = ("ckpt_latest", "ckpt_backup")
_EVENTS = {"event": "events", "game_event": "game_events"}
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_UNSAFE = re.compile(r"[\x00-\x1f<>:\"/\\|?*^#\[\]]")
_PAGE = re.compile(r"(.+?)(?:-\d{4})?\.md")
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


# What every tree has, from the first day on.
FOLDERS = (
    *("procedural/skills", "semantic/skills", "semantic/knowledge", "semantic/behaviors"),
    *("episodic/conversations", "episodic/events", "episodic/rlds_episodes", "episodic/checkpoints"),
)


class Place(Struct, frozen=True, kw_only=True):
    """A file of the tree, or the first of several that are one page: its form and what its memories are."""

    path: str
    form: Form
    kind: Kind
    scope: str = SHARED
    category: str | None = None
    topic: str | None = None

    @property
    def query(self) -> Filter:
        """What finds its memories, and few others."""
        session = self.topic if self.form == "talk" else None
        by_topic = self.topic if self.form in ("json", "text") else None
        only = None if self.category in (None, GENERAL) else self.category
        return Filter(
            kinds=(self.kind,), scopes=(self.scope,), sandbox=session, topic=by_topic, category=only
        )


def place_of(memory: Memory, session_name: Callable[[str], str] = str) -> Place | None:
    """Where the tree shows a memory; `session_name` gives the file's name for a session."""
    match memory.kind:
        case "episode":
            return _episodic(memory, session_name)
        case "skill":
            return _skill(memory)
        case "fact":
            name = memory.category or GENERAL
            return _place(memory, f"semantic/knowledge/{safe(name)}.md", "page", category=name)
        case "canon":
            return _place(memory, "semantic/canon.md", "page")
        case "register" if memory.category == STATE and memory.topic in _CHECKPOINTS:
            return _place(memory, f"episodic/checkpoints/{memory.topic}.json", "told", category=STATE)
        case "register" if memory.category == STATE and memory.topic:
            path = f"semantic/states/{safe(memory.topic)}.json"
            return _place(memory, path, "json", category=STATE, topic=memory.topic)
        case "register":
            return _place(memory, "semantic/registers.md", "page")
        case "assembly":
            return _place(memory, "semantic/assemblies.md", "told")
        case _:
            return _place(memory, f"semantic/{memory.kind}s/{safe(memory.id)}.md", "told")


def _skill(memory: Memory) -> Place:
    topic = memory.topic or memory.id
    if memory.category == BEHAVIOR:
        return _place(memory, "semantic/behaviors/behaviors.json", "behaviors", category=BEHAVIOR)
    if memory.approved and topic == "agents":
        return _place(memory, "procedural/AGENTS.md", "text", topic=topic)
    if memory.approved and topic in _RULES:
        return _place(memory, f"procedural/{topic}.json", "json", topic=topic)
    return _place(memory, f"{memory.layer}/skills/{skill_files.name_of(topic)}/SKILL.md", "skill")


def _episodic(memory: Memory, session_name: Callable[[str], str]) -> Place:
    if memory.category in _EVENTS:
        path = f"episodic/events/{_EVENTS[memory.category]}.jsonl"
        return _place(memory, path, "events", category=memory.category)
    if memory.category == "rlds":
        path = f"episodic/rlds_episodes/{safe(memory.id)}/metadata.json"
        return _place(memory, path, "run", category="rlds", topic=memory.id)
    name = session_name(memory.sandbox) if memory.sandbox else f"{memory.at:%Y-%m-%d}"
    return _place(memory, f"episodic/conversations/{safe(name)}.json", "talk", topic=memory.sandbox)


def _place(
    memory: Memory, path: str, form: Form, *, category: str | None = None, topic: str | None = None
) -> Place:
    inside = path if memory.scope == SHARED else f"scopes/{safe(memory.scope)}/{path}"
    return Place(path=inside, form=form, kind=memory.kind, scope=memory.scope, category=category, topic=topic)


def recognise(path: str, text: str) -> Place | None:
    """What a person's own file is: a place of the tree that can be edited, or nothing of ours."""
    scope, inside = SHARED, path
    if path.startswith("scopes/"):
        _, scope, inside = path.split("/", 2) if path.count("/") > 1 else ("", "", "")
    match inside.split("/"):
        case ["semantic", "knowledge", name] if page := _PAGE.fullmatch(name):
            said = _front_page(text) or page[1]
            if safe(said) not in (page[1], name.removesuffix(".md")):
                said = page[1]  # a page that was renamed
            made = Memory(id="x", kind="fact", at=_NEVER, scope=scope, category=said)
        case ["semantic", "canon.md" | "registers.md" as name]:
            made = Memory(id="x", kind="canon" if name == "canon.md" else "register", at=_NEVER, scope=scope)
        case ["semantic" | "procedural" as layer, "skills", name, "SKILL.md"]:
            approved = "person" if layer == "procedural" else None
            topic = f"{skill_files.PREFIX}{name}"
            made = Memory(id="x", kind="skill", at=_NEVER, scope=scope, topic=topic, approved=approved)
        case ["semantic", "states", name] if name.endswith(".json"):
            topic = name.removesuffix(".json")
            made = Memory(id="x", kind="register", at=_NEVER, scope=scope, topic=topic, category=STATE)
        case ["semantic", "behaviors", "behaviors.json"]:
            made = Memory(id="x", kind="skill", at=_NEVER, scope=scope, topic="x", category=BEHAVIOR)
        case ["episodic", "rlds_episodes", name, "metadata.json" | "steps.jsonl"]:
            made = Memory(id=name, kind="episode", at=_NEVER, scope=scope, category="rlds")
        case ["procedural", name]:
            topic = {"AGENTS.md": "agents", "agents.md": "agents"}.get(name, name.removesuffix(".json"))
            made = Memory(id="x", kind="skill", at=_NEVER, scope=scope, topic=topic, approved="person")
        case _:
            return None
    place = place_of(made)
    whole = path.removesuffix(STEPS) + "metadata.json" if path.endswith(STEPS) else _first_page(path)
    return place if place is not None and place.path in (path, whole) else None


def safe(name: str) -> str:
    """A name that is one on every file system: NFC, lower-case, nothing reserved; a hash tells it apart."""
    slug = _UNSAFE.sub("-", unicodedata.normalize("NFC", name)).casefold().strip(". ")[:80]
    if not slug or _RESERVED.fullmatch(slug) or re.search(r"-\d{4}$", slug):
        slug = f"{slug}_"
    if slug == name and slug == unicodedata.normalize("NFC", slug):
        return slug
    return f"{slug}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def apart(place: Place, memories: Sequence[Memory]) -> dict[str, list[Memory]]:
    """The files of a place: several for a long page, one each where two memories would share a name."""
    folder, slash, file = place.path.rpartition("/")
    if place.form == "skill":
        above, _, name = folder.rpartition("/")
        return {f"{above}/{_numbered(name, n)}/{file}": [m] for n, m in enumerate(memories, 1)}
    if place.form in ("json", "text") and len(memories) > 1:
        stem, dot, ending = file.rpartition(".")
        return {f"{folder}{slash}{_numbered(stem, n)}{dot}{ending}": [m] for n, m in enumerate(memories, 1)}
    if place.form == "run" and memories:
        return {place.path: list(memories), f"{folder}/{STEPS}": list(memories)}
    return {place.path: list(memories)} if memories else {}


def paged(path: str, numbers: Mapping[str, int], memories: Sequence[Memory]) -> dict[str, list[Memory]]:
    """A long page as several; `numbers` says of each memory which one it was of all there ever were."""
    pages: dict[str, list[Memory]] = {}
    for memory in memories:
        number = numbers[memory.id] // BLOCKS + 1
        name = path if number == 1 else f"{path.removesuffix('.md')}-{number:04d}.md"
        pages.setdefault(name, []).append(memory)
    return pages


def is_file_of(path: str, place: Place) -> bool:
    """Whether a path is that of a place, or of a further page of it."""
    return path == place.path or (path.startswith(place.path[:-3]) and _first_page(path) == place.path)


def _front_page(text: str) -> str | None:
    front, _ = blocks.front_of("\n".join(blocks.lines_of(text)))
    line = next((line for line in (front or "").splitlines() if line.startswith("page:")), "page:")
    said = line.removeprefix("page:").strip()
    try:
        return str(json.loads(said)) if said.startswith('"') else said or None
    except ValueError:
        return None


def _first_page(path: str) -> str:
    return re.sub(r"-\d{4}\.md$", ".md", path)


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}-{number}"
