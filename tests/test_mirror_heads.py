"""What a file says besides its words, in its head or its JSON: taken in, or told and left, never undone."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import octavo
from octavo.domain import blocks
from octavo.domain.buffer import Wrote
from octavo.domain.compression import CompressionPolicy
from octavo.domain.memory import Link, Memory
from octavo.domain.policy import AssemblyPolicy
from octavo.engine.account import Account
from octavo.engine.mirror import Mirror
from octavo.storage.stores.local import LocalStore
from octavo.testing import SettableClock, Stopped, open_on
from test_mirror_machine import OwnDisk

AT = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
PAGE, CANON, REGISTERS = "semantic/knowledge/objects.md", "semantic/canon.md", "semantic/registers.md"
LEARNED, APPROVED = "semantic/skills/dance/SKILL.md", "procedural/skills/cook/SKILL.md"
TAUGHT, MOOD = "semantic/behaviors/behaviors.json", "semantic/states/mood.json"
RULES = tuple(f"procedural/{name}.json" for name in ("capabilities", "guardrails", "sandbox_rules", "mcp"))
RULE = {"deny": ["fly"], "max_speed": 0.5, "max_actions": 1, "is_on": True, "note": "ห้ามบิน"}
POLICY = octavo.Policy(compression=CompressionPolicy(mode="manual"), assemblies=AssemblyPolicy(mode="manual"))


def opened(folder: Path) -> Account:
    return octavo.open(folder, "nok", actor="human:nok", policy=POLICY, embedder=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An account with a file of every form that a person can edit."""
    root = tmp_path_factory.mktemp("made")
    with opened(root) as account:
        seen = account.remember("ลองเปิดประตูแล้ว", kind="episode").or_raise()
        told: dict[str, Any] = {"id": "key1", "kind": "fact", "text": "กุญแจสีแดงเปิดประตูเหนือ", "at": AT}
        told |= {"category": "objects", "data": {"section": "Keys", "last_seen": "2026-05-04T09:00:00Z"}}
        fact = Memory(**told, links=(Link(name="evidence", to=seen.id),))
        account.intake.write_many([Wrote(memory=fact)], cause="test", skip=frozenset({"duplicate"}))
        account.remember("lava is hot", category="objects")
        account.remember("is patient", kind="canon", category="character")
        account.remember("lives in Chiang Mai", kind="register", topic="home")
        with account.sandbox() as sandbox:
            sandbox.update_state("mood", {"calm": 1, "is_glad": True, "words": ["สบายดี"]})
        front = {"license": "MIT", "version": 1, "metadata": {"author": "นก"}}
        account.remember(
            "Dances when music plays.", kind="skill", topic="skills/dance", data={"front": front}
        )
        account.remember("ผัดกะเพรา", kind="skill", topic="skills/cook", category="procedural")
        for path in RULES:
            topic = Path(path).stem
            category = "guardrail" if topic == "guardrails" else "procedural"
            account.remember("x", kind="skill", topic=topic, category=category, data=RULE)
        account.remember("Be kind.", kind="skill", topic="agents", category="procedural")
        for name in ("wave", "ไหว้"):
            data = {"name": name, "actions": ["left", "right"], "created_at": AT.isoformat()}
            skill = account.remember(
                f"{name}: left -> right",
                kind="skill",
                category="behavior",
                topic=f"behavior/{name}",
                data=data,
            ).or_raise()
            with account.sandbox() as sandbox:
                sandbox.use(skill.id)
        account.mirror()
    return root


@pytest.fixture
def account(made: Path, tmp_path: Path) -> Iterator[Account]:
    shutil.copytree(made, tmp_path / "data")
    with opened(tmp_path / "data") as account:
        account.mirror()
        yield account


@pytest.fixture
def tree(account: Account) -> Path:
    return Mirror(account._spine).folder


def put(front: dict[str, Any], field: str, value: Any) -> None:
    """Set a field, also one within another."""
    *above, last = field.split(".")
    for name in above:
        front = front.setdefault(name, {})
    front[last] = value


def change_front(file: Path, field: str, value: Any) -> None:
    front, body = blocks.front_of(file.read_text())
    told = json.loads(json.dumps(front, default=str))
    put(told, field, value)
    file.write_text(blocks.front_matter(told) + body)


def fields_of(front: dict[str, Any], above: str = "") -> Iterator[str]:
    for name, value in front.items():
        yield from fields_of(value, f"{above}{name}.") if isinstance(value, dict) else [f"{above}{name}"]


