"""Seed 001's tree in and out: nothing lost, order and counters kept, a second import changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import octavo
from octavo.documents import Exported, Imported
from octavo.documents.formats import export_account, import_account
from octavo.domain.compression import CompressionPolicy
from octavo.errors import BadFile, BadInput, NotFound, OutOfScope
from seed_001 import SEED_CORE, SEED_SPHERE

NOW = octavo.Policy(compression=CompressionPolicy(mode="immediate"))
MANUAL = octavo.Policy(compression=CompressionPolicy(mode="manual"))
EPISODES = "consciousness/01_Episodic_memory/episodes"
COUNTERS = "consciousness/09_state/compression_counters.json"

Opened = Callable[..., octavo.Account]


def export(account: octavo.Account, path: Path) -> Exported:
    done: Exported = export_account(account, path, "consciousness")
    return done


def import_(account: octavo.Account, path: Path) -> Imported:
    done: Imported = import_account(account, path, "consciousness")
    return done


def live(account: octavo.Account, sessions: int, scope: str = "shared", start: int = 0) -> None:
    for n in range(start, start + sessions):
        with account.sandbox(f"S{n}", scope=scope) as sandbox:
            sandbox.turn(
                "user", f"I always drink green tea, cup {n}.", emotion={"label": "calm", "valence": 0.4}
            )
            sandbox.turn("assistant", "Lovely.")
            sandbox.turn("user", f"เมื่อวานฉันไปตลาดกับแม่ครั้งที่ {n}", salience=0.85 if n % 8 == 3 else 0.4)


def tree_of(folder: Path) -> dict[str, Any]:
    """Every file below a folder: JSON as values, all else as bytes."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            is_json = path.suffix == ".json"
            found[path.relative_to(folder).as_posix()] = json.loads(data) if is_json else data
    return found


def put(folder: Path, files: dict[str, Any]) -> Path:
    for name, value in files.items():
        path = folder / "consciousness" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
        path.write_bytes(data)
    return folder


def foreign(sessions: int, **more: Any) -> dict[str, Any]:
    """The episodes of a tree that another program wrote, two a session."""
    found = {}
    for n in range(sessions):
        for part in (1, 2):
            found[f"01_Episodic_memory/episodes/ep_2601{n + 1:02d}_{n:02d}a{part}.json"] = {
                "episode_id": f"ep_2601{n + 1:02d}_{n:02d}a{part}",
                "session_id": f"THA-01-S{n:03d}",
                "timestamp": f"2026-01-{n + 1:02d}T1{part}:00:00",
                "turn_1": {"speaker": "บอส", "raw_text": f"ขอบคุณที่มาส่งครั้งที่ {n}", "mood": ["warm"]},
                "turn_2": {"speaker": "EVA", "text_excerpt": "ยินดีค่ะ"},
                "state_snapshot": {"RI": 0.85, "EVA_matrix": {"emotion_label": "gratitude", "stress": 0.2}},
                "schema_version": 2,
                **more,
            }
    return found


