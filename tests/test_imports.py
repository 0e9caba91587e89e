"""Memories of other products: through the gate, at their own times, and only once."""

from __future__ import annotations

import json
import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import octavo
from octavo.documents.imports import taking
from octavo.doors import cli
from octavo.doors.adapters.langgraph import OctavoStore
from octavo.errors import BadFile, BadInput

SECRET = "AKIAIOSFODNN7EXAMPLE"


def node(id_: str, parent: str | None, role: str, text: Any, at: float | None = None) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]}
    message = {"id": id_, "author": {"role": role}, "content": content, "create_time": at}
    return {"id": id_, "parent": parent, "message": message, "children": []}


def chatgpt(more: int = 0) -> list[dict[str, Any]]:
    """Two conversations; in the first a question was edited, and `more` turns came later."""
    nodes = {
        "root": {"id": "root", "parent": None, "message": None, "children": []},
        "s": node("s", "root", "system", "You are helpful"),
        "old": node("old", "s", "user", "edited away", 1.7e9),
        "u": node("u", "s", "user", "I moved to Chiang Mai", 1.7e9 + 1),
        "a": node("a", "u", "assistant", "How is it there?", 1.7e9 + 2),
        "img": node("img", "a", "user", {"asset_pointer": "file"}),
        "u2": node("u2", "img", "user", f"my key is {SECRET}", None),
    }
    last = "u2"
    for number in range(more):
        nodes[f"m{number}"] = node(
            f"m{number}", last, "user" if number % 2 else "assistant", f"more {number}"
        )
        last = f"m{number}"
    first = {"id": "c1", "title": "Moving", "create_time": 1.7e9, "current_node": last, "mapping": nodes}
    thai = {"u": node("u", None, "user", "ฉันชอบชาไทย", 1.6e9), "a": node("a", "u", "assistant", "รับทราบ")}
    second = {"conversation_id": "c2", "title": None, "create_time": 1.6e9, "mapping": thai}
    return [first, second]


