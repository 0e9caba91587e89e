"""The files of seed 001's tree: which is what, how an episode stands in one, the sessions and their pages."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.msp import stores
from octavo.documents.transfer import Note
from octavo.domain import compression, cores, episodes
from octavo.domain.compression import CompressionPolicy, Due, recognise
from octavo.domain.episodes import iso
from octavo.domain.memory import SHARED, Memory, check_scope, is_id
from octavo.domain.rules import counts_as_episode
from octavo.domain.sentences import SessionSource
from octavo.domain.summary import digest
from octavo.engine.versions import Session
from octavo.errors import BadFile, BadInput, NotFound

ROOT = "consciousness"
EPISODES, SESSIONS = "01_Episodic_memory/episodes", "04_Session_Memory"
FOLDERS = {"core": "06_Core_memory", "sphere": "07_Sphere_memory"}
COUNTERS = "09_state/compression_counters"
SEQUENCES = ("sphere_seq", "core_seq", "session_seq")

_NAMED = re.compile(r"ep_(\d{6})_[A-Za-z0-9]+")
_PAGE = re.compile(r"(.+)_SP\d+C\d+_SS\d+(@.+)?")
_ELLIPSIS = ("...", "…")
_MOST_SESSIONS = 4096  # a summary further ahead of the episodes than this is no place to count from


def home(path: Path) -> Path:
    """The folder `consciousness` that a path means."""
    return path if path.name == ROOT else path / ROOT


class Tree:
    """The tree below a path as read; what is no file of the seed, or has not its shape, is among `files`.

    Nothing is written if one file of the seed is no JSON.
    """

    def __init__(self, path: Path, policy: CompressionPolicy, at: datetime) -> None:
        self.policy, self.at, self.folder = policy, at, home(path)
        self.episodes: dict[str, Memory] = {}
        self.pages: dict[str, dict[str, Any]] = {}
        self.made: dict[str, dict[str, Any]] = {}
        self.counters: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        if not self.folder.is_dir():
            raise NotFound(f"there is no folder {self.folder}", hint=f"name the folder that holds {ROOT}/")
        names, self.notes = trees.files_below(self.folder)
        for relative in names:
            why = self._take(relative)
            if why is not None:
                self.files[relative] = trees.read_bytes(self.folder / relative)
            if why:
                self.notes.append(Note(place=relative, reason=f"{why} and is kept as a file"))

    def scopes(self) -> list[str]:
        """The scopes that it speaks of."""
        spoken = {memory.scope for memory in self.episodes.values()} | set(self.counters)
        return sorted(spoken | {id_.partition("@")[2] or SHARED for id_ in self.made})

    def made_in(self, scope: str) -> list[Due]:
        """Its cores and spheres in a scope."""
        made = [recognise(id_, self.policy) for id_ in sorted(self.made)]
        return [due for due in made if due is not None and due.scope == scope]

    def developer(self) -> str | None:
        """Whose name its pages carry most."""
        titles = [_PAGE.fullmatch(PurePosixPath(name).stem) for name in self.pages]
        counted = Counter(title[1] for title in titles if title)
        return counted.most_common(1)[0][0] if counted else None

    def order(self, scope: str) -> list[str]:
        """The sessions of a scope in the order they closed; one that is counted but not named gets a name.

        What a core lists decides, then what a page says, then the places of the episodes, then time.
        """
        spoken = by_session(memory for memory in self.episodes.values() if memory.scope == scope)
        made, slots = self.made_in(scope), dict[int, str]()
        for due in made:
            # A list that leaves some out fills the first places it can.
            sources = self.made[due.id]["source_sessions"] if due.kind == "core" else ()
            names = dict.fromkeys(session_name(name) for name in sources if name not in _ELLIPSIS)
            fresh = [name for name in names if name not in slots.values()]
            slots |= zip([n for n in due.sessions if n not in slots], fresh, strict=False)
        for page in self.pages.values():
            place, name = place_of(page), page.get("session_id")
            if place and isinstance(name, str) and page.get("scope", SHARED) == scope:
                ordinal = self._ordinal(place)
                if ordinal <= len(spoken) + len(self.pages) and session_name(name) not in slots.values():
                    slots.setdefault(ordinal, session_name(name))
        left = [name for name in _by_place(spoken) if name not in slots.values()]
        last = max([*slots, *(due.sessions[-1] for due in made)], default=0)
        free = [ordinal for ordinal in range(1, last + len(left) + 1) if ordinal not in slots]
        slots |= zip(free, left, strict=False)
        last = max(last, *slots) if slots else last
        ordinals = range(1, last + 1)
        return [slots.get(n) or _at_place(place_at(n, self.policy), scope) for n in ordinals]

    def _ordinal(self, place: Sequence[int]) -> int:
        number = 0
        for value, level in zip(place, (None, *reversed(self.policy.levels)), strict=False):
            number = number * (level.radix if level else 1) + value
        return number + 1

    def _take(self, relative: str) -> str | None:
        """None if a file is the seed's; else why it is not, in words if it should be."""
        pure, path = PurePosixPath(relative), self.folder / relative
        parent = pure.parent.as_posix()
        kind = next((kind for kind, place in FOLDERS.items() if place == parent), None)
        is_counted = relative.startswith(COUNTERS)
        if pure.suffix != ".json" or not (kind or is_counted or parent in (EPISODES, SESSIONS)):
            return ""
        value = trees.read_json(path)
        if not isinstance(value, dict):
            return "holds no object"
        if kind:
            return self._take_made(kind, pure.stem, value)
        if is_counted:
            scope = pure.stem.partition("@")[2] or SHARED
            if scoped(COUNTERS, scope) != relative.removesuffix(".json") or _scope_of(scope) != scope:
                return ""
            self.counters[scope] = value
        elif parent == SESSIONS:
            self.pages[relative] = value
        else:
            try:
                self.episodes[relative] = episode_of(pure.name, value, self.at)
            except BadInput as error:
                raise BadFile(f"{path}: {error.message}") from error
        return None

    def _take_made(self, kind: str, stem: str, value: dict[str, Any]) -> str | None:
        due = recognise(stem, self.policy)
        if due is None or due.kind != kind or value.get(f"{kind}_id") != stem:
            return f"does not name the {kind} it holds"
        if due.sessions[-1] > _MOST_SESSIONS:
            return "stands too far ahead"
        try:
            cores.read(cores.TYPES[kind], value)
        except BadInput as error:
            return f"has another shape ({error.message})"
        self.made[stem] = value
        return None


