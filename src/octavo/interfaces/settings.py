"""The only module that reads the environment: where accounts are, whose memory, who asks, which models."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from octavo.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a door needs to know before it opens an account; `scope` None is the owner's handle.

    `models` holds the variables that name an embedder, a reranker or a summariser's model, as found.
    """

    root: Path
    account: str = "default"
    scope: str | None = None
    actor: str = "human"
    debug: bool = False
    models: Mapping[str, str] = field(default_factory=dict, repr=False)


VARIABLES = {
    "root": "OCTAVO_ROOT",
    "account": "OCTAVO_ACCOUNT",
    "scope": "OCTAVO_SCOPE",
    "actor": "OCTAVO_ACTOR",
}
_OF_MODELS = ("OCTAVO_LLM_", "OCTAVO_EMBED", "OCTAVO_RERANK", "OPENAI_")


def read(given: Mapping[str, str | None] | None = None) -> Settings:
    """The settings: what was said on the command line, else the environment, else the defaults.

    An empty variable counts as unset.
    """
    said = {name: (given or {}).get(name) for name in VARIABLES}
    found = {
        name: os.environ.get(VARIABLES[name]) or None if value is None else value
        for name, value in said.items()
    }
    for name, value in said.items():
        if value == "":
            raise BadInput(f"--{name} is empty", hint=f"name one, or leave --{name} out")
    return Settings(
        root=Path(found["root"] or "~/.octavo").expanduser(),
        account=found["account"] or "default",
        scope=found["scope"],
        actor=found["actor"] or _login(),
        debug=is_debugging(),
        models={name: value for name, value in os.environ.items() if name.startswith(_OF_MODELS)},
    )


def is_debugging() -> bool:
    """Whether an unexpected error shows its traceback."""
    return os.environ.get("OCTAVO_DEBUG") not in (None, "", "0")


def wants_colours() -> bool:
    """Whether a terminal shall show colours."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")


def is_completing() -> bool:
    """Whether a shell asks what could be typed next."""
    return "_OCTAVO_COMPLETE" in os.environ


def use_one_thread() -> None:
    """Keep numpy from starting a thread for every core as it loads, unless somebody has said how many.

    That takes longer than a small recall, and nothing that a command multiplies is large enough for two.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _login() -> str:
    """The person at the keyboard; a container without a user database still has a person."""
    try:
        return f"human:{getpass.getuser()}"
    except (KeyError, OSError, ImportError):
        return "human"
