"""What documents keep beside an account: shown to it, kept by it, and reached by its redactions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from octavo.domain.erasure import Erasure
from octavo.domain.memory import Redaction
from octavo.domain.text import key_of
from octavo.engine.spine import Spine
from octavo.errors import BadInput, Busy, Unavailable
from octavo.storage import codec
from octavo.storage.attached import Attached, AttachedFiles
from octavo.storage.stores.local import LocalStore


class Attachments:
    """The files beside one account; a document writes them only while it holds the lock."""

    def __init__(self, spine: Spine) -> None:
        if not isinstance(spine.store, LocalStore):
            raise BadInput("an account without a folder has nothing beside it", hint="use a local folder")
        self._spine = spine
        self._files = AttachedFiles(spine.store)

    def locked(self) -> AbstractContextManager[None]:
        """Hold the files alone, across threads and processes."""
        return self._files.locked()

    def show(self, path: Path) -> None:
        """Attach a file of JSON lines that is derived from the ledger and made anew when it is lost."""
        self._files.attach(path, "view")

    def keep(self, path: Path, data: bytes, ids: Mapping[int, str]) -> Path:
        """Keep somebody else's lines in a new file, under a name that is free, without what was erased.

        `ids` gives the memories that lines became, by line number.
        """
        number, place, known = 1, path, self._names()
        while place.name in known or place.exists() or place.is_symlink():
            number += 1
            place = path.with_name(f"{path.name}-{number}")
        clean = self._erasure(_redactions(self._spine)).without(data, self._instead, ids)
        self._files.create(self._files.attach(place, "copy", ids), clean)
        return place

    def adopt(self, paths: Iterable[Path], ids: Callable[[bytes], Mapping[int, str]]) -> None:
        """Attach files of somebody else's lines that lie there already: a list can be lost, a file renamed.

        A redaction that did not know of one is made good before it is listed.
        """
        known = self._names()
        for path in (path for path in paths if path.name not in known):
            found = ids(path.read_bytes())
            file = self._files.beside(path, "copy", found)
            for why in self._swept(file, self._erasure(_redactions(self._spine))):
                raise Unavailable(f"a redacted text may be in a file that cannot be cleaned: {why}")
            self._files.attach(path, "copy", found)

    def sweep(self, redactions: Collection[Redaction], wordings: Iterable[str]) -> list[str]:
        """Erase texts from every attached file; returns what could not be cleaned, and why."""
        if not self._files.listed():
            return []
        erasure = self._erasure(redactions, list(wordings))
        try:
            with self._files.locked(self._spine.policy.commit.wait_seconds):
                # Listed again: who held the lock may have attached another one.
                return [why for file in self._files.listed() for why in self._swept(file, erasure)]
        except (Busy, Unavailable) as error:
            return [error.message]

    def unclean(self, redactions: Collection[Redaction]) -> list[str]:
        """Which attached files still hold what was erased, or cannot be looked into."""
        erasure = self._erasure(redactions)
        return [why for file in self._files.listed() for why in self._found(file, erasure)]

    def _names(self) -> set[str]:
        return {self._files.place_of(file).name for file in self._files.listed()}

    def _found(self, file: Attached, erasure: Erasure) -> Iterator[str]:
        try:
            data = self._files.read(file)
            if data is not None and self._cleaned(file, data, erasure) != data:
                yield f"{self._files.place_of(file)} still holds what was erased"
        except Unavailable as error:
            yield error.message

    def _swept(self, file: Attached, erasure: Erasure) -> Iterator[str]:
        try:
            data = self._files.read(file)
            if data is not None:
                clean = self._cleaned(file, data, erasure)
                if clean != data:
                    self._files.replace(file, clean)
            self._files.clear_leftovers(file)
        except Unavailable as error:
            yield error.message

    def _cleaned(self, file: Attached, data: bytes, erasure: Erasure) -> bytes:
        """A view loses its lines, for they come again as the ledger tells them; a copy keeps their hashes."""
        if file.kind == "copy":
            return erasure.without(data, self._instead, file.ids)
        # What says the same under an id of its own is a memory that stays, until a person decides.
        return replace(erasure, is_other=lambda id_: bool(self._spine.state.history(id_))).without(data)

    def _erasure(self, redactions: Iterable[Redaction], wordings: Collection[str] = ()) -> Erasure:
        redactions = list(redactions)
        keys = {redaction.key for redaction in redactions}
        return Erasure(
            ids={redaction.memory for redaction in redactions},
            is_erased=lambda text: self._spine.keyed(key_of(text)) in keys,
            mask=codec.REDACTED,
            wordings=wordings,
        )

    def _instead(self, line: bytes) -> bytes:
        """What stands in the place of an erased line: its hash under the account's key."""
        return codec.encode_json({"redacted": self._spine.keyed(line.decode("utf-8", "replace"))})


def _redactions(spine: Spine) -> list[Redaction]:
    """Every redaction there ever was."""
    spine.head()
    return [change for _, change in spine.state.others("redaction") if isinstance(change, Redaction)]
