"""The mirror: an account as files that people read and edit, and the way back through the gate."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from docs import files_picture
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec.structs import replace

import octavo
from octavo.documents.brain import FilesystemMemory
from octavo.documents.brain.events import EventLog
from octavo.documents.brain.teaching import Teaching
from octavo.domain import blocks, mirror, mirror_places
from octavo.domain.buffer import Wrote
from octavo.domain.memory import Memory
from octavo.engine.account import Account
from octavo.errors import BadInput, HumanOnly, NotFound, OutOfScope
from octavo.storage.mirror_tree import Tree
from octavo.storage.state_view import DbView
from octavo.storage.stores.disk import Disk

AT = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)
OBJECTS = "semantic/knowledge/objects.md"
WORDS = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            [
                "กุญแจ",
                "key ^abc",
                "^",
                "😀",
                "```",
                "  ",
                "",
                "- x",
                "## y",
                "&#13;",
                "&amp;#13;",
                "\r",
                "| a |",
            ]
        ),
        max_size=6,
    ).map("\n".join),
)


def opened(folder: Path, **more: Any) -> Account:
    return octavo.open(folder, "nok", actor="human:nok", **more)


@pytest.fixture
def account(tmp_path: Path) -> Any:
    with opened(tmp_path) as account:
        account.remember("the red key opens the north door", category="objects", data={"section": "Keys"})
        account.remember("ลาวาร้อนมาก ห้ามเดินผ่าน", category="objects")
        yield account


@pytest.fixture
def tree(account: Account) -> Path:
    return Path(account.mirror().folder)


def edit(tree: Path, path: str, old: str, new: str) -> None:
    text = (tree / path).read_text()
    assert old in text
    (tree / path).write_text(text.replace(old, new))


def files(tree: Path) -> dict[str, bytes]:
    return {p.relative_to(tree).as_posix(): p.read_bytes() for p in tree.rglob("*") if p.is_file()}


# Rendering


def page_of(items: list[tuple[str, str, str]]) -> str:
    """The page of facts, each with its section, its text and its id."""
    told: dict[str, Any] = {"kind": "fact", "category": "objects", "at": AT}
    facts = [Memory(id=id_, text=text, data={"section": section}, **told) for section, text, id_ in items]
    place = mirror_places.Place(path=OBJECTS, form="page", kind="fact", category="objects")
    return mirror.render(place, OBJECTS, facts, {}).decode()


@given(texts=st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=6))
def test_a_page_says_exactly_what_its_memories_say_whatever_they_say(texts: list[tuple[str, str]]) -> None:
    written = [(s, t, f"m{n}") for n, (s, t) in enumerate(texts)]
    page = page_of(written)
    read = [block[:3] for block in blocks.blocks_of(page, ["Objects"])]
    assert sorted(read, key=lambda block: str(block[2])) == written
    assert page == page_of(written)
    assert [block[:3] for block in blocks.blocks_of(page.replace("\n", "\r\n"), ["Objects"])] == read


@given(text=WORDS, description=st.one_of(st.none(), WORDS))
def test_a_skill_file_says_exactly_what_the_skill_says(text: str, description: str | None) -> None:
    data = {} if description is None else {"description": description}
    memory = Memory(id="m1", kind="skill", text=text, at=AT, topic="skills/dance", data=data)
    place = mirror_places.place_of(memory)
    assert place is not None
    file = mirror.render(place, place.path, [memory], {})
    assert mirror.render(place, place.path, [memory], {}) == file
    (one,) = mirror.read(place, place.path, file)
    assert (one.said["text"], one.id) == (text, "m1")
    kept = {name: value for name, value in one.said["data"].items() if value is not None}
    again = replace(memory, text=one.said["text"], data=kept)
    assert mirror.render(place, place.path, [again], {}) == file


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@given(text=WORDS, section=WORDS, data=st.dictionaries(WORDS, PLAIN, min_size=1, max_size=3))
def test_what_is_read_from_any_file_that_can_be_edited_is_what_its_memory_says(
    text: str, section: str, data: dict[str, Any]
) -> None:
    told = {"name": "wave", "actions": [text or "left"], "description": section}
    for fields in (
        {"kind": "fact", "category": "objects", "data": {**data, "section": section}},
        {"kind": "canon", "category": section or None},
        {"kind": "register", "topic": section or None},
        {"kind": "register", "topic": "mood", "category": "state", "data": data},
        {"kind": "skill", "topic": "skills/dance", "data": {"description": section}},
        {"kind": "skill", "topic": "agents", "approved": "human:nok"},
        {"kind": "skill", "topic": "mcp", "approved": "human:nok", "data": data},
        {"kind": "skill", "topic": "behavior/wave", "category": "behavior", "data": told},
    ):
        memory = Memory(**{"id": "m1", "at": AT, "text": text, **fields})
        place = mirror_places.place_of(memory)
        assert place is not None
        file = mirror.render(place, place.path, [memory], {})
        assert file == mirror.render(place, place.path, [memory], {})
        (found,) = mirror.read(place, place.path, file)
        assert found.said == mirror.says(place, memory)
        assert mirror_places.recognise(place.path, file.decode()) == place
        changed = mirror.fields_of(place, found.said, memory)
        again = Memory(**{"id": "m1", "at": AT, "text": text, **fields, **changed})
        assert mirror.render(place, place.path, [again], {}) == file


@example(name="\u1e96")  # two letters where case means nothing, and one again as it is composed
@given(name=st.text(min_size=1, max_size=90))
def test_a_name_is_one_on_every_file_system(name: str) -> None:
    safe = mirror_places.safe(name)
    assert mirror_places.safe(safe) == safe == unicodedata.normalize("NFC", safe)
    tree = Tree(Disk(), Path("/nowhere"))
    tree.inside(f"semantic/knowledge/{safe}.md")
    assert "/" not in safe


def test_names_that_differ_in_case_or_composition_alone_are_kept_apart() -> None:
    names = ["Café", "café", "cafe\u0301", "CAFÉ", "con", "a/b", "a:b", "..", "x-0002"]
    assert len({mirror_places.safe(name).casefold() for name in names}) == len(names)


def test_rendering_twice_gives_the_same_bytes_and_a_second_mirror_too(
    account: Account, tmp_path: Path
) -> None:
    first = Path(account.mirror().folder)
    second = Path(account.mirror(tmp_path / "elsewhere").folder)
    without = {p: b for p, b in files(first).items() if not p.startswith(".octavo")}
    assert without == {p: b for p, b in files(second).items() if not p.startswith(".octavo")}
    before = files(first)
    assert account.mirror(first).written == ()
    assert files(first) == before


def test_every_kind_has_its_place(tmp_path: Path) -> None:
    with opened(tmp_path) as account:
        account.remember("lives in Chiang Mai", kind="register", topic="home")
        account.remember("Nok paints", kind="canon", category="identity")
        account.remember("Dances when music plays.", kind="skill", topic="skills/robot_dance")
        account.remember("# Rules\n\nBe kind.", kind="skill", topic="agents", category="procedural")
        account.remember("x", kind="skill", topic="guardrails", category="guardrail", data={"never": ["fly"]})
        actions = {"name": "wave", "actions": ["left", "right"]}
        account.remember("wave: left", kind="skill", category="behavior", topic="behavior/wave", data=actions)
        account.remember("it started", kind="episode", category="event", data={"event_type": "spawn"})
        account.remember("a word of Orion", scope="orion", category="notes")
        with account.sandbox() as sandbox:
            sandbox.turn("Nok", "สวัสดี")
            sandbox.turn("Orion", "hello")
            sandbox.update_state("mood", {"calm": 0.5})
        tree = Path(account.mirror().folder)
        day = f"{account.versions()[-1].at:%Y-%m-%d}"
        assert set(files(tree)) == {
            ".gitignore",
            ".octavo/mirror.json",
            "session_state.json",
            "semantic/registers.md",
            "semantic/canon.md",
            "semantic/skills/robot-dance/SKILL.md",
            "semantic/states/mood.json",
            "semantic/behaviors/behaviors.json",
            "procedural/AGENTS.md",
            "procedural/guardrails.json",
            "episodic/events/events.jsonl",
            f"episodic/conversations/{day}_session1.json",
            "scopes/orion/semantic/knowledge/notes.md",
        }
        talk = json.loads((tree / f"episodic/conversations/{day}_session1.json").read_text())
        assert [turn["content"] for turn in talk["turns"]] == ["สวัสดี", "hello"]
        taught = json.loads((tree / "semantic/behaviors/behaviors.json").read_text())
        assert taught["wave"]["actions"] == ["left", "right"]
        assert taught["wave"]["times_invoked"] == 0
        assert account.sync().edits == ()


def test_many_runs_are_shown_without_looking_for_each_among_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    memories = DbView.memories
    with opened(tmp_path) as account:
        for number in range(12):
            FilesystemMemory(account).save_episode({"metadata": {"episode_id": f"e{number}"}, "steps": []})
        monkeypatch.setattr(DbView, "memories", lambda *how: asked.append(how) or memories(*how))
        shown = account.mirror().written
    assert sum(path.startswith("episodic/rlds_episodes/") for path in shown) == 24
    assert len(asked) < 12


def test_twice_as_many_skills_are_twice_as_much_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place_of, looked = mirror_places.place_of, list[str]()
    monkeypatch.setattr(mirror_places, "place_of", lambda m, *how: looked.append(m.id) or place_of(m, *how))
    steps = []
    for number in (20, 40):
        with octavo.open(tmp_path, f"nok{number}", actor="human:nok", embedder=False) as account:
            skills = [f"it knows trick {n * 7919}" for n in range(number)]
            account.remember_many(
                {"text": text, "kind": "skill", "topic": f"skills/s{n}"} for n, text in enumerate(skills)
            )
            looked.clear()
            written = account.mirror().written
            assert sum(path.endswith("SKILL.md") for path in written) == number
        steps.append(len(looked))
    assert steps[1] <= 2 * steps[0]


def test_a_commit_to_ten_thousand_memories_rewrites_at_most_two_files(tmp_path: Path) -> None:
    with opened(tmp_path) as account:
        items = [
            {"text": f"tile {n} of the grid is {n * 7919 % 10007}", "category": f"page{n % 4}"}
            for n in range(10_000)
        ]
        account.intake.write_many(
            [
                Wrote(memory=Memory(id=f"m{n}", kind="fact", text=i["text"], category=i["category"], at=AT))
                for n, i in enumerate(items)
            ],
            cause="import",
            skip=frozenset({"duplicate"}),
        )
        account.mirror()
        folder = tmp_path / "nok" / "mirror" / "semantic" / "knowledge"
        assert len(list(folder.iterdir())) == 12
        account.revise("m4321", text="tile 4321 is lava now")
        assert len(account.mirror().written) == 1
        account.forget("m17")
        assert len(account.mirror().written) == 1
        account.revise("m4321", category="page2")
        assert len(account.mirror().written) == 2
        assert account.sync().edits == ()


# The way back


def test_an_edit_by_hand_comes_back_as_one_version_of_that_person(account: Account, tree: Path) -> None:
    edit(tree, OBJECTS, "red key", "blue key")
    with (tree / OBJECTS).open("a") as page:
        page.write("\n- ประตูเหนือเปิดด้วยกุญแจ\n\nA paragraph is a memory too.\n")
    before = account.version
    plan = account.sync()
    assert [e.action for e in plan.edits] == ["revise", "remember", "remember"]
    assert [e.line for e in plan.edits] == [11, 13, 15]
    assert account.version == before
    done = account.sync(commit=True)
    assert done.version == before + 1
    commit = account.versions()[-1]
    assert (commit.cause, commit.actor) == ("sync", "human:nok")
    texts = {m.text: m for m in account.memories(category="objects")}
    assert "the blue key opens the north door" in texts
    assert texts["ประตูเหนือเปิดด้วยกุญแจ"].data["section"] == "Keys"
    assert texts["the blue key opens the north door"].rev == 2
    assert account.sync().edits == ()
    assert account.sync(commit=True).version == before + 1


def test_a_removed_line_is_forgotten_and_a_moved_one_changes_its_page(account: Account, tree: Path) -> None:
    lines = (tree / OBJECTS).read_text().splitlines(keepends=True)
    moved = next(line for line in lines if "red key" in line)
    (tree / OBJECTS).write_text("".join(line for line in lines if "key" not in line and "ลาวา" not in line))
    (tree / "semantic/knowledge/doors.md").write_text(f"# Doors\n\n{moved}")
    assert sorted(e.action for e in account.sync().edits) == ["forget", "revise"]
    account.sync(commit=True)
    (only,) = account.memories(kind="fact")
    assert (only.text, only.category, only.rev) == ("the red key opens the north door", "doors", 2)
    assert not (tree / OBJECTS).exists()
    assert account.sync().edits == ()


def test_the_id_of_code_stands_below_it_so_that_its_fence_ends(account: Account, tree: Path) -> None:
    code = "```py\nx = 1\n\ny = 2\n```"
    page = tree / "semantic/knowledge/garden.md"
    page.write_text(f"{code}\n\n- ใส่ปุ๋ย\n")
    account.sync(commit=True)
    assert {m.text for m in account.memories(category="garden")} == {code, "ใส่ปุ๋ย"}
    assert re.search(r"\n  ```\n  \^\w+\n- ใส่ปุ๋ย \^\w+\n\Z", page.read_text())
    assert account.sync().edits == ()


def test_a_page_of_ones_own_is_new_knowledge_and_other_files_are_left_alone(
    account: Account, tree: Path
) -> None:
    (tree / "semantic/knowledge/plants.md").write_text("# Plants\r\n\r\n- basil needs sun\r\n* โหระพา\r\n")
    (tree / "todo.txt").write_text("buy soil")
    done = account.sync(commit=True)
    assert {m.text for m in account.memories(category="plants")} == {"basil needs sun", "โหระพา"}
    assert [held.path for held in done.left_alone] == ["todo.txt"]
    assert (tree / "todo.txt").read_text() == "buy soil"


def test_two_who_change_different_lines_both_count(account: Account, tree: Path) -> None:
    (lava,) = [m for m in account.memories(category="objects") if "ลาวา" in m.text]
    edit(tree, OBJECTS, "red key", "blue key")
    account.revise(lava.id, text="ลาวาเย็นแล้ว")
    done = account.sync(commit=True)
    assert done.conflicts == ()
    text = (tree / OBJECTS).read_text()
    assert "blue key" in text
    assert "ลาวาเย็นแล้ว" in text


@pytest.mark.parametrize(("take", "kept"), [("ours", "green key"), ("theirs", "blue key")])
def test_a_conflict_keeps_both_until_somebody_decides(
    account: Account, tree: Path, take: Any, kept: str
) -> None:
    (key,) = [m for m in account.memories(category="objects") if "key" in m.text]
    edit(tree, OBJECTS, "red key", "blue key")
    account.revise(key.id, text="the green key opens the north door")
    mine = (tree / OBJECTS).read_bytes()
    for _ in range(2):
        done = account.sync(commit=True)
        assert [held.line for held in done.conflicts] == [11]
        assert (tree / OBJECTS).read_bytes() == mine
    (copy,) = tree.rglob("*.octavo-*")
    assert "green key" in copy.read_text()
    account.sync(commit=True, take=take)
    assert kept in (tree / OBJECTS).read_text()
    assert kept in account.get(key.id).text  # type: ignore[union-attr]
    assert list(tree.rglob("*.octavo-*")) == []


def test_what_a_person_writes_into_the_copy_of_a_conflict_stays(account: Account, tree: Path) -> None:
    page = tree / "semantic/knowledge/objects.md"
    (key,) = (memory for memory in account.memories() if "red key" in memory.text)
    page.write_text(page.read_text().replace("red key", "blue key"))
    account.revise(key.id, text="the green key opens the north door")
    account.sync(commit=True)
    (copy,) = page.parent.glob("objects.octavo-*.md")
    copy.write_text(copy.read_text() + "\nจดไว้ก่อน\n")
    for take in (None, "theirs"):
        account.sync(commit=True, take=take)  # type: ignore[arg-type]
        assert "จดไว้ก่อน" in copy.read_text()


def test_what_the_gate_refuses_stays_in_the_file_with_its_line(account: Account, tree: Path) -> None:
    with (tree / OBJECTS).open("a") as page:
        page.write("- the card is 4111 1111 1111 1111\n")
    mine = (tree / OBJECTS).read_bytes()
    done = account.sync(commit=True)
    assert [(held.path, held.line) for held in done.refused] == [(OBJECTS, 12)]
    assert (tree / OBJECTS).read_bytes() == mine
    assert len(account.memories(category="objects")) == 2


def test_an_edit_that_is_taken_back_lets_the_newer_words_in(account: Account, tree: Path) -> None:
    (key,) = [m for m in account.memories(category="objects") if "key" in m.text]
    before = (tree / OBJECTS).read_bytes()
    edit(tree, OBJECTS, "red key", "blue key")
    account.revise(key.id, text="the green key opens the north door")
    account.mirror()
    assert "blue key" in (tree / OBJECTS).read_text()
    (tree / OBJECTS).write_bytes(before)
    account.mirror()
    assert "green key" in (tree / OBJECTS).read_text()
    assert account.sync().edits == ()


def test_the_documents_own_agents_file_is_read_and_becomes_the_one_of_the_tree(
    account: Account, tree: Path
) -> None:
    (tree / "procedural/agents.md").write_text("# Rules\n\nBe kind. ใจดี\n")
    for _ in range(2):
        account.sync(commit=True)
        (rule,) = account.memories(kind="skill", topic="agents")
        assert (rule.text, rule.layer, rule.rev) == ("# Rules\n\nBe kind. ใจดี", "procedural", 1)
        assert sorted(p for p in files(tree) if p.startswith("procedural")) == ["procedural/AGENTS.md"]


def test_a_long_page_is_several_files_and_one_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_places, "BLOCKS", 3)
    with opened(tmp_path) as account:
        texts = [f"tile {n} of the grid is {n * 7919 % 10007}" for n in range(8)]
        written = [
            Wrote(memory=Memory(id=f"m{n}", kind="fact", text=text, at=AT)) for n, text in enumerate(texts)
        ]
        account.intake.write_many(written, cause="test", skip=frozenset({"duplicate"}))
        tree = Path(account.mirror().folder) / "semantic/knowledge"
        names = ["general-0002.md", "general-0003.md", "general.md"]
        assert sorted(p.name for p in tree.iterdir()) == names
        account.forget("m3", "m4", "m5")
        account.revise("m0", category="general")  # the page it is on already
        assert account.mirror().removed == ("semantic/knowledge/general-0002.md",)
        assert sorted(p.name for p in tree.iterdir()) == ["general-0003.md", "general.md"]
        account.forget("m1", "m2")
        account.mirror()
        assert [p.name for p in tree.iterdir()] == ["general.md"]
        assert (tree / "general.md").read_text().count("\n- ") == 3
        assert account.sync().edits == ()


def test_a_page_of_several_files_is_the_same_however_it_came_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_places, "BLOCKS", 3)
    with opened(tmp_path, embedder=False) as account:

        def add(n: int) -> None:
            memory = Memory(id=f"m{n}", kind="fact", text=f"tile {n} is {n * 7919}", category="a", at=AT)
            account.intake.write_many([Wrote(memory=memory)], cause="test", skip=frozenset({"duplicate"}))

        steps: list[Any] = [lambda n=n: add(n) for n in range(8)]
        steps += [
            lambda: account.revise("m1", category="b"),
            lambda: add(8),
            lambda: account.revise("m1", category="a"),  # where it first was
            lambda: account.redact("m2", reason="asked to"),  # it counts no more
            lambda: add(9),
            lambda: account.forget("m0", "m3", "m4", "m5", "m6"),
            lambda: add(10),
            lambda: account.revise("m10", text="tile 10 is lava"),
        ]
        tree = Path(account.mirror().folder)
        for number, step in enumerate(steps):
            step()
            account.mirror(tree)
            fresh = Path(account.mirror(tmp_path / f"fresh{number}").folder)
            pages = [
                {p: b for p, b in files(some).items() if "knowledge" in p and b"- " in b}
                for some in (tree, fresh)
            ]
            assert pages[0] == pages[1], number
            assert account.sync(tree).edits == ()
            shutil.rmtree(fresh)
            account.mirror(tree)


def test_only_a_person_takes_edits_in_and_only_the_owner_mirrors(
    account: Account, tree: Path, tmp_path: Path
) -> None:
    edit(tree, OBJECTS, "the red", "the blue")
    with octavo.open(tmp_path, "nok", actor="agent:orion") as agent:
        assert len(agent.sync().edits) == 1
        with pytest.raises(HumanOnly):
            agent.sync(commit=True)
    with octavo.open(tmp_path, "nok", scope="orion") as bound, pytest.raises(OutOfScope):
        bound.mirror()


def test_many_endings_at_once_are_refused_until_they_are_meant(tmp_path: Path) -> None:
    with opened(tmp_path) as account:
        account.remember_many({"text": f"number {n} is {n * 31}", "category": "sums"} for n in range(60))
        tree = Path(account.mirror().folder)
        count = len(account.memories())
        assert count > 50
        (tree / "semantic/knowledge/sums.md").unlink()
        with pytest.raises(BadInput, match=f"would end {count} of {count}"):
            account.sync(commit=True)
        assert len(account.memories()) == count
        account.sync(commit=True, delete=True)
        assert account.memories() == []


def test_a_watch_never_ends_a_memory(account: Account, tree: Path) -> None:
    lines = (tree / OBJECTS).read_text().splitlines(keepends=True)
    (tree / OBJECTS).write_text("".join(line for line in lines if "key" not in line))
    done = account.sync(commit=True, endings=False)
    assert "ends 1 of the memories" in done.refused[0].reason
    assert len(account.memories()) == 2


def test_a_watch_goes_on_where_many_memories_would_end_and_takes_the_rest_in(tmp_path: Path) -> None:
    with opened(tmp_path) as account:
        facts = [Memory(id=f"m{n}", kind="fact", text=f"tile {n * 7919}", at=AT) for n in range(60)]
        account.intake.write_many(
            [Wrote(memory=fact) for fact in facts], cause="test", skip=frozenset({"duplicate"})
        )
        tree = Path(account.mirror().folder)
        (tree / "semantic/knowledge/general.md").unlink()
        (tree / "semantic/knowledge/notes.md").write_text("- กระดาษโน้ต\n")
        done = account.sync(commit=True, endings=False)
        assert [edit.text for edit in done.edits] == ["กระดาษโน้ต"]
        assert "it ends 60 of the memories" in done.refused[0].reason
        assert len(account.memories()) == 61


def test_episodes_are_written_again_and_never_taken_in(tmp_path: Path) -> None:
    with opened(tmp_path) as account:
        with account.sandbox() as sandbox:
            sandbox.turn("Nok", "hello there")
        tree = Path(account.mirror().folder)
        (talk,) = (tree / "episodic/conversations").iterdir()
        told = talk.read_bytes()
        talk.write_bytes(told.replace(b"hello", b"goodbye"))
        assert account.sync().edits == ()
        account.sync(commit=True)
        assert talk.read_bytes() == told
        talk.unlink()
        account.sync(commit=True)
        assert talk.read_bytes() == told


def test_json_files_and_behaviours_are_edited_whole_and_a_broken_one_is_never_overwritten(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as account:
        account.remember("x", kind="skill", topic="guardrails", category="guardrail", data={"never": ["fly"]})
        actions = {"name": "wave", "actions": ["left", "right"]}
        account.remember("wave: left", kind="skill", category="behavior", topic="behavior/wave", data=actions)
        tree = Path(account.mirror().folder)
        rails, taught = tree / "procedural/guardrails.json", tree / "semantic/behaviors/behaviors.json"
        rails.write_text('{"never": ["fly", "swim"]}')
        known = json.loads(taught.read_text())
        known["bow"] = {"actions": ["down", "up"]}
        taught.write_text(json.dumps(known))
        account.sync(commit=True)
        (rule,) = account.memories(kind="skill", layer="procedural")
        assert (rule.data, rule.approved) == ({"never": ["fly", "swim"]}, "human:nok")
        assert set(json.loads(taught.read_text())) == {"wave", "bow"}
        account.remember("idle", kind="skill", category="behavior", topic="behavior/idle")
        account.mirror()
        taught.write_text(taught.read_text().replace("down", "deep down"))
        assert not account.sync(commit=True).refused, "one that does nothing shuts nobody out of the file"
        taught.write_text("{broken")
        account.remember(
            "x", kind="skill", category="behavior", topic="behavior/x", data=actions | {"name": "x"}
        )
        done = account.sync(commit=True)
        assert "no JSON" in done.refused[0].reason
        assert taught.read_text() == "{broken"


def test_a_secret_in_the_tools_file_is_refused_and_the_name_of_a_variable_is_not(tmp_path: Path) -> None:
    with opened(tmp_path) as account:
        tools = {"servers": {"git": {"env": {"TOKEN": "${GIT_TOKEN}"}}}}
        account.remember("x", kind="skill", topic="mcp", category="procedural", data=tools).or_raise()
        file = Path(account.mirror().folder) / "procedural/mcp.json"
        for secret in ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "correct-horse-7"):
            mine = json.dumps({"servers": {"git": {"env": {"PASSWORD": secret}}}})
            file.write_text(mine)
            (held,) = account.sync(commit=True).refused
            assert held.reason.startswith("secret")
            assert file.read_text() == mine
        file.write_text(json.dumps({"servers": {"git": {"env": {"PASSWORD": "${GIT_PASSWORD}"}}}}))
        assert account.sync(commit=True).refused == ()
        (kept,) = account.memories(kind="skill", topic="mcp")
        assert (kept.rev, kept.approved) == (2, "human:nok")


def test_a_lost_manifest_costs_a_look_and_no_edit(account: Account, tree: Path) -> None:
    (key,) = [m for m in account.memories(category="objects") if "key" in m.text]
    shutil.rmtree(tree / ".octavo")
    assert account.sync().edits == ()
    account.revise(key.id, text="the green key opens the north door")
    assert account.sync().edits == ()
    edit(tree, OBJECTS, "ลาวา", "ลาวาสีแดง")
    assert [e.action for e in account.sync().edits] == ["revise"]
    account.sync(commit=True)
    assert "green key" in (tree / OBJECTS).read_text()


def test_a_copied_account_leaves_the_mirror_of_the_first_one_alone(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as account:
        fact = account.remember("the box is red", category="objects").or_raise()
        tree = Path(account.mirror(tmp_path / "far" / "away" / "tree").folder)
    shutil.copytree(tmp_path / "data", tmp_path / "there")
    before = files(tree)
    with opened(tmp_path / "there") as copy:
        copy.redact(fact.id, reason="asked to")
        with pytest.raises(NotFound):
            copy.sync()
    assert files(tree) == before
    shutil.rmtree(tmp_path / "there")
    (tmp_path / "data").rename(tmp_path / "moved")  # what moved house takes its mirror along
    with opened(tmp_path / "moved") as moved:
        moved.redact(fact.id, reason="asked to")
    assert not any(b"red" in data for path, data in files(tree).items() if path.endswith("objects.md"))


def test_a_copied_account_has_a_mirror_of_its_own(account: Account, tree: Path, tmp_path: Path) -> None:
    account.close()
    shutil.copytree(tmp_path / "nok", tmp_path / "there" / "nok")
    with opened(tmp_path / "there") as copy:
        edit(tmp_path / "there/nok/mirror", OBJECTS, "the red", "the blue")
        assert len(copy.sync(commit=True).edits) == 1
    assert "red key" in (tree / OBJECTS).read_text()


# Paths


@pytest.mark.parametrize(
    "path", ["../out.md", "/etc/x", "a/../../x", "a\0b", "C:/x", "c:x", "con.md", "a/NUL", "a\\b", "x.", ""]
)
def test_a_path_that_leaves_the_tree_is_refused(tmp_path: Path, path: str) -> None:
    tree = Tree(Disk(), tmp_path)
    for act in (tree.read, lambda p: tree.put(p, b"x", over=None)):
        with pytest.raises(BadInput):
            act(path)


def test_links_are_not_followed_in_either_direction(account: Account, tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("- a stranger's words\n")
    (tree / "semantic/knowledge/linked.md").symlink_to(outside)
    shutil.rmtree(tree / "semantic/skills", ignore_errors=True)
    (tree / "semantic/skills").symlink_to(tmp_path)
    done = account.sync(commit=True)
    assert {held.path for held in done.left_alone} == {"semantic/knowledge/linked.md", "semantic/skills"}
    assert len(account.memories()) == 2
    account.remember("Dances.", kind="skill", topic="skills/dance")
    with pytest.raises(BadInput, match="is a link"):
        account.mirror()
    assert not (tmp_path / "dance").exists()


def test_files_that_differ_in_case_alone_are_left_alone(account: Account, tree: Path) -> None:
    for name in ("Plants.md", "plants.md", "cafe\u0301.md"):
        (tree / "semantic/knowledge" / name).write_text("- basil needs sun\n")
    done = account.sync(commit=True)
    assert len(done.left_alone) == 3
    assert len(account.memories()) == 2


def test_a_sync_without_a_mirror_says_how_to_make_one(tmp_path: Path) -> None:
    with opened(tmp_path) as account, pytest.raises(NotFound, match="no mirror") as error:
        account.sync()
    assert "octavo mirror" in error.value.advice


def test_a_mirror_lies_neither_among_the_accounts_files_nor_around_them_nor_in_a_file(
    account: Account, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("a person's own")
    home = tmp_path / "nok"
    for place in (home, home / "ledger", home / "mirror" / "inside", tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(BadInput):
            account.mirror(place)
    assert not (home / "attached.json").exists()
    assert not list(tmp_path.rglob("semantic"))
    with pytest.raises(NotFound, match="octavo mirror"):
        account.sync()


def test_a_mirror_that_a_person_removed_is_none_and_another_one_is_meant(
    account: Account, tree: Path, tmp_path: Path
) -> None:
    account.mirror(tmp_path / "elsewhere" / "โน้ต")
    with pytest.raises(BadInput, match="2 mirrors"):
        account.sync()
    shutil.rmtree(tmp_path / "elsewhere")
    assert account.sync().folder == str(tree)
    assert account.mirror().edits == ()
    shutil.rmtree(tree)
    with pytest.raises(NotFound, match="octavo mirror"):
        account.sync(commit=True)
    assert account.mirror().written, "nothing was forgotten"


def test_a_page_or_a_skill_that_is_renamed_stays_the_same_memories(account: Account, tree: Path) -> None:
    account.remember("Dances when music plays.", kind="skill", topic="skills/dance")
    account.mirror()
    before = {m.id: m.text for m in account.memories()}
    before_key = next(text for text in before.values() if "key" in text)
    (tree / OBJECTS).rename(tree / "semantic/knowledge/สิ่งของ.md")
    (tree / "semantic/skills/dance").rename(tree / "semantic/skills/tango")
    edits = account.sync(commit=True).edits
    assert {e.action for e in edits} == {"revise"}
    assert f"{before_key} → สิ่งของ" in {e.text for e in edits}, "where it went, not under which heading"
    after = account.memories()
    assert {m.id: m.text for m in after} == before
    assert {m.category or m.topic for m in after} == {"สิ่งของ", "skills/tango"}
    assert sorted(p for p in files(tree) if p.endswith(".md")) == [
        "semantic/knowledge/สิ่งของ.md",
        "semantic/skills/tango/SKILL.md",
    ]
    assert account.sync().edits == ()


def test_a_new_folder_of_a_run_is_imported_and_a_broken_one_is_refused_with_its_line(
    account: Account, tree: Path
) -> None:
    runs = tree / "episodic/rlds_episodes"
    for name, steps in (("walk_1", '{"action": {"command": "forward"}, "raw": "\u2028", "done": true}\n'),
                        ("walk_2", '{"action": {}}\nnot JSON\n')):  # fmt: skip
        (runs / name).mkdir()
        (runs / name / "metadata.json").write_text(json.dumps({"success": True, "level_name": "ห้อง"}))
        (runs / name / "steps.jsonl").write_text(steps)
    done = account.sync(commit=True)
    assert [(e.action, e.id) for e in done.edits] == [("remember", "walk_1")]
    assert "line 2" in done.refused[0].reason
    (run,) = account.memories(category="rlds")
    assert (run.id, len(run.data["steps"]), run.data["steps"][-1]["is_last"]) == ("walk_1", 2, True)
    assert (runs / "walk_2/steps.jsonl").read_text() == '{"action": {}}\nnot JSON\n'
    assert account.sync().edits == ()
    shutil.copytree(runs / "walk_1", runs / "walk_3")
    assert "walk_1 is kept already" in account.sync(commit=True).refused[1].reason
    assert (runs / "walk_3/steps.jsonl").exists()


def test_a_watch_takes_in_what_is_saved_and_ends_when_told(
    account: Account, tree: Path, tmp_path: Path
) -> None:
    words = ["-m", "octavo", "--root", str(tmp_path), "--account", "nok", "--actor", "human:nok"]
    with subprocess.Popen(
        [sys.executable, *words, "sync", "--watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # a shell's background ignores it
    ) as watch:
        try:
            time.sleep(2)
            edit(tree, OBJECTS, "red key", "blue key")
            until = time.monotonic() + 60
            while not any("blue" in m.text for m in account.memories()) and time.monotonic() < until:
                time.sleep(0.2)
            time.sleep(2)  # it is at rest again
        finally:
            watch.send_signal(signal.SIGINT)
        told, meanwhile = watch.communicate(timeout=120)
    assert any("blue" in m.text for m in account.memories())
    assert "mirror" in told
    assert f"watching folder={tree}" in meanwhile
    assert f"edit taken in action=revise path={OBJECTS}" in meanwhile


# Redaction


def test_a_redaction_reaches_a_copy_of_a_conflict(account: Account, tree: Path) -> None:
    (key,) = [m for m in account.memories(category="objects") if "key" in m.text]
    edit(tree, OBJECTS, "red key", "blue key")
    account.revise(key.id, text="the green key opens the vault of Somchai")
    account.sync(commit=True)
    (copy,) = tree.rglob("*.octavo-*")
    assert "Somchai" in copy.read_text()
    done = account.redact(key.id, reason="asked to")
    assert done.unreached == ()
    assert not any(b"Somchai" in data for data in files(tree).values())
    assert account.check()


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_redaction_leaves_no_trace_in_any_mirror(tmp_path: Path, elsewhere: bool) -> None:
    secret = "the safe is behind\nthe blue painting"
    with opened(tmp_path / "data") as account:
        memory = account.remember(secret, category="objects").or_raise()
        account.remember("basil needs sun", category="objects")
        tree = Path(account.mirror(tmp_path / "vault" if elsewhere else None).folder)
        edit(tree, OBJECTS, "basil needs sun", "basil needs sun and water")
        (tree / OBJECTS).write_text((tree / OBJECTS).read_text() + "\nmint wants shade\n")
    with opened(tmp_path / "data") as account:
        done = account.redact(memory.id, reason="asked to")
        assert done.unreached == ()
        assert not any(b"blue painting" in data for data in files(tree).values())
        assert "mint wants shade" in (tree / OBJECTS).read_text()
        assert not any(
            b"blue painting" in p.read_bytes() for p in (tmp_path / "data").rglob("*") if p.is_file()
        )
        assert account.check()


def test_a_redaction_keeps_what_a_person_wrote_beside_the_text_and_has_not_synced(
    account: Account, tree: Path
) -> None:
    secret = account.remember("น้องสาวจะแต่งงานเงียบ ๆ", category="objects").or_raise()
    account.mirror()
    page = tree / OBJECTS
    edit(tree, OBJECTS, "red key", "blue key")
    page.write_text(page.read_text() + "- a new line\n")
    account.redact(secret.id, reason="told in confidence")
    shown = page.read_text()
    assert "แต่งงาน" not in shown
    assert "blue key" in shown
    assert "a new line" in shown
    assert [e.action for e in account.sync(commit=True).edits] == ["revise", "remember"]
    assert any("blue key" in memory.text for memory in account.memories())


def test_a_redaction_on_a_page_that_is_behind_takes_no_older_words_for_an_edit(
    account: Account, tree: Path
) -> None:
    secret = account.remember("น้องสาวจะแต่งงานเงียบ ๆ", category="objects").or_raise()
    account.mirror()
    (lava,) = [m for m in account.memories(category="objects") if "ลาวา" in m.text]
    edit(tree, OBJECTS, "red key", "blue key")
    account.revise(lava.id, text="ลาวาเย็นแล้ว")
    account.mirror()  # the file is the person's, and does not show it
    account.redact(secret.id, reason="told in confidence")
    assert "แต่งงาน" not in (tree / OBJECTS).read_text()
    assert [e.action for e in account.sync(commit=True).edits] == ["revise"]
    assert account.get(lava.id).text == "ลาวาเย็นแล้ว"  # type: ignore[union-attr]
    shown = (tree / OBJECTS).read_text()
    assert "blue key" in shown
    assert "ลาวาเย็นแล้ว" in shown


def test_a_page_that_cannot_be_read_is_left_to_the_person_and_holds_a_redaction_up(
    account: Account, tree: Path
) -> None:
    secret = account.remember("น้องสาวจะแต่งงานเงียบ ๆ", category="objects").or_raise()
    account.mirror()
    page = tree / OBJECTS
    page.write_text(page.read_text().replace("page: objects", "page: objects\nmine: ของฉัน"))
    before = page.read_bytes()
    account.redact(secret.id, reason="told in confidence")
    assert page.read_bytes() == before
    assert not account.check()
    page.write_text(page.read_text().replace("\nmine: ของฉัน", ""))
    account.repair()
    assert "แต่งงาน" not in page.read_text()


def test_what_a_killed_writer_left_in_a_mirror_goes_with_a_redaction(account: Account, tree: Path) -> None:
    (key,) = [m for m in account.memories(category="objects") if "key" in m.text]
    left = [
        tree / "semantic" / "knowledge" / ".tmp-0123456789abcdef",
        tree / ".octavo" / ".tmp-fedcba9876543210",
    ]
    for path in left:
        path.write_text("- the red key opens the north door\n")
    (tree / ".tmp-mine.md").write_text("a person's own")
    assert account.redact(key.id, reason="asked to").unreached == ()
    assert not any(path.exists() for path in left)
    assert (tree / ".tmp-mine.md").exists()
    assert account.check()


def test_a_strangers_file_with_the_text_holds_the_sweep_up(account: Account, tree: Path) -> None:
    (key,) = [m for m in account.memories(category="objects") if "key" in m.text]
    (tree / "notes.md").write_text("- the red key opens the north door\n")
    done = account.redact(key.id, reason="asked to")
    assert any("notes.md" in why for why in done.unreached)
    (tree / "notes.md").unlink()
    account.upkeep()
    assert not any(b"red key" in data for data in files(tree).values())
    assert account.check()


# Skills


def test_a_learned_skill_is_promoted_by_a_person_and_moves_up(tmp_path: Path) -> None:
    with octavo.open(tmp_path, "nok", actor="agent:orion") as orion:
        skill = orion.remember("Dances when music plays.", kind="skill", topic="skills/dance").or_raise()
        assert skill.layer == "semantic"
        verdict = orion.promote(skill.id)
        assert verdict.outcome == "proposed"
        assert orion.get(skill.id).approved is None  # type: ignore[union-attr]
    with opened(tmp_path) as nok:
        tree = Path(nok.mirror().folder)
        assert (tree / "semantic/skills/dance/SKILL.md").exists()
        nok.approve(str(verdict.proposal))
        nok.mirror()
        assert not (tree / "semantic/skills/dance").exists()
        file = tree / "procedural/skills/dance/SKILL.md"
        assert "octavo-approved: human:nok" in file.read_text()
        with file.open("a") as page:
            page.write("\n## Odd section\n\nkept\n")
        nok.sync(commit=True)
        edited = nok.get(skill.id)
        assert edited is not None
        assert (edited.layer, edited.approved) == ("procedural", "human:nok")
        assert edited.text.startswith("# Dance Skill\n\n## Capability\n\nDances when music plays.")
        assert edited.text.endswith("## Odd section\n\nkept")
        with pytest.raises(BadInput, match="approved already"):
            nok.promote(skill.id)


@pytest.mark.parametrize("bears_id", [True, False])
def test_a_skill_whose_folder_a_person_moves_up_is_approved_and_stays_the_same(
    account: Account, tree: Path, bears_id: bool
) -> None:
    skill = account.remember("เต้นเมื่อเพลงดัง", kind="skill", topic="skills/dance").or_raise()
    account.mirror()
    (tree / "semantic/skills/dance").rename(tree / "procedural/skills/dance")
    file = tree / "procedural/skills/dance/SKILL.md"
    if not bears_id:
        file.write_text("เต้นเมื่อเพลงดัง\n")
    assert [(e.action, e.id) for e in account.sync(commit=True).edits] == [("revise", skill.id)]
    (kept,) = account.memories(kind="skill")
    assert (kept.id, kept.layer, kept.approved) == (skill.id, "procedural", "human:nok")
    assert "เต้นเมื่อเพลงดัง" in file.read_text()
    (tree / "procedural/skills/dance").rename(tree / "semantic/skills/dance")  # a yes is not taken back so
    account.sync(commit=True)
    assert (account.memories(kind="skill"), file.exists()) == ([kept], True)
    assert account.sync().edits == ()


def test_every_skill_passes_the_validator_of_the_agent_skills_format(tmp_path: Path) -> None:
    with opened(tmp_path) as account:
        for topic, text in {
            "skills/robot_dance": "Dances: turns left, then right.",
            "skills/robot-dance": "Dances more slowly than the other one.",
            "skills/ทำอาหาร": "# ทำอาหาร Skill\n\n## Capability\n\nผัดกะเพรา\n\n## Actions\n\n- หั่น",
            "skills/A B__c": "no",
            "x" * 90: '"quoted": [yes]',
        }.items():
            account.remember(text, kind="skill", topic=topic).or_raise()
        tree = Path(account.mirror().folder)
        skills = sorted((tree / "semantic/skills").iterdir())
        assert len(skills) == 5
        account.export(tmp_path / "out", format="skills")
        skills += sorted(file.parent for file in (tmp_path / "out").glob("*/SKILL.md"))
        assert len(skills) == 10
        judge = Path(sys.executable).with_name("agentskills")
        for skill in skills:
            done = subprocess.run(
                [judge, "validate", str(skill)], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr


def test_a_skill_file_of_the_seed_without_front_matter_is_read_and_gets_one(
    account: Account, tree: Path
) -> None:
    path = tree / "semantic/skills/navigate/SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("# Navigate Skill\n\n## Capability\n\nFinds a way.\n\n## Constraints\n\n- no lava\n")
    account.sync(commit=True)
    (skill,) = account.memories(kind="skill")
    assert (skill.topic, skill.layer) == ("skills/navigate", "semantic")
    assert path.read_text().startswith("---\nname: navigate\ndescription: Finds a way.\n")
    assert "- no lava" in path.read_text()


def test_skills_and_behaviours_travel_and_approval_does_not(account: Account, tmp_path: Path) -> None:
    account.remember("Greets in Thai.", kind="skill", topic="skills/greet")
    approved = account.remember("# Cook\n\nผัดกะเพรา", kind="skill", topic="skills/cook").or_raise()
    account.promote(approved.id)
    actions = {"name": "wave", "actions": ["left", "right"], "description": "says hello"}
    wave = account.remember("wave", kind="skill", category="behavior", topic="behavior/wave", data=actions)
    made = wave.or_raise()
    account.remember("x", kind="skill", topic="guardrails", category="guardrail", data={"deny": ["fly"]})
    assert account.export(tmp_path / "skills", format="skills").left_out == {"rule": 1}
    assert sorted(files(tmp_path / "skills")) == ["behaviors.json", "cook/SKILL.md", "greet/SKILL.md"]
    with octavo.open(tmp_path, "mai", actor="human:mai") as other:
        for _ in range(2):
            other.import_(tmp_path / "skills", format="skills")
            skills = {m.topic: m for m in other.memories(kind="skill")}
            assert set(skills) == {"skills/greet", "skills/cook", "behavior/wave"}
            assert all(m.layer == "semantic" for m in skills.values())
            assert skills["behavior/wave"].data["actions"] == ["left", "right"]
            assert skills["behavior/wave"].data["created_at"] == made.at.isoformat()
            assert skills["skills/cook"].text == "# Cook\n\nผัดกะเพรา"
            (asked,) = other.proposals()
            assert (asked.action, asked.memory.topic) == ("promote", "skills/cook")
        other.approve(asked.id)
        assert other.get(asked.memory.id).layer == "procedural"  # type: ignore[union-attr]


# Git and other readers


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=nok", "-c", "user.email=nok@example.org", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def test_git_sees_one_changed_fact_as_one_changed_line(account: Account, tree: Path, tmp_path: Path) -> None:
    git(tree, "init", "-q", "-b", "main")
    git(tree, "add", ".")
    git(tree, "commit", "-q", "-m", "first")
    ids = [m.id for m in account.memories(category="objects")]
    for n in range(100):
        account.revise(ids[n % 2], text=f"what it says at step {n * 37}")
        account.mirror()
        assert git(tree, "diff", "--numstat").split() == ["1", "1", OBJECTS]
        git(tree, "commit", "-q", "-a", "-m", f"step {n}")
    account.sync(commit=True)
    assert git(tree, "status", "--porcelain") == ""
    git(tmp_path, "clone", "-q", str(tree), "clone")
    there = account.mirror(tmp_path / "clone")
    assert (there.edits, there.conflicts, there.written) == ((), (), ())
    plan = account.sync(tmp_path / "clone")
    assert (plan.edits, plan.conflicts) == ((), ())
    assert git(tmp_path / "clone", "status", "--porcelain") == ""


def test_a_markdown_linter_accepts_every_page(account: Account, tree: Path) -> None:
    account.remember("Nok paints", kind="canon", category="identity")
    account.remember("Dances when music plays.", kind="skill", topic="skills/dance")
    account.mirror()
    judge = Path(sys.executable).with_name("pymarkdown")
    options = ["--enable-extensions", "front-matter", "-d", "MD013", "scan", "-r", str(tree)]
    done = subprocess.run([judge, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tree / OBJECTS).read_text()
    assert all(re.search(r" \^[\w]+$", line) for line in page.splitlines() if line.startswith("- "))


TEXT, LIST = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
SCHEMAS: dict[str, Any] = {
    "semantic/behaviors/behaviors.json": {
        "additionalProperties": {
            "properties": {"name": TEXT, "actions": LIST, "created_at": TEXT, "description": TEXT,
                           "times_invoked": {"type": "integer", "minimum": 0}},
            "required": ["name", "actions", "created_at", "description", "times_invoked"],
            "additionalProperties": False,
        },
    },
    "episodic/conversations/": {
        "properties": {
            "turns": {"type": "array", "minItems": 1, "items": {
                "properties": dict.fromkeys(("timestamp", "role", "content", "intent", "action"), TEXT),
                "required": ["timestamp", "role", "content"],
                "additionalProperties": False,
            }},
            "session_id": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}_session[0-9]+$"},
            "start_time": TEXT, "end_time": TEXT, "behaviors_taught": LIST,
            "sandbox_denials": {"type": "integer"}, "success": {"type": "boolean"},
        },
        "required": ["session_id", "start_time", "end_time", "turns", "behaviors_taught", "sandbox_denials",
                     "success"],
    },
    "episodic/checkpoints/": {"required": ["checkpoint_id", "timestamp", "agents", "metadata"]},
    "episodic/rlds_episodes/": {"required": ["episode_id", "schema_version"]},
    "session_state.json": {"required": ["session_id", "end_time", "sessions"]},
    ".octavo/mirror.json": {"required": ["format", "account", "version", "header", "files"]},
    "procedural/": {},
    "semantic/states/": {},
}  # fmt: skip


def test_every_json_file_of_the_tree_fits_its_schema(tmp_path: Path) -> None:
    with FilesystemMemory(tmp_path, actor="human:nok", embedder=False) as memory:
        memory.write_memory({"max_speed": 0.5}, "procedural", "guardrails")
        memory.write_memory({"actions": ["forward"]}, "procedural", "capabilities")
        teacher = Teaching(memory)
        for line in ("teach ทักทาย", "forward", "done"):
            teacher.say(line)
        memory.log_conversation_turn("user", "teach ทักทาย", {"intent": "START_TEACHING"})
        memory.log_conversation_turn("assistant", "Ready.", {"action": "teach_start", "taught": "ทักทาย"})
        memory.close_session()
        EventLog(memory).checkpoint()
        memory.save_episode({"metadata": {"episode_id": "e1"}, "steps": [{"reward": 1.0}]})
        with memory.account.sandbox() as sandbox:
            sandbox.update_state("mood", {"calm": 0.5})
        tree = memory.show()
        assert tree is not None
        fitted = set()
        for path in sorted(p.relative_to(tree).as_posix() for p in tree.rglob("*.json")):
            name = next(name for name in SCHEMAS if path.startswith(name))
            Draft202012Validator({"type": "object", **SCHEMAS[name]}).validate(
                json.loads((tree / path).read_text())
            )
            fitted.add(name)
        assert fitted == set(SCHEMAS)


def test_the_picture_of_the_page_on_files_is_drawn_from_a_real_tree(tmp_path: Path) -> None:
    files_picture.draw(tmp_path / "files.svg")
    kept = Path(__file__).parents[1] / "docs" / "pictures" / "files.svg"
    for drawn in ((tmp_path / "files.svg").read_text(), kept.read_text()):
        told = re.sub(r"<[^>]+>", "", drawn).replace("&#160;", " ")
        for part in (
            "_session1.json",
            "SKILL.md",
            "behaviors.json",
            "steps.jsonl",
            "## Keys",
            "revise",
            "git diff",
        ):
            assert part in told, part
        assert "url(h" not in drawn, "a picture asks no other machine"
        assert re.search(r"-- the red key .*\+- the blue key", told, re.DOTALL)
