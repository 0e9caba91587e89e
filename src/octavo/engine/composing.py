"""Composing: the composites of one embedder follow the ledger and its vectors, and know when they do not."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from itertools import chain

from msgspec.structs import replace

from octavo.domain.assembling import KIND, LEAST, live_members, members_of
from octavo.domain.filters import Filter
from octavo.domain.memory import Memory
from octavo.domain.units import Watermark
from octavo.engine.embedding import VECTOR, Embedding
from octavo.engine.freshness import Freshness
from octavo.engine.spine import Spine
from octavo.libraries import Array, np
from octavo.storage import composites
from octavo.storage.codec import micros, moment_of
from octavo.storage.columns import stamp_of, writing
from octavo.storage.composites import Composite, CompositeManifest, Composites
from octavo.storage.rows import Units
from octavo.storage.state_view import DbView
from octavo.storage.vectors import Vectors, checked_vectors

NO_VECTOR, REVISION, AGE = "no_vector", "revision", "age"
_NAMED = 5


class Composing:
    """One embedder's composites for one account; no boost comes of one whose members changed since."""

    def __init__(self, spine: Spine, embedding: Embedding, units: Callable[[], Units]) -> None:
        self._spine, self._embedding, self._units = spine, embedding, units
        self._path = embedding.folder / composites.ROWS
        self._lock = threading.RLock()
        self._held: tuple[object, Composites] | None = None

    def held(self) -> Composites:
        """The composites as they are published now."""
        with self._lock:
            stamp = stamp_of(self._path)
            if self._held is None or self._held[0] != stamp:
                self._held = (stamp, self._read())
            return self._held[1]

    def follow(self) -> None:
        """Make the composites of what changed, as far as words and vectors have come; renew what has aged."""
        units, vectors = self._now()
        mark, seen, old = units.manifest.watermark, _seen(vectors), self.held().manifest
        if self._spine.read_only or not mark.version:
            return
        if (old.watermark, old.vectors) != (mark, seen):
            with writing(self._embedding.index):
                before, view = self._read(), self._spine.state.at(mark.version)
                due = self._due(before.manifest, view)
                if not (due or before.manifest.rows or before.manifest.assembled):
                    return  # an account without assemblies keeps no files for them
                made = [(row, vector) for row, vector in before.pairs() if row.id not in due]
                made += self._composed(due.values(), view, units, vectors)
                rows, halves = tuple(row for row, _ in made), np.array([vector for _, vector in made])
                manifest = replace(before.manifest, watermark=mark, vectors=seen, rows=rows)
                composites.publish(self._embedding.folder, manifest, halves)
        if old.rows and max(old.rows[0].at, old.verified) < self._oldest():  # the first row is the oldest
            self.verify(stamp=True)

    def assembled(self) -> int:
        """Up to which row memories were looked at for grouping; where nobody noted it, the ledger knows."""
        noted = self.held().manifest
        if noted.assembled or not noted.rows:
            return min(noted.assembled, self._units().manifest.rows)
        last = self._spine.state.last_cause("assemble [0-9]*")
        return self._units().rows_until(int(last.partition(" ")[2]) if last else 0)

    def note(self, **fields: int) -> None:
        """Note in the manifest up to which row memories were `assembled`, or when all was `verified`."""
        # Where another index took this one's place meanwhile, it is noted there by the next pass.
        with suppress(FileNotFoundError), writing(self._embedding.index):
            now = self._read()
            composites.publish(self._embedding.folder, replace(now.manifest, **fields), now.halves)

    def drift(
        self, held: Composites, view: DbView, asked: Mapping[str, int], own: Collection[str] = ()
    ) -> dict[str, str]:
        """Why some assemblies of a view, of which the revisions are told, have no composite to go by.

        `own` are memories that a sandbox changed. Assemblies that are fresh are not in the answer.
        """
        low, high = sorted((held.manifest.watermark.version, view.version))
        changed, members, reasons, oldest = set(own), dict[str, tuple[str, ...]](), {}, self._oldest()
        if low < high or own:
            members = {id_: members_of(memory) for id_, (_, memory) in view.many(asked).items()}
            there = {*asked, *chain(*members.values())}
            changed.update(self._spine.state.ids_changed(low, high, among=there))
        for id_, rev in asked.items():
            row = held.rows.get(id_)
            if row is None or row.used < LEAST:
                reasons[id_] = NO_VECTOR
            elif row.rev != rev or not changed.isdisjoint((id_, *members.get(id_, ()))):
                reasons[id_] = REVISION
            elif max(row.at, held.manifest.verified) < oldest:
                reasons[id_] = AGE
        return reasons

    def freshness(self, memory: Memory) -> Freshness:
        """Whether there is a composite of an assembly and its members as they are now, and since when."""
        held = self.held()
        row, verified = held.rows.get(memory.id), held.manifest.verified
        at = row.at if row and row.used >= LEAST else 0
        reason = self.drift(held, self._spine.head(), {memory.id: memory.rev}).get(memory.id)
        age = self._spine.now() - moment_of(max(at, verified))
        return Freshness(
            memory=memory.id,
            rev=memory.rev,
            indexed_rev=row.rev if row else None,
            vector_index_updated_at=moment_of(at) if at else None,
            verified_at=moment_of(verified) if verified else None,
            age_seconds=age.total_seconds() if at else None,
            is_drifted=reason is not None,
            drift_reason=reason,
        )

    def _oldest(self) -> float:
        """Since when a composite must have been made or found right, in microseconds."""
        longest = self._spine.policy.index.max_allowed_drift_seconds
        return 0.0 if longest is None else micros(self._spine.now()) - 1_000_000 * longest

    def verify(self, *, stamp: bool = False) -> list[str]:
        """Which composites are not what their members' vectors make them; `stamp` notes that all are.

        Those that are behind the vectors are not compared, and not stamped.
        """
        held, (units, vectors) = self.held(), self._now()
        told, mark = held.manifest, units.manifest.watermark
        if not told.rows or (told.watermark, told.vectors) != (mark, _seen(vectors)):
            return []
        view = self._spine.state.at(mark.version)
        right = self._composed(view.memories(Filter(kinds=(KIND,))), view, units, vectors)
        old, new = (
            {row.id: (row.rev, row.basis, row.used, vector.tobytes()) for row, vector in pairs}
            for pairs in (held.pairs(), right)
        )
        wrong = sorted(id_ for id_ in old.keys() | new.keys() if old.get(id_) != new.get(id_))
        if stamp and not wrong and not self._spine.read_only:
            self.note(verified=micros(self._spine.now()))
        return [f"index/composites: that of {id_} is not what its members make it" for id_ in wrong[:_NAMED]]

    def vectors_of(self, memories: Iterable[Memory]) -> dict[str, Array]:
        """The vectors of some memories as composites use them, of those that have one."""
        return _vectors(memories, *self._now())

    def _due(self, manifest: CompositeManifest, view: DbView) -> dict[str, Memory]:
        """The assemblies whose rows are to be made: they or members of theirs changed, or a vector lacked."""
        low, high = manifest.watermark.version, view.version
        if not low:
            return {m.id: m for m in view.memories(Filter(kinds=(KIND,)))}
        due = {row.id for row in manifest.rows if row.used < row.members}
        due.update(self._spine.state.ids_changed(low, high, kind=KIND))
        due.update(id_ for id_, *_ in view.wholes_of(self._spine.state.ids_changed(low, high), (KIND,)))
        return {id_: memory for id_, (_, memory) in view.many(sorted(due)).items()}

    def _composed(
        self, assemblies: Iterable[Memory], view: DbView, units: Units, vectors: Vectors
    ) -> list[tuple[Composite, Array]]:
        """The rows of some assemblies with their vectors; one that has ended has none."""
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
            length = float(np.linalg.norm(total))
            basis = "\n".join(f"{id_} {members[id_].rev}" for id_ in own)
            row = Composite(
                id=assembly.id,
                rev=assembly.rev,
                basis=hashlib.sha256(basis.encode()).hexdigest()[:16],
                scope=assembly.scope,
                members=len(own),
                used=used,
                length=length,
                at=now,
            )
            made.append((row, np.asarray(total / (length or 1.0), dtype="<f2")))
        return made

    def _imported(self, assembly: Memory, members: list[Memory]) -> Array:
        """The composite that came with an assembly, while its members have no vectors and did not change."""
        told, embedder = assembly.data.get(VECTOR), self._embedding.embedder
        is_same = len(members) >= LEAST and all(member.rev == 1 for member in members)
        if not is_same or not isinstance(told, Mapping) or told.get("embedder") != embedder.name:
            return np.zeros(embedder.dimension)
        came: Array = checked_vectors(told["values"], embedder.dimension)[0]
        return came * (len(members) / (float(np.linalg.norm(came)) or 1.0))  # as if all were just alike

    def _now(self) -> tuple[Units, Vectors]:
        units = self._units()
        return units, self._embedding.now().up_to(units.manifest.rows)

    def _read(self) -> Composites:
        embedder, ledger = self._embedding.embedder, self._spine.ledger

        def is_ours(mark: Watermark) -> bool:
            return ledger.exists(mark.version) and ledger.hash_of(mark.version) == mark.header

        return composites.read(self._embedding.folder, embedder.name, embedder.dimension, is_ours)


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
