"""What an import or an export of any format did: one pair of values for every document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from octavo.domain.buffer import Revised, SetState, Wrote
from octavo.domain.memory import Memory
from octavo.domain.verdicts import Verdict
from octavo.engine.account import Account
from octavo.engine.intake import Finished

# Checks that what was accepted elsewhere does not pass again here.
ACCEPTED = frozenset({"duplicate", "capacity", "confidence"})
MASKED = "a secret was masked"
FILE = "file"  # the category of registers that keep what documents hold besides memories


class Note(Struct, frozen=True, kw_only=True):
    """Something that is not as the documents have it: where it stands, and why."""

    place: str
    reason: str


class Imported(Struct, frozen=True, kw_only=True):
    """What an import did; `changed`, `left_out` and `notes` are everything that is not as the files have it.

    `counts` says what came in by kind (`episode`, `fact`, `session`, `sandbox` …), `revised` how many
    memories got a new revision. `changed` names what the gate masked, `left_out` what stayed outside,
    `files` what nobody knows and is kept as it is.
    """

    format: str
    version: int
    account: str
    counts: Mapping[str, int] = field(default_factory=dict)
    revised: int = 0
    unchanged: int = 0
    changed: tuple[Note, ...] = ()
    left_out: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()
    files: tuple[str, ...] = ()


class Exported(Struct, frozen=True, kw_only=True):
    """What an export wrote; `left_out` counts what the format has no place for, by kind or scope."""

    format: str
    version: int
    account: str
    counts: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    files: tuple[str, ...] = ()


class Tally:
    """What an import has done so far; `imported` makes its report."""

    def __init__(self, *, left_out: Iterable[Note] = (), notes: Iterable[Note] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self.revised = self.unchanged = 0
        self.changed: list[Note] = []
        self.left_out, self.notes = list(left_out), list(notes)
        self.files: list[str] = []

    def leave_out(self, place: str, reason: str) -> None:
        """Note what stayed outside."""
        self.left_out.append(Note(place=place, reason=reason))

    def say(self, place: str, reason: str) -> None:
        """Note anything else that a person should know."""
        self.notes.append(Note(place=place, reason=reason))

    def note(self, place: str, asked: Finished | Memory | None, verdict: Verdict) -> bool:
        """Note what became of one write; whether it brought anything new."""
        if not verdict or verdict.memory is None:
            self.leave_out(place, f"{verdict.check or verdict.outcome}: {verdict.detail}")
            return False
        is_memory = not is_kept(verdict.memory)
        if verdict.outcome == "unchanged":
            self.unchanged += is_memory
            return False
        if verdict.outcome == "superseding":
            self.revised += is_memory
        else:
            self.counts[verdict.memory.kind] += is_memory
        if verdict.outcome != "merged" and _is_masked(asked, verdict.memory):
            self.changed.append(Note(place=place, reason=MASKED))
        return True

    def write(
        self,
        account: Account,
        format_: str,
        rows: Sequence[tuple[str, Finished]],
        *,
        base: int | None = None,
        closes: str | None = None,
        scope: str | None = None,
    ) -> bool:
        """Write what has a place in the files through the gate, in one version; whether any of it was new."""
        verdicts = account.intake.write_many(
            [write for _, write in rows],
            cause=f"import {format_}",
            base=base,
            skip=ACCEPTED,
            closes=closes,
            scope=scope,
        )
        is_new = [self.note(*row, verdict) for row, verdict in zip(rows, verdicts, strict=True)]
        return any(is_new)

    def imported(self, account: Account, format_: str, user: str | None = None) -> Imported:
        """The report; `user` is whose documents they are, if the account is called otherwise."""
        told: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in vars(self).items()
        }
        told["counts"] = dict(+self.counts)
        return Imported(format=format_, version=account.version, account=user or account.name, **told)


def is_kept(memory: Memory) -> bool:
    """Whether it is no memory, but what documents hold besides: a register `file` without a text."""
    return (memory.kind, memory.category, memory.text) == ("register", FILE, "")


def _is_masked(asked: Finished | Memory | None, kept: Memory) -> bool:
    """Whether the gate put something else in place of a secret."""
    match asked:
        case (Memory() as memory) | Wrote(memory=memory) | Revised(wanted=memory):
            return (kept.text, kept.turns, kept.data) != (memory.text, memory.turns, memory.data)
        case SetState(data=data):
            return kept.data != data
        case _:
            return False
