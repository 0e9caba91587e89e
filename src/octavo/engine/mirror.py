"""The mirror of an account: rendered from the ledger, only what changed, and never over a person's edit."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from octavo.domain import blocks, mirror, mirror_places
from octavo.domain.erasure import Erasure
from octavo.domain.filters import Filter
from octavo.domain.memory import SHARED, Memory
from octavo.domain.mirror_places import Place
from octavo.domain.ports import Progress
from octavo.engine.attachments import INSIDE, Attachments
from octavo.engine.spine import Spine
from octavo.errors import BadInput, NotFound, Unavailable
from octavo.storage import codec
from octavo.storage.mirror_tree import IGNORED, MANIFEST, SESSION, Manifest, Shown, Tree, hash_of
from octavo.storage.state_view import DbView
from octavo.storage.stores.disk import make_folders

_NOTHING: Mapping[str, Shown] = {}
Ours = tuple[Place, bytes, Shown]  # a file now: its place, its bytes, what it shows
_IGNORE = b".octavo/\nepisodic/checkpoints/\nsession_state.json\n*.octavo-*\n"


class Mirror:
    """One tree of files that follows the ledger; whoever writes to it holds the lock of attached files."""

    def __init__(self, spine: Spine, folder: Path | None = None) -> None:
        self.spine, self._attached = spine, Attachments(spine)
        self.folder = Path(os.path.abspath(folder or self._attached.folder / INSIDE))  # noqa: PTH100  # links stay
        self.tree = Tree(self._attached.disk, self.folder)
        self._names: dict[str, str] = {}
        self.view: DbView
        self._alike: dict[Filter, dict[str, tuple[Place, list[Memory]]]] = {}  # of the view

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the tree alone, known to the account as one that its redactions must reach."""
        with self._attached.locked(self.spine.policy.commit.wait_seconds):
            self._attached.attach(self.folder, "tree")
            yield

    def follow(self, progress: Progress | None = None) -> None:
        """Show the newest version, unless the policy says that a person asks for that."""
        if self.spine.policy.mirror.mode != "off":
            with self.held():
                self.bring_up()

    def erase(self, erasure: Erasure) -> list[str]:
        """Make anew every file that shows or holds what is erased; a person's other words on a page stay.

        A page that cannot be read is left to that person, and holds the redaction up by its name.
        """
        with self.held():
            self.tree.clear_leftovers()
            before = self.base().files
            self.bring_up(anew=True)  # on a page of several files what is erased counted, and no longer does
            places = [place for place, _ in self.places().values()]
            ours = {path: one for place in places for path, one in self.rendered(place).items()}
            files = dict(self.base().files)
            for path, data in self.tree.scan()[0].items():
                shown, one = before.get(path), ours.get(path)
                ids = {i: rev for i, rev in shown.ids.items() if i not in erasure.ids} if shown else {}
                if not (shown or one) or not (erasure.is_in(data) or (shown and ids != shown.ids)):
                    continue
                with suppress(BadInput):
                    if one is None or one[0].form != "page" or data == one[1]:
                        self._put(path, one, files, {path: data})
                    elif self.tree.put(path, _cut(one[0], path, data, erasure), over=data) and shown:
                        files[path] = replace(shown, ids=ids)  # what a person wrote is an edit still
            self.note(replace(self.base(), files=files))
        return []

    def verify(self, *, stamp: bool = False) -> list[str]:
        """Nothing: a file that is not as the ledger has it is a person's edit, or is written next time."""
        return []

    def clear(self) -> None:
        """Nothing: what stands in it and not in the ledger is a person's."""

    def base(self) -> Manifest:
        """What was shown, seen from the newest version; nothing if nobody knows, or if of another history."""
        self.view, manifest, state = self.spine.head(), self.tree.manifest(), self.spine.state
        self._alike.clear()
        version, newest = manifest.version if manifest else 0, state.watermark()[0]
        if manifest and (
            not version or (version <= newest and state.commit(version).hash == manifest.header)
        ):
            return manifest
        return Manifest(account=self.spine.identity.account)

    def bring_up(
        self,
        seen: Mapping[str, bytes | None] | None = None,
        at: Iterable[Place] = (),
        read: Iterable[str] = (),
        beside: Mapping[str, Ours] | None = None,
        *,
        anew: bool = False,
    ) -> dict[str, bool]:
        """Write what changed since it was last shown, or everything `anew`; the paths, and which are there.

        A file is written only over what was shown there, or over what the caller has `seen` and taken in `at`
        some places; what was `read` from a file that shows nothing now is in another one, and the file goes.
        Copies of conflicts stay as they are, or are those that lie `beside` from now on.
        """
        manifest, seen = self.base(), seen or {}
        files, shown = dict(manifest.files), {} if anew else manifest.files
        changed = set(self.spine.state.ids_changed(manifest.version, self.view.version))
        waiting = {id_ for path, one in files.items() if path in seen or one.is_behind for id_ in one.ids}
        ours: dict[str, Ours] = {}
        for place, some in self.places(changed | waiting if shown else None).values():
            ours |= self._appended(place, some, shown) or self.rendered(place, shown)
        for place in at:
            ours |= self.rendered(place)
        affected = {id_ for *_, one in ours.values() for id_ in one.ids} | changed | waiting
        gone = [p for p in files if p in seen or not affected.isdisjoint(files[p].ids)]
        gone += [p for p in files if beside is not None and mirror_places.is_copy(p)]
        if beside:  # noted before they are laid, so that nobody's death leaves one that nobody knows
            self.keep(replace(manifest, files={path: one for path, (*_, one) in beside.items()} | files))
        ours |= beside or {}
        # The next file of a page before the one that its lines come from: who dies between loses none.
        paths = sorted({*ours, *gone, *read}, key=lambda path: path.removesuffix(".md"), reverse=True)
        new = {id_ for id_, path in manifest.taken.items() if path not in seen}  # a sync alone shows them
        written = {path: path in ours for path in paths if self._put(path, ours.get(path), files, seen, new)}
        for path, data in ((IGNORED, self.tree.read(IGNORED) or _IGNORE), (SESSION, self._session_state())):
            there = self.tree.read(path)
            self.tree.put(path, data or there, over=there)
        for name in mirror_places.FOLDERS:  # where a link or a file stands in the way, nothing is made
            with suppress(BadInput, Unavailable, OSError):
                make_folders(self._attached.disk, self.tree.inside(f"{name}/file").parent)
        ids = {id_ for one in files.values() for id_ in one.ids} if manifest.taken else ()
        taken = {i: path for i, path in manifest.taken.items() if i not in ids and self.view.live(i)}
        self.note(replace(manifest, files=files, taken=taken))
        return dict(sorted(written.items()))

    def _put(
        self,
        path: str,
        one: Ours | None,
        files: dict[str, Shown],
        seen: Mapping[str, bytes | None],
        new: Collection[str] = (),
    ) -> bool:
        """Write or remove a file unless a person has been at it, and note so; True if it was."""
        place, data, now = one or (None, None, None)
        there, shown = self.tree.read(path), files.get(path)
        if there is None:  # what a person removed comes back only if nobody can remove it
            is_free = shown is None or (place is not None and place.form not in mirror_places.EDITABLE)
        else:
            is_free = shown is not None and hash_of(there) == shown.sha256
        is_free = is_free or there in (data, seen.get(path, data))
        if (
            not is_free
            or (now and not now.ids.keys().isdisjoint(new))
            or not self.tree.put(path, data, over=there)
        ):
            files |= {path: replace(shown, is_behind=True)} if shown else {}
            return False
        files.pop(path, None)
        files |= {path: now} if now else {}
        return there != data

    def note(self, manifest: Manifest) -> None:
        """Keep what is shown now, and of which version."""
        version = self.view.version
        header = self.spine.state.commit(version).hash if version else ""
        self.keep(replace(manifest, version=version, header=header))

    def keep(self, manifest: Manifest) -> None:
        """Keep a manifest as it is."""
        noted = codec.encode_json(manifest) + b"\n"
        self.tree.put(MANIFEST, noted, over=self.tree.read(MANIFEST))

    def places(self, ids: Collection[str] | None = None) -> dict[str, tuple[Place, list[Memory]]]:
        """The places of all live memories, or those that some memories ever had, by their paths."""
        memories: Iterable[Memory] = self.view.memories(Filter()) if ids is None else ()
        ever = (memory for id_ in ids or () for _, memory in self.spine.state.history(id_))
        return mirror_places.grouped((*memories, *ever), self.session_name)

    def rendered(self, place: Place, shown: Mapping[str, Shown] = _NOTHING) -> dict[str, Ours]:
        """The files of a place; of a page those alone that are not as they were `shown`."""
        files: dict[str, Ours] = {}
        for path, some in self.files(place, shown).items():
            ids = {memory.id: memory.rev for memory in some}
            uses = self.uses(ids) if place.form == "behaviors" else {}
            data = mirror.render(place, path, some, uses)
            files[path] = place, data, Shown(sha256=hash_of(data), ids=ids, uses=uses)
        return files

    def uses(self, ids: Iterable[str]) -> dict[str, int]:
        """How often memories were used until now."""
        return {id_: count for id_, (count, _) in self.view.uses(list(ids)).items()}

    def files(self, place: Place, shown: Mapping[str, Shown] = _NOTHING) -> dict[str, list[Memory]]:
        """The live memories of a place, file by file; see `rendered`.

        A page of many memories is several files, by the number that each was of all there ever were: so one
        that comes or ends changes one of them.
        """
        if place.form != "page":
            return mirror_places.apart(place, self._members(place))
        where = (place.kind, place.scope, place.category, mirror_places.GENERAL)
        ever = list(self.spine.state.revs_in(*where, self.view.version).items())
        is_long = sum(rev > 0 for _, rev in ever) > mirror_places.BLOCKS
        size, files = mirror_places.BLOCKS if is_long else len(ever) or 1, dict[str, list[Memory]]()
        for number, first in enumerate(range(0, len(ever), size)):
            path = f"{place.path.removesuffix('.md')}-{number + 1:04d}.md" if number else place.path
            ids = {id_: rev for id_, rev in ever[first : first + size] if rev}
            if path in shown and shown[path].ids == ids:
                continue
            found = self.view.many(ids)
            there = [found[id_][1] for id_ in ids]
            if place.kind == "register":  # some are states, which have files of their own
                there = [memory for memory in there if self._is_at(memory, place)]
            files |= {path: there} if there else {}
        return files

    def _members(self, place: Place) -> list[Memory]:
        """The live memories of a place in their order; those of all places alike are looked for at once."""
        if place.form in ("run", "told"):
            own = self.view.get(str(place.topic))
            return [own] if own and not own.gone else []
        session = place.topic if place.form == "talk" else None
        alike = Filter(kinds=(place.kind,), scopes=(place.scope,), sandbox=session, category=place.category)
        if alike not in self._alike:
            there = self.view.memories(alike)
            order = self.spine.state.order_of([memory.id for memory in there])
            there = sorted(there, key=lambda memory: order[memory.id])
            self._alike[alike] = mirror_places.grouped(there, self.session_name)
        return self._alike[alike].get(place.path, (place, []))[1]

    def _appended(self, place: Place, some: Sequence[Memory], files: Mapping[str, Shown]) -> dict[str, Ours]:
        """A log as it was shown and what came to it; nothing if that is not all that happened to it."""
        changed = {memory.id for memory in some}
        shown, data = files.get(place.path), self.tree.read(place.path) if place.form == "events" else None
        if shown is None or data is None or hash_of(data) != shown.sha256 or set(changed) & shown.ids.keys():
            return {}
        ids = sorted(changed, key=self.spine.state.order_of(changed).__getitem__)
        new = [m for id_ in ids if (m := self.view.live(id_)) and self._is_at(m, place)]
        data += mirror.render(place, place.path, new, {}) if new else b""
        now = Shown(sha256=hash_of(data), ids={**shown.ids, **{m.id: m.rev for m in new}})
        return {place.path: (place, data, now)}

    def _is_at(self, memory: Memory, place: Place) -> bool:
        own = mirror_places.place_of(memory, self.session_name)
        return own is not None and own.path == place.path

    def _session_state(self) -> bytes | None:
        """What the last session was, for a person who looks; nothing if there was none."""
        closed = self.view.sessions(SHARED)
        for last in self.spine.state.sessions(SHARED, closed, closed) if closed else ():
            name = self.session_name(str(last.sandbox))
            state = {"session_id": name, "end_time": last.at.isoformat(), "sessions": closed}
            return mirror.json_text(state).encode()
        return None

    def session_name(self, sandbox: str) -> str:
        """What the file of a session is called: its day and its number."""
        if sandbox not in self._names:
            commits = self.spine.state.commits_of(sandbox)
            for version, _, ordinal in sorted(commits, key=lambda row: row[2] is None)[:1]:
                day = f"{self.spine.state.commit(version).at:%Y-%m-%d}"
                self._names[sandbox] = f"{day}_{sandbox if ordinal is None else f'session{ordinal}'}"
        return self._names.get(sandbox, sandbox)