def episode_of(name: str, value: Mapping[str, Any], at: datetime) -> Memory:
    """An episode as its file tells it; it goes out again under the same name, exactly as it came."""
    memory = stores.episode(value, at=_day(name) or at, keep_id=True).memory
    scope = _scope_of(value.get("scope"))
    memory = replace(
        memory,
        id=memory.id or f"ep_{_hash(f'{scope}/{name}')[:24]}",
        scope=scope,
        category="sensory" if value.get("category") == "sensory" else memory.category,
        sandbox=session_of(value, memory.at, scope),
    )
    if file_name(memory) == name:
        return memory
    spelling = {**memory.data.get(episodes.SPELLING, {}), "file": name}
    return replace(memory, data={**memory.data, episodes.SPELLING: spelling})


def document_of(memory: Memory, place: Mapping[str, int] | None) -> dict[str, Any]:
    """An episode as its file: the seed's form, and its place among the sessions."""
    document = episodes.to_document(memory)
    if memory.sandbox is None:
        document["session_id"] = None
    if memory.scope != SHARED:
        document["scope"] = memory.scope
    if place is not None:
        own = document.get("compression_meta")
        document["compression_meta"] = {**(own if isinstance(own, Mapping) else {}), **place}
    return document


def file_name(memory: Memory) -> str:
    """The name of an episode's file: the one it came with, else by its day and a hash of its id."""
    _, spelling = episodes.unspelt(memory.data)
    if isinstance(spelling.get("file"), str):
        return str(spelling["file"])
    if _NAMED.fullmatch(memory.id):
        return f"{memory.id}.json"
    return f"ep_{memory.at:%y%m%d}_{_hash(memory.id)[:12]}.json"


