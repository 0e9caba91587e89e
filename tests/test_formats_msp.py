"""Seed 000's tree of files comes in and goes out without loss."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import octavo
from octavo.documents.formats import export_account, import_account
from octavo.documents.msp.forms import canonical
from octavo.documents.trees import write_bytes
from octavo.domain.policy import PrivacyPolicy
from octavo.domain.privacy import is_suspect
from octavo.errors import BadFile, BadInput, NotFound, StoreFull
from octavo.storage.stores.disk import Disk

CORE = "account/User01/core"
EPISODES = "01_Episodic_memory/Episodic_memory.json"
SEMANTIC = "02_Semantic_memory/Semantic_memory.json"
SENSORY = "03_Sensory_memory/Sensory_memory.json"
IDENTITY = "05_Core_Memory/Core_memory.json"
PROFILE = "07_User_block/User_profile.json"
GKS = "09_Genesis_Knowledge_System/GKS_data.json"

LIFE: dict[str, Any] = {
    EPISODES: {
        "schema": "EVA-Episodic-Memory-v2-Sync",
        "episodes": [
            {
                "episode_id": "อีวา_EP01",
                "session_id": "sandbox_122",
                "timestamp": "2025-12-17T09:00:00+07:00",
                "turn_1": {"speaker": "user", "raw_text": "สวัสดี EVA", "salience_anchor": {"phrase": "สวัสดี"}},
                "turn_2": {"speaker": "eva", "text_excerpt": "สวัสดีค่ะ", "epistemic_mode": "reflect"},
                "RI_global": 0.85,
                "rms_annotation": {"MAS": 1, "route": "normal_ep"},
                "encoding_level": "L2_standard",
                "crosslinks": {"semantic": ["ep_temp_9"]},
            },
            {
                "episode_id": "ep_temp_9",
                "turns": [{"role": "user", "content": "ฝนตก"}, "ใช่"],
                "created_at": "เมื่อวาน",
            },
            {"episode_id": 7, "note": "no turns, no time"},
            {"turn_1": {"text": "the same"}},
            {"turn_1": {"text": "the same"}},
            {"episode_id": "ep_1", "spelling": "ours", "turn_2": {"text": "second"}, "turn_1": None},
            {"episode_id": "ep_1", "turn_1": {"text": "another with that id"}},
        ],
    },
    SEMANTIC: {
        "version": "2.0",
        "facts": [
            {"type": "fact", "content": "User likes coffee", "confidence": 0.9, "evidence": ["ep_1"]},
            {"type": "fact", "content": "User likes coffee", "confidence": 0.3},
            "ผู้ใช้ชอบกาแฟ",
            "ผู้ใช้ชอบกาแฟ",
            {"fact_id": 12, "statement": "lives in Chiang Mai", "confidence": "high"},
            {"note": ["no", "text"]},
            42,
            "",
            {"content": "ยาว" * 900},
        ],
        "concepts": [
            {"concept": "coffee", "definition": "เครื่องดื่ม", "confidence": 1},
            {"concept": "coffee", "definition": "a drink", "confidence": 0.4},
        ],
        "relationships": [{"subject": "user", "predicate": "likes", "object": "coffee", "weight": 0.5}],
        "graph": [[1, 2]],
    },
    SENSORY: [
        {"sensory_id": "s1", "modality": "sound", "description": "ฝนตก", "timestamp": "2025-12-17T09:00:00Z"},
        {"raw": [0.1, 0.2]},
    ],
    IDENTITY: {
        "identity": {"name": "EVA", "role": {"is": "คู่สนทนา"}, " odd\nname ": 1, "": None},
        "values": ["ซื่อสัตย์", {"value": "kindness", "weight": 1.0}],
        "worldview": {},
        "charter": "v1",
    },
    PROFILE: {"name": "สมชาย", "city": "เชียงใหม่", "likes": ["กาแฟ", "แมว"], "age": 41, "nothing": None},
    GKS: {
        "version": 3,
        "Master": {"rule": "ก่อน"},
        "nodes": [{"id": "n1", "label": "กาแฟ"}, {"id": "n1", "label": "ชา"}],
        "edges": [],
        "Safety": {},
    },
    "10_state/ire_state.json": {"reflex_vector": {"calm": 0.8}},
    "10_state/qualia_state.json": {"intensity": 0.5, "สี": "ฟ้า"},
}
BUFFER = {
    "sandbox_id": "sandbox_456",
    "created_at": "2025-12-17T10:00:00+00:00",
    "parent_version": 42,
    "new_episodes": [
        {"episode_id": "ep_temp_001", "turn_1": {"speaker": "user", "text": "หิว"}, "turn_2": {"text": "กิน"}}
    ],
    "semantic_candidates": [{"type": "fact", "content": "User likes coffee", "confidence": 0.9}],
    "state_deltas": {"ire_state": {"reflex_vector": {"calm": 0.1}}},
    "metadata": {"turn_count": 5, "duration_seconds": 300, "mood": "ดี"},
    "unknown": {"kept": True},
}
METADATA = {"sandbox_id": "sandbox_456", "status": "active", "user_id": "User01", "extra": [1]}
SPEC = b"spec: episodic_memory\nversion: 1\n# \xe0\xb8\xa0\xe0\xb8\xb2\xe0\xb8\xa9\xe0\xb8\xb2\n"
BINARY = bytes(range(256)) * 4


def plant(top: Path, core: dict[str, Any], *, folder: str = "account", user: str = "User01") -> Path:
    """Write JSON files below a user's core."""
    for name, value in core.items():
        path = top / folder / user / "core" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return top


