"""What a person did to the files of one place: three ways, block by block, edits told from conflicts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import blocks, mirror
from octavo.domain.filters import Filter
from octavo.domain.memory import Memory
from octavo.domain.mirror import Found
from octavo.domain.mirror_places import EDITABLE, Place, is_file_of
from octavo.engine.mirror import Mirror
from octavo.engine.spine import Spine
from octavo.errors import BadInput
from octavo.storage.mirror_tree import Manifest
from octavo.storage.state_view import DbView

Take = Literal["ours", "theirs"]
_SHOWN = 80


class Edit(Struct, frozen=True, kw_only=True):
    """One thing that a person did to a file, and what it asks for."""

    action: Literal["remember", "revise", "forget"]
    path: str
    line: int = 0
    id: str | None = None
    text: str = ""


class Held(Struct, frozen=True, kw_only=True):
    """A file, or a line of it, that stays as it is, and why."""

    path: str
    reason: str
    line: int = 0


class Group(Struct, kw_only=True):
    """The files of one place as a person left them, and what they ask for."""

    place: Place
    seen: dict[str, bytes | None]
    edits: list[tuple[Edit, dict[str, Any]]]
    conflicts: list[Held]
    refused: list[Held]

    @property
    def is_clean(self) -> bool:
        """Whether a person changed nothing that a memory says."""
        return not (self.edits or self.conflicts or self.refused)


def read_group(
    spine: Spine,
    tree: Mirror,
    manifest: Manifest,
    disk: Mapping[str, bytes],
    group: Group,
    view: DbView,
    take: Take | None,
) -> None:
    """Find a group's edits and conflicts; what cannot be read holds the whole group."""
    place = group.place
    if place.form not in EDITABLE and (place.form != "run" or spine.state.history(str(place.topic))):
        return  # an episode or a derived page: nothing a person writes there comes back
    members = {m.id: m for m in tree.members(place)}
    rendered = tree.rendered([place])
    for path in manifest.files:
        if path in rendered or (place.form == "page" and is_file_of(path, place)):
            group.seen.setdefault(path, disk.get(path))
    base = {id_: rev for p in group.seen if p in manifest.files for id_, rev in manifest.files[p].ids.items()}
    found: list[Found] = []
    for path, data in group.seen.items():
        try:
            found += mirror.read(place, path, data.decode()) if data is not None else []
        except (BadInput, UnicodeDecodeError) as error:
            why = error.message if isinstance(error, BadInput) else "it is not UTF-8"
            group.refused.append(Held(path=path, reason=why, line=1))
            return
    if place.form == "run":
        _take_run(spine, group, found)
        return
    own = {path: next(iter(one.ids)) for path, one in rendered.items()}
    own |= {p: next(iter(manifest.files[p].ids), "") for p in group.seen if p in manifest.files}

    def renamed(id_: str) -> bool:
        """Whether the folder of a skill has another name now, in the same layer."""
        memory = view.get(id_)
        before = tree.place_of(memory) if memory is not None and not memory.gone else None
        is_alike = before is not None and before.path.split("/")[:-2] == place.path.split("/")[:-2]
        return is_alike and not any(path in disk for path in tree.rendered([before] if before else []))

    named = [_named(place, one, own, members, spine, base, renamed) for one in found]
    _Comparison(spine, tree, group, view, members, base, disk, take).compare(named)


def _take_run(spine: Spine, group: Group, found: list[Found]) -> None:
    """A new folder of a robot's run is one episode; what is already kept under its id is not taken again."""
    head = next((one for one in found if one.id is not None), None)
    if head is None or spine.state.history(str(head.id)):
        return
    steps = [one.said for one in found if one.id is None]
    try:
        fields = mirror.fields_of(group.place, [head.said, *steps], None)
    except BadInput as error:
        group.refused.append(Held(path=head.path, reason=error.message, line=1))
        return
    edit = Edit(action="remember", path=head.path, line=1, id=head.id, text=_short(fields["text"]))
    group.edits.append((edit, fields))


def _named(
    place: Place,
    one: Found,
    own: Mapping[str, str],
    members: Mapping[str, Memory],
    spine: Spine,
    base: Mapping[str, int],
    renamed: Callable[[str], bool],
) -> Found:
    """What was found with the id of its memory: it bears it, or its place or its name tells."""
    match place.form:
        case "page" if one.id is not None and not spine.state.history(one.id):
            section, text = one.said
            said = blocks.whole(blocks.Block(text=text, id=one.id, section=section))
            return replace(one, id=None, said=[section, said.text])
        case "page":
            return one
        case "behaviors":
            older = (spine.state.revision(id_, rev) for id_, rev in base.items())
            known = {mirror.name_of(m): m.id for m in (*older, *members.values())}
            return replace(one, id=known.get(one.said["name"]))
        case "skill" if one.path not in own and one.id is not None and renamed(one.id):
            return one
        case _:
            return replace(one, id=own.get(one.path) or None)


