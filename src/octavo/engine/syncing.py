"""Sync: what a person changed in the mirror comes back through the gate, block by block, in one commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import mirror_places, rules
from octavo.domain.mirror_places import Place
from octavo.domain.rules import Candidate
from octavo.domain.state import Pending
from octavo.domain.verdicts import Verdict
from octavo.engine.comparison import Edit, Group, Held, Take, read_group
from octavo.engine.mirror import Mirror
from octavo.engine.spine import Spine
from octavo.engine.writing import Writer
from octavo.errors import BadInput, OctavoError, VersionConflict
from octavo.storage.mirror_tree import Manifest, Shown, hash_of
from octavo.storage.state_view import DbView

_COPY = re.compile(r"\.octavo-\d+(\.\w+)?$")
_ENDINGS, _SHARE = 50, 0.1  # more endings than this at once are asked about
_ATTEMPTS = 5


class Synced(Struct, frozen=True, kw_only=True):
    """What a sync did, or would do: edits taken in, conflicts and refusals that stay, files written."""

    folder: str
    version: int
    edits: tuple[Edit, ...] = ()
    conflicts: tuple[Held, ...] = ()
    refused: tuple[Held, ...] = ()
    left_alone: tuple[Held, ...] = ()
    written: tuple[str, ...] = ()
    is_done: bool = False


def plan(spine: Spine, tree: Mirror, take: Take | None = None) -> tuple[list[Group], list[Held]]:
    """What differs from what was shown, place by place, and the files that are nobody's."""
    manifest, view = tree.base(), spine.head()
    disk, left = tree.tree.scan()
    alone = [Held(path=path, reason=why) for path, why in left.items()]
    groups: dict[str, Group] = {}
    for path in sorted({*disk, *manifest.files}):
        shown, data = manifest.files.get(path), disk.get(path)
        is_same = shown is not None and data is not None and hash_of(data) == shown.sha256
        if is_same or path in left or _COPY.search(path):
            continue
        place = _place(tree, spine, path, shown, data)
        if place is None:
            alone.append(Held(path=path, reason="it is no file of the mirror"))
            continue
        new = Group(place=place, seen={}, edits=[], conflicts=[], refused=[])
        groups.setdefault(place.path, new).seen[path] = data
    for group in groups.values():
        read_group(spine, tree, manifest, disk, group, view, take)
    _without_copies(groups.values(), view, tree)
    return list(groups.values()), alone


def show(spine: Spine, tree: Mirror) -> Synced:
    """Show the newest version; what a person changed stays as it is and is listed."""
    with tree.held():
        written = tree.bring_up()
        groups, alone = plan(spine, tree)
        written += _bring_up(tree, [group for group in groups if group.is_clean])
        return _told(spine, tree, groups, alone, written=written)


def preview(spine: Spine, tree: Mirror, take: Take | None = None) -> Synced:
    """What a sync would take in; nothing is changed."""
    groups, alone = plan(spine, tree, take)
    return _told(spine, tree, groups, alone)


def sync(
    spine: Spine,
    tree: Mirror,
    writer: Callable[[str], Writer],
    *,
    take: Take | None = None,
    delete: bool = False,
    endings: bool = True,
) -> Synced:
    """Take in what a person changed, and show the newest version.

    `take` decides conflicts for the ledger (`ours`) or for the person (`theirs`); without `endings` a file
    that ends memories waits.
    """
    with tree.held():
        for left in reversed(range(_ATTEMPTS)):
            groups, alone = plan(spine, tree, take)
            for group in groups if not endings else ():
                _keep_endings(group)
            _must_be_few(groups, tree.base(), delete=delete)
            try:
                done = _commit(spine, writer, groups)
            except VersionConflict:
                if not left:
                    raise
            else:
                break
        written = _bring_up(tree, [*(group for group in groups if group.is_clean), *done])
        _keep_copies(tree, [group for group in groups if group.conflicts])
        kept = [group for group in groups if group.conflicts or group.refused]
        return _told(spine, tree, [*done, *kept], alone, written=written, is_done=True)


def _bring_up(tree: Mirror, taken: list[Group]) -> list[str]:
    seen = {path: data for group in taken for path, data in group.seen.items()}
    return tree.bring_up(seen, [group.place for group in taken])


def _told(
    spine: Spine,
    tree: Mirror,
    groups: Iterable[Group],
    alone: Iterable[Held],
    *,
    written: Iterable[str] = (),
    is_done: bool = False,
) -> Synced:
    some = list(groups)
    free = [group for group in some if not (group.conflicts or group.refused)]
    return Synced(
        folder=tree.name,
        version=spine.head().version,
        edits=tuple(edit for group in free for edit, _ in group.edits),
        conflicts=tuple(held for group in some for held in group.conflicts),
        refused=tuple(held for group in some for held in group.refused),
        left_alone=tuple(alone),
        written=tuple(written),
        is_done=is_done,
    )


