"""A vault keeps its account's policy; what a caller asks for goes before it, the seed's numbers behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

import octavo
from octavo.documents.vault import MemoryVault, vault_tool
from octavo.errors import BadPolicy

BURST = "Burst mode runs the agent in short bounded loops of ten ticks each"
BURST_AGAIN = "In burst mode the agent runs in short bounded loops of about ten ticks"
TEXTS = ("likes tea", "owns a red boat", "speaks Portuguese", "ชอบชาเขียวมาก")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vault.jsonl"


def rules(path: Path, toml: str) -> None:
    MemoryVault(path).close()
    (path.with_name("vault.jsonl.octavo") / "vault" / "policy.toml").write_text(toml)


def test_without_a_policy_the_seeds_numbers_hold(path):
    with MemoryVault(path) as vault:
        assert vault.vault_stats()["max_active"] == 100
        assert (vault.account.policy.gate.token_overlap, vault.account.policy.gate.sequence_ratio) == (
            0.6,
            0.7,
        )


def test_length_privacy_and_thresholds_are_the_policys(path):
    rules(
        path,
        "[gate]\ntoken_overlap = 1.0\nsequence_ratio = 1.0\n"
        '[privacy]\nemail = "refuse"\n[kinds.canon]\nmax_length = 80\n',
    )
    with MemoryVault(path) as vault:
        vault.add_memory(BURST, "shared", "x")
        vault.add_memory(BURST_AGAIN, "shared", "x")
        with pytest.raises(ValueError, match="too long"):
            vault.add_memory("x" * 81, "shared", "x")
        with pytest.raises(ValueError, match="PII"):
            vault.add_memory("write to somchai@example.com", "shared", "x")
        assert vault.vault_stats()["max_active"] == 100


def test_what_the_caller_asks_for_goes_before_the_policy(path):
    rules(path, "[gate]\ntoken_overlap = 1.0\nsequence_ratio = 1.0\n[kinds.canon]\ncapacity = 500\n")
    with MemoryVault(path, max_active=1, similarity_threshold=0.7, token_overlap_threshold=0.6) as vault:
        vault.add_memory(BURST, "shared", "x")
        with pytest.raises(ValueError, match="Duplicate"):
            vault.add_memory(BURST_AGAIN, "shared", "x")
        with pytest.raises(ValueError, match="full: 1 active"):
            vault.add_memory(TEXTS[0], "shared", "x")


def test_a_profile_that_says_nothing_of_likeness_leaves_it_to_the_policy(tmp_path, path):
    rules(path, "[gate]\ntoken_overlap = 1.0\nsequence_ratio = 0.95\n")
    profile = tmp_path / "orion.yaml"
    profile.write_text("memory:\n  scopes: [shared]\n")
    with MemoryVault.from_profile(profile, path) as vault:
        assert vault.account.policy.gate.sequence_ratio == 0.95
    profile.write_text("memory:\n  similarity_threshold: 0.5\n")
    with MemoryVault.from_profile(profile, path) as vault:
        assert (vault.account.policy.gate.token_overlap, vault.account.policy.gate.sequence_ratio) == (
            1.0,
            0.5,
        )


def test_a_policy_that_cannot_be_used_is_an_error_that_names_it(path):
    rules(path, "[gate]\ncolour = 1\n")
    with pytest.raises(BadPolicy, match=r"policy\.toml.*colour"):
        MemoryVault(path)


def test_other_handles_on_the_account_see_the_same_rules(path):
    rules(path, "[kinds.canon]\nmax_length = 20\n")
    with MemoryVault(path) as vault, octavo.open(path.with_name("vault.jsonl.octavo"), "vault") as account:
        assert vault.account.policy == account.policy
        assert "too long" in vault_tool(vault, "add", text="y" * 21, tier="canon")["message"]
