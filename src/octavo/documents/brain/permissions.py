"""What a robot may do: an action against approved guardrails and sandbox rules; explicit denial wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

MAX_ACTIONS = 100  # of one behaviour, unless the rules say otherwise


class Denial(Struct, frozen=True, kw_only=True):
    """Why an action may not be done: which rule, and in words."""

    rule: str
    detail: str


def check(action: str, place: int, *files: Mapping[str, Any] | None) -> Denial | None:
    """The denial of an action at its place in a behaviour by any of the rule files, or None."""
    command, _, rest = action.partition(" ")
    for rules in (file for file in files if file):
        if command in _names(rules, "deny") or action in _names(rules, "deny"):
            return Denial(rule="deny", detail=f"{action} is denied by a guardrail")
        allowed = _names(rules, "actuators")
        if allowed and command not in allowed:
            return Denial(rule="actuators", detail=f"{command} is not among the allowed actuators")
        if command in _names(rules, "sensors_denied"):
            return Denial(rule="sensors_denied", detail=f"{command} reads a denied sensor")
        limit = rules.get("max_speed")
        if command == "speed" and isinstance(limit, int | float) and _number(rest) > limit:
            return Denial(rule="max_speed", detail=f"{action} is above the limit of {limit:g}")
    most = min((int(f["max_actions"]) for f in files if f and "max_actions" in f), default=MAX_ACTIONS)
    if place >= most:
        return Denial(rule="max_actions", detail=f"more than {most} actions")
    return None


def _names(rules: Mapping[str, Any], name: str) -> Sequence[str]:
    listed = rules.get(name)
    return [str(item) for item in listed] if isinstance(listed, list | tuple) else []


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("inf")  # a speed nobody can read is no safe one
