"""The seven stores of seed 000: which memory stands for which value of the master state, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from octavo.domain import episodes
from octavo.domain.memory import SHARED, Kind, Link, Memory, Turn, is_temporary, transcript
from octavo.errors import BadInput
from octavo.interfaces.documents.msp import items
from octavo.interfaces.documents.msp.items import canonical

EPISODIC, SEMANTIC, SENSORY = "episodic_memory", "semantic_memory", "sensory_memory"
CORE, PROFILE, GKS, STATES, FILE = "core_memory", "user_profile", "gks_data", "states", "file"
SECTIONS = (EPISODIC, SEMANTIC, SENSORY, CORE, PROFILE, GKS, STATES)
# What the master state shows where there is nothing.
EMPTY: dict[str, dict[str, Any]] = {
    SEMANTIC: {"facts": [], "concepts": [], "relationships": []},
    CORE: {"identity": {}, "values": [], "worldview": {}},
}
# The lists of the semantic store, each with the category that its memories have unless they name one.
KNOWLEDGE = {"facts": "fact", "concepts": "concept", "relationships": "relationship", "registers": None}
CANON = ("identity", "values", "worldview", "notes")
_IDS = ("id", "fact_id", "concept_id", "relationship_id", "sensory_id", "entry_id", "node_id", "edge_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One value of the master state: where it stands, what it is known by, and its memory.

    `part` is the list or object inside the section; a template that is not written yet has no id.
    `confidence` is what the value itself says, `alias` the temporary id that others name it by.
    """

    section: str
    part: str | None
    identity: tuple[str, str]
    value: Any
    memory: Memory
    confidence: float | None = None
    alias: str | None = None

    @property
    def place(self) -> float:
        """Where a list had it; what was remembered here comes after, by time."""
        noted = self.memory.data.get(episodes.SPELLING)
        place = noted.get("place") if isinstance(noted, Mapping) else None
        return float("inf") if place is None else float(place)

    @property
    def label(self) -> str:
        """Where it stands and what it is known by, for people; never its content."""
        known = self.identity[1] if self.identity[0] in ("id", "key") else ""
        return "/".join(filter(None, (self.section, self.part, known)))


def entry_of(memory: Memory) -> Entry | None:
    """Where the master state shows a memory, None if it has no store for it."""
    match memory.kind:
        case "episode" if memory.category == "sensory":
            return _listed(SENSORY, None, memory)
        case "episode":
            value = episodes.to_document(memory)
            return Entry(
                section=EPISODIC, part=None, identity=_known_episode(value), value=value, memory=memory
            )
        case "fact" if memory.category == "gks":
            return _gks(memory)
        case "fact":
            known = next((p for p, c in KNOWLEDGE.items() if c and c == memory.category), "facts")
            return _listed(SEMANTIC, known, memory)
        case "canon":
            part = memory.category if memory.category in CANON else "notes"
            return _keyed(CORE, part, memory) if _is_keyed(memory, part) else _listed(CORE, part, memory)
        case "register":
            return _register(memory)
        case _:
            return None


def entries(document: Mapping[str, Any], *, at: datetime, keep_ids: bool = False) -> Iterator[Entry]:
    """The values of a master state in order; `keep_ids` leaves temporary ids as they are (import).

    Fields that no store knows are not among them: `master_state.leftovers` has those.
    """
    for value in document.get(EPISODIC) or ():
        yield episode(value, at=at, keep_id=keep_ids)
    for part, category in KNOWLEDGE.items():
        for value in _elements(document, SEMANTIC, part):
            yield knowledge(value, part, category, at=at)
    for value in document.get(SENSORY) or ():
        yield sensory(value, at=at)
    yield from core(_section(document, CORE), at=at)
    for key, value in _section(document, PROFILE).items():
        yield profile(key, value, at=at)
    yield from gks(document.get(GKS), at=at)
    for name, value in _section(document, STATES).items():
        if isinstance(value, Mapping):
            yield state(name, value, at=at)


def episode(value: Any, *, at: datetime, keep_id: bool = False) -> Entry:
    """An episode of the episodic store."""
    if not isinstance(value, Mapping):
        raise BadInput(f"an episode is {type(value).__name__}, not an object")
    found = episodes.from_document(value, lenient=True)
    temporary = found.id is not None and is_temporary(found.id)
    category = value.get("category")
    session = value.get("session_id")
    memory = Memory(
        id="" if found.id is None or temporary else found.id,
        kind="episode",
        text=transcript(found.turns),
        category=category if is_label(category) and category != "sensory" else None,
        tags=tuple(tag for tag in dict.fromkeys(found.tags) if is_label(tag)),
        source="operator",
        at=found.at or at,
        salience=found.salience,
        confidence=1.0,
        emotion=found.emotion,
        links=found.links,
        session=session if is_label(session) else None,
        turns=found.turns,
        data=found.data,
    )
    if keep_id or not temporary:
        memory = episodes.as_given(memory, value)
    alias = found.id if temporary and not keep_id else None
    identity = _known_episode(value)
    return Entry(section=EPISODIC, part=None, identity=identity, value=value, memory=memory, alias=alias)


