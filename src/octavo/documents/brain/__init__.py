"""Brain B's memory of seed 004: levels, patterns, teaching, events and RLDS, on the public API alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from octavo.documents.brain.memory import LEVELS, Context, FilesystemMemory, Written
from octavo.documents.brain.patterns import Consolidated
from octavo.domain.memory import Layer

__all__ = ["FilesystemMemory", "consolidate_memory", "read_memory", "write_memory"]
DATA_DIR = "brain_b_data"  # as the seed calls it


def read_memory(
    query: str, levels: Sequence[Layer] = LEVELS, *, data_dir: str | Path = DATA_DIR, **more: Any
) -> Context:
    """Read from some levels of the memory in a folder, hierarchically mixed."""
    with FilesystemMemory(data_dir, **more) as memory:
        return memory.read_memory(query, levels)


def write_memory(
    content: str | Mapping[str, Any], level: Layer, key: str, *, data_dir: str | Path = DATA_DIR, **more: Any
) -> Written:
    """Write to the memory in a folder at a level; the `actor` decides what needs a person's yes."""
    with FilesystemMemory(data_dir, **more) as memory:
        return memory.write_memory(content, level, key)


def consolidate_memory(
    *, data_dir: str | Path = DATA_DIR, promote: bool = False, **more: Any
) -> Consolidated:
    """Carry what repeats in the memory of a folder up the levels."""
    with FilesystemMemory(data_dir, **more) as memory:
        return memory.consolidate_memory(promote=promote)