# Every field of every head that a person can edit, what somebody writes there, and what becomes of it.
HEADS: dict[str, list[tuple[str, Any, str]]] = {
    PAGE: [
        ("page", "things", "refused"),
        ("page", "สิ่งของ", "refused"),
        ("page", 2024, "refused"),
        ("page", True, "refused"),
        ("page", ["a", "b"], "refused"),
        ("updated", "2020-01-01", "refused"),
        ("episodes", 99, "refused"),
        ("tags", ["บ้าน"], "refused"),
    ],
    CANON: [("page", "who", "refused"), ("updated", "2020-01-01", "refused"), ("author", "นก", "refused")],
    REGISTERS: [("page", "now", "refused"), ("episodes", 3, "refused")],
    LEARNED: [
        ("name", "tango", "refused"),
        ("name", "เต้นรำ", "refused"),
        ("name", "cook", "refused"),
        ("name", False, "refused"),
        ("description", "Dances slowly.", "taken"),
        ("description", ["a"], "refused"),
        ("license", "Apache-2.0", "taken"),
        ("version", True, "taken"),  # for Python True is 1
        ("version", 1.0, "taken"),
        ("allowed-tools", ["Bash"], "taken"),
        ("metadata", "of mine", "refused"),
        ("metadata.author", "นกน้อย", "taken"),
        ("metadata.octavo-id", "01kajx2f6w9m4d8c7t5s", "refused"),
        ("metadata.octavo-rev", "7", "refused"),
        ("metadata.octavo-approved", "human:mallory", "refused"),
        ("metadata.octavo-more", "x", "refused"),
    ],
    APPROVED: [
        ("name", "grill", "refused"),
        ("description", "Cooks.", "taken"),
        ("metadata.octavo-id", "01kajx2f6w9m4d8c7t5s", "refused"),
        ("metadata.octavo-rev", "2", "refused"),
        ("metadata.octavo-approved", "human:mallory", "refused"),
    ],
}
TAUGHT_FIELDS: list[tuple[str, Any, str]] = [
    ("wave.name", "โบกมือ", "refused"),
    ("wave.name", "ไหว้", "refused"),
    ("wave.actions", ["left", "up"], "taken"),
    ("wave.actions", ["left", 1], "refused"),
    ("wave.actions", "left", "refused"),
    ("wave.description", "โบกมือทักทาย", "taken"),
    ("wave.description", 5, "refused"),
    ("wave.created_at", "2020-01-01T00:00:00+00:00", "taken"),
    ("wave.times_invoked", 0, "refused"),
    ("wave.times_invoked", 7, "refused"),
    ("wave.times_invoked", "1", "refused"),
    ("wave.times_invoked", True, "refused"),  # for Python True is 1
    ("wave.speed", 3, "refused"),
]


def check(account: Account, tree: Path, path: str, field: str, value: Any, outcome: str) -> None:
    """What a person wrote is in the account and in the tree afterwards, or told, and stays as it was."""
    mine, shown = (tree / path).read_bytes(), field.rsplit(".", maxsplit=1)[-1]
    plan = account.sync()
    assert plan.edits or plan.refused
    done = account.sync(commit=True)
    account.mirror()
    if outcome == "refused":
        (held,) = done.refused
        assert (held.path, done.edits, done.written) == (path, (), ())
        assert shown in held.reason
        assert (tree / path).read_bytes() == mine
        return
    assert done.edits
    assert (done.refused, done.conflicts) == ((), ())
    words = json.dumps(value, ensure_ascii=False).strip('"')
    kept = "".join(msgspec.json.encode(memory).decode() for memory in account.memories())
    assert words in kept or all(word in kept for word in value)
    again = account.sync()
    assert (again.edits, again.refused, again.left_alone) == ((), (), ())


@pytest.mark.parametrize(
    ("path", "field", "value", "outcome"),
    [(path, *row) for path, rows in HEADS.items() for row in rows],
)
def test_a_field_of_a_head_is_taken_in_or_told_and_left(
    account: Account, tree: Path, path: str, field: str, value: Any, outcome: str
) -> None:
    change_front(tree / path, field, value)
    check(account, tree, path, field, value, outcome)


