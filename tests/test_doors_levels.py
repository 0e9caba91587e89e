"""The levels at the command line: teaching line by line, patterns, retention, the mirror that follows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import octavo
from octavo.domain.policy import MirrorPolicy, Policy
from octavo.doors import cli


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> Any:
        code = cli.run(["--root", str(tmp_path), "--account", "rex", "--actor", "human:nok", *words])
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return json.loads(captured.out) if "--json" in words else captured.out

    return run


def test_a_robot_is_taught_line_by_line_and_does_it(run: Any) -> None:
    assert "Ready to learn 'ทักทาย'" in run("teach", "teach ทักทาย")
    run("teach", "forward")
    run("teach", "left")
    assert "Learned 'ทักทาย': forward -> left" in run("teach", "done")
    answer = run("invoke", "ทักทาย", "--json")
    assert answer["actions"] == ["forward", "left"]
    (known,) = run("behaviors", "--json")["behaviors"]
    assert (known["name"], known["times_invoked"]) == ("ทักทาย", 1)
    assert "ทักทาย" in run("behaviors")


def test_patterns_are_shown_with_counts_and_learned_once(run: Any) -> None:
    for _ in range(3):
        for intent in ("greet", "ask"):
            run("remember", f"denied a step {intent}", "--kind", "episode", "--category", "event", "--data",
                json.dumps({"event_type": "sandbox_denied", "payload": {"action": "fly"}}))  # fmt: skip
    (pattern,) = run("patterns", "--json")["patterns"]
    assert (pattern["kind"], pattern["count"], pattern["is_firm"]) == ("denials", 6, True)
    assert run("learn", "--json")["patterns_promoted"] == 1
    assert run("learn", "--json")["patterns_promoted"] == 0
    assert "denials" in run("patterns")


def test_retention_lists_and_takes_nothing_unless_asked(run: Any) -> None:
    run("remember", "it started", "--kind", "episode", "--category", "event", "--at", "2020-01-01")
    assert re.search(r"events +1 +no\n", run("retention"))
    aged = {row["group"]: row for row in run("retention", "--json")["aged"]}
    assert len(aged["events"]["episodes"]) == 1
    gone = {row["group"]: row for row in run("retention", "--apply", "--json")["aged"]}
    assert gone["events"]["is_done"]
    assert run("memories", "--json")["memories"] == []


def test_mirror_and_sync_at_the_command_line(run: Any, tmp_path: Path) -> None:
    run("remember", "the red key opens the north door", "--category", "objects")
    assert "wrote  semantic/knowledge/objects.md" in run("mirror", str(tmp_path / "notes"))
    page = tmp_path / "notes/semantic/knowledge/objects.md"
    page.write_text(page.read_text().replace("red", "blue"))
    assert "nothing is taken in yet" in run("sync")
    assert "revise  semantic/knowledge/objects.md:7" in run("sync", "--yes")
    assert run("memories", "--json")["memories"][0]["text"] == "the blue key opens the north door"
    assert "nothing has changed" in run("sync")


def test_a_conflict_says_how_to_decide_it_and_a_file_that_goes_is_not_said_to_be_written(
    run: Any, tmp_path: Path
) -> None:
    run("remember", "the red key opens the north door", "--category", "objects")
    run("mirror", str(tmp_path / "notes"))
    page = tmp_path / "notes/semantic/knowledge/objects.md"
    page.write_text(page.read_text().replace("red", "blue"))
    (key,) = run("memories", "--json")["memories"]
    run("revise", key["id"], "--text", "the red key is lost")
    assert "octavo sync --yes --ours" in run("sync", "--yes")
    assert "revise" in run("sync", "--yes", "--theirs")
    run("revise", key["id"], "--category", "กุญแจ")
    told = run("sync")
    assert "nothing has changed" in told
    told = run("mirror", str(tmp_path / "notes"))
    assert "wrote  semantic/knowledge/กุญแจ.md" in told
    assert "removed  semantic/knowledge/objects.md" in told


@pytest.mark.parametrize(("mode", "shown"), [("off", "red"), ("manual", "สีฟ้า")])
def test_a_mirror_follows_upkeep_only_if_the_policy_says_so(tmp_path: Path, mode: Any, shown: str) -> None:
    policy = Policy(mirror=MirrorPolicy(mode=mode))
    with octavo.open(tmp_path, "rex", actor="human:nok", policy=policy) as account:
        key = account.remember("the red key opens the north door", category="objects").or_raise()
        page = Path(account.mirror().folder, "semantic/knowledge/objects.md")
        account.revise(key.id, text="กุญแจสีฟ้าเปิดประตูเหนือ")
        account.upkeep()
        assert shown in page.read_text()
        account.mirror()
        assert "สีฟ้า" in page.read_text()


def test_a_mirror_may_follow_every_commit(tmp_path: Path) -> None:
    policy = Policy(mirror=MirrorPolicy(mode="after_commit"))
    with octavo.open(tmp_path, "rex", actor="human:nok", policy=policy) as account:
        account.remember("the red key opens the north door", category="objects")
        assert account.wait(30)
    assert "red key" in (tmp_path / "rex/mirror/semantic/knowledge/objects.md").read_text()
