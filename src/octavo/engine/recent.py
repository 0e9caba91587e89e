"""What the newest versions changed, read once and kept between questions.

What is above the index's watermark is searched exactly with every question. Who goes by which name, which
orders hold and whether there are summaries is asked with every question too, though few versions change it.
"""

from __future__ import annotations

import threading
from pathlib import Path

from octavo.domain.memory import Memory
from octavo.domain.names import called_in
from octavo.domain.orders import holds_order
from octavo.domain.units import Unit
from octavo.engine.boosts import ABSTRACT
from octavo.engine.indexing import Indexing
from octavo.engine.spine import Spine
from octavo.storage.batches import Batch, grown
from octavo.storage.rows import Manifest, Units
from octavo.storage.state_view import DbView

NAMES, ORDERS, ABSTRACTIONS = "names", "orders", "abstractions"
_MANY = 512  # revisions after which it is cheaper to begin anew than to read them all
_BATCHES = 4  # of the account, and of a few sandboxes that are asked by turns

Told = list[tuple[Memory, tuple[Unit, ...]]]


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
        self._read: list[tuple[int, Memory, tuple[Unit, ...]]] = []
        self._ends: list[tuple[str, int, int]] = []
        self._places: dict[str, int] = {}
        self._batches: list[Batch] = []
        self._changed = dict.fromkeys((NAMES, ORDERS, ABSTRACTIONS), version)

    def tail(self, units: Units, base: DbView) -> tuple[Told, set[tuple[str, int]]]:
        """What became valid above the index's watermark, up to a version, and which revisions ended."""
        mark, version = units.manifest.watermark.version, base.version
        with self._lock:
            self._follow(units, mark, base)
            read = [(memory, said) for since, memory, said in self._read if mark < since <= version]
            return read, {(id_, rev) for id_, rev, until in self._ends if mark < until <= version}

    def unchanged_since(self, about: str, version: int) -> int:
        """The version since which nothing of a sort changed up to this one, as far as that was read."""
        since = self._changed[about]
        return since if since <= version <= self._version else version

    def analysed(self, units: tuple[Unit, ...], manifest: Manifest) -> Batch:
        """Units as rows behind an index; what was analysed for another question is not analysed again."""
        with self._lock:
            fitting = (held for held in self._batches if held.manifest is manifest)
            fitting = (held for held in fitting if held.given == units[: len(held.given)])
            longest = max(fitting, key=lambda held: len(held.given), default=None)
            batch = grown(longest, units, manifest)
            if batch is not longest:
                self._batches = [*self._batches, batch][-_BATCHES:]
            return batch

    def _follow(self, units: Units, mark: int, base: DbView) -> None:
        """Read what came since the last question, and let go of what is indexed."""
        version, state = base.version, self._spine.state
        if version > self._version or units.folder != self._folder or mark < self._mark:
            erased = state.others("redaction", newest=1) if base.has_redactions() else []
            redacted = erased[0][0] if erased else 0
            if (
                units.folder != self._folder
                or mark < self._mark
                or redacted != self._redacted
                or (mark > self._version and state.has_more_than(_MANY, self._version, mark))
            ):
                self._begin(units.folder, mark, version, redacted)
        if mark > self._mark:
            self._mark = mark
            self._read = [each for each in self._read if each[0] > mark]
            self._ends = [each for each in self._ends if each[2] > mark]
        if version > self._version:
            self._read_on(mark, version)

    def _read_on(self, mark: int, version: int) -> None:
        before, state = self._version, self._spine.state
        for since, memory in state.revisions_since(before, version):
            said = tuple(self._indexing.units_of(memory, since, self._places, before))
            if since > mark:
                self._read.append((since, memory, said))
            if memory.kind in ABSTRACT:
                self._changed[ABSTRACTIONS] = since
            if memory.kind == "register" or any(called_in(memory)):
                self._changed[NAMES] = since
            if memory.kind == "register" or holds_order(memory):
                self._changed[ORDERS] = since
        if ended := state.ended(before, version):
            self._ends += ended
            self._changed = dict.fromkeys(self._changed, version)
        self._version = version
