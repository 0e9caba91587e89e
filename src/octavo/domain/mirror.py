"""The mirror, pure: what a file of the tree says of its memories, and what an edit of it asks for.

What a file `says` of a memory is a part of the memory's own fields: an edit lays it over them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import blocks, strict_json
from octavo.domain.memory import Memory
from octavo.domain.mirror_places import BEHAVIOR, EDITABLE, GENERAL, NEVER, STEPS, Place, skill_name
from octavo.domain.rules import GUARDRAIL, PROCEDURAL
from octavo.domain.sentences import shorten
from octavo.errors import BadFile, BadInput

Action = Literal["remember", "revise", "forget"]
_CREATED, _COUNTED = "created_at", "times_invoked"
_MARKS = "octavo-"
_MARK = re.compile(r"\s?\^([A-Za-z0-9][A-Za-z0-9_.:@-]{0,95})")
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_CAPABILITY = re.compile(r"^## Capability[ \t]*\n+(.+?)(?=\n\s*\n|\n#|\Z)", re.MULTILINE | re.DOTALL)
_OWN, _METADATA, _OTHERS = ("name", "description"), "metadata", "front"
_LONGEST_DESCRIPTION = 1024
TAUGHT = Place(path="behaviors.json", form="behaviors", kind="skill", category=BEHAVIOR)


def render(place: Place, path: str, memories: Sequence[Memory], uses: Mapping[str, int]) -> bytes:
    """The bytes of a file; they depend on nothing but the memories."""
    first = memories[0]
    match place.form:
        case "page" | "listed":
            said = page_of(place.page, memories)
        case "skill":
            said = _skill(first, path.split("/")[-2])
        case "text":
            said = f"{blocks.escaped(first.text)}\n"
        case "told":
            said = f"# {first.id}\n\n{blocks.escaped(first.text)}\n"
        case "behaviors":
            said = json_text({name_of(m): behavior_of(m, uses.get(m.id, 0)) for m in memories})
        case "json" | "kept":
            said = json_text(first.data if first.data or not first.text else {"text": first.text})
        case "talk":  # the file is called as the seed calls a session
            said = json_text(conversation(memories, path.rsplit("/", 1)[-1].removesuffix(".json")))
        case "run" if not path.endswith(STEPS):
            said = json_text(first.data.get("metadata", {}))
        case _:
            rows = map(_event, memories) if place.form == "events" else first.data.get("steps", ())
            said = "".join(json_text(row, indent=None) for row in rows)
    return said.encode()


def page_of(name: str, memories: Sequence[Memory]) -> str:
    """A page with its front matter: where its memories rest on episodes, of how many, and until when."""
    sections: dict[str, list[str]] = {"": []}
    for memory in memories:
        sections.setdefault(_section(memory), []).append(blocks.item(memory.text, memory.id))
    episodes = {id_ for memory in memories for id_ in memory.linked("evidence")}
    days = [str(memory.data.get("last_seen", ""))[:10] for memory in memories]
    learned = {"updated": max(days), "episodes": len(episodes)} if episodes and any(days) else {}
    parts = [blocks.front_matter({"page": name, **learned}), blocks.heading(title_of(name), "#")]
    for section, items in sections.items():
        head = blocks.heading(section, "##") + "\n" if section else ""
        parts += [head + "".join(items)] if items else []
    return "\n".join(parts)


def title_of(page: str) -> str:
    """What a page is headed by."""
    return page.replace("_", " ").capitalize()


def _section(memory: Memory) -> str:
    """What a memory stands under on its page."""
    sections = {"fact": memory.data.get("section"), "canon": memory.category, "register": memory.topic}
    section = sections.get(memory.kind)
    return section if isinstance(section, str) else ""


def _block(kind: str, section: str, text: str) -> dict[str, Any]:
    """What a block of a page says of its memory."""
    if kind == "fact":
        return {"text": text, "data": {"section": section or None}}
    return {"text": text, "category" if kind == "canon" else "topic": section or None}


def says(place: Place, memory: Memory) -> dict[str, Any]:
    """What a file says of a memory, to be compared with what `read` finds there."""
    if place.form == "page":
        return _block(place.kind, _section(memory), memory.text)
    (found,) = read(place, place.path, render(place, place.path, [memory], {}))
    return found.said


class Edit(Struct, frozen=True, kw_only=True):
    """One thing that a person did to a file, and what it asks for."""

    action: Action
    path: str
    line: int = 0
    id: str | None = None
    text: str = ""


class Held(Struct, frozen=True, kw_only=True):
    """A file, or a line of it, that stays as it is, and why."""

    path: str
    reason: str
    line: int = 0


class Synced(Struct, frozen=True, kw_only=True):
    """What a sync did, or would do: edits taken in, conflicts and refusals that stay, files written."""

    folder: str
    version: int
    edits: tuple[Edit, ...] = ()
    conflicts: tuple[Held, ...] = ()
    refused: tuple[Held, ...] = ()
    left_alone: tuple[Held, ...] = ()
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    is_done: bool = False


class Found(Struct, frozen=True, kw_only=True):
    """What a file says of one memory: what `says` gives, whose id it bears, and where it begins.

    `first` is data that only a new memory takes over: what is counted or dated is not a person's to change.
    """

    said: dict[str, Any]
    path: str
    id: str | None = None
    line: int = 1
    first: dict[str, Any] = {}


class Said(dict[str, Any]):
    """What a file says as JSON or YAML, where 1 is neither 1.0 nor true."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return json.dumps(self, sort_keys=True) == json.dumps(other, sort_keys=True)