def knowledge(value: Any, part: str, category: str | None, *, at: datetime) -> Entry:
    """An element of the semantic store; a concept is known by its name and its entries merge."""
    item = items.from_item(value)
    named = value.get("type") if isinstance(value, Mapping) else None
    if part in ("facts", "registers") and is_label(named) and named not in ("gks", *KNOWLEDGE.values()):
        category = named
    kind: Kind = "register" if part == "registers" else "fact"
    memory = _template(kind, item, at=items.when(value) or at, category=category)
    name = concept_name(value) if part == "concepts" else None
    given = value.get("topic") if isinstance(value, Mapping) else None
    topic = topic_of("concept", name) if name else given if is_label(given) else None
    memory = replace(memory, topic=topic)
    return Entry(
        section=SEMANTIC,
        part=part,
        identity=_known(value, part),
        value=value,
        memory=memory,
        confidence=item.confidence,
    )


def sensory(value: Any, *, at: datetime) -> Entry:
    """A record of the sensory store: an episode of category `sensory`."""
    item = items.from_item(value)
    turn = Turn(speaker="sensor", text=item.text)
    memory = _template("episode", item, at=items.when(value) or at, category="sensory")
    memory = replace(memory, turns=(turn,), text=transcript((turn,)))
    return Entry(section=SENSORY, part=None, identity=_known(value, None), value=value, memory=memory)


def core(given: Mapping[str, Any], *, at: datetime) -> Iterator[Entry]:
    """The values of the core store."""
    for part in CANON:
        values = given.get(part)
        if isinstance(values, Mapping):
            yield from (canon(part, key, value, at=at) for key, value in values.items())
        elif isinstance(values, list):
            yield from (canon(part, None, value, at=at) for value in values)


def canon(part: str, key: str | None, value: Any, *, at: datetime) -> Entry:
    """A value of the core store, by name or as an element of a list."""
    item = items.from_item(value) if key is None else items.from_entry(key, value)
    category = None if part == "notes" else part
    memory = _template("canon", item, at=at, category=category)
    if key is None:
        return Entry(section=CORE, part=part, identity=_known(value, part), value=value, memory=memory)
    memory = replace(memory, topic=topic_of(part, key))
    return Entry(section=CORE, part=part, identity=("key", key), value=value, memory=memory)


def core_candidate(value: Mapping[str, Any], part: str, *, at: datetime) -> Entry:
    """An update of the core store that says how sure it is: {type, key, content, confidence}."""
    key = value.get("key")
    content = value.get("content", value.get("value"))
    entry = canon(part, key if isinstance(key, str) else None, content, at=at)
    confidence = items.from_item(value).confidence
    noted = {**entry.memory.data.get(episodes.SPELLING, {}), "candidate": dict(value)}
    memory = replace(
        entry.memory,
        confidence=1.0 if confidence is None else confidence,
        data={**entry.memory.data, episodes.SPELLING: noted},
    )
    return replace(entry, memory=memory, confidence=confidence)


def profile(key: str, value: Any, *, at: datetime) -> Entry:
    """A line of the user's profile."""
    memory = _template("register", items.from_entry(key, value), at=at, category="profile")
    memory = replace(memory, topic=topic_of("profile", key))
    return Entry(section=PROFILE, part=None, identity=("key", key), value=value, memory=memory)


def gks(given: Any, *, at: datetime) -> Iterator[Entry]:
    """The knowledge system: each element of a list and each object is a fact of category `gks`."""
    lists = {None: given} if isinstance(given, list) else given if isinstance(given, Mapping) else {}
    for part, values in lists.items():
        if isinstance(values, list):
            for value in values:
                item = items.from_item(value, part=part)
                memory = _template("fact", item, at=items.when(value) or at, category="gks")
                yield Entry(section=GKS, part=part, identity=_known(value, part), value=value, memory=memory)
        elif isinstance(values, Mapping) and values:
            memory = _template("fact", items.from_entry(str(part), values), at=at, category="gks")
            memory = replace(memory, topic=topic_of("gks", str(part)))
            identity = ("key", str(part))
            yield Entry(section=GKS, part=None, identity=identity, value=values, memory=memory)


def state(name: str, value: Mapping[str, Any], *, at: datetime) -> Entry:
    """A state file: a register that holds only data."""
    memory = Memory(id="", kind="register", category="state", topic=name, at=at, data=dict(value))
    return Entry(section=STATES, part=None, identity=("key", name), value=value, memory=memory)


