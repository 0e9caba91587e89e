"""The seven stores of seed 000: which memory stands for which value of the master state, and back."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from octavo.documents.msp import forms
from octavo.documents.msp.forms import CORE, EPISODIC, GKS, LISTS, ORIGINAL, PLACES, SEMANTIC, STATES
from octavo.documents.transfer import is_kept
from octavo.documents.trees import is_label, must_be, topic_of
from octavo.domain import episodes
from octavo.domain.memory import Link, Memory, Turn, is_id, is_temporary, transcript

_STANDS = {filed: place for place, filed in PLACES.items()} | {("fact", None): (SEMANTIC, "facts")}
# The parts of a section that hold its values; in the knowledge system every part does.
_PARTS = {SEMANTIC: tuple(forms.KNOWLEDGE), CORE: forms.CANON}
_IDS = ("id", "fact_id", "concept_id", "relationship_id", "sensory_id", "entry_id", "node_id", "edge_id")


class Entry(Struct, frozen=True, kw_only=True):
    """One value of the master state: where it stands and its memory, which has no id before it is written.

    `part` is the list or object inside the section, `key` the name it has there; an element of a list has
    none. `alias` is the temporary id that others name it by.
    """

    section: str
    part: str | None = None
    key: str | None = None
    value: Any
    memory: Memory
    alias: str | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """What it is known by: its name, its own id, a concept's name, or all of it."""
        if self.key is not None:
            return "key", self.key
        if isinstance(self.value, Mapping):
            ids = ("episode_id",) if self.section == EPISODIC else _IDS
            id_ = next(
                (self.value[name] for name in ids if isinstance(self.value.get(name), str | int)), None
            )
            id_ = id_ or (node_name(self) if self.part == "concepts" else None)
            if id_ is not None:
                return "id", str(id_)
        return "value", forms.canonical(self.value)

    @property
    def place(self) -> float:
        """Where a list had it; what was remembered here comes after, by time."""
        noted = self.memory.data.get(episodes.SPELLING)
        place = noted.get("place") if isinstance(noted, Mapping) else None
        return float("inf") if place is None else float(place)

    @property
    def label(self) -> str:
        """Where it stands and what it is known by, for people; never its content."""
        by, known = self.identity
        return "/".join(filter(None, (self.section, self.part, "" if by == "value" else known)))


def entry_of(memory: Memory) -> Entry | None:
    """Where the master state shows a memory, None if it has no store for it."""
    place = _STANDS.get((memory.kind, memory.category)) or _STANDS.get((memory.kind, None))
    if place is None or is_kept(memory):
        return None
    (section, part), data = place, memory.data
    if memory.kind == "register" and section != STATES:
        is_profile = (memory.topic or "").startswith("profile/")
        section, part = (forms.PROFILE, None) if is_profile else (SEMANTIC, "registers")
    elif section == GKS and "name" not in data:
        part = data.get("part") if ORIGINAL in data else "facts"
    key = _key_of(section, part, memory)
    value: Any
    if section == EPISODIC:
        value = episodes.to_document(memory)
    elif section == STATES:
        value = dict(data)
    else:
        value = forms.value_of(memory, key)
    return Entry(section=section, part=part, key=key, value=value, memory=memory)


def _key_of(section: str, part: str | None, memory: Memory) -> str | None:
    """The name that a memory's value has in its section, None for an element of a list."""
    name, (prefix, _, rest) = memory.data.get("name"), (memory.topic or "").partition("/")
    if section == STATES:
        return memory.topic or memory.id
    is_named = section in (CORE, GKS) and "name" in memory.data
    if section != forms.PROFILE and not is_named and (section != CORE or not rest or prefix != part):
        return None
    return name if isinstance(name, str) else rest or memory.topic or memory.id


def lift(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str | None, str | None, Any]]]:
    """A master state's frame, which is what it holds besides its values, and the values in their order.

    Each is its section, the part of it, the name it has there, and the value.
    """
    frame, values = dict(document), []
    for section in forms.SECTIONS:
        if section in document:
            frame[section], held = _split(section, document[section])
            values += [(section, *one) for one in held]
    return frame, values


