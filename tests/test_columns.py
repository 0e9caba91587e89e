"""Derived files: indexing stopped at any file operation, or by a full disk, costs nothing but time."""

from __future__ import annotations

import errno
import shutil

import pytest

import octavo
from octavo.errors import Damaged, StoreFull
from octavo.storage import columns
from octavo.testing import FailingDisk, Stopped, StoppingDisk
from test_assemblies import POTTERY, SURGERY, Subjects, manual, remember


@pytest.fixture(scope="module")
def unindexed(tmp_path_factory):
    """An account with facts and an assembly, and nothing derived but its state."""
    root = tmp_path_factory.mktemp("unindexed")
    with octavo.open(root, "default", actor="human:you", embedder=False, policy=manual()) as account:
        ids = remember(account, *POTTERY, *SURGERY)
        account.assemble(*ids[:2], name="pottery")
    shutil.rmtree(root / "default" / "index" / "recall", ignore_errors=True)
    return root


def bring_up(root, disk, monkeypatch):
    """Index everything through a disk; composites too."""
    with monkeypatch.context() as patched:
        patched.setattr(columns, "disk", disk)
        with octavo.open(root, actor="human:you", embedder=Subjects(), policy=manual()) as account:
            account.catch_up()
            account.upkeep()


def test_until_what_took_a_files_place_is_ready_all_are_told_what_it_said_before(tmp_path):
    path, seen = tmp_path / "file", []
    path.write_text("old")
    latest = columns.Latest(path, path.read_text)
    with latest.staying(lambda new: seen.append((new, latest()))):
        (tmp_path / "new").write_text("new")
        (tmp_path / "new").replace(path)
        seen.append(latest())
    assert [*seen, latest()] == ["old", ("new", "old"), "new"]


@pytest.mark.parametrize("error", [Damaged, FileNotFoundError])
def test_what_is_not_ready_is_read_by_who_asks_next(tmp_path, error):
    path = tmp_path / "file"
    latest = columns.Latest(path, path.exists)

    def fails(new):
        raise error("gone")

    with latest.staying(fails):
        path.write_text("new")
        assert not latest()
    assert latest()


def test_indexing_stopped_at_any_call_is_finished_by_the_next_pass(unindexed, tmp_path, monkeypatch):
    counted = StoppingDisk(None)
    bring_up(shutil.copytree(unindexed, tmp_path / "whole"), counted, monkeypatch)
    names = set(counted.calls)
    assert {"open_lock", "truncate", "write_at", "sync", "replace", "sync_folder", "close"} <= names
    # A file takes five calls, so every third of them meets each kind of call, early and late.
    for number in range(1, len(counted.calls) + 1, 3):
        root = shutil.copytree(unindexed, tmp_path / f"{number}")
        disk = StoppingDisk(number, torn=number % 2 == 0)
        with pytest.raises(Stopped):
            bring_up(root, disk, monkeypatch)
        disk.kill()
        with octavo.open(root, actor="human:you", embedder=Subjects(), policy=manual()) as account:
            account.catch_up()
            account.upkeep()
            assert account.check().problems == ()
            assert len(account.recall("pottery class")) >= len(POTTERY)
            assert account.explained.stats()["fresh"] == 1
        shutil.rmtree(root, ignore_errors=True)  # a thread of the library may still be at it


def test_indexing_on_a_full_disk_says_so_and_goes_on_when_there_is_room(unindexed, tmp_path, monkeypatch):
    root = shutil.copytree(unindexed, tmp_path / "full")
    with pytest.raises(StoreFull):
        bring_up(root, FailingDisk(errno.ENOSPC, at=9, lasting=True), monkeypatch)
    bring_up(root, StoppingDisk(None), monkeypatch)
    with octavo.open(root, actor="human:you", embedder=Subjects(), policy=manual()) as account:
        assert account.check().problems == ()
