"""Sync: what a person did to the files of a tree, compared three ways, comes back in one commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from octavo.domain import mirror, mirror_places, rules, runs
from octavo.domain.memory import Memory
from octavo.domain.mirror import Action, Edit, Found, Held, Synced
from octavo.domain.mirror_places import EDITABLE, Place
from octavo.domain.rules import Candidate
from octavo.domain.sentences import shorten
from octavo.domain.state import Pending
from octavo.domain.verdicts import Verdict
from octavo.engine.mirror import Mirror
from octavo.engine.spine import Spine
from octavo.engine.writing import Writer
from octavo.errors import BadInput, OctavoError, VersionConflict
from octavo.storage import codec
from octavo.storage.mirror_tree import hash_of
from octavo.storage.state_view import DbView

Take = Literal["ours", "theirs"]
_SHOWN = 80
_STRANGE = "it is no file of the mirror"
_BORNE = re.compile(rb"(?: \^|octavo-id: ['\"]?)([A-Za-z0-9][A-Za-z0-9_.:@-]{0,95})")
# Why what a person did to a memory waits if the account has changed it too.
_WAITS: Mapping[Action, str] = {
    "remember": "it was forgotten meanwhile, and changed here",
    "revise": "it was changed here and in the account",
    "forget": "it was removed here and changed in the account",
}
_ENDINGS, _SHARE = 50, 0.1  # more endings than this at once are asked about
_ATTEMPTS = 5


class Group(Struct, kw_only=True):
    """The files of one place: as a person left them, the revisions they showed, and what they ask for.

    `read` are those that say something; where another file says it from now on, they go.
    """

    place: Place
    read: list[str] = field(default_factory=list)
    seen: dict[str, bytes | None] = field(default_factory=dict)
    members: Mapping[str, Memory] = field(default_factory=dict)
    base: Mapping[str, int] = field(default_factory=dict)
    edits: list[tuple[Edit, dict[str, Any]]] = field(default_factory=list)
    conflicts: list[Held] = field(default_factory=list)
    refused: list[Held] = field(default_factory=list)

    @property
    def is_held(self) -> bool:
        """Whether it waits for a person."""
        return bool(self.conflicts or self.refused)


class Comparison:
    """What was shown, what the ledger says now and what a person left: `groups` of files that differ.

    `alone` are the files that are nobody's; `take` decides conflicts.
    """

    def __init__(self, tree: Mirror, take: Take | None = None) -> None:
        self._tree, self._take, self._state = tree, take, tree.spine.state
        self.manifest, self.view = tree.base(), tree.view
        self._disk, left = tree.tree.scan()
        self.alone = [Held(path=path, reason=why) for path, why in left.items()]
        groups: dict[str, Group] = {}
        hidden = tuple(f"{path}/" for path in left)  # nobody knows what is below a link: it did not go
        for path in sorted({*self._disk, *self.manifest.files} - left.keys()):
            shown, data = self.manifest.files.get(path), self._disk.get(path)
            is_same = shown is not None and data is not None and hash_of(data) == shown.sha256
            if is_same or mirror_places.is_copy(path) or path.startswith(hidden):
                continue
            place = self._place(path)
            if isinstance(place, str):
                self.alone.append(Held(path=path, reason=place))
            else:
                groups.setdefault(place.path, Group(place=place)).seen[path] = data
        self.groups = list(groups.values())
        for group in self.groups:
            try:
                self._compare(group)
            except BadInput as error:  # what cannot be read holds the whole group
                path = next(iter(group.read or group.seen))
                group.refused.append(Held(path=path, reason=error.message, line=1))

    @cached_property
    def _bearing(self) -> dict[str, set[str]]:
        """The Markdown files that bear an id, whoever put it there."""
        bearing: dict[str, set[str]] = {}
        for path in self._disk:
            if path.endswith(".md") and not mirror_places.is_copy(path):
                for id_ in _BORNE.findall(self._disk[path]):
                    bearing.setdefault(id_.decode(), set()).add(path)
        return bearing

    def _place(self, path: str) -> Place | str:
        """What a file is, by the memories it showed or by its name; or why it is left alone."""
        shown, text = self.manifest.files.get(path), self._disk.get(path, b"").decode("utf-8", "replace")
        if shown and shown.ids:
            id_, rev = next(iter(shown.ids.items()))
            return self._tree.place_of(self._state.revision(id_, rev)) or _STRANGE
        place, said = mirror_places.recognise(path, text), mirror_places.said_page(text)
        other = str(PurePosixPath(path).with_name(f"{mirror_places.safe(said)}.md"))
        if said and place and place.kind == "fact" and other != place.path and other in self._disk:
            # Whatever shares a folder between machines makes such copies.
            return f"it is a copy of {other}; without its `page` property it would be a page of its own"
        return place or _STRANGE

    def _compare(self, group: Group) -> None:
        """Find a group's edits and conflicts."""
        place, shown = group.place, self.manifest.files
        if place.form not in EDITABLE and (place.form != "run" or self._state.history(str(place.topic))):
            return  # an episode or a derived page: nothing a person writes there comes back
        files = self._tree.files(place)
        for path in shown:
            if path in files or (place.form == "page" and place.is_at(path)):
                group.seen.setdefault(path, self._disk.get(path))
        group.members = {memory.id: memory for some in files.values() for memory in some}
        group.base = {i: rev for path in group.seen if path in shown for i, rev in shown[path].ids.items()}
        found: list[Found] = []
        for path, data in group.seen.items():
            group.read = [path]  # as long as it is not known what it says
            found += mirror.read(place, path, data) if data is not None else []
        group.read = [one.path for one in found]
        if place.form == "run":  # a new folder is one episode; what is already kept under its id stays
            for head in [one for one in found if one.id and not self._state.history(one.id)]:
                fields = runs.fields_of(head.said, [one.said for one in found if one.id is None])
                edit = Edit(
                    action="remember", path=head.path, line=1, id=head.id, text=_short(fields["text"])
                )
                group.edits.append((edit, fields))
            return
        own = {path: some[0].id for path, some in files.items()}
        own |= {path: next(iter(shown[path].ids), "") for path in group.seen if path in shown}
        self._tell_apart(group, self._named(group, found, own))

    def _named(self, group: Group, found: list[Found], own: Mapping[str, str]) -> list[Found]:
        """What was found with the id of its memory: it bears it, or its place or its name tells."""
        match group.place.form:
            case "page":
                lost = group.base.keys() - {one.id for one in found}
                return [mirror.named(one, lost, lambda id_: bool(self._state.history(id_))) for one in found]
            case "behaviors":
                older = (self._state.revision(id_, rev) for id_, rev in group.base.items())
                known = {mirror.name_of(m): m.id for m in (*older, *group.members.values())}
                return [replace(one, id=known.get(one.said["data"]["name"])) for one in found]
        return [replace(one, id=own.get(one.path) or one.id) for one in found]

    def _tell_apart(self, group: Group, found: list[Found]) -> None:
        """Note every edit and every conflict of a group."""
        there: dict[str, str] = {}
        new: list[Found] = []
        for one in found:
            is_twice = one.id is not None and there.get(one.id, one.path) != one.path
            if is_twice and one.said in self._said(group, str(one.id))[-1:]:
                continue  # the next file of the page shows it already, and this one could not be written
            if one.id is None or one.id in there or self._is_copied(group, one.id):
                new.append(one)
            else:
                there[one.id] = one.path
                self._tell(group, one.id, one)
        for one in new:
            # What says the same as one that is missing is that one: an editor took its id away, or it was
            # taken in before and the file could not be written. A register is the one of its topic.
            missing = [memory for id_, memory in group.members.items() if id_ not in there]
            topic = one.said.get("topic") if group.place.kind == "register" else None
            twins = [m.id for m in missing if mirror.says(group.place, m) == one.said]
            twins += [m.id for m in missing if topic and m.topic == topic]
            if twins:
                self._tell(group, twins[0], one)
                there[twins[0]] = one.path
                continue
            id_ = self._id_for(one, there) if group.place.form == "page" else None
            if self._live(id_) is None:
                self._edit(group, "remember", replace(one, id=id_), None)
            there[id_ or one.path] = one.path
        for id_ in (id_ for id_ in group.base if id_ not in there):
            self._tell(group, id_, None)

    def _said(self, group: Group, id_: str) -> list[dict[str, Any]]:
        """What the account has said of a memory, from what is known to have been shown until now."""
        first = group.base.get(id_, 1)
        revisions = (memory for _, memory in self._state.history(id_) if memory.rev >= first)
        return [mirror.says(group.place, memory) for memory in revisions if not memory.gone]

    def _id_for(self, one: Found, there: Mapping[str, str]) -> str:
        """The id of a new block, the same as long as its file was not written: so it is taken in once.

        A block that was taken in and has ended since is another one.
        """
        shown, number = self.manifest.files.get(one.path), 0
        while True:
            words = codec.encode_json([one.path, shown.sha256 if shown else "", one.said, number])
            id_ = hash_of(words)[:20]
            if there.get(id_) != one.path and (self._live(id_) or not self._state.history(id_)):
                return id_
            number += 1

    def _live(self, id_: str | None) -> Memory | None:
        memory = self.view.get(id_) if id_ else None
        return memory if memory and not memory.gone else None

    def _is_copied(self, group: Group, id_: str) -> bool:
        """Whether a block or a skill was copied here, from elsewhere or from what has ended, or is new.

        What was moved stays the same memory, if a page of its kind or a folder of its layer has it now.
        """
        if id_ in group.members or id_ in group.base:
            return False
        memory = self._live(id_)
        before = self._tree.place_of(memory) if memory else None
        if before is None or before.room != group.place.room:
            return True
        bearing = self._bearing.get(id_, set())
        return any(before.is_at(path) for path in bearing) or not bearing.isdisjoint(self._tree.files(before))

    def _is_elsewhere(self, group: Group, memory: Memory) -> bool:
        """Whether what is missing in a file was moved to another page, or renamed, or is where no page is."""
        if group.place.form not in ("page", "skill"):
            return False
        others = self._bearing.get(memory.id, set()) - group.seen.keys()
        places = map(self._place, others)
        return any(isinstance(p, str) or (p.kind, p.scope) == (memory.kind, memory.scope) for p in places)

    def _tell(self, group: Group, id_: str, one: Found | None) -> None:
        """Note what a person did to a memory that was shown or is named: nothing, an edit, a conflict."""
        memory, said, is_shown = self._live(id_), self._said(group, id_), id_ in group.base
        action: Action = "remember" if memory is None else "revise"
        if one is None:
            if memory is None or id_ not in group.members or self._is_elsewhere(group, memory):
                return
            action, one = "forget", Found(said={}, path=next(iter(group.seen)), line=0)
        elif one.said in said:  # left alone, or as the account has it
            place = self._tree.place_of(memory) if memory else None
            is_here = place is None or place.path == group.place.path
            if is_shown or is_here or group.place.form not in ("page", "skill"):
                return
        if self._take == "theirs" or (memory is not None and (not is_shown or said[0] == said[-1])):
            self._edit(group, action, replace(one, id=None), memory)
        elif self._take is None:
            reason = f"{_WAITS[action]}; see {self.copy_of(one.path)}"
            group.conflicts.append(Held(path=one.path, line=one.line, reason=reason))

    def _edit(self, group: Group, action: Action, one: Found, memory: Memory | None) -> None:
        fields = {} if action == "forget" else mirror.fields_of(group.place, one.said, memory, one.first)
        fields |= {"id": one.id} if action == "remember" and one.id else {}
        text = str(fields.get("text") or (memory.text if memory else ""))
        if action == "revise" and memory and text == memory.text and group.place.form == "page":
            own = {**one.said, **one.said.get("data", {})}
            heading = own.get("section") or own.get("category") or own.get("topic") or group.place.page
            text = f"{_short(text)} → {heading}"
        id_ = memory.id if memory else None
        edit = Edit(action=action, path=one.path, line=one.line, id=id_, text=_short(text))
        group.edits.append((edit, fields))

    def copy_of(self, path: str) -> str:
        """Where the account's own words are laid beside a file that is in conflict."""
        pure = PurePosixPath(path)
        return str(pure.with_name(f"{pure.stem}.octavo-{self.view.version}{pure.suffix}"))


