"""A script that never closes its account ends as any other script does."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import octavo

account = octavo.open(sys.argv[1], account="me", actor="human:me")
for number in range(30):
    account.remember(f"The shelf number {number} holds the books of the letter {chr(97 + number)}")
print(len(account.recall("which books are on the shelf?")))
"""


def test_a_script_that_closes_nothing_ends_well_and_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv("OCTAVO_RERANKER")  # the second look's model works longest in the background
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (0, "")
    assert int(ran.stdout) == 10
