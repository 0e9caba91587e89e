"""ChatGPT's export, `conversations.json`: every conversation a session, along the branch last shown."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
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

FORMAT = "chatgpt"
_SPEAKERS = ("user", "assistant")


def import_(account: Account, path: Path, progress: Progress | None = None) -> Imported:
    """Take in the conversations of an export, the file or its unpacked folder, oldest first."""
    exported = objects_in(read_export(path, "conversations.json"), path)
    ordered = sorted(exported, key=lambda one: time_of(one.get("create_time")))
    return take_conversations(account, FORMAT, [_conversation(one) for one in ordered], progress)


def _conversation(exported: Mapping[str, Any]) -> Conversation:
    began = time_of(exported.get("create_time"))
    turns: list[Turn] = []
    for message in _branch(exported):
        text = _text(message)
        author = message.get("author")
        speaker = author.get("role") if isinstance(author, Mapping) else None
        if text and speaker in _SPEAKERS and not _is_hidden(message):
            said = time_of(message.get("create_time"), turns[-1].at if turns else began)
            turns.append(_turn(message, speaker, text, said, len(turns)))
    id_ = exported.get("conversation_id") or exported.get("id") or f"{began.isoformat()}"
    return Conversation(id=str(id_), title=str(exported.get("title") or ""), turns=tuple(turns))


def _turn(message: Mapping[str, Any], speaker: str, text: str, said: datetime, number: int) -> Turn:
    return Turn(speaker=speaker, text=text, at=said, data={"id": str(message.get("id") or number)})


def _branch(exported: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The messages from the first to the current node; siblings are edits that were left behind."""
    mapping = exported.get("mapping")
    nodes = mapping if isinstance(mapping, Mapping) else {}
    here: Any = exported.get("current_node") or next(reversed(nodes), None)
    messages, seen = [], set()
    while isinstance(here, str) and here in nodes and here not in seen:
        seen.add(here)
        node = nodes[here] if isinstance(nodes[here], Mapping) else {}
        if isinstance(node.get("message"), Mapping):
            messages.append(node["message"])
        here = node.get("parent")
    return messages[::-1]


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    parts = content.get("parts") if isinstance(content, Mapping) else None
    texts = [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
    return "\n".join(text for text in texts if text.strip())


def _is_hidden(message: Mapping[str, Any]) -> bool:
    metadata = message.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("is_visually_hidden_from_conversation"))
