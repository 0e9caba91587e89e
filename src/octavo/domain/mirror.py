"""The mirror, pure: what a file of the tree says of its memories, and what an edit of it asks for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from octavo.domain import blocks, runs, skill_files
from octavo.domain.blocks import Block
from octavo.domain.memory import STATE, Memory
from octavo.domain.mirror_places import BEHAVIOR, GENERAL, STEPS, Place
from octavo.domain.rules import GUARDRAIL, PROCEDURAL
from octavo.errors import BadInput

_COUNTED = "times_invoked"


def render(place: Place, path: str, memories: Sequence[Memory], uses: Mapping[str, int]) -> bytes:
    """The bytes of a file; they depend on nothing but the memories."""
    match place.form:
        case "page" | "events":
            return joined(place, (piece(place, memory) for memory in memories))
        case "skill":
            said = skill_files.render(memories[0], path.split("/")[-2])
        case "text":
            said = f"{blocks.escaped(memories[0].text)}\n"
        case "json":
            said = _json(json_of(memories[0]))
        case "behaviors":
            said = _json({name_of(m): behavior_of(m, uses.get(m.id, 0)) for m in memories})
        case _:
            said = _read_only(place, path, memories)
    return said.encode()


def piece(place: Place, memory: Memory) -> tuple[str, str]:
    """What one memory adds to a file of many, and the section it stands in."""
    if place.form == "events":
        return "", f"{_line(_event(memory))}\n"
    block = block_of(memory)
    return block.section, blocks.item(block)


def joined(place: Place, pieces: Iterable[tuple[str, str]]) -> bytes:
    """The bytes of a file of many."""
    if place.form == "events":
        return "".join(line for _, line in pieces).encode()
    title = place.category or {"canon": "Canon", "register": "Registers"}[place.kind]
    name = place.category or title.lower()
    return blocks.page(title.replace("_", " ").capitalize(), pieces, {"page": name}).encode()


def pieces_of(place: Place, ids: Iterable[str], data: bytes) -> dict[str, tuple[str, str]]:
    """The pieces of a file that Octavo wrote, by id."""
    if place.form == "events":
        return {id_: ("", f"{line}\n") for id_, line in zip(ids, data.decode().split("\n"), strict=False)}
    return blocks.items_of(data.decode())


def _read_only(place: Place, path: str, memories: Sequence[Memory]) -> str:
    """A file that shows what never changes, or what is derived."""
    match place.form:
        case "talk":
            return _json(conversation(memories))
        case "run" if path.endswith(STEPS):
            return "".join(f"{_line(step)}\n" for step in memories[0].data.get("steps", ()))
        case "run":
            return _json(memories[0].data.get("metadata", {}))
        case _:
            return _told(place, memories)


def _told(place: Place, memories: Sequence[Memory]) -> str:
    if place.path.endswith(".json"):
        return _json(json_of(memories[0]))
    if place.kind == "assembly":
        items = ((block.section, blocks.item(block)) for block in map(block_of, memories))
        return blocks.page("Assemblies", items, {"page": "assemblies"})
    return f"# {memories[0].id}\n\n{blocks.escaped(memories[0].text)}\n"


def block_of(memory: Memory) -> Block:
    """A memory as a block of its page."""
    match memory.kind:
        case "canon":
            section = memory.category
        case "register":
            section = memory.topic
        case _:
            section = memory.data.get("section")
    return Block(text=memory.text, id=memory.id, section=section if isinstance(section, str) else "")


def says(place: Place, memory: Memory) -> Any:
    """What a file says of a memory, to be compared with what `read` finds there."""
    match place.form:
        case "page":
            block = block_of(memory)
            return [block.section, block.text]
        case "skill":
            return skill_files.said_by(memory)
        case "text":
            return memory.text
        case "json":
            return json_of(memory)
        case _:
            told = behavior_of(memory, 0)
            return {name: told[name] for name in ("name", "actions", "description")}


class Found(Struct, frozen=True, kw_only=True):
    """What a file says of one memory: what `says` gives, whose id it bears, and where it begins."""

    said: Any
    path: str
    id: str | None = None
    line: int = 1


def read(place: Place, path: str, text: str) -> list[Found]:
    """What a person's file says, memory by memory; BadInput if it cannot be read."""
    match place.form:
        case "page":
            return [
                Found(said=[b.section, b.text], path=path, id=b.id, line=b.line)
                for b in blocks.blocks_of(text)
            ]
        case "skill":
            skill = skill_files.parse(text)
            return [Found(said=msgspec.structs.replace(skill, id=None), path=path, id=skill.id)]
        case "text":
            plain = "\n".join(blocks.lines_of(text)).removesuffix("\n")
            return [Found(said=blocks.unescaped(plain), path=path)]
        case "json":
            return [Found(said=_object(text), path=path)]
        case "run" if path.endswith(STEPS):
            lines = enumerate(text.splitlines(), start=1)
            return [Found(said=_object(line, n), path=path, line=n) for n, line in lines if line.strip()]
        case "run":
            head = {"episode_id": path.split("/")[-2], **_object(text)}
            return [Found(said=head, path=path, id=str(head["episode_id"]))]
        case _:
            return [
                Found(said=_behavior(name, value), path=path, line=_line_of(text, name))
                for name, value in _object(text).items()
            ]