def told(tree: Mirror, compared: Comparison, touched: Sequence[str] = (), *, is_done: bool = False) -> Synced:
    """What a sync did or, as long as nothing is done, would do."""
    groups = compared.groups
    return Synced(
        folder=tree.name,
        version=tree.spine.head().version,
        edits=tuple(edit for group in groups if not group.is_held for edit, _ in group.edits),
        conflicts=tuple(held for group in groups for held in group.conflicts),
        refused=tuple(held for group in groups for held in group.refused),
        left_alone=tuple(compared.alone),
        written=tuple(path for path in touched if tree.tree.read(path) is not None),
        removed=tuple(path for path in touched if tree.tree.read(path) is None),
        is_done=is_done,
    )


def sync(
    tree: Mirror,
    writer: Callable[[str], Writer] | None,
    *,
    take: Take | None = None,
    delete: bool = False,
    endings: bool = True,
) -> Synced:
    """Take in what a person changed, and show the newest version; without a `writer` edits are only listed.

    `take` decides conflicts for the ledger (`ours`) or for the person (`theirs`); without `endings` a file
    that ends memories waits.
    """
    with tree.held():
        for left in reversed(range(_ATTEMPTS)):
            compared = Comparison(tree, take)
            if writer is None:
                break
            _check_endings(compared, delete=delete, endings=endings)
            try:
                _commit(tree.spine, writer, compared.groups)
                break
            except VersionConflict:
                if not left:
                    raise
        taken = [group for group in compared.groups if not (group.is_held or (group.edits and not writer))]
        seen = {path: data for group in taken for path, data in group.seen.items()}
        read = [path for group in taken for path in group.read]
        touched = tree.bring_up(seen, [group.place for group in taken], read)
        if writer is not None:
            _keep_copies(tree, compared)
        return told(tree, compared, touched, is_done=writer is not None)


