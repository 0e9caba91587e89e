"""Accounts in a local folder and in memory keep what accounts promise in every place."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

import octavo
from octavo.errors import BadInput, NotFound
from octavo.storage import buffers
from octavo.storage.stores.names import account_of, folder_of, secrets_in, shown
from octavo.storage.stores.objects import ObjectsPlace
from octavo.testing import MemoryStore, Stopped, StoppingStore, open_on
from places import PARTS, PlaceSuite, opened


class TestLocalPlace(PlaceSuite):
    @pytest.fixture
    def root(self, tmp_path) -> str:
        return str(tmp_path / "data")


class MemoryPlace:
    """Accounts in memory: a store each, for as long as the place is there."""

    name = "memory"

    def __init__(self) -> None:
        self.stores: dict[str, MemoryStore] = {}

    def open(self, account: str) -> MemoryStore:
        return self.stores.setdefault(account, MemoryStore())

    def accounts(self, after: str = "", limit: int = 1000) -> list[str]:
        there = (name for name, store in self.stores.items() if store.read("account.json") is not None)
        return sorted(name for name in there if name > after)[:limit]

    def delete(self, account: str) -> None:
        if account not in self.accounts():
            raise NotFound(f"there is no account {account!r}")
        del self.stores[account]


class TestMemoryPlace(PlaceSuite):
    """What other processes take part in is done by threads here, since no process sees another's memory."""

    test_an_owner_that_was_paused_and_followed_can_say_nothing_any_more = None
    test_the_command_line_keeps_policy_accounts_and_copies_in_any_place = None

    @pytest.fixture
    def root(self) -> MemoryPlace:
        return MemoryPlace()

    def told_by(self, parts: list[tuple]) -> list[list]:
        with ThreadPoolExecutor(len(parts)) as threads:
            return list(threads.map(lambda part: PARTS[part[3]](*part[:3], part[4]), parts))

    def test_writers_killed_at_random_moments_lose_nothing_that_was_acknowledged(
        self, root, name, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(buffers, "LEASE_SECONDS", 0.0)
        said = []
        for n in range(40):
            dying = StoppingStore(root.open(name))
            dying.stop_at = 9 + n
            with suppress(Stopped), open_on(dying, tmp_path / "index", account=name) as account:
                for left in account.sandboxes():
                    account.resume(left.id).consolidate()
                sandbox = account.sandbox()
                for part in range(3):
                    sandbox.turn("user", f"ประโยคที่ {n}.{part}")
                    said.append(f"ประโยคที่ {n}.{part}")
                sandbox.consolidate()
        with opened(root, name, tmp_path / "heir") as account:
            for left in account.sandboxes():
                account.resume(left.id).consolidate()
            there = [turn.text for memory in account.memories(kind="episode") for turn in memory.turns]
            assert len(there) == len(set(there)), "something was said twice"
            assert set(said) <= set(there)
            assert account.check()


def test_an_account_that_somebody_else_begins_meanwhile_is_not_taken_for_a_damaged_one(tmp_path):
    class Beginning(MemoryStore):
        """Between a look for the account's file and the next look, somebody begins it and commits."""

        def read(self, key: str, *, first: int | None = None) -> bytes | None:
            data = super().read(key, first=first)
            if data is None and key == "account.json":
                self.__class__ = MemoryStore
                with open_on(self, tmp_path / "other") as other:
                    other.remember("มาก่อน", kind="register", topic="first")
            return data

    with open_on(Beginning(), tmp_path / "mine") as account:
        assert account.version == 1


def test_a_url_is_shown_without_its_password():
    url = "postgresql://mali:s3cret%40@db.example:5432/memory?sslmode=require&password=also"
    assert shown(url) == "postgresql://mali@db.example:5432/memory"
    assert set(secrets_in(url)) == {"s3cret%40", "s3cret@", "also"}


@pytest.mark.parametrize("account", ["User01", "ผู้ใช้ 1", ".hidden", "a.b", "con", "COM1", "ÄÖ", "+x%41", "😀"])
def test_an_account_and_its_folder_name_each_other(account):
    folder = folder_of(account)
    assert folder == folder.lower()
    assert re.fullmatch(r"[a-z0-9_+%-][a-z0-9_.+%-]*", folder)
    assert account_of(folder) == account


@pytest.mark.parametrize("folder", ["", ".deleted-+user01", "User01", "%zz", "%ff", "a b", "lock~"])
def test_a_folder_that_is_no_account_s_names_none(folder):
    assert account_of(folder) is None


def test_a_place_that_nobody_knows_is_refused_without_its_password():
    with pytest.raises(BadInput, match="no place for accounts") as refused:
        octavo.open("ftp://mali:s3cret@example/data")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("url", ["gs://bucket/memory", "az://container/memory?account=mali", "s3://bucket"])
def test_buckets_of_other_makers_are_named_by_their_url(url):
    place = ObjectsPlace(url)
    assert place.name == url.partition("?")[0]
    place.close()


@pytest.mark.parametrize("url", ["az://container/memory", "s3://bucket?password=s3cret"])
def test_a_bucket_that_cannot_be_used_is_refused_with_what_would_do(url, monkeypatch):
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(BadInput) as refused:
        octavo.open(url)
    assert "s3cret" not in str(refused.value)
    assert "account" in str(refused.value)


def test_an_account_stays_where_it_is_when_the_process_goes_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with octavo.open("data", "nok", actor="human:nok", embedder=False) as account:
        account.remember("the lamp hums in the hall")
        monkeypatch.chdir(tmp_path / "elsewhere")
        account.remember("the kettle whistles at noon")
        account.catch_up()
        assert len(account.recall("kettle")) == 1
        assert account.check()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_relative_folder_in_a_folder_that_is_gone_is_a_typed_error(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(NotFound, match="is gone"):
        octavo.open("data", "nok", actor="human:nok")
