"""Composing: the composites of one embedder follow the ledger and its vectors, and know when they do not."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from itertools import chain

from msgspec.structs import replace

from octavo.domain.assembling import GROUPED, KIND, LEAST, live_members, members_of
from octavo.domain.filters import Filter
from octavo.domain.memory import KINDS, Memory
from octavo.engine.embedding import VECTOR, Embedding
from octavo.engine.spine import Spine
from octavo.libraries import Array, np
from octavo.storage import composites
from octavo.storage.codec import micros
from octavo.storage.columns import Latest, writing
from octavo.storage.composites import Composite, Composites
from octavo.storage.rows import OPEN, Units, key_code
from octavo.storage.state_view import DbView
from octavo.storage.vectors import Vectors, checked_vectors

NO_VECTOR, REVISION, AGE = "no_vector", "revision", "age"
_NAMED = 5


class Composing:
    """One embedder's composites for one account; no boost comes of one whose members changed since."""

    def __init__(self, spine: Spine, embedding: Embedding, units: Callable[[], Units]) -> None:
        self._spine, self._embedding, self._units = spine, embedding, units
        self.name = embedding.embedder.name
        self.held = Latest(embedding.folder / composites.FILE, self._read)

    def follow(self) -> None:
        """Make the composites of what changed, as far as words and vectors have come; renew what has aged."""
        units, vectors = self._now()
        mark, seen, old = units.manifest.watermark, _seen(vectors), self.held()
        if self._spine.read_only or not mark.version:
            return
        if (old.watermark, old.vectors) != (mark, seen):
            with writing(self._embedding.index):
                before, view = self._read(), self._spine.state.at(mark.version)
                due = self._due(before, view)
                if not (due or before.rows or before.assembled):
                    return  # an account without assemblies keeps no files for them
                rows = [row for row in before.rows if row.id not in due]
                rows += self._composed(due.values(), view, units, vectors)
                made = replace(before, watermark=mark, vectors=seen, rows=tuple(rows))
                composites.publish(self._embedding.folder, made)
        if old.rows and max(old.rows[0].at, old.verified) < self._oldest():  # the first row is the oldest
            self.verify(stamp=True)

    def assembled(self) -> int:
        """Up to which row memories were looked at for grouping; where nobody noted it, the ledger knows."""
        noted = self.held()
        if noted.assembled or not noted.rows:
            return min(noted.assembled, self._units().manifest.rows)
        last = self._spine.state.last_cause("assemble [0-9]*")
        return self._units().rows_until(int(last.partition(" ")[2]) if last else 0)

    def note(self, **fields: int) -> None:
        """Note in the manifest up to which row memories were `assembled`, or when all was `verified`."""
        # Where another index took this one's place meanwhile, it is noted there by the next pass.
        with suppress(FileNotFoundError), writing(self._embedding.index):
            composites.publish(self._embedding.folder, replace(self._read(), **fields))

    def drift(
        self, held: Composites, view: DbView, asked: Mapping[str, int], own: Collection[str] = ()
    ) -> dict[str, str]:
        """Why some assemblies of a view, of which the revisions are told, have no composite to go by.

        `own` are memories that a sandbox changed. Assemblies that are fresh are not in the answer.
        """
        low, high = sorted((held.watermark.version, view.version))
        changed, members, reasons, oldest = set(own), dict[str, tuple[str, ...]](), {}, self._oldest()
        if low < high or own:
            members = {id_: members_of(memory) for id_, (_, memory) in view.many(asked).items()}
            there = {*asked, *chain(*members.values())}
            changed.update(self._spine.state.ids_changed(low, high, among=there))
        for id_, rev in asked.items():
            row = held.get(id_)
            if row is None:
                reasons[id_] = NO_VECTOR
            elif row.rev != rev or not changed.isdisjoint((id_, *members.get(id_, ()))):
                reasons[id_] = REVISION
            elif max(row.at, held.verified) < oldest:
                reasons[id_] = AGE
        return reasons

    def _oldest(self) -> float:
        """Since when a composite must have been made or found right, in microseconds."""
        longest = self._spine.policy.index.max_allowed_drift_seconds
        return 0.0 if longest is None else micros(self._spine.now()) - 1_000_000 * longest

    def verify(self, *, stamp: bool = False) -> list[str]:
        """Which composites are not what their members' vectors make them; `stamp` notes that all are.

        Those that are behind the vectors are not compared, and not stamped.
        """
        held, (units, vectors) = self.held(), self._now()
        mark = units.manifest.watermark
        if not held.rows or (held.watermark, held.vectors) != (mark, _seen(vectors)):
            return []
        view = self._spine.state.at(mark.version)
        right = self._composed(view.memories(Filter(kinds=(KIND,))), view, units, vectors)
        old, new = ({row.id: replace(row, at=0) for row in rows} for rows in (held.rows, right))
        wrong = sorted(id_ for id_ in old.keys() | new.keys() if old.get(id_) != new.get(id_))
        if stamp and not wrong and not self._spine.read_only:
            self.note(verified=micros(self._spine.now()))
        return [f"index/composites: that of {id_} is not what its members make it" for id_ in wrong[:_NAMED]]

    def vectors_of(self, memories: Iterable[Memory]) -> dict[str, Array]:
        """The vectors of some memories, an assembly's being its composite, of those that have one."""
        some, held = list(memories), self.held()
        wholes = {m.id: held.floats[held.places[m.id]] for m in some if held.get(m.id)}
        return wholes | _vectors(some, *self._now())

    def nearest(self, memory: Memory, vector: Array, limit: int, *, older: bool = False) -> dict[str, float]:
        """The other members-to-be of its scope whose passages are nearest to a memory, and their cosines."""
        units, vectors = self._now()
        ends, rows, key = units.valid_to, units.column("rows"), key_code(memory.id)
        kinds, scopes = [KINDS.index(kind) for kind in GROUPED], units.scope_codes((memory.scope,))
        first = min((row for row, _ in units.rows_of([(memory.id, memory.rev)])), default=0)

        def is_able(some: Array) -> Array:
            told = rows[some]
            able: Array = (ends[some] == OPEN) & (told["scope"] == scopes[0]) & (told["key"] != key)
            return able & np.isin(told["kind"], kinds) & ((some < first) | (not older))

        found, cosines = vectors.nearest(vector.astype(np.float32), is_able, limit=limit)
        near: dict[str, float] = {}
        for id_, cosine in zip(map(units.memory_of, rows[found]), cosines.tolist(), strict=True):
            near.setdefault(id_, cosine)
        return near

    def _due(self, before: Composites, view: DbView) -> dict[str, Memory]:
        """The assemblies whose rows are to be made: they or members of theirs changed, or a vector lacked."""
        low, high = before.watermark.version, view.version
        if not low:
            return {m.id: m for m in view.memories(Filter(kinds=(KIND,)))}
        due = {row.id for row in before.rows if row.used < row.members}
        due.update(self._spine.state.ids_changed(low, high, kind=KIND))
        due.update(id_ for id_, *_ in view.wholes_of(self._spine.state.ids_changed(low, high), (KIND,)))
        return {id_: memory for id_, (_, memory) in view.many(sorted(due)).items()}

    def _composed(
        self, assemblies: Iterable[Memory], view: DbView, units: Units, vectors: Vectors
    ) -> list[Composite]:
        """The composites of some assemblies; one that has ended has none."""
        live = [m for m in assemblies if not m.gone]
        members = {m.id: m for m in live_members(view, {id_ for m in live for id_ in members_of(m)})}
        known, now = _vectors(members.values(), units, vectors), micros(self._spine.now())
        made = []
        for assembly in live:
            own = sorted(id_ for id_ in members_of(assembly) if id_ in members)
            some = [known[id_] for id_ in own if id_ in known]
            total, used = np.sum(some, axis=0, dtype=np.float64), len(some)
            if used < LEAST:
                total = self._imported(assembly, [members[id_] for id_ in own])
                used = len(own) if total.any() else used
            basis = "\n".join(f"{id_} {members[id_].rev}" for id_ in own)
            made.append(
                Composite(
                    id=assembly.id,
                    rev=assembly.rev,
                    basis=hashlib.sha256(basis.encode()).hexdigest()[:16],
                    scope=assembly.scope,
                    members=len(own),
                    used=used,
                    at=now,
                    vector=np.asarray(total / (np.linalg.norm(total) or 1.0), dtype="<f2").tobytes(),
                )
            )
        return made

    def _imported(self, assembly: Memory, members: list[Memory]) -> Array:
        """The composite that came with an assembly, while its members have no vectors and did not change."""
        told, embedder = assembly.data.get(VECTOR), self._embedding.embedder
        is_same = len(members) >= LEAST and all(member.rev == 1 for member in members)
        values = told["values"] if isinstance(told, Mapping) and told["embedder"] == embedder.name else ()
        if not is_same or len(values) != embedder.dimension:
            return np.zeros(embedder.dimension)
        came: Array = checked_vectors(values, embedder.dimension)[0]
        return came

    def _now(self) -> tuple[Units, Vectors]:
        units = self._units()
        return units, self._embedding.now().up_to(units.manifest.rows)

    def _read(self) -> Composites:
        own, is_ours = self._embedding, self._spine.ledger.holds
        return composites.read(own.folder, own.embedder.name, own.embedder.dimension, is_ours)


def _seen(vectors: Vectors) -> tuple[int, int]:
    return vectors.manifest.rows, len(vectors.lacking)


def _vectors(memories: Iterable[Memory], units: Units, vectors: Vectors) -> dict[str, Array]:
    """One vector of length one a memory: the mean of its passages'; none if one of them lacks its own."""
    rows: dict[str, list[int]] = {}
    for row, (id_, _) in units.rows_of((m.id, m.rev) for m in memories):
        rows.setdefault(id_, []).append(row)
    lacking, made = set(vectors.lacking.tolist()), {}
    for id_, own in rows.items():
        if max(own) < vectors.manifest.rows and lacking.isdisjoint(own):
            mean = vectors.floats[own].astype(np.float64).mean(axis=0)
            if length := float(np.linalg.norm(mean)):
                made[id_] = mean / length
    return made
