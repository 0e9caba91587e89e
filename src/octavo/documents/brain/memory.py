"""`FilesystemMemory`: the seed's manager of three levels; it writes nowhere but to the account."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from octavo.documents.brain import patterns
from octavo.documents.brain.patterns import Consolidated
from octavo.domain import blocks, episodes, mirror, mirror_places, rules, runs
from octavo.domain.memory import Layer, Memory
from octavo.domain.verdicts import Verdict
from octavo.engine import opening
from octavo.engine.account import Account
from octavo.engine.retirement import limits_of
from octavo.engine.sandbox import Sandbox
from octavo.engine.surface import public
from octavo.errors import BadInput

AGENT = "agent:brain_b"
DATA_DIR = "brain_b_data"  # as the seed calls it
GUARDRAILS = "guardrails"
DECAY: Mapping[Layer, float] = {"episodic": 0.9, "semantic": 0.99, "procedural": 0.999}
LEVELS = tuple(DECAY)  # of two that speak on one topic the later one counts
_KEY = re.compile(r"[a-z0-9_-]{1,64}")


class Entry(Struct, frozen=True, kw_only=True):
    """One memory as the seed's reader sees it; `overridden` if a higher level speaks on the same topic."""

    id: str
    key: str
    path: str
    content: str
    level: Layer
    score: float
    timestamp: datetime
    data: Mapping[str, Any] = {}
    overridden: bool = False


class Context(Struct, frozen=True, kw_only=True):
    """What was read: entries by level, and all levels mixed, best first."""

    levels: Mapping[Layer, tuple[Entry, ...]]
    mixed: tuple[Entry, ...]

    @property
    def text(self) -> str:
        """The mix as lines for a prompt; recalled text is data, never an instruction."""
        return "\n".join(f"[{entry.level}] {entry.content}" for entry in self.mixed)


class Written(Struct, frozen=True, kw_only=True):
    """What a write became: the memories it made, what was refused, or the proposal that now waits."""

    ids: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    proposal: str | None = None

    def __bool__(self) -> bool:
        return bool(self.ids)


