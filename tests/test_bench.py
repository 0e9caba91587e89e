"""Every benchmark of the spine runs, tiny, so that it cannot rot; and no query of the state scans."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

import octavo
from octavo.domain.filters import Filter
from octavo.storage.state_view import DbView

ROOT = Path(__file__).parent.parent
BENCHES = ("writes", "consolidate", "opening", "importing", "size", "startup", "gate")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", [*BENCHES, "recall_speed"])
def test_a_benchmark_runs_and_keeps_nothing_of_a_smoke_run(name, tmp_path):
    results = ROOT / "bench" / "results"
    before = {path.name: path.read_bytes() for path in results.iterdir()}
    command = [sys.executable, "-m", f"bench.{name}", "--smoke", "--cache", str(tmp_path)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "160"}
    )
    assert done.returncode == 0, done.stderr
    assert "measured" in done.stdout
    assert {path.name: path.read_bytes() for path in results.iterdir()} == before


@pytest.mark.parametrize("name", BENCHES)
def test_kept_results_say_what_they_were_measured_with_and_not_where(name):
    found = json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text())
    assert found["command"].startswith(f"python -m bench.{name}")
    assert "/" not in found["command"]
    assert set(found["machine"]) == {"cores", "cpu", "system", "python"}
    assert {"python", "octavo", "apsw"} <= set(found["versions"])
    assert found["rows"]


class Explained:
    """The rows of a state, and the plan of every query asked for them."""

    def __init__(self, account):
        self._state = account._spine.state
        self.plans = {}

    def rows(self, sql, values=()):
        self.plans[sql] = [row[3] for row in self._state.rows(f"EXPLAIN QUERY PLAN {sql}", values)]
        return self._state.rows(sql, values)

    def rows_of_each(self, sql, values):
        return [row for each in values for row in self.rows(sql, each)]


FILTERS = (
    Filter(),
    Filter(limit=10, newest=True),
    Filter(kinds=("fact",), limit=10),
    Filter(kinds=("fact", "canon"), layers=("semantic",), scopes=("shared",), limit=10),
    Filter(kinds=("episode",), since=NOW, until=NOW),
    Filter(after="01m7gfwmvs5g4wnva9pm", limit=10),
    Filter(session="sandbox_1"),
    Filter(topic="profile/home"),
    Filter(category="state", tags=("travel",), limit=10),
)


def test_no_query_of_the_state_looks_at_every_revision(tmp_path):
    with octavo.open(tmp_path, "User01", actor="human:you") as account:
        account.remember("lives in Chiang Mai", topic="profile/home", kind="register")
        account.remember("ชอบชาเขียวที่ร้านริมน้ำ")
        explained = Explained(account)
        for version in (1, account.version):
            view = DbView(explained, version)
            memory = view.alike("fact", "shared", "ชอบชาเขียวที่ร้านริมน้ำ")
            view.get("01m7gfwmvs5g4wnva9pm")
            view.by_topic("register", "shared", "profile/home")
            view.count("fact"), view.sessions("shared"), view.tallies(), view.scopes()
            view.is_rejected("0" * 64, "shared"), view.is_redacted("0" * 64), view.has_redactions()
            view.proposal("01m7gfwmvs5g4wnva9pm"), view.proposals(), view.referring("01m7gfwmvs5g4wnva9pm")
            for wanted in FILTERS:
                view.memories(wanted)
        assert [m.text for m in memory] == ["ชอบชาเขียวที่ร้านริมน้ำ"]
    scanned = {step.split()[1] for plan in explained.plans.values() for step in plan if step[:5] == "SCAN "}
    # The counters have a row a kind, scope and category; a memory's tags are its own.
    assert scanned <= {"tally", "(subquery-3)", "json_each"}
