"""What the newest versions changed, read once and kept between questions.

What is above the index's watermark is searched exactly with every question. Who goes by which name, which
orders hold and whether there are summaries is asked with every question too, though few versions change it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence, Set
from pathlib import Path

from octavo.domain.memory import Memory
from octavo.domain.names import called_in
from octavo.domain.orders import orders_of
from octavo.domain.units import Unit
from octavo.engine.embedding import Embedding
from octavo.engine.indexing import Indexing
from octavo.engine.spine import Spine
from octavo.storage.batches import grown
from octavo.storage.rows import Units, behind
from octavo.storage.state_view import DbView
from octavo.storage.vectors import Vectors

NAMES, ORDERS = "names", "orders"
_MANY = 512  # revisions after which it is cheaper to begin anew than to read them all
_TAILS = 4  # of the account, and of a few sandboxes that are asked by turns

Told = list[tuple[Memory, Unit]]
Revision = tuple[str, int]


class Tail:
    """What an index does not hold, as columns of the same shape that stand behind its own."""

    def __init__(self, index: Units, told: Told, units: Units) -> None:
        self.index, self.told, self.units = index, told, units
        self._vectors: tuple[Embedding, Set[Revision], Vectors] | None = None

    def begins(self, index: Units, told: Told) -> bool:
        """Whether what is told of begins with this."""
        own, other = ([unit for _, unit in some] for some in (self.told, told[: len(self.told)]))
        return self.index is index and own == other

    def vectors(self, source: Embedding, ends: Set[Revision]) -> Vectors:
        """One vector a passage, made for the first question that asks; what has ended has none."""
        if self._vectors is None or self._vectors[0] is not source or not self._vectors[1] <= ends:
            self._vectors = (source, ends, source.held(self.told, ends))
        return self._vectors[2]


class Recent:
    """The versions above one account's index; what they change costs what they hold, whoever wrote them.

    An index that takes the place of another, and a redaction, leave nothing of it.
    """

    def __init__(self, spine: Spine, indexing: Indexing) -> None:
        self._spine, self._indexing = spine, indexing
        self._lock = threading.RLock()
        self._begin(None, 0, 0, 0)

    def _begin(self, folder: Path | None, mark: int, version: int, redacted: int) -> None:
        self._folder, self._mark, self._version, self._redacted = folder, mark, mark, redacted
        self._read: list[tuple[int, Memory, Unit]] = []
        self._ends: list[tuple[str, int, int]] = []
        self._places: dict[str, int] = {}
        self._tails: list[Tail] = []
        self._changed = dict.fromkeys((NAMES, ORDERS), version)

    def tail(self, units: Units, base: DbView, own: Sequence[Memory]) -> tuple[Tail, set[Revision]]:
        """What an index does not hold, and which revisions ended since.

        That is what became valid above its watermark, up to a version, and a sandbox's own writes.
        """
        mark, version = units.manifest.watermark.version, base.version
        with self._lock:
            self._follow(units, mark, base)
            told = [(memory, unit) for since, memory, unit in self._read if mark < since <= version]
            ends = {(id_, rev) for id_, rev, until in self._ends if mark < until <= version}
            places: dict[str, int] = {}
            for memory in own:
                ends |= {(memory.id, rev) for rev in range(1, memory.rev)}
                told += [(memory, unit) for unit in self._indexing.units_of(memory, version, places, version)]
            return self._analysed(units, told), ends

    def unchanged_since(self, about: str, version: int) -> int:
        """The version since which nothing of a sort changed up to this one, as far as that was read."""
        since = self._changed[about]
        return since if since <= version <= self._version else version

    def _analysed(self, units: Units, told: Told) -> Tail:
        """What was analysed for another question is not analysed again."""
        fitting = [tail for tail in self._tails if tail.begins(units, told)]
        tail = max(fitting, key=lambda tail: len(tail.told), default=Tail(units, [], behind(units)))
        if new := [unit for _, unit in told[len(tail.told) :]]:
            tail = Tail(units, told, grown(tail.units, new))
            self._tails = [*self._tails, tail][-_TAILS:]
        return tail

    def _follow(self, units: Units, mark: int, base: DbView) -> None:
        """Read what came since the last question, and let go of what is indexed."""
        before, version, state = self._version, base.version, self._spine.state
        if version > before or units.folder != self._folder or mark < self._mark:
            erased = state.others("redaction", newest=1)
            redacted = erased[0][0] if erased else 0
            is_other = units.folder != self._folder or mark < self._mark or redacted != self._redacted
            if is_other or (mark > before and state.has_more_than(_MANY, before, mark)):
                self._begin(units.folder, mark, version, redacted)
                before = mark
        if mark > self._mark:
            self._mark = mark
            self._read = [each for each in self._read if each[0] > mark]
            self._ends = [each for each in self._ends if each[2] > mark]
            self._tails = [tail for tail in self._tails if tail.index is units]
        if version <= before:
            return
        is_first = True  # of its memory, each of them: then no other ended
        for since, memory in state.revisions_since(before, version):
            is_first &= memory.rev == 1
            said = list(self._indexing.units_of(memory, since, self._places, before))
            self._read += [(since, memory, unit) for unit in said if since > mark]
            if memory.kind == "register" or any(called_in(memory)):
                self._changed[NAMES] = since
            if memory.kind == "register" or orders_of(memory):
                self._changed[ORDERS] = since
        if not is_first and (ended := state.ended(before, version)):
            self._ends += ended
            self._changed = dict.fromkeys(self._changed, version)
        self._version = version
