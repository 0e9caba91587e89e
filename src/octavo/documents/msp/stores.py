"""The seven stores of seed 000: which memory stands for which value of the master state, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from octavo.documents.msp import items
from octavo.documents.msp.items import ORIGINAL, canonical
from octavo.domain import episodes
from octavo.domain.memory import Kind, Link, Memory, Turn, is_id, is_temporary, transcript
from octavo.errors import BadInput

EPISODIC, SEMANTIC, SENSORY = "episodic_memory", "semantic_memory", "sensory_memory"
CORE, PROFILE, GKS, STATES, FILE = "core_memory", "user_profile", "gks_data", "states", "file"
# What each section is, in the document's order.
SECTIONS: dict[str, tuple[type, ...]] = {
    EPISODIC: (list,),
    SEMANTIC: (Mapping,),
    SENSORY: (list,),
    CORE: (Mapping,),
    PROFILE: (Mapping,),
    GKS: (Mapping, list),
    STATES: (Mapping,),
}
LISTS = {EPISODIC: "episodes", SENSORY: "sensory"}  # sections that are lists, and their field in a file
# What the master state shows where there is nothing.
EMPTY: dict[str, dict[str, Any]] = {
    SEMANTIC: {"facts": [], "concepts": [], "relationships": []},
    CORE: {"identity": {}, "values": [], "worldview": {}},
}
CANON = ("identity", "values", "worldview", "notes")
# Which memory stands for a value: the kind and category of each part of each section. A memory of another
# category stands where its kind stands without one.
PLACES: dict[tuple[str, str | None], tuple[Kind, str | None]] = {
    (EPISODIC, None): ("episode", None),
    (SENSORY, None): ("episode", "sensory"),
    (SEMANTIC, "facts"): ("fact", "fact"),
    (SEMANTIC, "concepts"): ("fact", "concept"),
    (SEMANTIC, "relationships"): ("fact", "relationship"),
    (SEMANTIC, "registers"): ("register", None),
    **{(CORE, part): ("canon", None if part == "notes" else part) for part in CANON},
    (PROFILE, None): ("register", "profile"),
    (GKS, None): ("fact", "gks"),
    (STATES, None): ("register", "state"),
    (FILE, None): ("register", FILE),
}
_STANDS = {filed: place for place, filed in PLACES.items()} | {("fact", None): (SEMANTIC, "facts")}
# The lists of the semantic store, each with the category that its memories have unless they name one.
KNOWLEDGE = {str(part): category for (section, part), (_, category) in PLACES.items() if section == SEMANTIC}
# The parts of a section that hold its values; in the knowledge system every part does.
PARTS = {SEMANTIC: tuple(KNOWLEDGE), CORE: CANON}
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
            id_ = id_ or (concept_name(self.value) if self.part == "concepts" else None)
            if id_ is not None:
                return "id", str(id_)
        return "value", canonical(self.value)

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
    if place is None:
        return None
    (section, part), data, topic, key = place, memory.data, memory.topic or "", None
    if memory.kind == "register" and section not in (STATES, FILE):
        section, part = (PROFILE, None) if topic.startswith("profile/") else (SEMANTIC, "registers")
    elif section == GKS and "name" not in data:
        part = data.get("part") if ORIGINAL in data else "facts"
    is_named = "name" in data or (section == CORE and topic.startswith(f"{part}/"))
    value: Any
    if section == EPISODIC:
        value = episodes.to_document(memory)
    elif section == STATES:
        key, value = topic or memory.id, dict(data)
    elif section == FILE:
        key, value = str(data.get("name")), {name: item for name, item in data.items() if name != "name"}
    elif section == PROFILE or (section in (CORE, GKS) and is_named):
        key, value = items.to_entry(memory)
    else:
        value = items.to_item(memory)
    return Entry(section=section, part=part, key=key, value=value, memory=memory)


def entries(document: Mapping[str, Any], *, at: datetime, keep_ids: bool = False) -> Iterator[Entry]:
    """The values of a master state in order; `keep_ids` leaves temporary ids as they are (import).

    Fields that no store knows are not among them: the frames have those.
    """
    for section in SECTIONS:
        for part, key, value in split(section, document.get(section))[1]:
            if section == EPISODIC:
                yield episode(value, at=at, keep_id=keep_ids)
            else:
                yield element(section, part, key, value, at=at)


def split(section: str, content: Any) -> tuple[Any, list[tuple[str | None, str | None, Any]]]:
    """A section's frame, every list and object of values emptied, and the values: part, name, value."""
    if isinstance(content, list | tuple):
        return [], [(None, None, value) for value in content]
    if not isinstance(content, Mapping):
        return content, []
    if section in (PROFILE, STATES):
        return {}, [(None, str(key), value) for key, value in content.items()]
    if section in LISTS:
        name = list_key(section, content)
        return {**content, name: []}, [(None, None, value) for value in content.get(name) or ()]
    frame: dict[str, Any] = {}
    values: list[tuple[str | None, str | None, Any]] = []
    for part, held in content.items():
        is_store = part in PARTS.get(section, content)
        if section == GKS and isinstance(held, Mapping) and held:
            values.append((None, str(part), held))  # one memory as it stands, which comes back by its name
        elif is_store and isinstance(held, list):
            frame[part] = []
            values += ((part, None, value) for value in held)
        elif is_store and section == CORE and isinstance(held, Mapping):
            frame[part] = {}
            values += ((part, key, value) for key, value in held.items())
        else:
            frame[part] = held
    return frame, values


