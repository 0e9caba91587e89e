"""An open account: everything that can be asked of it and done to it, from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Unpack

from octavo.domain.names import ALIAS
from octavo.domain.orders import ENDED
from octavo.domain.ports import Formats, Progress
from octavo.domain.verdicts import Verdict
from octavo.engine import copies
from octavo.engine.fields import OPTION, Changes, Count, Fields, Key, MemoryId, Name, Override
from octavo.engine.intake import Intake
from octavo.engine.keeper import Keeper
from octavo.engine.review import Curator
from octavo.engine.spine import without_gc
from octavo.engine.surface import public
from octavo.engine.versions import Versions
from octavo.engine.writing import candidates_of
from octavo.errors import BadInput, NotFound, Unavailable

Items = Iterable[Mapping[str, Any]]
Revised = Annotated[Count | None, "Only if this is still its revision."]


@public
class Account(Versions, Curator, Keeper):
    """A handle on one account, for one actor, within one scope or (scope=None) all of them."""

    @cached_property
    def intake(self) -> Intake[Account]:
        """How documents and doors bring in what is finished; nothing that a user needs."""
        return Intake(self, self._writer, self._worker.wake)

    def remember(
        self,
        text: Annotated[str, "What to remember; - reads standard input."],
        *,
        scope: str | None = None,
        key: Key = None,
        **fields: Unpack[Fields],
    ) -> Verdict:
        """Write one memory, a version of its own; returns the final verdict.

        `fields.Fields` says what it may have. `key` makes a retry safe: within a scope the same key
        never writes twice.
        """
        self._spine.must_write()
        writer = self._writer(scope)
        return self._write([writer.checked(writer.candidate(text, key=key, **fields))], "remember")[0]

    def remember_many(
        self,
        items: Annotated[Items, "JSON objects with text, kind …: one a line or an array; a file, or -."],
        *,
        progress: Progress | None = None,
    ) -> list[Verdict]:
        """Write several memories in one version; a verdict for each, in order."""
        self._spine.must_write()
        with without_gc():
            own = list(candidates_of(self._writer, items))
            writes = [writer.checked(wrote) for writer, wrote in own]
            return self._write(writes, "remember", progress=progress)

    def alias(
        self,
        name: Annotated[Name, "A name that people say."],
        means: Annotated[Name, "The speaker it means."],
        *,
        scope: str | None = None,
    ) -> Verdict:
        """Say whom a name means ("Kate" means "Emi"), for questions from then on.

        It is a register of its own: saying it again for the same name replaces it, forgetting it ends it.
        """
        if name.strip().casefold() == means.strip().casefold():
            raise BadInput(f"{name.strip()!r} is no other name", hint="say another name that they go by")
        return self.remember(
            f"{name.strip()} is another name for {means.strip()}",
            kind="register",
            topic=f"alias/{name.strip().casefold()}",
            category=ALIAS,
            data={"name": name.strip(), "means": means.strip()},
            scope=scope,
        )

    def end_order(
        self,
        id_: Annotated[str, "The id of the memory in which it was asked for."],
        turn: Annotated[int | None, OPTION, "Only what was asked for in this turn."] = None,
    ) -> list[Verdict]:
        """End what the user asked for in a memory, which itself stays. Only a human actor may.

        It holds again when it is said again, or when the register that ends it is forgotten.
        """
        self._must_be_human("end an order")
        ended = [order for order in self._orders() if order.memory == id_ and turn in (None, order.turn)]
        if not ended:
            raise NotFound(
                f"nothing that the user asked for in {id_} holds", hint="`octavo orders` lists what does"
            )
        return [
            self.remember(
                "",
                kind="register",
                topic=f"{ENDED}/{order.key}",
                category=ENDED,
                data={"order": order.key, "memory": order.memory},
                scope=order.scope,
            )
            for order in ended
        ]

    def revise(
        self, id_: MemoryId, *, override: Override = None, rev: Revised = None, **changes: Unpack[Changes]
    ) -> Verdict:
        """Give a memory a new revision; the old one stays in its history.

        `fields.Changes` says what may change. `rev` insists on the one it replaces.
        """
        outcome = self._writer(None).revision(self.get(id_), id_, override, **changes)
        return self._write([outcome], "revise", revs={id_: rev})[0]

    def forget(self, *ids: str, rev: Revised = None) -> list[Verdict]:
        """End memories by tombstones; their history stays. `rev` insists on the revision that ends."""
        if not ids:
            raise BadInput("forget what?", hint="name at least one memory's id")
        writer = self._writer(None)
        return self._write([writer.end(id_) for id_ in ids], "forget", revs=dict.fromkeys(ids, rev))

    def export(
        self,
        path: Annotated[str | Path, "The file or folder to write."],
        *,
        format: str = "msp",  # noqa: A002  # the glossary's word
        success: Annotated[
            bool | None, "Of a robot's episodes (rlds, minari), those that reached the goal."
        ] = None,
        max_denials: Annotated[Count | None, "Of these, those denied at most so often."] = None,
        min_reward: Annotated[float | None, "Of these, those that earned at least this."] = None,
        tags: Annotated[Sequence[str] | None, "Of these, those with this tag; may be repeated."] = None,
    ) -> Any:
        """Write the account as the files of another system (msp, consciousness, vault …).

        Of a robot's episodes (rlds, minari) those with such an end, denials, reward or tags may be chosen.
        """
        self._must_be_owner("export")
        said = {"success": success, "max_denials": max_denials, "min_reward": min_reward, "tags": tags}
        chosen = {name: value for name, value in said.items() if value is not None}
        copies.must_lie_apart(self._spine, path)
        copies.note(self._spine, path)
        done = self._formats().export_account(self, path, format, **chosen)
        copies.note(self._spine, path, written=copies.written_at(path, done))
        return done

    def import_(
        self,
        path: str | Path,
        *,
        format: str | None = None,  # noqa: A002  # likewise
        progress: Progress | None = None,
    ) -> Any:
        """Read the files of another system, through the gate; the result lists every change.

        Without a format it is the one that they have the shape of.
        """
        with self.intake.importing():
            return self._formats().import_account(self, path, format, progress)

    def _formats(self) -> Formats:
        if self.formats is None:
            raise Unavailable("this handle knows no file formats", hint="open the account by octavo.open")
        return self.formats
