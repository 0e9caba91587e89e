"""Foreign vault.jsonl files: taken in without loss, whatever state they are in, and written out again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from octavo import Account
from octavo.documents.vault import MemoryVault, VaultMemory
from octavo.documents.vault.lines import export, import_, parse
from octavo.errors import BadInput, HumanOnly

OLD = {
    "id": "1a2b3c4d5e6f",
    "text": "Creator lives in Austin",
    "scope": "shared",
    "category": "bio",
    "created_at": "2026-02-12T09:30:00-06:00",
}


def record(id_: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "version": 1,
        "created_at": "2026-02-12T09:30:00+00:00",
        "updated_at": None,
        "tier": "canon",
        "source": "manual",
        "scope": "shared",
        "category": "bio",
        "tags": [],
        "deleted_at": None,
        "text": text,
        **more,
    }


def written(path: Path, *given: dict[str, Any], tail: str = "") -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in given) + tail)
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


HISTORY = [
    record("aaaaaaaaaaaa", "likes tea", tags=["drink"]),
    record("bbbbbbbbbbbb", "งาน: แดชบอร์ด", tier="register", topic_id="current_projects", scope="orion"),
    record("aaaaaaaaaaaa", "likes green tea", tags=["drink"], version=2,
           updated_at="2026-02-13T10:00:00+00:00"),
    record("cccccccccccc", "owns a boat", mood="proud", nested={"a": [1, None, {"b": "c"}]}),
    record("bbbbbbbbbbbb", "งาน: แดชบอร์ด อีเมล", tier="register", topic_id="current_projects",
           scope="orion", version=2, updated_at="2026-02-14T10:00:00+00:00", source="tool"),
    record("cccccccccccc", "owns a boat", version=2, updated_at="2026-02-15T10:00:00+00:00", mood="proud",
           nested={"a": [1, None, {"b": "c"}]}, deleted_at="2026-02-15T10:00:00+00:00"),
]  # fmt: skip


def test_every_line_of_a_file_comes_back_out(account: Account, tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", *HISTORY)
    done = import_(account, source)
    assert (done.version, sum(done.counts.values())) == (account.version, len(HISTORY))
    assert (done.changed, done.left_out, done.notes) == ((), (), ())
    assert sum(export(account, tmp_path / "out.jsonl").counts.values()) == len(HISTORY)
    by_key = {(row["id"], row["version"]): row for row in rows(tmp_path / "out.jsonl")}
    assert by_key == {(row["id"], row["version"]): row for row in HISTORY}


def test_importing_twice_changes_nothing(account: Account, tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", *HISTORY)
    import_(account, source)
    version = account.version
    again = import_(account, source)
    assert (again.version, again.counts, again.notes) == (version, {}, ())


def test_a_found_file_is_opened_with_all_its_history(tmp_path: Path) -> None:
    path = written(tmp_path / "vault.jsonl", *HISTORY)
    with MemoryVault(path) as vault:
        assert {m.id for m in vault.recall()} == {"aaaaaaaaaaaa", "bbbbbbbbbbbb"}
        found = vault.get("aaaaaaaaaaaa")
        assert found is not None
        assert found.to_dict() == HISTORY[2]
        assert vault.resolve_latest()["cccccccccccc"].deleted_at == "2026-02-15T10:00:00+00:00"
        assert vault.problems == []
        assert vault.vault_stats()["raw_lines"] == 6
        again = vault.add_memory("งาน: ใหม่", "orion", "x", tier="register", topic_id="current_projects")
        assert isinstance(again, VaultMemory)
        assert (again.id, again.version) == ("bbbbbbbbbbbb", 3)
    assert not path.with_name("vault.jsonl.imported").exists()


def test_old_records_read_as_canon_without_a_topic_and_can_be_updated(tmp_path: Path) -> None:
    path = written(tmp_path / "vault.jsonl", OLD)
    with MemoryVault(path) as vault:
        (found,) = vault.recall()
        assert (found.tier, found.topic_id, found.version, found.tags) == ("canon", None, 1, ())
        assert found.created_at == OLD["created_at"]
        after = vault.update_memory(found.id, text="Creator lives in Chiang Mai")
        assert isinstance(after, VaultMemory)
        assert (after.version, after.created_at) == (2, OLD["created_at"])


def test_a_compacted_file_keeps_its_version_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "vault.jsonl", record("aaaaaaaaaaaa", "likes tea", version=7))
    with MemoryVault(path) as vault:
        assert [m.version for m in vault.recall()] == [7]
        after = vault.update_memory("aaaaaaaaaaaa", text="likes coffee")
        assert isinstance(after, VaultMemory)
        assert after.version == 8
    assert [row["version"] for row in rows(path)] == [7, 8]


def test_a_torn_last_line_is_skipped_and_reported_and_the_earlier_records_load(tmp_path: Path) -> None:
    path = written(tmp_path / "vault.jsonl", *HISTORY[:2], tail='{"id": "dddddddddddd", "te')
    original = path.read_bytes()
    with MemoryVault(path) as vault:
        assert len(vault.recall()) == 2
        (problem,) = vault.problems
        assert (problem.line, problem.check) == (3, "torn")
        vault.add_memory("written after the tear", "shared", "x")
    assert len(rows(path)) == 3
    assert path.with_name("vault.jsonl.imported").read_bytes() == original


def test_a_last_line_without_a_newline_is_a_record_if_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "vault.jsonl"
    path.write_text(json.dumps(OLD))
    with MemoryVault(path) as vault:
        assert len(vault.recall()) == 1
        assert vault.problems == []


@pytest.mark.parametrize(
    "bad",
    ["not json", "[1, 2]", "{}", '{"id": "x", "text": 5}', '{"text": "a", "tags": "b"}',
     '{"text": "a", "version": 0}', '{"text": "a", "scope": 5}', "\ufffd", '{"text": "   "}'],
)  # fmt: skip
def test_one_bad_line_costs_itself_alone_and_is_kept_beside_the_file(tmp_path: Path, bad: str) -> None:
    path = tmp_path / "vault.jsonl"
    path.write_text(f"{json.dumps(HISTORY[0])}\n{bad}\n\n{json.dumps(OLD)}\n")
    with MemoryVault(path) as vault:
        assert len(vault.recall()) == 2
        assert [(p.line, p.check) for p in vault.problems] == [(2, "unreadable")]
    assert bad in path.with_name("vault.jsonl.imported").read_text()


def test_what_the_gate_would_refuse_is_kept_and_listed(tmp_path: Path) -> None:
    path = written(
        tmp_path / "vault.jsonl",
        record("aaaaaaaaaaaa", "tick marker for burst 5"),
        record("bbbbbbbbbbbb", "z" * 1500),
        record("cccccccccccc", "User prefers dark mode in all apps"),
        record("dddddddddddd", "User prefers dark mode in all applications"),
        record("eeeeeeeeeeee", "perfectly fine"),
    )
    with MemoryVault(path, max_active=2) as vault:
        assert len(vault.recall()) == 5
        assert {(p.id, p.check) for p in vault.problems} == {
            ("aaaaaaaaaaaa", "noise"),
            ("bbbbbbbbbbbb", "length"),
        }
    assert len(rows(path)) == 5
    assert not path.with_name("vault.jsonl.imported").exists()


def test_a_secret_is_masked_in_the_ledger_and_the_file_and_the_original_stays_beside(tmp_path: Path) -> None:
    path = written(tmp_path / "vault.jsonl", record("aaaaaaaaaaaa", "the wifi password: hunter2hunter2"))
    with MemoryVault(path) as vault:
        (found,) = vault.recall()
        assert "hunter2hunter2" not in found.text
        assert "wifi" in found.text
        assert [(p.id, p.check) for p in vault.problems] == [("aaaaaaaaaaaa", "secret")]
    assert "hunter2hunter2" not in path.read_text()
    inside = [f for f in path.with_name("vault.jsonl.octavo").rglob("*") if f.is_file()]
    assert inside
    assert all(b"hunter2hunter2" not in f.read_bytes() for f in inside)
    assert "hunter2hunter2" in path.with_name("vault.jsonl.imported").read_text()


def test_of_two_lines_with_one_version_the_first_wins_and_both_are_in_the_history(tmp_path: Path) -> None:
    path = written(
        tmp_path / "vault.jsonl",
        record("aaaaaaaaaaaa", "one"),
        record("aaaaaaaaaaaa", "two, by the winner", version=2),
        record("aaaaaaaaaaaa", "two, by the loser", version=2),
    )
    with MemoryVault(path) as vault:
        assert [m.text for m in vault.recall()] == ["two, by the winner"]
        said = [r.memory.text for r in vault.account.history("aaaaaaaaaaaa")]
    assert said == ["one", "two, by the loser", "two, by the winner"]


def test_two_memories_that_raced_for_a_topic_are_both_kept(tmp_path: Path) -> None:
    path = written(
        tmp_path / "vault.jsonl",
        record("aaaaaaaaaaaa", "at sea", tier="register", topic_id="where"),
        record("bbbbbbbbbbbb", "in the mountains", tier="register", topic_id="where"),
    )
    with MemoryVault(path) as vault:
        assert {m.id: m.topic_id for m in vault.recall()} == {
            "aaaaaaaaaaaa": "where",
            "bbbbbbbbbbbb": "where",
        }
        assert [(p.id, p.check) for p in vault.problems] == [("aaaaaaaaaaaa", "topic")]
        after = vault.update_by_topic("where", "shared", "back home")
        assert isinstance(after, VaultMemory)
        assert after.id == "bbbbbbbbbbbb"


def test_a_tombstone_alone_stays_one_line(tmp_path: Path) -> None:
    gone = record("aaaaaaaaaaaa", "long gone", version=4, updated_at="2026-02-15T10:00:00Z",
                  deleted_at="2026-02-15T10:00:00Z")  # fmt: skip
    path = written(tmp_path / "vault.jsonl", gone, record("bbbbbbbbbbbb", "still here"))
    with MemoryVault(path) as vault:
        assert [m.id for m in vault.recall()] == ["bbbbbbbbbbbb"]
        assert vault.vault_stats()["deleted_count"] == 1
    assert gone in rows(path)
    assert len(rows(path)) == 2


def test_a_promotion_in_the_history_is_told_as_it_was(tmp_path: Path) -> None:
    path = written(
        tmp_path / "vault.jsonl",
        record("aaaaaaaaaaaa", "mission draft", tier="register", topic_id="mission"),
        record("aaaaaaaaaaaa", "Mission: explore", topic_id="mission", version=2, source="promotion"),
    )
    with MemoryVault(path) as vault:
        (found,) = vault.recall()
        assert (found.tier, found.source, found.topic_id) == ("canon", "promotion", "mission")
    assert [row["tier"] for row in rows(path)] == ["register", "canon"]


def test_names_an_account_cannot_hold_are_changed_never_widened_and_listed(tmp_path: Path) -> None:
    path = written(
        tmp_path / "vault.jsonl",
        record("has spaces", "one", scope="Team A"),
        record("bbbbbbbbbbbb", "two", scope="zeta", source="telepathy"),
        record("cccccccccccc", "three", tier="log"),
    )
    with MemoryVault(path) as vault:
        assert {m.scope for m in vault.recall()} == {"team-a", "zeta", "shared"}
        assert {p.check for p in vault.problems} == {"name"}
        assert vault.recall("zeta")[0].source == "telepathy"
        assert {m.tier for m in vault.recall("shared")} == {"register"}


def test_what_a_person_refused_does_not_come_back_by_import(account: Account, tmp_path: Path) -> None:
    account.reject("likes tea", reason="wrong")
    source = written(
        tmp_path / "in.jsonl", record("aaaaaaaaaaaa", "Likes  TEA"), record("bbbbbbbbbbbb", "owns a boat")
    )
    (note,) = import_(account, source).left_out
    assert (note.place, note.reason.split(":")[0]) == ("line 1", "rejection")
    assert [m.text for m in account.memories()] == ["owns a boat"]


def test_only_a_person_imports_and_a_missing_file_is_an_error(agent: Account, tmp_path: Path) -> None:
    source = written(tmp_path / "in.jsonl", OLD)
    with pytest.raises(HumanOnly):
        import_(agent, source)
    with pytest.raises(BadInput):
        import_(agent, tmp_path / "nowhere.jsonl")


def test_an_account_without_vault_memories_exports_nothing(account: Account, tmp_path: Path) -> None:
    account.remember("a fact is no line of a vault", kind="fact")
    done = export(account, tmp_path / "out.jsonl")
    assert (done.counts, done.left_out) == ({}, {"fact": 1})
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_a_secret_that_a_tombstone_repeats_is_masked_and_the_memory_still_comes_and_ends(
    account: Account, tmp_path: Path
) -> None:
    living = record("aaaaaaaaaaaa", "รหัส password: hunter2-Zq81")
    ended = {**living, "version": 2, "deleted_at": "2026-02-15T10:00:00+00:00"}
    done = import_(account, written(tmp_path / "in.jsonl", living, ended))
    assert ([note.place for note in done.changed], done.left_out, done.notes) == (["line 1"], (), ())
    export(account, tmp_path / "out.jsonl")
    assert [(row["version"], row["deleted_at"]) for row in rows(tmp_path / "out.jsonl")] == [
        (1, None),
        (2, "2026-02-15T10:00:00+00:00"),
    ]
    assert "hunter2" not in (tmp_path / "out.jsonl").read_text()


def test_parse_names_lines_from_one_and_skips_blank_ones() -> None:
    lines, problems = parse(b'\n{"text": "a"}\n\nnonsense\n{"text": "b"}')
    assert [number for number, _, _ in lines] == [2, 5]
    assert [(p.line, p.check) for p in problems] == [(4, "unreadable")]


def test_a_foreign_line_goes_out_with_the_fields_and_in_the_order_it_came(
    account: Account, tmp_path: Path
) -> None:
    strange = {"text": "ชอบชาเขียว", "id": "abcabcabcabc", "mood": ["calm", {"x": 1.0}], "version": 3}
    source = written(tmp_path / "in.jsonl", strange, OLD)
    import_(account, source)
    export(account, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == source.read_bytes()
    account.revise("abcabcabcabc", text="ชอบชาเขียวเย็น")
    export(account, tmp_path / "out.jsonl")
    *same, changed = rows(tmp_path / "out.jsonl")
    assert same == [strange, OLD]
    assert (changed["text"], changed["version"], changed["mood"]) == ("ชอบชาเขียวเย็น", 4, strange["mood"])


def test_an_export_is_private_to_its_owner_and_a_failed_one_leaves_the_old_file(
    account: Account, tmp_path: Path
) -> None:
    import_(account, written(tmp_path / "in.jsonl", OLD))
    export(account, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.glob(".tmp-*")] == []
