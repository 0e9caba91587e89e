"""The store in a real object store passes the shipped suite, and keeps what only it must keep."""

from __future__ import annotations

import hashlib
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

import octavo
import servers
from networks import NetworkSuite
from octavo.domain.ports import Store
from octavo.errors import StoreUnfit
from octavo.storage import buffers
from octavo.storage.stores.objects import ObjectsPlace, ObjectStore
from octavo.storage.stores.retrying import Patience
from octavo.testing import StoreSuite
from places import PlaceSuite
from proxies import Proxy
from test_state_machine import run_machine


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory(prefix="octavo-seaweed-") as folder,
        servers.seaweed(Path(folder)) as url,
    ):
        yield url


@cache
def place_at(url: str) -> ObjectsPlace:
    return ObjectsPlace(url)


class TestObjectStore(StoreSuite):
    between_processes = True
    lease_seconds = 1.0
    rounds = 3  # this server makes writers of one key wait for each other

    @pytest.fixture(autouse=True)
    def _the_server(self, url: str) -> None:
        self.url = url

    def open_store(self, place: Path) -> Store:
        return place_at(self.url).open(hashlib.sha256(str(place).encode()).hexdigest())


class TestAccounts(PlaceSuite):
    @pytest.fixture
    def root(self, url: str) -> str:
        return url


def test_an_account_equals_a_plain_dictionary_whatever_happens(url, monkeypatch):
    monkeypatch.setattr(buffers, "LEASE_SECONDS", 0.0)  # of who died; the living are never followed here
    monkeypatch.setattr(ObjectStore, "tick", 0.0)
    run_machine(5, place_at(url).open)


class Lying(BaseHTTPRequestHandler):
    """A look-alike of S3 that takes every object, whatever the condition says."""

    objects: ClassVar[dict[str, bytes]] = {}

    def do_PUT(self) -> None:
        self.objects[self.path] = self.rfile.read(int(self.headers["content-length"]))
        self.answer(b"")

    def do_GET(self) -> None:
        self.answer(self.objects.get(self.path))

    def do_POST(self) -> None:
        keys = re.findall(rb"<Key>.*?</Key>", self.rfile.read(int(self.headers["content-length"])))
        gone = b"".join(b"<Deleted>%s</Deleted>" % key for key in keys)
        self.answer(b"<DeleteResult>%s</DeleteResult>" % gone)

    def answer(self, data: bytes | None) -> None:
        self.send_response(404 if data is None else 200)
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Mon, 05 Jan 2026 09:00:00 GMT")
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, *_: object) -> None:
        pass


def test_an_object_store_that_overwrites_is_refused_when_it_is_opened(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret-key")
    with ThreadingHTTPServer(("127.0.0.1", 0), Lying) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"s3://octavo/lies?endpoint=http://127.0.0.1:{server.server_port}&region=us-east-1"
        with pytest.raises(StoreUnfit, match="overwrites"):
            octavo.open(url, cache=tmp_path)
        server.shutdown()
    assert not [path for path in Lying.objects if "account" in path]


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
    def connect(self, url: str, proxy: Proxy) -> Iterator[Callable[..., ObjectsPlace]]:
        behind = url.replace(str(self.port), str(proxy.port))
        places = []

        def open_(patience: Patience | None = None) -> ObjectsPlace:
            places.append(ObjectsPlace(behind, patience=patience))
            return places[-1]

        yield open_
        for place in places:
            place.close()