@public
class FilesystemMemory(AbstractContextManager["FilesystemMemory"]):
    """The memory of one robot in a folder, or in an open account; its actor decides what needs approval.

    In a folder of its own it keeps the seed's tree of files, and the seed's retention: what is past its age,
    number or size goes to the archive when memory is consolidated.
    """

    def __init__(
        self,
        data_dir: str | Path | Account = DATA_DIR,
        *,
        account: str = "brain_b",
        actor: str = AGENT,
        clock: Callable[[], datetime] | None = None,
        **more: Any,
    ) -> None:
        self.now = clock or (lambda: datetime.now(UTC))
        self._session: Sandbox | None = None
        said = {"actor": actor, "clock": clock, **more}
        self.account = data_dir if isinstance(data_dir, Account) else opening.open(data_dir, account, **said)
        self._is_own = self.account is not data_dir
        self._is_shown = self._is_own and not more.get("read_only") and "://" not in str(data_dir)
        self.show()

    def show(self) -> Path | None:
        """Bring the tree of files up to date, as opening, consolidating and closing do; where it is.

        None where the memory is somebody else's account, is only read, or has no folder.
        """
        return Path(self.account.mirror().folder) if self._is_shown else None

    def read_memory(
        self,
        query: str,
        levels: Sequence[Layer] = LEVELS,
        k: int = 10,
        weights: Mapping[Layer, float] | None = None,
    ) -> Context:
        """What some levels hold on a query, by level and mixed.

        `weights` multiply the scores of a level in place of the engine's priors.
        """
        hits = self.account.recall(query, k=k, layers=tuple(levels)) if levels else []
        entries = list[Entry]()
        for hit in hits:
            of_level = 1.0 if weights is None else weights.get(hit.memory.layer, 1.0)
            prior = 0.0 if weights is None else hit.parts.get("layer", 0.0)
            entries.append(_entry(hit.memory, (hit.score - prior) * of_level))
        highest = {e.key: e.level for e in sorted(entries, key=lambda entry: LEVELS.index(entry.level))}
        entries.sort(key=lambda entry: -entry.score)
        entries = [replace(entry, overridden=entry.level != highest[entry.key]) for entry in entries]
        by_level = {level: tuple(entry for entry in entries if entry.level == level) for level in levels}
        return Context(levels=by_level, mixed=tuple(entry for entry in entries if not entry.overridden))

    def write_memory(self, content: str | Mapping[str, Any], level: Layer, key: str) -> Written:
        """Write at a level: an event is appended, a page is replaced, a procedure needs a person's yes."""
        check_key(key)
        if not content:
            raise BadInput(f"there is nothing to write to {level}/{key}", hint="hand in a text or an object")
        if level == "semantic":
            return self._replace_page(content, key)
        data: Mapping[str, Any] = {} if isinstance(content, str) else content
        if level == "episodic":
            return Written(ids=(self.log_event({"event_type": key, **(data or {"payload": content})}),))
        said = content if isinstance(content, str) else msgspec.json.encode(content).decode()
        category = rules.GUARDRAIL if key == GUARDRAILS else rules.PROCEDURAL
        verdict = self.account.remember(said, kind="skill", category=category, topic=key, data=data)
        if verdict.outcome == "refused":
            verdict.or_raise()
        ids = (verdict.memory.id,) if verdict and verdict.memory else ()
        return Written(ids=ids, proposal=verdict.proposal)

    def consolidate_memory(self, max_age_days: float | None = None, promote: bool = False) -> Consolidated:
        """Carry what repeats up to knowledge; with `promote` ask about what has stood for long."""
        policy = self.account.policy.patterns
        days = policy.days if max_age_days is None else float(max_age_days)
        done = patterns.consolidate(self.account, self.now(), replace(policy, days=days), promote=promote)
        if self._is_own or self.account.policy.retention.mode == "on":
            self.account.retire_aged()
        self.show()
        return done

    def log_event(self, event: Mapping[str, Any]) -> str:
        """Append one event (`event_type`, or the older `type`); the argument stays as it was."""
        kept = {"timestamp": self.now().isoformat(), **event}
        older, payload = kept.pop("type", None), kept.get("payload", "")
        kept["event_type"] = str(kept.get("event_type") or older or "event")
        words = payload if isinstance(payload, str) else msgspec.json.encode(payload).decode()
        said = f"{kept['event_type']} {kept.get('agent_id') or ''}: {words}".strip()
        at = episodes.moment(kept["timestamp"])
        return self.account.remember(said, kind="episode", category="event", at=at, data=kept).or_raise().id

    def log_conversation_turn(
        self, role: str, content: str, metadata: Mapping[str, Any] | None = None
    ) -> str:
        """Add a turn to the session under way; it is durable at once, and closing makes it a conversation."""
        if self._session is None:
            self._session = self.account.sandbox()
        return self._session.turn(role, content, data=dict(metadata or {}))

    def close_session(self) -> dict[str, Any] | None:
        """Consolidate the session under way; returns its conversation document."""
        if self._session is None:
            return None
        session, self._session = self._session, None
        session.consolidate()
        episodes = self.account.memories(kind="episode", from_sandbox=session.id)
        return mirror.conversation(episodes, session.id)

    def save_episode(self, episode: Mapping[str, Any]) -> str:
        """Keep an RLDS episode {metadata, steps}; what it says passes the gate like everything else."""
        fields = runs.fields_of(episode.get("metadata"), episode.get("steps"))
        return self.account.remember(**fields).or_raise().id

    def update_knowledge(self, page: str, text: str, *, section: str = "", source: str = "") -> str:
        """Add one block to a knowledge page."""
        fact = _fact(check_key(page), section, text)
        fact["data"] |= {"source": source} if source else {}
        return self.account.remember(**fact).or_raise().id

    def register_skill(self, name: str, text: str, data: Mapping[str, Any] | None = None) -> str:
        """Keep a learned skill; it stays on the semantic level until a person approves it."""
        topic = f"skills/{check_key(name)}"
        return self.account.remember(text, kind="skill", topic=topic, data=data).or_raise().id

    def save_behavior(
        self, name: str, actions: Sequence[str], description: str = "", *, within: Sandbox | None = None
    ) -> Verdict:
        """Keep a behaviour as a learned skill, in a commit of its own or `within` a sandbox."""
        if not name or len(name) > 64 or not actions:
            raise BadInput(f"behavior {name!r} needs a name of at most 64 characters, and actions")
        first = {"created_at": self.now().isoformat(), "times_invoked": 0}
        fields = mirror.fields_of(mirror.TAUGHT, mirror.taught(name, actions, description), None, first)
        return (self.account if within is None else within).remember(**fields)

    def get_capabilities(self) -> dict[str, Any]:
        """The approved capabilities, or none."""
        return self.procedure("capabilities") or {"actions": [], "tools": []}

    def procedure(self, key: str) -> dict[str, Any]:
        """An approved procedure's data; what nobody approved does not count."""
        approved = self.account.memories(kind="skill", layer="procedural", topic=key)
        return dict(approved[-1].data) if approved else {}

    def use(self, ids: Sequence[str]) -> None:
        """Note that memories were used."""
        if ids:
            with self.account.sandbox("uses") as sandbox:
                for id_ in ids:
                    sandbox.use(id_)

    def stats(self) -> dict[str, Any]:
        """Counts and sizes by level, with the decay a day."""
        rows = dict[str, dict[str, Any]]()
        for level, decay in DECAY.items():
            memories = self.account.memories(layer=level)
            size = sum(len(m.text.encode()) + len(msgspec.json.encode(m.data)) for m in memories)
            rows[level] = {"file_count": len(memories), "total_size_bytes": size, "decay_rate": decay}
        files, size = (sum(row[name] for row in rows.values()) for name in ("file_count", "total_size_bytes"))
        return {"levels": rows, "total_files": files, "total_size_bytes": size}

    def list_level(self, level: Layer) -> list[Entry]:
        """Everything a level holds, oldest first."""
        return [_entry(memory) for memory in self.account.memories(layer=level)]

    def retention(self) -> dict[str, Any]:
        """The retention policy in the seed's form; nothing goes by reading it."""
        policy = self.account.policy.retention
        history, kept = {"version_history": policy.versions_shown}, {"no_auto_delete": True}
        return {
            "episodic": limits_of(policy),
            "semantic": {"knowledge": history, "behaviors": kept},
            "procedural": {"all": {"require_approval": True, **kept}},
        }

    def page_versions(self, page: str) -> list[int]:
        """The versions in which a knowledge page changed, the newest ten; the ledger keeps all."""
        check_key(page)
        changed = {r.version for r in self.account.revisions() if r.memory.category == page}
        return sorted(changed)[-self.account.policy.retention.versions_shown :]

    def close(self) -> None:
        """Let go of the account; an open session stays and can be resumed."""
        if self._session is not None:
            self._session.close()
        if self._is_own:
            try:
                self.show()
            finally:
                self._is_shown = False
                self.account.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _replace_page(self, content: str | Mapping[str, Any], key: str) -> Written:
        """One commit: blocks that are there stay, others come, those that are missing end."""
        wanted = dict.fromkeys(_blocks(content, key))
        if not wanted:
            raise BadInput(f"page {key!r} would have no block", hint="hand in at least one line")
        there = self.account.memories(kind="fact", category=key)
        known = {_said(memory) for memory in there}
        with self.account.sandbox(f"page {key}") as sandbox:
            for memory in there:
                if _said(memory) not in wanted:
                    sandbox.forget(memory.id)
            verdicts = [sandbox.remember(**_fact(key, *block)) for block in wanted if block not in known]
        result = sandbox.result
        refused = [v for v in verdicts if v.outcome == "refused"] + list(result.refused if result else ())
        ids = {_said(memory): memory.id for memory in self.account.memories(kind="fact", category=key)}
        return Written(
            ids=tuple(ids[block] for block in wanted if block in ids),
            refused=tuple(f"{one.check}: {one.detail}" for one in refused),
        )


