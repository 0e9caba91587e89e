"""The only module that reads the environment: where accounts are, whose memory, who asks, which models."""

from __future__ import annotations

import getpass
import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from octavo.errors import BadInput
from octavo.storage.stores.names import shown


class Settings(Struct, frozen=True, kw_only=True):
    """What a door needs to know before it opens an account; `scope` None is the owner's handle.

    `models` holds the variables that name an embedder, a reranker or a summariser's model, as found. Who is
    alone knows of no other account: the holder of a token.
    """

    root: Path | str
    account: str = "default"
    scope: str | None = None
    actor: str = "human:owner"
    is_alone: bool = False
    cache: Path | None = None
    models: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        where = shown(self.root) if isinstance(self.root, str) else self.root
        return f"Settings({where}, {self.account!r}, {self.actor!r})"  # passwords and keys stay out of logs

    @property
    def local(self) -> Path:
        """A folder of this machine for what belongs to it alone: the root, or the cache of a remote one."""
        if isinstance(self.root, Path):
            return self.root
        return self.cache or Path("~/.octavo").expanduser()


VARIABLES = {name: f"OCTAVO_{name.upper()}" for name in ("root", "account", "scope", "actor")}
_OF_MODELS = ("OCTAVO_LLM_", "OCTAVO_EMBED", "OCTAVO_RERANK", "OPENAI_")


def read(given: Mapping[str, str | None] | None = None) -> Settings:
    """The settings: what was said on the command line, else the environment, else the defaults.

    An empty variable counts as unset.
    """
    said = given or {}
    for name in VARIABLES:
        if said.get(name) == "":
            raise BadInput(f"--{name} is empty", hint=f"name one, or leave --{name} out")
    told = {name: said.get(name) or os.environ.get(variable) for name, variable in VARIABLES.items()}
    root, cache = told["root"] or "~/.octavo", os.environ.get("OCTAVO_CACHE")
    return Settings(
        root=root if "://" in root else Path(root).expanduser(),
        cache=Path(cache).expanduser() if cache else None,
        account=told["account"] or "default",
        scope=told["scope"] or None,
        actor=told["actor"] or _login(),
        models=of_models(),
    )


def of_models() -> dict[str, str]:
    """The variables that name an embedder, a reranker or a summariser's model, as found."""
    return {name: os.environ[name] for name in os.environ if name.startswith(_OF_MODELS)}


def client_home(client: str) -> Path:
    """The folder in which a coding agent keeps its configuration."""
    variable, usual = {
        "claude-code": ("CLAUDE_CONFIG_DIR", "~/.claude"),
        "codex": ("CODEX_HOME", "~/.codex"),
        "cursor": ("", "~/.cursor"),
    }[client]
    return Path(os.environ.get(variable) or usual).expanduser()


def is_debugging() -> bool:
    """Whether an unexpected error shows its traceback."""
    return os.environ.get("OCTAVO_DEBUG") not in (None, "", "0")


def captures_text() -> bool:
    """Whether spans may tell what was asked and remembered: OpenTelemetry's own switch, off unless set."""
    return os.environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").lower() == "true"


def wants_colours() -> bool:
    """Whether a terminal shall show colours."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") not in ("dumb", "unknown")


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
        return "human:owner"
