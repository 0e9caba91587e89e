"""What the command line shows: each operation's value as a few readable lines or a table.

Memories are data: their text is never read as markup, and what would steer a terminal is made visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from octavo.interfaces.render import compression, memories, recall, review, sandboxes, versions
from octavo.interfaces.render.console import Line, error, progress, word_lines, write

__all__ = ["error", "progress", "show"]


def show(name: str, value: Any) -> None:
    """Print what an operation gave back; what was kept out goes to standard error."""
    for line in VIEWS[name](value):
        write(line)


VIEWS: dict[str, Callable[[Any], Iterator[Line]]] = {
    "init": sandboxes.init_lines,
    "accounts": sandboxes.accounts_lines,
    "delete_account": word_lines("deleted", "deleted"),
    "sandbox": sandboxes.sandbox_lines,
    "sandboxes": sandboxes.sandboxes_lines,
    "turn": word_lines("noted", "episode"),
    "write_episode": word_lines("noted", "episode"),
    "update_state": memories.verdict_lines,
    "use": word_lines("noted", "used"),
    "buffer": sandboxes.buffer_lines,
    "consolidate": sandboxes.consolidation_lines,
    "discard": word_lines("discarded", "discarded"),
    "remember": memories.verdict_lines,
    "remember_many": memories.verdicts_lines,
    "revise": memories.verdict_lines,
    "forget": memories.forgotten_lines,
    "get": memories.memory_lines,
    "memories": memories.memories_lines,
    "history": memories.history_lines,
    "refusals": memories.refusals_lines,
    "recall": recall.recall_lines,
    "explain": recall.explanation_lines,
    "brief": recall.brief_lines,
    "freshness": recall.freshness_lines,
    "catch_up": word_lines("indexed up to version", "version"),
    "reindex": word_lines("indexed anew up to version", "version"),
    "proposals": review.proposals_lines,
    "proposal": review.waiting_lines,
    "approve": review.approved_lines,
    "decline": word_lines("declined", "declined"),
    "reject": review.ended_lines,
    "unreject": word_lines("allowed again:", "lifted"),
    "rejections": review.rejections_lines,
    "redact": review.redacted_lines,
    "promote": memories.verdict_lines,
    "merge_candidates": review.pairs_lines,
    "propose_merge": word_lines("waits for a person:", "proposal"),
    "deletion_candidates": review.doubts_lines,
    "propose_deletions": review.asked_lines,
    "compress": compression.compressed_lines,
    "uncompress": compression.removed_lines,
    "cores": compression.made_of_lines("cores"),
    "spheres": compression.made_of_lines("spheres"),
    "show": compression.shown_lines,
    "counters": compression.counters_lines,
    "sessions": compression.sessions_lines,
    "versions": versions.versions_lines,
    "diff": versions.difference_lines,
    "restore": word_lines("restored as version", "version"),
    "stats": versions.stats_lines,
    "check": versions.report_lines,
    "repair": versions.report_lines,
    "upkeep": versions.upkeep_lines,
    "backup": word_lines("copied to", "path"),
    "export": versions.carried_lines,
    "import": versions.carried_lines,
}
