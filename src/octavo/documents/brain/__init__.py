"""Brain B's memory of seed 004: levels, patterns, teaching, events and RLDS, on the public API alone."""

from octavo.documents.brain.memory import FilesystemMemory, consolidate_memory, read_memory, write_memory

__all__ = ["FilesystemMemory", "consolidate_memory", "read_memory", "write_memory"]
