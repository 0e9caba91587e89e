"""What the state says of an account's history: its commits, and the changes that each of them brought."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from octavo.domain.memory import Change, Decision, Memory, Proposal
from octavo.errors import NotFound
from octavo.storage import codec

OPEN = 1 << 62  # the version a revision is valid to while nothing has ended it
AMONG = "IN (SELECT value FROM json_each(?))"  # one of those that are bound as a list
_SPOKEN = ("proposal", "refusal", "merge", "clash", "rejection", "decision", "redaction")
_AT_ONCE = 5_000  # revisions that are held in memory for indexing


class Commit(Struct, frozen=True, kw_only=True):
    """One version as listed: when, why, by whom, and how much it changed."""

    version: int
    at: datetime
    cause: str
    actor: str
    scope: str | None
    session: int | None
    sandbox: str | None
    changes: int
    hash: str


class StateLog(ABC):
    """The questions about history; who keeps the file answers their queries."""

    @abstractmethod
    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query."""

    def told(self, where: str, values: Sequence[Any]) -> list[tuple[int, int, Memory]]:
        """Revisions under a condition, each with its row and the version it came in."""
        rows = self.rows(f"SELECT row, since, envelope, body FROM revision WHERE {where}", values)
        return [(row, since, codec.decode_memory(envelope, body)) for row, since, envelope, body in rows]

    def one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first value of a query's first row, None if there is none."""
        rows = self.rows(sql, values)
        return rows[0][0] if rows else None

    def watermark(self) -> tuple[int, str]:
        """The version this state has reached, and the hash of that version's header."""
        rows = dict(self.rows("SELECT key, value FROM meta WHERE key IN ('version', 'hash')"))
        return int(rows["version"]), str(rows["hash"])

    def lines_in(self, version: int) -> list[tuple[bytes, bytes | None]]:
        """Envelope and body of each memory of a version, as they stand in the file."""
        return self.rows("SELECT envelope, body FROM revision WHERE since = ? ORDER BY row", (version,))

    def version_at(self, moment: datetime) -> int:
        """The newest version committed at or before a moment."""
        found = self.one(
            "SELECT version FROM version WHERE at <= ? ORDER BY at DESC, version DESC LIMIT 1",
            (codec.micros(moment),),
        )
        return int(found or 0)

    def commits(self, *, after: int = 0, limit: int = -1) -> list[Commit]:
        """Versions in order."""
        return self._commits("version > ? ORDER BY version LIMIT ?", (after, limit))

    def commit(self, version: int) -> Commit:
        """One version, or NotFound."""
        for commit in self._commits("version = ?", (version,)):
            return commit
        raise NotFound(f"there is no version {version}", hint="`octavo versions` lists them")

    def _commits(self, where: str, values: Sequence[Any]) -> list[Commit]:
        fields = Commit.__struct_fields__
        rows = self.rows(f"SELECT {', '.join(fields)} FROM version WHERE {where}", values)
        return [
            Commit(version=version, at=codec.moment_of(at), **dict(zip(fields[2:], rest, strict=True)))
            for version, at, *rest in rows
        ]

    def versions_beyond(self, scopes: Sequence[str], after: int) -> set[int]:
        """The versions after one that hold nothing of these scopes, or say that they are another's."""
        rows = self.rows(
            "SELECT version FROM version v WHERE version > ? AND "
            f"(scope IS NOT NULL AND scope NOT {AMONG} OR NOT "
            f"EXISTS (SELECT 1 FROM revision r WHERE r.since = v.version AND r.scope {AMONG}))",
            (after, listed(scopes), listed(scopes)),
        )
        return {int(row[0]) for row in rows}

    def sessions(self, scope: str, first: int, last: int) -> list[Commit]:
        """The versions that closed the sessions first..last of a scope, in order."""
        return self._commits("scope = ? AND session BETWEEN ? AND ? ORDER BY session", (scope, first, last))

    def session_scopes(self) -> list[str]:
        """The scopes that have closed a session."""
        scopes: list[str] = []
        next_ = "SELECT min(scope) FROM version WHERE session IS NOT NULL AND scope > ?"
        while (scope := self.one(next_, (scopes[-1] if scopes else "",))) is not None:
            scopes.append(str(scope))
        return scopes

    def commits_of(self, sandbox: str) -> list[tuple[int, int, int | None]]:
        """The versions a sandbox went into: version, last buffer line, session ordinal."""
        sql = (
            "SELECT version, coalesce(last_line, 0), session FROM version WHERE sandbox = ? ORDER BY version"
        )
        return self.rows(sql, (sandbox,))

    def changes_in(self, version: int) -> list[Change]:
        """Every change of a version: memories first, then the rest."""
        memories = self.rows(
            "SELECT 'memory', envelope, body FROM revision WHERE since = ? ORDER BY row", (version,)
        )
        rest = self.rows("SELECT tag, envelope, body FROM other WHERE version = ? ORDER BY line", (version,))
        return [codec.decode_change(*row) for row in (*memories, *rest)]

    def revisions_since(self, after: int, upto: int) -> Iterator[tuple[int, Memory]]:
        """Revisions that became valid in (after, upto], in order, with their version; read some at a time."""
        place, where = after, "since > ? AND since <= ? ORDER BY since, row LIMIT ?"
        while some := self.told(where, (place, upto, _AT_ONCE)):
            yield from ((since, memory) for _, since, memory in some)
            if len(some) < _AT_ONCE:
                break
            place, where = some[-1][0], "row > ? AND +since <= ? ORDER BY row LIMIT ?"

    def version_after(self, version: int, revisions: int, limit: int) -> int:
        """The last version within about so many revisions after one, at least the next."""
        found = self._nth_after(version, limit, revisions)
        return limit if found is None else max(version + 1, found)

    def has_more_than(self, revisions: int, after: int, upto: int) -> bool:
        """Whether more than so many revisions became valid in (after, upto]."""
        return self._nth_after(after, upto, revisions) is not None

    def _nth_after(self, after: int, upto: int, place: int) -> int | None:
        """The version of the revision at a place (from 0) of those that became valid in (after, upto]."""
        sql = "SELECT since FROM revision WHERE since > ? AND since <= ? ORDER BY since LIMIT 1 OFFSET ?"
        found = self.one(sql, (after, upto, place))
        return None if found is None else int(found)

    def ended(self, after: int, upto: int) -> list[tuple[str, int, int]]:
        """Revisions that ceased to be valid in (after, upto]: id, revision and the version that ended it."""
        # The bound is spelt out because SQLite finds a partial index by the words of its condition.
        return self.rows(
            f"SELECT id, rev, until FROM revision WHERE until > ? AND until <= ? AND until < {OPEN}",
            (after, upto),
        )

    def revision(self, id_: str, rev: int) -> Memory:
        """One revision of a memory, or NotFound."""
        for _, _, memory in self.told("id = ? AND rev = ?", (id_, rev)):
            return memory
        raise NotFound(f"there is no revision {rev} of {id_}")

    def turns_of(self, session: str, upto: int) -> int:
        """How many turns of a session came in by a version."""
        first = "session = ? AND since <= ? AND kind = 'episode' AND rev = 1"
        return sum(len(episode.turns) for _, _, episode in self.told(first, (session, upto)))

    def history(self, id_: str) -> list[tuple[int, Memory]]:
        """Every revision of a memory with the version it came in."""
        return [(since, memory) for _, since, memory in self.told("id = ? ORDER BY rev", (id_,))]

    def order_of(self, ids: Collection[str]) -> dict[str, int]:
        """Places in the order in which memories were first committed."""
        sql = f"SELECT id, min(row) FROM revision WHERE id {AMONG} GROUP BY id"
        return dict(self.rows(sql, (listed(ids),)))

    def revs_in(self, kind: str, scope: str, category: str | None, unnamed: str, upto: int) -> dict[str, int]:
        """All memories that by a version ever were in a kind, scope and category (None: any), in their order.

        With each its revision there in that version, or 0; `unnamed` is the category of those with none.
        """
        rows = self.rows(
            "SELECT id, max((until > ?5 AND NOT gone) * rev) FROM revision WHERE +kind = ?1 AND scope = ?2 "
            "AND since <= ?5 AND (?3 IS NULL OR coalesce(category, ?4) = ?3) GROUP BY id ORDER BY min(row)",
            (kind, scope, category, unnamed, upto),
        )
        return dict(rows)

    def merges(self) -> list[tuple[int, Memory]]:
        """The assemblies that merges made, as they first were, with the version of each, newest first."""
        of_two = "SELECT row FROM link WHERE name = 'merged_from'"
        made = f"kind = 'assembly' AND rev = 1 AND row IN ({of_two}) ORDER BY since DESC"
        return [(since, memory) for _, since, memory in self.told(made, ())]

    def ids_changed(
        self, low: int, high: int, *, kind: str | None = None, among: Collection[str] | None = None
    ) -> list[str]:
        """Memories with a revision that began in (low, high]: any, those of a kind, those among some."""
        sql = "SELECT DISTINCT id FROM revision WHERE since > ? AND since <= ?"
        values: tuple[Any, ...] = (low, high)
        some = listed(among) if among is not None else None
        for condition, value in (("kind = ?", kind), (f"id {AMONG}", some)):
            if value is not None:
                sql, values = f"{sql} AND {condition}", (*values, value)
        return [str(row[0]) for row in self.rows(sql, values)]

    def last_cause(self, pattern: str) -> str | None:
        """The newest cause of a form."""
        sql = "SELECT cause FROM version WHERE cause GLOB ? ORDER BY version DESC LIMIT 1"
        cause = self.one(sql, (pattern,))
        return None if cause is None else str(cause)

    def others(self, tag: str, *, ref: str | None = None, newest: int = -1) -> list[tuple[int, Change]]:
        """Changes of one tag that are no memories, or those about one thing, newest first, by version."""
        about, values = ("", (tag, newest)) if ref is None else ("AND ref = ? ", (tag, ref, newest))
        rows = self.rows(
            f"SELECT version, tag, envelope, body FROM other WHERE tag = ? {about}"
            "ORDER BY version DESC, line DESC LIMIT ?",
            values,
        )
        return [(int(version), codec.decode_change(*row)) for version, *row in rows]

    def has(self, tag: str) -> bool:
        """Whether there is any change of a tag that is no memory."""
        return self.one("SELECT 1 FROM other WHERE tag = ? LIMIT 1", (tag,)) is not None

    def asked(self, id_: str) -> Proposal | None:
        """A proposal, whether it waits or was decided."""
        return next((p for _, p in self.others("proposal", ref=id_) if isinstance(p, Proposal)), None)

    def spoken(self) -> list[tuple[int, int, Change]]:
        """Changes that are no memories and still say something: version, line and change."""
        sql = f"SELECT version, line, tag, envelope, body FROM other WHERE tag {AMONG} AND body IS NOT NULL"
        rows = self.rows(sql, (listed(_SPOKEN),))
        return [(int(version), int(line), codec.decode_change(*row)) for version, line, *row in rows]

    def bases_of(self, changes: Iterable[Change]) -> Iterator[tuple[int, bytes, bytes | None]]:
        """What changes are based on, as this file has it: the version of each line, its envelope and body."""
        for change in changes:
            if isinstance(change, Memory) and change.rev > 1:
                sql = "SELECT since, envelope, body FROM revision WHERE id = ? AND rev = ?"
                yield from self.rows(sql, (change.id, change.rev - 1))
            elif isinstance(change, Decision):
                sql = "SELECT version, envelope, body FROM other WHERE tag = 'proposal' AND ref = ?"
                yield from self.rows(sql, (change.proposal,))

    def made_from(self, target: str, kinds: Collection[str]) -> list[str]:
        """The ids of memories of these kinds that ever linked to a memory."""
        rows = self.rows(
            "SELECT DISTINCT r.id FROM link l JOIN revision r USING (row) "
            f"WHERE l.target = ? AND r.kind {AMONG}",
            (target, listed(kinds)),
        )
        return [str(row[0]) for row in rows]


def listed(values: Collection[str | int]) -> str:
    """Some values as the one that is bound for them."""
    return codec.encode_json(list(values)).decode()
