"""Composing: the composites of one embedder follow the ledger and its vectors, and know when they do not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from octavo.domain.assembling import KIND, LEAST, basis_of, is_aged, may_belong, members_of
from octavo.domain.erasure import Erasure
from octavo.domain.filters import Filter
from octavo.domain.memory import Memory
from octavo.domain.units import Watermark
from octavo.engine.embedding import VECTOR, Embedding
from octavo.engine.spine import Spine
from octavo.libraries import Array, np
from octavo.storage import composites, retries
from octavo.storage.columns import writing
from octavo.storage.composites import Composite, CompositeManifest, Composites
from octavo.storage.projections import Progress
from octavo.storage.rows import OPEN, Units
from octavo.storage.state_view import DbView
from octavo.storage.vectors import Vectors, checked_vectors

NO_VECTOR, REVISION, AGE = "no_vector", "revision", "age"
_NAMED = 5


class Composing:
    """One embedder's composites for one account; no boost comes of one whose members changed since."""

    name = "index/composites"

    def __init__(self, spine: Spine, embedding: Embedding, units: Callable[[], Units]) -> None:
        self._spine = spine
        self._embedding = embedding
        self._units = units
        self._lock = threading.RLock()
        self._held: tuple[object, Composites] | None = None

    def held(self) -> Composites:
        """The composites as they are published now."""
        with self._lock:
            stamp = self._stamp()
            if self._held is None or self._held[0] != stamp:
                self._held = (stamp, self._read())
            return self._held[1]

    def watermark(self) -> Watermark:
        """The version the composites have reached."""
        return self.held().manifest.watermark

    def follow(self, progress: Progress | None = None) -> None:
        """Make the composites of what changed, as far as words and vectors have come."""
        if self._spine.read_only:
            return
        units, vectors = self._now()
        seen = _seen(vectors)
        mark, old = units.manifest.watermark, self.held().manifest
        if (old.watermark, old.vectors) == (mark, seen) or not mark.version:
            return
        with writing(self._embedding.index):
            before = self._read()
            if not self._is_ours(before.manifest.watermark, mark):
                before = self._none()
            view = self._spine.state.at(mark.version)
            due = self._due(before.manifest, view)
            if not before.manifest.rows and not due and not before.manifest.assembled:
                return  # an account without assemblies keeps no files for them
            made = self._composed(view.many(due), view, units, vectors) if due else {}
            kept = [row for row in before.manifest.rows if row.id not in due]
            rows = (*kept, *(row for row, _ in made.values()))
            halves = [before.halves[before.places[row.id]] for row in kept] + [v for _, v in made.values()]
            manifest = replace(before.manifest, watermark=mark, vectors=seen, rows=rows)
            composites.publish(self._embedding.folder, manifest, self._stacked(halves))

    def assembled(self) -> int:
        """Up to which row memories were looked at for grouping; where nobody noted it, the ledger knows."""
        noted = self.held().manifest
        if noted.assembled or not noted.rows:
            return min(noted.assembled, self._units().manifest.rows)
        last = self._spine.state.last_cause("assemble [0-9]*")
        return self._units().rows_until(int(last.partition(" ")[2]) if last else 0)

    def note_assembled(self, row: int) -> None:
        """Note up to which row memories were looked at."""
        # Where another index took this one's place meanwhile, it is noted there by the next pass.
        with suppress(FileNotFoundError), writing(self._embedding.index):
            held = self._read()
            composites.publish(self._embedding.folder, replace(held.manifest, assembled=row), held.halves)

    def drift(
        self,
        version: int,
        found: Mapping[str, tuple[int, Collection[str]]],
        own: Collection[str] = (),
    ) -> dict[str, str]:
        """Why some assemblies have no composite to go by, of their revision and members at a version.

        `own` are memories that a sandbox changed. Assemblies that are fresh are not in the answer.
        """
        held, reasons = self.held(), {}
        mark = held.manifest.watermark.version
        low, high = sorted((mark, version))
        asked = {id_ for whole, (_, members) in found.items() for id_ in (whole, *members)}
        changed = set(own)
        if low < high:
            changed |= self._spine.state.changed_among(asked, low, high)
        for id_, (rev, members) in found.items():
            row = held.row(id_)
            if row is None or row.used < LEAST:
                reasons[id_] = NO_VECTOR
            elif row.rev != rev or not changed.isdisjoint((id_, *members)):
                reasons[id_] = REVISION
            elif self._is_aged(row, held.manifest):
                reasons[id_] = AGE
        return reasons

    def updated(self, id_: str) -> datetime | None:
        """When an assembly's composite was made; only indexing says so, writing the assembly does not."""
        row = self.held().row(id_)
        return None if row is None or row.used < LEAST else retries.moment(row.at)

    def verified(self) -> datetime | None:
        """When all the composites were last found right."""
        at = self.held().manifest.verified
        return retries.moment(at) if at else None

    def has_aged(self) -> bool:
        """Whether some composites boost no more only because nobody verified them."""
        held = self.held()
        return any(self._is_aged(row, held.manifest) for row in held.manifest.rows[:1])

    def verify(self, *, stamp: bool = False) -> list[str]:
        """Which composites are not what their members' vectors make them; `stamp` notes that all are."""
        held = self.held()
        if not held.manifest.rows:
            return []
        units, vectors = self._now()
        mark = held.manifest.watermark
        if mark.version > units.manifest.watermark.version or not self._is_ours(mark, mark):
            return [f"{self.name} was made from another version {mark.version}"]
        problems: list[str] = []
        if (mark, held.manifest.vectors) == (units.manifest.watermark, _seen(vectors)):
            view = self._spine.state.at(mark.version)
            whole = {m.id: (0, m) for m in view.memories(Filter(kinds=(KIND,)))}
            right = self._composed(whole, view, units, vectors)
            wrong = [id_ for id_, (row, vector) in right.items() if not _same(held, row, vector)]
            wrong += [row.id for row in held.manifest.rows if row.id not in right]
            problems = [
                f"{self.name}: that of {id_} is not what its members make it" for id_ in wrong[:_NAMED]
            ]
        if stamp and not problems and not self._spine.read_only:
            with suppress(FileNotFoundError), writing(self._embedding.index):
                now = self._read()
                manifest = replace(now.manifest, verified=retries.micros(self._spine.now()))
                composites.publish(self._embedding.folder, manifest, now.halves)
        return problems

    def erase(self, erasure: Erasure) -> list[str]:
        """Throw the composites away; they are made anew without what was erased."""
        self.clear()
        return []

    def clear(self) -> None:
        """Begin anew."""
        composites.remove(self._embedding.folder)
        self._held = None

    def vector_of(self, memories: Sequence[Memory]) -> dict[str, Array]:
        """The vectors of some memories as composites use them, of those that have one."""
        units, vectors = self._now()
        return _vectors({(m.id, m.rev) for m in memories}, units, vectors)

    def nearness(self, memory: Memory, vector: Array) -> dict[str, float]:
        """A memory's cosine with the mean vector, its best with an older memory and with a composite."""
        units, vectors = self._now()
        held = self.held()
        first = min(row for row, _ in units.rows_of([(memory.id, memory.rev)]))
        ends, asked = units.valid_to(), vector.astype(np.float32)

        def older(rows: Array) -> Array:
            seen: Array = (rows < first) & (ends[rows] == OPEN)
            return seen

        mean = vectors.mean(units.manifest.rows)
        length = float(np.linalg.norm(mean)) or 1.0
        _, cosines = vectors.nearest(asked, older, limit=1)
        own = [place for place, row in enumerate(held.manifest.rows) if row.scope == memory.scope]
        return {
            "mean": float(mean @ asked) / length,
            "older": float(cosines[0]) if len(cosines) else 0.0,
            "composite": float((held.floats[own] @ asked).max()) if own else 0.0,
        }

    def _due(self, manifest: CompositeManifest, view: DbView) -> list[str]:
        """The assemblies whose rows are to be made: they or members of theirs changed, or a vector lacked."""
        if not manifest.watermark.version:
            return [m.id for m in view.memories(Filter(kinds=(KIND,)))]
        changed = self._spine.state.ids_changed(manifest.watermark.version, view.version)
        due = {row.id for row in manifest.rows if row.used < row.members}
        due |= {row.id for row in manifest.rows} & set(changed)
        due |= {id_ for id_, *_ in view.assemblies_of(changed)}
        due |= {id_ for id_ in changed if (m := view.get(id_)) and m.kind == KIND}
        return sorted(due)

    def _composed(
        self, assemblies: Mapping[str, tuple[int, Memory]], view: DbView, units: Units, vectors: Vectors
    ) -> dict[str, tuple[Composite, Array]]:
        """The rows of some assemblies; one that has ended has none."""
        live = {id_: m for id_, (_, m) in assemblies.items() if not m.gone and m.kind == KIND}
        known = view.many({id_ for m in live.values() for id_ in members_of(m)})
        members = {id_: m for id_, (_, m) in known.items() if may_belong(m)}
        found = _vectors({(m.id, m.rev) for m in members.values()}, units, vectors)
        made = {}
        for id_, assembly in live.items():
            own = [members[m] for m in members_of(assembly) if m in members]
            basis = basis_of((m.id, m.rev) for m in own)
            some = [found[m.id] for m in sorted(own, key=lambda m: m.id) if m.id in found]
            is_enough = len(some) >= LEAST
            total = np.sum(some, axis=0, dtype=np.float64) if is_enough else self._imported(assembly, own)
            length = 0.0 if total is None else float(np.linalg.norm(total))
            used = len(some) if is_enough or total is None else len(own)
            row = Composite(
                id=id_,
                rev=assembly.rev,
                basis=basis,
                scope=assembly.scope,
                members=len(own),
                used=used,
                length=length,
                at=retries.micros(self._spine.now()),
            )
            none = np.zeros(self._embedding.embedder.dimension)
            vector = none if total is None or not length else total / length
            made[id_] = (row, np.asarray(vector, dtype="<f2"))
        return made

    def _imported(self, assembly: Memory, members: Sequence[Memory]) -> Array | None:
        """The composite that came with an assembly, while its members have no vectors and did not change."""
        told = assembly.data.get(VECTOR)
        if not isinstance(told, Mapping) or told.get("embedder") != self._embedding.embedder.name:
            return None
        if len(members) < LEAST or any(member.rev > 1 for member in members):
            return None
        found: Array = checked_vectors(told["values"], self._embedding.embedder.dimension)[0]
        return found * (len(members) / (float(np.linalg.norm(found)) or 1.0))  # as if all were just alike

    def _now(self) -> tuple[Units, Vectors]:
        units = self._units()
        return units, self._embedding.vectors().up_to(units.manifest.rows)

    def _is_aged(self, row: Composite, manifest: CompositeManifest) -> bool:
        verified = retries.moment(manifest.verified) if manifest.verified else None
        longest = self._spine.policy.index.max_allowed_drift_seconds
        return is_aged(retries.moment(row.at), verified, self._spine.now(), longest)

    def _is_ours(self, mark: Watermark, reached: Watermark) -> bool:
        """Whether a watermark is of this ledger, and not beyond what is indexed."""
        if not mark.version or mark == reached:
            return True
        ledger = self._spine.ledger
        return (
            mark.version <= reached.version
            and ledger.exists(mark.version)
            and ledger.hash_of(mark.version) == mark.header
        )

    def _stacked(self, halves: Sequence[Array]) -> Array:
        dimension = self._embedding.embedder.dimension
        return np.stack(halves) if halves else np.empty((0, dimension), dtype="<f2")

    def _read(self) -> Composites:
        embedder = self._embedding.embedder
        return composites.read(self._embedding.folder, embedder.name, embedder.dimension)

    def _none(self) -> Composites:
        return composites.empty(self._embedding.embedder.name, self._embedding.embedder.dimension)

    def _stamp(self) -> object:
        try:
            status = (self._embedding.folder / composites.ROWS).stat()
        except FileNotFoundError:
            return None
        return (status.st_ino, status.st_mtime_ns)


def _seen(vectors: Vectors) -> tuple[int, int]:
    return vectors.manifest.rows, len(vectors.lacking)


def _same(held: Composites, row: Composite, vector: Any) -> bool:
    old = held.row(row.id)
    if old is None or (old.rev, old.basis, old.used) != (row.rev, row.basis, row.used):
        return False
    return bool((held.halves[held.places[row.id]] == vector).all())


def _vectors(revisions: Iterable[tuple[str, int]], units: Units, vectors: Vectors) -> dict[str, Array]:
    """One vector of length one a memory: the mean of its passages'; none if one of them lacks its own."""
    rows: dict[str, list[int]] = {}
    for row, (id_, _) in units.rows_of(revisions):
        rows.setdefault(id_, []).append(row)
    lacking, made = set(vectors.lacking.tolist()), {}
    for id_, own in rows.items():
        if max(own) >= vectors.manifest.rows or not lacking.isdisjoint(own):
            continue
        mean = vectors.floats[own].astype(np.float64).mean(axis=0)
        length = float(np.linalg.norm(mean))
        if length:
            made[id_] = mean / length
    return made