def _place(tree: Mirror, spine: Spine, path: str, shown: Shown | None, data: bytes | None) -> Place | None:
    """What a file is: by the memories it showed, or by its name."""
    for id_, rev in (shown.ids if shown else {}).items():
        return tree.place_of(spine.state.revision(id_, rev))
    return mirror_places.recognise(path, (data or b"").decode("utf-8", "replace"))


def _must_be_few(groups: Iterable[Group], manifest: Manifest, *, delete: bool) -> None:
    ends = sum(1 for group in groups for edit, _ in group.edits if edit.action == "forget")
    shown = len({id_ for file in manifest.files.values() for id_ in file.ids})
    if ends > max(_ENDINGS, shown * _SHARE) and not delete:
        raise BadInput(
            f"the sync would end {ends} of {shown} memories",
            hint="put the files back, or say --delete if they shall go",
        )


def _keep_endings(group: Group) -> None:
    """Let a group that ends something wait for a person who is asked."""
    ends = [edit for edit, _ in group.edits if edit.action == "forget"]
    if ends:
        why = f"it ends {len(ends)} of the memories it showed; `octavo sync --yes` takes that in"
        group.refused.append(Held(path=ends[0].path, reason=why))


def _commit(spine: Spine, writer: Callable[[str], Writer], groups: list[Group]) -> list[Group]:
    """Commit the edits of every group that is free of conflicts and refusals; returns those."""
    ready: list[tuple[Group, Writer, list[Candidate]]] = []
    for group in (g for g in groups if g.edits and not g.conflicts and not g.refused):
        own = writer(group.place.scope)
        outcomes = [_candidate(spine, own, edit, fields) for edit, fields in group.edits]
        _note_refusals(group, outcomes)
        ready.append((group, own, [one for one in outcomes if not isinstance(one, Verdict)]))
    seen = spine.head().version

    def act(state: Pending, view: DbView) -> None:
        if view.version != seen:
            raise VersionConflict(f"version {seen} was read, the account is at {view.version}")
        for group, own, candidates in ready:
            if not group.refused:
                setting = own.context(skip=frozenset({"duplicate"}))
                _note_refusals(group, rules.consolidate(Pending(view), candidates, setting))
            if not group.refused:
                rules.consolidate(state, candidates, own.context(skip=frozenset({"duplicate"})))

    if ready:
        spine.commit(act, cause="sync", actor=ready[0][1].actor)
    return [group for group, _, _ in ready if not group.refused]


def _note_refusals(group: Group, outcomes: Iterable[Candidate | Verdict]) -> None:
    for (edit, _), one in zip(group.edits, outcomes, strict=True):
        if isinstance(one, Verdict) and one.outcome in ("refused", "proposed"):
            why = f"{one.check}: {one.detail}" + (f"; {one.advice}" if one.advice else "")
            group.refused.append(Held(path=edit.path, line=edit.line, reason=why))


def _candidate(spine: Spine, writer: Writer, edit: Edit, fields: dict[str, Any]) -> Candidate | Verdict:
    """An edit as what the rules take, or the refusal of the text checks."""
    try:
        if edit.action == "forget":
            return writer.end(str(edit.id))
        if edit.action == "remember":
            return writer.checked(writer.candidate(fields.pop("text", ""), **fields))
        old = spine.head().get(str(edit.id))
        return writer.revision(old, str(edit.id), **fields)
    except OctavoError as error:  # a topic that is none, a number that JSON cannot say
        return Verdict(outcome="refused", check="input", detail=error.message)


def _without_copies(groups: Iterable[Group], view: DbView, tree: Mirror) -> None:
    """Say of each conflict where the account's own words are laid beside the file."""
    for group in groups:
        group.conflicts[:] = [
            replace(held, reason=f"{held.reason}; see {_copy_name(held.path, view.version)}")
            for held in group.conflicts
        ]


def _copy_name(path: str, version: int) -> str:
    pure = PurePosixPath(path)
    return str(pure.with_name(f"{pure.stem}.octavo-{version}{pure.suffix}"))


def _keep_copies(tree: Mirror, conflicting: list[Group]) -> None:
    """Lay the account's side of every conflict beside the file, and take away those that are settled."""
    manifest = tree.base()
    copies: dict[str, str] = {}
    for path, one in tree.rendered([group.place for group in conflicting]).items():
        if tree.tree.read(path) != one.data:
            name = _copy_name(path, manifest.version)
            tree.tree.write(name, one.data, over=tree.tree.read(name))
            copies[name] = hash_of(one.data)
    for name, digest in manifest.copies.items():
        data = tree.tree.read(name)
        if name not in copies and data is not None:
            if hash_of(data) == digest:
                tree.tree.remove(name, over=data)
            else:
                copies[name] = digest
    tree.tree.note(replace(manifest, copies=copies))
