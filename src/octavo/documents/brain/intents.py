"""What a person means: a line of the teaching dialogue as an intent, without a model."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

IntentKind = Literal[
    "START_TEACHING", "DONE", "CANCEL", "LIST", "FORGET", "DESCRIBE", "MOVE", "SPEED", "INVOKE", "UNKNOWN"
]
_SAID = {
    "forward": ("forward", "go forward", "move forward"),
    "backward": ("backward", "back", "go back"),
    "left": ("left", "turn left"),
    "right": ("right", "turn right"),
    **{word: (word,) for word in ("stop", "wait", "look")},
}
MOVES = {said: action for action, words in _SAID.items() for said in words}
_SPEED = re.compile(r"(?:set\s+)?speed\s+(?:to\s+)?(\d+(?:\.\d+)?)", re.IGNORECASE)
_NAMED: tuple[tuple[str, IntentKind], ...] = (
    ("teach|learn|record|remember", "START_TEACHING"),
    ("forget", "FORGET"),
    ("describe|explain|what is", "DESCRIBE"),
    ("do|run|perform|invoke", "INVOKE"),
)
_WORDS: dict[str, IntentKind] = {
    **dict.fromkeys(("done", "save", "end"), "DONE"),
    **dict.fromkeys(("list", "list behaviors", "behaviors"), "LIST"),
    "cancel": "CANCEL",
}


def understand(line: str, known: Collection[str] = ()) -> tuple[IntentKind, str]:
    """What a line asks for, and the behaviour it names or the action it is.

    The name of a known behaviour alone invokes it.
    """
    said = " ".join(line.split()).rstrip(".!")
    low, name = said.lower(), plain_name(said)
    if low in _WORDS:
        return _WORDS[low], ""
    if name in known:
        return "INVOKE", name
    if low in MOVES:
        return "MOVE", MOVES[low]
    if speed := _SPEED.fullmatch(said):
        return "SPEED", f"speed {float(speed[1]):g}"
    for words, kind in _NAMED:
        if named := re.fullmatch(rf"(?:{words})\s+(.+)", said, re.IGNORECASE):
            return kind, plain_name(named[1])
    return "UNKNOWN", name


def plain_name(said: str) -> str:
    """A behaviour's name as it is kept: lower-case, without quotes, one space between words."""
    return " ".join(said.strip("'\"“” ").lower().split())[:64]
