"""The documents' own interfaces, under the name that users import: `octavo.documents.MSP`.

The code lives on the top floor, in `octavo.interfaces.documents`; here are only its names.
"""

from octavo.interfaces.documents.msp import MSP, ConsolidatedData, LoadedSandbox, MasterState, Semantic
from octavo.interfaces.documents.vault import (
    MemoryVault,
    Proposed,
    VaultMemory,
    build_memory_block,
    build_snapshot_block,
    check_pii,
    flush_proposed,
    vault_tool,
)

__all__ = [
    "MSP",
    "ConsolidatedData",
    "LoadedSandbox",
    "MasterState",
    "MemoryVault",
    "Proposed",
    "Semantic",
    "VaultMemory",
    "build_memory_block",
    "build_snapshot_block",
    "check_pii",
    "flush_proposed",
    "vault_tool",
]
