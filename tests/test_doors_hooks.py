"""Hooks of a coding agent: briefed at start and prompt, what was said is kept once, no broken client."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import octavo
from octavo.doors import conversations, hooks, rest
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.engine.sandbox import Sandbox
from octavo.errors import Refused


@pytest.fixture
def settings(root: Path) -> Settings:
    return Settings(root=root, account="User01", actor="agent:claude-code")


def tell(settings: Settings, event: str, **more: Any) -> Any:
    """What the command answers to a client's JSON on its standard input."""
    return hear(settings, event, {"session_id": "s-1", "cwd": "/somewhere", **more})


def hear(settings: Settings, event: str, said: dict[str, Any]) -> Any:
    payload = json.dumps(said, ensure_ascii=False)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as out:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(payload.encode())))
        hooks.answer(settings, event)
    assert not (settings.root / "hooks.log").exists(), (settings.root / "hooks.log").read_text()
    return json.loads(out.getvalue()) if out.getvalue() else None


def talk(settings: Settings) -> None:
    """A prompt, an answer that is told more than once, a command of the client's, and another prompt."""
    tell(settings, "prompt", prompt="My boat is called Mali.")
    for _ in range(3):
        tell(settings, "pre-compact", last_assistant_message="A fine name.")
    tell(settings, "prompt", prompt="<command-name>/clear</command-name>")
    tell(settings, "prompt", prompt="เรือจอดอยู่ที่ตราด")


def episodes(settings: Settings) -> list[str]:
    with octavo.open(settings.root, "User01", embedder=False) as account:
        return [turn.text for memory in account.memories(kind="episode") for turn in memory.turns]


def test_what_people_and_the_assistant_said_is_kept_and_consolidated_at_the_stop(settings: Settings) -> None:
    talk(settings)
    assert episodes(settings) == []
    assert tell(settings, "stop") is None
    assert episodes(settings) == ["My boat is called Mali.", "A fine name.", "เรือจอดอยู่ที่ตราด"]


def test_what_was_said_is_kept_once_however_often_a_hook_is_called(settings: Settings) -> None:
    talk(settings)
    for event in ("pre-compact", "pre-compact", "stop", "stop", "stop"):
        tell(settings, event, last_assistant_message="It is far.")
    assert len(episodes(settings)) == 4
    tell(settings, "prompt", prompt="The conversation was taken up again.")
    tell(settings, "stop")
    assert len(episodes(settings)) == 5


def test_what_a_person_forgot_does_not_come_back_with_the_next_stop(settings: Settings, opened) -> None:
    talk(settings)
    tell(settings, "stop", last_assistant_message="It is far.")
    account = opened()
    account.forget(*(memory.id for memory in account.memories(kind="episode")))
    tell(settings, "stop", last_assistant_message="It is far.")
    assert episodes(settings) == []


def test_a_conversation_whose_client_was_killed_counts_when_the_next_one_starts(
    settings: Settings, opened
) -> None:
    talk(settings)
    account = opened("agent:claude-code")
    assert conversations.end_idle(account) == []
    later = datetime.now(UTC) + conversations.IDLE + timedelta(seconds=1)
    assert conversations.end_idle(account, now=later) == ["hook conversation s-1"]
    assert len(episodes(settings)) == 3
    tell(settings, "stop")
    assert len(episodes(settings)) == 3


def test_an_answer_to_a_conversation_that_was_taken_for_over_is_kept(settings: Settings, opened) -> None:
    talk(settings)
    later = datetime.now(UTC) + conversations.IDLE + timedelta(seconds=1)
    conversations.end_idle(opened("agent:claude-code"), now=later)
    tell(settings, "pre-compact", last_assistant_message="It took me a quarter of an hour.")
    tell(settings, "stop")
    assert episodes(settings)[-1] == "It took me a quarter of an hour."