def _cut(place: Place, path: str, data: bytes, erasure: Erasure) -> bytes:
    """A page that a person changed, without the blocks that are or hold what is erased."""
    mirror.read(place, path, data)
    lines = blocks.plain(data.decode()).split("\n")
    for _, said, id_, first, last in reversed(list(blocks.blocks_of(data.decode()))):
        if id_ in erasure.ids or erasure.is_in(said.encode()):
            del lines[first - 1 : last]
    return "\n".join(line for line in lines if not erasure.is_in(line.encode())).encode()


def chosen(spine: Spine, folder: Path | None) -> Mirror:
    """The mirror in a folder, or the only one there is."""
    place = None if folder is None else Path(os.path.abspath(folder))  # noqa: PTH100  # links stay
    known = [tree for tree in listed(spine) if place in (None, tree.folder)]
    if len(known) > 1:
        names = ", ".join(str(tree.folder) for tree in known)
        raise BadInput(f"the account has {len(known)} mirrors: {names}", hint="name one of them")
    for tree in known:
        return tree
    said = f" {folder}" if folder else ""
    raise NotFound(f"the account has no mirror{said}", hint=f"octavo mirror{said} makes one")


def begun(spine: Spine, folder: Path | None) -> Mirror:
    """The mirror in a folder, new or not; BadInput where it would lie among the account's files or around."""
    tree = Mirror(spine, folder)
    own = Mirror(spine).folder
    if tree.folder != own and (tree.folder.is_relative_to(own.parent) or own.is_relative_to(tree.folder)):
        raise BadInput(f"{tree.folder} holds files of the account", hint="name a folder beside it")
    if tree.folder.exists() and not tree.folder.is_dir():
        raise BadInput(f"{tree.folder} is no folder", hint="name one, or a place where there is nothing yet")
    return tree


def listed(spine: Spine) -> list[Mirror]:
    """The mirrors that an account has, wherever they lie; one whose folder a person removed is none."""
    if spine.store.folder is None:
        return []
    files = Attachments(spine)
    places = [files.place_of(tree) for tree in files.listed() if tree.kind == "tree"]
    return [Mirror(spine, place) for place in places if place.is_dir()]