def file(name: str, value: Mapping[str, Any], *, at: datetime) -> Entry:
    """What the documents hold besides the stores, kept as a register of category `file` without a text."""
    memory = Memory(
        id="",
        kind="register",
        category=FILE,
        topic=topic_of(FILE, name),
        source="operator",
        at=at,
        confidence=1.0,
        data={"name": name, **value},
    )
    return Entry(section=FILE, part=None, identity=("key", name), value=dict(value), memory=memory)


def link_relationships(found: list[Entry], known: Callable[[str], str | None]) -> list[Entry]:
    """Relationships with `about` links to the concepts and memories at their ends, where those are known.

    A concept that is written along with them is named by an alias, which the rules resolve.
    """
    aliases: dict[str, str] = {}
    named: list[Entry] = []
    for entry in found:
        name = concept_name(entry.value) if entry.part == "concepts" else None
        if name and name not in aliases and known(name) is None:
            aliases[name] = f"concept/{name}"
            named.append(replace(entry, alias=aliases[name]))
        else:
            named.append(entry)
    return [_with_ends(entry, lambda end: known(end) or aliases.get(end)) for entry in named]


def concept_name(value: Any) -> str | None:
    """The name a concept is known by."""
    if not isinstance(value, Mapping):
        return None
    return next((value[f] for f in ("concept", "name") if isinstance(value.get(f), str) and value[f]), None)


def topic_of(prefix: str, key: str) -> str:
    """The topic of a named value; a name that cannot stand in one is hashed."""
    topic = f"{prefix}/{key}"
    return topic if is_label(topic) else f"{prefix}/{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def _with_ends(entry: Entry, known: Callable[[str], str | None]) -> Entry:
    pair = items.ends(entry.value) if isinstance(entry.value, Mapping) else None
    if pair is None or entry.memory.kind != "fact":
        return entry
    found = [known(end) for end in pair if isinstance(end, str)]
    links = tuple(Link(name="about", to=to) for to in dict.fromkeys(found) if to)
    return replace(entry, memory=replace(entry.memory, links=links))


def _template(kind: Kind, item: items.Item, *, at: datetime, category: str | None) -> Memory:
    sure = 1.0 if item.confidence is None else item.confidence
    return Memory(
        id="",
        kind=kind,
        text=item.text,
        scope=SHARED,
        category=category,
        source="operator",
        at=at,
        confidence=sure,
        data=item.data,
    )


def _register(memory: Memory) -> Entry | None:
    match memory.category:
        case "state":
            identity = ("key", memory.topic or memory.id)
            return Entry(section=STATES, part=None, identity=identity, value=dict(memory.data), memory=memory)
        case "file":
            value = {name: v for name, v in memory.data.items() if name != "name"}
            identity = ("key", str(memory.data.get("name")))
            return Entry(section=FILE, part=None, identity=identity, value=value, memory=memory)
        case _ if (memory.topic or "").startswith("profile/"):
            return _keyed(PROFILE, None, memory)
        case _:
            return _listed(SEMANTIC, "registers", memory)


def _gks(memory: Memory) -> Entry:
    if "name" in memory.data and "value" in memory.data:
        return _keyed(GKS, None, memory)
    noted = memory.data.get(episodes.SPELLING)
    part = noted.get("part") if isinstance(noted, Mapping) else "facts"
    return _listed(GKS, part, memory)


def _is_keyed(memory: Memory, part: str) -> bool:
    named = "name" in memory.data and "value" in memory.data
    return named or (memory.topic or "").startswith(f"{part}/")


def _keyed(section: str, part: str | None, memory: Memory) -> Entry:
    key, value = items.to_entry(memory)
    return Entry(section=section, part=part, identity=("key", key), value=value, memory=memory)


def _listed(section: str, part: str | None, memory: Memory) -> Entry:
    value = items.to_item(memory)
    return Entry(section=section, part=part, identity=_known(value, part), value=value, memory=memory)


def _known(value: Any, part: str | None) -> tuple[str, str]:
    """What an element is known by: its own id, a concept's name, or all of it."""
    if isinstance(value, Mapping):
        id_ = next((value[f] for f in _IDS if isinstance(value.get(f), str | int)), None)
        id_ = id_ or (concept_name(value) if part == "concepts" else None)
        if id_ is not None:
            return "id", str(id_)
    return "value", canonical(value)


def _known_episode(value: Mapping[str, Any]) -> tuple[str, str]:
    id_ = value.get("episode_id")
    return ("id", str(id_)) if isinstance(id_, str | int) else ("value", canonical(value))


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, Mapping) else {}


def _elements(document: Mapping[str, Any], section: str, part: str) -> list[Any]:
    found = _section(document, section).get(part)
    return found if isinstance(found, list) else []


def is_label(value: Any) -> bool:
    """Whether a text can be a topic, a category or a tag as it is."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= 200
        and value == value.strip()
        and all(ord(c) >= 32 for c in value)
    )
