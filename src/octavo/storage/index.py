"""The index of one account: columns, words and vectors behind one door, for one writer and many readers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from octavo.domain.dates import Interval
from octavo.domain.query import Question, read_question
from octavo.domain.ranking import Aging, Recipe
from octavo.domain.text import passages
from octavo.domain.units import ROLES, End, Unit, Watermark
from octavo.storage import frequencies, words
from octavo.storage.batches import batch_of, write_ends
from octavo.storage.libraries import shutil
from octavo.storage.search import Fresh, Limits, Match, Search
from octavo.storage.units import EMPTY, Units, open_units, publish, read_manifest, writing
from octavo.storage.words import Wanted, Words

if TYPE_CHECKING:
    from octavo.storage.vectors import Vectors

_AT_ONCE = 10_000  # units that are analysed together: as many as stay near the processor

__all__ = ["Fresh", "Index", "Limits", "Match", "clear", "extend", "passages_of"]


@dataclass(slots=True)
class Index:
    """A reader's hold on the index; it follows what writers publish."""

    folder: Path
    recipe: Recipe = field(default_factory=Recipe)
    limits: Limits = field(default_factory=Limits)
    _manifest: Path = field(init=False)
    _units: Units | None = None
    _words: tuple[Units, Words] | None = None
    _stamp: tuple[int, int] | None = None
    _checked: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._manifest = self.folder / "manifest.json"  # looked at by every recall

    @property
    def watermark(self) -> Watermark:
        """Up to where the index follows the ledger."""
        return read_manifest(self.folder).watermark

    def units(self) -> Units:
        """The columns as they are published now."""
        try:
            status = self._manifest.stat()
            stamp: tuple[int, int] | None = (status.st_ino, status.st_mtime_ns)
        except FileNotFoundError:
            stamp = None
        if self._units is None or stamp != self._stamp:
            self._units, self._stamp = open_units(self.folder), stamp
        return self._units

    def read(
        self,
        text: str,
        *,
        now: date,
        version: int,
        scopes: Iterable[str] | None,
        units: Units | None = None,
    ) -> Question:
        """Read a question in the light of who spoke and of the time the account has lived through."""
        units = self.units() if units is None else units
        codes = units.scope_codes(scopes)
        names = [name for name in units.speakers(version, codes) if name.casefold() not in ROLES]
        return read_question(text, now=now, speakers=names, lived=_lived(units, version))

    def search(
        self,
        question: Question,
        wanted: Wanted,
        *,
        limit: int,
        vectors: Vectors | None = None,
        query: Any = None,
        fresh: Fresh | None = None,
        each: str = "turn",
        least: int = 0,
        apart: tuple[str, ...] = (),
        aging: Aging | None = None,
    ) -> list[Match]:
        """The best units for a question among what is wanted, best first: each turn, or each memory once.

        At most `limit` are found, and not fewer than `least` if there are so many that any stream finds.
        Kinds that are found `apart` come behind the others, a few of them, and take nobody's place.
        With `aging` salience, age and layer count in the order too; they are no part of the scores.
        """
        units = self.units()  # not before the vectors, which may hold no rows beyond them
        search = Search(
            units,
            self._words_of(units),
            question,
            wanted,
            recipe=self.recipe,
            limits=self.limits,
            fresh=fresh or Fresh(),
            vectors=vectors,
            query=query,
            each=each,
            aging=aging,
            apart=apart,
        )
        return search.run(limit, least)

    def words(self) -> Words:
        """The word index that belongs to the columns."""
        return self._words_of(self.units())

    def _words_of(self, units: Units) -> Words:
        # Of these very columns: a writer may publish between two looks at the manifest.
        held = self._words
        if held is None or held[0] is not units:
            held = self._words = (units, Words(self.folder / "words", units, self._checked))
        return held[1]


def extend(
    folder: Path, new: Iterable[Unit], ends: Iterable[End], watermark: Watermark, *, since: Watermark
) -> bool:
    """Run one indexing pass from `since` to `watermark`; False if the index stands elsewhere meanwhile."""
    with writing(folder):
        units = open_units(folder)
        if units.manifest.watermark != since:
            return False
        manifest, coming = units.manifest, iter(new)
        with words.Adding(folder / "words", units) as adding:
            while some := list(islice(coming, _AT_ONCE)):
                batch = batch_of(some, manifest)
                manifest = batch.write(folder)
                adding.add(batch)
            manifest, ended = write_ends(folder, manifest, ends)
            stamp = adding.commit(Units(folder, manifest), ended)
        manifest = replace(manifest, watermark=watermark, words=stamp)
        manifest = replace(manifest, base=frequencies.rebase(Units(folder, manifest)))
        publish(folder, manifest)
        frequencies.sweep(folder, manifest)
    return True


def clear(folder: Path) -> None:
    """Forget everything, so that the next pass builds the index from the ledger's start."""
    with writing(folder):
        # The vectors first: after a crash on the way, rows made anew must not meet vectors of other rows.
        for path in folder.glob("vectors-*"):
            shutil.rmtree(path, ignore_errors=True)
        publish(folder, EMPTY)
        shutil.rmtree(folder / "words", ignore_errors=True)
        for path in folder.glob("*.bin"):
            path.unlink(missing_ok=True)


def passages_of(new: Iterable[Unit]) -> list[str]:
    """The texts to embed for some units, one a passage, in the order of their rows."""
    return [passage for unit in new for passage in passages(unit.text)]


def _lived(units: Units, version: int) -> Interval | None:
    if version >= units.manifest.watermark.version:
        span = units.manifest.lived
    else:
        rows = units.rows_until(version)
        times = units.column("rows")["at"][:rows]
        span = (int(times.min()), int(times.max())) if rows else None
    if span is None:
        return None
    first, last = (datetime.fromtimestamp(seconds, UTC).date() for seconds in span)
    return Interval(first=first, last=last)
