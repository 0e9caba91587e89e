"""A room of this package that is loaded when it is first used.

The command line answers `--help` without the engine, and an account that only lists memories never loads
what summarises them: such rooms cost more than everything else and are reached through this one accessor.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """Stands for a module and loads it at the first use of one of its names."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._module), name)
        setattr(self, name, value)  # found at once from here on
        return value