def asides(place: Place, data: bytes) -> set[str]:
    """What a file says besides the words of its memories: headings, comments and the fields of its head."""
    if place.form == "behaviors":  # the name in one repeats what stands before its braces
        return {*_flat({name: {**one, "name": None} for name, one in _json(data).items()})}
    if place.form not in ("page", "skill"):
        return set()
    front, text = blocks.front_of(data.decode())
    names = {key: str(front[key]) for key in ("page", "name") if front.get(key)}
    listed = blocks.blocks_of(text, headings=True) if place.form == "page" else ()
    headings = {f"## {section.strip().casefold()}" for section, *_ in listed if section}
    return {*_flat({**front, **names}), *blocks.comments_of(data.decode()), *headings}


def _flat(fields: Mapping[str, Any], of: str = "") -> Iterator[str]:
    for name, value in fields.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f" of {name}")
        elif value is not None:
            yield f"{name}{of}: {value!r}"


def read(place: Place, path: str, data: bytes, former: Sequence[Place] = ()) -> list[Found]:
    """What a person's file says, memory by memory; BadInput if it cannot be read.

    A title that it bears from where it was in one of the `former` places is none of its words.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BadInput("it is not UTF-8") from error
    match place.form:
        case "page":
            return _read_page(place, path, text, former)
        case "skill":
            return [_read_skill(path, text, former)]
        case "text":
            plain = blocks.plain(text).removesuffix("\n")
            return [Found(said={"text": blocks.unescaped(plain)}, path=path)]
        case "json":
            value = _json(data)
            words = {"text": json_text(value, indent=None).rstrip()} if place.kind == "skill" else {}
            return [Found(said=Said(**words, data=value), path=path)]
        case "run" if path.endswith(STEPS):
            lines = strict_json.lines_of(data)
            return [Found(said=_object(step, f"line {n}: "), path=path, line=n) for n, step in lines]
        case "run":
            head = {"episode_id": path.split("/")[-2], **_json(data)}
            return [Found(said=head, path=path, id=str(head["episode_id"]))]
    found = []
    for name, value in _json(data).items():
        actions = value.get("actions") if isinstance(value, dict) else None
        if not name or len(name) > 64 or not isinstance(actions, list):
            raise BadInput(f"behavior {name!r} needs a name of at most 64 characters, and a list of actions")
        first = {key: value[key] for key in ("name", _COUNTED) if value.get(key)}
        line = text.count("\n", 0, max(text.find(json.dumps(name, ensure_ascii=False)), 0)) + 1
        said = taught(name, actions, value.get("description"))
        said["data"][_CREATED] = value.get(_CREATED)
        found.append(Found(said=said, path=path, line=line, first=first))
    return found


def _read_page(place: Place, path: str, text: str, former: Sequence[Place]) -> list[Found]:
    front, _ = blocks.front_of(text)
    if strange := [name for name in front if name not in ("page", "updated", "episodes")]:
        raise BadInput(f"its properties {', '.join(strange)} would be lost: take them out")
    names = (str(front.get("page", "")), *(one.page for one in (place, *former)))
    listed = list(blocks.blocks_of(text, [*map(title_of, names)]))
    topics = [section for section, *_ in listed if place.kind == "register" and section]
    if twice := [topic for topic in topics if topics.count(topic) > 1]:
        raise BadInput(f"two blocks stand under {twice[0]!r}, and a register says one thing")
    return [
        Found(said=_block(place.kind, section, said), path=path, id=id_, line=line)
        for section, said, id_, line, _ in listed
    ]


def _skill(memory: Memory, name: str) -> str:
    """The file of a skill; what else its front matter said, `license` or `allowed-tools`, is kept."""
    front = memory.data.get(_OTHERS)
    others = dict(front) if isinstance(front, Mapping) else {}
    marks = {**others.pop(_METADATA, {}), "octavo-id": memory.id, "octavo-rev": str(memory.rev)}
    marks |= {"octavo-approved": memory.approved} if memory.approved else {}
    description = _description(memory.text, memory.data.get("description"))
    fields = {"name": name, "description": description, **others, _METADATA: marks}
    body = blocks.escaped(memory.text)
    body = body if _HEADING.search(body) else f"{_wrapping(name)}{body}"
    return f"{blocks.front_matter(fields)}\n{body}\n"


def _read_skill(path: str, text: str, former: Sequence[Place]) -> Found:
    """What a file says of its skill, and the id it bears; one without front matter is read too.

    It says no `description` where that follows from the text.
    """
    fields, body = blocks.front_of(text)
    others = {key: value for key, value in fields.items() if key not in _OWN}
    marks = metadata if isinstance(metadata := others.pop(_METADATA, None), Mapping) else {}
    body = body.removeprefix("\n").removesuffix("\n") if fields else body.strip("\n")
    plain = body
    paths = (path, *(one.path for one in former))
    for name in (str(fields.get("name")), *(path.split("/")[-2] for path in paths)):
        plain = plain.removeprefix(_wrapping(name))
    text = blocks.unescaped(body if _HEADING.search(plain) else plain)
    if theirs := {key: value for key, value in marks.items() if not key.startswith(_MARKS)}:
        others[_METADATA] = theirs
    description = str(fields.get("description") or "")
    data = {
        "description": description if description not in ("", _description(text)) else None,
        _OTHERS: others or None,
    }
    return Found(said=Said(text=text, data=data), path=path, id=str(marks.get("octavo-id") or "") or None)


def _description(text: str, own: Any = None) -> str:
    """A skill's own description, else what its text gives: its capability, or its first words."""
    capability = _CAPABILITY.search(text)
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    for said in (own, capability[1] if capability else lines[0] if lines else ""):
        plain = "".join(c for c in said if c.isprintable() or c.isspace()) if isinstance(said, str) else ""
        if short := shorten(" ".join(plain.split()), _LONGEST_DESCRIPTION):
            return short
    return "A skill."