def written(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_a_chatgpt_export_comes_in_as_sessions_along_the_branch_last_shown(
    account: octavo.Account, tmp_path: Path
) -> None:
    seen: list[tuple[int, int]] = []
    file = written(tmp_path / "conversations.json", chatgpt())
    done = account.import_(tmp_path, format="chatgpt", progress=lambda n, of: seen.append((n, of)))
    assert (dict(done.counts), seen) == ({"session": 2, "episode": 3}, [(1, 2), (2, 2)])
    first, second, third = account.memories(kind="episode")
    assert first.text == "user: ฉันชอบชาไทย\nassistant: รับทราบ"
    assert second.text == "user: I moved to Chiang Mai\nassistant: How is it there?"
    assert second.at == datetime.fromtimestamp(1.7e9 + 1, UTC)
    assert SECRET not in third.text
    assert [note.reason for note in done.changed] == ["a secret was masked"]
    assert [(note.place, note.reason.split(",")[0]) for note in done.left_out] == [
        ("Moving, img", "a picture or a file came with it")
    ]
    assert [s.ordinal for s in account.sessions()] == [1, 2]
    again = account.import_(file, format="chatgpt")
    assert (again.version, dict(again.counts), again.unchanged) == (done.version, {}, 3)


@pytest.mark.parametrize("packed", [True, False])
def test_an_export_is_taken_as_it_was_downloaded(
    account: octavo.Account, tmp_path: Path, packed: bool
) -> None:
    first, second = chatgpt()
    files = {
        "conversations-000.json": [first],
        "conversations-001.json": [second],
        "shared_conversations.json": [{"id": "x"}],
        "user.json": {"email": "somebody"},
    }
    for name, value in files.items():
        written(tmp_path / "export" / name, value)
    export = tmp_path / "export"
    if packed:
        export = tmp_path / "export.zip"
        with zipfile.ZipFile(export, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in files:
                archive.write(tmp_path / "export" / name, f"my data/{name}")
    assert dict(account.import_(export, format="chatgpt").counts) == {"session": 2, "episode": 3}
    assert dict(account.import_(export, format="chatgpt").counts) == {}


def test_an_archive_that_is_damaged_too_large_or_another_is_an_error(
    account: octavo.Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("notes.txt", "hello")
    with zipfile.ZipFile(tmp_path / "large.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", "[" + " " * 100_000 + "]")
    whole = (tmp_path / "large.zip").read_bytes()
    (tmp_path / "damaged.zip").write_bytes(whole[:40] + bytes(8) + whole[48:])
    monkeypatch.setattr(taking, "MOST_BYTES", 10_000)
    for name, why in (("other", "holds no"), ("large", "unpacks to more"), ("damaged", "unpack")):
        with pytest.raises(BadFile, match=why):
            account.import_(tmp_path / f"{name}.zip", format="claude")
    monkeypatch.undo()
    with pytest.raises(BadFile, match="cannot be unpacked"):
        account.import_(tmp_path / "damaged.zip", format="claude")


def test_what_chatgpt_hides_or_tells_its_tools_stays_outside_and_speech_comes_in(
    account: octavo.Account, tmp_path: Path
) -> None:
    spoken = {"content_type": "audio_transcription", "text": "I keep bees"}
    nodes = {
        "hidden": node("hidden", None, "user", "About me: a profile"),
        "u": node("u", "hidden", "user", spoken),
        "bio": node("bio", "u", "assistant", "User keeps bees"),
        "thoughts": node("thoughts", "bio", "assistant", ""),
        "a": node("a", "thoughts", "assistant", "How many hives?"),
        "other": node("other", "thoughts", "assistant", "an answer that was made again"),
    }
    nodes["hidden"]["message"]["metadata"] = {"is_visually_hidden_from_conversation": True}
    nodes["bio"]["message"]["recipient"] = "bio"
    nodes["thoughts"]["message"]["content"] = {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}
    export = [{"id": "c", "title": "Bees", "create_time": 1.7e9, "current_node": "a", "mapping": nodes}]
    account.import_(written(tmp_path / "c.json", export), format="chatgpt")
    [episode] = account.memories(kind="episode")
    assert episode.text == "user: I keep bees\nassistant: How many hives?"


def test_of_a_claude_conversation_the_branch_last_shown_comes_in(
    account: octavo.Account, tmp_path: Path
) -> None:
    def message(uuid: str, parent: str, sender: str, text: str) -> dict[str, Any]:
        blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}]
        return {"uuid": uuid, "parent_message_uuid": parent, "sender": sender, "content": blocks}

    messages = [
        message("1", "root", "human", "Which tea?"),
        message("2", "1", "assistant", "Oolong"),
        {**message("3", "1", "assistant", "Jasmine"), "attachments": [{"file_name": "tea.pdf"}]},
    ]
    export = [{"uuid": "c", "name": "Tea", "created_at": "2025-03-01T09:00:00Z", "chat_messages": messages}]
    done = account.import_(written(tmp_path / "conversations.json", export), format="claude")
    assert [m.text for m in account.memories(kind="episode")] == ["user: Which tea?\nassistant: Jasmine"]
    assert [note.place for note in done.left_out] == ["Tea, 3"]


def test_a_later_export_adds_only_what_was_said_since(account: octavo.Account, tmp_path: Path) -> None:
    account.import_(written(tmp_path / "one.json", chatgpt()), format="chatgpt")
    done = account.import_(written(tmp_path / "two.json", chatgpt(more=3)), format="chatgpt")
    assert dict(done.counts) == {"episode": 2, "session": 1}
    texts = [turn.text for m in account.memories(kind="episode") for turn in m.turns]
    assert [text for text in texts if text.startswith("more")] == ["more 0", "more 1", "more 2"]


def test_what_was_forgotten_here_does_not_come_back(account: octavo.Account, tmp_path: Path) -> None:
    file = written(tmp_path / "c.json", chatgpt())
    account.import_(file, format="chatgpt")
    account.forget(account.memories(kind="episode")[1].id)
    done = account.import_(file, format="chatgpt")
    assert [note.reason for note in done.left_out][1:] == ["it was forgotten here and stays so"]
    assert len(account.memories(kind="episode")) == 2


def test_a_claude_export_comes_in_with_its_times(account: octavo.Account, tmp_path: Path) -> None:
    messages = [
        {"uuid": "1", "sender": "human", "text": "I like maps", "created_at": "2025-03-01T10:00:00Z"},
        {
            "uuid": "2",
            "sender": "assistant",
            "content": [{"type": "text", "text": "Noted"}, {"type": "tool"}],
        },
        {"uuid": "3", "sender": "human", "text": " "},
        "damaged",
    ]
    export = [{"uuid": "c", "name": "Maps", "created_at": "2025-03-01T09:00:00Z", "chat_messages": messages}]
    file = written(tmp_path / "conversations.json", export)
    for counts in ({"episode": 1, "session": 1}, {}):
        assert dict(account.import_(file, format="claude").counts) == counts
    [episode] = account.memories(kind="episode")
    assert episode.text == "user: I like maps\nassistant: Noted"
    assert episode.at == datetime(2025, 3, 1, 10, tzinfo=UTC)
    assert "maps" in account.recall("maps")[0].memory.text


def test_mem0_entries_become_facts_and_a_changed_one_is_revised(
    agent: octavo.Account, tmp_path: Path
) -> None:
    entry = {"id": "m1", "memory": "Vegetarian since 2020", "created_at": "2025-01-02T03:04:05+07:00"}
    entries = [entry, {"id": "m2", "memory": f"password {SECRET}"}, {"id": "m3", "categories": ["x"]}]
    file = written(tmp_path / "mem0.json", {"results": entries})
    done = agent.import_(file, format="mem0")
    assert dict(done.counts) == {"fact": 1}
    assert {note.place for note in done.left_out} == {"entry 2", "entry 3"}
    [fact] = agent.memories(kind="fact")
    assert (fact.at.hour, fact.data["mem0"]["id"], fact.actor) == (20, "m1", "agent:bot")
    assert agent.import_(file, format="mem0").version == done.version
    agent.revise(fact.id, text="Vegan since 2024")
    assert agent.import_(file, format="mem0").unchanged == 1
    assert agent.get(fact.id).text == "Vegan since 2024"
    entries[0] = {**entry, "memory": "Vegetarian since 2019"}
    assert agent.import_(written(file, entries), format="mem0").revised == 1
    assert [r.memory.text[:10] for r in agent.history(fact.id)] == ["Vegetarian", "Vegan sinc", "Vegetarian"]


def test_notes_come_in_with_front_matter_links_and_in_passages(
    account: octavo.Account, tmp_path: Path
) -> None:
    notes = {
        "Coffee.md": "---\ntitle: Coffee\ntags: [drink, '#morning']\ncreated: 2025-02-03\n---\n"
        "# Coffee\n\n- [method] Pour over is clean\n- pairs_with [[Tea house|the house]]\n",
        "deep/Tea house.md": "ร้านชาใกล้บ้าน เปิดทุกวัน",
        "long.md": "\n\n".join(f"Paragraph {n} " + "word " * 90 for n in range(6)),
        "bad.md": "---\n: [\n---\ntext",
        ".obsidian/app.md": "settings",
        "picture.png": "no note",
    }
    for name, text in notes.items():
        (tmp_path / "vault" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "vault" / name).write_text(text, encoding="utf-8")
    (tmp_path / "vault" / "link.md").symlink_to(tmp_path / "vault" / "long.md")
    done = account.import_(tmp_path / "vault", format="markdown")
    assert {note.place for note in done.left_out} == {"bad.md", "link.md"}
    facts = {m.data["markdown"]["place"]: m for m in account.memories(kind="fact")}
    coffee, tea = facts["Coffee.md"], facts["deep/Tea house.md"]
    assert (coffee.tags, coffee.at.date().isoformat()) == (("drink", "morning"), "2025-02-03")
    assert coffee.text.startswith("# Coffee")
    assert coffee.linked("about") == (tea.id,)
    long = [m for m in account.memories(kind="fact") if m.data["markdown"]["place"] == "long.md"]
    assert len(long) == 3
    assert all(len(m.text) <= 1200 for m in long)
    again = account.import_(tmp_path / "vault", format="markdown")
    assert (again.version, again.unchanged) == (done.version, 6)


def test_rows_of_langgraph_are_the_items_of_the_store(account: octavo.Account, tmp_path: Path) -> None:
    row = {"prefix": "users.emi", "key": "tea", "value": {"text": "oolong"}}
    rows = [{**row, "created_at": "2025-01-01T00:00:00Z", "updated_at": "2025-01-02T00:00:00Z"}, {"key": 1}]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps(one) for one in rows))
    done = account.import_(file, format="langgraph")
    assert (dict(done.counts), [n.place for n in done.left_out]) == ({"fact": 1}, ["row 2"])
    store = OctavoStore(account)
    item = store.get(("users", "emi"), "tea")
    assert (item.value, item.created_at.day, item.updated_at.day) == ({"text": "oolong"}, 1, 2)
    store.put(("users", "emi"), "tea", {"text": "jasmine"})
    assert account.import_(file, format="langgraph").unchanged == 1
    assert store.get(("users", "emi"), "tea").value == {"text": "jasmine"}


