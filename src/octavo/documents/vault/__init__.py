"""Seed 002's own interface: the Memory Vault, its records, and the blocks it makes for a prompt."""

from octavo.documents.vault.lines import TIERS as VALID_TIERS
from octavo.documents.vault.lines import Problem, VaultMemory
from octavo.documents.vault.memory_vault import ACTIONS, MAX_ACTIVE, MemoryVault, UnknownMemory
from octavo.documents.vault.reading import (
    VALID_SCOPES,
    build_memory_block,
    build_snapshot_block,
    check_pii,
    search_score,
)
from octavo.documents.vault.tool import flush_proposed, vault_tool

__all__ = [
    "ACTIONS",
    "MAX_ACTIVE",
    "VALID_SCOPES",
    "VALID_TIERS",
    "MemoryVault",
    "Problem",
    "UnknownMemory",
    "VaultMemory",
    "build_memory_block",
    "build_snapshot_block",
    "check_pii",
    "flush_proposed",
    "search_score",
    "vault_tool",
]