def session_of(value: Mapping[str, Any], at: datetime, scope: str) -> str | None:
    """The session of an episode: the one it names, else its place, else its day; null means none."""
    if "session_id" in value and value["session_id"] is None:
        return None
    named, place = value.get("session_id"), place_of(value)
    if isinstance(named, str) and named.strip():
        return session_name(named)
    return _at_place(place, scope) if place else scoped(f"session_{at:%y%m%d}", scope)


def session_name(name: str) -> str:
    """A session's name as an id; one that cannot be an id is hashed."""
    return name if is_id(name) else f"session_{_hash(name)[:24]}"


def place_of(value: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Sphere, core and session of a `compression_meta`, if it tells all three."""
    meta = value.get("compression_meta")
    numbers: list[Any] = [meta.get(name) for name in SEQUENCES] if isinstance(meta, Mapping) else []
    if len(numbers) == len(SEQUENCES) and all(type(n) is int and n >= 0 for n in numbers):
        return tuple(numbers)
    return None


def place_at(ordinal: int, policy: CompressionPolicy) -> tuple[int, ...]:
    """Sphere, core and session of the session of an ordinal."""
    position = compression.position(ordinal, policy)
    return tuple(position[name] for name in SEQUENCES)


def scoped(name: str, scope: str) -> str:
    """A name in the tree with the scope it is of, unless that is everybody's."""
    return name if scope == SHARED else f"{name}@{scope}"


def by_session(memories: Iterable[Memory]) -> dict[str, list[Memory]]:
    """Episodes that count by the session they belong to."""
    spoken: dict[str, list[Memory]] = {}
    for memory in memories:
        if memory.sandbox is not None and counts_as_episode(memory):
            spoken.setdefault(memory.sandbox, []).append(memory)
    return spoken


def page(session: Session, episodes: Sequence[Memory], policy: CompressionPolicy) -> dict[str, Any]:
    """The page of a session: a digest, its episodes, and the counters before and after it."""
    times = [turn.at or m.at for m in episodes for turn in m.turns] or [m.at for m in episodes]
    source = SessionSource(
        id=session.sandbox,
        ordinal=session.ordinal,
        started_at=min(times, default=session.at),
        ended_at=max(times, default=session.at),
        episodes=tuple(episodes),
    )
    return {
        "session_id": session.sandbox,
        **({} if session.scope == SHARED else {"scope": session.scope}),
        "timestamp_start": iso(source.started_at) if times else None,
        "timestamp_end": iso(source.ended_at) if times else None,
        "summary": digest(source, policy).text,
        "episodes": [m.id for m in episodes],
        "compression_meta": dict(session.position),
        "counters": compression.counters(session.ordinal, policy),
    }


def _by_place(spoken: Mapping[str, Sequence[Memory]]) -> list[str]:
    """Sessions by the places of their episodes if all have one, else by time."""
    places = {
        name: min((p for m in said if (p := place_of(m.data))), default=None) for name, said in spoken.items()
    }
    known = all(places.values())
    times = {name: min(m.at for m in said) for name, said in spoken.items()}
    return sorted(spoken, key=lambda name: (places[name] if known else (), times[name], name))


def _at_place(place: Sequence[int], scope: str) -> str:
    return scoped("_".join(["session", *(f"{number:03d}" for number in place)]), scope)


def _scope_of(value: Any) -> str:
    """A file's scope; one that cannot be a scope is no reason to refuse the file."""
    try:
        return check_scope(value) if isinstance(value, str) else SHARED
    except BadInput:
        return SHARED


def _day(name: str) -> datetime | None:
    day = _NAMED.match(name)
    try:
        return datetime.strptime(day[1], "%y%m%d").replace(tzinfo=UTC) if day else None
    except ValueError:
        return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
