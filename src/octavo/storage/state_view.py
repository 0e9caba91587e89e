"""What is asked of the state as of one version: a memory, a topic, look-alikes, filters, counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol, cast

from octavo.domain.filters import Filter
from octavo.domain.memory import KINDS, Kind, Memory, Proposal
from octavo.storage import postings
from octavo.storage.codec import decode_change, decode_memory, encode_json, micros


class Rows(Protocol):
    """Whoever answers SQL: the state's one connection."""

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        ...

    def rows_of_each(self, sql: str, values: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """All rows of the same query asked with one set of values after the other."""
        ...


OPEN = 1 << 62  # the version a revision is valid to while nothing has ended it

# Valid at the version that is bound twice behind it; some of it is live to this day, some has ended since.
# The number is spelt out because SQLite finds a partial index by the words of its condition.
_VALID = "since <= ? AND until > ?"
_LIVE = f"until = {OPEN} AND gone = 0"
_ENDED = f"{_VALID} AND until < {OPEN}"


class DbView:
    """The state as of one version: what the rules and the readers ask."""

    def __init__(self, db: Rows, version: int) -> None:
        self._db = db
        self.version = version
        self._now = (version, version)
        # A version never changes, and one write asks for the same id several times.
        self._last: tuple[str, Memory | None] | None = None
        self._redactions: bool | None = None
        self._absent: frozenset[str] = frozenset()

    def expect(self, ids: Collection[str]) -> None:
        """Look many ids up at once, so that `get` does not ask for each one that nobody has used."""
        found = self._db.rows(
            "SELECT DISTINCT id FROM revision WHERE id IN (SELECT value FROM json_each(?))",
            (encode_json(list(ids)).decode(),),
        )
        self._absent = frozenset(ids) - {str(row[0]) for row in found}

    def get(self, id_: str) -> Memory | None:
        """The revision that is current at this version, a tombstone included."""
        if id_ in self._absent:
            return None
        if self._last is None or self._last[0] != id_:
            found = self._memory(f"id = ? AND {_VALID}", (id_, *self._now))
            self._last = (id_, found)
        return self._last[1]

    def by_topic(self, kind: Kind, scope: str, topic: str) -> Memory | None:
        """The live memory that holds a topic."""
        return self._memory(
            f"topic = ? AND kind = ? AND scope = ? AND gone = 0 AND {_VALID}",
            (topic, kind, scope, *self._now),
        )

    def alike(self, kind: Kind, scope: str, text: str) -> Sequence[Memory]:
        """Live memories that may say the same, those with the same key first, then by what they share."""
        if not text:
            return ()
        shared = self._db.rows_of_each(
            "SELECT row, rare FROM gram WHERE gram = ? AND rare >= ? ORDER BY rare DESC, row DESC LIMIT ?",
            postings.sought_by(kind, scope, text),
        )
        best = postings.best_of(shared)
        found = self._db.rows_of_each(
            f"SELECT envelope, body FROM revision WHERE row = ? AND gone = 0 AND {_VALID}",
            [(row, *self._now) for row in best],
        )
        return [decode_memory(*row) for row in found]

    def count(self, kind: Kind) -> int:
        """How many live memories of a kind there are."""
        return sum(n for k, _, _, n in self.tallies() if k == kind)

    def sessions(self, scope: str) -> int:
        """How many sessions a scope has closed."""
        rows = self._db.rows(
            "SELECT session FROM version WHERE scope = ? AND session IS NOT NULL AND version <= ? "
            "ORDER BY session DESC LIMIT 1",
            (scope, self.version),
        )
        return int(rows[0][0]) if rows else 0

    def is_rejected(self, key: str, scope: str) -> bool:
        """Whether a person refused the value in this scope."""
        rows = self._db.rows(
            "SELECT json_extract(envelope, '$.lifted') IS NULL FROM other WHERE tag = 'rejection' "
            "AND ref = ? AND scope = ? ORDER BY version DESC, line DESC LIMIT 1",
            (key, scope),
        )
        return bool(rows and rows[0][0])

    def has_refused(self) -> bool:
        """Whether a person ever refused or erased anything, so that most accounts need not look closer."""
        rows = self._db.rows("SELECT 1 FROM other WHERE tag IN ('rejection', 'redaction') LIMIT 1")
        return bool(rows)

    def is_redacted(self, key: str) -> bool:
        """Whether the text was erased and must not return."""
        return bool(self._db.rows("SELECT 1 FROM other WHERE tag = 'redaction' AND ref = ? LIMIT 1", (key,)))

    def has_redactions(self) -> bool:
        """Whether anything was ever erased, as known when this view was first asked."""
        if self._redactions is None:
            self._redactions = bool(self._db.rows("SELECT 1 FROM other WHERE tag = 'redaction' LIMIT 1"))
        return self._redactions

    def proposal(self, id_: str) -> Proposal | None:
        """A proposal that still waits."""
        return next((p for p in self._waiting("AND p.ref = ?", (id_,))), None)

    def proposals(self) -> Sequence[Proposal]:
        """All proposals that still wait."""
        return self._waiting("", ())

    def was_declined(self, action: str, memory: str) -> bool:
        """Whether a person already said no to this for this memory."""
        rows = self._db.rows(
            "SELECT 1 FROM other p JOIN other d ON d.tag = 'decision' AND d.ref = p.ref "
            "WHERE p.tag = 'proposal' AND json_extract(p.envelope, '$.action') = ? "
            "AND json_extract(p.body, '$.memory.id') = ? "
            "AND json_extract(d.envelope, '$.outcome') = 'declined' LIMIT 1",
            (action, memory),
        )
        return bool(rows)

    def referring(self, id_: str) -> Sequence[Memory]:
        """Live memories with a link to a memory."""
        rows = self._db.rows(
            "SELECT DISTINCT r.envelope, r.body FROM link l JOIN revision r USING (row) "
            f"WHERE l.target = ? AND r.gone = 0 AND {_VALID}",
            (id_, *self._now),
        )
        return [decode_memory(*row) for row in rows]

    def referred(self, ids: Collection[str]) -> set[str]:
        """Which of some memories another one has ever linked to, so that most need not be asked about."""
        marks = ",".join("?" * len(ids))
        rows = self._db.rows(f"SELECT DISTINCT target FROM link WHERE target IN ({marks})", tuple(ids))
        return {str(row[0]) for row in rows}

    def memories(self, wanted: Filter) -> list[Memory]:
        """Live memories that pass a filter, oldest event first (or newest)."""
        where, values = _where(wanted)
        parts: list[str] = []
        bound: list[Any] = []
        for source, given in self._sources(wanted):
            parts.append(f"SELECT at, id, envelope, body FROM revision {source} {where}")
            bound += [*given, *values]
        order = "DESC" if wanted.newest else "ASC"
        rows = self._db.rows(
            f"{' UNION ALL '.join(parts)} ORDER BY at {order}, id {order} LIMIT ?",
            (*bound, -1 if wanted.limit is None else wanted.limit),
        )
        return [decode_memory(envelope, body) for _, _, envelope, body in rows]

    def _sources(self, wanted: Filter) -> list[tuple[str, Sequence[Any]]]:
        """Where to look, by which index: never at every revision there is.

        What was live then and is so to this day stands in the order of events, kind by kind; what has
        ended since is looked up by when it ended.
        """
        for column in ("session", "topic"):
            if getattr(wanted, column) is not None:
                return [(f"INDEXED BY revision_{column} WHERE gone = 0 AND {_VALID}", self._now)]
        kinds = tuple(dict.fromkeys(KINDS if wanted.kinds is None else wanted.kinds))
        live = f"INDEXED BY revision_live WHERE kind = ? AND {_LIVE} AND since <= ?"
        ended = f"INDEXED BY revision_ended WHERE gone = 0 AND {_ENDED}"
        return [*((live, (kind, self.version)) for kind in kinds), (ended, self._now)]

    def many(self, ids: Collection[str]) -> dict[str, tuple[int, Memory]]:
        """The current revisions of several memories and the versions they came in, by one query."""
        marks = ",".join("?" * len(ids))
        rows = self._db.rows(
            f"SELECT id, since, envelope, body FROM revision WHERE id IN ({marks}) AND {_VALID}",
            (*ids, *self._now),
        )
        return {id_: (since, decode_memory(envelope, body)) for id_, since, envelope, body in rows}

    def uses(self, ids: Sequence[str]) -> dict[str, tuple[int, float]]:
        """How often memories were used and the feedback they got, up to this version."""
        marks = ",".join("?" * len(ids))
        rows = self._db.rows(
            "SELECT ref, sum(coalesce(json_extract(envelope, '$.count'), 1)), "
            "sum(coalesce(json_extract(envelope, '$.feedback'), 0)) FROM other "
            f"WHERE tag = 'use' AND ref IN ({marks}) AND version <= ? GROUP BY ref",
            (*ids, self.version),
        )
        return {str(ref): (int(count), float(feedback)) for ref, count, feedback in rows}

    def is_used(self) -> bool:
        """Whether any use of any memory was noted up to this version."""
        sql = "SELECT 1 FROM other WHERE tag = 'use' AND version <= ? LIMIT 1"
        return bool(self._db.rows(sql, (self.version,)))

    def scopes(self) -> list[str]:
        """The scopes that hold live memories."""
        return sorted({scope for _, scope, _, _ in self.tallies()})

    def tallies(self) -> list[tuple[str, str, str, int]]:
        """Live memories by kind, scope and category: the counters of now, less what has happened since."""
        rows = self._db.rows(
            "SELECT kind, scope, category, sum(n) FROM ("
            "SELECT kind, scope, category, live AS n FROM tally UNION ALL "
            "SELECT kind, scope, coalesce(category, ''), -1 FROM revision INDEXED BY revision_since "
            f"WHERE since > ? AND {_LIVE} UNION ALL "
            "SELECT kind, scope, coalesce(category, ''), 1 FROM revision INDEXED BY revision_ended "
            f"WHERE gone = 0 AND {_ENDED}) GROUP BY 1, 2, 3 HAVING sum(n) > 0",
            (self.version, *self._now),
        )
        return [(str(k), str(s), str(c), int(n)) for k, s, c, n in rows]

    def _memory(self, where: str, values: Sequence[Any]) -> Memory | None:
        rows = self._db.rows(f"SELECT envelope, body FROM revision WHERE {where} LIMIT 1", values)
        return decode_memory(*rows[0]) if rows else None

    def _waiting(self, where: str, values: Sequence[Any]) -> list[Proposal]:
        rows = self._db.rows(
            "SELECT p.tag, p.envelope, p.body FROM other p WHERE p.tag = 'proposal' "
            f"AND p.version <= ? {where} AND NOT EXISTS "
            "(SELECT 1 FROM other d WHERE d.tag = 'decision' AND d.ref = p.ref) "
            "ORDER BY p.version, p.line",
            (self.version, *values),
        )
        return [cast(Proposal, decode_change(*row)) for row in rows]


def _where(wanted: Filter) -> tuple[str, list[Any]]:
    """A filter as SQL; names are ours, values are always bound."""
    parts: list[str] = []
    values: list[Any] = []
    for column, allowed in (("kind", wanted.kinds), ("layer", wanted.layers), ("scope", wanted.scopes)):
        if allowed is not None:
            parts.append(f"AND {column} IN ({','.join('?' * len(allowed))})")
            values += allowed
    for column, value in (
        ("topic", wanted.topic),
        ("category", wanted.category),
        ("session", wanted.session),
    ):
        if value is not None:
            parts.append(f"AND {column} = ?")
            values.append(value)
    for tag in wanted.tags or ():
        parts.append("AND EXISTS (SELECT 1 FROM json_each(tags) WHERE json_each.value = ?)")
        values.append(tag)
    for test, moment in ((">=", wanted.since), ("<=", wanted.until)):
        if moment is not None:
            parts.append(f"AND at {test} ?")
            values.append(micros(moment))
    if wanted.after is not None:
        sign = "<" if wanted.newest else ">"
        newest = "SELECT at, id FROM revision WHERE id = ? ORDER BY until DESC LIMIT 1"
        parts.append(f"AND (at, id) {sign} ({newest})")
        values.append(wanted.after)
    return " ".join(parts), values