def _split(section: str, content: Any) -> tuple[Any, list[tuple[str | None, str | None, Any]]]:
    if isinstance(content, list | tuple):
        return [], [(None, None, value) for value in content]
    if not isinstance(content, Mapping):
        return content, []
    if section in (forms.PROFILE, STATES):
        return {}, [(None, str(key), value) for key, value in content.items()]
    if section in LISTS:
        name = list_key(section, content)
        return {**content, name: []}, [(None, None, value) for value in content.get(name) or ()]
    frame: dict[str, Any] = {}
    values: list[tuple[str | None, str | None, Any]] = []
    for part, held in content.items():
        if not held or part not in _PARTS.get(section, content):
            frame[part] = held
        elif isinstance(held, list):
            values += ((part, None, value) for value in held)
        elif isinstance(held, Mapping) and section == GKS:
            values.append((None, str(part), held))  # one memory as it stands, which comes back by its name
        elif isinstance(held, Mapping) and section == CORE:
            values += ((part, key, value) for key, value in held.items())
        else:
            frame[part] = held
    return frame, values


def list_key(section: str, value: Mapping[str, Any]) -> str | None:
    """The field of a file that holds its list, None if nobody can tell."""
    lists = [key for key, held in value.items() if isinstance(held, list)]
    usual = (LISTS[section], section, "memories", "entries", "records")
    return next((name for name in usual if name in lists), lists[0] if len(lists) == 1 else None)


def lay(frame: Mapping[str, Any], entries: Iterable[Entry]) -> dict[str, Any]:
    """A frame's seven sections with values put where they stand."""
    empty: Any = {section: [] if shapes[0] is list else {} for section, shapes in forms.SECTIONS.items()}
    document: dict[str, Any] = copy.deepcopy(
        {**empty, **{name: frame[name] for name in empty if name in frame}}
    )
    for section in LISTS:
        document[section] = []
    for entry in entries:
        _put(document, entry)
    return document


def _put(document: dict[str, Any], entry: Entry) -> None:
    section, part, key = entry.section, entry.part, entry.key
    holder = document[section]
    if part is None and key is None and holder == {}:
        holder = document[section] = []  # a graph that is a list
    if isinstance(holder, list) and key is not None:
        holder = document[section] = {"facts": holder} if holder else {}
    if isinstance(holder, dict) and (part is not None or key is None):
        name = "facts" if part is None else part
        usual: Any = [] if key is None else {}
        if not isinstance(holder.get(name) or usual, list | dict):
            name = f"more {name}"  # the document holds something else there, which stays
        holder[name] = holder.get(name) or usual
        holder = holder[name]
    if isinstance(holder, list):
        holder.append(entry.value)
    else:
        holder[entry.memory.id if key is None else key] = entry.value


def entries(document: Mapping[str, Any], *, at: datetime, keep_ids: bool = False) -> Iterator[Entry]:
    """The values of a master state in order; `keep_ids` leaves temporary ids as they are (import)."""
    for section, part, key, value in lift(document)[1]:
        if section == EPISODIC:
            yield episode(value, at=at, keep_id=keep_ids)
        else:
            yield element(section, part, key, value, at=at)


def episode(value: Any, *, at: datetime, keep_id: bool = False) -> Entry:
    """An episode of the episodic store."""
    must_be("an episode", value, Mapping)
    told = episodes.from_document(value, lenient=True)
    id_, tags = told.pop("id"), told.pop("tags")
    temporary = id_ is not None and is_temporary(id_)
    category, session = value.get("category"), value.get("session_id")
    memory = Memory(
        id="" if id_ is None or temporary else id_,
        kind="episode",
        text=transcript(told["turns"]),
        category=category if is_label(category) and category != "sensory" else None,
        tags=tuple(tag for tag in dict.fromkeys(tags) if is_label(tag)),
        source="operator",
        confidence=1.0,
        sandbox=session if is_label(session) else None,
        **{**told, "at": told["at"] or at},
    )
    if keep_id or not temporary:
        return Entry(section=EPISODIC, value=value, memory=episodes.as_given(memory, value))
    return Entry(section=EPISODIC, value=value, memory=memory, alias=id_)


