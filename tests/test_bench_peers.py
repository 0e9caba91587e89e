"""The comparison with peers runs with Octavo and the plainest peer, whatever else is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from bench import peers
from bench.peers_crew import PeerFailed, Worker
from bench.peers_data import DIMENSION, Document, Vectors, conversations, marked, synthetic
from bench.peers_table import PEERS, Figures, markdown, plot

ROOT = Path(__file__).parent.parent
THAI = Document(
    id="D1:1", session="s1", speaker="มะลิ", text="พรุ่งนี้ไปเชียงใหม่", at=datetime(2023, 5, 8, tzinfo=UTC)
)


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.peers", *arguments, "--smoke"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"}
    )


def _talk(folder: Path) -> Path:
    turns = [
        {"speaker": "Mali", "dia_id": "D1:1", "text": "I planted a mango tree"},
        {"speaker": "Kenji", "dia_id": "D1:2", "text": "พรุ่งนี้ไปเชียงใหม่", "blip_caption": "a train"},
    ]
    asked = [
        {"question": "Who planted a tree?", "category": 4, "evidence": ["D1:1", "D9:9"]},
        {"question": "nothing to be found", "category": 5, "evidence": ["D1:1"]},
        {"question": "malformed", "category": 1, "evidence": ["D;1"]},
    ]
    talk = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": turns}
    (folder / "locomo-dev.json").write_text(json.dumps([{"conversation": talk, "qa": asked}]))
    return folder


@pytest.mark.slow
def test_octavo_and_the_plainest_peer_are_measured_end_to_end_and_a_smoke_run_keeps_nothing(tmp_path):
    results = ROOT / "bench" / "results"
    before = {path.name: path.read_bytes() for path in results.iterdir()}
    data = _talk(tmp_path)
    done = _run(str(data), "--peers", "octavo,plain", "--cache", str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert "Octavo's turn recall@10 above the best peer's" in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith(("| octavo |", "| plain |"))]
    assert len(rows) == 6
    assert [row.split("|")[-2].strip() for row in rows if "vectors" in row] == ["20 of 20", "20 of 20"]
    assert "failed" not in done.stdout
    assert {path.name: path.read_bytes() for path in results.iterdir()} == before


def test_a_run_without_any_peer_says_so_and_measures_nothing(tmp_path):
    done = _run("--peers", "octavo", "--cache", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "nothing to compare Octavo with" in done.stdout


def test_a_peer_that_is_not_installed_is_named_with_where_to_find_it(capsys, monkeypatch):
    absent = PEERS["plain"].__class__(name="absent", package="no-such-package", search="", form="")
    monkeypatch.setitem(PEERS, "absent", absent)
    peers.main(["--smoke", "--peers", "octavo,absent"])
    said = capsys.readouterr().out
    assert "no-such-package" in said
    assert "bench/requirements-peers.txt" in said


def test_every_peer_of_the_table_is_among_the_requirements_in_one_version():
    wanted = (ROOT / "bench" / "requirements-peers.txt").read_text().splitlines()
    named = {line.partition("==")[0] for line in wanted if "==" in line}
    assert {peer.package for peer in PEERS.values()} - {"octavo", "numpy"} <= named
    assert not [line for line in wanted if "/" in line and not line.startswith("#")]


def test_a_peer_that_fails_is_out_of_that_part_and_the_table_says_why(tmp_path):
    crew = peers.Crew(["octavo", "plain"], tmp_path)
    asked = []

    def act(name):
        asked.append(name)
        if name == "plain":
            raise PeerFailed("its process ended")

    crew.do("kill", act)
    crew.do("kill", act)
    assert sorted(asked) == ["octavo", "octavo", "plain"]
    assert crew.figures["plain"].failures == ["kill: its process ended"]
    assert "plain: kill: its process ended" in markdown(
        [figures.plain(PEERS[name]) for name, figures in crew.figures.items()]
    )


def test_a_worker_hands_on_what_a_peer_raised(tmp_path):
    with pytest.raises(PeerFailed, match="ModuleNotFoundError"):
        Worker("nobody", tmp_path, tmp_path / "vectors", synthetic=True)


def test_a_worker_finds_a_document_written_a_moment_ago_and_after_a_kill(tmp_path):
    worker = Worker("plain", tmp_path / "plain", tmp_path / "vectors", synthetic=True)
    worker.add([*synthetic(20, 0).documents, THAI])
    assert worker.find(THAI.dated, 1) == ["D1:1"]
    assert worker.call("update", marked(1))[0]
    worker.kill()
    again = Worker("plain", tmp_path / "plain", tmp_path / "vectors", synthetic=True)
    assert again.find(marked(1).dated, 1) == ["marked1"]
    again.close()


def test_vectors_are_made_once_and_the_time_for_it_is_known(tmp_path):
    vectors = Vectors(synthetic=True)
    first = vectors([THAI.text, "tea", THAI.text])
    spent = vectors.seconds
    again = vectors([THAI.text, "tea", THAI.text])
    assert np.array_equal(first, again)
    assert first.shape == (3, DIMENSION)
    assert (vectors.embedded, vectors.seconds) == (2, spent)
    vectors.save(tmp_path / "kept")
    loaded = Vectors(synthetic=True)
    loaded.load(tmp_path / "kept")
    assert np.array_equal(loaded([THAI.text]), first[:1])
    assert loaded.embedded == 0


def test_questions_keep_the_evidence_that_exists_and_category_five_is_left_out(tmp_path):
    (talk,) = conversations(_talk(tmp_path))
    assert [(q.text, q.evidence) for q in talk.questions] == [("Who planted a tree?", {"D1:1"})]
    assert talk.documents[1].dated == "8 May 2023, Kenji: พรุ่งนี้ไปเชียงใหม่ [photo: a train]"


def test_the_plot_is_a_small_png(tmp_path):
    figures = Figures(recall=[0.5], sessions=[1.0])
    figures.small.documents = figures.big.documents = 10
    figures.small.wall_ms = figures.small.cpu_ms = [1.0]
    figures.big.wall_ms = figures.big.cpu_ms = [9.0]
    plot([figures.plain(PEERS["plain"])], tmp_path / "peers.png")
    drawn = (tmp_path / "peers.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    assert len(drawn) < 200_000
