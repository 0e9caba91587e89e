"""The mirror of an account: rendered from the ledger, only what changed, and never over a person's edit."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import mirror, mirror_places
from octavo.domain.erasure import Erasure
from octavo.domain.filters import Filter
from octavo.domain.memory import SHARED, Memory
from octavo.domain.mirror_places import Place
from octavo.domain.units import Watermark
from octavo.engine.spine import Spine
from octavo.errors import BadInput, NotFound
from octavo.storage.attached import INSIDE, AttachedFiles
from octavo.storage.mirror_tree import IGNORED, SESSION, Manifest, Shown, Tree, hash_of
from octavo.storage.projections import Progress
from octavo.storage.state_view import DbView

_IGNORE = b".octavo/\nepisodic/checkpoints/\nsession_state.json\n*.octavo-*\n"


class Ours(Struct, frozen=True, kw_only=True):
    """A file as the newest version has it."""

    place: Place
    data: bytes
    ids: Mapping[str, int]


class Mirror:
    """One tree of files that follows the ledger; whoever writes to it holds the lock of attached files."""

    def __init__(self, spine: Spine, folder: Path | None = None) -> None:
        if spine.store.folder is None:
            raise BadInput("an account without a folder has no mirror", hint="use a local folder")
        self._spine = spine
        self._files = AttachedFiles(spine.store)
        self.folder = Path(os.path.abspath(folder or spine.store.folder / INSIDE))  # noqa: PTH100  # links stay
        self.name = str(self.folder)
        self.tree = Tree(self._files.disk, self.folder)
        self._names: dict[str, str] = {}

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the tree alone, known to the account as one that its redactions must reach."""
        with self._files.locked(self._spine.policy.commit.wait_seconds):
            self._files.attach(self.folder, "tree")
            yield

    def watermark(self) -> Watermark:
        """The version it shows."""
        manifest = self.tree.manifest() or Manifest()
        return Watermark(version=manifest.version, header=manifest.header)

    def follow(self, progress: Progress | None = None) -> None:
        """Show the newest version."""
        with self.held():
            self.bring_up()

    def erase(self, erasure: Erasure) -> list[str]:
        """Make anew every file that shows or holds what is erased; a person's other words in it stay."""
        if not self.folder.is_dir():
            return []
        with self.held():
            self.tree.clear_leftovers()
            manifest = self.base()
            self.bring_up()
            ours = self.rendered(self.places())
            for path, data in self.tree.scan()[0].items():
                shown = manifest.files.get(path)
                is_ours = shown is not None or path in ours or path in manifest.copies
                if is_ours and (erasure.is_in(data) or (shown and set(shown.ids) & set(erasure.ids))):
                    self._erase(path, data, ours.get(path), erasure)
            self.note(self.base(), self._spine.head())
        return []

    def verify(self, *, stamp: bool = False) -> list[str]:
        """Nothing: a file that is not as the ledger has it is a person's edit, or is written next time."""
        return []

    def clear(self) -> None:
        """Forget what was shown, so that everything is looked at again; no file goes."""
        with self.held():
            self.tree.note(Manifest(account=self._spine.identity.account))

    def base(self) -> Manifest:
        """What was shown; nothing if nobody knows, or if it was of another history."""
        manifest = self.tree.manifest()
        if manifest is None or not manifest.version:
            return Manifest(account=self._spine.identity.account)
        self._spine.head()
        known, _ = self._spine.state.watermark()
        is_ours = manifest.version <= known
        if not is_ours or self._spine.state.commit(manifest.version).hash != manifest.header:
            return Manifest(account=self._spine.identity.account)
        return manifest

    def bring_up(self, seen: Mapping[str, bytes | None] | None = None, at: Iterable[Place] = ()) -> list[str]:
        """Write what changed since it was last shown; returns the paths.

        A file is written only over what was shown there, or over what the caller has `seen` and taken in `at`
        some places.
        """
        view, manifest = self._spine.head(), self.base()
        changed = self._spine.state.ids_changed(manifest.version, view.version) if manifest.files else None
        ours: dict[str, Ours] = {}
        for place in self.places(changed):
            ours |= self._patched(manifest, place, changed or ()) or self.rendered([place])
        if seen:
            ours |= self.rendered([*self._places_shown(manifest, seen), *at])
        affected = {id_ for one in ours.values() for id_ in one.ids} | set(changed or ())
        files, written = dict(manifest.files), list[str]()
        for path, one in ours.items():
            if self._put(path, one, files, seen or {}, written):
                files[path] = Shown(sha256=hash_of(one.data), ids=one.ids)
        for path in [
            p for p in files if p not in ours and (not affected.isdisjoint(files[p].ids) or p in (seen or {}))
        ]:
            data = self.tree.read(path)
            is_shown = data is not None and hash_of(data) == files[path].sha256
            if data is not None and (is_shown or data == (seen or {}).get(path)):
                self.tree.remove(path, over=data)
                written.append(path)
            if data is None or self.tree.read(path) is None:
                del files[path]
        if self.tree.read(IGNORED) is None:
            self.tree.write(IGNORED, _IGNORE, over=None)
        self.tree.make_folders(mirror_places.FOLDERS)
        if (state := self._session_state()) != (shown := self.tree.read(SESSION)) and state:
            self.tree.write(SESSION, state, over=shown)
        self.note(replace(manifest, files=files), view)
        return written

    def note(self, manifest: Manifest, view: DbView) -> None:
        """Keep what is shown now, and of which version."""
        header = self._spine.state.commit(view.version).hash if view.version else ""
        self.tree.note(replace(manifest, version=view.version, header=header))

    def places(self, ids: Collection[str] | None = None) -> list[Place]:
        """The places of all live memories, or those that some memories ever had."""
        memories: Iterable[Memory]
        if ids is None:
            memories = self._spine.head().memories(Filter())
        else:
            memories = (memory for id_ in ids for _, memory in self._spine.state.history(id_))
        return list({p.path: p for memory in memories if (p := self.place_of(memory))}.values())

    def place_of(self, memory: Memory) -> Place | None:
        """Where the tree shows a memory."""
        return mirror_places.place_of(memory, self._session_name)

    def members(self, place: Place) -> list[Memory]:
        """The live memories of a place, in the order of their first commits."""
        there = [m for m in self._spine.head().memories(place.query) if self._is_at(m, place)]
        order = self._spine.state.order_of([memory.id for memory in there]) if there else {}
        return sorted(there, key=lambda memory: order[memory.id])

    def rendered(self, places: Iterable[Place]) -> dict[str, Ours]:
        """The files of some places."""
        files: dict[str, Ours] = {}
        for place in places:
            memories = self.members(place)
            uses = self._spine.head().uses([m.id for m in memories]) if place.form == "behaviors" else {}
            counted = {id_: count for id_, (count, _) in uses.items()}
            for path, some in self._apart(place, memories, len(memories)).items():
                data = mirror.render(place, path, some, counted)
                files[path] = Ours(place=place, data=data, ids={m.id: m.rev for m in some})
        return files

    def _patched(self, manifest: Manifest, place: Place, changed: Collection[str]) -> dict[str, Ours]:
        """The files of a long place, made of the bytes that were shown and the memories that changed.

        Nothing where that does not tell the whole: then the place is rendered from all its memories.
        """
        files = {p: one for p, one in manifest.files.items() if mirror_places.is_file_of(p, place)}
        if place.form not in ("page", "events") or not files:
            return {}
        view, order_of = self._spine.head(), self._spine.state.order_of
        live = {id_: m for id_ in changed if (m := view.get(id_)) and not m.gone and self._is_at(m, place)}
        at = {id_: path for path, one in files.items() for id_ in changed if id_ in one.ids}
        new = sorted((order, id_) for id_, order in order_of(live.keys() - at.keys()).items())
        count = sum(len(one.ids) for one in files.values())
        left = count + len(new) - len(at.keys() - live.keys())
        if place.form == "page" and (count > mirror_places.BLOCKS) != (left > mirror_places.BLOCKS):
            return {}
        pages = self._apart(place, [live[id_] for _, id_ in new], left) if new else {}
        at |= {memory.id: path for path, some in pages.items() for memory in some}
        ours: dict[str, Ours] = {}
        for path in set(at.values()):
            shown, data = files.get(path), self.tree.read(path)
            if shown is None or data is None or hash_of(data) != shown.sha256:
                return {}
            if path in pages and order_of([next(reversed(list(shown.ids)))]).popitem()[1] > new[0][0]:
                return {}  # it comes from elsewhere, and its place is not the last
            ids = {**shown.ids, **{memory.id: memory.rev for memory in pages.get(path, ())}}
            ids = {i: live[i].rev if i in live else rev for i, rev in ids.items() if i in live or i not in at}
            pieces = mirror.pieces_of(place, shown.ids, data)
            pieces |= {id_: mirror.piece(place, live[id_]) for id_ in ids if id_ in live}
            ours |= {
                path: Ours(place=place, data=mirror.joined(place, map(pieces.__getitem__, ids)), ids=ids)
            }
        return ours if all(one.ids for one in ours.values()) else {}

    def _apart(self, place: Place, memories: list[Memory], count: int) -> dict[str, list[Memory]]:
        """The files of a place that holds so many memories, for all of them or some."""
        if place.form != "page" or count <= mirror_places.BLOCKS:
            return mirror_places.apart(place, memories)
        category = place.category if place.category != mirror_places.GENERAL else memories[0].category
        numbers = self._spine.state.numbers_in(place.kind, place.scope, category)
        for memory in memories:
            numbers.setdefault(memory.id, len(numbers))
        return mirror_places.paged(place.path, numbers, memories)

    def _is_at(self, memory: Memory, place: Place) -> bool:
        own = self.place_of(memory)
        return own is not None and own.path == place.path

    def _places_shown(self, manifest: Manifest, paths: Iterable[str]) -> list[Place]:
        ids = [id_ for path in paths if path in manifest.files for id_ in manifest.files[path].ids]
        return self.places(ids)

    def _put(
        self,
        path: str,
        one: Ours,
        files: Mapping[str, Shown],
        seen: Mapping[str, bytes | None],
        written: list[str],
    ) -> bool:
        """Write a file unless a person has been at it; True if it now is as the ledger has it."""
        data, shown = self.tree.read(path), files.get(path)
        if data == one.data:
            return True
        is_shown = shown is not None and data is not None and hash_of(data) == shown.sha256
        is_new = data is None and (shown is None or one.place.form not in mirror_places.EDITABLE)
        if not (is_shown or is_new or (path in seen and data == seen[path])):
            return False
        if not self.tree.write(path, one.data, over=data):
            return False
        written.append(path)
        return True

    def _erase(self, path: str, data: bytes, ours: Ours | None, erasure: Erasure) -> None:
        """Render one file anew; what a person added to it and is not erased goes behind it."""
        if ours is None:
            self.tree.remove(path, over=data)
            return
        kept = b""
        if ours.place.form == "page" and data != ours.data:
            found = mirror.read(ours.place, path, data.decode("utf-8", "replace"))
            added = [one for one in found if one.id is None]
            clean = [one.said[1] for one in added if not erasure.is_in(one.said[1].encode())]
            kept = b"".join(b"\n" + text.encode() + b"\n" for text in clean)
        self.tree.write(path, ours.data + kept, over=data)
        manifest = self.base()
        shown = Shown(sha256=hash_of(ours.data), ids=ours.ids)
        self.note(replace(manifest, files={**manifest.files, path: shown}), self._spine.head())

    def _session_state(self) -> bytes:
        """What the last session was, for a person who looks; nothing if there was none."""
        closed = self._spine.head().sessions(SHARED)
        if not closed:
            return b""
        (last,) = self._spine.state.sessions(SHARED, closed, closed)
        name = self._session_name(str(last.sandbox))
        return mirror.json_file({"session_id": name, "end_time": last.at.isoformat(), "sessions": closed})

    def _session_name(self, sandbox: str) -> str:
        if sandbox not in self._names:
            commits = self._spine.state.commits_of(sandbox)
            closed = next((row for row in commits if row[2] is not None), commits[-1] if commits else None)
            if closed is None:
                return sandbox
            at = self._spine.state.commit(closed[0]).at
            ordinal = sandbox if closed[2] is None else f"session{closed[2]}"
            self._names[sandbox] = f"{at:%Y-%m-%d}_{ordinal}"
        return self._names[sandbox]


def chosen(spine: Spine, folder: Path | None) -> Mirror:
    """The mirror in a folder, or the only one there is."""
    known = listed(spine)
    if folder is not None:
        known = [tree for tree in known if tree.folder == Path(os.path.abspath(folder))]  # noqa: PTH100
    if len(known) == 1:
        return known[0]
    if not known:
        hint = f"octavo mirror {folder or ''}".rstrip() + " makes one"
        raise NotFound(f"the account has no mirror {folder or ''}".rstrip(), hint=hint)
    names = ", ".join(tree.name for tree in known)
    raise BadInput(f"the account has {len(known)} mirrors: {names}", hint="name one of them")


def listed(spine: Spine) -> list[Mirror]:
    """The mirrors that an account has, wherever they lie."""
    if spine.store.folder is None:
        return []
    files = AttachedFiles(spine.store)
    return [Mirror(spine, files.place_of(tree)) for tree in files.listed() if tree.kind == "tree"]