@pytest.mark.parametrize(("field", "value", "outcome"), TAUGHT_FIELDS)
def test_a_field_of_a_behaviour_is_taken_in_or_told_and_left(
    account: Account, tree: Path, field: str, value: Any, outcome: str
) -> None:
    known = json.loads((tree / TAUGHT).read_text())
    put(known, field, value)
    (tree / TAUGHT).write_text(json.dumps(known, ensure_ascii=False))
    check(account, tree, TAUGHT, field, value, outcome)


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        *((path, field, value) for path in RULES for field, value in (
            ("deny", ["fly", "ว่ายน้ำ"]), ("max_speed", 0.25), ("max_actions", 1.0), ("max_actions", True),
            ("is_on", 1), ("is_on", False), ("note", "ลอง"), ("more.of", {"this": None}),
        )),
        *((MOOD, field, value) for field, value in (
            ("calm", True), ("calm", 1.0), ("is_glad", 1), ("words", []), ("more", "ดีมาก"),
        )),
    ],
)  # fmt: skip
def test_a_field_of_a_json_file_is_taken_in_as_it_is_written(
    account: Account, tree: Path, path: str, field: str, value: Any
) -> None:
    told = json.loads((tree / path).read_text())
    put(told, field, value)
    (tree / path).write_text(json.dumps(told))
    (edit,) = account.sync(commit=True).edits
    kept = account.get(str(edit.id))
    assert kept is not None
    assert json.dumps(kept.data, sort_keys=True) == json.dumps(told, sort_keys=True)
    assert json.dumps(json.loads((tree / path).read_text()), sort_keys=True) == json.dumps(
        told, sort_keys=True
    )
    assert account.sync().edits == ()


def test_no_field_that_a_file_shows_is_missing_in_these_tables(account: Account, tree: Path) -> None:
    shown = {
        path.relative_to(tree).as_posix(): path
        for path in tree.rglob("*")
        if path.is_file() and ".octavo" not in path.parts and path.suffix in (".md", ".json")
    }
    untouched = {
        "session_state.json",
        "procedural/AGENTS.md",
        *(p for p in shown if p.startswith("episodic/")),
    }
    assert shown.keys() - untouched == {*HEADS, TAUGHT, MOOD, *RULES}
    for path, rows in HEADS.items():
        front = blocks.front_of(shown[path].read_text())[0]
        assert {*fields_of(dict(front))} <= {field for field, *_ in rows}
    (wave,) = (b for name, b in json.loads(shown[TAUGHT].read_text()).items() if name == "wave")
    assert {f"wave.{field}" for field in wave} <= {field for field, *_ in TAUGHT_FIELDS}


# How a name is changed instead


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize(
    ("path", "renamed", "field", "name", "instead"),
    [
        (PAGE, "semantic/knowledge/สิ่งของ.md", "page", "สิ่งของ", "put it back and rename the file"),
        (LEARNED, "semantic/skills/tango/SKILL.md", "name", "tango", "put it back and rename the folder"),
        (APPROVED, "procedural/skills/grill/SKILL.md", "name", "grill", "put it back and rename the folder"),
    ],
)
def test_a_name_in_a_head_waits_until_the_file_has_it_too(
    account: Account, tree: Path, path: str, renamed: str, field: str, name: str, instead: str, lost: bool
) -> None:
    before = {m.id: m for m in account.memories()}
    if lost:
        shutil.rmtree(tree / ".octavo")
    shown = (tree / path).read_bytes()
    change_front(tree / path, field, name)
    mine = (tree / path).read_bytes()
    for _ in range(2):
        (held,) = account.sync(commit=True).refused
        assert (held.path, f"{field}: {name}" in held.reason, instead in held.reason) == (path, True, True)
        account.mirror()
        assert (tree / path).read_bytes() == mine
    (tree / path).write_bytes(shown)
    (tree / renamed).parent.mkdir(exist_ok=True)
    (tree / path).rename(tree / renamed)
    edits = account.sync(commit=True).edits
    assert {edit.action for edit in edits} == {"revise"}
    after = {m.id: m for m in account.memories()}
    assert after.keys() == before.keys()
    assert {i: (m.text, m.data) for i, m in after.items()} == {i: (m.text, m.data) for i, m in before.items()}
    assert all(after[id_].approved == m.approved for id_, m in before.items())
    places = {where for edit in edits for where in (after[str(edit.id)].category, after[str(edit.id)].topic)}
    assert places & {name, f"skills/{name}"}
    assert (account.sync().edits, account.sync().refused) == ((), ())


