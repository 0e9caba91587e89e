"""Seed 002's own interface: the Memory Vault, its records, and the blocks it makes for a prompt."""

from octavo.interfaces.documents.vault.actions import ACTIONS
from octavo.interfaces.documents.vault.memory_vault import (
    MAX_ACTIVE,
    MemoryVault,
    Proposed,
    UnknownMemory,
    build_memory_block,
    build_snapshot_block,
)
from octavo.interfaces.documents.vault.reading import VALID_SCOPES, check_pii, search_score
from octavo.interfaces.documents.vault.tool import flush_proposed, vault_tool
from octavo.interfaces.formats.vault_records import TIERS as VALID_TIERS
from octavo.interfaces.formats.vault_records import Problem, VaultMemory

__all__ = [
    "ACTIONS",
    "MAX_ACTIVE",
    "VALID_SCOPES",
    "VALID_TIERS",
    "MemoryVault",
    "Problem",
    "Proposed",
    "UnknownMemory",
    "VaultMemory",
    "build_memory_block",
    "build_snapshot_block",
    "check_pii",
    "flush_proposed",
    "search_score",
    "vault_tool",
]
