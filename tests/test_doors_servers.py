"""Real servers, a command line and a hook on one account, killed at random: nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2 as httpx
import pytest

import octavo
from octavo.doors import cli, serving
from octavo.doors.visitors import SAME_ORIGIN, Tokens

PATH = "/accounts/User01/memories"


def served(root: Path) -> tuple[subprocess.Popen[str], str]:
    """A server in a process of its own, and where it listens."""
    line = [
        sys.executable,
        "-m",
        "octavo",
        "serve",
        "--port",
        "0",
        "--root",
        str(root),
        "--actor",
        "human:you",
    ]
    environment = {**os.environ, "OCTAVO_EMBEDDER": "none"}
    process = subprocess.Popen(
        line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stderr is not None
    told = process.stderr.readline()
    process.stderr.close()
    found = re.search(r"http://\S+", told)
    assert found, told
    return process, found[0]


def write(base: str, text: str) -> str:
    """Write by a server's own page; returns the id that it acknowledged."""
    with httpx.Client(base_url=base, timeout=20) as client:
        own = {SAME_ORIGIN: client.get("/session").json()["same_origin"]}
        answered = client.post(PATH, json={"text": text, "kind": "episode"}, headers=own)
        assert answered.status_code == 201, answered.text
        return str(answered.json()["memory"]["id"])


def keep_writing(root: Path, number: int, acknowledged: list[str], unexpected: list[str]) -> None:
    """Write by a server that is killed in the middle, once gently, and begun again."""
    chance = random.Random(number)
    process, base = served(root)
    for turn in range(15):
        if turn in (5, 10):
            told = signal.SIGKILL if turn == 5 else signal.SIGTERM
            threading.Timer(chance.random() / 50, process.send_signal, (told,)).start()
        try:
            acknowledged.append(write(base, f"writer {number} noted event number {turn}"))
        except httpx.TransportError:
            process.wait()
            process, base = served(root)
        except AssertionError as error:
            if "the server is ending" not in str(error):
                unexpected.append(str(error))
    process.send_signal(signal.SIGTERM)
    process.wait(20)


def keep_calling(root: Path, acknowledged: list[str]) -> None:
    """Write by the command line, killed every other time."""
    chance = random.Random(9)
    for turn in range(6):
        line = [sys.executable, "-m", "octavo", "remember", f"the line noted event number {turn}"]
        line += ["--kind", "episode", "--root", str(root), "--account", "User01", "--json"]
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
            if turn % 2:
                time.sleep(chance.random())
                process.kill()
            out, _ = process.communicate()
        acknowledged += re.findall(r'"memory": {\s*"id": "(\w+)"', out)


def keep_hooking(root: Path) -> tuple[list[str], list[str]]:
    """Say something by a hook, killed every other time; returns what was said, and what it answered to."""
    chance = random.Random(5)
    line = [sys.executable, "-m", "octavo", "--root", str(root), "--account", "User01", "hook"]
    said, acknowledged = [], []
    for turn in range(8):
        said.append(f"the hook heard sentence number {turn}")
        with subprocess.Popen([*line, "prompt"], stdin=subprocess.PIPE, text=True) as process:
            if turn % 2 == 0:
                threading.Timer(chance.random(), process.kill).start()
            process.communicate(json.dumps({"session_id": "killed", "prompt": said[-1]}))
        acknowledged += said[-1:] if process.returncode == 0 else []
    subprocess.run([*line, "stop"], input='{"session_id": "killed"}', text=True, check=True)
    return said, acknowledged


@pytest.mark.slow
def test_servers_a_command_line_and_a_hook_killed_at_random_lose_no_acknowledged_write(
    root: Path,
) -> None:
    octavo.open(root, "User01", actor="human:you", embedder=False).close()
    acknowledged: list[str] = []
    unexpected: list[str] = []
    writers = [
        threading.Thread(target=keep_writing, args=(root, n, acknowledged, unexpected)) for n in range(2)
    ]
    for writer in writers:
        writer.start()
    line = threading.Thread(target=keep_calling, args=(root, acknowledged))
    line.start()
    said, heard = keep_hooking(root)
    for writer in (*writers, line):
        writer.join()
    assert unexpected == []
    assert len(acknowledged) >= 20
    with octavo.open(root, "User01", actor="human:you", embedder=False) as account:
        assert [id_ for id_ in acknowledged if account.get(id_) is None] == []
        kept = [turn.text for memory in account.memories(kind="episode") for turn in memory.turns]
        kept = [text for text in kept if "the hook heard" in text]
        assert len(heard) >= 4
        assert set(heard) <= set(kept) <= set(said)
        assert len(kept) == len(set(kept))
        assert account.check()


def test_one_port_serves_rest_pages_and_mcp_until_a_signal_ends_it_in_order(root: Path) -> None:
    process, base = served(root)
    port = base.rpartition(":")[2]
    assert cli.run(["serve", "--port", port, "--root", str(root)]) == 8
    with httpx.Client(base_url=base) as client:
        own = {SAME_ORIGIN: client.get("/session").json()["same_origin"]}
        client.post("/accounts/default/memories", json={"text": "lives in Chiang Mai"}, headers=own)
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        said = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        _, text = Tokens(root).add("default", "human:you", "orion", by="human:you")
        both = {"Accept": "application/json, text/event-stream", "Authorization": f"Bearer {text}"}
        greeted = client.post("/mcp", json=said, headers=both)
        assert (greeted.status_code, "serverInfo" in greeted.text) == (200, True)
        assert client.get("/@default/ask").status_code == 200
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    with octavo.open(root, embedder=False) as account:
        assert account.memories()[0].text == "lives in Chiang Mai"


def test_no_answer_waits_for_the_acknowledgement_of_its_first_piece() -> None:
    with serving._listening("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