def test_rows_of_sqlite_say_their_values_as_text_and_when_they_end(
    account: octavo.Account, tmp_path: Path
) -> None:
    row = {"prefix": "users.emi", "value": '{"text": "oolong"}', "created_at": "2025-01-01 00:00:00"}
    rows = [
        {**row, "key": "kept", "ttl_minutes": 60, "expires_at": "2999-01-01 00:00:00"},
        {**row, "key": "over", "ttl_minutes": 60, "expires_at": "2025-01-01 01:00:00"},
        {**row, "key": "torn", "value": '{"text": '},
    ]
    done = account.import_(written(tmp_path / "rows.json", rows), format="langgraph")
    assert [(n.place, n.reason[:9]) for n in done.left_out] == [
        ("row 2", "its time "),
        ("row 3", "its value"),
    ]
    [fact] = account.memories(kind="fact")
    assert fact.data["langgraph"]["expires"] == "2999-01-01T00:00:00Z"
    item = OctavoStore(account).get(("users", "emi"), "kept")
    assert (item.value, item.created_at.year) == ({"text": "oolong"}, 2025)


def test_the_scopes_of_one_account_import_the_same_export_each_for_itself(
    opened: Any, tmp_path: Path
) -> None:
    file = written(tmp_path / "c.json", chatgpt())
    for scope in ("orion", "elysia"):
        handle = opened("human:you", scope=scope)
        assert dict(handle.import_(file, format="chatgpt").counts) == {"session": 2, "episode": 3}
    assert {m.scope for m in opened().memories()} == {"orion", "elysia"}


