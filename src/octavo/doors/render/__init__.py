"""What the command line shows: an operation's value as a few readable lines, a table or a page.

Memories are data: their text is never read as markup, and what would steer a terminal is made visible. An
operation without a view of its own is shown by the form of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from octavo.doors.render import (
    assemblies,
    compression,
    files,
    memories,
    recall,
    review,
    sandboxes,
    versions,
)
from octavo.doors.render.console import error, progress, write
from octavo.doors.render.lists import LISTS
from octavo.doors.render.shapes import Shown, line
from octavo.doors.render.values import value_lines

__all__ = ["error", "progress", "show"]

View = Callable[[Any], Iterator[Shown]]


def show(name: str, value: Any) -> None:
    """Print what an operation gave back; what was kept out goes to standard error."""
    for shown in VIEWS.get(name, value_lines)(value):
        write(shown)


def _nothing(value: None) -> Iterator[Shown]:
    """A view of what has answered somebody else already."""
    yield from ()


def _done(word: str) -> View:
    """A view of one line: what was done, and to what."""

    def view(value: dict[str, Any]) -> Iterator[Shown]:
        for what in value.values():
            yield line((word, "bold green"), f" {what}")

    return view


def _revived(value: dict[str, Any]) -> Iterator[Shown]:
    """What lives again."""
    for id_ in value["revived"]:
        yield line(("lives again", "bold green"), f" {id_}")


VIEWS: dict[str, View] = {
    **LISTS,
    "init": sandboxes.init_lines,
    "delete_account": _done("deleted"),
    "sandbox": sandboxes.sandbox_lines,
    "turn": _done("noted"),
    "write_episode": _done("noted"),
    "update_state": memories.verdict_lines,
    "use": _done("noted"),
    "buffer": sandboxes.buffer_lines,
    "consolidate": sandboxes.consolidation_lines,
    "discard": _done("discarded"),
    "remember": memories.verdict_lines,
    "remember_many": memories.verdicts_lines,
    "alias": memories.verdict_lines,
    "revise": memories.verdict_lines,
    "forget": memories.forgotten_lines,
    "get": memories.memory_lines,
    "recall": recall.recall_lines,
    "explain": recall.explanation_lines,
    "brief": recall.brief_lines,
    "freshness": recall.freshness_lines,
    "catch_up": _done("indexed up to version"),
    "reindex": _done("indexed anew up to version"),
    "proposal": review.waiting_lines,
    "approve": review.approved_lines,
    "decline": _done("declined"),
    "reject": review.ended_lines,
    "unreject": _done("allowed again:"),
    "redact": review.redacted_lines,
    "promote": memories.verdict_lines,
    "propose_merge": _done("waits for a person:"),
    "propose_deletions": review.asked_lines,
    "compress": compression.compressed_lines,
    "uncompress": compression.removed_lines,
    "show": compression.shown_lines,
    "mirror": files.synced_lines,
    "teach": files.answer_lines,
    "invoke": files.answer_lines,
    "retention": files.aged_lines,
    "sync": files.synced_lines,
    "assembly": assemblies.assembly_lines,
    "explain_activation": assemblies.explained_lines,
    "explain_merge": assemblies.explained_lines,
    "lineage": assemblies.lineage_lines,
    "merge_log": assemblies.log_lines,
    "unmerge": _revived,
    "diff": versions.difference_lines,
    "restore": _done("restored as version"),
    "check": versions.report_lines,
    "repair": versions.report_lines,
    "upkeep": versions.upkeep_lines,
    "backup": _done("copied to"),
    "salvage": _done("copied to"),
    "move": _done("moved to"),
    "export": versions.carried_lines,
    "import": versions.carried_lines,
    "mcp": _nothing,
    "hook": _nothing,
}
