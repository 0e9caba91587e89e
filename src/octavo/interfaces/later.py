"""A room of this package that is loaded when it is first used.

The command line answers `--help` and shell completion without the engine, rich or a codec; those cost
more than everything else it loads, so the doors reach them through this one accessor.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """Stands for a module and loads it at the first use of one of its names."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)