@pytest.mark.parametrize("format_", ["chatgpt", "claude", "mem0", "langgraph"])
def test_what_is_no_export_is_an_error_and_nothing_is_written(
    account: octavo.Account, tmp_path: Path, format_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    written(tmp_path / "good.json", [])
    (tmp_path / "torn.json").write_text('[{"id": ')
    for wrong in ("pipe", "torn.json", "missing.json"):
        with pytest.raises(BadFile):
            account.import_(tmp_path / wrong, format=format_)
    with pytest.raises(BadFile, match="array"):
        account.import_(written(tmp_path / "text.json", "hello"), format=format_)
    monkeypatch.setattr(taking, "MOST_BYTES", 1)
    with pytest.raises(BadFile, match="larger than 1"):
        account.import_(tmp_path / "good.json", format=format_)
    with pytest.raises(BadInput, match="only read"):
        account.export(tmp_path / "out", format=format_)
    assert account.version == 0


@pytest.mark.parametrize(
    ("format_", "value", "texts"),
    [
        (
            "chatgpt",
            [{"mapping": {"a": {"message": {"author": {"role": "user"}, "content": {"parts": ["น่าน"]}}}}}],
            ["user: น่าน"],
        ),
        ("claude", [{"chat_messages": [None, {"sender": "human", "text": "no ids"}]}], ["user: no ids"]),
        ("mem0", [{"memory": "Likes ชา", "categories": ["food", None, 3]}], ["Likes ชา"]),
        ("langgraph", [{"prefix": "a", "key": "b", "value": {"t": "no times"}}], ["no times"]),
    ],
)
def test_what_has_neither_ids_nor_times_comes_in_once(
    account: octavo.Account, tmp_path: Path, format_: str, value: Any, texts: list[str]
) -> None:
    file = written(tmp_path / "conversations.json", value)
    done = account.import_(file, format=format_)
    again = account.import_(file, format=format_)
    assert [m.text for m in account.memories()] == texts
    assert (again.version, dict(again.counts), again.revised) == (done.version, {}, 0)
    assert not any("None" in m.tags for m in account.memories())


def test_code_that_is_shown_and_speech_that_was_written_down_are_what_was_said(
    account: octavo.Account, tmp_path: Path
) -> None:
    said = node("u", None, "user", {"content_type": "audio_transcription", "text": "write it down"}, 1.7e9)
    code = node("c", "u", "assistant", "")
    code["message"]["content"] = {"content_type": "code", "language": "python", "text": "print(1)"}
    thought = node("t", "c", "assistant", "")
    thought["message"]["content"] = {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}
    mapping = {one["id"]: one for one in (said, code, thought)}
    file = written(tmp_path / "conversations.json", [{"id": "c", "create_time": 1.0, "mapping": mapping}])
    account.import_(file, format="chatgpt")
    assert [m.text for m in account.memories()] == ["user: write it down\nassistant: print(1)"]


def test_a_title_cut_in_the_middle_of_a_character_does_not_cost_the_export(
    account: octavo.Account, tmp_path: Path
) -> None:
    chats = json.dumps([{**chatgpt()[1], "title": "TITLE"}])
    (tmp_path / "conversations.json").write_text(chats.replace("TITLE", r"cut \ud83d, \ud83d\ude00 \\ud83d"))
    done = account.import_(tmp_path / "conversations.json", format="chatgpt")
    assert dict(done.counts) == {"session": 1, "episode": 1}
    [episode] = account.memories()
    assert episode.data["chatgpt"]["title"] == "cut \ufffd, \U0001f600 \\ud83d"


def test_what_of_mem0_has_no_text_or_is_a_graph_is_reported(account: octavo.Account, tmp_path: Path) -> None:
    results = [{"id": "a", "memory": ["x"]}, {"id": "b", "memory": None}, {"id": "c", "memory": "Likes tea"}]
    value = {"results": results, "relations": [{"source": "a", "relationship": "b", "target": "c"}]}
    done = account.import_(written(tmp_path / "mem0.json", value), format="mem0")
    assert dict(done.counts) == {"fact": 1}
    assert [note.place for note in done.left_out] == ["entry 1", "entry 2", "relations"]


def test_a_note_with_broken_front_matter_comes_in_without_it_and_one_without_text_is_reported(
    account: octavo.Account, tmp_path: Path
) -> None:
    (tmp_path / "daily.md").write_text("---\ncreated: {{date}}\n---\nกินข้าวกับแม่ at noon\n")
    (tmp_path / "stub.md").write_text("---\ntitle: Stub\n---\n")
    done = account.import_(tmp_path, format="markdown")
    assert [m.text for m in account.memories()] == ["daily\n\nกินข้าวกับแม่ at noon"]
    assert {note.place: note.reason for note in done.left_out} == {
        "daily.md": "its front matter is no YAML and is left out",
        "stub.md": "there is no text in it",
    }


def test_the_export_of_another_program_says_that_nothing_was_found_in_it(
    account: octavo.Account, tmp_path: Path
) -> None:
    chat = [{"uuid": "u", "name": "Cooking", "chat_messages": [{"sender": "human", "text": "Hello."}]}]
    (tmp_path / "chats.json").write_text(json.dumps(chat))
    done = account.import_(tmp_path / "chats.json", format="chatgpt")
    assert [(one.place, one.reason) for one in done.left_out] == [("Cooking", "no message was found in it")]
    assert account.version == 0


def test_the_command_line_imports_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "conversations.json", chatgpt())
    asked = ["--root", str(tmp_path / "data"), "--json", "import", str(file), "--format", "chatgpt"]
    assert cli.run(asked) == 0
    assert json.loads(capfd.readouterr().out)["result"]["counts"] == {"session": 2, "episode": 3}


