"""The documents' own interfaces, a folder each, under the names that users import: `octavo.documents.MSP`."""

from octavo.documents.brain import FilesystemMemory
from octavo.documents.msp.forms import (
    ConsolidatedData,
    Episode,
    LoadedSandbox,
    MasterState,
    Semantic,
    SessionBuffer,
    create_empty_buffer,
)
from octavo.documents.msp.passport import MSP, create_sandbox
from octavo.documents.synthians import AsyncMemoryCore, MemoryAssembly, MemoryCore, MemoryEntry
from octavo.documents.transfer import Exported, Imported, Note
from octavo.documents.vault import (
    MemoryVault,
    VaultMemory,
    build_memory_block,
    build_snapshot_block,
    check_pii,
    flush_proposed,
    vault_tool,
)

__all__ = [
    "MSP",
    "AsyncMemoryCore",
    "ConsolidatedData",
    "Episode",
    "Exported",
    "FilesystemMemory",
    "Imported",
    "LoadedSandbox",
    "MasterState",
    "MemoryAssembly",
    "MemoryCore",
    "MemoryEntry",
    "MemoryVault",
    "Note",
    "Semantic",
    "SessionBuffer",
    "VaultMemory",
    "build_memory_block",
    "build_snapshot_block",
    "check_pii",
    "create_empty_buffer",
    "create_sandbox",
    "flush_proposed",
    "vault_tool",
]