def _wrapping(name: str) -> str:
    """The headings of a skill that is one text: they are its file's alone."""
    title = " ".join(word.capitalize() for word in name.split("-"))
    return f"# {title} Skill\n\n## Capability\n\n"


def named(one: Found, lost: Collection[str], is_known: Callable[[str], bool]) -> Found:
    """A block of a page with the id of its memory; what is nobody's id is text.

    Where blocks were joined, or lines added below one, ids stand in the midst of it: they are `lost` as ends
    of blocks, and the last is that of the block if it bears none.
    """
    is_nobodys = one.id is not None and not is_known(one.id)
    text = f"{one.said['text']} ^{one.id}" if is_nobodys else one.said["text"]
    inside = [id_ for id_ in _MARK.findall(text) if id_ in lost]
    text = _MARK.sub(lambda mark: "" if mark[1] in inside else mark[0], text)
    own = None if is_nobodys else one.id
    return replace(one, said={**one.said, "text": text}, id=own or (inside[-1] if inside else None))


def fields_of(
    place: Place, said: Mapping[str, Any], old: Memory | None, first: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What a memory must be to say this there: the fields to revise, or all that a new one needs."""
    fields = dict(said)
    if "data" in said and place.form != "json":
        older = (first or {}) if old is None else old.data
        kept = {name: value for name, value in older.items() if name not in said["data"]}
        fields["data"] = kept | {k: v for k, v in said["data"].items() if v is not None}
    if old is None and place.form in EDITABLE:
        fields = {"kind": place.kind, "topic": place.topic, "category": place.category, **fields}
    elif place.kind == "fact":
        fields["category"] = place.category
    if fields.get("category") == GENERAL and not (old and old.category):
        fields["category"] = None
    is_approved = re.match("(scopes/[^/]+/)?procedural/", place.path)
    if is_approved and not (old and old.approved):  # who moves a skill there approves it
        fields["category"] = GUARDRAIL if place.topic == "guardrails" else PROCEDURAL
    if old and place.form == "skill" and skill_name(old.topic or old.id) != place.path.split("/")[-2]:
        fields["topic"] = place.topic
    return fields


def written(place: Place, one: Found, old: Memory | None) -> Memory:
    """The memory that says what was found, to be shown again."""
    fields = fields_of(place, one.said, old, one.first)
    return replace(old, **fields) if old else Memory(id=one.id or "new", at=NEVER, **fields)


def taught(name: str, actions: Sequence[Any], description: Any = None) -> dict[str, Any]:
    """What a file says of a behaviour."""
    data = {"name": name, "actions": [str(a) for a in actions], "description": str(description or "")}
    return {"text": f"{name}: {' -> '.join(data['actions'])}", "topic": f"{BEHAVIOR}/{name}", "data": data}


def name_of(memory: Memory) -> str:
    """What a behaviour is called."""
    return str(memory.data.get("name") or (memory.topic or memory.id).removeprefix(f"{BEHAVIOR}/"))


def behavior_of(memory: Memory, uses: int) -> dict[str, Any]:
    """A behaviour as behaviors.json has it."""
    data = memory.data
    actions = data.get("actions")
    return {
        "name": name_of(memory),
        "actions": [str(a) for a in actions] if isinstance(actions, list | tuple) else [],
        _CREATED: str(data.get(_CREATED) or memory.at.isoformat()),
        "description": str(data.get("description") or ""),
        _COUNTED: uses + (counted if isinstance(counted := data.get(_COUNTED), int) else 0),
    }


def conversation(episodes: Sequence[Memory], session: str) -> dict[str, Any]:
    """A session in the seed's form."""
    turns = [
        {"timestamp": (turn.at or memory.at).isoformat(), "role": turn.speaker, "content": turn.text}
        | {name: turn.data[name] for name in ("intent", "action") if name in turn.data}
        for memory in episodes
        for turn in memory.turns
    ]
    notes = [turn.data for memory in episodes for turn in memory.turns]
    denials = sum(bool(note.get("sandbox_denied")) for note in notes)
    return {
        "session_id": session,
        "start_time": turns[0]["timestamp"] if turns else None,
        "end_time": turns[-1]["timestamp"] if turns else None,
        "turns": turns,
        "behaviors_taught": list(dict.fromkeys(n["taught"] for n in notes if n.get("taught"))),
        "sandbox_denials": denials,
        "success": denials == 0,
    }


def _event(memory: Memory) -> dict[str, Any]:
    plain = {"timestamp": memory.at.isoformat(), "event_type": memory.category, "payload": memory.text}
    return {"id": memory.id, **(dict(memory.data) if "event_type" in memory.data else plain)}


def _json(data: bytes) -> dict[str, Any]:
    return _object(strict_json.value_of(data, "it is no JSON"))


def _object(value: Any, where: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise BadInput(where + (value.message if isinstance(value, BadFile) else "it is no JSON object"))


def json_text(value: Any, indent: int | None = 2) -> str:
    """JSON as people read it in a file, or without an indent as one line of a file."""
    return json.dumps(value, ensure_ascii=False, indent=indent, default=msgspec.to_builtins) + "\n"