@pytest.mark.parametrize("lost", [False, True])
def test_a_file_that_is_renamed_may_keep_the_name_in_its_head(
    account: Account, tree: Path, lost: bool
) -> None:
    (tree / PAGE).rename(tree / "semantic/knowledge/things.md")
    (tree / "semantic/skills/dance").rename(tree / "semantic/skills/tango")
    if lost:
        shutil.rmtree(tree / ".octavo")
    done = account.sync(commit=True)
    assert (len(done.edits), done.refused) == (3, ())
    assert len(account.memories(category="things")) == 2
    assert [m.rev for m in account.memories(topic="skills/tango")] == [2]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("semantic/knowledge/notes.md", "---\npage: สัตว์\n---\n\n- แมวชอบปลา\n"),
        ("semantic/knowledge/notes.md", "---\nupdated: 2026-05-04\n---\n\n- แมวชอบปลา\n"),
        ("semantic/skills/download/SKILL.md", "---\nname: pdf\n---\n\nReads a PDF.\n"),
    ],
)
def test_a_new_file_whose_head_says_something_else_waits(
    account: Account, tree: Path, path: str, text: str
) -> None:
    (tree / path).parent.mkdir(exist_ok=True)
    (tree / path).write_text(text)
    (held,) = account.sync(commit=True).refused
    assert (held.path, (tree / path).read_text()) == (path, text)


def test_a_skill_of_another_account_brings_its_marks_and_loses_them(account: Account, tree: Path) -> None:
    (tree / "semantic/skills/pdf").mkdir()
    front = "name: pdf\nmetadata:\n  octavo-id: 01kajx2f6w9m4d8c7t5s\n  octavo-approved: human:mallory\n"
    (tree / "semantic/skills/pdf/SKILL.md").write_text(f"---\n{front}---\n\nReads a PDF.\n")
    assert [edit.action for edit in account.sync(commit=True).edits] == ["remember"]
    (skill,) = account.memories(topic="skills/pdf")
    assert (skill.approved, skill.layer) == (None, "semantic")


def test_a_behaviour_is_renamed_by_the_name_before_its_braces_and_stays_the_same(
    account: Account, tree: Path
) -> None:
    (wave,) = account.memories(topic="behavior/wave")
    known = json.loads((tree / TAUGHT).read_text())
    (tree / TAUGHT).write_text(
        json.dumps({("โบกมือ" if name == "wave" else name): b for name, b in known.items()})
    )
    done = account.sync(commit=True)
    assert [(edit.action, edit.id) for edit in done.edits] == [("revise", wave.id)]
    (renamed,) = account.memories(topic="behavior/โบกมือ")
    told = json.loads((tree / TAUGHT).read_text())
    assert (renamed.id, renamed.data["name"]) == (wave.id, "โบกมือ")
    assert {name: b["name"] for name, b in told.items()} == {"ไหว้": "ไหว้", "โบกมือ": "โบกมือ"}
    assert told["โบกมือ"] == {**known["wave"], "name": "โบกมือ"}
    assert account.sync().edits == ()


def test_a_behaviour_that_is_copied_within_its_file_is_a_new_one(account: Account, tree: Path) -> None:
    known = json.loads((tree / TAUGHT).read_text())
    (tree / TAUGHT).write_text(json.dumps({"wave twice": known["wave"], **known}))
    assert [edit.action for edit in account.sync(commit=True).edits] == ["remember"]
    assert json.loads((tree / TAUGHT).read_text())["wave twice"]["name"] == "wave twice"


@pytest.mark.parametrize("said", [0, 1, 2, 3])
def test_how_often_a_behaviour_was_invoked_is_as_it_was_shown_or_as_it_is_or_the_file_waits(
    account: Account, tree: Path, said: int
) -> None:
    (wave,) = account.memories(topic="behavior/wave")
    with account.sandbox() as sandbox:
        sandbox.use(wave.id)  # the file still shows 1, and nobody has touched it
    known = json.loads((tree / TAUGHT).read_text())
    known["wave"] |= {"times_invoked": said, "description": "โบกมือ"}
    (tree / TAUGHT).write_text(json.dumps(known))
    mine, done = (tree / TAUGHT).read_bytes(), account.sync(commit=True)
    if said in (1, 2):
        assert ([edit.action for edit in done.edits], done.refused) == (["revise"], ())
        assert json.loads((tree / TAUGHT).read_text())["wave"]["times_invoked"] == 2
        return
    assert (done.edits, (tree / TAUGHT).read_bytes()) == ((), mine)
    assert f"times_invoked of wave: {said}" in done.refused[0].reason
    known["wave"]["times_invoked"] = 1
    (tree / TAUGHT).write_text(json.dumps(known))
    assert [edit.action for edit in account.sync(commit=True).edits] == ["revise"]


