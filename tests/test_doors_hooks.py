"""Hooks of a coding agent: briefed at start and prompt, what was said is kept once, no broken client."""

from __future__ import annotations

import io
import json
import signal
import sys
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


@pytest.fixture
def settings(root: Path) -> Settings:
    return Settings(root=root, account="User01", actor="agent:claude-code")


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return tmp_path / "transcript.jsonl"


def entry(role: str, content: Any, **more: Any) -> str:
    line = {"type": role, "message": {"role": role, "content": content}, "timestamp": "2026-11-16T09:30:00Z"}
    return json.dumps({**line, **more}, ensure_ascii=False) + "\n"


SAID = (
    entry("user", "My boat is called Mali.")
    + entry("assistant", [{"type": "tool_use", "name": "x"}, {"type": "text", "text": "A fine name."}])
    + entry("user", [{"type": "tool_result", "content": "rows of a table"}])
    + entry("user", "<command-name>/clear</command-name>")
    + entry("user", "a note of the client's", isMeta=True)
    + entry("assistant", "another agent's words", isSidechain=True)
    + entry("user", [{"type": "text", "text": "เรือจอดอยู่ที่ตราด"}])
)


def tell(settings: Settings, event: str, transcript: Path, **more: Any) -> dict[str, Any] | None:
    payload = {"session_id": "s-1", "transcript_path": str(transcript), "cwd": "/somewhere", **more}
    return hooks.respond(settings, event, payload)


def episodes(settings: Settings) -> list[str]:
    with octavo.open(settings.root, "User01", embedder=False) as account:
        return [turn.text for memory in account.memories(kind="episode") for turn in memory.turns]


def test_what_people_and_the_assistant_said_is_kept_and_consolidated_at_the_stop(
    settings: Settings, transcript: Path
) -> None:
    transcript.write_text(SAID)
    assert tell(settings, "pre-compact", transcript) is None
    assert episodes(settings) == []
    tell(settings, "stop", transcript)
    assert episodes(settings) == ["My boat is called Mali.", "A fine name.", "เรือจอดอยู่ที่ตราด"]


def test_a_line_is_kept_once_however_often_a_hook_is_called(settings: Settings, transcript: Path) -> None:
    transcript.write_text(SAID)
    for event in ("pre-compact", "pre-compact", "stop", "stop", "pre-compact", "stop"):
        tell(settings, event, transcript)
    assert len(episodes(settings)) == 3
    with transcript.open("a") as more:
        more.write(entry("user", "The conversation was taken up again."))
    tell(settings, "stop", transcript)
    assert len(episodes(settings)) == 4


def test_what_a_person_forgot_does_not_come_back_with_the_next_stop(
    settings: Settings, transcript: Path, opened
) -> None:
    transcript.write_text(SAID)
    tell(settings, "stop", transcript)
    account = opened()
    account.forget(*(memory.id for memory in account.memories(kind="episode")))
    tell(settings, "stop", transcript)
    assert episodes(settings) == []


def test_a_conversation_whose_client_was_killed_counts_when_the_next_one_starts(
    settings: Settings, transcript: Path, opened
) -> None:
    transcript.write_text(SAID)
    tell(settings, "pre-compact", transcript)
    account = opened("agent:claude-code")
    assert conversations.end_idle(account) == []
    later = datetime.now(UTC) + conversations.IDLE + timedelta(seconds=1)
    assert conversations.end_idle(account, now=later) == ["hook conversation s-1"]
    assert len(episodes(settings)) == 3
    tell(settings, "stop", transcript)
    assert len(episodes(settings)) == 3


def test_the_start_tells_what_stands_and_what_was_said_last(
    settings: Settings, transcript: Path, opened
) -> None:
    assert tell(settings, "session-start", transcript) is None
    opened().remember("Speaks Thai at home", kind="canon")
    transcript.write_text(SAID)
    tell(settings, "stop", transcript)
    answer = tell(settings, "session-start", transcript)["hookSpecificOutput"]
    assert answer["hookEventName"] == "SessionStart"
    assert "Speaks Thai at home" in answer["additionalContext"]
    assert "เรือจอดอยู่ที่ตราด" in answer["additionalContext"]


def test_a_prompt_gets_what_is_relevant_to_it_and_a_command_gets_nothing(
    settings: Settings, transcript: Path, opened
) -> None:
    opened().remember("The rice is kept in Lampang")
    answer = tell(settings, "prompt", transcript, prompt="Where is the rice?")
    assert "The rice is kept in Lampang" in answer["hookSpecificOutput"]["additionalContext"]
    assert tell(settings, "prompt", transcript, prompt="<command-name>rice</command-name>") is None
    assert tell(settings, "prompt", transcript) is None


def test_a_hook_sees_its_own_scope_alone(settings: Settings, transcript: Path, opened) -> None:
    opened().remember("The rice is kept in Lampang", scope="orion")
    assert tell(settings, "prompt", transcript, prompt="Where is the rice?") is None


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
    client: TestClient, settings: Settings, transcript: Path, opened
) -> None:
    transcript.write_text(SAID)
    opened().remember("The rice is kept in Lampang", scope="elysia")
    assert send(client, "prompt", prompt="Where is the rice?").json() == {}
    assert send(client, "stop", transcript_path=str(transcript)).status_code == 200
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
    "no transcript": b'{"session_id": "s", "transcript_path": "/nowhere/at/all"}',
    "half a character": b'{"session_id": "s", "transcript_path": "\\ud800"}',
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
    is_enough = event in ("session-start", "prompt") and what in ("no transcript", "half a character")
    assert (settings.root / "hooks.log").exists() != is_enough


def test_a_hook_gives_up_in_time(settings: Settings, monkeypatch: pytest.MonkeyPatch, capfd) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"session_id": "s"}')))
    monkeypatch.setattr(hooks, "SECONDS", 0.05)
    monkeypatch.setattr(hooks, "respond", lambda *_: signal.pause())
    hooks.answer(settings, "prompt")
    assert capfd.readouterr() == ("", "")
    assert "longer than" in (settings.root / "hooks.log").read_text()


def test_a_transcript_that_is_cut_in_the_middle_of_a_line_is_read_up_to_there(
    settings: Settings, transcript: Path
) -> None:
    transcript.write_bytes(SAID.encode() + b'{"type": "user", "message": {"role": "us')
    tell(settings, "stop", transcript)
    assert len(episodes(settings)) == 3
    transcript.write_bytes(SAID.encode() + entry("user", "And there is the rest.").encode())
    tell(settings, "stop", transcript)
    assert episodes(settings)[-1] == "And there is the rest."