def core(sequence: int, names: list[str]) -> dict[str, Any]:
    id_ = f"core_{sequence // 8:03d}_{sequence % 8:03d}"
    place = {"core_id": id_, "sphere_seq": sequence // 8, "core_seq": sequence % 8}
    return {**SEED_CORE, **place, "source_sessions": names, "eva_version": {"major": 9}}


def names(first: int, count: int = 8) -> list[str]:
    return [f"THA-01-S{n:03d}" for n in range(first, first + count)]


def test_the_files_stand_where_the_seed_puts_them(opened: Opened, tmp_path: Path) -> None:
    account = opened(policy=NOW)
    live(account, 65)
    export(account, tmp_path)
    tree = tree_of(tmp_path)
    counters = tree[COUNTERS]
    assert [counters[n] for n in ("Session_seq", "Core_seq", "Sphere_seq", "Total_sessions")] == [1, 0, 1, 65]
    assert counters["last_update"] == account.counters()["last_update"]
    assert tree["consciousness/06_Core_memory/core_000_001.json"]["core_id"] == "core_000_001"
    assert tree["consciousness/07_Sphere_memory/sphere_000.json"]["session_count"] == 64
    assert "made_from" not in tree["consciousness/07_Sphere_memory/sphere_000.json"]
    episodes = [value for name, value in tree.items() if name.startswith(EPISODES)]
    assert len(episodes) == 130
    by_session = {session.sandbox: dict(session.position) for session in account.sessions()}
    assert all(value["compression_meta"] == by_session[value["session_id"]] for value in episodes)
    day = account.memories(kind="episode")[0].at.strftime("%y%m%d")
    assert all(name.startswith((f"{EPISODES}/ep_{day}_",)) for name in tree if name.startswith(EPISODES))


def test_an_account_exported_and_imported_is_the_same_and_goes_on_counting(
    opened: Opened, tmp_path: Path
) -> None:
    account = opened(policy=NOW)
    live(account, 18)
    account.remember("a note beside the sessions", kind="episode")
    export(account, tmp_path / "one")
    copy = opened(account="Copy", policy=NOW)
    done = import_(copy, tmp_path / "one")
    assert done.counts == {"session": 18, "episode": 37, "core": 2}
    assert (done.left_out, done.changed, done.notes) == ((), (), ())
    assert [s.sandbox for s in copy.sessions()] == [s.sandbox for s in account.sessions()]
    for kind in ("episode", "core"):
        mine, theirs = account.memories(kind=kind), copy.memories(kind=kind)
        assert [
            (m.id, m.text, m.salience, m.emotion and m.emotion.label, m.links, m.sandbox)
            for m in mine
            if kind != "core"
        ] == [
            (m.id, m.text, m.salience, m.emotion and m.emotion.label, m.links, m.sandbox)
            for m in theirs
            if kind != "core"
        ]
        assert [m.text for m in mine] == [m.text for m in theirs]
    assert copy.check()
    export(copy, tmp_path / "two")
    assert tree_of(tmp_path / "two") == tree_of(tmp_path / "one")
    assert copy.compress() == []
    live(copy, 6, start=18)
    assert copy.counters()["Total_sessions"] == 24
    assert copy.get("core_000_002") is not None


def test_a_second_import_changes_nothing(opened: Opened, tmp_path: Path) -> None:
    account = opened(policy=NOW)
    live(account, 9)
    export(account, tmp_path)
    copy = opened(account="Copy", policy=NOW)
    import_(copy, tmp_path)
    before = copy.version
    done = import_(copy, tmp_path)
    assert (copy.version, done.counts, done.left_out) == (before, {}, ())
    assert done.unchanged == 19
    own = import_(account, tmp_path)
    assert (own.counts, own.left_out, own.unchanged) == ({}, (), 19)


def test_a_foreign_tree_comes_back_as_it_was_and_only_what_is_derived_is_added(
    opened: Opened, tmp_path: Path
) -> None:
    counters = {"Session_seq": 2, "Core_seq": 1, "Sphere_seq": 0, "last_update": "2026-01-11T15:00:00"}
    files: dict[str, Any] = {
        **foreign(10),
        "06_Core_memory/core_000_000.json": core(0, names(0)),
        "09_state/compression_counters.json": {**counters, "note": "ดูแลโดยบอส"},
        "09_state/ire_state.json": {"stress": 0.2},
        "01_Episodic_memory/episodic_index.jsonl": b'{"a": 1}\n{"b": 2}\n',
        "02_Semantic_memory/blob.bin": b"\x00\xff\x01",
        "04_Session_Memory/THA-01-S003_SP1C1_SS6.json": {"summary": "บอสเดินทาง", "session_id": "THA-01-S005"},
    }
    put(tmp_path / "in", files)
    account = opened(policy=NOW)
    done = import_(account, tmp_path / "in")
    assert (done.counts, done.left_out) == ({"session": 10, "episode": 20, "core": 1}, ())
    assert done.notes == ()
    assert [s.sandbox for s in account.sessions()] == names(0, 10)
    adopted = account.get("core_000_000")
    assert adopted is not None
    assert adopted.text.startswith("ช่วง 3 วันที่ผ่านมา")
    assert len(adopted.linked("part")) == 16
    export(account, tmp_path / "out")
    given, written = tree_of(tmp_path / "in"), tree_of(tmp_path / "out")
    for name, value in given.items():
        got = written[name]
        if name.startswith(EPISODES):
            assert got.pop("compression_meta").keys() == {"session_seq", "core_seq", "sphere_seq"}
        if name == COUNTERS:
            assert got.pop("Total_sessions") == 10
        assert got == value
    added = written.keys() - given.keys()
    assert len(added) == 9  # the tree's own page of the sixth session stays in its place
    assert all(name.startswith("consciousness/04_Session_Memory/") for name in added)
    before = account.version
    import_(account, tmp_path / "out")
    assert account.version == before


def test_sessions_without_a_name_are_told_apart_by_place_then_by_day(opened: Opened, tmp_path: Path) -> None:
    files = {}
    for name, value in foreign(4).items():
        del value["session_id"]
        files[name] = value
    account = opened(policy=MANUAL)
    assert import_(account, put(tmp_path / "days", files)).counts["session"] == 4
    assert [s.sandbox for s in account.sessions()] == [f"session_26010{n}" for n in (1, 2, 3, 4)]
    placed = {}
    for n, (name, value) in enumerate(files.items()):
        meta = {"session_seq": 7 - n // 4, "core_seq": 0, "sphere_seq": 0}
        placed[name] = {**value, "compression_meta": meta, "timestamp": "2026-01-01T00:00:00"}
    other = opened(account="Other", policy=MANUAL)
    done = import_(other, put(tmp_path / "places", placed))
    assert [s.sandbox for s in other.sessions()] == ["session_000_000_006", "session_000_000_007"]
    assert any("another compression_meta" in note.reason for note in done.notes)


def test_a_tree_that_counted_episodes_is_counted_by_sessions_and_says_so(
    opened: Opened, tmp_path: Path
) -> None:
    wrong = {"Session_seq": 4, "Core_seq": 0, "Sphere_seq": 0, "last_update": "2026-01-01T15:00:00"}
    put(tmp_path, {**foreign(2), "09_state/compression_counters.json": wrong})
    account = opened(policy=MANUAL)
    done = import_(account, tmp_path)
    assert account.counters()["Total_sessions"] == 2
    assert any("does not fit the 2 sessions" in note.reason for note in done.notes)
    export(account, tmp_path / "out")
    assert tree_of(tmp_path / "out")[COUNTERS]["Session_seq"] == 2


def test_the_seeds_own_files_come_in_though_their_sessions_are_not_there(
    opened: Opened, tmp_path: Path
) -> None:
    files = {
        "06_Core_memory/core_000_001.json": SEED_CORE,
        "07_Sphere_memory/sphere_000.json": SEED_SPHERE,
        **foreign(1),
    }
    account = opened(policy=NOW)
    done = import_(account, put(tmp_path / "in", files))
    assert (done.counts["core"], done.counts["sphere"]) == (1, 1)
    assert account.counters()["Total_sessions"] == 64
    sphere = account.get("sphere_000")
    assert sphere is not None
    assert "บอสเชื่อใจและพึ่งพาในการทำงาน" in sphere.text
    assert account.check()
    assert not {"core_000_001", "sphere_000"} & {memory.id for memory in account.compress()}
    live(account, 1)
    assert account.counters()["Session_seq"] == 1
    export(account, tmp_path / "out")
    written = tree_of(tmp_path / "out")
    assert written["consciousness/06_Core_memory/core_000_001.json"] == SEED_CORE
    assert written["consciousness/07_Sphere_memory/sphere_000.json"] == SEED_SPHERE


def test_cores_of_other_sessions_than_those_here_are_listed_and_made_anew(
    opened: Opened, tmp_path: Path
) -> None:
    put(tmp_path, {**foreign(8), "06_Core_memory/core_000_000.json": core(0, names(0))})
    account = opened(policy=NOW)
    live(account, 1)
    done = import_(account, tmp_path)
    assert [note.place for note in done.left_out] == ["core_000_000"]
    assert "are others here" in done.left_out[0].reason
    assert account.counters()["Total_sessions"] == 9
    assert [memory.id for memory in account.compress()] == ["core_000_000"]


def test_an_agent_imports_episodes_but_no_summaries(opened: Opened, tmp_path: Path) -> None:
    put(tmp_path, {**foreign(8), "06_Core_memory/core_000_000.json": core(0, names(0))})
    agent = opened("agent:bot", policy=MANUAL)
    done = import_(agent, tmp_path)
    assert (done.counts["session"], "core" in done.counts) == (8, False)
    assert [note.place for note in done.left_out] == ["core_000_000"]


def test_private_scopes_keep_to_themselves(opened: Opened, tmp_path: Path) -> None:
    account = opened(policy=NOW)
    live(account, 8)
    live(account, 9, scope="orion", start=100)
    export(account, tmp_path / "all")
    tree = tree_of(tmp_path / "all")
    assert tree[COUNTERS]["Total_sessions"] == 8
    assert tree[COUNTERS.replace(".json", "@orion.json")]["Total_sessions"] == 9
    export(opened("agent:elysia", scope="elysia"), tmp_path / "elysia")
    seen = tree_of(tmp_path / "elysia")
    assert "orion" not in str(seen)
    assert "cup 100" not in str(seen)
    copy = opened(account="Copy", policy=NOW)
    import_(copy, tmp_path / "all")
    assert copy.counters("orion")["Total_sessions"] == 9
    private = copy.get("core_000_000@orion")
    assert private is not None
    assert private.scope == "orion"
    export(copy, tmp_path / "again")
    assert tree_of(tmp_path / "again") == tree
    with pytest.raises(OutOfScope):
        import_(opened("human:you", account="Third", scope="elysia"), tmp_path / "all")


def test_retired_and_forgotten_originals_keep_their_sessions_places(opened: Opened, tmp_path: Path) -> None:
    policy = octavo.Policy(compression=CompressionPolicy(mode="immediate", retire=True))
    account = opened(policy=policy)
    live(account, 9)
    assert account.upkeep().retired
    account.forget(
        *[m.id for m in account.memories(kind="episode", from_sandbox=account.sessions()[8].sandbox)]
    )
    export(account, tmp_path / "one")
    assert sum(name.startswith(EPISODES) for name in tree_of(tmp_path / "one")) == 16
    copy = opened(account="Copy", policy=policy)
    done = import_(copy, tmp_path / "one")
    assert done.counts["session"] == 9
    assert [s.sandbox for s in copy.sessions()] == [s.sandbox for s in account.sessions()]
    export(copy, tmp_path / "two")
    assert tree_of(tmp_path / "two") == tree_of(tmp_path / "one")
    assert len(copy.upkeep().retired) == 15


def test_an_interrupted_import_goes_on_where_it_stopped(opened: Opened, tmp_path: Path) -> None:
    files = {**foreign(9), "06_Core_memory/core_000_000.json": core(0, names(0))}
    put(tmp_path / "whole", files)
    account = opened(policy=NOW)
    import_(account, put(tmp_path / "some", dict(list(files.items())[:7])))
    assert account.counters()["Total_sessions"] == 4
    done = import_(account, tmp_path / "whole")
    assert (done.counts["session"], done.counts["core"], done.left_out) == (5, 1, ())
    assert [s.sandbox for s in account.sessions()] == names(0, 9)
    assert len(account.memories(kind="episode")) == 18


def test_secrets_are_masked_and_listed(opened: Opened, tmp_path: Path) -> None:
    secret = "sk-live-4242424242424242abcdefgh"
    told = core(0, names(0))
    told["compressed_narrative"] = {**told["compressed_narrative"], "summary": f"กุญแจคือ {secret}"}
    files = {**foreign(8, note=f"key {secret}"), "06_Core_memory/core_000_000.json": told}
    account = opened(policy=NOW)
    done = import_(account, put(tmp_path, files))
    assert len(done.changed) == 17
    export(account, tmp_path / "out")
    assert secret not in str(tree_of(tmp_path / "out"))


def test_what_a_person_refused_does_not_return_in_a_foreign_core(opened: Opened, tmp_path: Path) -> None:
    told = core(0, names(0))
    told["compressed_narrative"] = {**told["compressed_narrative"], "summary": "Maya is a spy. They met."}
    account = opened(policy=MANUAL)
    account.reject("Maya is a spy.")
    done = import_(account, put(tmp_path, {**foreign(8), "06_Core_memory/core_000_000.json": told}))
    assert ("core" in done.counts, len(done.left_out)) == (False, 1)
    assert account.get("core_000_000") is None


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("06_Core_memory/core_000_000.json", {"core_id": "core_000_000"}, "has another shape"),
        ("06_Core_memory/core_000_003.json", SEED_CORE, "does not name the core it holds"),
        ("06_Core_memory/core_999_000.json", {"core_id": "core_999_000"}, "stands too far ahead"),
        ("07_Sphere_memory/sphere_000.json", [1, 2], "holds no object"),
        ("01_Episodic_memory/episodes/list.json", [], "holds no object"),
    ],
)
def test_a_file_of_another_shape_is_kept_as_a_file_and_named(
    opened: Opened, tmp_path: Path, name: str, value: Any, why: str
) -> None:
    account = opened(policy=MANUAL)
    done = import_(account, put(tmp_path / "in", {**foreign(1), name: value}))
    assert done.files == (name,)
    assert any(note.place == name and why in note.reason for note in done.notes)
    export(account, tmp_path / "out")
    assert tree_of(tmp_path / "out")[f"consciousness/{name}"] == value


