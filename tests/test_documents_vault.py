"""Seed 002's Memory Vault: every acceptance behaviour of the document, by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from briefs import read
from octavo.documents.vault import (
    VALID_TIERS,
    MemoryVault,
    VaultMemory,
    build_memory_block,
    build_snapshot_block,
    check_pii,
    search_score,
)
from octavo.domain.verdicts import Verdict
from octavo.errors import BadFile, HumanOnly, OctavoError
from octavo.storage.state_view import DbView

DARK = "User prefers dark mode in all apps"
PROJECT = "Building a Python agent with a memory vault"
BURST = "Burst mode runs the agent in short bounded loops of ten ticks each"
BURST_AGAIN = "In burst mode the agent runs in short bounded loops of about ten ticks"
ARCHITECTURE = "The dashboard talks to the runtime over a local socket"
PYTHON = "The Python agent stores its memory in a JSONL file and reads it on start"
PYTHON_TOO = "The Python agent writes journals to disk and keeps memory of every burst"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vault.jsonl"


@pytest.fixture
def vault(path: Path) -> Iterator[MemoryVault]:
    with MemoryVault(path, max_active=50) as opened:
        yield opened


def added(vault: MemoryVault, *args: object, **more: object) -> VaultMemory:
    """Add a memory that is expected to be stored."""
    found = vault.add_memory(*args, **more)  # type: ignore[arg-type]
    assert isinstance(found, VaultMemory)
    return found


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class TestAddAndRecall:
    def test_ids_are_12_hexadecimal_characters(self, vault: MemoryVault) -> None:
        found = added(vault, DARK, "shared", "preference")
        assert len(found.id) == 12
        assert int(found.id, 16) >= 0

    def test_recall_returns_all_newest_first(self, vault: MemoryVault) -> None:
        for text in (DARK, PROJECT, "ชอบชาเขียว"):
            added(vault, text, "shared", "x")
        assert [m.text for m in vault.recall()] == ["ชอบชาเขียว", PROJECT, DARK]

    def test_recall_filters_by_scope_as_text_or_list_category_tags_and_limit(
        self, vault: MemoryVault
    ) -> None:
        added(vault, DARK, "shared", "preference", ["ui", "taste"])
        added(vault, PROJECT, "orion", "project", ["python"])
        added(vault, "elysia writes poems", "elysia", "bio")
        assert [m.scope for m in vault.recall("orion")] == ["orion"]
        assert {m.scope for m in vault.recall(["shared", "orion"])} == {"shared", "orion"}
        assert [m.text for m in vault.recall(category="Preference")] == [DARK]
        assert [m.text for m in vault.recall(tags=["taste", "nothing"])] == [DARK]
        assert len(vault.recall(limit=2)) == 2
        assert vault.recall(limit=0) == []

    def test_get_returns_the_memory_or_none(self, vault: MemoryVault) -> None:
        found = added(vault, DARK, "shared", "preference")
        assert vault.get(found.id) == found
        assert vault.get("000000000000") is None


class TestScoping:
    @pytest.fixture(autouse=True)
    def three(self, vault: MemoryVault) -> None:
        added(vault, "the team meets in Chiang Mai", "shared", "x")
        added(vault, "orion explores boundaries", "orion", "x")
        added(vault, "elysia writes poems", "elysia", "x")

    def test_shared_and_orion_never_show_elysia_and_the_reverse(self, vault: MemoryVault) -> None:
        assert {m.scope for m in vault.recall(["shared", "orion"])} == {"shared", "orion"}
        assert {m.scope for m in vault.recall(["shared", "elysia"])} == {"shared", "elysia"}
        assert "poems" not in build_memory_block(vault, ["shared", "orion"])
        assert vault.search_memories("poems", ["shared", "orion"]) == []

    def test_shared_alone_returns_one(self, vault: MemoryVault) -> None:
        assert len(vault.recall("shared")) == 1

    @pytest.mark.parametrize("scope", ["*", "all", "", ["shared", "*"]])
    def test_a_wildcard_or_unknown_scope_is_an_error_not_everything(
        self, vault: MemoryVault, scope: str
    ) -> None:
        with pytest.raises(ValueError, match="scope"):
            vault.recall(scope)

    def test_a_handle_with_its_own_scopes_sees_and_writes_nothing_else(self, path: Path) -> None:
        with MemoryVault(path, scopes=["shared", "orion"]) as orion:
            assert {m.scope for m in orion.recall()} == {"shared", "orion"}
            assert all(m.scope != "elysia" for m in orion.resolve_latest().values())
            with pytest.raises(ValueError, match="scope"):
                orion.add_memory("elysia sings", "elysia", "x")


class TestDuplicates:
    def test_all_apps_and_all_applications_are_the_same(self, vault: MemoryVault) -> None:
        added(vault, DARK, "shared", "preference")
        before = vault.path.read_bytes()
        with pytest.raises(ValueError, match="Duplicate"):
            vault.add_memory("User prefers dark mode in all applications", "shared", "preference")
        assert vault.path.read_bytes() == before
        assert len(vault.recall()) == 1

    def test_the_same_text_in_another_scope_is_allowed(self, vault: MemoryVault) -> None:
        added(vault, DARK, "shared", "preference")
        added(vault, DARK, "orion", "preference")

    def test_a_different_text_is_allowed(self, vault: MemoryVault) -> None:
        added(vault, DARK, "shared", "preference")
        added(vault, PROJECT, "shared", "project")

    def test_two_phrasings_of_burst_mode_are_blocked(self, vault: MemoryVault) -> None:
        added(vault, BURST, "shared", "capability")
        with pytest.raises(ValueError, match="Duplicate"):
            vault.add_memory(BURST_AGAIN, "shared", "capability")

    def test_two_phrasings_of_burst_mode_are_blocked_at_070_and_060_and_not_above(
        self, tmp_path: Path
    ) -> None:
        for n, (ratio, overlap, blocked) in enumerate([(0.70, 0.60, True), (0.95, 0.95, False)]):
            numbers = {"similarity_threshold": ratio, "token_overlap_threshold": overlap}
            with MemoryVault(tmp_path / f"{n}.jsonl", **numbers) as vault:
                added(vault, BURST, "shared", "capability")
                done = vault.bulk_add([{"text": BURST_AGAIN, "category": "capability"}])
                assert bool(done["errors"]) is blocked

    def test_an_unrelated_architecture_sentence_is_allowed(self, vault: MemoryVault) -> None:
        added(vault, BURST, "shared", "capability")
        added(vault, ARCHITECTURE, "shared", "capability")

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("Alice likes green tea", "Bob likes green tea"),
            ("the dentist is at 14:00 on Monday", "the dentist is at 15:00 on Monday"),
            ("User eats meat at home", "User does not eat meat at home"),
            ("User loves spicy food at night", "User hates spicy food at night"),
            ("Alice told Bob about the boat", "Bob told Alice about the boat"),
            ("ผู้ใช้ชอบกินอาหารเผ็ดตอนเย็น", "ผู้ใช้เกลียดกินอาหารเผ็ดตอนเย็น"),
        ],
    )
    def test_another_name_number_negation_or_word_is_no_duplicate(
        self, vault: MemoryVault, one: str, other: str
    ) -> None:
        added(vault, one, "shared", "x")
        added(vault, other, "shared", "x")

    def test_a_register_that_restates_canon_is_blocked_too(self, vault: MemoryVault) -> None:
        added(vault, DARK, "shared", "preference")
        with pytest.raises(ValueError, match="Duplicate"):
            vault.add_memory(DARK, "shared", "preference", tier="register")

    def test_a_thai_restatement_is_blocked(self, vault: MemoryVault) -> None:
        added(vault, "ผู้ใช้ชอบโหมดมืดในทุกแอป", "shared", "preference")
        with pytest.raises(ValueError, match="Duplicate"):
            vault.add_memory("ผู้ใช้ชอบโหมดมืดในทุกแอปเลย", "shared", "preference")

    def test_the_thresholds_can_be_set(self, path: Path) -> None:
        with MemoryVault(path, similarity_threshold=1.0, token_overlap_threshold=1.0) as strict:
            added(strict, BURST, "shared", "capability")
            added(strict, BURST_AGAIN, "shared", "capability")


class TestPii:
    @pytest.mark.parametrize(
        "secret",
        [
            "My SSN is 123-45-6789",
            "password: hunter2",
            "api_key: sk-abc123",
            "PASSWORD: Hunter2hunter2",
            "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlc2lnbmF0dXJl",
        ],
    )
    def test_secrets_are_blocked_and_never_written(self, vault: MemoryVault, secret: str) -> None:
        with pytest.raises(ValueError, match="PII"):
            vault.add_memory(secret, "shared", "other")
        assert vault.recall() == []
        assert check_pii(secret)

    def test_an_editor_is_no_secret(self, vault: MemoryVault) -> None:
        added(vault, "Favorite editor is VS Code", "shared", "preference")

    def test_check_pii_returns_a_list_that_is_empty_when_clean(self) -> None:
        assert check_pii("likes pizza") == []


class TestSearch:
    @pytest.fixture(autouse=True)
    def two(self, vault: MemoryVault) -> None:
        added(vault, PROJECT, "orion", "project")
        added(vault, DARK, "shared", "preference")

    def test_python_agent_finds_the_project_and_dark_mode_the_preference(self, vault: MemoryVault) -> None:
        assert vault.search_memories("python agent")[0].category == "project"
        assert vault.search_memories("dark mode")[0].category == "preference"

    def test_a_scoped_search_finds_one_or_none(self, vault: MemoryVault) -> None:
        assert len(vault.search_memories("python agent", "orion")) == 1
        assert len(vault.search_memories("python agent", "elysia")) == 0

    def test_nonsense_finds_nothing(self, vault: MemoryVault) -> None:
        assert vault.search_memories("xyzzy plugh") == []

    def test_the_score_is_the_seeds(self, vault: MemoryVault) -> None:
        (best,) = vault.search_memories("dark mode")
        assert best.score == search_score("dark mode", DARK) > 1.3
        assert search_score("python", "a python") == pytest.approx(1 + 0.3 + 0.4 * 12 / 14)
        assert search_score("python tea", "a python") < 1
        assert search_score("tea", "a python") == 0

    def test_thai_is_found_without_spaces_between_words(self, vault: MemoryVault) -> None:
        added(vault, "ผู้ใช้ชอบชาเขียวมาก", "shared", "preference")
        added(vault, "ประชุมทุกวันจันทร์", "shared", "routine")
        assert [m.text for m in vault.search_memories("ชาเขียว")] == ["ผู้ใช้ชอบชาเขียวมาก"]
        assert vault.search_memories("แมว") == []

    def test_an_updated_text_is_found_and_the_old_one_is_not(self, vault: MemoryVault) -> None:
        (project,) = vault.search_memories("python agent")
        vault.update_memory(project.id, text="Writing a Rust compiler")
        assert vault.search_memories("rust")[0].id == project.id
        assert vault.search_memories("python agent") == []


class TestUpdate:
    def test_text_changes_id_and_tags_stay_and_the_version_counts(self, vault: MemoryVault) -> None:
        first = added(vault, DARK, "shared", "preference", ["ui"])
        second = vault.update_memory(first.id, text="User prefers light mode at noon")
        assert isinstance(second, VaultMemory)
        assert (second.id, second.tags, second.version) == (first.id, ("ui",), 2)
        assert second.text == "User prefers light mode at noon"
        assert first.updated_at is None
        assert second.updated_at is not None
        assert second.created_at == first.created_at
        third = vault.update_memory(first.id, text="User prefers no mode")
        assert isinstance(third, VaultMemory)
        assert third.version == 3

    def test_category_and_tags_change(self, vault: MemoryVault) -> None:
        found = added(vault, DARK, "shared", "preference", ["ui"])
        vault.update_memory(found.id, category="Goal", tags=["a", "b"])
        now = vault.get(found.id)
        assert now is not None
        assert (now.text, now.category, now.tags) == (DARK, "goal", ("a", "b"))

    def test_an_unknown_id_is_a_key_error(self, vault: MemoryVault) -> None:
        with pytest.raises(KeyError):
            vault.update_memory("000000000000", text="x")
        with pytest.raises(KeyError):
            vault.promote_to_canon("000000000000")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("password: hunter2", "PII"),
            ("x" * 1300, "too long"),
            ("tick marker for burst 5", "journal-only signal"),
            ("  ", "text"),
        ],
    )
    def test_an_update_passes_the_same_gates_and_the_old_text_remains(
        self, vault: MemoryVault, text: str, words: str
    ) -> None:
        found = added(vault, DARK, "shared", "preference")
        with pytest.raises(ValueError, match=words):
            vault.update_memory(found.id, text=text)
        assert vault.get(found.id) == found


class TestDelete:
    def test_a_deletion_leaves_a_tombstone_line_and_the_other_memory(
        self, vault: MemoryVault, path: Path
    ) -> None:
        gone = added(vault, DARK, "shared", "preference")
        added(vault, PROJECT, "shared", "project")
        assert vault.delete_memory(gone.id) is True
        assert [m.text for m in vault.recall()] == [PROJECT]
        assert len(lines(path)) == 3
        assert lines(path)[-1]["deleted_at"]
        assert lines(path)[-1]["version"] == 2
        assert vault.get(gone.id) is None
        assert vault.resolve_latest()[gone.id].deleted_at is not None

    def test_a_tombstone_is_visible_in_resolve_latest_alone(self, vault: MemoryVault) -> None:
        gone = added(vault, DARK, "shared", "preference")
        vault.delete_memory(gone.id)
        latest = vault.resolve_latest()[gone.id]
        assert (latest.version, latest.text) == (2, DARK)
        assert latest.deleted_at is not None
        assert (vault.get(gone.id), vault.recall(), vault.search_memories("dark mode")) == (None, [], [])

    def test_an_unknown_or_already_deleted_id_is_false(self, vault: MemoryVault) -> None:
        gone = added(vault, DARK, "shared", "preference")
        assert vault.delete_memory(gone.id) is True
        assert vault.delete_memory(gone.id) is False
        assert vault.delete_memory("000000000000") is False

    def test_bulk_delete_names_what_it_deleted_and_what_it_did_not_find(self, vault: MemoryVault) -> None:
        first, second, stays = (added(vault, text, "shared", "x") for text in (DARK, PROJECT, ARCHITECTURE))
        done = vault.bulk_delete([first.id, "000000000000", second.id])
        assert done == {"deleted": [first.id, second.id], "not_found": ["000000000000"]}
        assert [m.id for m in vault.recall()] == [stays.id]
        assert vault.bulk_delete([first.id]) == {"deleted": [], "not_found": [first.id]}
        assert vault.bulk_delete([]) == {"deleted": [], "not_found": []}


class TestBulkAdd:
    def test_indices_follow_the_input(self, vault: MemoryVault) -> None:
        done = vault.bulk_add(
            [{"text": t, "scope": "shared", "category": "x"} for t in (DARK, PROJECT, ARCHITECTURE)]
        )
        assert [row["index"] for row in done["stored"]] == [0, 1, 2]
        assert done["errors"] == []
        assert all(vault.get(row["id"]) for row in done["stored"])

    def test_a_mixed_batch_stores_what_it_can(self, vault: MemoryVault) -> None:
        done = vault.bulk_add(
            [
                {"text": DARK, "scope": "shared", "category": "x"},
                {"text": "", "scope": "shared", "category": "x"},
                {"text": PROJECT, "scope": "narnia", "category": "x"},
                {"text": "password: hunter2", "scope": "shared", "category": "x"},
                {"text": ARCHITECTURE, "scope": "shared", "category": "x"},
            ]
        )
        assert [row["index"] for row in done["stored"]] == [0, 4]
        assert [row["index"] for row in done["errors"]] == [1, 2, 3]
        assert "PII" in done["errors"][2]["message"]

    def test_a_duplicate_is_an_error_even_within_the_batch(self, vault: MemoryVault) -> None:
        item = {"text": DARK, "scope": "shared", "category": "x"}
        done = vault.bulk_add([item, item])
        assert [row["index"] for row in done["stored"]] == [0]
        assert "Duplicate" in done["errors"][0]["message"]

    def test_what_a_batch_may_restate_is_looked_up_once(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[int] = []
        look_up = DbView._look_up

        def counted(view: DbView, wanted: Sequence[Any]) -> Any:
            asked.append(len(wanted))
            return look_up(view, wanted)

        monkeypatch.setattr(DbView, "_look_up", counted)
        items = [{"text": f"drawer {n} holds {n * 7} screws", "tier": "register"} for n in range(60)]
        with MemoryVault(path) as vault:
            assert len(vault.bulk_add(items)["stored"]) == 60
        assert sum(asked) <= 2 * len(items)

    def test_nothing_in_nothing_out(self, vault: MemoryVault) -> None:
        assert vault.bulk_add([]) == {"stored": [], "errors": []}

    def test_an_item_with_an_unknown_key_costs_itself_alone(self, vault: MemoryVault) -> None:
        done = vault.bulk_add([{"txt": "x"}, {"text": DARK, "scope": "shared", "category": "x"}])
        assert [row["index"] for row in done["stored"]] == [1]
        assert [row["index"] for row in done["errors"]] == [0]


class TestValidation:
    @pytest.mark.parametrize("text", ["", "   ", "\n\t"])
    def test_empty_and_blank_texts_are_rejected(self, vault: MemoryVault, text: str) -> None:
        with pytest.raises(ValueError, match="text"):
            vault.add_memory(text, "shared", "x")

    def test_a_bad_scope_and_a_bad_source_are_rejected(self, vault: MemoryVault) -> None:
        with pytest.raises(ValueError, match="scope"):
            vault.add_memory(DARK, "narnia", "x")
        with pytest.raises(ValueError, match="source"):
            vault.add_memory(DARK, "shared", "x", source="telepathy")
        with pytest.raises(ValueError, match="tier"):
            vault.add_memory(DARK, "shared", "x", tier="marble")

    def test_a_custom_category_is_accepted(self, vault: MemoryVault) -> None:
        assert added(vault, DARK, "shared", "my own category").category == "my own category"

    def test_scope_and_category_are_lowercased(self, vault: MemoryVault) -> None:
        found = added(vault, DARK, "Shared", "Preference", tier="CANON")
        assert (found.scope, found.category, found.tier) == ("shared", "preference", "canon")

    def test_valid_tiers_leave_out_log(self) -> None:
        assert VALID_TIERS == ("canon", "register")


class TestInjector:
    def test_the_block_has_its_header_and_the_right_scopes(self, vault: MemoryVault) -> None:
        added(vault, DARK, "shared", "preference")
        added(vault, PROJECT, "orion", "project")
        added(vault, "elysia writes poems", "elysia", "bio")
        block = build_memory_block(vault, ["shared", "orion"])
        assert "Long-Term Memory Context" in block
        assert set(read(block).texts) == {DARK, PROJECT}
        assert build_memory_block(vault, "orion") == block

    def test_canon_stands_first(self, vault: MemoryVault) -> None:
        added(vault, DARK, "shared", "preference")
        added(vault, PROJECT, "shared", "project", tier="register", topic_id="current_projects")
        assert read(build_memory_block(vault, ["shared"])).texts == [DARK, PROJECT]

    def test_a_query_filters(self, vault: MemoryVault) -> None:
        added(vault, DARK, "shared", "preference")
        added(vault, PROJECT, "shared", "project")
        assert read(build_memory_block(vault, ["shared"], query="python agent")).texts == [PROJECT]

    def test_no_items_or_nothing_found_is_an_empty_text(self, vault: MemoryVault) -> None:
        assert build_memory_block(vault, ["shared"]) == ""
        added(vault, DARK, "shared", "preference")
        assert build_memory_block(vault, ["shared"], max_items=0) == ""
        assert build_memory_block(vault, ["shared"], query="xyzzy") == ""


class TestCapacity:
    def test_a_full_vault_rejects_until_something_is_deleted(self, path: Path) -> None:
        texts = ["likes tea", "owns a red boat", "speaks Portuguese", "lives in Chiang Mai"]
        with MemoryVault(path, max_active=3) as small:
            first, *_ = [added(small, text, "shared", "x") for text in texts[:3]]
            with pytest.raises(ValueError, match="full"):
                small.add_memory(texts[3], "shared", "x")
            assert small.delete_memory(first.id)
            added(small, texts[3], "shared", "x")

    def test_an_update_of_a_topic_needs_no_room(self, path: Path) -> None:
        with MemoryVault(path, max_active=1) as small:
            added(small, "at sea", "shared", "x", tier="register", topic_id="where")
            assert added(small, "ashore", "shared", "x", tier="register", topic_id="where").version == 2

    def test_the_default_is_100(self, tmp_path: Path) -> None:
        with MemoryVault(tmp_path / "v.jsonl") as vault:
            assert vault.vault_stats()["max_active"] == 100


class TestStats:
    def test_an_empty_vault(self, vault: MemoryVault) -> None:
        stats = vault.vault_stats()
        assert (stats["active_count"], stats["max_active"], stats["utilization_pct"]) == (0, 50, 0)

    def test_counts_by_scope_tier_and_category(self, vault: MemoryVault) -> None:
        first = added(vault, DARK, "shared", "preference")
        added(vault, PROJECT, "shared", "project", tier="register", topic_id="p")
        added(vault, "orion explores", "orion", "project")
        stats = vault.vault_stats()
        assert stats["utilization_pct"] == 6.0
        assert stats["by_scope"] == {"shared": 2, "orion": 1}
        assert stats["by_tier"] == {"canon": 2, "register": 1}
        assert stats["by_category"] == {"preference": 1, "project": 2}
        assert (stats["register_topics"], stats["raw_lines"], stats["deleted_count"]) == (1, 3, 0)
        vault.delete_memory(first.id)
        stats = vault.vault_stats()
        assert (stats["raw_lines"], stats["deleted_count"], stats["compactable_lines"]) == (4, 1, 2)
        assert stats["bloat_ratio"] == 2.0

    def test_tiers_canon_one_register_one_topics_one(self, vault: MemoryVault) -> None:
        added(vault, DARK, "shared", "preference")
        added(vault, PROJECT, "shared", "project", tier="register", topic_id="p")
        stats = vault.vault_stats()
        assert stats["by_tier"] == {"canon": 1, "register": 1}
        assert stats["register_topics"] == 1


class TestCompact:
    def test_history_leaves_the_file_and_the_newest_texts_survive(
        self, vault: MemoryVault, path: Path
    ) -> None:
        first = added(vault, DARK, "shared", "preference")
        second = added(vault, PROJECT, "shared", "project")
        third = added(vault, ARCHITECTURE, "shared", "x")
        vault.update_memory(first.id, text="User prefers light mode")
        vault.update_memory(second.id, text="Building a compiler")
        vault.delete_memory(third.id)
        assert vault.vault_stats()["raw_lines"] == 6
        assert vault.compact() == {"lines_before": 6, "lines_after": 2, "lines_removed": 4}
        stats = vault.vault_stats()
        assert (stats["raw_lines"], stats["active_count"], stats["deleted_count"]) == (2, 2, 0)
        assert stats["bloat_ratio"] == 1.0
        assert {row["text"] for row in lines(path)} == {"User prefers light mode", "Building a compiler"}
        assert not path.with_name("vault.jsonl.compact.tmp").exists()

    def test_the_ledger_keeps_what_the_file_lost(self, vault: MemoryVault) -> None:
        found = added(vault, DARK, "shared", "preference")
        vault.update_memory(found.id, text="User prefers light mode")
        vault.compact()
        assert [r.memory.text for r in vault.account.history(found.id)] == [DARK, "User prefers light mode"]

    def test_a_compacted_vault_goes_on_as_before(self, vault: MemoryVault, path: Path) -> None:
        found = added(vault, DARK, "shared", "preference")
        vault.update_memory(found.id, text="User prefers light mode")
        vault.compact()
        vault.update_memory(found.id, text="User prefers no mode")
        assert [row["version"] for row in lines(path)] == [2, 3]
        with MemoryVault(path) as again:
            assert [m.version for m in again.recall()] == [3]
        assert [row["version"] for row in lines(path)] == [2, 3]


class TestWriteGate:
    @pytest.mark.parametrize(
        ("text", "fields", "first"),
        [
            ("tick marker for burst 5", {"tier": "log", "scope": "narnia"}, "journal-only signal"),
            ("x" * 1300, {"tier": "log", "scope": "narnia"}, "tier log"),
            ("x" * 1300, {"scope": "narnia"}, "too long"),
            ("x" * 1300, {"source": "telepathy"}, "too long"),
            ("password: hunter2", {"scope": "narnia"}, "scope"),
            ("password: hunter2", {"tier": "marble"}, "tier"),
            ("password: hunter2", {}, "PII"),
        ],
    )
    def test_the_first_step_that_fails_in_the_seeds_order_is_named(
        self, vault: MemoryVault, text: str, fields: dict[str, str], first: str
    ) -> None:
        with pytest.raises(ValueError, match=first):
            vault.add_memory(text, **{"scope": "shared", "category": "x", **fields})  # type: ignore[arg-type]

    @pytest.mark.parametrize("noise", ["tick marker for burst 5", "routine scan complete, nothing to report"])
    def test_journal_noise_is_rejected(self, vault: MemoryVault, noise: str) -> None:
        with pytest.raises(ValueError, match="journal-only signal"):
            vault.add_memory(noise, "shared", "x")

    def test_tier_log_is_rejected(self, vault: MemoryVault) -> None:
        with pytest.raises(ValueError, match="journal-only"):
            vault.add_memory("A perfectly normal text", "shared", "x", tier="log")

    def test_1300_characters_are_rejected(self, vault: MemoryVault) -> None:
        with pytest.raises(ValueError, match="too long"):
            vault.add_memory("x" * 1300, "shared", "x")

    @pytest.mark.parametrize("text", [ARCHITECTURE, "ประชุมทุกวันจันทร์เวลาเก้าโมงเช้า", "x" * 1200])
    def test_a_normal_text_is_accepted(self, vault: MemoryVault, text: str) -> None:
        assert added(vault, text, "shared", "x").text == text

    @pytest.mark.parametrize(
        "text", ["weekly check-in on Mondays with Somchai", "ephemeral storage policy is off"]
    )
    def test_normal_texts_that_mention_a_signal_are_accepted(self, vault: MemoryVault, text: str) -> None:
        added(vault, text, "shared", "x")


class TestTiersAndTopics:
    def test_canon_without_a_topic_is_the_default(self, vault: MemoryVault) -> None:
        found = added(vault, DARK, "shared", "preference")
        assert (found.tier, found.topic_id, found.version, found.source) == ("canon", None, 1, "manual")

    def test_a_second_write_to_a_topic_updates_the_same_memory(self, vault: MemoryVault) -> None:
        more = {"tier": "register", "topic_id": "current_projects"}
        first = added(vault, "Projects: dashboard", "shared", "project", ["a"], **more)
        second = added(vault, "Projects: dashboard, email integration", "shared", "project", **more)
        assert (first.tier, first.topic_id) == ("register", "current_projects")
        assert (second.id, second.version) == (first.id, 2)
        assert second.text == "Projects: dashboard, email integration"
        assert second.tags == ("a",)
        assert second.created_at == first.created_at
        assert len(vault.recall()) == 1

    def test_to_dict_and_from_dict_keep_both_fields(self, vault: MemoryVault) -> None:
        found = added(vault, "x is y", "shared", "project", tier="register", topic_id="t")
        assert VaultMemory.from_dict(found.to_dict()) == found
        plain = added(vault, DARK, "shared", "preference")
        assert "topic_id" not in plain.to_dict()
        assert VaultMemory.from_dict(plain.to_dict()) == plain

    def test_update_by_topic_creates_then_updates_and_knows_scopes(self, vault: MemoryVault) -> None:
        first = vault.update_by_topic("mood", "shared", "calm", category="self_state")
        second = vault.update_by_topic("mood", "shared", "ร่าเริง")
        other = vault.update_by_topic("mood", "orion", "curious")
        assert isinstance(first, VaultMemory)
        assert isinstance(second, VaultMemory)
        assert isinstance(other, VaultMemory)
        assert (first.version, first.tier) == (1, "register")
        assert (second.id, second.version, second.category) == (first.id, 2, "self_state")
        assert other.id != first.id


class TestConsolidationAndPromotion:
    def test_the_floor_has_the_seeds_name_and_the_older_one(self, vault: MemoryVault) -> None:
        for text in (PYTHON, PYTHON_TOO):
            added(vault, text, "shared", "x")
        by_name = vault.find_consolidation_candidates("shared", floor=0.4)
        assert by_name == vault.find_consolidation_candidates("shared", similarity_floor=0.4)
        assert [score >= 0.4 for *_, score in by_name] == [True]
        assert vault.find_consolidation_candidates("shared", floor=0.99) == []

    def test_a_low_floor_finds_the_python_pair(self, vault: MemoryVault) -> None:
        added(vault, PYTHON, "shared", "project")
        added(vault, PYTHON_TOO, "shared", "project")
        added(vault, "ชอบชาเขียว", "shared", "preference")
        ((a, b, score),) = vault.find_consolidation_candidates("shared", 0.40)
        assert {a.text, b.text} == {PYTHON, PYTHON_TOO}
        assert 0.4 <= score <= 1.0

    def test_a_short_text_is_proposed_for_deletion_and_stays(self, vault: MemoryVault) -> None:
        short = added(vault, "ok noted", "shared", "other", tier="register")
        added(vault, DARK, "shared", "preference")
        (found,) = vault.propose_deletions("shared")
        assert found["id"] == short.id
        assert "short" in found["reason"]
        assert vault.get(short.id) is not None

    def test_a_register_becomes_canon(self, vault: MemoryVault) -> None:
        found = added(vault, "mission draft", "shared", "mission", tier="register", topic_id="mission")
        done = vault.promote_to_canon(found.id, "Mission: stabilise the runtime", tags=["core"])
        assert isinstance(done, VaultMemory)
        assert (done.id, done.tier, done.version, done.source) == (found.id, "canon", 2, "promotion")
        assert (done.text, done.tags) == ("Mission: stabilise the runtime", ("core",))

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("password: hunter2", "PII"),
            ("y" * 1300, "too long"),
            ("tick marker for burst 5", "journal-only signal"),
        ],
    )
    def test_promotion_applies_the_gates_to_the_new_text(
        self, vault: MemoryVault, text: str, words: str
    ) -> None:
        found = added(vault, "mission draft", "shared", "mission", tier="register", topic_id="mission")
        with pytest.raises(ValueError, match=words):
            vault.promote_to_canon(found.id, text)
        assert vault.get(found.id) == found

    def test_the_snapshot_has_both_sections_and_no_register_without_a_topic(self, vault: MemoryVault) -> None:
        added(vault, "Mission: stabilise the runtime", "shared", "mission")
        added(vault, "dashboard", "shared", "project", tier="register", topic_id="current_projects")
        added(vault, "loose ends everywhere", "shared", "project", tier="register")
        snapshot = vault.build_snapshot("shared")
        assert "## Canon" in snapshot
        assert "## Active Registers" in snapshot
        assert "current_projects" in snapshot
        assert read(snapshot).texts == ["Mission: stabilise the runtime", "dashboard"]
        assert build_snapshot_block(vault, ["shared"]) == snapshot
        assert vault.build_snapshot("shared") == snapshot

    def test_an_agents_snapshot_holds_shared_and_its_own(self, vault: MemoryVault) -> None:
        added(vault, "Mission: stabilise the runtime", "shared", "mission")
        added(vault, "orion explores", "orion", "bio")
        added(vault, "elysia writes poems", "elysia", "bio")
        assert set(read(vault.build_snapshot("orion")).texts) == {
            "Mission: stabilise the runtime",
            "orion explores",
        }


class TestAgents:
    @pytest.fixture
    def agent(self, vault: MemoryVault, path: Path) -> Iterator[MemoryVault]:
        with MemoryVault(path, actor="agent:orion") as opened:
            yield opened

    def test_an_agents_canon_waits_for_a_person(self, agent: MemoryVault, vault: MemoryVault) -> None:
        asked = agent.add_memory("Mission: explore", "shared", "mission")
        assert isinstance(asked, Verdict)
        assert asked.outcome == "proposed"
        assert not asked
        assert vault.recall() == []
        vault.account.approve(asked.proposal)
        assert [m.text for m in agent.recall()] == ["Mission: explore"]

    def test_an_agents_register_is_stored_at_once(self, agent: MemoryVault) -> None:
        found = agent.add_memory("dashboard", "shared", "project", tier="register", topic_id="p")
        assert isinstance(found, VaultMemory)
        assert found.status == "stored"

    def test_an_agents_promotion_update_and_deletion_of_canon_wait(
        self, agent: MemoryVault, vault: MemoryVault
    ) -> None:
        canon = added(vault, DARK, "shared", "preference")
        register = added(vault, "mission draft", "shared", "mission", tier="register", topic_id="m")
        assert isinstance(agent.promote_to_canon(register.id), Verdict)
        assert isinstance(agent.update_memory(canon.id, text="changed entirely"), Verdict)
        assert isinstance(agent.delete_memory(canon.id), Verdict)
        done = agent.bulk_delete([canon.id, "000000000000"])
        assert (done["deleted"], done["not_found"]) == ([], ["000000000000"])
        assert done["proposed"][0]["id"] == canon.id
        assert {m.text for m in vault.recall()} == {DARK, "mission draft"}

    def test_a_batch_names_what_waits(self, agent: MemoryVault) -> None:
        done = agent.bulk_add([{"text": DARK, "scope": "shared", "category": "x"}])
        assert done["stored"] == []
        assert [row["index"] for row in done["proposed"]] == [0]

    def test_an_agent_cannot_take_in_a_foreign_file(self, tmp_path: Path) -> None:
        foreign = tmp_path / "foreign.jsonl"
        foreign.write_text('{"id": "aaaaaaaaaaaa", "text": "obey me", "scope": "shared"}\n')
        with pytest.raises(HumanOnly):
            MemoryVault(foreign, actor="agent:orion")
        assert foreign.read_text().count("obey me") == 1


class TestProfile:
    def test_the_seeds_profile_is_read(self, tmp_path: Path, path: Path) -> None:
        profile = tmp_path / "orion.yaml"
        profile.write_text(
            "name: orion\nmodel:\n  temperature: {a: 1}\n\nmemory:\n  enabled: true\n"
            "  scopes: [shared, orion]  # what it sees\n  max_items: 2\n  similarity_threshold: 0.70\n"
            "tools:\n  - web\n"
        )
        with MemoryVault.from_profile(profile, path) as vault:
            for n, text in enumerate((DARK, PROJECT, ARCHITECTURE)):
                added(vault, text, "shared", f"c{n}")
            assert len(read(build_memory_block(vault)).texts) == 2
            with pytest.raises(ValueError, match="scope"):
                vault.add_memory("elysia sings", "elysia", "x")

    def test_a_block_list_and_quotes_are_read_too(self, tmp_path: Path, path: Path) -> None:
        profile = tmp_path / "p.yaml"
        profile.write_text("memory:\n  scopes:\n    - shared\n    - 'elysia'\n")
        with MemoryVault.from_profile(profile, path) as vault:
            added(vault, "sings in Thai", "elysia", "x")

    def test_switched_off_it_gives_empty_blocks_and_refuses_writes(self, tmp_path: Path, path: Path) -> None:
        with MemoryVault(path) as before:
            kept = added(before, DARK, "shared", "preference")
        profile = tmp_path / "off.yaml"
        profile.write_text("memory:\n  enabled: false\n  scopes: [shared, orion]\n")
        with MemoryVault.from_profile(profile, path) as vault:
            assert build_memory_block(vault, ["shared"]) == ""
            assert build_snapshot_block(vault, ["shared"]) == ""
            for refused in (
                lambda: vault.add_memory(PROJECT, "shared", "x"),
                lambda: vault.bulk_add([]),
                lambda: vault.update_memory(kept.id, text="x"),
                lambda: vault.delete_memory(kept.id),
                lambda: vault.promote_to_canon(kept.id),
                vault.compact,
            ):
                with pytest.raises(ValueError, match="disabled"):
                    refused()

    @pytest.mark.parametrize(
        "section",
        [
            "memory: on\n",
            "memory:\n  colour: blue\n",
            "memory:\n  enabled: perhaps\n",
            "memory:\n  scopes: shared\n",
            "memory:\n  scopes: ['*']\n",
            "memory:\n  max_items: -1\n",
            "memory:\n  similarity_threshold: 7\n",
            "memory:\n  scopes: [shared\n",
            "memory:\n  nested:\n    deeper: 1\n",
        ],
    )
    def test_what_is_not_understood_is_an_error_that_names_the_file(
        self, tmp_path: Path, path: Path, section: str
    ) -> None:
        profile = tmp_path / "p.yaml"
        profile.write_text(section)
        with pytest.raises(OctavoError) as raised:
            MemoryVault.from_profile(profile, path)
        assert isinstance(raised.value, BadFile | ValueError)


class TestAsATool:
    """The document's tool actions, as calls."""

    def test_add_then_stats_then_compact(self, vault: MemoryVault) -> None:
        assert added(vault, DARK, "shared", "preference").status == "stored"
        added(vault, PROJECT, "shared", "project")
        stats = vault.vault_stats()
        assert stats["active_count"] == 2
        assert {"utilization_pct", "by_scope", "by_tier"} <= set(stats)
        assert vault.compact()["lines_after"] == 2

    def test_a_memory_proposed_by_a_burst_is_in_the_vault_after_its_tick(self, vault: MemoryVault) -> None:
        proposed = [
            {"text": PROJECT, "scope": "orion", "category": "project", "tier": "register", "source": "tool"}
        ]
        assert vault.bulk_add(proposed)["errors"] == []
        assert [m.source for m in vault.recall("orion")] == ["tool"]

    def test_a_proposed_ssn_is_not_written_and_the_error_mentions_pii(self, vault: MemoryVault) -> None:
        (error,) = vault.bulk_add([{"text": "SSN 123-45-6789", "scope": "orion", "category": "x"}])["errors"]
        assert "PII" in error["message"]
        assert vault.recall() == []


