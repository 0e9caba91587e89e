"""Every benchmark of the spine runs, tiny, so that it cannot rot; and no query of the state scans."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from bench import harness, recall_speed

import octavo
from octavo.domain.compression import CompressionPolicy
from octavo.storage import state_file

ROOT = Path(__file__).parent.parent
BENCHES = ("writes", "consolidate", "opening", "importing", "size", "startup", "gate")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "name", [*BENCHES, "recall_speed", "robotgrid", "mirror", "facts", "stores", "doors", "crowd"]
)
def test_a_benchmark_runs_and_keeps_nothing_of_a_smoke_run(name, tmp_path):
    results = ROOT / "bench" / "results"
    before = {path.name: path.read_bytes() for path in results.iterdir()}
    flags = ["-X", "faulthandler", "-m", f"bench.{name}", "--smoke", "--cache", str(tmp_path)]
    command = [sys.executable, *flags]
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


def test_the_page_people_read_has_every_promise_with_its_date_and_command(tmp_path, monkeypatch):
    page = tmp_path / "benchmarks.md"
    page.write_text(harness.PAGE.read_text())
    monkeypatch.setattr(harness, "PAGE", page)
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    row = {"what": "a turn", "value": 1.25, "unit": "×", "target": "≤ 1.5 ×", "met": True, "spread": None}
    more = {"title": "t", "at": "2026-11-18T04:00:00", "versions": {}, "notes": []}
    result = {"command": "python -m bench.x", "machine": {"cores": 2, "cpu": "c", "python": "3"}, **more}
    (tmp_path / "x.json").write_text(json.dumps({**result, "rows": [row, {**row, "target": ""}]}))
    harness.write_pages()
    text = page.read_text()
    assert text.count("| t: a turn | ≤ 1.5 × | 1.25 × | met | 2026-11-18 | `python -m bench.x` |") == 1
    assert "Measured on 2 cores (c)." in text
    assert text.startswith("# Benchmarks")
    assert "## What limits it" in text
    harness.write_pages()
    assert page.read_text() == text


FILTERS = (
    {},
    {"limit": 10, "newest": True},
    {"kind": "fact", "limit": 10},
    {"kind": ("fact", "canon"), "layer": "semantic", "scope": "shared", "limit": 10},
    {"kind": "episode", "since": NOW, "until": NOW},
    {"from_sandbox": "sandbox_1"},
    {"topic": "profile/home"},
    {"category": "state", "tags": ("travel", "thai"), "limit": 10},
)
# Small in any account: what was bound or found just before; a row for each kind, scope and category; twenty
# for each name that a speaker has; and the newest orders, of which a few are asked for.
SMALL = re.compile(r"SCAN (json_each|\(subquery|CONSTANT|3-ROW|tally|called|c$|s$)")
QUERIES = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


def test_lives_lived_through_are_kept_beside_the_figures_of_the_index(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    monkeypatch.setattr(recall_speed, "LIVED", (4,))
    monkeypatch.setattr(recall_speed, "is_rerank_installed", lambda: False)
    harness.PAGE.write_text(f"{harness.BEGIN}{harness.END}")
    recall_speed.main(["--lived", "40", "--cache", str(tmp_path / "cache")])
    (kept,) = tmp_path.glob("*.json")
    found = json.loads(kept.read_text())
    assert (kept.stem, found["bench"]) == ("recall_lived", "recall_lived")
    assert found["command"] == "python -m bench.recall_speed --lived 40"


def lead_a_life(account):
    for n in range(9):
        with account.sandbox(scope="orion") as sandbox:
            sandbox.turn("user", f"I planted {n} mango trees, Mali. Always answer in Thai.")
            sandbox.remember(f"has {n} trees in garden {n}", tags=["garden"])
            sandbox.update_state("ire_state", {"calm": n})
            sandbox.recall("trees")
    older = account.remember("lives in Lyon", tags=("home", "travel")).memory
    account.remember("ย้ายไปอยู่เชียงใหม่แล้ว", supersedes=older.id)
    account.remember_many([{"text": "likes tea", "kind": "register", "topic": "profile/tea"}] * 2)
    account.redact(account.remember("the harbour affair", tags=["home"]).memory.id, reason="private")
    account.reject("works at the port", reason="wrong")
    account.forget(account.remember("has a boat").memory.id)
    ask_everything(account)
    ask_everything(account.at(3))
    account.proposals(), account.rejections(), account.sessions(), account.counters()
    account.diff(2, account.version), account.history(older.id), account.versions(), account.refusals()
    account.upkeep(), account.check(), account.restore(5), account.compress(), account.reindex()
    account.repair()


def ask_everything(reader):
    for filters in FILTERS:
        reader.memories(**filters)
    reader.memories(after=reader.memories(limit=1)[0].id, limit=10)
    reader.recall("where does she live?"), reader.brief(), reader.brief("trees"), reader.stats()


def test_no_statement_of_the_state_looks_at_every_row(tmp_path, monkeypatch):
    asked, really = {}, state_file.opened

    def opened(path, *, read_only):
        db = really(path, read_only=read_only)
        db.exec_trace = lambda cursor, sql, values: bool([asked.setdefault(sql, values)])
        return db

    monkeypatch.setattr(state_file, "opened", opened)
    policy = octavo.Policy(compression=CompressionPolicy(mode="immediate"))
    with octavo.open(tmp_path, "User01", actor="human:you", embedder=False, policy=policy) as account:
        lead_a_life(account)
        db = account._spine.state
        queries = {sql: values for sql, values in asked.items() if sql.split()[0] in QUERIES}
        plans = {
            sql: [row[3] for row in db.rows(f"EXPLAIN QUERY PLAN {sql}", v)] for sql, v in queries.items()
        }
    assert len(plans) > 60
    scans = {sql: step for sql, plan in plans.items() for step in plan if step.startswith("SCAN ")}
    assert {sql: step for sql, step in scans.items() if not SMALL.search(step)} == {}
    # Nearly every revision came in before a version: looking for those is a scan by another name.
    assert [sql for sql, plan in plans.items() if any("(since<?)" in step for step in plan)] == []


def test_the_chaos_run_loses_nothing_and_keeps_nothing_of_a_smoke_run(tmp_path):
    test_a_benchmark_runs_and_keeps_nothing_of_a_smoke_run("chaos", tmp_path)