def _check_endings(compared: Comparison, *, delete: bool, endings: bool) -> None:
    """Let a group that ends something wait for a person who is asked; many endings at once must be meant."""
    count = 0
    for group in compared.groups:
        ends = [edit for edit, _ in group.edits if edit.action == "forget"]
        if ends and not endings:
            why = f"it ends {len(ends)} of the memories it showed; `octavo sync --yes` takes that in"
            group.refused.append(Held(path=ends[0].path, reason=why))
        count += 0 if group.is_held else len(ends)
    shown = len({id_ for file in compared.manifest.files.values() for id_ in file.ids})
    if count > max(_ENDINGS, shown * _SHARE) and not delete:
        hint = "put the files back, or say --delete if they shall go"
        raise BadInput(f"the sync would end {count} of {shown} memories", hint=hint)


def _commit(spine: Spine, writer: Callable[[str], Writer], groups: list[Group]) -> None:
    """Commit the edits of every group that waits for nobody; one that the gate stops waits from now on."""
    head, ready = spine.head(), list[tuple[Group, Writer, list[Candidate]]]()
    for group in (group for group in groups if group.edits and not group.is_held):
        own = writer(group.place.scope)
        outcomes = [_candidate(head, own, edit, fields) for edit, fields in group.edits]
        _note_refusals(group, outcomes)
        ready.append((group, own, [one for one in outcomes if not isinstance(one, Verdict)]))

    def act(state: Pending, view: DbView) -> None:
        if view.version != head.version:
            raise VersionConflict(f"version {head.version} was read, the account is at {view.version}")
        for group, own, candidates in ready:
            for trial in (Pending(view), state):
                if not group.refused:
                    setting = own.context(skip=frozenset({"duplicate"}))
                    _note_refusals(group, rules.consolidate(trial, candidates, setting))

    if ready:
        spine.commit(act, cause="sync", actor=ready[0][1].actor)