def fields_of(place: Place, said: Any, old: Memory | None) -> dict[str, Any]:
    """What a memory must be to say this there: the fields to revise, or all that a new one needs."""
    data = dict(old.data) if old is not None else {}
    match place.form:
        case "page":
            section, text = said
            more: dict[str, Any] = {"text": text}
            if place.kind == "fact":
                category = (
                    None if place.category == GENERAL and (not old or not old.category) else place.category
                )
                more["category"] = category
                if section or "section" in data:
                    more["data"] = {**data, "section": section}
            else:
                more["category" if place.kind == "canon" else "topic"] = section or None
            fields = more
        case "skill":
            extra = {"description": said.description, "license": said.license}
            kept = {k: v for k, v in data.items() if k not in extra} | {k: v for k, v in extra.items() if v}
            name = place.path.split("/")[-2]
            fields = {"text": said.text, "data": kept}
            if old is not None and skill_files.name_of(old.topic or old.id) != name:
                fields["topic"] = f"{skill_files.PREFIX}{name}"
        case "text":
            fields = {"text": said}
        case "run":
            return runs.fields_of(said[0], said[1:])
        case "json":
            fields = {"data": said} | ({"text": _line(said)} if place.kind == "skill" else {})
        case _:
            told = f"{said['name']}: {' -> '.join(said['actions'])}"
            fields = {"text": told, "data": {**data, **said}}
    return fields if old is not None else {"kind": place.kind, **_belonging(place, said), **fields}


def _belonging(place: Place, said: Any) -> dict[str, Any]:
    """Topic and category of a new memory."""
    match place.form:
        case "behaviors":
            return {"category": BEHAVIOR, "topic": f"{BEHAVIOR}/{said['name']}"}
        case "skill":
            approved = {"category": PROCEDURAL} if place.path.split("/")[-4] == "procedural" else {}
            return {"topic": f"{skill_files.PREFIX}{place.path.split('/')[-2]}", **approved}
        case "text" | "json" if place.kind == "skill":
            category = GUARDRAIL if place.topic == "guardrails" else PROCEDURAL
            return {"topic": place.topic, "category": category}
        case "json":
            return {"topic": place.topic, "category": STATE}
        case _:
            return {}


def json_of(memory: Memory) -> dict[str, Any]:
    """A memory that is a JSON file."""
    return dict(memory.data) if memory.data or not memory.text else {"text": memory.text}


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
        "created_at": str(data.get("created_at") or memory.at.isoformat()),
        "description": str(data.get("description") or ""),
        _COUNTED: int(data.get(_COUNTED) or 0) + uses,
    }


def conversation(episodes: Sequence[Memory]) -> dict[str, Any]:
    """A session in the seed's form."""
    turns = [
        {"timestamp": (turn.at or memory.at).isoformat(), "role": turn.speaker, "content": turn.text}
        | {name: turn.data[name] for name in ("intent", "action") if name in turn.data}
        for memory in episodes
        for turn in memory.turns
    ]
    notes = [turn.data for memory in episodes for turn in memory.turns]
    denials = sum(1 for note in notes if note.get("sandbox_denied"))
    return {
        "session_id": episodes[0].sandbox if episodes else None,
        "start_time": turns[0]["timestamp"] if turns else None,
        "end_time": turns[-1]["timestamp"] if turns else None,
        "turns": turns,
        "behaviors_taught": list(dict.fromkeys(n["taught"] for n in notes if n.get("taught"))),
        "sandbox_denials": denials,
        "success": denials == 0,
    }


def _behavior(name: str, value: Any) -> dict[str, Any]:
    actions = value.get("actions") if isinstance(value, Mapping) else None
    if not isinstance(actions, list) or not actions or len(name) > 64:
        raise BadInput(f"behavior {name!r} has no list of actions")
    return {
        "name": name,
        "actions": [str(action) for action in actions],
        "description": str(value.get("description") or ""),
    }


def _event(memory: Memory) -> dict[str, Any]:
    plain = {"timestamp": memory.at.isoformat(), "event_type": memory.category, "payload": memory.text}
    return {"id": memory.id, **(dict(memory.data) if "event_type" in memory.data else plain)}


def _object(text: str, line: int = 0) -> dict[str, Any]:
    where = f"line {line}: " if line else ""
    try:
        value = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where}it is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadInput(f"{where}it is no JSON object")
    return value


def _line_of(text: str, name: str) -> int:
    place = text.find(json.dumps(name, ensure_ascii=False))
    return text.count("\n", 0, max(place, 0)) + 1


def json_file(value: Any) -> bytes:
    """The bytes of a JSON file as people read it."""
    return _json(value).encode()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=msgspec.to_builtins) + "\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=msgspec.to_builtins)