CLAUDE = [
    {"uuid": "c1", "name": "tea", "chat_messages": [{"uuid": "m1", "sender": "human", "text": "ชาเขียว"}]}
]
ROW = {"prefix": "users.emi", "key": "drink", "value": {"text": "likes jasmine tea"}}


@pytest.mark.parametrize(
    ("name", "value", "format_"),
    [
        ("conversations.json", [{"id": "c", "mapping": {}}], "chatgpt"),
        ("claude.json", CLAUDE, "claude"),
        ("export/conversations.json", CLAUDE, "claude"),
        ("got.json", {"results": [{"id": "1", "memory": "ชอบชามะลิ"}]}, "mem0"),
        ("store.json", [ROW], "langgraph"),
    ],
)
def test_what_a_file_is_of_is_told_by_its_shape(
    account: octavo.Account, tmp_path: Path, name: str, value: Any, format_: str
) -> None:
    (tmp_path / "in/export").mkdir(parents=True)
    file = written(tmp_path / "in" / name, value)
    path = file.parent if name.startswith("export") else file
    assert account.import_(path).format == format_
    if path.is_dir():
        packed = tmp_path / "download.zip"
        with zipfile.ZipFile(packed, "w") as archive:
            archive.write(file, f"my data/{file.name}")
        assert account.import_(packed).format == format_