def list_key(section: str, value: Mapping[str, Any]) -> str | None:
    """The field of a file that holds its list, None if nobody can tell."""
    lists = [key for key, held in value.items() if isinstance(held, list)]
    usual = (LISTS[section], section, "memories", "entries", "records")
    return next((name for name in usual if name in lists), lists[0] if len(lists) == 1 else None)


def episode(value: Any, *, at: datetime, keep_id: bool = False) -> Entry:
    """An episode of the episodic store."""
    if not isinstance(value, Mapping):
        raise BadInput(f"an episode is {type(value).__name__}, not an object")
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
        text, data = items.text_of(value), {ORIGINAL: value, **({"part": part} if section == GKS else {})}
        confidence = 1.0 if (sure := items.confidence_of(value)) is None else sure
        if section == SENSORY:
            turns = (Turn(speaker="sensor", text=text),)
        elif section == SEMANTIC:
            category, topic = _filed(str(part), value)
    elif section in (STATES, FILE):
        topic = key if section == STATES else topic_of(FILE, key)
        data = dict(value) if section == STATES else {"name": key, **value}
    else:
        text, topic = items.named(key, value), topic_of(part or str(category), key)
        data = {"name": key, ORIGINAL: value}
    memory = Memory(
        id="",
        kind=kind,
        text=transcript(turns) if turns else text,
        category=category,
        topic=topic,
        source="operator",
        at=(items.when(value) if key is None else None) or at,
        confidence=confidence,
        turns=turns,
        data=data,
    )
    return Entry(section=section, part=part, key=key, value=value, memory=memory)


def file(name: str, value: Mapping[str, Any], *, at: datetime) -> Entry:
    """What the documents hold besides the stores: a register of category `file` without a text."""
    return element(FILE, None, name, value, at=at)


def link_edges(new: list[Entry], now: Sequence[Entry]) -> list[Entry]:
    """Edges with links to the concepts, nodes and memories at their ends, and those linked to each other.

    What is written along with them is named by an alias, which the rules resolve.
    """
    ends = {entry.memory.id: entry.memory.id for entry in now}
    ends |= {name: entry.memory.id for entry in now if (name := node_name(entry))}
    for number, entry in enumerate(new):
        name = node_name(entry)
        if name and name not in ends:
            ends[name] = f"node/{name}"
            new[number] = replace(entry, alias=ends[name])
    return [
        replace(entry, memory=replace(entry.memory, links=links)) if links else entry
        for entry, links in zip(new, links_of(new, ends.get), strict=True)
    ]


def links_of(new: list[Entry], known: Callable[[str], str | None]) -> list[tuple[Link, ...]]:
    """The links of each entry: an edge is about its ends, a node of the graph leads where its edges do."""
    nodes = leads(new, known)
    links: list[tuple[Link, ...]] = []
    for entry in new:
        edge = items.edge(entry.value) if entry.memory.kind == "fact" else None
        ends = dict.fromkeys(map(known, edge[::2])) if edge else ()
        name = node_name(entry) if entry.section == GKS else None
        about = [Link(name="about", to=to) for to in ends if to]
        links.append(tuple(about or nodes.get(name or "", ())))
    return links


def leads(new: list[Entry], known: Callable[[str], str | None]) -> dict[str, list[Link]]:
    """Where the edges of the graph lead to, by the name of the node that they start from."""
    nodes: dict[str, list[Link]] = {}
    for edge in (items.edge(entry.value) for entry in new if entry.section == GKS):
        to = known(edge[2]) if edge else None
        if edge and to:
            name = "_".join(edge[1].split())
            nodes.setdefault(edge[0], []).append(Link(name=name if is_id(name) else "related", to=to))
    return {name: list(dict.fromkeys(links)) for name, links in nodes.items()}


def node_name(entry: Entry) -> str | None:
    """What edges call an entry by: a concept's name, or the id of a node of the graph."""
    if entry.part == "concepts":
        return concept_name(entry.value)
    if entry.section != GKS or items.edge(entry.value):
        return None
    return _text_under(entry.value, "id", "node_id", "name")


def concept_name(value: Any) -> str | None:
    """The name a concept is known by."""
    return _text_under(value, "concept", "name")


def topic_of(prefix: str, key: str) -> str:
    """The topic of a named value; a name that cannot stand in one is hashed."""
    topic = f"{prefix}/{key}"
    return topic if is_label(topic) else f"{prefix}/{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def is_label(value: Any) -> bool:
    """Whether a text can be a topic, a category or a tag as it is."""
    is_short = isinstance(value, str) and 0 < len(value) <= 200 and value == value.strip()
    return is_short and all(ord(c) >= 32 for c in value)


def _filed(part: str, value: Any) -> tuple[str | None, str | None]:
    """The category and the topic of an element of the semantic store."""
    fields: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    category, told, topic = KNOWLEDGE[part], fields.get("type"), fields.get("topic")
    if part in ("facts", "registers") and is_label(told) and told not in ("gks", *KNOWLEDGE.values()):
        category = told
    name = concept_name(value) if part == "concepts" else None
    return category, topic_of("concept", name) if name else topic if is_label(topic) else None


def _text_under(value: Any, *names: str) -> str | None:
    fields = value if isinstance(value, Mapping) else {}
    return next((fields[name] for name in names if isinstance(fields.get(name), str) and fields[name]), None)
