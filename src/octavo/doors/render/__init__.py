"""What the command line shows: an operation's value as a few readable lines, a table or a page.

Memories are data: their text is never read as markup, and what would steer a terminal is made visible. An
operation without a view of its own is shown by the form of its value.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from octavo.doors.render import assemblies, files, recall, views
from octavo.doors.render.console import error, progress, write
from octavo.doors.render.lists import LISTS
from octavo.doors.render.values import value_lines
from octavo.doors.render.views import View, done

__all__ = ["error", "progress", "show"]


def show(name: str, value: Any) -> None:
    """Print what an operation gave back; what was kept out goes to standard error."""
    for shown in VIEWS.get(name, value_lines)(value):
        write(shown)


VIEWS: dict[str, View] = {
    **LISTS,
    **dict.fromkeys(("remember", "alias", "revise", "update_state", "promote"), views.verdict_lines),
    **dict.fromkeys(("turn", "write_episode", "use"), done("noted")),
    **dict.fromkeys(("backup", "salvage"), done("copied to")),
    **dict.fromkeys(("check", "repair"), views.report_lines),
    **dict.fromkeys(("export", "import"), views.carried_lines),
    **dict.fromkeys(("mirror", "sync"), files.synced_lines),
    **dict.fromkeys(("teach", "invoke"), files.answer_lines),
    **dict.fromkeys(("mcp", "hook"), views.nothing),
    "accounts": done("", empty="no accounts; `octavo init` begins one"),
    "init": views.init_lines,
    "delete_account": done("deleted"),
    "move": done("moved to"),
    "sandbox": views.sandbox_lines,
    "buffer": views.buffer_lines,
    "consolidate": views.consolidation_lines,
    "discard": done("discarded"),
    **dict.fromkeys(("remember_many", "end_order"), views.verdicts_lines),
    "forget": partial(views.verdicts_lines, word="forgotten"),
    "get": views.memory_lines,
    "recall": recall.recall_lines,
    "explain": done(""),
    "brief": recall.brief_lines,
    "freshness": recall.freshness_lines,
    "catch_up": done("indexed up to version"),
    "reindex": done("indexed anew up to version"),
    "proposal": views.waiting_lines,
    "approve": views.approved_lines,
    "decline": done("declined"),
    "reopen": done("waits for a person:"),
    "reject": views.ended_lines,
    "unreject": done("allowed again:"),
    "redact": views.redacted_lines,
    "propose_merge": done("waits for a person:"),
    "propose_deletions": done("waits for a person ", "magenta", empty="nothing new to ask"),
    "compress": views.compressed_lines,
    "uncompress": done("removed ", then="; `octavo compress {}` makes it again"),
    "show": views.shown_lines,
    "retention": files.aged_lines,
    "assembly": assemblies.assembly_lines,
    "lineage": assemblies.lineage_lines,
    "unmerge": done("lives again"),
    "diff": views.difference_lines,
    "restore": done("restored as version"),
    "revert": done("reverted as version"),
    "upkeep": views.upkeep_lines,
}