@pytest.mark.parametrize(
    "change",
    [
        {"made_from": 3},
        {"session_count": 5},
        {"timestamp_end": "yesterday"},
        {
            "compressed_narrative": {
                **SEED_CORE["compressed_narrative"],
                "digests": [{"session": "s", "at": "soon", "text": "x"}],
            }
        },
        {
            "compressed_narrative": {
                **SEED_CORE["compressed_narrative"],
                "statements": [{"kind": "decision", "text": ""}],
            }
        },
    ],
)
def test_a_core_that_cannot_stand_here_is_listed_not_taken(
    opened: Opened, tmp_path: Path, change: dict[str, Any]
) -> None:
    account = opened(policy=MANUAL)
    files = {**foreign(8), "06_Core_memory/core_000_000.json": {**core(0, names(0)), **change}}
    done = import_(account, put(tmp_path, files))
    assert (done.counts["session"], "core" in done.counts) == (8, False)
    assert [note.place for note in done.left_out] == ["core_000_000"]


def test_a_broken_file_is_named_and_nothing_is_written(opened: Opened, tmp_path: Path) -> None:
    account = opened()
    name = "01_Episodic_memory/episodes/ep_260101_x.json"
    with pytest.raises(BadFile, match=r"ep_260101_x\.json, line 1"):
        import_(account, put(tmp_path, {**foreign(2), name: b'{"turn_1": '}))
    assert account.version == 0
    with pytest.raises(NotFound):
        import_(account, tmp_path / "nowhere")
    with pytest.raises(BadInput):
        import_account(account, tmp_path, "no-such-format")


def test_the_folder_itself_may_be_named(opened: Opened, tmp_path: Path) -> None:
    account = opened(policy=MANUAL)
    put(tmp_path, foreign(1))
    assert import_(account, tmp_path / "consciousness").counts["session"] == 1
    export(account, tmp_path / "out" / "consciousness")
    assert (tmp_path / "out" / "consciousness" / "09_state" / "compression_counters.json").is_file()


def test_what_the_seed_has_no_place_for_is_counted(opened: Opened, tmp_path: Path) -> None:
    account = opened()
    account.remember("lives in Chiang Mai")
    account.remember("ชอบชาเขียว", kind="canon")
    assert export(account, tmp_path).left_out == {"kind fact": 1, "kind canon": 1}
