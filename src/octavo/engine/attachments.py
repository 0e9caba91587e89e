"""What documents keep beside an account, as one projection: kept by it, proved, and reached by redactions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from octavo.domain.erasure import Erasure
from octavo.domain.memory import Redaction
from octavo.domain.text import key_of
from octavo.domain.units import Watermark
from octavo.engine.spine import Spine
from octavo.errors import BadInput, Busy, Damaged, Unavailable
from octavo.storage import codec
from octavo.storage.attached import Attached, AttachedFiles
from octavo.storage.mirror_tree import Manifest, Tree, hash_of
from octavo.storage.projections import Progress, Projection


class Attachments:
    """The files and trees beside one account; a document writes them only while it holds their lock.

    Whoever made one follows the ledger with it and can throw it away; what every handle can do, whether or
    not that document is open, is to erase and to prove.
    """

    name = "attached.json"

    def __init__(self, spine: Spine) -> None:
        if spine.store.folder is None:
            raise BadInput("an account without a folder has nothing beside it", hint="use a local folder")
        self._spine = spine
        self.files = AttachedFiles(spine.store)

    def join(self, projection: Projection) -> None:
        """Let what an open document makes of the ledger be followed, erased and proved with all the rest."""
        self._spine.followers.append(projection)

    def keep(self, path: Path, data: bytes, ids: Mapping[int, str]) -> Path:
        """Keep somebody else's lines in a new file, under a name that is free, without what was erased.

        `ids` gives the memories that lines became, by line number.
        """
        number, place, known = 1, path, self._names()
        while place.name in known or place.exists() or place.is_symlink():
            number += 1
            place = path.with_name(f"{path.name}-{number}")
        clean = self._without(erasure_of(self._spine, _redactions(self._spine)), data, ids)
        self.files.replace(self.files.attach(place, "copy", ids), clean)
        return place

    def adopt(self, paths: Iterable[Path], ids: Callable[[bytes], Mapping[int, str]]) -> None:
        """Attach files of somebody else's lines that lie there already: a list can be lost, a file renamed.

        A redaction that did not know of one is made good before it is listed.
        """
        known = self._names()
        for path in (path for path in paths if path.name not in known):
            became = ids(self.files.disk.read(path))
            file = self.files.beside(path, "copy", became)
            for why in self._swept(file, erasure_of(self._spine, _redactions(self._spine))):
                raise Unavailable(f"a redacted text may be in a file that cannot be cleaned: {why}")
            self.files.attach(path, "copy", became)

    def watermark(self) -> Watermark:
        """None that all of them share."""
        return Watermark(version=0, header="")

    def follow(self, progress: Progress | None = None) -> None:
        """Nothing: the document whose files they are follows with them."""

    def erase(self, erasure: Erasure) -> list[str]:
        """Erase texts from every file; returns what could not be cleaned, and why.

        A tree is only looked into: its own projection has cleaned it before, and what is left is a person's.
        """
        try:
            with self.files.locked(self._spine.policy.commit.wait_seconds):
                return [why for file in self.files.listed() for why in self._swept(file, erasure)]
        except (Busy, Damaged, Unavailable) as error:
            return [error.message]

    def verify(self, *, stamp: bool = False) -> list[str]:
        """Which of them still hold what was erased, or cannot be looked into."""
        pending = unswept(self._spine)
        if not pending:
            return []
        erasure = erasure_of(self._spine, pending)
        return [why for file in self.files.listed() for why in self._unclean(file, erasure)]

    def clear(self) -> None:
        """Nothing: what stands in them and not in the ledger is somebody else's."""

    def _names(self) -> set[str]:
        return {self.files.place_of(file).name for file in self.files.listed()}

    def _unclean(self, file: Attached, erasure: Erasure) -> Iterator[str]:
        try:
            if file.kind == "tree":
                # What the mirror wrote is as the ledger has it now; what is left is a person's.
                tree = Tree(self.files.disk, self.files.place_of(file))
                ours = {shown.sha256 for shown in (tree.manifest() or Manifest()).files.values()}
                held = [
                    path
                    for path, data in self.files.files_in(file)
                    if hash_of(data) not in ours and erasure.is_in(data)
                ]
            else:
                data = self.files.read(file) or b""
                held = [self.files.place_of(file)] * (self._cleaned(file, data, erasure) != data)
        except (Damaged, Unavailable) as error:
            yield error.message
        else:
            yield from (f"{path} still holds what was erased" for path in held)

    def _swept(self, file: Attached, erasure: Erasure) -> Iterator[str]:
        if file.kind == "tree":
            yield from self._unclean(file, erasure)
            return
        try:
            data = self.files.read(file) or b""
            clean = self._cleaned(file, data, erasure)
            if clean != data:
                self.files.replace(file, clean)
            self.files.clear_leftovers(file)
        except (Damaged, Unavailable) as error:
            yield error.message

    def _cleaned(self, file: Attached, data: bytes, erasure: Erasure) -> bytes:
        """A view loses its lines, for they come again as the ledger tells them; a copy keeps their hashes."""
        return self._without(erasure, data, file.ids) if file.kind == "copy" else erasure.without(data)

    def _without(self, erasure: Erasure, data: bytes, ids: Mapping[int, str]) -> bytes:
        # In somebody else's lines an id says nothing: two of them may say the same.
        return replace(erasure, is_other=lambda id_: False).without(data, self._instead, ids)

    def _instead(self, line: bytes) -> bytes:
        """What stands in the place of an erased line: its hash under the account's key."""
        return codec.encode_json({"redacted": self._spine.keyed(line.decode("utf-8", "replace"))})


def erasure_of(spine: Spine, redactions: Iterable[Redaction], wordings: Collection[str] = ()) -> Erasure:
    """What some redactions erase; a memory that says the same under an id of its own stays."""
    redactions = list(redactions)
    keys = {redaction.key for redaction in redactions}
    return Erasure(
        ids={redaction.memory for redaction in redactions},
        is_erased=lambda text: spine.keyed(key_of(text)) in keys,
        mask=codec.REDACTED,
        wordings=wordings,
        is_other=lambda id_: bool(spine.state.history(id_)),
    )


def unswept(spine: Spine) -> dict[Redaction, int]:
    """Redactions whose bytes may still be somewhere, and the version each came in."""
    latest: dict[tuple[str, str], tuple[Redaction, int]] = {}
    for version, change in reversed(spine.state.others("redaction")):
        if isinstance(change, Redaction):
            latest[change.memory, change.key] = (change, version)
    return {redaction: version for redaction, version in latest.values() if not redaction.swept}


def _redactions(spine: Spine) -> list[Redaction]:
    """Every redaction there ever was."""
    spine.head()
    return [change for _, change in spine.state.others("redaction") if isinstance(change, Redaction)]