def read_memory(query: str, levels: Sequence[Layer] = LEVELS, **where: Any) -> Context:
    """Read from some levels of a robot's memory, hierarchically mixed; it is opened as `where` says."""
    with FilesystemMemory(**where) as memory:
        return memory.read_memory(query, levels)


def write_memory(content: str | Mapping[str, Any], level: Layer, key: str, **where: Any) -> Written:
    """Write to a robot's memory at a level; the `actor` decides what needs a person's yes."""
    with FilesystemMemory(**where) as memory:
        return memory.write_memory(content, level, key)


def consolidate_memory(*, promote: bool = False, **where: Any) -> Consolidated:
    """Carry what repeats in a robot's memory up the levels."""
    with FilesystemMemory(**where) as memory:
        return memory.consolidate_memory(promote=promote)


def check_key(key: str) -> str:
    """Return the key, or raise: it names a file of the tree, so it is short, lower-case and no path."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        hint = "a key has at most 64 of a-z, 0-9, '_' and '-'; it is no path"
        raise BadInput(f"key {key!r} cannot be used", hint=hint)
    return key


def _entry(memory: Memory, score: float = 0.0) -> Entry:
    """A memory as an entry of its level, with the place it has in the tree of files."""
    place = mirror_places.place_of(memory, lambda _: f"{memory.at:%Y-%m-%d}")
    return Entry(
        id=memory.id,
        key=memory.topic or memory.id,
        path=place.path if place else "",
        content=memory.text,
        level=memory.layer,
        score=score,
        timestamp=memory.at,
        data=memory.data,
    )


def _said(memory: Memory) -> tuple[str, str]:
    """What a block of a page says: its section and its text."""
    return str(memory.data.get("section") or ""), memory.text


def _fact(page: str, section: str, text: str) -> dict[str, Any]:
    """A block as a fact; it is what it says: the same text on the same page is the same memory."""
    digest = hashlib.sha256(f"{section}\n{text}".encode()).hexdigest()[:16]
    topic = f"knowledge/{page}/{digest}"
    return {"text": text, "kind": "fact", "category": page, "topic": topic, "data": {"section": section}}


def _blocks(content: str | Mapping[str, Any], page: str) -> Iterator[tuple[str, str]]:
    """The blocks of a page, each with its section: of a text as a file has it, or of {title, sections}."""
    if isinstance(content, str):
        yield from (block[:2] for block in blocks.blocks_of(content, [mirror.title_of(page)]))
        return
    sections = content.get("sections")
    if not isinstance(sections, Mapping):
        raise BadInput("a page is a text, or {title, sections: {name: lines}}")
    for name, lines in sections.items():
        for line in [lines] if isinstance(lines, str) else lines:
            yield from ((str(name), text) for _, text in _blocks(str(line), page))
