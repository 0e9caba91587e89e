"""An OpenAI agent's conversation in an account: `OctavoSession("id", account)` wherever a `Session` goes.

Every item is an episode: recalled in later conversations, kept in the history when it is popped or cleared.
A secret in an item is masked, as in every episode.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from octavo.documents.imports.records import words_of
from octavo.domain.buffer import Wrote
from octavo.domain.memory import SHARED, Memory, Turn, transcript
from octavo.engine.account import Account
from octavo.engine.fields import plain_json
from octavo.errors import BadInput, Unavailable

try:
    from agents.items import TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
except ImportError as error:
    hint = "pip install 'octavo[openai-agents]'"
    raise Unavailable("the session needs openai-agents", hint=hint) from error

_OWN = "openai-agents"


class OctavoSession(SessionABC):
    """One conversation's items, in their order, as episodes of an account in one scope."""

    def __init__(
        self, session_id: str, account: Account, *, session_settings: SessionSettings | None = None
    ) -> None:
        if not isinstance(session_id, str) or not session_id or len(session_id) > 500:
            raise BadInput(f"session id {session_id!r:.80} cannot be used", hint="use at most 500 characters")
        self.session_id = session_id
        self.account = account
        self.session_settings = session_settings or SessionSettings()
        self._tag = f"session:{hashlib.sha256(session_id.encode('utf-8', 'replace')).hexdigest()[:32]}"
        self._scope = account.scope or SHARED
        self._lock = threading.Lock()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in their order; with a limit the latest of them."""
        most = limit if limit is not None or self.session_settings is None else self.session_settings.limit
        items = [episode.data[_OWN]["item"] for episode in await asyncio.to_thread(self._episodes)]
        return items if most is None or most < 0 else items[len(items) - min(most, len(items)) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items in one version."""
        if items:
            await asyncio.to_thread(self._add, items)

    async def pop_item(self) -> TResponseInputItem | None:
        """End the latest item and return it."""
        return next(iter(await asyncio.to_thread(self._end, slice(-1, None))), None)

    async def clear_session(self) -> None:
        """End all items."""
        await asyncio.to_thread(self._end, slice(None))

    def _episodes(self) -> list[Memory]:
        held = self.account.memories(kind="episode", tags=[self._tag], scope=[self._scope])
        return sorted(held, key=lambda episode: (episode.data[_OWN]["number"], episode.id))

    def _add(self, items: Sequence[Any]) -> None:
        with self._lock:
            before = self._episodes()
            first = before[-1].data[_OWN]["number"] + 1 if before else 1
            wrotes = [Wrote(memory=self._episode(item, n)) for n, item in enumerate(items, start=first)]
            for verdict in self.account.intake.write_many(wrotes, cause=_OWN, whole=True, scope=self._scope):
                verdict.or_raise()

    def _end(self, which: slice) -> list[Any]:
        with self._lock:
            ended = self._episodes()[which]
            for verdict in self.account.forget(*(episode.id for episode in ended)) if ended else ():
                verdict.or_raise()
            return [episode.data[_OWN]["item"] for episode in ended]

    def _episode(self, item: Any, number: int) -> Memory:
        if not isinstance(item, Mapping):
            raise BadInput(f"an item is {type(item).__name__}, not an object")
        own = {"item": plain_json(item), "session": self.session_id, "number": number}
        turns = (Turn(speaker=str(item.get("role") or item.get("type") or "agent")[:100], text=_said(item)),)
        category = None if item.get("role") else "event"  # a call of a tool is no conversation
        at, text, tags, data = datetime.now(UTC), transcript(turns), (self._tag,), {_OWN: own}
        return Memory(
            id="", kind="episode", text=text, category=category, tags=tags, turns=turns, at=at, data=data
        )


def _said(item: Mapping[str, Any]) -> str:
    """What an item says, for recall: its content, else what a tool was handed or gave back."""
    content = item.get("content") or item.get("output") or item.get("arguments") or item.get("name") or ""
    if isinstance(content, list):
        content = [part.get("text", "") if isinstance(part, Mapping) else part for part in content]
    return "\n".join(words_of(content)) or str(item.get("type") or "item")
