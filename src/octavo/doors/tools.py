"""The ten tools that a model gets: operations of the table with few parameters and slim answers.

A recall answers with id, text, time, kind and score; `memory_get` and `memory_history` tell the rest. What is
for people (approve, restore, redact) is no tool.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from octavo.domain.memory import Memory
from octavo.domain.privacy import tellable
from octavo.domain.records import shape_of
from octavo.domain.verdicts import Verdict
from octavo.doors import conversations
from octavo.doors.operations import BY_NAME, Operation, Parameter, call
from octavo.doors.operations.values import values_of
from octavo.doors.plain import CALLED, advised, plain
from octavo.engine.account import Account
from octavo.errors import BadInput, OctavoError

_SHOWN, _WHOLE, _LISTED = 1_200, 20_000, 20  # characters of a text in a list and alone; memories of a list
# A list must leave room for the conversation.
_BOUNDS: dict[str, dict[str, Any]] = {
    "k": {"most": 60},
    "limit": {"most": 100, "default": _LISTED},
    "budget": {"most": 8_000},
}
_TYPED = re.compile("; (may be repeated|- reads standard input)")  # what is said of a command line alone


class Tool(Struct, frozen=True, kw_only=True):
    """A tool: `act` does on an open account what an operation does, with fewer parameters, and tells less."""

    name: str
    title: str
    description: str
    operation: Operation
    act: Callable[..., Any]
    parameters: tuple[Parameter, ...]

    @property
    def listed(self) -> dict[str, Any]:
        """It as the protocol has it, with all four annotations; the world it changes is one account."""
        is_read, ends = not self.operation.writes, self.operation.name == "forget"
        hints = {"readOnlyHint": is_read, "destructiveHint": ends, "idempotentHint": is_read or ends}
        told = {"name": self.name, "title": self.title, "description": self.description}
        annotations = {"title": self.title, "openWorldHint": False, **hints}
        return {**told, "inputSchema": self.schema, "annotations": annotations}

    @property
    def schema(self) -> dict[str, Any]:
        """What it takes, as a JSON schema; what a model can do without is left out."""
        parts = {p.name: msgspec.json.schema(_typed(p)) for p in self.parameters}
        for p in self.parameters:
            parts[p.name] |= {"default": p.default} if p.default not in (None, False) else {}
            if p.choices:
                parts[p.name].get("items", parts[p.name])["type"] = "string"
        needed = [p.name for p in self.parameters if p.is_required]
        return {"type": "object", "properties": parts, "required": needed, "additionalProperties": False}

    def __call__(self, account: Account, said: Mapping[str, Any]) -> Any:
        """Do it with what a model said, if need be in quotes or without brackets; the answer is JSON."""
        known = {p.name: p for p in self.parameters}
        told = {}
        for name, value in said.items():
            lone = [value] if name in known and known[name].is_many and isinstance(value, str) else value
            try:
                if lone is not None:
                    told[name] = msgspec.convert(lone, shape_of(_typed(known[name])), strict=False)
            except (KeyError, msgspec.ValidationError) as error:
                fault = "is unknown" if isinstance(error, KeyError) else f"does not fit: {error}"
                hint = f"it takes {', '.join(known) or 'nothing'}"
                raise BadInput(f"{self.name}: {name[:80]} {fault}", hint=hint) from error
        return self.act(account, **values_of(self.parameters, told))


def _typed(parameter: Parameter) -> Any:
    """A parameter's type with its sentence and its bounds; times are texts, read as the table reads them."""
    is_time = parameter.type is datetime
    about = Meta(
        description=_TYPED.sub("", parameter.summary),
        ge=parameter.least,
        le=parameter.most,
        extra_json_schema={"format": "date-time"} if is_time else None,
    )
    type_ = str if is_time else parameter.type
    return Annotated[type_, about]


def advice(error: OctavoError) -> str:
    """What went wrong and what to do next, in the words of the tools."""
    return tellable(f"{error.message}. Next: {_in_tools(advised(error, 'tool'))}")


def _in_tools(text: str) -> str:
    """An advice that names tools where it named commands; what is no tool is for people."""
    tools = {one.operation.name.replace("_", "-"): one.name for one in reversed(TOOLS)}
    return CALLED.sub(lambda said: tools.get(said[1], f"a person can run {said[0]}"), text)


def _told(memory: Memory, text: str | None = None, **more: Any) -> dict[str, Any]:
    """A memory, slim; `memory_get` has the rest of a text that was cut."""
    shown, at = memory.text if text is None else text, f"{memory.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    cut = {"cut": True} if len(shown) > _SHOWN else {}
    return {"id": memory.id, "text": shown[:_SHOWN], "at": at, "kind": memory.kind, **cut, **more}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    memory = verdict.memory
    answer = {
        "outcome": verdict.outcome,
        "id": memory.id if memory and verdict else None,
        "proposal": verdict.proposal,
        "check": verdict.check,
        "why": verdict.detail,
        "next": _in_tools(verdict.advice),
    }
    return {name: value for name, value in answer.items() if value}


