"""What a person means: a line of the teaching dialogue as an intent, without a model."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

IntentKind = Literal[
    "START_TEACHING", "DONE", "CANCEL", "LIST", "FORGET", "DESCRIBE", "MOVE", "SPEED", "INVOKE", "UNKNOWN"
]
# How a line reads and the intent it is; what its group holds is named, or else what stands behind.
_LINES: tuple[tuple[str, IntentKind, str], ...] = (
    ("done|save|end", "DONE", ""),
    ("cancel", "CANCEL", ""),
    ("list|list behaviors|behaviors", "LIST", ""),
    ("forward|go forward|move forward", "MOVE", "forward"),
    ("backward|back|go back", "MOVE", "backward"),
    ("(?:turn )?(left|right)", "MOVE", ""),
    ("(stop|wait|look)", "MOVE", ""),
    (r"(?:set )?speed (?:to )?(\d+(?:\.\d+)?)", "SPEED", ""),
    ("(?:teach|learn|record|remember) (.+)", "START_TEACHING", ""),
    ("forget (.+)", "FORGET", ""),
    ("(?:describe|explain|what is) (.+)", "DESCRIBE", ""),
    ("(?:do|run|perform|invoke) (.+)", "INVOKE", ""),
)
_ALWAYS = ("DONE", "CANCEL", "LIST")  # whatever a behaviour is called


def understand(line: str, known: Collection[str] = ()) -> tuple[IntentKind, str]:
    """What a line asks for, and the behaviour it names or the action it is.

    The name of a known behaviour alone invokes it.
    """
    said = " ".join(line.split()).rstrip(".!").lower()
    for reads, intent, action in _LINES:
        if fits := re.fullmatch(reads, said):
            if intent not in _ALWAYS and plain_name(said) in known:
                break
            named = plain_name(fits[1]) if fits.re.groups else action
            return intent, f"speed {float(named):g}" if intent == "SPEED" else named
    return "INVOKE" if plain_name(said) in known else "UNKNOWN", plain_name(said)


def plain_name(said: str) -> str:
    """A behaviour's name as it is kept: lower-case, without quotes, one space between words."""
    return " ".join(said.strip("'\"“” ").lower().split())[:64]
