"""Sync: what a person did to the files of a tree, compared three ways, comes back in one commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import PurePosixPath
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import mirror, mirror_places, rules, runs
from octavo.domain.memory import SHARED, Memory
from octavo.domain.mirror import Action, Edit, Found, Held, Synced
from octavo.domain.mirror_places import EDITABLE, Place
from octavo.domain.rules import Candidate
from octavo.domain.sentences import shorten
from octavo.domain.state import Pending
from octavo.domain.verdicts import Verdict
from octavo.engine.mirror import Mirror, Ours
from octavo.engine.writing import Writer
from octavo.errors import BadInput, OctavoError
from octavo.storage import codec
from octavo.storage.mirror_tree import hash_of
from octavo.storage.state_view import DbView

Take = Literal["ours", "theirs"]
# What can be shown: the place, the file, the memories, and how often each was used.
View = tuple[Place, str, list[Memory], Mapping[str, int]]
_SHOWN = 80
# What a person does who wants what no edit of a head gives.
_INSTEAD = {"page:": "put it back and rename the file", "name:": "put it back and rename the folder"}
# What Octavo counts itself: in a file that nobody knows it may be of any day.
_COUNTED = ("updated: ", "episodes: ", "times_invoked of ", "octavo-")
_COPY = "it is a copy of a conflict that was changed or forgotten: take from it what you need, and remove it"
_STRANGE = "it is no file of the mirror"
_FURTHER = re.compile(r"-\d{4}(?=\.md$)")  # what makes a file a further one of its page
# Why what a person did to a memory waits if the account has changed it too.
_WAITS: Mapping[Action, str] = {
    "remember": "it was forgotten meanwhile, and changed here",
    "revise": "it was changed here and in the account",
    "forget": "it was removed here and changed in the account",
}
_ENDINGS, _SHARE = 50, 0.1  # more endings than this at once are asked about


class Group(Struct, kw_only=True):
    """The files of a place: as a person left them, what they say, what they showed, what they ask for."""

    place: Place
    seen: dict[str, bytes | None] = {}
    found: list[Found] = []
    members: dict[str, Memory] = {}
    base: dict[str, int] = {}
    edits: list[tuple[Edit, dict[str, Any]]] = []
    conflicts: list[Held] = []
    refused: list[Held] = []

    @property
    def is_held(self) -> bool:
        """Whether it waits for a person."""
        return bool(self.conflicts or self.refused)


class Comparison:
    """What was shown, what the ledger says now and what a person left: `groups` of files that differ.

    `alone` are the files that are nobody's, `moved` says where ids went; `take` decides conflicts.
    """

    def __init__(self, tree: Mirror, take: Take | None = None) -> None:
        self._tree, self._take, self._state = tree, take, tree.spine.state
        self.manifest, self.view = tree.base(), tree.view
        self._disk, left = tree.tree.scan()
        self.alone = [Held(path=path, reason=why) for path, why in left.items()]
        # The ids that stand where they belong, those that moved and where to; the files that nobody can read.
        self._at_home, self.moved, self._aside = set[str](), dict[str, str](), b""
        self._base = {id_: rev for file in self.manifest.files.values() for id_, rev in file.ids.items()}
        groups: dict[str, Group] = {}
        hidden = tuple(f"{path}/" for path in left)  # nobody knows what is below a link: it did not go
        for path in sorted({*self._disk, *self.manifest.files} - left.keys()):
            shown, data = self.manifest.files.get(path), self._disk.get(path)
            if path.startswith(hidden) or (data is None and mirror_places.is_copy(path)):
                continue
            if shown is not None and data is not None and hash_of(data) == shown.sha256:
                self._at_home |= shown.ids.keys()
            elif isinstance(place := self._place(path), str):
                self.alone.append(Held(path=path, reason=place))
                self._aside += data if data and path.endswith(".md") and place != _COPY else b""
            else:
                groups.setdefault(place.path, Group(place=place)).seen[path] = data
        for id_, path in self.manifest.taken.items():  # taken in, and nobody lived to show it
            if self.view.live(id_) and (was := mirror_places.place_of(self._state.history(id_)[0][1])):
                group = groups.setdefault(was.path, Group(place=was))
                group.seen.setdefault(path, self._disk.get(path))
                group.base[id_] = self._base[id_] = 1
        self.groups = list(groups.values())
        for step in (self._read, self._follow, self._tell_apart):
            for group in (group for group in self.groups if not group.refused):
                step(group)

    def _place(self, path: str) -> Place | str:
        """What a file is, by the memories it showed or by its name; or why it is left alone."""
        if mirror_places.is_copy(path):
            return _COPY
        shown, text = self.manifest.files.get(path), self._disk.get(path, b"").decode("utf-8", "replace")
        if shown and shown.ids:
            id_, rev = next(iter(shown.ids.items()))
            return mirror_places.place_of(self._state.revision(id_, rev), self._tree.session_name) or _STRANGE
        place, said = mirror_places.recognise(path, text), mirror_places.said_page(text)
        other = str(PurePosixPath(path).with_name(f"{mirror_places.safe(said)}.md"))
        if said and place and place.kind == "fact" and other != place.path and other in self._disk:
            # Whatever shares a folder between machines makes such copies.
            return f"it is a copy of {other}; without its `page` property it would be a page of its own"
        return place or _STRANGE

    def _read(self, group: Group) -> None:
        """Find what the files of a group say, and what they showed; what cannot be read holds all of it."""
        place, shown = group.place, self.manifest.files
        if place.form not in EDITABLE and (place.form != "run" or self._state.history(str(place.topic))):
            return  # an episode or a derived page: nothing a person writes there comes back
        files = self._tree.files(place)
        pages = [path for path in shown if place.form == "page" and _FURTHER.sub("", path) == place.path]
        for path in sorted({*pages, *files} & shown.keys()):
            group.seen.setdefault(path, self._disk.get(path))
        group.members = {memory.id: memory for some in files.values() for memory in some}
        group.base |= {i: rev for path in group.seen if path in shown for i, rev in shown[path].ids.items()}
        path, found, before = place.path, list[Found](), dict[str, list[View]]()
        try:
            there = {path: data for path, data in group.seen.items() if data is not None}
            for path, data in there.items():
                before[path] = self._before(place, path, mirror.read(place, path, data))
                found += mirror.read(place, path, data, [of for of, *_ in before[path]])
            group.found = self._named(group, found)
            for path, data in there.items():
                self._check(group, path, data, before[path])
        except BadInput as error:
            group.refused.append(Held(path=path, reason=error.message, line=1))
            self._aside += b"".join(data for data in group.seen.values() if data)
        self._at_home |= {str(one.id) for one in group.found} & (group.base.keys() | group.members.keys())

    def _named(self, group: Group, found: list[Found]) -> list[Found]:
        """What was found with the id of its memory: it bears it, or its place, name or topic tells."""
        match group.place.form:
            case "page":
                lost = group.base.keys() - {one.id for one in found}
                found = [mirror.named(one, lost, lambda id_: bool(self._state.history(id_))) for one in found]
                topics = {m.topic: m.id for m in group.members.values() if m.kind == "register" and m.topic}
                return [replace(one, id=topics.get(str(one.said.get("topic"))) or one.id) for one in found]
            case "behaviors":
                older = (self._state.revision(id_, rev) for id_, rev in group.base.items())
                known = {mirror.name_of(m): m.id for m in (*older, *group.members.values())}
                named = {one.said["data"]["name"]: one for one in found}
                for name, one in named.items():
                    inner = one.first.get("name", name)
                    if inner != name and (name in known or inner not in known):
                        raise BadInput(f"behavior {name!r} is called {inner!r} inside: change the outer name")
                    known |= {} if inner in named else {name: known[inner]}
                return [replace(one, id=known.get(name)) for name, one in named.items()]
            case "run":  # a new folder is one episode
                heads, steps = [one for one in found if one.id], [one.said for one in found if not one.id]
                if not heads:
                    raise BadInput("an episode needs its metadata.json")
                if any(self._state.history(str(one.id)) for one in heads):
                    raise BadInput(f"an episode {heads[0].id} is kept already")
                return [replace(one, said=runs.fields_of(one.said, steps)) for one in heads]
        holder = self.view.by_topic(group.place.kind, group.place.scope, group.place.topic or "")
        told, shown = holder.id if holder else None, self.manifest.files
        own = {path: next(iter(shown[path].ids), None) for path in group.seen if path in shown}
        return [replace(one, id=own.get(one.path) or one.id or told) for one in found]

    def _before(self, place: Place, path: str, found: list[Found]) -> list[View]:
        """What a file showed; of one that nobody knows, what stood where the ids in it ever were."""
        if shown := self.manifest.files.get(path):
            return [(place, path, [self._state.revision(*mark) for mark in shown.ids.items()], shown.uses)]
        ever = (m for one in found for _, m in self._state.history(one.id or "") if not m.gone)
        return [(of, at, some, {}) for at, (of, some) in mirror_places.grouped(ever).items()]

    def _check(self, group: Group, path: str, data: bytes, before: list[View]) -> None:
        """Raise BadInput if a file says what it did not show and would not show again: it would be lost."""
        place = group.place
        head = mirror.page_of(place.page, ()) if place.form == "page" else "{}"
        lost = mirror.asides(place, data) - mirror.asides(place, head.encode())
        found = [one for one in group.found if lost and one.path == path]
        now = [mirror.written(place, one, self.view.live(one.id or "")) for one in found]
        for of, at, some, uses in (*before, (place, path, now, self._tree.uses(m.id for m in now))):
            lost -= mirror.asides(of, mirror.render(of, at, some, uses)) if some else set()
        if path not in self.manifest.files and (before or place.form != "page"):
            lost = {one for one in lost if not one.startswith(_COUNTED)}
        if lost:
            what = min(lost).replace("'", "")
            how = _INSTEAD.get(what.split(" ")[0], "put it back, or take it out")
            raise BadInput(f"its `{what}` would be lost, no edit changes it: {how}")

    def _follow(self, group: Group) -> None:
        """Note what moved into a group: it stays the same memory, on a page of its kind or as a skill.

        What still stands where it was, was copied, and is new; so is what goes elsewhere or had ended before.
        """
        for one in group.found:
            id_ = one.id or ""
            memory = self._state.revision(id_, self._base[id_]) if id_ in self._base else self.view.live(id_)
            if memory and memory.id not in self._at_home:
                before, now = mirror_places.place_of(memory, self._tree.session_name), group.place
                if before and replace(before, path=now.path, category=now.category, topic=now.topic) == now:
                    self.moved.setdefault(memory.id, now.path)

    def _tell_apart(self, group: Group) -> None:
        """Note every edit and every conflict of a group."""
        there, new = dict[str, str](), list[Found]()
        moved = [id_ for id_, path in self.moved.items() if path == group.place.path]
        known = {*group.base, *group.members, *moved}
        for one in group.found:
            own = one.id if one.id in known else None
            if own and own not in there:
                there[own] = one.path
                self._tell(group, own, one, there)
            elif not own or there[own] == one.path or one.said not in self._said(group, own)[-1:]:
                new.append(one)  # else the next file of the page shows it, and this one could not be written
        for one in new:
            # What says the same as one that is missing is that one: an editor took its id away, or it was
            # taken in before and the file could not be written.
            missing = [m for m in group.members.values() if m.id not in there and m.id not in self.moved]
            twins = [memory.id for memory in missing if mirror.says(group.place, memory) == one.said]
            there[twins[0] if twins else self._add(group, one, there)] = one.path
        for id_ in (id_ for id_ in group.base if id_ not in there):
            self._tell(group, id_, None, there)

    def _said(self, group: Group, id_: str) -> list[dict[str, Any]]:
        """What the account has said of a memory, from what is known to have been shown until now."""
        first = group.base.get(id_) or self._base.get(id_, 1)
        revisions = (memory for _, memory in self._state.history(id_) if memory.rev >= first)
        return [mirror.says(group.place, memory) for memory in revisions if not memory.gone]

    def _tell(self, group: Group, id_: str, one: Found | None, there: dict[str, str]) -> None:
        """Note what a person did to a memory that was shown or is named: nothing, an edit, a conflict."""
        memory, said, is_moved = self.view.live(id_), self._said(group, id_), id_ in self.moved
        action: Action = "remember" if memory is None else "revise"
        is_free = memory is not None and (id_ not in self._base or said[0] == said[-1])
        if one is None:
            if memory is None or id_ not in group.members or is_moved or id_.encode() in self._aside:
                return
            action, one = "forget", Found(said={}, path=next(iter(group.seen)), line=0)
        elif one.said in said:  # left alone, or as the account has it
            if memory is None or not is_moved:
                return
            is_free, one = True, replace(one, said=said[-1])  # what the account says now goes there
        if self._take == "theirs" and memory is None:
            there[self._add(group, one, there)] = one.path
        elif self._take == "theirs" or is_free:
            self._edit(group, action, one, memory)
        elif self._take is None:
            home = next((other for other in self.groups if is_moved and id_ in other.base), group)
            beside = self._copy_of(next(iter(home.seen)) if is_moved else one.path)
            held = Held(path=one.path, line=one.line, reason=f"{_WAITS[action]}; see {beside}")
            home.conflicts.append(held)
            group.refused += [held] * is_moved  # both pages wait

    def _add(self, group: Group, one: Found, there: Mapping[str, str]) -> str:
        """Note what is new, unless it was taken in before; its id if it is a block, else its path.

        The id is the same as long as the file was not written: so a block is taken in once, and one that has
        ended since is another one.
        """
        id_, shown = None, self.manifest.files.get(one.path)
        for number in count() if group.place.form == "page" else ():
            id_ = hash_of(codec.encode_json([one.path, shown.sha256 if shown else "", one.said, number]))[:20]
            if there.get(id_) != one.path and (self.view.live(id_) or not self._state.history(id_)):
                break
        if self.view.live(id_ or "") is None:
            self._edit(group, "remember", replace(one, id=id_), None)
        return id_ or one.path

    def _edit(self, group: Group, action: Action, one: Found, memory: Memory | None) -> None:
        fields = {} if action == "forget" else mirror.fields_of(group.place, one.said, memory, one.first)
        fields |= {"id": one.id} if action == "remember" and one.id else {}
        text = str(fields.get("text") or (memory.text if memory else ""))
        if action == "revise" and memory and text == memory.text and group.place.form == "page":
            own = {} if memory.id in self.moved else {**one.said, **one.said.get("data", {})}
            heading = own.get("section") or own.get("category") or own.get("topic") or group.place.page
            text = f"{text} → {heading}"
        id_ = memory.id if memory else fields.get("id")
        text = shorten(" ".join(text.split()), _SHOWN)
        edit = Edit(action=action, path=one.path, line=one.line, id=id_, text=text)
        group.edits.append((edit, fields))

    def copies(self) -> dict[str, Ours]:
        """The account's side of every conflict, to be laid beside the file."""
        return {
            self._copy_of(path): (replace(place, form="kept"), data, replace(now, ids={}))
            for group in self.groups
            if group.conflicts
            for path, (place, data, now) in self._tree.rendered(group.place).items()
            if data != self._disk.get(path)
        }

    def told(self, touched: Mapping[str, bool] | None = None, *, is_done: bool = False) -> Synced:
        """What a sync did or, as long as nothing is done, would do."""
        return Synced(
            folder=str(self._tree.folder),
            version=self._tree.view.version,
            edits=tuple(edit for group in self.groups if not group.is_held for edit, _ in group.edits),
            conflicts=tuple(held for group in self.groups for held in group.conflicts),
            refused=tuple(held for group in self.groups for held in group.refused),
            left_alone=tuple(self.alone),
            written=tuple(path for path, is_there in (touched or {}).items() if is_there),
            removed=tuple(path for path, is_there in (touched or {}).items() if not is_there),
            is_done=is_done,
        )

    def _copy_of(self, path: str) -> str:
        pure = PurePosixPath(path)
        return str(pure.with_name(f"{pure.stem}.octavo-{self.view.version}{pure.suffix}"))


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
        compared = Comparison(tree, take)

        def act(state: Pending, view: DbView) -> None:
            nonlocal compared
            if view.version != compared.view.version:  # somebody wrote meanwhile
                compared = Comparison(tree, take)
            _check_endings(compared, delete=delete, endings=endings)
            for group in compared.groups:
                if writer and group.edits and not group.is_held:
                    _take_in(group, state, view, writer(group.place.scope))

        if writer is not None and any(group.edits for group in compared.groups):
            new = [edit for group in compared.groups for edit, _ in group.edits if edit.action == "remember"]
            base, new_ids = compared.manifest, {str(edit.id): edit.path for edit in new if edit.id}
            tree.keep(replace(base, taken={**base.taken, **new_ids}))  # whoever dies before files show them
            tree.spine.commit(act, cause="sync", actor=writer(SHARED).actor)
        waiting = {g.place.path for g in compared.groups if g.is_held or (g.edits and not writer)}
        away = {id_ for id_, path in compared.moved.items() if path in waiting}  # not here, and not yet there
        taken = [g for g in compared.groups if g.place.path not in waiting and away.isdisjoint(g.base)]
        seen = {path: data for group in taken for path, data in group.seen.items()}
        read = [one.path for group in taken for one in group.found]
        touched = tree.bring_up(seen, [g.place for g in taken], read, compared.copies() if writer else None)
        return compared.told(touched, is_done=writer is not None)


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


def _take_in(group: Group, state: Pending, view: DbView, writer: Writer) -> None:
    """Put the edits of a group on a version, all of them; one that the gate stops waits from now on."""
    asked = [_candidate(view, writer, edit, fields) for edit, fields in group.edits]
    candidates = [one for one in asked if not isinstance(one, Verdict)]
    outcomes: Sequence[Candidate | Verdict] = asked
    for trial in (Pending(view), state, None):
        for (edit, _), one in zip(group.edits, outcomes, strict=True):
            if isinstance(one, Verdict) and one.outcome in ("refused", "proposed"):
                why = f"{one.check}: {one.detail}" + (f"; {one.advice}" if one.advice else "")
                group.refused.append(Held(path=edit.path, line=edit.line, reason=why))
        if trial is None or group.refused:
            return
        outcomes = rules.consolidate(trial, candidates, writer.context(skip=frozenset({"duplicate"})))


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