def _recall(account: Account, **values: Any) -> Any:
    answer = call(BY_NAME["recall"], account, values)
    hits = []
    for hit in answer["hits"]:
        later = hit["replaced"]
        more = {"replaced_by": later.newer} if later and later.is_certain else {}
        hits.append(_told(hit["memory"], hit["text"], score=round(hit["score"], 3), **more))
    orders = [order.text[:_SHOWN] for order in answer["orders"]]
    return {"hits": hits} | ({"user_asked_for": orders} if orders else {})


def _brief(account: Account, **values: Any) -> Any:
    return {"text": call(BY_NAME["brief"], account, values).text}


def _remember(account: Account, **values: Any) -> Any:
    return _verdict(call(BY_NAME["remember"], account, values))


def _get(account: Account, **values: Any) -> Any:
    whole = plain(call(BY_NAME["get"], account, values))
    whole["text"] = whole["text"][:_WHOLE]
    hidden = {"turns", "data", "gone"} if whole["turns"] else {"turns", "gone"}
    return {n: v for n, v in whole.items() if n not in hidden and v not in (None, "", [], {})}


def _list(account: Account, **values: Any) -> Any:
    page = call(BY_NAME["memories"], account, {"limit": _LISTED, "newest": True, **values})
    more = {"next": page["next"]} if page["next"] else {}
    return {"memories": [_told(memory) for memory in page["memories"]], **more}


def _history(account: Account, **values: Any) -> Any:
    told = []
    for one in call(BY_NAME["history"], account, values)["revisions"]:
        more: dict[str, Any] = {"gone": True} if one.memory.gone else {}
        told.append(_told(one.memory, rev=one.memory.rev, version=one.version, by=one.memory.actor, **more))
    return {"revisions": told}


def _forget(account: Account, **values: Any) -> Any:
    for id_ in values["ids"]:
        call(BY_NAME["get"], account, {"id": id_})  # one that is not there is said before anything ends
    verdicts = call(BY_NAME["forget"], account, values)["verdicts"]
    return {"forgotten": [{"id": id_, **_verdict(v)} for id_, v in zip(values["ids"], verdicts, strict=True)]}


def _turn(
    account: Account,
    *,
    conversation: Annotated[str, "A name of this conversation, the same for all its turns."],
    over: Annotated[bool, "The conversation is over: make it part of the memory now."] = False,
    **values: Any,
) -> Any:
    name = conversations.MCP + conversation[:80]
    with conversations.held(account, name) as sandbox:
        episode = sandbox.turn(values.pop("role"), values.pop("text"), **values)
    done = conversations.end(account, name) if over else None
    return {"episode": episode, "conversation": conversation} | ({"version": done.version} if done else {})


def _propose(
    account: Account,
    *,
    ids: Annotated[list[str] | None, "One memory to make canon, or two to make one of."] = None,
    text: Annotated[str | None, "The wording to propose."] = None,
    evidence: Annotated[
        list[str] | None, "Ids of the memories that show it; needed for a text without ids."
    ] = None,
    topic: Annotated[str | None, "Its topic; canon has one memory a topic."] = None,
) -> Any:
    match ids or [], text:
        case [id_], _:
            return _verdict(call(BY_NAME["promote"], account, {"id": id_, "text": text}))
        case [first, second], _:
            asked = call(BY_NAME["propose_merge"], account, {"first": first, "second": second, "text": text})
            return {"outcome": "proposed", **asked}
        case [], str() if evidence:
            own = {"text": text, "kind": "canon", "topic": topic, "links": {"evidence": evidence}}
            return _verdict(
                call(BY_NAME["remember"], account, {name: value for name, value in own.items() if value})
            )
    hint = "name one id to make it canon, two to merge them, or a text with the ids that are its evidence"
    raise BadInput("memory_propose was not told what to propose", hint=hint)


def _status(account: Account, **values: Any) -> Any:
    counted = call(BY_NAME["stats"], account, values)
    return {
        "account": account.name,
        "scope": account.scope,
        "actor": account.actor,
        "version": counted.version,
        "memories": counted.memories,
        "by_kind": {kind: n for kind, n in counted.by_kind.items() if n},
        "sessions": sum(counted.sessions.values()),
        "proposals": counted.proposals,
        "open_conversations": len(account.sandboxes()),
    }


_ACTS = (_recall, _brief, _remember, _get, _list, _history, _forget, _turn, _propose, _status)


def _tool(act: Callable[..., Any], operation: str, takes: str = "", **told: str) -> Tool:
    """A tool; it takes some parameters of its operation, bounded, and those of its own function."""
    of_table = {p.name: p for p in BY_NAME[operation].parameters}
    taken = [replace(of_table[each], **_BOUNDS.get(each, {})) for each in takes.split()]
    own = Operation(name=operation, function=act, section="", example="").parameters
    return Tool(operation=BY_NAME[operation], act=act, parameters=(*taken, *own), **told)


_TOLD = tomllib.loads(Path(__file__).with_name("tools.toml").read_text("utf-8"))
INSTRUCTIONS: str = _TOLD.pop("instructions")
TOOLS = tuple(_tool(act, name=f"memory{act.__name__}", **_TOLD[f"memory{act.__name__}"]) for act in _ACTS)
