"""The shipped suite is passed by the local store and by the one in memory, and it can be failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.domain.ports import Store
from octavo.errors import BadInput, StoreUnfit
from octavo.storage.stores.entries import probe
from octavo.storage.stores.local import LocalStore
from octavo.testing import MemoryStore, StoreSuite
from octavo.testing.faults import TappedStore


class TestLocalStore(StoreSuite):
    between_processes = True
    leases_end = False

    def open_store(self, place: Path) -> Store:
        return LocalStore(place)


class TestMemoryStore(StoreSuite):
    @pytest.fixture(autouse=True)
    def _a_store_a_place(self) -> None:
        self.stores: dict[Path, MemoryStore] = {}

    def open_store(self, place: Path) -> Store:
        return self.stores.setdefault(place, MemoryStore())


class OverwritingStore(TappedStore):
    """Some look-alikes of object stores ignore the condition and overwrite."""

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        self.inner.replace(key, data)
        return True


class SuiteOfAnUnfitStore(StoreSuite):
    def __init__(self) -> None:
        self.store = OverwritingStore(MemoryStore())

    def open_store(self, place: Path) -> Store:
        return self.store


@pytest.mark.parametrize(
    "promise",
    [
        "test_a_second_create_is_refused_and_changes_nothing",
        "test_sixteen_threads_create_one_key_and_exactly_one_wins",
        "test_an_empty_entry_is_not_a_missing_one",
    ],
)
def test_a_store_that_overwrites_fails_the_suite(promise, tmp_path):
    with pytest.raises(AssertionError):
        getattr(SuiteOfAnUnfitStore(), promise)(tmp_path)


def test_a_store_that_overwrites_is_refused_when_it_is_probed():
    with pytest.raises(StoreUnfit, match="overwrites"):
        probe(OverwritingStore(MemoryStore()))


@pytest.mark.parametrize("key", ["", "/a", "a//b", "../a", "a/../b", "ledger/.hidden", "a\\b", "a\0b"])
def test_a_key_that_leaves_the_account_is_refused(key, tmp_path):
    with pytest.raises(BadInput, match="does not name a place"):
        LocalStore(tmp_path).create(key, b"x")