def test_a_prompt_that_the_gate_refuses_is_briefed_all_the_same(
    settings: Settings, opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise Refused("the turn was refused")

    heard: list[str] = []
    opened().remember("The rice is kept in Lampang")
    monkeypatch.setattr(Sandbox, "turn", refuse)
    monkeypatch.setattr(hooks.LOG, "warning", lambda form, *values: heard.append(form % values))
    answer = tell(settings, "prompt", prompt="Where is the rice?")["hookSpecificOutput"]
    assert "The rice is kept in Lampang" in answer["additionalContext"]
    assert heard == ["turn refused speaker=user error=Refused"]


def test_a_prompt_of_any_length_is_heard_to_its_end_and_kept_in_part(settings: Settings) -> None:
    tell(settings, "prompt", prompt="นี่คือบันทึกยาวมาก " * 300_000)  # 15 MB; who wrote it must not be cut off
    tell(settings, "stop")
    (kept,) = episodes(settings)
    assert kept.startswith("นี่คือบันทึกยาวมาก")
    assert 19_000 < len(kept) <= 20_000


def test_two_hooks_at_once_wait_for_each_other(settings: Settings, opened) -> None:
    talk(settings)
    account = opened("agent:claude-code")
    with conversations.held(account, "hook conversation s-1"):
        second = threading.Thread(
            target=conversations.end, args=(opened("agent:claude-code"), "hook conversation s-1")
        )
        second.start()
        time.sleep(0.05)
        assert second.is_alive()
    second.join()
    assert len(episodes(settings)) == 3


def test_the_start_tells_what_stands_and_what_was_said_last(settings: Settings, opened) -> None:
    assert tell(settings, "session-start") is None
    opened().remember("Speaks Thai at home", kind="canon")
    talk(settings)
    tell(settings, "stop")
    answer = tell(settings, "session-start")["hookSpecificOutput"]
    assert answer["hookEventName"] == "SessionStart"
    assert "Speaks Thai at home" in answer["additionalContext"]
    assert "เรือจอดอยู่ที่ตราด" in answer["additionalContext"]


def test_a_prompt_gets_what_is_relevant_to_it_and_a_command_gets_nothing(settings: Settings, opened) -> None:
    account = opened()
    account.remember("The rice is kept in Lampang")
    account.remember("Speaks Thai at home", kind="canon")
    answer = tell(settings, "prompt", prompt="Where is the rice?")["hookSpecificOutput"]
    assert "The rice is kept in Lampang" in answer["additionalContext"]
    assert "Speaks Thai" not in answer["additionalContext"]  # that was told at the start
    assert tell(settings, "prompt", prompt="<command-name>rice</command-name>") is None
    assert tell(settings, "prompt") is None


def test_a_hook_sees_its_own_scope_alone(settings: Settings, opened) -> None:
    opened().remember("The rice is kept in Lampang", scope="orion")
    assert tell(settings, "prompt", prompt="Where is the rice?") is None


def cursor(settings: Settings, event: str, moment: str, **more: Any) -> Any:
    """What the command answers to Cursor, which sends what its documentation shows."""
    common = {
        "conversation_id": "668320d2-2fd8-4888-b33c-2a466fec86e7",
        "generation_id": "490b90b7-a2ce-4c2c-bb76-cb77b125df2f",
        "model": "claude-opus-4-7-thinking-max",
        "hook_event_name": moment,
        "cursor_version": "3.20.17",
        "workspace_roots": ["/somewhere"],
        "user_email": None,
        "transcript_path": "/etc/hostname",
    }
    return hear(settings, event, {**common, **more})


def test_cursor_is_briefed_at_the_start_and_what_was_said_is_kept_in_its_form(settings: Settings) -> None:
    start = {"session_id": "668320d2-2fd8-4888-b33c-2a466fec86e7", "is_background_agent": False}
    assert cursor(settings, "session-start", "sessionStart", **start, composer_mode="agent") is None
    files = [{"type": "file", "file_path": "/somewhere/boat.md"}]
    for prompt in ("My boat is called Mali.", "เรือจอดอยู่ที่ตราด"):
        asked = cursor(settings, "prompt", "beforeSubmitPrompt", prompt=prompt, attachments=files)
        assert asked == {"continue": True}  # nothing that Cursor does not document
        for _ in range(2):
            answered = cursor(settings, "pre-compact", "afterAgentResponse", text=f"So: {prompt}")
            assert answered is None
    end = {"reason": "window_close", "duration_ms": 45000, "final_status": "completed"}
    assert cursor(settings, "stop", "sessionEnd", **start, **end) is None
    assert episodes(settings) == [
        *("My boat is called Mali.", "So: My boat is called Mali."),
        *("เรือจอดอยู่ที่ตราด", "So: เรือจอดอยู่ที่ตราด"),
    ]
    told = cursor(settings, "session-start", "sessionStart", **start)
    assert set(told) == {"additional_context"}
    assert "เรือจอดอยู่ที่ตราด" in told["additional_context"]


def test_what_cursor_calls_a_transcript_is_not_read(settings: Settings, transcript: Path) -> None:
    more = {"transcript_path": str(transcript)}
    cursor(settings, "prompt", "beforeSubmitPrompt", prompt="Where is it moored?", **more)
    cursor(settings, "pre-compact", "afterAgentResponse", text="In Trat.", **more)
    cursor(settings, "stop", "sessionEnd", **more)
    assert episodes(settings) == ["Where is it moored?", "In Trat."]


@pytest.fixture
def client(root: Path) -> Iterator[TestClient]:
    """A coding agent on the running server, with a token for the scope `orion`."""
    octavo.open(root, "User01", embedder=False).close()
    where = Settings(root=root, account="User01", actor="human:you", models={"OCTAVO_EMBEDDER": "none"})
    visitors = Visitors(where)
    _, token = visitors.tokens.add("User01", "agent:claude-code", "orion", by="human:you")
    app = rest.app(Pool(), where, visitors=visitors, mounts=(hooks.add,))
    headers = {"Authorization": f"Bearer {token}"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers) as client:
        yield client


def send(client: TestClient, event: str, **more: Any) -> Any:
    return client.post(f"/hooks/{event}", json={"session_id": "s-1", "cwd": "/somewhere", **more})


def test_the_server_answers_hooks_by_what_the_client_sends(
    client: TestClient, settings: Settings, opened
) -> None:
    opened().remember("Speaks Thai at home", kind="canon", scope="orion")
    first = send(client, "prompt", prompt="My boat is called Mali.", hook_event_name="UserPromptSubmit")
    told = first.json()["hookSpecificOutput"]
    assert (told["hookEventName"], "Speaks Thai" in told["additionalContext"]) == ("UserPromptSubmit", True)
    assert send(client, "pre-compact", last_assistant_message="ชื่อเพราะดี").json() == {}
    send(client, "pre-compact", last_assistant_message="ชื่อเพราะดี")  # the client says it twice
    assert episodes(settings) == []
    assert send(client, "stop").json() == {}
    assert episodes(settings) == ["My boat is called Mali.", "ชื่อเพราะดี"]
    again = client.post("/hooks/prompt", json={"session_id": "s-2", "prompt": "What is my boat called?"})
    assert "My boat is called Mali." in again.json()["hookSpecificOutput"]["additionalContext"]


def test_a_hook_by_http_reads_no_file_and_acts_within_its_token(
    client: TestClient, settings: Settings, tmp_path: Path, opened
) -> None:
    (tmp_path / "transcript").write_text("{}")
    opened().remember("The rice is kept in Lampang", scope="elysia")
    assert send(client, "prompt", prompt="Where is the rice?").json() == {}
    assert send(client, "stop", transcript_path=str(tmp_path / "transcript")).status_code == 200
    (kept,) = opened().memories(kind="episode")
    assert (kept.text, kept.scope, kept.actor) == ("user: Where is the rice?", "orion", "agent:claude-code")
    for event, body in (("dance", {"session_id": "s"}), ("stop", {"session_id": "../x"}), ("stop", {})):
        assert client.post(f"/hooks/{event}", json=body).status_code == 400
    assert (
        client.post("/hooks/stop", json={"session_id": "s"}, headers={"Authorization": "x"}).status_code
        == 401
    )


BAD = {
    "no JSON": b"nonsense",
    "no object": b"[1]",
    "no session": b'{"cwd": "/"}',
    "a session that is a path": b'{"session_id": "../../x"}',
    "half a character": b'{"session_id": "s", "prompt": "\\ud800", "last_assistant_message": "\\ud800"}',
    "no texts": b'{"session_id": "s", "prompt": 7, "last_assistant_message": ["x"]}',
    "nothing": b"",
}


@pytest.mark.parametrize("event", [*hooks.EVENTS, "dance"])
@pytest.mark.parametrize("what", BAD)
def test_bad_input_never_breaks_the_client(
    settings: Settings, event: str, what: str, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD[what])))
    hooks.answer(settings, event)
    assert capfd.readouterr() == ("", "")
    keeps = event in ("prompt", "pre-compact")
    is_enough = event in hooks.EVENTS and (what == "no texts" or (what == "half a character" and not keeps))
    assert (settings.root / "hooks.log").exists() != is_enough


