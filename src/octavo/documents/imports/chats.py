"""Exports of chats, those of ChatGPT and of Claude: every conversation a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from octavo.documents.imports.taking import Item, id_of, read_export, take, time_of
from octavo.documents.transfer import Imported
from octavo.domain.memory import SHARED, Memory, Turn, transcript
from octavo.engine.account import Account
from octavo.storage.projections import Progress

# A message: its foreign id, who said it, what, when, and how many pictures and files came with it.
Said = tuple[Any, Any, str, Any, int]
_FILES = "conversations*.json"  # large accounts get theirs in several numbered files
_SPEAKERS = {"user": "user", "human": "user", "assistant": "assistant"}
_UNTOLD = "a picture or a file came with it, which is not taken in"
_PAIR = 2


def import_chatgpt(account: Account, path: Path, progress: Progress | None = None) -> Imported:
    """Take in ChatGPT's conversations, along the branches last shown: the archive, its folder or a file."""
    return _import(account, "chatgpt", path, progress, _chatgpt_messages)


def import_claude(account: Account, path: Path, progress: Progress | None = None) -> Imported:
    """Take in Claude's conversations: the archive, its folder or a file."""
    return _import(account, "claude", path, progress, _claude_messages)


def _import(
    account: Account,
    format_: str,
    path: Path,
    progress: Progress | None,
    messages: Callable[[Mapping[str, Any]], Iterator[Said]],
) -> Imported:
    """Take in what an export holds, oldest first; two speakers' turns make an episode."""
    groups = []
    exported = ((one.get("create_time") or one.get("created_at"), one) for one in read_export(path, _FILES))
    for start, one in sorted(((time_of(began), one) for began, one in exported), key=lambda pair: pair[0]):
        id_ = str(one.get("conversation_id") or one.get("uuid") or one.get("id") or start.isoformat())
        title = str(one.get("title") or one.get("name") or "")
        turns: list[Turn] = []
        items: list[Item] = []
        for number, (foreign, speaker, text, at, files) in enumerate(messages(one)):
            own = str(foreign or number)
            if text and speaker in _SPEAKERS:
                said = time_of(at, turns[-1].at if turns else start)
                turns.append(Turn(speaker=_SPEAKERS[speaker], text=text, at=said, data={"id": own}))
            items += [(f"{title or id_}, {own}", _UNTOLD)] * (files > 0)
        groups.append(_session(account, format_, id_, title, turns, items))
    return take(account, format_, groups, progress)


def _session(
    account: Account, format_: str, id_: str, title: str, turns: Sequence[Turn], items: list[Item]
) -> tuple[str, list[Item]]:
    """A conversation's session, and its episodes of what is not here yet."""
    tag = f"{format_}:{id_of(account, format_, id_)}"
    there = account.memories(kind="episode", tags=[tag], scope=[account.scope or SHARED])
    known = {turn.data.get("id") for episode in there for turn in episode.turns}
    fresh = [turn for turn in turns if turn.data["id"] not in known]
    session = id_of(account, format_, id_, *(str(turn.data["id"]) for turn in fresh[:1]))
    items += [("", None) for _ in there]
    for pair in _paired(fresh):
        first = str(pair[0].data["id"])
        episode = Memory(
            id=id_of(account, format_, "episode", id_, first),
            kind="episode",
            text=transcript(pair),
            turns=pair,
            tags=(tag,),
            at=pair[0].at or time_of(None),
            sandbox=session,
            data={format_: {"conversation": id_, "title": title}},
        )
        items.append((f"{title or id_}, {first}", episode))
    return session, items


def _paired(turns: Iterable[Turn]) -> list[tuple[Turn, ...]]:
    """Turns two by two, where the speaker changes; a lone turn stays alone."""
    pairs: list[tuple[Turn, ...]] = []
    for turn in turns:
        last = pairs[-1] if pairs else ()
        if len(last) in (0, _PAIR) or last[-1].speaker == turn.speaker:
            pairs.append((turn,))
        else:
            pairs[-1] = (*last, turn)
    return pairs


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
            parts = _list(_mapping(message.get("content")).get("parts"))
            spoken = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
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
