"""What a person means: a line of the teaching dialogue as an intent, without a model."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from msgspec import Struct

IntentKind = Literal[
    "START_TEACHING", "DONE", "CANCEL", "LIST", "FORGET", "DESCRIBE", "MOVE", "SPEED", "INVOKE", "UNKNOWN"
]
MOVES = {
    "forward": "forward",
    "go forward": "forward",
    "move forward": "forward",
    "backward": "backward",
    "back": "backward",
    "go back": "backward",
    "left": "left",
    "turn left": "left",
    "right": "right",
    "turn right": "right",
    "stop": "stop",
    "wait": "wait",
    "look": "look",
}
_TEACH = re.compile(r"(?:teach|learn|record|remember)\s+(.+)", re.IGNORECASE)
_FORGET = re.compile(r"forget\s+(.+)", re.IGNORECASE)
_DESCRIBE = re.compile(r"(?:describe|explain|what is)\s+(.+)", re.IGNORECASE)
_RUN = re.compile(r"(?:do|run|perform|invoke)\s+(.+)", re.IGNORECASE)
_SPEED = re.compile(r"(?:set\s+)?speed\s+(?:to\s+)?(\d+(?:\.\d+)?)", re.IGNORECASE)
_WORDS: dict[str, IntentKind] = {
    "done": "DONE",
    "save": "DONE",
    "end": "DONE",
    "cancel": "CANCEL",
    "list": "LIST",
    "list behaviors": "LIST",
    "behaviors": "LIST",
}


class Intent(Struct, frozen=True, kw_only=True):
    """What a line asks for: the kind, the behaviour it names, or the action it is."""

    kind: IntentKind
    name: str = ""
    action: str = ""


def understand(line: str, known: Collection[str] = ()) -> Intent:
    """The intent of a line; the name of a known behaviour alone invokes it."""
    said = " ".join(line.split()).rstrip(".!")
    low = said.lower()
    if low in _WORDS:
        return Intent(kind=_WORDS[low])
    if plain_name(said) in known:
        return Intent(kind="INVOKE", name=plain_name(said))
    if low in MOVES:
        return Intent(kind="MOVE", action=MOVES[low])
    if speed := _SPEED.fullmatch(said):
        return Intent(kind="SPEED", action=f"speed {float(speed[1]):g}")
    for pattern, kind in _NAMED:
        if named := pattern.fullmatch(said):
            return Intent(kind=kind, name=plain_name(named[1]))
    return Intent(kind="UNKNOWN", name=plain_name(said))


def plain_name(said: str) -> str:
    """A behaviour's name as it is kept: lower-case, without quotes, one space between words."""
    return " ".join(said.strip("'\"“” ").lower().split())[:64]


_NAMED: tuple[tuple[re.Pattern[str], IntentKind], ...] = (
    (_TEACH, "START_TEACHING"),
    (_FORGET, "FORGET"),
    (_DESCRIBE, "DESCRIBE"),
    (_RUN, "INVOKE"),
)