def test_the_log_of_hooks_is_its_owners_alone(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0)
    try:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"no json")))
        hooks.answer(settings, "stop")
    finally:
        os.umask(before)
    log = settings.root / "hooks.log"
    assert log.read_text().count("hook failed") == 1
    assert [path.stat().st_mode & 0o077 for path in (log, settings.root)] == [0, 0]


def test_a_hook_that_cannot_even_log_says_nothing(root: Path, monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    root.write_text("no folder")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"no json")))
    hooks.answer(Settings(root=root), "stop")
    assert capfd.readouterr() == ("", "")


def test_a_hook_gives_up_in_time(settings: Settings, monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"session_id": "s"}')))
    monkeypatch.setattr(hooks, "SECONDS", 0.05)
    monkeypatch.setattr(hooks, "respond", lambda *_, **__: signal.pause())
    hooks.answer(settings, "prompt")
    assert capfd.readouterr() == ("", "")
    assert "longer than" in (settings.root / "hooks.log").read_text()


def entry(role: str, content: Any, **more: Any) -> str:
    line = {"type": role, "message": {"role": role, "content": content}, "timestamp": "2026-11-16T09:30:00Z"}
    return json.dumps({**line, **more}, ensure_ascii=False) + "\n"


SAID = (
    entry("user", "My boat is called Mali.")
    + entry("assistant", [{"type": "tool_use", "name": "x"}, {"type": "text", "text": "Let me look."}])
    + entry("user", [{"type": "tool_result", "content": "rows of a table"}])
    + entry("user", "<command-name>/clear</command-name>")
    + entry("user", "a note of the client's", isMeta=True)
    + entry("assistant", "another agent's words", isSidechain=True)
    + entry("assistant", "A fine name.")
    + entry("user", [{"type": "text", "text": "เรือจอดอยู่ที่ตราด"}])
)
WHOLE = ["My boat is called Mali.", "Let me look.", "A fine name.", "เรือจอดอยู่ที่ตราด"]


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / "transcript.jsonl"
    path.write_text(SAID)
    return path


