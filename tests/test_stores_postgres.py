"""The store in a real PostgreSQL passes the shipped suite, and keeps what only it must keep."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import psycopg
import pytest

import octavo
import servers
from networks import NetworkSuite
from octavo.domain.ports import Store
from octavo.errors import NewerFormat, Unavailable
from octavo.storage import buffers
from octavo.storage.stores.postgres import PostgresPlace
from octavo.storage.stores.retrying import Patience
from octavo.testing import StoreSuite
from places import PlaceSuite
from proxies import Proxy
from test_state_machine import run_machine


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory(prefix="octavo-postgres-") as folder,
        servers.postgres(Path(folder)) as url,
    ):
        yield url


@cache
def place_at(url: str) -> PostgresPlace:
    return PostgresPlace(url)


class TestPostgresStore(StoreSuite):
    between_processes = True

    @pytest.fixture(autouse=True)
    def _the_server(self, url: str) -> None:
        self.url = url

    def open_store(self, place: Path) -> Store:
        return place_at(self.url).open(hashlib.sha256(str(place).encode()).hexdigest())


class TestAccounts(PlaceSuite):
    @pytest.fixture
    def root(self, url: str) -> str:
        return url


class TestNetwork(NetworkSuite):
    @pytest.fixture
    def proxy(self, url: str) -> Iterator[Proxy]:
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", url)[1])
        proxy = Proxy(self.port)
        yield proxy
        proxy.close()

    @pytest.fixture
    def direct(self, url: str):
        return place_at(url)

    @pytest.fixture
    def connect(self, url: str, proxy: Proxy) -> Iterator[Callable[..., PostgresPlace]]:
        behind = url.replace(str(self.port), str(proxy.port))
        places = []

        def open_(patience: Patience | None = None) -> PostgresPlace:
            places.append(PostgresPlace(behind, patience=patience))
            return places[-1]

        yield open_
        for place in places:
            place.close()


def test_a_wrong_password_is_said_at_once_and_not_shown(url, caplog):
    place = PostgresPlace(url.replace("s3cret-pass", "wr0ng-pass"), patience=Patience(attempts=1))
    with caplog.at_level("DEBUG"), pytest.raises(Unavailable, match="password authentication failed") as said:
        place.open("User01")
    assert "wr0ng-pass" not in f"{said.value} {said.value.__cause__} {caplog.text} {place.name}"


def test_tables_of_a_newer_octavo_are_left_alone(url):
    place = PostgresPlace(url)
    place.open("User01")
    place.close()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE octavo.schema SET version = version + 1")
        try:
            with pytest.raises(NewerFormat, match="schema 3"):
                PostgresPlace(url).open("User01")
        finally:
            db.execute("UPDATE octavo.schema SET version = version - 1")


def test_four_places_prepare_an_empty_database_at_once(url):
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE DATABASE fresh")
    places = [PostgresPlace(url.replace("/postgres", "/fresh")) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        stores = list(threads.map(lambda place: place.open("User01"), places))
    assert [store.create("account.json", b"{}") for store in stores] == [True, False, False, False]
    for place in places:
        place.close()


def test_nothing_is_kept_in_a_session_so_a_pooler_may_hand_out_any_connection(url):
    """Every connection is thrown away after each transaction, as a pooler in transaction mode may do."""
    place = PostgresPlace(url)
    store = place.open("pooled")
    with psycopg.connect(url, autocommit=True) as db:
        store.create("buffers/s", b"0\n")
        held = store.hold("buffers/s", 60)
        for n in range(1, 4):
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
            held.append(b"%d\n" % n)
    assert list(store.lines("buffers/s")[0]) == [b"%d\n" % n for n in range(4)]
    place.close()


def test_a_pgbouncer_in_transaction_mode_with_two_connections_serves_eight_writers(url, tmp_path):
    with tempfile.TemporaryDirectory(prefix="octavo-pgbouncer-") as folder:
        Path(folder).chmod(0o755)
        with (
            servers.pgbouncer(Path(folder) / "own", url, connections=2) as pooled,
            ThreadPoolExecutor(8) as threads,
        ):
            place = PostgresPlace(pooled)

            def write(number: int) -> list[str]:
                with octavo.open(place, f"ผู้ใช้ {number % 3}", cache=tmp_path, embedder=False) as account:
                    for n in range(4):
                        with account.sandbox() as sandbox:
                            sandbox.turn("user", f"กระถาง {number}.{n}")
                            sandbox.turn("assistant", f"pot {number}.{n}")
                return [f"กระถาง {number}.{n}" for n in range(4)]

            said = list(threads.map(write, range(8)))
            with psycopg.connect(url, autocommit=True) as db:
                known = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
                assert db.execute(known).fetchone()[0] <= 2 + 1 + 16  # the tests' own place may hold 16
            for number in range(3):
                with octavo.open(place, f"ผู้ใช้ {number}", cache=tmp_path / "new", embedder=False) as account:
                    there = {
                        turn.text for memory in account.memories(kind="episode") for turn in memory.turns
                    }
                    assert {text for one in said[number::3] for text in one} <= there
                    assert account.check()
            place.close()


@pytest.mark.parametrize(("more", "milliseconds"), [("", 15_000), ("&tcp_user_timeout=3000", 3_000)])
def test_a_server_that_falls_silent_is_given_up_in_seconds_and_the_url_may_say_in_how_many(
    url, more, milliseconds
):
    place = PostgresPlace(url + more)
    place.open("เงียบ")
    with place._pool.connection() as db, socket.socket(fileno=os.dup(db.fileno())) as connection:
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == milliseconds
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 10
    place.close()


def test_tls_is_asked_for_in_the_url_and_a_certificate_that_nobody_vouches_for_is_refused(url, tmp_path):
    with psycopg.connect(url) as db:
        certificate = db.execute("SELECT pg_read_file(current_setting('ssl_cert_file'))").fetchone()[0]
    (tmp_path / "root.crt").write_text(certificate)
    safe = url.replace("sslmode=disable", f"sslmode=verify-full&sslrootcert={tmp_path / 'root.crt'}")
    place = PostgresPlace(safe)
    assert place.open("ปลอดภัย").create("account.json", b"{}")
    with place._pool.connection() as db:
        assert db.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone() == (True,)
    place.close()
    (tmp_path / "root.crt").write_text(other_certificate(tmp_path))
    with pytest.raises(Unavailable, match="certificate") as said:
        PostgresPlace(safe, patience=Patience(attempts=1)).open("ปลอดภัย")
    assert "s3cret" not in str(said.value)


def other_certificate(folder: Path) -> str:
    with tempfile.TemporaryDirectory(prefix="octavo-tls-") as made:
        servers.make_own(Path(made))
        return servers.make_certificate(Path(made))[0].read_text()


def test_an_account_equals_a_plain_dictionary_whatever_happens(url, monkeypatch):
    monkeypatch.setattr(buffers, "LEASE_SECONDS", 0.0)  # of who died; the living are never followed here
    run_machine(8, place_at(url).open)


def test_a_pool_full_of_connections_that_the_server_ended_is_filled_anew(url):
    place = PostgresPlace(url)
    store = place.open("restarted")
    store.create("account.json", b"{}")
    with ExitStack() as stack:
        for n in range(10):  # as many at once as patience is not long enough for, one after the other
            stack.enter_context(place.open(f"restarted {n}").lock(1.0))
            place._mine.db = None  # as threads of their own would
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    assert store.read("account.json") == b"{}"
    place.close()


def test_accounts_whose_locks_could_collide_in_32_bits_do_not_wait_for_each_other(url):
    place = PostgresPlace(url)
    one, two = place.open("one"), place.open("two")
    with one.lock(1.0) as mine, ThreadPoolExecutor(1) as threads:
        assert mine
        assert threads.submit(lambda: taken(two)).result()
        assert not threads.submit(lambda: taken(place.open("one"))).result()
    place.close()


def taken(store: Store) -> bool:
    with store.lock(0.2) as is_taken:
        return is_taken