def plant_sandbox(
    top: Path, name: str = "sandbox_456", buffer: Any = BUFFER, metadata: Any = METADATA
) -> None:
    folder = top / "sandboxes" / name
    folder.mkdir(parents=True)
    (folder / "session_buffer.json").write_text(json.dumps(buffer), encoding="utf-8")
    if metadata is not None:
        (folder / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")


def seen(top: Path) -> dict[str, Any]:
    """Every file of a tree: JSON by its meaning, anything else by its bytes."""
    found: dict[str, Any] = {}
    for path in sorted(top.rglob("*")):
        if path.is_file():
            name = path.relative_to(top).as_posix()
            found[name] = (
                canonical(json.loads(path.read_bytes())) if path.suffix == ".json" else path.read_bytes()
            )
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with everything in it."""
    top = plant(tmp_path / "tree", LIFE)
    (top / CORE / "01_Episodic_memory" / "episodic_memory_spec.yaml").write_bytes(SPEC)
    (top / "account/User01/notes").mkdir()
    (top / "account/User01/notes/ภาพ.bin").write_bytes(BINARY)
    (top / CORE / "10_state" / "history.jsonl").write_text('{"a": 1}\n')
    (top / CORE / "10_state" / "list.json").write_text("[1]")
    plant_sandbox(top)
    (top / "sandboxes/sandbox_456/log.txt").write_text("บันทึก")
    return top


def test_a_tree_goes_out_as_it_came_in(tree: Path, account: octavo.Account, tmp_path: Path) -> None:
    done = import_account(account, tree, "msp")
    export_account(account, tmp_path / "out", "msp")

    assert done.left_out == ()
    assert done.changed == ()
    assert seen(tmp_path / "out") == seen(tree)


def test_unknown_files_keep_their_bytes(tree: Path, account: octavo.Account, tmp_path: Path) -> None:
    import_account(account, tree, "msp")
    export_account(account, tmp_path / "out", "msp")

    spec = tmp_path / "out" / CORE / "01_Episodic_memory" / "episodic_memory_spec.yaml"
    assert spec.read_bytes() == SPEC
    assert (tmp_path / "out/account/User01/notes/ภาพ.bin").read_bytes() == BINARY


def test_unknown_files_never_speak(tree: Path, account: octavo.Account) -> None:
    import_account(account, tree, "msp")

    files = account.memories(kind="register", category="file")
    assert files
    assert {memory.text for memory in files} == {""}


def test_a_second_import_changes_nothing(tree: Path, account: octavo.Account) -> None:
    first = import_account(account, tree, "msp")
    second = import_account(account, tree, "msp")

    assert (first.version, second.version) == (1, 1)
    assert (second.counts, second.revised, second.left_out) == ({}, 0, ())
    assert second.unchanged == sum(first.counts.values()) - first.counts["sandbox"]
    assert len(account.sandboxes()) == 1


def test_an_import_into_another_folder_then_back_changes_nothing(
    tree: Path, account: octavo.Account, tmp_path: Path
) -> None:
    import_account(account, tree, "msp")
    export_account(account, tmp_path / "out", "msp")

    assert import_account(account, tmp_path / "out", "msp").version == 1


def test_a_tree_read_from_accout_is_written_back_there(account: octavo.Account, tmp_path: Path) -> None:
    top = plant(tmp_path / "tree", LIFE, folder="accout")

    import_account(account, top, "msp")
    export_account(account, tmp_path / "out", "msp")

    assert seen(tmp_path / "out") == seen(top)
    assert not (tmp_path / "out/account").exists()


@pytest.mark.parametrize("below", [".", "account", "account/User01", "account/User01/core"])
def test_any_folder_of_the_tree_names_it(below: str, tree: Path, account: octavo.Account) -> None:
    done = import_account(account, tree / below, "msp")

    assert done.account == "User01"
    assert account.stats().episodes == 7
    assert (done.counts["sandbox"], [info.id for info in account.sandboxes()]) == (1, ["sandbox_456"])


def test_what_was_imported_is_remembered_in_our_words(tree: Path, account: octavo.Account) -> None:
    import_account(account, tree, "msp")

    facts = {m.text: m for m in account.memories(kind="fact")}
    relationship = account.memories(category="relationship")[0]
    coffee = account.memories(kind="fact", topic="concept/coffee")[0]
    assert facts["lives in Chiang Mai"].category == "fact"
    assert relationship.text == "user likes coffee"
    assert relationship.linked("about") == (coffee.id,)
    assert account.memories(kind="canon", topic="identity/name")[0].text == "name: EVA"
    assert account.memories(kind="register", topic="profile/city")[0].text == "city: เชียงใหม่"
    assert account.memories(category="sensory")[0].kind == "episode"
    assert account.memories(kind="register", topic="ire_state")[0].data == {"reflex_vector": {"calm": 0.8}}


def test_low_confidence_and_doubles_are_not_lost(account: octavo.Account, tmp_path: Path) -> None:
    weak = {"facts": [{"content": "ไม่แน่ใจ", "confidence": 0.1}] * 3}

    done = import_account(account, plant(tmp_path / "tree", {SEMANTIC: weak}), "msp")

    assert (done.left_out, account.stats().by_category["fact"]) == ((), 3)


def test_a_fact_that_changed_in_the_tree_gets_a_revision(account: octavo.Account, tmp_path: Path) -> None:
    before = {"facts": [{"id": "f1", "content": "ชอบชา"}, {"id": "f2", "content": "likes cats"}]}
    after = {"facts": [{"id": "f1", "content": "ชอบกาแฟ"}, {"id": "f2", "content": "likes cats"}]}
    import_account(account, plant(tmp_path / "before", {SEMANTIC: before}), "msp")

    done = import_account(account, plant(tmp_path / "after", {SEMANTIC: after}), "msp")
    export_account(account, tmp_path / "out", "msp")

    assert (done.counts, done.revised, account.stats().by_kind["fact"]) == ({}, 1, 2)
    assert seen(tmp_path / "out") == seen(tmp_path / "after")


def test_what_somebody_files_under_file_is_a_memory_like_others(
    account: octavo.Account, tmp_path: Path
) -> None:
    facts = [{"type": "file", "content": "The contract lies in the green folder", "confidence": 0.9}]
    top = plant(tmp_path, {SEMANTIC: {"facts": facts}})
    (top / "account/User01/notes.txt").write_text("kept beside")

    done = import_account(account, top, "msp")
    account.remember("รายงานอยู่ในลิ้นชัก", kind="register", category="file", topic="report")
    export_account(account, tmp_path / "out", "msp")

    assert (done.counts, done.files) == ({"fact": 1}, ("notes.txt",))
    told = json.loads((tmp_path / "out" / CORE / SEMANTIC).read_text(encoding="utf-8"))
    assert told["facts"] == facts
    assert [one["content"] for one in told["registers"]] == ["รายงานอยู่ในลิ้นชัก"]


def test_a_changed_episode_is_refused_and_named(account: octavo.Account, tmp_path: Path) -> None:
    before = [{"episode_id": "ep_1", "turn_1": {"text": "จริง"}}]
    after = [
        {"episode_id": "ep_1", "turn_1": {"text": "ไม่จริง"}},
        {"episode_id": "ep_2", "turn_1": {"text": "ใหม่"}},
    ]
    import_account(account, plant(tmp_path / "before", {EPISODES: before}), "msp")

    done = import_account(account, plant(tmp_path / "after", {EPISODES: after}), "msp")

    assert [note.place for note in done.left_out] == ["episodic_memory/ep_1"]
    assert done.counts == {"episode": 1}
    assert [m.turns[0].text for m in account.memories(kind="episode")] == ["จริง", "ใหม่"]


def test_secrets_are_masked_in_episodes_refused_in_facts_and_named(
    account: octavo.Account, tmp_path: Path
) -> None:
    top = plant(
        tmp_path / "tree",
        {
            EPISODES: [{"episode_id": "ep_1", "turn_1": {"text": "รหัสผ่านคือ hunter2secret9"}}],
            SEMANTIC: {"facts": [{"id": "f1", "content": "password: hunter2secret9"}, "likes tea"]},
        },
    )

    done = import_account(account, top, "msp")

    assert [note.place for note in done.changed] == ["episodic_memory/ep_1"]
    assert [(note.place, note.reason.split(":")[0]) for note in done.left_out] == [
        ("semantic_memory/facts/f1", "secret")
    ]
    ledger = "".join(p.read_text() for p in (tmp_path / "data").rglob("*.jsonl"))
    assert "hunter2secret9" not in ledger


def test_a_secret_beside_the_values_is_masked_and_the_rest_stays(
    account: octavo.Account, tmp_path: Path
) -> None:
    semantic = {"facts": ["likes tea"], "wifi": {"password": "hunter2secret9"}, "version": "2.0"}
    top = plant(tmp_path / "tree", {SEMANTIC: semantic, IDENTITY: {"charter": "v1"}}, folder="accout")

    done = import_account(account, top, "msp")
    export_account(account, tmp_path / "out", "msp")

    assert ([note.place for note in done.changed], done.left_out) == (["master"], ())
    core = tmp_path / "out/accout/User01/core"
    out = json.loads((core / SEMANTIC).read_text())
    assert (out["facts"], out["version"], "hunter2secret9" in str(out)) == (["likes tea"], "2.0", False)
    assert json.loads((core / IDENTITY).read_text()) == {"charter": "v1"}


@pytest.mark.parametrize(
    ("bad", "where"),
    [
        ('{\n "episodes": [\n  {"a": }\n ]\n}', "line 3"),
        ("", "line 1"),
        ('[\n{"a": NaN}]', "line 2"),
        ('[{"a": 1e999}]', "line 1"),
        ('[\n\n{"twice": 1, "twice": 2}]', "line 3"),
        ('[{"a": 99999999999999999999999}]', "line 1"),
        ('["\\ud800"]', "line 1"),
    ],
)
def test_a_corrupt_file_is_named_with_its_line_and_nothing_is_imported(
    bad: str, where: str, tree: Path, account: octavo.Account
) -> None:
    (tree / CORE / SENSORY).write_text(bad)

    with pytest.raises(BadFile, match=r"Sensory_memory\.json") as caught:
        import_account(account, tree, "msp")

    assert where in str(caught.value)
    assert (account.version, account.sandboxes()) == (0, [])


def test_a_corrupt_buffer_stops_the_import_before_it_begins(tree: Path, account: octavo.Account) -> None:
    (tree / "sandboxes/sandbox_456/session_buffer.json").write_bytes(b'{"a":\n"\xff"}')

    with pytest.raises(BadFile, match="line 2: not UTF-8"):
        import_account(account, tree, "msp")

    assert account.version == 0


def test_an_imported_sandbox_can_go_on(
    tree: Path, opened: Callable[..., octavo.Account], tmp_path: Path
) -> None:
    account = opened()
    import_account(account, tree, "msp")

    with account.resume("sandbox_456") as sandbox:
        sandbox.turn("user", "ต่อจากเมื่อกี้")
    export_account(account, tmp_path / "out", "msp")

    assert sandbox.result is not None
    assert sandbox.result.session == 1
    assert account.stats().episodes == 9
    assert not (tmp_path / "out/sandboxes").exists()
    assert [(note.place, note.reason) for note in import_account(account, tree, "msp").notes] == [
        ("core/10_state/list.json", "holds no object and is kept as a file"),
        ("sandboxes/sandbox_456", "was consolidated here; it was left alone"),
    ]


def test_counts_of_an_imported_buffer_hold_until_something_is_added(
    tree: Path, account: octavo.Account, tmp_path: Path
) -> None:
    import_account(account, tree, "msp")
    sandbox = account.resume("sandbox_456")
    sandbox.turn("user", "อีกคำ")
    sandbox.close()

    export_account(account, tmp_path / "out", "msp")

    buffer = json.loads((tmp_path / "out/sandboxes/sandbox_456/session_buffer.json").read_text())
    assert buffer["metadata"]["turn_count"] == 3
    assert buffer["metadata"]["mood"] == "ดี"
    assert buffer["parent_version"] == 42


def test_a_sandbox_whose_id_is_none_of_ours_keeps_its_folder(account: octavo.Account, tmp_path: Path) -> None:
    top = plant(tmp_path / "tree", {EPISODES: []})
    plant_sandbox(top, "ห้อง ๑", {"episodes": [{"turn_1": {"text": "หิว"}}]}, None)

    import_account(account, top, "msp")
    export_account(account, tmp_path / "out", "msp")

    buffer = json.loads((tmp_path / "out/sandboxes/ห้อง ๑/session_buffer.json").read_text())
    assert [episode["turn_1"] for episode in buffer["new_episodes"]] == [{"text": "หิว"}]
    assert "sandbox" not in import_account(account, top, "msp").counts


def test_sandboxes_of_another_user_are_left_alone(account: octavo.Account, tmp_path: Path) -> None:
    top = plant(plant(tmp_path / "tree", LIFE), LIFE, user="User02")
    plant_sandbox(top, "a", BUFFER, {"user_id": "User02"})
    plant_sandbox(top, "b", BUFFER, None)

    done = import_account(account, top, "msp")

    assert (done.account, account.sandboxes()) == ("User01", [])
    assert len(done.notes) == 2


def test_several_users_must_be_told_apart(opened: Callable[..., octavo.Account], tmp_path: Path) -> None:
    top = plant(plant(tmp_path / "tree", LIFE, user="A"), LIFE, user="B")

    with pytest.raises(BadFile, match="several users: A, B"):
        import_account(opened(account="C"), top, "msp")
    assert import_account(opened(account="C"), top / "account/B", "msp").account == "B"


def test_a_native_account_is_written_in_the_seeds_form(account: octavo.Account, tmp_path: Path) -> None:
    with account.sandbox("Sandbox 09:30") as sandbox:
        sandbox.turn("user", "สวัสดี")
        sandbox.turn("eva", "สวัสดีค่ะ")
        sandbox.remember("User likes coffee", confidence=0.9, tags=["กาแฟ"])
        sandbox.update_state("ire_state", {"calm": 0.8})
    account.remember("be kind", kind="canon", category="values")
    account.remember("a private word", scope="orion")
    account.remember("how to greet", kind="skill")
    open_ = account.sandbox("Sandbox 10:15")
    open_.turn("user", "ยังอยู่")
    open_.close()

    done = export_account(account, tmp_path / "out", "msp")

    core = tmp_path / "out" / CORE
    (episode,) = json.loads((core / EPISODES).read_text())["episodes"]
    assert (episode["turn_1"]["text"], episode["session_id"]) == ("สวัสดี", sandbox.id)
    (fact,) = json.loads((core / SEMANTIC).read_text())["facts"]
    assert fact == {"type": "fact", "content": "User likes coffee", "confidence": 0.9, "tags": ["กาแฟ"]}
    assert json.loads((core / "10_state/ire_state.json").read_text()) == {"calm": 0.8}
    assert json.loads((core / IDENTITY).read_text())["values"][0]["content"] == "be kind"
    assert done.left_out == {"scope orion": 1, "kind skill": 1}
    assert done.counts == {"episode": 1, "fact": 1, "canon": 1, "register": 1, "sandbox": 1}
    assert {Path(name).name for name in done.files} >= {"GKS_data.json", "User_profile.json", "metadata.json"}


def test_a_native_account_survives_the_way_through_another(
    account: octavo.Account, opened: Callable[..., octavo.Account], tmp_path: Path
) -> None:
    with account.sandbox() as sandbox:
        sandbox.turn("user", "สวัสดี")
        sandbox.remember("likes coffee", confidence=0.9)
        sandbox.remember("กรุงเทพ", kind="register", topic="profile/city")
    export_account(account, tmp_path / "one", "msp")
    other = opened(account="User02")

    import_account(other, tmp_path / "one", "msp")
    export_account(other, tmp_path / "two", "msp")

    one = {name.replace("User01", ""): value for name, value in seen(tmp_path / "one").items()}
    assert {name.replace("User02", ""): value for name, value in seen(tmp_path / "two").items()} == one


def test_links_are_not_followed(tree: Path, account: octavo.Account, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("not yours")
    (tree / CORE / "link.txt").symlink_to(tmp_path / "elsewhere")

    done = import_account(account, tree, "msp")

    assert ("core/link.txt", "is a link and was not followed") in [(n.place, n.reason) for n in done.notes]
    assert "core/link.txt" not in done.files


def test_nothing_is_written_outside_the_folder(account: octavo.Account, tmp_path: Path) -> None:
    data = {"name": "files/x", "path": ["..", "..", "..", "..", "escaped.txt"], "text": "x"}
    account.remember("", kind="register", category="file", topic="file/x", data=data)

    with pytest.raises(BadInput, match="does not name a file below"):
        export_account(account, tmp_path / "out", "msp")
    assert not (tmp_path / "escaped.txt").exists()


def test_a_file_whose_path_looks_like_a_token_is_kept_too(
    tree: Path, account: octavo.Account, tmp_path: Path
) -> None:
    odd = next(tree.glob("acc*/*/core")) / "a1B2c3D4e5F6g7H8/i9J0k1L2m3N4o5P6/q7R8s9T0u1V2w3X4/data9"
    odd.parent.mkdir(parents=True)
    odd.write_text("kept")

    assert import_account(account, tree, "msp").left_out == ()
    export_account(account, tmp_path / "out", "msp")

    assert (tmp_path / "out" / odd.relative_to(tree)).read_text() == "kept"


def test_an_export_leaves_no_temporary_files_and_replaces_whole_files(
    tree: Path, account: octavo.Account, tmp_path: Path
) -> None:
    import_account(account, tree, "msp")
    export_account(account, tmp_path / "out", "msp")
    export_account(account, tmp_path / "out", "msp")

    assert seen(tmp_path / "out") == seen(tree)
    assert not list((tmp_path / "out").rglob(".tmp-*"))


def test_an_unknown_format_lists_those_there_are(account: octavo.Account, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"use one of .*msp"):
        import_account(account, tmp_path, "zip")
    with pytest.raises(BadInput, match="no format 'zip'"):
        export_account(account, tmp_path, "zip")


def test_a_missing_or_empty_folder_says_so(account: octavo.Account, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no folder"):
        import_account(account, tmp_path / "nowhere", "msp")
    with pytest.raises(BadFile, match="holds no account"):
        import_account(account, tmp_path, "msp")


@pytest.fixture(scope="module")
def space() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder)


# No word names a secret: what stands beside such a name may rightly be masked.
words = (
    st.sampled_from(["กาแฟ", "tea", "ep_1", "ep_temp_1", "", " ", "user"])
    | st.text(st.characters(codec="utf-8"), max_size=6)
).filter(lambda word: not is_suspect(word, PrivacyPolicy()))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


def objects(*keys: str, of: st.SearchStrategy[Any] = values) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(keys) | words, of, max_size=5)


facts = objects(
    "content", "text", "confidence", "id", "concept", "subject", "predicate", "object", "spelling", "type"
)
lists = st.lists(facts | values, max_size=4)
trees = st.fixed_dictionaries(
    {},
    optional={
        EPISODES: st.lists(
            objects("episode_id", "turn_1", "turn_2", "turns", "timestamp", "RI_global"), max_size=4
        )
        | objects("episodes", of=st.lists(objects("episode_id", "turn_1"), max_size=3)),
        SEMANTIC: objects("facts", "concepts", "relationships", "registers", of=lists | values),
        SENSORY: lists | objects("sensory", of=lists),
        IDENTITY: objects("identity", "values", "worldview", "notes", of=lists | values),
        PROFILE: objects("name", "value"),
        GKS: lists | objects("nodes", of=lists | values),
        "10_state/ire_state.json": objects("calm") | lists,
    },
)


@pytest.mark.slow
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(core=trees)
def test_any_tree_goes_out_as_it_came_in_and_comes_in_once(core: dict[str, Any], space: Path) -> None:
    with (
        TemporaryDirectory(dir=space) as folder,
        octavo.open(Path(folder) / "d", "User01", actor="human:x") as account,
    ):
        (Path(folder) / "tree" / CORE).mkdir(parents=True)
        top = plant(Path(folder) / "tree", core)

        done = import_account(account, top, "msp")
        export_account(account, Path(folder) / "out", "msp")
        again = import_account(account, top, "msp")

        assert (done.left_out, done.changed) == ((), ())
        assert seen(Path(folder) / "out") == seen(top)
        assert (again.version, again.counts, again.revised) == (done.version, {}, 0)


def test_a_full_disk_leaves_the_file_as_it_was_and_nothing_beside_it(tmp_path: Path) -> None:
    class Full(Disk):
        def sync(self, fd: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    write_bytes(tmp_path / "a.json", b"before")

    with pytest.raises(StoreFull, match=r"a\.json"):
        write_bytes(tmp_path / "a.json", "หลัง".encode(), Full())

    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.json", b"before")]
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o600


def test_an_export_of_ours_comes_in_without_a_register_that_nobody_wrote(account, tmp_path):
    account.remember("อยู่ที่น่าน", kind="register", topic="home")
    with account.sandbox() as sandbox:
        sandbox.turn("user", "I moved to Nan last week.")
        sandbox.turn("assistant", "How nice!")
    account.export(tmp_path / "one")
    with octavo.open(tmp_path / "other", account.name, actor="human:you", embedder=False) as other:
        other.import_(tmp_path / "one")
        assert all(memory.text for memory in other.memories())
        assert len(other.memories()) == 2
        other.export(tmp_path / "two")
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert files
    for name in files:
        one, two = (json.loads((tmp_path / place / name).read_bytes()) for place in ("one", "two"))
        assert two == one
