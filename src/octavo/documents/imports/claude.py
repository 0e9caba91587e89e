"""Claude's export, `conversations.json` with `chat_messages`: every conversation a session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from octavo.documents.imports.taking import (
    Conversation,
    objects_in,
    read_export,
    take_conversations,
    time_of,
)
from octavo.documents.transfer import Imported
from octavo.domain.memory import Turn
from octavo.engine.account import Account
from octavo.storage.projections import Progress

FORMAT = "claude"
_SPEAKERS = {"human": "user", "assistant": "assistant"}


def import_(account: Account, path: Path, progress: Progress | None = None) -> Imported:
    """Take in the conversations of an export, the file or its unpacked folder, oldest first."""
    exported = objects_in(read_export(path, "conversations.json"), path)
    ordered = sorted(exported, key=lambda one: time_of(one.get("created_at")))
    return take_conversations(account, FORMAT, [_conversation(one) for one in ordered], progress)


def _conversation(exported: Mapping[str, Any]) -> Conversation:
    messages = exported.get("chat_messages")
    began = time_of(exported.get("created_at"))
    turns: list[Turn] = []
    for number, message in enumerate(messages if isinstance(messages, list) else []):
        text = _text(message) if isinstance(message, Mapping) else ""
        if text and message.get("sender") in _SPEAKERS:
            said = time_of(message.get("created_at"), turns[-1].at if turns else began)
            id_ = str(message.get("uuid") or number)
            turns.append(Turn(speaker=_SPEAKERS[message["sender"]], text=text, at=said, data={"id": id_}))
    id_ = str(exported.get("uuid") or began.isoformat())
    return Conversation(id=id_, title=str(exported.get("name") or ""), turns=tuple(turns))


def _text(message: Mapping[str, Any]) -> str:
    """What was said: the blocks of text, else the plain text of older exports."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [block["text"] for block in blocks if isinstance(block, Mapping) and _is_text(block)]
    said = "\n".join(text for text in texts if text.strip())
    plain = message.get("text")
    return said or (plain.strip() if isinstance(plain, str) else "")


def _is_text(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)
