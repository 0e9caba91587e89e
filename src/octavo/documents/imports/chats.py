"""Exports of chats, `conversations.json` of ChatGPT and of Claude: every conversation a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from octavo.documents.imports.taking import objects_in, read_export, take_conversations, time_of
from octavo.documents.transfer import Imported
from octavo.domain.memory import Turn
from octavo.engine.account import Account
from octavo.storage.projections import Progress

Said = tuple[Any, Any, str, Any]  # a message's foreign id, who said it, what, and when
_SPEAKERS = {"user": "user", "human": "user", "assistant": "assistant"}


def import_chatgpt(account: Account, path: Path, progress: Progress | None = None) -> Imported:
    """Take in ChatGPT's conversations, the file or its unpacked folder, along the branches last shown."""
    return _import(account, "chatgpt", path, progress, "create_time", _chatgpt_messages)


def import_claude(account: Account, path: Path, progress: Progress | None = None) -> Imported:
    """Take in Claude's conversations, the file or its unpacked folder."""
    return _import(account, "claude", path, progress, "created_at", _claude_messages)


def _import(
    account: Account,
    format_: str,
    path: Path,
    progress: Progress | None,
    began: str,
    messages: Callable[[Mapping[str, Any]], Iterator[Said]],
) -> Imported:
    """Take in what an export holds, oldest first; `began` names the field of a conversation's time."""
    exported = objects_in(read_export(path, "conversations.json"), path)
    talks = []
    for one in sorted(exported, key=lambda one: time_of(one.get(began))):
        start = time_of(one.get(began))
        id_ = one.get("conversation_id") or one.get("uuid") or one.get("id") or start.isoformat()
        turns: list[Turn] = []
        for number, (own, speaker, text, at) in enumerate(messages(one)):
            if text and speaker in _SPEAKERS:
                said = time_of(at, turns[-1].at if turns else start)
                data = {"id": str(own or number)}
                turns.append(Turn(speaker=_SPEAKERS[speaker], text=text, at=said, data=data))
        talks.append((str(id_), str(one.get("title") or one.get("name") or ""), turns))
    return take_conversations(account, format_, talks, progress)


def _chatgpt_messages(exported: Mapping[str, Any]) -> Iterator[Said]:
    """The messages from the first to the current node; siblings are edits that were left behind."""
    nodes = _mapping(exported.get("mapping"))
    here: Any = exported.get("current_node") or next(reversed(list(nodes)), None)
    branch: dict[str, Mapping[str, Any]] = {}
    while isinstance(here, str) and here in nodes and here not in branch:
        branch[here] = _mapping(_mapping(nodes[here]).get("message"))
        here = _mapping(nodes[here]).get("parent")
    for message in reversed(branch.values()):
        if message and not _mapping(message.get("metadata")).get("is_visually_hidden_from_conversation"):
            parts = _mapping(message.get("content")).get("parts")
            speaker = _mapping(message.get("author")).get("role")
            yield message.get("id"), speaker, _joined(parts), message.get("create_time")


def _claude_messages(exported: Mapping[str, Any]) -> Iterator[Said]:
    """The messages in their order: the blocks of text, else the plain text of older exports."""
    messages = exported.get("chat_messages")
    for message in map(_mapping, messages if isinstance(messages, list) else []):
        content = message.get("content")
        blocks = map(_mapping, content if isinstance(content, list) else [])
        text = _joined([block.get("text") for block in blocks if block.get("type") == "text"])
        text = text or _joined([message.get("text")]).strip()
        yield message.get("uuid"), message.get("sender"), text, message.get("created_at")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _joined(parts: Any) -> str:
    texts = [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
    return "\n".join(text for text in texts if text.strip())
