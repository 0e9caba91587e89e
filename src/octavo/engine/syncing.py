"""Sync: what a person changed in the mirror comes back through the gate, block by block, in one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    removed: tuple[str, ...] = ()
    is_done: bool = False


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
        for path, one in tree.rendered(group.place).items():
            copies |= {compared.copy_of(path): one.data} if tree.tree.read(path) != one.data else {}
    digests = dict(manifest.copies)
    for name in {**digests, **copies}:
        there, data = tree.tree.read(name), copies.get(name)
        is_ours = there is None or hash_of(there) == digests.get(name)  # else a person has written in it
        if is_ours and tree.tree.put(name, data, over=there):
            digests.pop(name, None)
            digests |= {name: hash_of(data)} if data is not None else {}
    tree.tree.note(replace(manifest, copies=digests))
