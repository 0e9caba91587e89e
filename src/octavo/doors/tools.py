"""The ten tools that a model gets: rows of tools.toml over the operations, with slim views of the answers.

A recall answers with id, text, time, kind and score; `memory_get` and `memory_history` tell the rest. What is
for people (approve, restore, redact) is no tool.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import replace

from octavo.domain.brief import Brief
from octavo.domain.memory import Memory
from octavo.domain.orders import Order
from octavo.domain.privacy import tellable
from octavo.domain.verdicts import Verdict
from octavo.doors import conversations
from octavo.doors.forms import Form
from octavo.doors.operations import BY_NAME, Operation, call
from octavo.doors.operations.values import values_of
from octavo.doors.plain import CALLED, advised, plain, unsaid
from octavo.engine.account import Account
from octavo.engine.fields import Name
from octavo.engine.reading import Revision
from octavo.engine.surface import fitted
from octavo.errors import BadInput, OctavoError

_SHOWN, _WHOLE = 1_200, 20_000  # characters of a text in a list and alone
_ROWS = tomllib.loads(Path(__file__).with_name("tools.toml").read_text("utf-8"))
INSTRUCTIONS: str = _ROWS.pop("instructions")
_MOST: dict[str, int] = _ROWS.pop("most")


class Tool:
    """A row: `act` does on an open account what its operation does, with fewer parameters, and tells less."""

    def __init__(self, name: str, row: dict[str, Any]) -> None:
        self.name, self.operation = name, BY_NAME[row["operation"]]
        self._told, self._always = (row["title"], row["description"]), row.get("always", {})
        own = _OWN.get(name)
        self._act = own or partial(_usual, operation=self.operation, names=row.get("tells", {}))
        given = {p.name: p for p in self.operation.parameters}
        taken = [given[each] for each in row.get("takes", "").split()]
        taken += Operation(name="", function=own, section="", example="").parameters if own else ()
        bounds = {"most": _MOST, "default": self._always}
        self.parameters = tuple(
            replace(p, **{mark: by[p.name] for mark, by in bounds.items() if p.name in by}) for p in taken
        )
        self._form = Form(self.parameters)

    @property
    def listed(self) -> dict[str, Any]:
        """It as the protocol has it, with all four annotations; the world it changes is one account."""
        is_read, ends = not self.operation.writes, self.operation.name == "forget"
        hints = {"readOnlyHint": is_read, "destructiveHint": ends, "idempotentHint": is_read or ends}
        (title, description), schema = self._told, self._form.schema
        annotations = {"title": title, "openWorldHint": False, **hints}
        told = {"name": self.name, "title": title, "description": description}
        return {**told, "inputSchema": schema, "annotations": annotations}

    def __call__(self, account: Account, said: Mapping[str, Any]) -> Any:
        """Do it with what a model said, if need be in quotes or without brackets; the answer is JSON."""
        told = self._form.read({name: v for name, v in said.items() if v is not None}, self.name)
        return self._act(account, **{**self._always, **values_of(self.parameters, told)})


def advice(error: OctavoError) -> str:
    """What went wrong and what to do next, in the words of the tools."""
    return tellable(f"{error.message}. Next: {_in_tools(advised(error, 'tool'))}")


def _in_tools(text: str) -> str:
    """An advice that names tools where it named commands; what is no tool is for people."""
    tools = {one.operation.name.replace("_", "-"): one.name for one in reversed(TOOLS)}
    return CALLED.sub(lambda said: tools.get(said[1], f"a person can run {said[0]}"), text)


def slim(value: Any) -> Any:
    """A value as a model reads it: a memory's text up to a bound, and no more beside it than is needed."""
    match value:
        case Memory():
            at, cut = f"{value.at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}", len(value.text) > _SHOWN
            told = {"id": value.id, "text": value.text[:_SHOWN], "at": at, "kind": value.kind}
            return told | ({"cut": True} if cut else {})
        case {"memory": Memory() as memory, "text": str(text), "score": score, "replaced": later}:
            newer = {"replaced_by": later.newer} if later and later.is_certain else {}
            return slim(replace(memory, text=text)) | {"score": round(score, 3)} | newer
        case Revision(memory=memory):
            came = {"rev": memory.rev, "version": value.version, "by": memory.actor}
            return slim(memory) | came | ({"gone": True} if memory.gone else {})
        case Verdict(memory=memory):
            id_, next_ = memory.id if memory and value else None, _in_tools(value.advice)
            parts = {"outcome": value.outcome, "id": id_, "proposal": value.proposal, "check": value.check}
            return {n: one for n, one in {**parts, "why": value.detail, "next": next_}.items() if one}
        case Brief():
            return {"text": value.text or unsaid(value)}
        case Order():
            return value.text[:_SHOWN]
        case list() | tuple():
            return [slim(one) for one in value]
        case _:
            return plain(value)


def _usual(account: Account, *, operation: Operation, names: Mapping[str, str], **values: Any) -> Any:
    """The answer, slim; of one in parts those that have a name for a model, and an empty tuple is no part."""
    answer = call(operation, account, values)
    if not names:
        return slim(answer)
    return {name: slim(answer[own]) for own, name in names.items() if answer[own] not in (None, ())}


def _get(account: Account, **values: Any) -> Any:
    whole = plain(call(BY_NAME["get"], account, values))
    whole["text"] = whole["text"][:_WHOLE]
    hidden = {"turns", "data", "gone"} if whole["turns"] else {"turns", "gone"}
    return {n: v for n, v in whole.items() if n not in hidden and v not in (None, "", [], {})}


def _forget(account: Account, *, ids: Annotated[list[str], "The memories' ids."]) -> Any:
    for id_ in ids:
        call(BY_NAME["get"], account, {"id": id_})  # one that is not there is said before anything ends
    verdicts = call(BY_NAME["forget"], account, {"ids": ids})["verdicts"]
    return {"forgotten": [{"id": id_, **slim(v)} for id_, v in zip(ids, verdicts, strict=True)]}


@fitted
def _turn(
    account: Account,
    *,
    conversation: Annotated[Name, "A name of this conversation, the same for all its turns."],
    over: Annotated[bool, "The conversation is over: make it part of the memory now."] = False,
    **values: Any,
) -> Any:
    name = conversations.MCP + conversation
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
        case [_, *_], _ if evidence or topic:
            pass  # neither has them, and what is said must count
        case [id_], _:
            return slim(call(BY_NAME["promote"], account, {"id": id_, "text": text}))
        case [first, second], _:
            asked = call(BY_NAME["propose_merge"], account, {"first": first, "second": second, "text": text})
            return {"outcome": "proposed", **asked}
        case [], str() if evidence:
            own = {"text": text, "kind": "canon", "topic": topic, "links": {"evidence": evidence}}
            return slim(call(BY_NAME["remember"], account, {n: value for n, value in own.items() if value}))
    hint = (
        "name one id to make it canon, two to merge them, or a text alone with the ids that are its evidence"
    )
    raise BadInput("memory_propose was not told what to propose", hint=hint)


def _status(account: Account) -> Any:
    counted = call(BY_NAME["stats"], account, {})
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


_OWN: dict[str, Callable[..., Any]] = {
    f"memory{act.__name__}": act for act in (_get, _forget, _turn, _propose, _status)
}
TOOLS = tuple(Tool(name, row) for name, row in _ROWS.items())