def _candidate(head: DbView, writer: Writer, edit: Edit, fields: dict[str, Any]) -> Candidate | Verdict:
    """An edit as what the rules take, or the refusal of the text checks."""
    try:
        if edit.action == "forget":
            return writer.end(str(edit.id))
        if edit.action == "remember":
            return writer.checked(writer.candidate(fields.pop("text", ""), **fields))
        return writer.revision(head.get(str(edit.id)), str(edit.id), **fields)
    except OctavoError as error:  # a topic that is none, a number that JSON cannot say
        return Verdict(outcome="refused", check="input", detail=error.message)


def _note_refusals(group: Group, outcomes: Iterable[Candidate | Verdict]) -> None:
    for (edit, _), one in zip(group.edits, outcomes, strict=True):
        if isinstance(one, Verdict) and one.outcome in ("refused", "proposed"):
            why = f"{one.check}: {one.detail}" + (f"; {one.advice}" if one.advice else "")
            group.refused.append(Held(path=edit.path, line=edit.line, reason=why))


def _keep_copies(tree: Mirror, compared: Comparison) -> None:
    """Lay the account's side of every conflict beside the file, and take away those that are settled."""
    manifest, copies = tree.base(), dict[str, bytes]()
    for group in (group for group in compared.groups if group.conflicts):
        for path, (_, data, _) in tree.rendered(group.place).items():
            copies |= {compared.copy_of(path): data} if tree.tree.read(path) != data else {}
    digests = dict(manifest.copies)
    for name in {**digests, **copies}:
        there, copy = tree.tree.read(name), copies.get(name)
        is_ours = there is None or hash_of(there) == digests.get(name)  # else a person has written in it
        if is_ours and tree.tree.put(name, copy, over=there):
            digests.pop(name, None)
            digests |= {name: hash_of(copy)} if copy is not None else {}
    tree.tree.note(replace(manifest, copies=digests))


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), _SHOWN)
