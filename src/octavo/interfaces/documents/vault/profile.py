"""The `memory:` section of an agent's profile, in the small part of YAML that seed 002 uses."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from octavo.domain.memory import check_scope
from octavo.errors import BadFile, NotFound
from octavo.interfaces.documents.vault.actions import ACTIONS

_SECTION = re.compile(r"memory:\s*(\{\s*\})?\s*")
_PAIR = re.compile(r"(?P<indent> +)(?P<key>[a-z_]+):(?:\s+(?P<value>\S.*))?")
_ITEM = re.compile(r"(?P<indent> *)- +(?P<value>\S.*)")
_COMMENT = re.compile(r"(?:^|\s)#.*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a profile says about memory; what it leaves out is the policy's, or the seed's default.

    `actions` is ours: what the agent's tool may do.
    """

    enabled: bool = True
    scopes: tuple[str, ...] | None = None
    max_items: int = 20
    similarity_threshold: float | None = None
    actions: tuple[str, ...] | None = None


def read_profile(path: Path) -> Profile:
    """Read the section of a profile; a key or a value that is not understood is an error, never a guess."""
    try:
        written = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotFound(f"there is no profile {path}") from error
    except UnicodeDecodeError as error:
        raise BadFile(f"profile {path} is not UTF-8") from error
    found = _section(written, path)
    known: dict[str, Callable[[Any], Any]] = {
        "enabled": lambda value: value if isinstance(value, bool) else None,
        "scopes": _scopes,
        "max_items": lambda value: value if type(value) is int and value >= 0 else None,
        "similarity_threshold": _unit,
        "actions": _actions,
    }
    for key, value in found.items():
        if key not in known:
            raise BadFile(f"profile {path}: memory.{key} is unknown", hint=f"use {', '.join(known)}")
        found[key] = known[key](value)
        if found[key] is None:
            raise BadFile(f"profile {path}: memory.{key} cannot be {value!r}", hint="correct the value")
    return Profile(**found)


def _section(written: str, path: Path) -> dict[str, Any]:
    """The keys below `memory:`; everything else in the profile is somebody else's."""
    found: dict[str, Any] = {}
    inside, listed = False, None
    for number, raw in enumerate(written.splitlines(), start=1):
        line = _COMMENT.sub("", raw).rstrip()
        if not line:
            continue
        if not line.startswith((" ", "-")):
            inside, listed = _SECTION.fullmatch(line) is not None, None
            if line.startswith("memory:") and not inside:
                raise _bad(path, number, raw)
            continue
        if not inside:
            continue
        item, pair = _ITEM.fullmatch(line), _PAIR.fullmatch(line)
        if item and listed is not None:
            found[listed] = [*(found[listed] or []), _scalar(item["value"])]
        elif pair and pair["key"] not in found:
            key, value = pair["key"], pair["value"]
            listed = key if value is None else None
            found[key] = None if value is None else _value(value, path, number)
        else:
            raise _bad(path, number, raw)
    return found


def _value(written: str, path: Path, number: int) -> Any:
    if written.startswith("["):
        if not written.endswith("]"):
            raise _bad(path, number, written)
        return [_scalar(part.strip()) for part in written[1:-1].split(",") if part.strip()]
    if written[0] in "{&*!|>%@`":
        raise _bad(path, number, written)
    return _scalar(written)


def _scalar(written: str) -> Any:
    if len(written) > 1 and written[0] == written[-1] and written[0] in "'\"":
        return written[1:-1]
    if written.lower() in ("true", "false"):
        return written.lower() == "true"
    for kind in (int, float):
        try:
            return kind(written)
        except ValueError:
            continue
    return written


def _scopes(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        return None
    return tuple(dict.fromkeys(check_scope(name.lower()) for name in value))


def _actions(value: Any) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not all(name in ACTIONS for name in value):
        return None
    return tuple(dict.fromkeys(value))


def _unit(value: Any) -> float | None:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1
    return float(value) if fits else None


def _bad(path: Path, number: int, line: str) -> BadFile:
    hint = "write the section as `key: value` lines, lists as [a, b] or one `- a` a line"
    return BadFile(f"profile {path}, line {number}: {line.strip()!r} is not understood", hint=hint)