def element(section: str, part: str | None, key: str | None, value: Any, *, at: datetime) -> Entry:
    """A value of a section, by name or as an element of a list, as a memory that is not written yet.

    A concept is known by its name and its entries merge; a sensory record is an episode.
    """
    (kind, category), topic = PLACES.get((section, part)) or PLACES[section, None], None
    text, confidence = "", 1.0
    turns: tuple[Turn, ...] = ()
    if key is None:
        text = forms.text_of(None, value)
        data = {ORIGINAL: value, **({"part": part} if section == GKS else {})}
        confidence = 1.0 if (sure := forms.confidence_of(value)) is None else sure
        if section == forms.SENSORY:
            turns = (Turn(speaker="sensor", text=text),)
        elif section == SEMANTIC:
            category, topic = _filed(str(part), value)
    elif section == STATES:
        topic, data = key, dict(value)
    else:
        text, topic = forms.text_of(key, value), topic_of(part or str(category), key)
        data = {"name": key, ORIGINAL: value}
    memory = Memory(
        id="",
        kind=kind,
        text=transcript(turns) if turns else text,
        category=category,
        topic=topic,
        source="operator",
        at=(forms.when(value) if key is None else None) or at,
        confidence=confidence,
        turns=turns,
        data=data,
    )
    return Entry(section=section, part=part, key=key, value=value, memory=memory)


def link(new: list[Entry], known: Callable[[str], str | None]) -> tuple[list[Entry], dict[str, list[Link]]]:
    """Entries with their links, and where edges of the graph lead to by the node that they start from.

    An edge is about its ends, a node leads where its edges do. `known` gives the memory that a name stands
    for; a node that is new gets its id here, so that edges can name it.
    """
    made: dict[str, str] = {}
    drawn = secrets.token_hex(8)  # in the order of their ids nodes stand in the order of the document
    for number, entry in enumerate(new):
        name = node_name(entry)
        if name and known(name) is None:
            made.setdefault(name, f"node_{drawn}_{number:06d}")
    edges = [forms.edge(entry.value) if entry.memory.kind == "fact" else None for entry in new]
    nodes: dict[str, list[Link]] = {}
    about: list[list[Link]] = []
    for entry, edge in zip(new, edges, strict=True):
        ends = [known(name) or made.get(name) for name in edge[::2]] if edge else []
        about.append([Link(name="about", to=to) for to in dict.fromkeys(ends) if to])
        if edge and ends[1] and entry.section == GKS:
            relation = "_".join(edge[1].split())
            lead = Link(name=relation if is_id(relation) else "related", to=ends[1])
            nodes[edge[0]] = [*dict.fromkeys([*nodes.get(edge[0], []), lead])]
    linked = []
    for entry, links in zip(new, about, strict=True):
        name = node_name(entry)
        leads = nodes.get(name or "", []) if entry.section == GKS else []
        fields = {"id": made.pop(name)} if name in made else {}
        linked.append(replace(entry, memory=replace(entry.memory, links=tuple(links or leads), **fields)))
    return linked, nodes


def node_name(entry: Entry) -> str | None:
    """What edges call an entry by: a concept's name, or the id of a node of the graph."""
    if entry.part == "concepts":
        return forms.text_under(entry.value, "concept", "name")
    if entry.section != GKS or forms.edge(entry.value):
        return None
    return forms.text_under(entry.value, "id", "node_id", "name")


def _filed(part: str, value: Any) -> tuple[str | None, str | None]:
    """The category and the topic of an element of the semantic store."""
    fields: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    category, told, topic = forms.KNOWLEDGE[part], fields.get("type"), fields.get("topic")
    if part in ("facts", "registers") and is_label(told) and told not in ("gks", *forms.KNOWLEDGE.values()):
        category = told
    name = forms.text_under(value, "concept", "name") if part == "concepts" else None
    return category, topic_of("concept", name) if name else topic if is_label(topic) else None
