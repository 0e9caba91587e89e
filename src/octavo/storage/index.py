"""The index of one account: columns, words and vectors behind one door, for one writer and many readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from datetime import UTC, date, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from octavo.domain.dates import Interval
from octavo.domain.filters import Filter
from octavo.domain.names import meanings
from octavo.domain.query import Question, read_question
from octavo.domain.ranking import Recipe
from octavo.domain.text import passages
from octavo.domain.units import ROLES, USERS, Unit, Watermark
from octavo.libraries import shutil
from octavo.storage import frequencies, words
from octavo.storage.batches import write_batch, write_ends
from octavo.storage.columns import GENERATION, Latest, replace_file, writing
from octavo.storage.rows import FILES, Units, open_units
from octavo.storage.search import ScoredUnit, Search
from octavo.storage.words import Words

_CURRENT = "current"
_STAYING = (_CURRENT, "lock", "making", "swapping")
_FEW = 1_000  # units that make a small pass
_AT_ONCE = 10_000  # units that are analysed together: as many as stay near the processor


class Index:
    """A reader's hold on the index; it follows what writers publish."""

    def __init__(self, folder: Path, recipe: Recipe | None = None) -> None:
        self.folder, self.recipe = folder, recipe or Recipe()
        self.units = Latest(folder / "manifest.json", partial(open_units, folder))
        self._checked: set[str] = set()
        self._apart: tuple[str, ...] | None = None  # the kinds that are found apart; None while nobody asked

    def read(
        self,
        text: str,
        *,
        now: date,
        version: int,
        scopes: Iterable[str] | None,
        held: Units | None = None,
        units: Units | None = None,
        aliases: Mapping[str, str] | None = None,
        called: Mapping[str, str] | None = None,
    ) -> Question:
        """Read a question in the light of who spoke, how they are called, and the time lived through.

        `held` is what is not indexed yet, if anything is.
        """
        sources = [each for each in (units or self.units(), held) if each is not None]
        heard = sources[-1].manifest.heard(version, scopes)
        speakers = [name for name in heard if name.casefold() not in ROLES]
        times: list[int] = []
        for source in sources:
            if version >= source.manifest.watermark.version:
                times += source.manifest.lived or ()
            elif rows := source.rows_until(version):
                column = source.column("rows")["at"][:rows]
                times += (int(column.min()), int(column.max()))
        days = [datetime.fromtimestamp(seconds, UTC).date() for seconds in times]
        lived = Interval(first=min(days), last=max(days)) if days else None
        names = meanings(speakers, aliases, called)
        asker = next((name for name in heard if name.casefold() in USERS), None)
        return read_question(text, now=now, speakers=speakers, names=names, lived=lived, asker=asker)

    def search(
        self,
        question: Question,
        filter_: Filter,
        *,
        limit: int,
        least: int = 0,
        units: Units | None = None,
        **asked: Any,
    ) -> list[ScoredUnit]:
        """The best units for a question that pass a filter, best first, asked as `Search` says.

        At most `limit` are found, and not fewer than `least` if there are so many that any stream finds.
        """
        self._apart = asked.get("apart", ())
        units = self.units() if units is None else units
        search = Search(units, self._words_of(units), question, filter_, recipe=self.recipe, **asked)
        return search.run(limit, least)

    def warm(self, units: Units) -> None:
        """Open all of what was published, if anybody has asked yet, so that the next question need not."""
        if self._apart is not None:
            for name in FILES:
                units.column(name)
            _ = units.valid_to, units.turns
            frequencies.counted(units)
            self._words_of(units).of_kinds(self._apart, units.manifest.watermark.version)

    def words(self) -> Words:
        """The word index that belongs to the columns."""
        return self._words_of(self.units())

    def _words_of(self, units: Units) -> Words:
        if units.searched is None:  # of these very columns: a writer may publish between two looks
            units.searched = Words(units.folder / "words", units, self._checked)
        found: Words = units.searched
        return found


def extend(
    folder: Path,
    new: Iterable[Unit],
    ends: Iterable[tuple[str, int, int]],
    watermark: Watermark,
    *,
    since: Watermark,
) -> bool:
    """Run one indexing pass from `since` to `watermark`; False if the index stands elsewhere meanwhile."""
    with writing(folder):
        units = open_units(folder)
        if units.manifest.watermark != since:
            return False
        manifest, coming = units.manifest, iter(new)
        some = list(islice(coming, _AT_ONCE))
        with words.Adding(folder / "words", units, is_small=len(some) < _FEW) as adding:
            while some:
                first, manifest = manifest.rows, write_batch(folder, some, manifest)
                adding.add(Units(folder, manifest), range(first, manifest.rows))
                some = list(islice(coming, _AT_ONCE))
            manifest, ended = write_ends(folder, manifest, ends)
            stamp = adding.commit(Units(folder, manifest), ended)
        units = Units(folder, replace(manifest, watermark=watermark, words=stamp))
        frequencies.sweep(units.publish(base=frequencies.rebase(units)))
    return True


def current(folder: Path) -> Path:
    """Where the index that counts lies: in the folder itself, or where a later one was made beside it."""
    try:
        name = (folder / _CURRENT).read_text(errors="replace")
    except FileNotFoundError:
        return folder
    return folder / name if GENERATION.fullmatch(name) else folder


def beside(folder: Path) -> Path:
    """An empty folder to make another index in, while this one is read on."""
    number = 1 + max(
        (int(path.name[1:]) for path in folder.glob("g*") if GENERATION.fullmatch(path.name)), default=0
    )
    made = folder / f"g{number}"
    made.mkdir()
    return made


def swap(folder: Path, made: Path) -> bool:
    """Make another index the one that counts and remove the rest; False if somebody removed it meanwhile.

    Who reads the old one loses its files and asks again; who waits to write to it finds it gone.
    """
    with writing(folder, "swapping"), writing(old := current(folder)):
        if not made.exists():
            return False
        replace_file(folder / _CURRENT, made.name.encode())
        for path in folder.iterdir():
            if path.is_dir() and path != made:
                # Who is in the middle of a pass ends it first, or would leave half a folder behind.
                with nullcontext() if path == old else writing(path):
                    shutil.rmtree(path, ignore_errors=True)
            elif not path.is_dir() and path.name not in _STAYING:
                path.unlink(missing_ok=True)
    return True


def clear(folder: Path) -> None:
    """Forget everything, what is being made beside it too; the next pass begins at the ledger's start."""
    while not swap(folder, beside(folder)):
        continue


def passages_of(new: Iterable[Unit]) -> list[str]:
    """The texts to embed for some units, one a passage, in the order of their rows."""
    return [passage for unit in new for passage in passages(unit.text)]
