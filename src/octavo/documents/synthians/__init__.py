"""Seed 003, Synthians Memory Core: its entries, assemblies and core on top of an account, and its files."""

from octavo.documents.synthians.core import AsyncMemoryCore, MemoryCore
from octavo.documents.synthians.records import MemoryAssembly, MemoryEntry

__all__ = ["AsyncMemoryCore", "MemoryAssembly", "MemoryCore", "MemoryEntry"]
