"""The demo plays to its end and shows what it promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import octavo

LIFE = Path(__file__).parent.parent / "examples" / "life.py"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("life") / "demo-data"
    done = subprocess.run(
        [sys.executable, "-W", "error", str(LIFE), str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return folder, done.stdout


@pytest.mark.parametrize(
    "sight",
    [
        "consolidated version 1, session 1",
        "lives in [-Bangkok-]{+Chiang Mai+}",
        "version 1: lives in Bangkok",
        "today: lives in Chiang Mai",
        "refused by the check `secret`",
        "จ่ายค่าเช่าด้วยบัตร [card] นะ",
        "teapots: 0",
        "clash  plan/weekend",
        "Nok approves: Nok is a vegetarian",
        "restored as version 9",
        "closed sessions: 64; cores: 8",
        "core_000_000   4–24 May 2026",
        "Nok “I adopted a little brown dog from the temple, her name is Mochi.”",
        "sphere_000   4 May 2026",
        "64 sessions in 8 cores.",
        "shares words with the question",
        "means something similar",
        "→ agent:orion, 2026-07-13",
        "## Long-Term Memory Context",
        "refused by the check `rejection`",
        "revise, line 7: Mochi sleeps in the studio",
        "remember, line 8: โมจิชอบกินแตงโม",
        "by human:nok; left to do: 0",
        "Orion: proposed (procedural waits for a person)",
        "Nok approves: procedural/skills/morning-brief/SKILL.md",
        "files that hold the text: 0",
        "sound: 87 versions",
    ],
)
def test_the_demo_shows(played: tuple[Path, str], sight: str) -> None:
    assert sight in played[1]


def test_the_account_of_the_demo_can_be_looked_at(played: tuple[Path, str]) -> None:
    folder, _ = played
    with octavo.open(folder, "nok", read_only=True) as account:
        assert account.check()
        assert [m.text for m in account.memories(topic="home")] == ["lives in Chiang Mai"]
        kept = {memory.text for memory in account.memories(kind="register")}
        assert {"paints the kitchen", "lives in Chiang Mai"} <= kept
        assert account.counters()["Total_sessions"] == 64
        assert [len(account.memories(kind=kind)) for kind in ("core", "sphere")] == [8, 1]


def test_neither_the_rejected_value_nor_the_redacted_text_is_left(played: tuple[Path, str]) -> None:
    folder, _ = played
    with octavo.open(folder, "nok", read_only=True) as account:
        assert not any("afraid of dogs" in memory.text for memory in account.memories())
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert not any("แต่งงานเงียบ".encode() in path.read_bytes() for path in files)


def test_no_secret_of_the_demo_is_on_disk(played: tuple[Path, str]) -> None:
    folder, _ = played
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert not any(b"4111 1111" in path.read_bytes() for path in files)


def test_the_demo_says_the_same_in_a_folder_that_goes_away(
    played: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OCTAVO_RERANKER")  # the first run looked twice, too
    done = subprocess.run([sys.executable, str(LIFE)], capture_output=True, text=True, check=True)
    assert _without_ids(done.stdout) == _without_ids(played[1])


def _without_ids(told: str) -> str:
    """What was shown, every id as the same one: half of each is drawn at random."""
    return re.sub(r"\b(sandbox_)?01[0-9a-z]{18}\b", "an-id", told)
