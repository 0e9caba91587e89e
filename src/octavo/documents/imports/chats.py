"""Exports of chats, those of ChatGPT and of Claude: every conversation a session."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from octavo.documents.imports.taking import Group, Item, id_of, objects_in, read_export, time_of
from octavo.domain.memory import SHARED, Memory, Turn, transcript
from octavo.engine.account import Account

# A message: its foreign id, who said it, what, when, and how many pictures and files came with it.
Said = tuple[Any, Any, str, Any, int]
_FILES = "conversations*.json"  # large accounts get theirs in several numbered files
_SPEAKERS = {"user": "user", "human": "user", "assistant": "assistant"}
_UNTOLD = "a picture or a file came with it, which is not taken in"


def _sessions(
    format_: str, messages: Callable[[Mapping[str, Any]], Iterator[Said]], account: Account, path: Path
) -> list[Group]:
    """What an export holds and is not here yet, oldest first; two speakers' turns make an episode.

    The export is the archive as it was downloaded, its folder, or a file of it.
    """
    groups: list[Group] = []
    exported = [one for value, place in read_export(path, _FILES) for one in objects_in(value, place)]
    starts = [time_of(one.get("create_time") or one.get("created_at")) for one in exported]
    for start, one in sorted(zip(starts, exported, strict=True), key=lambda pair: pair[0]):
        named = one.get("conversation_id") or one.get("uuid") or one.get("id")
        id_ = str(named or hashlib.sha256(json.dumps(one, sort_keys=True).encode()).hexdigest()[:12])
        title = str(one.get("title") or one.get("name") or "")
        tag = f"{format_}:{id_of(account, format_, id_)}"
        there = account.memories(kind="episode", tags=[tag], scope=[account.scope or SHARED])
        known = {turn.data.get("id") for episode in there for turn in episode.turns}
        items, pairs, at = list[Item](), list[tuple[Turn, ...]](), start
        for number, (foreign, speaker, text, said, files) in enumerate(messages(one)):
            own = str(foreign or number)
            items += [(f"{title or id_}, {own}", _UNTOLD)] * (files > 0)
            if text and speaker in _SPEAKERS:
                at = time_of(said, at)
                if own not in known:
                    _pair(pairs, Turn(speaker=_SPEAKERS[speaker], text=text, at=at, data={"id": own}))
        firsts = [str(turns[0].data["id"]) for turns in pairs]
        session = id_of(account, format_, id_, *firsts[:1])
        items += [("", None) for _ in there]
        items += [] if items or pairs else [(title or id_, "no message was found in it")]
        told: dict[str, Any] = {"kind": "episode", "tags": (tag,), "sandbox": session}
        told["data"] = {format_: {"conversation": id_, "title": title}}
        for first, turns in zip(firsts, pairs, strict=True):
            own, at = id_of(account, format_, "episode", id_, first), turns[0].at or start
            episode = Memory(id=own, text=transcript(turns), turns=turns, at=at, **told)
            items.append((f"{title or id_}, {first}", episode))
        groups.append((session, items))
    return groups


def _pair(pairs: list[tuple[Turn, ...]], turn: Turn) -> None:
    """Put a turn beside the one before it if another spoke, else alone."""
    is_answer = bool(pairs) and len(pairs[-1]) == 1 and pairs[-1][0].speaker != turn.speaker
    before = pairs.pop() if is_answer else ()
    pairs.append((*before, turn))


def _chatgpt_messages(exported: Mapping[str, Any]) -> Iterator[Said]:
    """The messages from the first to the current node; siblings are edits that were left behind.

    What is hidden, and what the assistant says to its tools, was never said to anybody.
    """
    nodes = _mapping(exported.get("mapping"))
    parents = {id_: _mapping(node).get("parent") for id_, node in nodes.items()}
    for id_ in _branch(parents, exported.get("current_node")):
        message = _mapping(_mapping(nodes[id_]).get("message"))
        is_hidden = _mapping(message.get("metadata")).get("is_visually_hidden_from_conversation")
        if message and not is_hidden and message.get("recipient", "all") == "all":
            content = _mapping(message.get("content"))
            parts = _list(content.get("parts"))  # code that is shown has a text instead
            spoken = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
            spoken += [content.get("text")]
            files = sum(isinstance(part, Mapping) and "asset_pointer" in part for part in parts)
            speaker = _mapping(message.get("author")).get("role")
            yield message.get("id"), speaker, _joined(spoken), message.get("create_time"), files


def _claude_messages(exported: Mapping[str, Any]) -> Iterator[Said]:
    """The messages of the branch last shown: their blocks of text, else the plain text of older exports."""
    told = [_mapping(message) for message in _list(exported.get("chat_messages"))]
    messages = {str(message.get("uuid") or number): message for number, message in enumerate(told)}
    if any(message.get("parent_message_uuid") in messages for message in told):
        parents = {id_: message.get("parent_message_uuid") for id_, message in messages.items()}
        messages = {id_: messages[id_] for id_ in _branch(parents, exported.get("current_leaf_message_uuid"))}
    for message in messages.values():
        blocks = map(_mapping, _list(message.get("content")))
        text = _joined(block.get("text") for block in blocks if block.get("type") == "text")
        text = text or _joined([message.get("text")]).strip()
        files = len(_list(message.get("attachments"))) + len(_list(message.get("files")))
        yield message.get("uuid"), message.get("sender"), text, message.get("created_at"), files


def _branch(parents: Mapping[str, Any], leaf: Any) -> list[str]:
    """The ids from the root to a leaf, or to the last one if nobody says which."""
    here = leaf if isinstance(leaf, str) and leaf in parents else next(reversed(list(parents)), None)
    branch: list[str] = []
    while isinstance(here, str) and here in parents and here not in branch:
        branch.append(here)
        here = parents[here]
    return branch[::-1]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _joined(parts: Iterable[Any]) -> str:
    return "\n".join(part for part in parts if isinstance(part, str) and part.strip())


chatgpt = partial(_sessions, "chatgpt", _chatgpt_messages)
claude = partial(_sessions, "claude", _claude_messages)
