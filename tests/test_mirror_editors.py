"""Odd editors and odd file systems: what they do to a mirror loses no word, ends nothing and goes nowhere."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import octavo
from octavo.domain import blocks, mirror_places
from octavo.domain.buffer import Wrote
from octavo.domain.memory import Link, Memory
from octavo.engine.account import Account
from octavo.errors import Unavailable
from octavo.storage.mirror_tree import Tree
from octavo.storage.stores.disk import Disk
from test_mirror import AT, page_of

OBJECTS = "semantic/knowledge/objects.md"
KEY, LAVA = "the red key opens the north door", "ลาวาร้อนมาก ห้ามเดินผ่าน"


@pytest.fixture
def account(tmp_path: Path) -> Iterator[Account]:
    with octavo.open(tmp_path, "nok", actor="human:nok", embedder=False) as account:
        account.remember(KEY, category="objects", data={"section": "Keys"})
        account.remember(LAVA, category="objects")
        yield account


@pytest.fixture
def tree(account: Account) -> Path:
    return Path(account.mirror().folder)


def texts(account: Account) -> set[str]:
    return {memory.text for memory in account.memories()}


# What an editor does to every line of a file


@pytest.mark.parametrize(
    "save",
    [
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b"\n", b"\r"),
        lambda data: data.replace(b"\n", b"  \n"),
        lambda data: data.replace(b"\n", b"\t\n"),
        lambda data: data.rstrip(b"\n"),
        lambda data: data + b"\n\n\n",
        lambda data: data.replace(b"\n- ", b"\n* "),
    ],
    ids=["BOM", "CRLF", "CR", "blanks", "tabs", "no newline", "newlines", "stars"],
)
def test_how_an_editor_saves_is_no_edit(account: Account, tree: Path, save: Callable[[bytes], bytes]) -> None:
    account.remember("first line  \n  \n- second\t\n\nlast", category="objects").or_raise()
    account.mirror()
    ours = (tree / OBJECTS).read_bytes()
    other = tree / "saved"  # as an editor that saves by renaming does it
    other.write_bytes(save(ours))
    other.replace(tree / OBJECTS)
    done = account.sync(commit=True)
    assert (done.edits, done.conflicts, done.refused, done.left_alone) == ((), (), (), ())
    assert (tree / OBJECTS).read_bytes() == ours


@given(
    text=st.text(alphabet="a \t\n-#^&;0123 ก", max_size=40), section=st.text(alphabet="a \t#ก", max_size=9)
)
def test_blanks_at_the_end_of_lines_mean_nothing_in_a_file_and_stay_in_a_memory(
    text: str, section: str
) -> None:
    page = page_of([(section, text, "m1")])
    stripped = "\n".join(line.rstrip(" \t") for line in page.split("\n"))
    for saved in (page, stripped, page.replace("\n", " \n")):
        assert [b[:3] for b in blocks.blocks_of(saved, ["Objects"])] == [(section, text, "m1")]


def test_properties_in_another_order_are_no_edit_and_those_of_a_person_are_not_thrown_away(
    account: Account, tree: Path
) -> None:
    page = tree / OBJECTS
    data, links = {"last_seen": "2026-05-04T09:00:00Z"}, (Link(name="evidence", to="seen"),)
    seen = Memory(id="", kind="fact", text="doors are red", category="objects", at=AT, data=data, links=links)
    account.intake.write_many([Wrote(memory=seen)], cause="test")
    account.mirror()
    head = "page: objects\nupdated: '2026-05-04'\nepisodes: 1\n"
    assert head in page.read_text()
    page.write_text(page.read_text().replace(head, 'episodes: 1\nupdated: 2026-05-04\npage: "objects"\n'))
    done = account.sync(commit=True)
    assert (done.edits, done.refused, done.written) == ((), (), (OBJECTS,))
    mine = page.read_text().replace("page: objects\n", "page: objects\ntags:\n  - บ้าน\n")
    page.write_text(mine)
    for _ in range(2):
        (held,) = account.sync(commit=True).refused
        assert "tags" in held.reason
        account.mirror()
        assert page.read_text() == mine


def test_a_heading_of_a_persons_own_is_a_section(account: Account, tree: Path) -> None:
    (tree / "semantic/knowledge/plants.md").write_text(
        "# My garden\n\n- basil needs sun\n\n# ในบ้าน\n\n- fern needs shade\n\n# plants\n"
    )
    account.sync(commit=True)
    sections = {m.text: m.data["section"] for m in account.memories(category="plants")}
    assert sections == {"basil needs sun": "My garden", "fern needs shade": "ในบ้าน"}
    assert account.sync().edits == ()


@pytest.mark.parametrize("place", [OBJECTS, "semantic/skills/dance/SKILL.md", "procedural/AGENTS.md"])
def test_a_merge_that_git_left_unfinished_waits_for_a_person(
    account: Account, tree: Path, place: str
) -> None:
    account.remember("Dances.", kind="skill", topic="skills/dance")
    account.remember("Be kind.", kind="skill", topic="agents", category="procedural")
    account.mirror()
    before, file = texts(account), tree / place
    *above, last = file.read_text().splitlines(keepends=True)
    mine = "".join(above) + f"<<<<<<< HEAD\n{last}=======\n{last.upper()}>>>>>>> nok\n"
    file.write_text(mine)
    (held,) = account.sync(commit=True).refused
    assert f"line {len(above) + 1}: a merge of Git" in held.reason
    assert (file.read_text(), texts(account)) == (mine, before)


def test_an_unfinished_bullet_is_nothing_yet(account: Account, tree: Path) -> None:
    with (tree / OBJECTS).open("a") as page:
        page.write("- \n-  ^\n")
    done = account.sync()
    assert [edit.text for edit in done.edits] == ["^"]


def test_a_name_that_stands_twice_in_a_json_file_is_refused(account: Account, tree: Path) -> None:
    file = tree / "semantic/behaviors/behaviors.json"
    mine = '{"wave": {"actions": ["left"]}, "wave": {"actions": ["right"]}}'
    file.write_text(mine)
    (held,) = account.sync(commit=True).refused
    assert "'wave' stands twice" in held.reason
    assert file.read_text() == mine


def test_a_behaviour_that_a_person_brings_keeps_when_it_was_made_and_how_often_it_was_invoked(
    account: Account, tree: Path
) -> None:
    file = tree / "semantic/behaviors/behaviors.json"
    brought = {"name": "wave", "actions": ["left"], "created_at": "2025-01-15T10:30:00", "times_invoked": 7}
    file.write_text(json.dumps({"wave": brought}))
    account.sync(commit=True)
    assert json.loads(file.read_text())["wave"] == {**brought, "description": ""}
    (skill,) = account.memories(kind="skill")
    account.revise(skill.id, data={**skill.data, "times_invoked": "many"})
    account.mirror()
    assert json.loads(file.read_text())["wave"]["times_invoked"] == 0


def test_what_else_the_front_matter_of_a_skill_says_stays(account: Account, tree: Path) -> None:
    path = tree / "semantic/skills/dance/SKILL.md"
    path.parent.mkdir(parents=True)
    front = "name: dance\ndescription: Dances.\nlicense: MIT\nallowed-tools: [Bash, Read]\n"
    front += "metadata:\n  author: นก\n"
    path.write_text(f"---\n{front}---\n\nDances when music plays.\n")
    account.sync(commit=True)
    shown = path.read_text()
    assert "license: MIT\nallowed-tools:\n- Bash\n- Read\nmetadata:\n  author: นก\n  octavo-id" in shown
    path.write_text(shown.replace("author: นก", "author: นกน้อย"))
    account.sync(commit=True)
    (skill,) = account.memories(kind="skill")
    assert (skill.rev, skill.data["front"]["metadata"]) == (2, {"author": "นกน้อย"})
    assert account.sync().edits == ()


# What stands where a file was, or beside it


def test_a_page_with_any_name_is_a_page_and_a_backup_is_none(account: Account, tree: Path) -> None:
    knowledge = tree / "semantic/knowledge"
    (knowledge / "My Notes.md").write_text("- note one is here\n")
    for name in ("objects.md~", ".objects.md.swp", "#objects.md#", ".objects.md"):
        shutil.copy(tree / OBJECTS, knowledge / name)
    lines = (tree / OBJECTS).read_text().splitlines(keepends=True)
    (tree / OBJECTS).write_text("".join(line for line in lines if "ลาวา" not in line))
    done = account.sync(commit=True)
    assert [(edit.action, edit.text) for edit in done.edits] == [
        ("remember", "note one is here"), ("forget", LAVA)
    ]  # fmt: skip
    assert len(done.left_alone) == 2, "what begins with a dot is not looked at"
    (page,) = knowledge.glob("my notes-*.md")
    assert "note one is here ^" in page.read_text()
    assert not (knowledge / "My Notes.md").exists()
    assert account.sync().edits == ()


def link_out(file: Path) -> None:
    file.replace(file.parents[3] / "out.md")
    file.symlink_to(file.parents[3] / "out.md")


def link_the_folder(file: Path) -> None:
    outside = file.parents[3] / "out"
    file.parent.replace(outside)
    file.parent.symlink_to(outside)


def make_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def make_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def make_huge(file: Path) -> None:
    with file.open("r+b") as page:
        page.truncate(100_000_000)


@pytest.mark.parametrize("odd", [link_out, link_the_folder, make_folder, make_pipe, make_huge])
def test_what_cannot_be_read_ends_nothing_and_is_left_alone(
    account: Account, tree: Path, odd: Callable[[Path], None]
) -> None:
    odd(tree / OBJECTS)
    outside = {path: path.stat().st_mtime_ns for path in tree.parent.glob("out*")}
    done = account.sync(commit=True, delete=True)
    assert (done.edits, len(done.left_alone), texts(account)) == ((), 1, {KEY, LAVA})
    assert {path: path.stat().st_mtime_ns for path in outside} == outside


def test_a_folder_that_cannot_be_listed_stops_the_sync(
    account: Account, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(folder: str) -> Iterator[os.DirEntry[str]]:
        if str(folder).endswith("knowledge"):
            raise PermissionError(13, "Permission denied", str(folder))
        return scandir(folder)

    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(Unavailable, match="listing"):
        account.sync(commit=True, delete=True)
    assert texts(account) == {KEY, LAVA}


def test_a_name_that_is_no_text_is_left_alone_and_can_be_told(account: Account, tree: Path) -> None:
    name = os.fsdecode(b"b\xff.md")
    (tree / "semantic/knowledge" / name).write_text("- x\n")
    done = account.sync(commit=True)
    assert [held.path for held in done.left_alone] == ["semantic/knowledge/b\\xff.md"]


def test_binary_bytes_are_refused_and_stay(account: Account, tree: Path) -> None:
    page = tree / "semantic/knowledge/picture.md"
    page.write_bytes(bytes(range(256)))
    (held,) = account.sync(commit=True).refused
    assert (held.path, held.reason) == ("semantic/knowledge/picture.md", "it is not UTF-8")
    assert page.read_bytes() == bytes(range(256))


# What goes somewhere else


def test_a_page_moved_to_another_scope_is_new_there_and_ends_here(account: Account, tree: Path) -> None:
    there = tree / "scopes/orion/semantic/knowledge/objects.md"
    there.parent.mkdir(parents=True)
    (tree / OBJECTS).replace(there)
    done = account.sync(commit=True)
    assert sorted(edit.action for edit in done.edits) == ["forget", "forget", "remember", "remember"]
    assert {(m.scope, m.text) for m in account.memories()} == {("orion", KEY), ("orion", LAVA)}
    assert account.sync().edits == ()


def test_a_fact_moved_to_another_kind_of_page_is_new_there_and_ends_here(
    account: Account, tree: Path
) -> None:
    lines = (tree / OBJECTS).read_text().splitlines(keepends=True)
    (tree / OBJECTS).write_text("".join(line for line in lines if "key" not in line))
    (tree / "semantic/canon.md").write_text(next(line for line in lines if "key" in line))
    account.sync(commit=True)
    assert {(m.kind, m.text) for m in account.memories()} == {("fact", LAVA), ("canon", KEY)}
    assert account.sync().edits == ()


def test_a_page_in_a_folder_of_a_persons_own_ends_nothing(account: Account, tree: Path) -> None:
    aside = tree / "semantic/knowledge/house/objects.md"
    aside.parent.mkdir()
    (tree / OBJECTS).replace(aside)
    done = account.sync(commit=True)
    assert (done.edits, [held.path for held in done.left_alone]) == (
        (), ["semantic/knowledge/house/objects.md"]
    )  # fmt: skip
    assert texts(account) == {KEY, LAVA}


def test_a_line_that_moved_to_a_page_that_cannot_be_read_has_not_ended(account: Account, tree: Path) -> None:
    lines = (tree / OBJECTS).read_text().splitlines(keepends=True)
    (tree / OBJECTS).write_text("".join(line for line in lines if "key" not in line))
    moved = "".join(line for line in lines if "key" in line)
    (tree / "semantic/knowledge/doors.md").write_text(f"<<<<<<< HEAD\n=======\n{moved}>>>>>>> nok\n")
    done = account.sync(commit=True)
    assert (done.edits, len(done.refused), texts(account)) == ((), 1, {KEY, LAVA})


def test_a_line_that_was_copied_to_two_pages_and_cut_is_one_moved_and_one_new(
    account: Account, tree: Path
) -> None:
    lines = (tree / OBJECTS).read_text().splitlines(keepends=True)
    (tree / OBJECTS).write_text("".join(line for line in lines if "key" not in line))
    for page in ("doors", "ประตู"):
        (tree / f"semantic/knowledge/{page}.md").write_text("".join(line for line in lines if "key" in line))
    account.sync(commit=True)
    told = sorted((m.category, m.rev) for m in account.memories() if m.text == KEY)
    assert told == [("doors", 2), ("ประตู", 1)]
    assert account.sync().edits == ()


def test_what_a_person_moves_takes_the_newer_words_of_the_account_along(account: Account, tree: Path) -> None:
    skill = account.remember("Dances.", kind="skill", topic="skills/dance").or_raise()
    account.mirror()
    key, lava = (next(m for m in account.memories() if m.text == text) for text in (KEY, LAVA))
    (tree / OBJECTS).rename(tree / "semantic/knowledge/สิ่งของ.md")
    (tree / "semantic/skills/dance").rename(tree / "semantic/skills/tango")
    account.revise(key.id, text="ประตูเหนือปิดแล้ว")
    account.revise(skill.id, text="Dances slowly.")
    account.forget(lava.id)
    done = account.sync(commit=True)
    assert ([edit.action for edit in done.edits], done.conflicts) == (["revise", "revise"], ())
    told = {(m.id, m.category or m.topic, m.text) for m in account.memories()}
    assert told == {
        (key.id, "สิ่งของ", "ประตูเหนือปิดแล้ว"), (skill.id, "skills/tango", "Dances slowly.")
    }  # fmt: skip
    assert LAVA not in (tree / "semantic/knowledge/สิ่งของ.md").read_text(), "what was forgotten stays so"
    assert account.sync().edits == ()


@pytest.mark.parametrize(
    ("take", "kept"), [("ours", "ประตูเหนือปิดแล้ว"), ("theirs", KEY.replace("red", "blue"))]
)
def test_a_conflict_on_a_page_that_was_renamed_keeps_both_until_somebody_decides(
    account: Account, tree: Path, take: Any, kept: str
) -> None:
    (key,) = (memory for memory in account.memories() if memory.text == KEY)
    page = tree / "semantic/knowledge/กุญแจ.md"
    (tree / OBJECTS).rename(page)
    page.write_text(page.read_text().replace("red key", "blue key"))
    account.revise(key.id, text="ประตูเหนือปิดแล้ว")
    mine = page.read_bytes()
    for _ in range(2):
        done = account.sync(commit=True)
        assert (done.edits, len(done.conflicts), page.read_bytes()) == ((), 1, mine)
        (copy,) = tree.rglob("*.octavo-*")
        assert copy.name in done.conflicts[0].reason
        assert "ประตูเหนือปิดแล้ว" in copy.read_text()
    account.sync(commit=True, take=take)
    assert texts(account) == {kept, LAVA}
    assert list(tree.rglob("*.octavo-*")) == []
    assert account.sync().edits == ()


def test_what_a_person_moves_stays_where_they_put_it_until_it_is_taken_in(
    account: Account, tree: Path
) -> None:
    other = account.remember("ต้นโอ๊กอยู่หลังบ้าน", category="places").or_raise()
    account.mirror()
    doors, places = tree / "semantic/knowledge/doors.md", tree / "semantic/knowledge/places.md"
    (tree / OBJECTS).rename(doors)
    line = next(one for one in places.read_text().splitlines() if other.id in one)
    places.write_text(places.read_text().replace(line, ""))
    doors.write_text(doors.read_text() + f"{line}\n- the card is 4111 1111 1111 1111\n")
    left = [doors.read_bytes(), places.read_bytes()]
    account.mirror()  # it shows what is new, and takes nothing in
    assert len(account.sync(commit=True).refused) == 1
    assert (not (tree / OBJECTS).exists(), [doors.read_bytes(), places.read_bytes()]) == (True, left)
    doors.write_text("".join(one for one in doors.read_text().splitlines(keepends=True) if "4111" not in one))
    account.mirror()
    account.sync(commit=True)
    told = sorted((m.category, m.text, m.rev) for m in account.memories())
    assert told == sorted([("doors", KEY, 2), ("doors", LAVA, 2), ("doors", other.text, 2)])
    assert (not (tree / OBJECTS).exists(), not places.exists(), account.sync().edits) == (True, True, ())


def test_a_skill_with_an_id_of_ones_own_is_renamed_and_stays_the_same(account: Account, tree: Path) -> None:
    account.remember("Dances.", kind="skill", topic="skills/dance", id="dance1")
    account.mirror()
    (tree / "semantic/skills/dance").rename(tree / "semantic/skills/tango")
    assert [(edit.action, edit.id) for edit in account.sync(commit=True).edits] == [("revise", "dance1")]


@pytest.mark.parametrize("name", ["เต้นรำ", "Dance", "my dance"])
def test_a_skill_stays_the_same_whatever_its_folder_is_called(
    account: Account, tree: Path, name: str
) -> None:
    skill = account.remember("เต้นเมื่อเพลงดัง", kind="skill", topic="skills/dance").or_raise()
    account.mirror()
    (tree / "semantic/skills/dance").rename(tree / "semantic/skills" / name)
    done = account.sync(commit=True)
    assert ([(edit.action, edit.id) for edit in done.edits], done.left_alone) == ([("revise", skill.id)], ())
    (kept,) = account.memories(kind="skill")
    assert (kept.topic, kept.text) == (f"skills/{name}", skill.text)
    (folder,) = (tree / "semantic/skills").iterdir()
    assert f"name: {folder.name}\n" in (folder / "SKILL.md").read_text()
    assert account.sync().edits == ()


def test_a_new_state_or_skill_with_any_name_is_taken_in(account: Account, tree: Path) -> None:
    (tree / "semantic/states/อารมณ์ Now.json").write_text('{"calm": 0.5}')
    (tree / "semantic/skills/ทำอาหาร").mkdir()
    (tree / "semantic/skills/ทำอาหาร/SKILL.md").write_text("ผัดกะเพรา\n")
    done = account.sync(commit=True)
    assert (len(done.edits), done.refused, done.left_alone) == (2, (), ())
    (state,) = account.memories(kind="register")
    (skill,) = account.memories(kind="skill")
    assert (state.topic, state.data) == ("อารมณ์ Now", {"calm": 0.5})
    assert (skill.topic, skill.text) == ("skills/ทำอาหาร", "ผัดกะเพรา")
    assert account.sync().edits == ()


def test_a_folder_that_can_be_no_scope_stops_nothing(account: Account, tree: Path) -> None:
    page = tree / "scopes/Orion's notes/semantic/knowledge/stars.md"
    page.parent.mkdir(parents=True)
    page.write_text("- ดาวเหนือ\n")
    (tree / "semantic/knowledge/plants.md").write_text("- โหระพา\n")
    done = account.sync(commit=True)
    assert [held.path for held in done.left_alone] == [page.relative_to(tree).as_posix()]
    assert "โหระพา" in texts(account)
    assert page.read_text() == "- ดาวเหนือ\n"


@pytest.mark.parametrize(
    ("place", "mine", "why"),
    [
        ("episodic/rlds_episodes/e1/steps.jsonl", '{"reward": 1}\n', "needs its metadata.json"),
        ("semantic/behaviors/behaviors.json", '{"โบก": {"actions": "left"}}', "a list of actions"),
        ("semantic/behaviors/behaviors.json", '{"": {"actions": ["left"]}}', "needs a name"),
    ],
)
def test_what_cannot_be_taken_in_whole_is_told_and_stays(
    account: Account, tree: Path, place: str, mine: str, why: str
) -> None:
    (tree / place).parent.mkdir(parents=True, exist_ok=True)
    (tree / place).write_text(mine)
    (held,) = account.sync(commit=True).refused
    assert (held.path, why in held.reason, (tree / place).read_text()) == (place, True, mine)


def test_a_page_saved_while_a_sync_runs_is_not_written_over(tmp_path: Path) -> None:
    tree = Tree(Disk(), tmp_path)
    tree.put("a.md", b"shown", over=None)
    seen = tree.read("a.md")
    (tmp_path / "a.md").write_bytes(b"saved meanwhile")
    assert seen == b"shown"
    assert not tree.put("a.md", b"newer", over=seen)
    assert not tree.put("a.md", None, over=seen)
    assert (tmp_path / "a.md").read_bytes() == b"saved meanwhile"


def test_ids_that_an_editor_took_away_are_no_edit(account: Account, tree: Path) -> None:
    page, before = tree / OBJECTS, account.version
    shown = page.read_text()
    page.write_text(re.sub(r" \^\S+$", "", shown, flags=re.MULTILINE))
    assert account.sync().edits == ()
    account.sync(commit=True)
    assert (page.read_text(), account.version) == (shown, before)


def test_a_line_that_is_taken_in_is_taken_in_once_whatever_becomes_of_it_before_its_file_is_written(
    account: Account, tree: Path
) -> None:
    page = tree / OBJECTS
    with page.open("a") as file:
        file.write("- บันไดอยู่หลังบ้าน\n")
    edited = page.read_bytes()
    manifest = (tree / ".octavo/mirror.json").read_bytes()
    account.sync(commit=True)
    page.write_bytes(edited)  # as a sync leaves it that is killed once it has committed
    (tree / ".octavo/mirror.json").write_bytes(manifest)
    (ladder,) = (memory for memory in account.memories() if "บันได" in memory.text)
    account.revise(ladder.id, category="places")
    account.sync(commit=True)
    assert [m.category for m in account.memories() if "บันได" in m.text] == ["places"]
    account.forget(ladder.id)
    account.sync(commit=True)
    with page.open("a") as file:
        file.write("- บันไดอยู่หลังบ้าน\n")
    assert [edit.action for edit in account.sync(commit=True).edits] == ["remember"]
    assert "บันได" in page.read_text()


def test_an_edit_of_what_ended_meanwhile_is_taken_in_once_if_its_file_was_not_written(
    account: Account, tree: Path
) -> None:
    (lava,) = (memory for memory in account.memories() if memory.text == LAVA)
    page, manifest = tree / OBJECTS, tree / ".octavo/mirror.json"
    page.write_text(page.read_text().replace(LAVA, "ลาวาเย็นแล้ว"))
    edited, shown = page.read_bytes(), manifest.read_bytes()
    account.forget(lava.id)
    for _ in range(2):
        account.sync(commit=True, take="theirs")
        page.write_bytes(edited)  # as a sync leaves it that is killed once it has committed
        manifest.write_bytes(shown)
    account.sync(commit=True, take="theirs")
    assert sorted(m.text for m in account.memories()) == sorted([KEY, "ลาวาเย็นแล้ว"])
    assert account.sync().edits == ()


def test_a_line_that_went_to_the_next_file_of_its_page_is_not_taken_in_again(
    account: Account, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_places, "BLOCKS", 2)
    page = tree / OBJECTS
    with page.open("a") as file:
        file.write("- บันไดอยู่หลังบ้าน\n")
    edited = page.read_bytes()
    manifest = (tree / ".octavo/mirror.json").read_bytes()
    account.sync(commit=True)
    (tree / ".octavo/mirror.json").write_bytes(manifest)
    page.write_bytes(edited)
    account.mirror()  # the second file is there, the first is still the person's
    assert account.sync(commit=True).edits == ()
    assert sum("บันได" in memory.text for memory in account.memories()) == 1
    assert "บันได" not in page.read_text()


@pytest.mark.parametrize("indent", ["  ", "\t", "    "])
def test_lines_added_below_a_block_belong_to_it(account: Account, tree: Path, indent: str) -> None:
    page = tree / OBJECTS
    page.write_text(re.sub(rf"(- {LAVA}.*)", rf"\1\n{indent}- แม้แต่หุ่นยนต์\n", page.read_text()))
    done = account.sync(commit=True)
    assert [edit.action for edit in done.edits] == ["revise"]
    said = f"{LAVA}\n{indent[2:]}- แม้แต่หุ่นยนต์"
    assert texts(account) == {KEY, said}
    assert account.sync().edits == ()


def test_two_blocks_joined_into_one_line_are_one_memory(account: Account, tree: Path) -> None:
    account.remember("กุญแจสีแดงอยู่ในครัว", category="objects", data={"section": "Keys"})
    account.mirror()
    page = tree / OBJECTS
    first, second = (line for line in page.read_text().splitlines() if "กุญแจ" in line or KEY in line)
    page.write_text(page.read_text().replace(f"{first}\n{second}", f"{first} {second[2:]}"))
    assert [edit.action for edit in account.sync(commit=True).edits] == ["revise", "forget"]
    assert texts(account) == {LAVA, f"{KEY} กุญแจสีแดงอยู่ในครัว"}
    assert account.sync().edits == ()


def test_an_id_without_its_space_is_still_that_of_the_block(account: Account, tree: Path) -> None:
    page = tree / OBJECTS
    page.write_text(page.read_text().replace(" ^", "^"))
    assert account.sync(commit=True).edits == ()
    assert " ^" in page.read_text()


def test_a_text_that_names_another_block_is_no_join(account: Account, tree: Path) -> None:
    (lava,) = (memory for memory in account.memories() if memory.text == LAVA)
    account.remember(f"see what is said of lava ^{lava.id} before you go", category="objects")
    account.mirror()
    page = tree / OBJECTS
    page.write_text(page.read_text().replace("red key", "blue key"))
    assert [edit.action for edit in account.sync(commit=True).edits] == ["revise"]
    assert f"see what is said of lava ^{lava.id} before you go" in texts(account)


@pytest.mark.parametrize(
    "name", ["objects (conflicted copy 2026-05-04).md", "objects.sync-conflict-20260504-1.md", "objects 2.md"]
)
def test_a_copy_that_a_shared_folder_made_of_a_page_is_left_alone(
    account: Account, tree: Path, name: str
) -> None:
    copy = (tree / OBJECTS).with_name(name)
    copy.write_text((tree / OBJECTS).read_text().replace("red key", "blue key"))
    done = account.sync(commit=True)
    assert (done.edits, [held.path for held in done.left_alone]) == ((), [f"semantic/knowledge/{name}"])
    assert "is a copy of semantic/knowledge/objects.md" in done.left_alone[0].reason
    copy.write_text("- ของใหม่ล้วน ๆ\n")
    assert [edit.text for edit in account.sync(commit=True).edits] == ["ของใหม่ล้วน ๆ"]


def test_another_bullet_is_no_edit_and_a_plan_says_where_a_line_went(account: Account, tree: Path) -> None:
    page = tree / OBJECTS
    page.write_text(page.read_text().replace("\n- ", "\n+ "))
    assert account.sync().edits == ()
    page.write_text(page.read_text().replace("## Keys", "## กุญแจ"))
    assert [edit.text for edit in account.sync().edits] == [f"{KEY} → กุญแจ"]


def test_a_register_that_is_written_anew_is_its_next_revision(account: Account, tree: Path) -> None:
    home = account.remember("lives in Chiang Mai", kind="register", topic="home").memory
    account.mirror()
    page = tree / "semantic/registers.md"
    page.write_text(re.sub("- lives.*", "- ย้ายไปกรุงเทพแล้ว", page.read_text()))
    assert [(edit.action, edit.id) for edit in account.sync(commit=True).edits] == [("revise", home.id)]
    assert [(m.text, m.topic) for m in account.memories(kind="register")] == [("ย้ายไปกรุงเทพแล้ว", "home")]
    page.write_text(page.read_text() + "- and in Lampang\n")
    held = account.sync(commit=True)
    assert (held.edits, [one.reason.partition(",")[0] for one in held.refused]) == (
        (), ["two blocks stand under 'home'"],
    )  # fmt: skip
    assert "Lampang" in page.read_text()


def test_a_line_under_the_heading_of_another_register_is_what_that_one_says(
    account: Account, tree: Path
) -> None:
    home = account.remember("lives in Chiang Mai", kind="register", topic="home").or_raise()
    work = account.remember("ทำงานที่ลำปาง", kind="register", topic="work").or_raise()
    account.mirror()
    page = tree / "semantic/registers.md"
    first, second = (line for line in page.read_text().splitlines() if line.startswith("- "))
    page.write_text(
        page.read_text().replace(first, "-").replace(second, first).replace("\n-\n", f"\n{second}\n")
    )
    account.sync(commit=True)
    assert {m.topic: (m.id, m.text) for m in account.memories(kind="register")} == {
        "home": (home.id, work.text), "work": (work.id, home.text)
    }  # fmt: skip
    page.write_text(page.read_text().replace("## home", "## บ้าน"))
    account.sync(commit=True)
    assert {m.topic: m.id for m in account.memories(kind="register")} == {"บ้าน": home.id, "work": work.id}
    assert account.sync().edits == ()


def test_a_block_that_the_next_file_of_a_long_page_shows_already_is_no_copy(
    account: Account, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_places, "BLOCKS", 2)
    first = account.remember("บันไดอยู่หลังบ้าน", category="places").or_raise()
    for memory in account.memories(category="objects"):
        account.revise(memory.id, category="places")
    account.revise(first.id, category="objects")
    account.mirror()
    page = tree / "semantic/knowledge/places.md"
    page.write_text(page.read_text() + "- a person's line\n")
    account.remember("the ladder is made of wood", category="places")
    account.mirror()  # the page is two files now, and the first is the person's
    account.sync(commit=True)
    told = [memory.text for memory in account.memories()]
    assert len(told) == len(set(told)) == 5
    assert account.sync().edits == ()


def test_a_page_whose_first_file_shows_nothing_any_more_leaves_no_file_of_what_was_taken_in(
    account: Account, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_places, "BLOCKS", 2)
    for text in ("the oak is old", "ต้นไทรอยู่หน้าบ้าน"):
        account.forget(account.remember(text, category="trees").or_raise().id)
    (tree / "semantic/knowledge/trees.md").write_text("- a person saw a palm\n")
    account.remember("the birch is white", category="trees")
    account.remember("มะม่วงออกผลแล้ว", category="trees")
    account.sync(commit=True)
    shown = "".join(file.read_text() for file in (tree / "semantic/knowledge").glob("trees*.md"))
    assert shown.count("a person saw a palm") == 1
    assert account.sync().edits == ()
    assert sorted(m.text for m in account.memories(category="trees")) == [
        "a person saw a palm", "the birch is white", "มะม่วงออกผลแล้ว"
    ]  # fmt: skip
