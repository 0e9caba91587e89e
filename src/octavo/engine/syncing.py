"""Sync: what a person changed in the mirror comes back through the gate, block by block, in one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import rules
from octavo.domain.rules import Candidate
from octavo.domain.state import Pending
from octavo.domain.verdicts import Verdict
from octavo.engine.comparison import Comparison, Edit, Group, Held, Take
from octavo.engine.mirror import Mirror
from octavo.engine.spine import Spine
from octavo.engine.writing import Writer
from octavo.errors import BadInput, OctavoError, VersionConflict
from octavo.storage.mirror_tree import hash_of
from octavo.storage.state_view import DbView

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


def show(tree: Mirror) -> Synced:
    """Show the newest version; what a person changed stays as it is and is listed."""
    with tree.held():
        written = tree.bring_up()
        compared = Comparison(tree)
        written += _bring_up(tree, [g for g in compared.groups if not (g.edits or g.is_held)])
        return _told(tree, compared, written=written)


def preview(tree: Mirror, take: Take | None = None) -> Synced:
    """What a sync would take in; nothing is changed."""
    compared = Comparison(tree, take)
    return _told(tree, compared)


def sync(
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
            compared = Comparison(tree, take)
            for group in compared.groups if not endings else ():
                _keep_endings(group)
            _must_be_few(compared, delete=delete)
            try:
                _commit(tree.spine, writer, compared.groups)
            except VersionConflict:
                if not left:
                    raise
            else:
                break
        written = _bring_up(tree, [group for group in compared.groups if not group.is_held])
        _keep_copies(tree, compared)
        return _told(tree, compared, written=written, is_done=True)


def _bring_up(tree: Mirror, taken: list[Group]) -> list[str]:
    seen = {path: data for group in taken for path, data in group.seen.items()}
    moved = [path for group in taken for path in group.moved]
    return tree.bring_up(seen, [group.place for group in taken], moved)


def _told(
    tree: Mirror,
    compared: Comparison,
    *,
    written: Iterable[str] = (),
    is_done: bool = False,
) -> Synced:
    groups = compared.groups
    return Synced(
        folder=tree.name,
        version=tree.spine.head().version,
        edits=tuple(edit for group in groups if not group.is_held for edit, _ in group.edits),
        conflicts=tuple(held for group in groups for held in group.conflicts),
        refused=tuple(held for group in groups for held in group.refused),
        left_alone=tuple(compared.alone),
        written=tuple(written),
        is_done=is_done,
    )


def _must_be_few(compared: Comparison, *, delete: bool) -> None:
    edits = (edit for group in compared.groups if not group.is_held for edit, _ in group.edits)
    ends = sum(1 for edit in edits if edit.action == "forget")
    shown = len({id_ for file in compared.manifest.files.values() for id_ in file.ids})
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


def _commit(spine: Spine, writer: Callable[[str], Writer], groups: list[Group]) -> None:
    """Commit the edits of every group that waits for nobody; one that the gate stops waits from now on."""
    ready: list[tuple[Group, Writer, list[Candidate]]] = []
    for group in (group for group in groups if group.edits and not group.is_held):
        own = writer(group.place.scope)
        outcomes = [_candidate(spine, own, edit, fields) for edit, fields in group.edits]
        _note_refusals(group, outcomes)
        ready.append((group, own, [one for one in outcomes if not isinstance(one, Verdict)]))
    seen = spine.head().version

    def act(state: Pending, view: DbView) -> None:
        if view.version != seen:
            raise VersionConflict(f"version {seen} was read, the account is at {view.version}")
        for group, own, candidates in ready:
            for trial in (Pending(view), state):
                if not group.refused:
                    setting = own.context(skip=frozenset({"duplicate"}))
                    _note_refusals(group, rules.consolidate(trial, candidates, setting))

    if ready:
        spine.commit(act, cause="sync", actor=ready[0][1].actor)


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


def _keep_copies(tree: Mirror, compared: Comparison) -> None:
    """Lay the account's side of every conflict beside the file, and take away those that are settled."""
    manifest, copies = tree.base(), dict[str, bytes]()
    for group in (group for group in compared.groups if group.conflicts):
        sides = tree.rendered(group.place).items()
        copies |= {
            compared.copy_of(path): one.data for path, one in sides if tree.tree.read(path) != one.data
        }
    digests = dict(manifest.copies)
    for name in {**digests, **copies}:
        there, data = tree.tree.read(name), copies.get(name)
        is_ours = there is None or hash_of(there) == digests.get(name)  # else a person has written in it
        if is_ours and tree.tree.put(name, data, over=there):
            digests.pop(name, None)
            digests |= {name: hash_of(data)} if data is not None else {}
    tree.tree.note(replace(manifest, copies=digests))