class _Comparison:
    """One group, three ways: what was shown, what the ledger says now, what the person left."""

    def __init__(
        self,
        spine: Spine,
        tree: Mirror,
        group: Group,
        view: DbView,
        members: Mapping[str, Memory],
        base: Mapping[str, int],
        disk: Mapping[str, bytes],
        take: Take | None,
    ) -> None:
        self._spine, self._tree, self._group, self._view = spine, tree, group, view
        self._members, self._base, self._disk, self._take = members, base, disk, take
        self._place = group.place

    def compare(self, found: list[Found]) -> None:
        """Note every edit and every conflict of the group."""
        there: set[str] = set()
        new: list[Found] = []
        for one in found:
            if one.id is None or one.id in there or self._is_copy(one.id):
                new.append(replace(one, id=None))
                continue
            there.add(one.id)
            self._known(one, one.id)
        unclaimed = [m for id_, m in self._members.items() if id_ not in there and id_ not in self._base]
        if self._place.form == "page":
            taken = self._taken_and_gone({one.said[1] for one in new})
            unclaimed += [memory for memory in taken if memory.id not in there]
        for one in new:
            twin = next((m for m in unclaimed if mirror.says(self._place, m) == one.said), None)
            if twin is None:
                self._edit("remember", one, None)
            else:
                # It was taken in before, and the file could not be written.
                unclaimed = [memory for memory in unclaimed if memory.id != twin.id]
        for id_ in self._base:
            if id_ not in there:
                self._missing(id_)

    def _taken_and_gone(self, texts: Collection[str]) -> Iterator[Memory]:
        """Memories that a sync took in from here, and that went elsewhere before the file could say so."""
        query = Filter(kinds=(self._place.kind,), scopes=(self._place.scope,))
        for memory in self._view.memories(query) if texts else ():
            if memory.text in texts and memory.id not in self._base:
                (version, first), *_ = self._spine.state.history(memory.id)
                was_here = self._spine.state.commit(version).cause == "sync"
                if was_here and self._tree.place_of(first) == self._place:
                    yield first

    def _is_copy(self, id_: str) -> bool:
        """Whether a block of another page was copied here rather than moved."""
        memory = self._view.get(id_)
        if memory is None or memory.gone or id_ in self._members:
            return False
        place = self._tree.place_of(memory)
        if place is None or self._place.kind != memory.kind or place.form != "page":
            return self._place.form == "page"
        mark = f" ^{id_}".encode()
        return any(mark in self._disk.get(path, b"") for path in self._tree.rendered([place]))

    def _known(self, one: Found, id_: str) -> None:
        memory = self._view.get(id_)
        if memory is None or memory.gone:
            if id_ not in self._base:
                self._edit("remember", one, None)
            elif not self._was_shown(one, id_):
                self._conflict(one, None, "it was forgotten meanwhile, and changed here")
            return
        if id_ in self._base and one.said == mirror.says(
            self._place, self._spine.state.revision(id_, self._base[id_])
        ):
            return  # left alone, wherever the account has it now
        place = self._tree.place_of(memory)
        is_page = self._place.form in ("page", "skill")
        is_moved = is_page and (place is None or place.path != self._place.path)
        if not is_moved and (one.said == mirror.says(self._place, memory) or self._was_shown(one, id_)):
            return
        if self._is_unchanged(memory):
            self._edit("revise", one, memory)
        else:
            self._conflict(one, memory, "it was changed here and in the account")

    def _missing(self, id_: str) -> None:
        memory = self._members.get(id_)
        if memory is None:
            return
        mark = (f" ^{id_}" if self._place.form == "page" else f'octavo-id: "{id_}"').encode()
        if self._place.form in ("page", "skill") and any(mark in data for data in self._disk.values()):
            return  # moved to another page, or renamed
        path = next(iter(self._group.seen))
        gone = Found(said=None, path=path, id=id_, line=0)
        if self._is_unchanged(memory):
            self._edit("forget", gone, memory)
        else:
            self._conflict(gone, memory, "it was removed here and changed in the account")

    def _is_unchanged(self, memory: Memory) -> bool:
        """Whether the account still says what was shown."""
        shown = self._base.get(memory.id, memory.rev)
        old = self._spine.state.revision(memory.id, shown)
        return bool(mirror.says(self._place, old) == mirror.says(self._place, memory))

    def _was_shown(self, one: Found, id_: str) -> bool:
        """Whether this is how the account itself said it at or after what is known to have been shown."""
        first = self._base.get(id_, 1)
        older = (m for _, m in self._spine.state.history(id_) if m.rev >= first and not m.gone)
        return any(mirror.says(self._place, memory) == one.said for memory in older)

    def _conflict(self, one: Found, memory: Memory | None, reason: str) -> None:
        if self._take == "theirs":
            action: Any = "forget" if one.said is None else "revise" if memory else "remember"
            self._edit(action, one, memory)
        elif self._take is None:
            self._group.conflicts.append(Held(path=one.path, line=one.line, reason=reason))

    def _edit(
        self, action: Literal["remember", "revise", "forget"], one: Found, memory: Memory | None
    ) -> None:
        fields = {} if action == "forget" else mirror.fields_of(self._place, one.said, memory)
        text = str(fields.get("text") or (memory.text if memory else ""))
        id_ = memory.id if memory else None
        edit = Edit(action=action, path=one.path, line=one.line, id=id_, text=_short(text))
        self._group.edits.append((edit, fields))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
