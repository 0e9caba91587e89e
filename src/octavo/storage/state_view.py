"""What is asked of the state as of one version: a memory, a topic, look-alikes, filters, counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, cast

from octavo.domain.filters import Filter
from octavo.domain.likeness import sought_under
from octavo.domain.memory import COMPARED, KINDS, Kind, Memory, Proposal
from octavo.domain.state import View
from octavo.storage import state_filed
from octavo.storage.codec import decode_change, decode_memory, micros, text_in
from octavo.storage.state_log import AMONG, OPEN, StateLog, listed

Text = tuple[Kind, str, str]  # a kind, a scope and what is said in it
_Line = tuple[bytes, bytes | None]  # the envelope and the body of a memory
_AT_ONCE = 1000  # texts whose look-alikes are looked up together; their numbers are cached meanwhile

# Valid at the version that is bound twice behind it; some of it is live to this day, some has ended since.
# The number is spelt out because SQLite finds a partial index by the words of its condition.
_VALID = "since <= ? AND until > ?"
_LIVE = f"until = {OPEN} AND gone = 0"
_ENDED = f"{_VALID} AND until < {OPEN}"

_ALSO_TAGGED = "EXISTS (SELECT 1 FROM json_each(tags) WHERE json_each.value = ?)"
ORDERS = "orders"  # the topic of those that hold a standing order or a wish
_VALID_ROWS = f"SELECT row, envelope, body FROM revision WHERE row {AMONG} AND gone = 0 AND {_VALID}"


class DbView(View):
    """The state as of one version: what the rules and the readers ask."""

    def __init__(self, db: StateLog, version: int) -> None:
        self._db = db
        self.version = version
        self._now = (version, version)
        # A version never changes, and one write asks for the same id several times.
        self._last: tuple[str, Memory | None] | None = None
        self._there: dict[str, bool] = {}  # tags that some change has
        self._absent: frozenset[str] = frozenset()
        self._coming: dict[Text, int] = {}
        self._texts: list[Text] = []
        self._alike: dict[Text, Sequence[_Line]] = {}

    def expect(self, coming: Sequence[Memory]) -> None:
        """Look what is to be written up at once, so that `get` and `alike` do not ask for each one."""
        ids = [memory.id for memory in coming]
        texts = ((m.kind, m.scope, m.text) for m in coming if m.kind in COMPARED and m.text)
        self._texts = list(dict.fromkeys(texts))
        self._coming = {text: place for place, text in enumerate(self._texts)}
        found = self._db.rows(f"SELECT DISTINCT id FROM revision WHERE id {AMONG}", (listed(ids),))
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

    def alike(
        self, kind: Kind, scope: str, text: str, near: Callable[[str], bool] | None = None
    ) -> Sequence[Memory]:
        """Live memories that may say the same, those with the same key first, then by what they share.

        Of those that do not pass `near` no more than the text is decoded.
        """
        if not text:
            return ()
        wanted = (kind, scope, text)
        lines = self._alike.get(wanted)
        if lines is None:
            place = self._coming.get(wanted)
            if place is None:  # not expected, or a while ago: what was looked up ahead stays
                lines = self._look_up([wanted])[wanted]
            else:
                ahead = self._texts[place : place + _AT_ONCE]
                self._alike = self._look_up(ahead)
                for one in ahead:
                    self._coming.pop(one, None)
                lines = self._alike[wanted]
        return [decode_memory(*line) for line in lines if near is None or near(text_in(line[1]))]

    def _look_up(self, wanted: Sequence[Text]) -> dict[Text, Sequence[_Line]]:
        """The look-alikes of some texts at once: a statement for each would cost more than its answer."""
        sought = [sought_under(*text) for text in wanted]
        best = state_filed.most_alike(self._db, sought)
        rows = set().union(*best)
        found = self._db.rows(_VALID_ROWS, (listed(rows), *self._now)) if rows else ()
        lines = {row: (envelope, body) for row, envelope, body in found}
        answers = ([lines[row] for row in some if row in lines] for some in best)
        return dict(zip(wanted, answers, strict=True))

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
        if not self.has_refused():
            return False
        rows = self._db.rows(
            "SELECT json_extract(envelope, '$.lifted') IS NULL FROM other WHERE tag = 'rejection' "
            "AND ? IN (ref, json_extract(envelope, '$.look')) AND scope = ? "
            "ORDER BY version DESC, line DESC LIMIT 1",
            (key, scope),
        )
        return bool(rows and rows[0][0])

    def has_refused(self) -> bool:
        """Whether a person ever refused or erased anything, so that most accounts need not look closer."""
        return self._has("rejection") or self._has("redaction")

    def is_redacted(self, key: str, scope: str) -> bool:
        """Whether the text was erased in this scope, or everywhere, and must not return."""
        sql = (
            "SELECT 1 FROM other WHERE tag = 'redaction' AND ref = ? "
            "AND coalesce(scope, 'shared') IN ('shared', ?) LIMIT 1"
        )
        return self.has_refused() and bool(self._db.rows(sql, (key, scope)))

    def is_used(self) -> bool:
        """Whether any use of any memory was noted, so that most accounts need not count them."""
        return self._has("use")

    def _has(self, tag: str) -> bool:
        if tag not in self._there:
            self._there[tag] = self._db.has(tag)
        return self._there[tag]

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

    def referring(self, id_: str, *, parts: bool = True, newest: int = -1) -> Sequence[Memory]:
        """Live memories with a link to a memory; without `parts` not those that it is a part of."""
        besides = "" if parts else "AND l.name <> 'part' "
        rows = self._db.rows(
            "SELECT DISTINCT r.envelope, r.body FROM link l JOIN revision r USING (row, until) "
            f"WHERE l.target = ? {besides}AND r.gone = 0 AND {_VALID} ORDER BY l.row DESC LIMIT ?",
            (id_, *self._now, newest),
        )
        return [decode_memory(*row) for row in rows]

    def wholes_of(self, ids: Collection[str], kinds: Collection[str]) -> list[tuple[str, int, str, str]]:
        """Live memories of some kinds that others are parts of: id, revision and scope, and the part."""
        return self._db.rows(
            "SELECT r.id, r.rev, r.scope, l.target FROM link l JOIN revision r USING (row, until) "
            f"WHERE l.target {AMONG} AND l.name = 'part' AND r.kind {AMONG} AND r.gone = 0 AND {_VALID}",
            (listed(ids), listed(kinds), *self._now),
        )

    def referred(self, ids: Collection[str]) -> set[str]:
        """Which of some memories another one has ever linked to, so that most need not be asked about.

        That they are parts of something does not count.
        """
        sql = f"SELECT DISTINCT target FROM link WHERE target {AMONG} AND name <> 'part'"
        rows = self._db.rows(sql, (listed(ids),))
        return {str(row[0]) for row in rows}

    def telling(self, topics: Sequence[str], scopes: Sequence[str] | None, newest: int) -> list[int]:
        """The rows of the newest live memories in which the user tells of a topic, of each a few.

        That is something of themselves, or under `ORDERS` a standing order or a wish.
        """
        seen = "" if scopes is None else f"AND r.scope {AMONG}"
        rows = self._db.rows(
            "SELECT (SELECT group_concat(row) FROM (SELECT t.row FROM told t CROSS JOIN revision r "
            f"USING (row) WHERE t.topic = named.value AND r.gone = 0 AND {_VALID} {seen} "
            "ORDER BY t.row DESC LIMIT ?)) FROM json_each(?) AS named",
            (*self._now, *(() if scopes is None else (listed(scopes),)), newest, listed(topics)),
        )
        return sorted({int(row) for (some,) in rows if some for row in some.split(",")})

    def at_rows(self, rows: Sequence[int]) -> list[tuple[int, int, Memory]]:
        """The memories of some rows, each with its row and the version it came in."""
        return self._db.told(f"row {AMONG}", (listed(rows),))

    def called(self, scopes: Sequence[str] | None) -> list[tuple[str, str, int]]:
        """The names that speakers were called by, with who was meant and how often, as some scopes see it."""
        seen = "" if scopes is None else f"AND r.scope {AMONG}"
        return self._db.rows(
            "SELECT c.name, c.speaker, count(*) FROM called c CROSS JOIN revision r USING (row) "
            f"WHERE r.gone = 0 AND {_VALID} {seen} GROUP BY c.name, c.speaker",
            (*self._now, *(() if scopes is None else (listed(scopes),))),
        )

    def memories(self, wanted: Filter) -> list[Memory]:
        """Live memories that pass a filter, oldest event first (or newest)."""
        where, values = _where(wanted)
        parts: list[str] = []
        bound: list[Any] = []
        for source, given in self._sources(wanted):
            parts.append(f"SELECT at, id, envelope, body FROM {source} {where}")
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
        if wanted.tags:
            source = "tagged CROSS JOIN revision USING (row, at, id) WHERE tag = ? AND gone = 0"
            return [(f"{source} AND {_VALID}", (wanted.tags[0], *self._now))]
        for column, value in (("session", wanted.sandbox), ("topic", wanted.topic)):
            if value is not None:
                return [(f"revision INDEXED BY revision_{column} WHERE gone = 0 AND {_VALID}", self._now)]
        kinds = tuple(dict.fromkeys(KINDS if wanted.kinds is None else wanted.kinds))
        live = f"revision INDEXED BY revision_live WHERE kind = ? AND {_LIVE} AND since <= ?"
        ended = f"revision INDEXED BY revision_ended WHERE gone = 0 AND {_ENDED}"
        return [*((live, (kind, self.version)) for kind in kinds), (ended, self._now)]

    def many(self, ids: Collection[str]) -> dict[str, tuple[int, Memory]]:
        """The current revisions of several memories and the versions they came in, by one query."""
        valid = self._db.told(f"id {AMONG} AND {_VALID}", (listed(ids), *self._now))
        return {memory.id: (since, memory) for _, since, memory in valid}

    def uses(self, ids: Sequence[str]) -> dict[str, tuple[int, float]]:
        """How often memories were used and the feedback they got, up to this version."""
        rows = self._db.rows(
            "SELECT ref, sum(coalesce(json_extract(envelope, '$.count'), 1)), "
            "sum(coalesce(json_extract(envelope, '$.feedback'), 0)) FROM other "
            f"WHERE tag = 'use' AND ref {AMONG} AND version <= ? GROUP BY ref",
            (listed(ids), self.version),
        )
        return {str(ref): (int(count), float(feedback)) for ref, count, feedback in rows}

    def tallies(self) -> list[tuple[str, str, str, int]]:
        """Live memories by kind, scope and category: the counters of now, less what has happened since."""
        return self._db.rows(
            "SELECT kind, scope, category, sum(n) FROM ("
            "SELECT kind, scope, category, live AS n FROM tally UNION ALL "
            "SELECT kind, scope, coalesce(category, ''), -1 FROM revision INDEXED BY revision_since "
            f"WHERE since > ? AND {_LIVE} UNION ALL "
            "SELECT kind, scope, coalesce(category, ''), 1 FROM revision INDEXED BY revision_ended "
            f"WHERE gone = 0 AND {_ENDED}) GROUP BY 1, 2, 3 HAVING sum(n) > 0",
            (self.version, *self._now),
        )

    def _memory(self, where: str, values: Sequence[Any]) -> Memory | None:
        return next((memory for _, _, memory in self._db.told(f"{where} LIMIT 1", values)), None)

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
    sign = "<" if wanted.newest else ">"
    among = (("kind", wanted.kinds), ("layer", wanted.layers), ("scope", wanted.scopes))
    since, until = (None if at is None else micros(at) for at in (wanted.since, wanted.until))
    asked: list[tuple[str, Any]] = [
        *((f"{name} {AMONG}", None if some is None else listed(some)) for name, some in among),
        ("topic = ?", wanted.topic),
        ("category = ?", wanted.category),
        ("session = ?", wanted.sandbox),
        *((_ALSO_TAGGED, tag) for tag in (wanted.tags or ())[1:]),
        ("at >= ?", since),
        ("at <= ?", until),
    ]
    told = [(condition, value) for condition, value in asked if value is not None]
    conditions, values = [condition for condition, _ in told], [value for _, value in told]
    if wanted.after is not None:
        conditions, values = (
            [*conditions, f"(at, id) {sign} (?, ?)"],
            [*values, micros(wanted.after[0]), wanted.after[1]],
        )
    return " ".join(f"AND {condition}" for condition in conditions), values