def test_a_count_in_a_tree_that_lost_its_manifest_may_be_of_any_day(account: Account, tree: Path) -> None:
    (wave,) = account.memories(topic="behavior/wave")
    with account.sandbox() as sandbox:
        sandbox.use(wave.id)
    shutil.rmtree(tree / ".octavo")
    done = account.sync(commit=True)
    assert (done.edits, done.refused) == ((), ())
    assert json.loads((tree / TAUGHT).read_text())["wave"]["times_invoked"] == 2


def test_a_clone_beside_a_copied_account_on_another_machine_has_nothing_to_sync(
    account: Account, tree: Path, tmp_path: Path
) -> None:
    (wave,) = account.memories(topic="behavior/wave")
    with account.sandbox() as sandbox:
        sandbox.use(wave.id)  # the clone shows an older count
    command = ["git", "-c", "user.name=nok", "-c", "user.email=nok@example.org"]
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["commit", "-q", "-m", "ก่อนย้าย"],
        ["clone", "-q", ".", "../away"],
    ):
        subprocess.run([*command, *words], cwd=tree, check=True, capture_output=True)
    assert not (tree.parent / "away/.octavo").exists()
    account.close()
    shutil.copytree(tree.parent, tmp_path / "there/nok", ignore=shutil.ignore_patterns("mirror", "away"))
    shutil.copytree(tree.parent / "away", tmp_path / "there/nok/mirror")
    with opened(tmp_path / "there") as there:
        for done in (there.mirror(), there.sync(commit=True), there.sync()):
            assert (done.edits, done.conflicts, done.refused) == ((), (), ())
        memories = there.memories()
    with opened(tree.parent.parent) as account:
        assert account.memories() == memories


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize(
    ("path", "renamed", "field", "name"),
    [
        (PAGE, "semantic/knowledge/สิ่งของ.md", "page", "สิ่งของ"),
        (LEARNED, "semantic/skills/tango/SKILL.md", "name", "tango"),
    ],
)
def test_who_changes_head_and_file_name_leaves_nothing_of_the_old_title_behind(
    account: Account, tree: Path, path: str, renamed: str, field: str, name: str, lost: bool
) -> None:
    before = {m.id: m for m in account.memories()}
    change_front(tree / path, field, name)
    (tree / renamed).parent.mkdir(exist_ok=True)
    (tree / path).rename(tree / renamed)
    if lost:
        shutil.rmtree(tree / ".octavo")
    done = account.sync(commit=True)
    assert (done.refused, done.conflicts, {edit.action for edit in done.edits}) == ((), (), {"revise"})
    after = {m.id: m for m in account.memories()}
    assert {id_: (m.text, m.data.get("section")) for id_, m in after.items()} == {
        id_: (m.text, m.data.get("section")) for id_, m in before.items()
    }
    assert not (tree / path).exists()
    told = (tree / renamed).read_text()
    assert ("Objects" in told, "# Dance Skill" in told) == (False, False)
    assert (account.sync().edits, account.sync().refused) == ((), ())


@pytest.mark.parametrize("lost", [False, True])
def test_a_copy_of_a_conflict_that_is_not_as_it_was_laid_is_listed_and_kept(
    account: Account, tree: Path, lost: bool
) -> None:
    file = tree / PAGE
    file.write_text(file.read_text().replace("lava is hot", "lava says a person"))
    (lava,) = (m for m in account.memories(category="objects") if m.text == "lava is hot")
    account.revise(lava.id, text="ลาวาร้อนมาก")
    assert len(account.sync(commit=True).conflicts) == 1
    (copy,) = file.parent.glob("*.octavo-*")
    assert account.sync().left_alone == ()  # as it was laid it is told with its conflict alone
    if lost:
        shutil.rmtree(tree / ".octavo")
    else:
        copy.write_text(copy.read_text() + "- เขียนผิดที่\n")
    mine, name = copy.read_bytes(), copy.relative_to(tree).as_posix()
    for take in (None, "theirs"):
        done = account.sync(commit=True, take=take)
        assert name in [held.path for held in done.left_alone]
        assert copy.read_bytes() == mine
    assert "lava says a person" in {m.text for m in account.memories(category="objects")}
    assert not account.memories(category=copy.stem)
    copy.unlink()
    done = account.sync(commit=True)
    assert (done.edits, done.left_alone, done.refused) == ((), (), ())