def test_a_transcript_alone_is_kept_and_consolidated_at_the_stop(
    settings: Settings, transcript: Path
) -> None:
    tell(settings, "pre-compact", transcript_path=str(transcript))
    assert episodes(settings) == []
    tell(settings, "stop", transcript_path=str(transcript))
    assert episodes(settings) == WHOLE


def test_what_events_said_is_not_taken_from_the_transcript_again(
    settings: Settings, transcript: Path
) -> None:
    tell(settings, "prompt", prompt=WHOLE[0])
    for event in ("pre-compact", "pre-compact", "stop", "pre-compact", "stop"):
        tell(settings, event, transcript_path=str(transcript), last_assistant_message="A fine name.")
    assert sorted(episodes(settings)) == sorted(WHOLE)


def test_a_line_is_kept_once_also_where_the_conversation_is_taken_up_again(
    settings: Settings, transcript: Path, opened
) -> None:
    for event in ("pre-compact", "stop", "stop", "pre-compact", "stop"):
        tell(settings, event, transcript_path=str(transcript))
    assert episodes(settings) == WHOLE
    tell(settings, "prompt", prompt="Here I am again.")
    conversations.end_idle(opened("agent:claude-code"), now=datetime.now(UTC) + timedelta(hours=1))
    with transcript.open("a") as more:
        more.write(entry("user", "Here I am again.") + entry("assistant", "Welcome back."))
    tell(settings, "stop", transcript_path=str(transcript), last_assistant_message="Welcome back.")
    assert sorted(episodes(settings)) == sorted([*WHOLE, "Here I am again.", "Welcome back."])