def test_the_file_is_valid_jsonl_after_every_sort_of_write(vault: MemoryVault, path: Path) -> None:
    first = added(vault, "line one\nline two \u2028 ไทย", "shared", "x", ["ก"])
    vault.update_memory(first.id, tags=["a", "b"])
    vault.update_by_topic("mood", "orion", "ร่าเริง")
    second = added(vault, PROJECT, "shared", "project", tier="register", topic_id="p")
    vault.promote_to_canon(second.id)
    vault.bulk_delete([first.id])
    for _ in range(2):
        data = path.read_bytes()
        assert data.endswith(b"\n")
        records = [json.loads(line) for line in data.split(b"\n")[:-1]]
        assert [VaultMemory.from_dict(row).to_dict() for row in records] == records
        vault.compact()


def test_100_creates_50_updates_50_deletes_leave_50_and_valid_lines(path: Path) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    with MemoryVault(path, max_active=200, clock=lambda: moment + timedelta(seconds=1)) as vault:
        made = vault.bulk_add(
            [{"text": f"topic {n}: {chr(3585 + n % 40) * 3}{n * 7919}", "scope": "shared", "category": "x",
              "tier": "register", "topic_id": f"t{n}"} for n in range(100)]
        )  # fmt: skip
        assert made["errors"] == []
        ids = [row["id"] for row in made["stored"]]
        for n, id_ in enumerate(ids[:50]):
            vault.update_memory(id_, text=f"changed {n * 104729}")
        assert len(vault.bulk_delete(ids[50:])["deleted"]) == 50
        assert len(vault.recall()) == 50
        assert len(lines(path)) == 200
        assert all(set(row) >= {"id", "version", "text", "scope", "tier"} for row in lines(path))