# What no memory holds


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (PAGE, "page: objects", "page: objects  # of mine"),
        (PAGE, "page: objects", "# ของฉัน\npage: objects"),
        (LEARNED, "name: dance", "name: dance # of mine"),
        (PAGE, "## Keys", "## ประตู\n\n## Keys"),
        (CANON, "## character", "## habits\n\n## character"),
        (REGISTERS, "## home", "## work\n\n## home"),
    ],
)
def test_a_comment_or_a_heading_with_nothing_below_waits_and_stays(
    account: Account, tree: Path, path: str, old: str, new: str
) -> None:
    file = tree / path
    mine = file.read_text().replace(old, new)
    assert mine != file.read_text()
    file.write_text(mine)
    for _ in range(2):
        done = account.sync(commit=True)
        assert ([held.path for held in done.refused], file.read_text()) == ([path], mine)
        assert "would be lost" in done.refused[0].reason
        account.mirror()


def test_a_heading_whose_last_line_a_person_removed_goes_with_it(account: Account, tree: Path) -> None:
    page = tree / PAGE
    page.write_text("".join(line for line in page.read_text().splitlines(True) if "กุญแจ" not in line))
    assert [edit.action for edit in account.sync(commit=True).edits] == ["forget"]
    assert "## Keys" not in page.read_text()


def test_what_octavo_counts_itself_may_be_older_in_a_file_that_is_edited(
    account: Account, tree: Path
) -> None:
    (wave,) = account.memories(topic="behavior/wave")
    account.revise("key1", data={"last_seen": "2026-06-01T00:00:00Z"})
    with account.sandbox() as sandbox:
        sandbox.use(wave.id)
    change_front(tree / LEARNED, "description", "Dances slowly.")
    (tree / TAUGHT).write_text((tree / TAUGHT).read_text().replace('"right"', '"up"', 1))
    (tree / PAGE).write_text((tree / PAGE).read_text() + "- กล่องว่างเปล่า\n")
    done = account.sync(commit=True)
    assert (len(done.edits), done.refused, done.conflicts) == (3, (), ())
    assert json.loads((tree / TAUGHT).read_text())["wave"]["times_invoked"] == 2
    assert "updated: '2026-06-01'" in (tree / PAGE).read_text()


# The copies of conflicts


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_sync_that_is_killed_while_it_lays_a_copy_leaves_none_that_nobody_knows(tmp_path: Path) -> None:
    root, stop, laid = tmp_path / "nok", 0, 0
    page = root / "mirror" / PAGE
    with opened(tmp_path) as account:
        id_ = account.remember("lava is hot", category="objects").or_raise().id
        account.mirror()
    is_whole = False
    while not is_whole:
        stop += 1
        with opened(tmp_path) as account:
            page.write_text(re.sub("- .*? \\^", f"- lava says a person {stop} ^", page.read_text()))
            account.revise(id_, text=f"ลาวา {stop}")
        disk = OwnDisk(None)
        dying = open_on(
            LocalStore(root, disk=disk),
            root / "index",
            clock=SettableClock(),
            policy=POLICY,
            actor="human:nok",
        )
        disk.stop_at = len(disk.calls) + stop
        with suppress(Stopped):
            dying.sync(commit=True)
        is_whole, disk.stop_at = not disk.stopped, None
        with suppress(Stopped):
            dying.close()
        with opened(tmp_path) as account:
            laid += any(root.rglob("*.octavo-*"))
            assert account.sync(commit=True, take="ours").conflicts == ()
            assert list(root.rglob("*.octavo-*")) == []
    assert laid > 1


def test_a_page_whose_head_waited_goes_once_it_is_put_back_if_nothing_stands_there_any_more(
    account: Account, tree: Path
) -> None:
    mine = (tree / PAGE).read_text()
    account.forget(*(memory.id for memory in account.memories(category="objects")))
    change_front(tree / PAGE, "page", "สิ่งของ")
    account.mirror()
    assert (tree / PAGE).exists()
    (tree / PAGE).write_text(mine)
    account.sync(commit=True)
    assert not (tree / PAGE).exists()
