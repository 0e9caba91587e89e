"""An operation: a row of the table that feeds the doors, and how a door has it done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from octavo.interfaces import acts
from octavo.interfaces.acts import Progress
from octavo.interfaces.parameters import AT_VERSION, BY_WORDS, IN_SANDBOX, SECOND_LOOK, Parameter, value_of
from octavo.interfaces.settings import Settings

Section = Literal[
    "accounts", "sandboxes", "memories", "recall", "review", "compression", "versions", "health"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One row of the table.

    `on` says what it needs: the folder of accounts, an account, or an open sandbox. Only one that
    `writes` may change anything; one that `indexes` may bring up to date what is derived, and does without
    where it may not write; one that `begins` may make the first account of an empty folder.
    `who` is enforced by the engine. The engine's method has the operation's name; `run` stands in its
    place where a call is not enough. `result` names what a bare value or list is. `asks` is what a person
    is asked before it is done.
    """

    name: str
    summary: str
    section: Section
    example: str
    parameters: tuple[Parameter, ...] = ()
    on: Literal["root", "account", "sandbox"] = "account"
    writes: bool = False
    indexes: bool = False
    begins: bool = False
    who: Literal["anyone", "human"] = "anyone"
    asks: str | None = None
    run: Callable[..., Any] | None = None
    result: str | None = None
    reports_progress: bool = False


def perform(
    operation: Operation, settings: Settings, given: Mapping[str, Any], progress: Progress | None = None
) -> Any:
    """Do an operation with what a door was given; what is None or absent was not said."""
    values = {p.name: value_of(p, _said(p, given)) for p in operation.parameters}
    said = {name: value for name, value in values.items() if value not in (None, []) and value is not False}
    first = next((said[p.name] for p in operation.parameters if p.positional and p.name in said), None)
    if operation.reports_progress and progress is not None:
        said["progress"] = progress
    if operation.on == "root" and operation.run is not None:
        found = operation.run(settings, **said)
    else:
        found = _on_account(operation, settings, said)
    if operation.result is None:
        return found
    return {operation.result: first if found is None else found}


def _on_account(operation: Operation, settings: Settings, said: dict[str, Any]) -> Any:
    """Open the account, and the sandbox or older version that is meant, and call what the row names.

    A sandbox has one owner at a time, so even reading one takes it up and opens the account to write.
    """
    acts_inside = operation.on == "sandbox" or IN_SANDBOX in operation.parameters
    sandbox = said.pop("sandbox", None) if acts_inside else None
    when = said.pop("at", None) if AT_VERSION in operation.parameters else None
    way = acts.Way(
        writes=operation.writes or sandbox is not None,
        indexes=operation.indexes,
        begins=operation.begins,
        accept_loss=said.get("accept", False),
        words=said.pop("words", False) if BY_WORDS in operation.parameters else False,
        rerank=said.pop("rerank", False) if SECOND_LOOK in operation.parameters else False,
    )
    with (
        acts.opened(settings, way) as account,
        acts.target(account, sandbox, when) as target,
    ):
        if operation.run is not None:
            return operation.run(target, **said)
        ordered = [said.pop(p.name) for p in operation.parameters if p.positional and p.name in said]
        return getattr(target, operation.name)(*ordered, **said)


def _said(parameter: Parameter, given: Mapping[str, Any]) -> Any:
    value = given.get(parameter.name)
    return parameter.default if value is None else value