@pytest.mark.parametrize("format_", ["consciousness", "msp", "skills", "synthians", "vault"])
def test_what_octavo_exports_is_told_by_its_shape(
    account: octavo.Account, tmp_path: Path, format_: str
) -> None:
    account.remember("lives in Nan", kind="register", topic="home")
    account.remember("run the tests first", kind="skill", topic="deploy")
    account.remember("อยู่ที่น่าน")
    with account.sandbox() as sandbox:
        sandbox.turn("user", "I moved to Nan last week.")
    path = tmp_path / ("vault.jsonl" if format_ == "vault" else "out")
    account.export(path, format=format_)
    with octavo.open(tmp_path / "other", "other", actor="human:emi", embedder=False) as other:
        assert other.import_(path).format == format_


def test_notes_are_told_by_their_ending_and_what_is_of_no_shape_is_asked_for(
    account: octavo.Account, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/tea.md").write_text("Emi likes jasmine tea.", "utf-8")
    assert account.import_(tmp_path / "notes").format == "markdown"
    for name, text, said in (
        ("list.json", "[1, 2]", "no format"),
        ("both.json", '[{"mapping": {}, "memory": "x"}]', "or"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(BadFile, match=said) as raised:
            account.import_(tmp_path / name)
        assert "--format: chatgpt, claude" in raised.value.advice