def test_what_a_killed_hook_could_not_note_is_kept_once(settings: Settings, transcript: Path) -> None:
    tell(settings, "pre-compact", transcript_path=str(transcript))
    for noted in (settings.root / ".hooks").rglob("s-1"):
        noted.unlink()
    with transcript.open("a") as more:
        more.write(entry("assistant", "A fine name."))  # it may well be said twice
    for event in ("pre-compact", "stop"):
        tell(settings, event, transcript_path=str(transcript))
    assert episodes(settings) == [*WHOLE, "A fine name."]


def test_an_answer_that_the_transcript_does_not_hold_yet_is_kept_once(
    settings: Settings, transcript: Path
) -> None:
    tell(settings, "pre-compact", transcript_path=str(transcript), last_assistant_message="Trat is lovely.")
    with transcript.open("a") as more:
        more.write(entry("assistant", "Trat is lovely."))
    tell(settings, "stop", transcript_path=str(transcript), last_assistant_message="Trat is lovely.")
    assert sorted(episodes(settings)) == sorted([*WHOLE, "Trat is lovely."])


def test_no_trace_of_what_was_said_stays_beside_the_account_when_a_conversation_is_over(
    settings: Settings, transcript: Path
) -> None:
    mark = settings.root / ".hooks"
    tell(settings, "prompt", prompt="Something that no transcript says.")
    assert [len(path.read_text().split()) for path in mark.rglob("s-1")] == [2]
    tell(settings, "stop", transcript_path=str(transcript))
    assert [len(path.read_text().split()) for path in mark.rglob("s-1")] == [1]


def test_what_was_forgotten_does_not_come_back_from_the_transcript(
    settings: Settings, transcript: Path, opened
) -> None:
    tell(settings, "stop", transcript_path=str(transcript))
    account = opened()
    account.forget(*(memory.id for memory in account.memories(kind="episode")))
    tell(settings, "stop", transcript_path=str(transcript))
    assert episodes(settings) == []


def test_a_transcript_that_is_cut_in_a_line_is_read_up_to_there(settings: Settings, transcript: Path) -> None:
    transcript.write_bytes(SAID.encode() + b'{"type": "user", "message": {"role": "us')
    tell(settings, "stop", transcript_path=str(transcript))
    assert episodes(settings) == WHOLE
    transcript.write_bytes(SAID.encode() + entry("user", "And there is the rest.").encode())
    tell(settings, "stop", transcript_path=str(transcript))
    assert episodes(settings)[-1] == "And there is the rest."


@pytest.mark.parametrize("path", ["/nowhere/at/all", "/dev/zero", "", "a\0b", 7])
def test_a_transcript_that_is_none_leaves_what_the_events_say(settings: Settings, path: Any) -> None:
    tell(settings, "prompt", prompt="My boat is called Mali.", transcript_path=path)
    tell(settings, "stop", transcript_path=path, last_assistant_message="A fine name.")
    assert episodes(settings) == ["My boat is called Mali.", "A fine name."]
