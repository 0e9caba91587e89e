"""A long import is indexed by a second process meanwhile; without it nothing is lost but time."""

from __future__ import annotations

import gc
import os
import signal
import threading
from datetime import UTC, datetime

import pytest

import octavo
from octavo.domain.buffer import Wrote
from octavo.domain.memory import Memory, Turn, transcript
from octavo.engine import follower
from octavo.engine.spine import without_gc
from octavo.engine.worker import Worker
from octavo.errors import Unavailable
from octavo.testing import MemoryStore, open_on

AT = datetime(2026, 1, 5, tzinfo=UTC)


def talk(number: int) -> Wrote:
    turns = (Turn(speaker="user", text=f"ครั้งที่ {number} I planted marigold{number}"),)
    return Wrote(memory=Memory(id="", kind="episode", text=transcript(turns), at=AT, turns=turns))


def write(account: octavo.Account, commits: int) -> None:
    for commit in range(commits):
        assert all(account.intake.write_many([talk(10 * commit + n) for n in range(10)], cause="import"))


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(follower, "_LONG", 20)
    monkeypatch.setattr(follower, "_LARGE", 15)


def test_a_long_import_is_indexed_when_it_ends(tmp_path):
    with octavo.open(tmp_path, "a", embedder=False) as account:
        with account.intake.importing():
            write(account, 6)
        lag = account._indexing.lag()
        assert lag.versions == (0 if len(os.sched_getaffinity(0)) > 1 else 6)
        assert account.recall("marigold57")[0].memory.text.endswith("marigold57")
        assert account.check().problems == ()


def test_a_short_import_starts_no_process(tmp_path):
    with octavo.open(tmp_path, "a", embedder=False) as account:
        with account.intake.importing():
            write(account, 1)
        assert account._indexing.lag().versions == 1


def test_an_import_that_begins_large_and_ends_there_does_not_wait_for_the_process(tmp_path):
    with octavo.open(tmp_path, "a", embedder=False) as account:
        with account.intake.importing() as _:
            assert all(account.intake.write_many([talk(n) for n in range(16)], cause="import"))
            process = account.intake._follower._process
        assert process is None or process.returncode == -signal.SIGKILL
        account.catch_up()
        assert account.recall("marigold11")[0].memory.text.endswith("marigold11")
        assert account.check().problems == ()


def test_nothing_outside_an_import_starts_a_process(tmp_path):
    with octavo.open(tmp_path, "a", embedder=False) as account:
        write(account, 5)
        assert account._indexing.lag().versions == 5


def test_an_account_that_no_other_process_can_read_is_imported_all_the_same(tmp_path):
    with open_on(MemoryStore(), tmp_path) as account:
        with account.intake.importing():
            write(account, 5)
        assert account.recall("marigold42")[0].memory.text.endswith("marigold42")


def test_a_follower_that_is_killed_costs_nothing_but_time(tmp_path, caplog):
    with octavo.open(tmp_path, "a", embedder=False) as account:
        with account.intake.importing():
            write(account, 3)
            process = account.intake._follower._process
            if process is not None:  # on one processor there is none
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            write(account, 3)
        assert process is None or "the index is behind" in caplog.text
        account.catch_up()
        assert account._indexing.lag().versions == 0
        assert len(account.recall("marigold planted", k=60)) == 60
        assert account.check().problems == ()


def test_an_import_that_fails_leaves_no_process_behind(tmp_path):
    started = []

    def fail(account: octavo.Account) -> None:
        with account.intake.importing():
            write(account, 4)
            started.append(account.intake._follower._process)
            raise ZeroDivisionError

    with octavo.open(tmp_path, "a", embedder=False) as account:
        with pytest.raises(ZeroDivisionError):
            fail(account)
        assert [process.returncode for process in started if process is not None] in ([0], [])
        assert account.intake._follower is None


def test_the_collector_is_held_for_a_batch_and_let_go_whatever_happens():
    gc.enable()
    with without_gc():
        assert not gc.isenabled()
        with without_gc():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_work_whose_folder_somebody_removed_is_reported_and_ends_no_thread():
    runs = []

    def job():
        runs.append(1)
        if len(runs) == 1:
            raise FileNotFoundError(2, "No such file or directory")

    worker = Worker(job, attempts=1)
    worker.wake()
    assert worker.wait(10)
    assert isinstance(worker.failure, Unavailable)
    worker.wake()
    assert worker.wait(10)
    assert worker.failure is None
    worker.stop()


@pytest.mark.parametrize("is_patient", [True, False])
def test_background_work_lets_questions_go_first_for_a_while_and_nobody_who_closes_waits(
    is_patient, monkeypatch
):
    monkeypatch.setattr("octavo.engine.worker._QUIET_SECONDS", 3_600.0)
    monkeypatch.setattr("octavo.engine.worker._PATIENCE", 1e12 if is_patient else 0.0)
    told, begun = [], threading.Event()

    def job():
        told.append(worker.must_stop())  # nobody asked
        worker.asked()
        begun.set()
        told.append(worker.must_stop())

    worker = Worker(job, attempts=1)
    worker.wake()
    assert begun.wait(60)
    assert is_patient or worker.wait(60)
    assert told == ([False] if is_patient else [False, False])
    worker.stop()
    assert told == [False, is_patient]


def test_every_recall_is_a_question_that_background_work_lets_go_first(account, monkeypatch):
    asked, note = [], Worker.asked
    monkeypatch.setattr(Worker, "asked", lambda worker: asked.append(worker) or note(worker))
    account.remember("แมวชอบนอนบนโซฟา")
    with account.sandbox() as sandbox:
        sandbox.recall("แมว")
        sandbox.discard()
    account.recall("แมว")
    account.brief("แมว")
    assert len(asked) >= 3
    assert set(asked) == {account._worker}
