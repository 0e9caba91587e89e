"""Patterns that are compiled when they are first used.

The tables of this house hold over a hundred; a command that lists memories needs none of them, and to
compile them all takes longer than it runs.
"""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")


class Pattern:
    """Stands for a pattern; its methods are those of the compiled one."""

    def __init__(self, source: str, flags: int) -> None:
        self.pattern = source
        self.flags = flags


class _Unused(Pattern):
    """Stands for a pattern that nobody has used yet."""

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(f"a pattern has no {name!r}")
        compiled = re.compile(self.pattern, self.flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        # From here on a method is found at once, as if the pattern had been compiled from the beginning.
        self.__class__ = Pattern  # type: ignore[assignment]
        return getattr(self, name)


def pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """A regular expression like that of `re.compile`, compiled at the first use of one of its methods."""
    return cast("re.Pattern[str]", _Unused(source, flags))
