"""Three PostgreSQL nodes under Patroni, the leader killed under load: what was acknowledged, and lost.

Patroni keeps one standby that has every commit before it is acknowledged (`synchronous_mode`), and makes it
the leader when the lease of the killed one has run out; clients find it by the list of hosts in their URL.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import octavo
from bench import harness
from octavo.domain.compression import CompressionPolicy
from octavo.errors import Unavailable

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import servers  # the tests' own

BY_HAND = octavo.Policy(compression=CompressionPolicy(mode="manual"))
_WRITERS = 4
_SECRET = "bench"  # of a server on loopback that ends with the run


class Supervised:
    """Three PostgreSQL nodes under Patroni, which asks one etcd who leads; Debian's packages of both."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.ports = {name: servers.free_port() for name in ("one", "two", "three")}
        self._rest = {name: servers.free_port() for name in self.ports}
        self._etcd = servers.free_port()

    def start(self) -> None:
        """Start etcd and the nodes, and wait for a leader that two others follow."""
        etcd, peers = f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{servers.free_port()}"
        own = ["--listen-client-urls", etcd, "--advertise-client-urls", etcd, "--listen-peer-urls", peers]
        own += ["--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"]
        self._run("etcd", ["etcd", "--data-dir", self._folder / "etcd" / "data", *own])
        for name in self.ports:
            servers.make_own(self._folder / name)
            config = self._folder / name / "patroni.json"
            config.write_text(json.dumps(self._config(name)))
            self._run(name, ["patroni", config])
        self.wait_for(lambda: len(self.members("running", "streaming")) == 3 and bool(self.synchronous()))

    def _run(self, name: str, command: list[object]) -> None:
        servers.make_own(self._folder / name)
        with (self._folder / name / "log").open("wb") as log:
            self._running[name] = subprocess.Popen(
                [*servers.unprivileged(), *map(str, command)],
                stdout=log, stderr=log, cwd=self._folder / name, start_new_session=True,
            )  # fmt: skip

    def _config(self, name: str) -> dict[str, object]:
        here, rest = f"127.0.0.1:{self.ports[name]}", f"127.0.0.1:{self._rest[name]}"
        common = {"synchronous_commit": "on", "fsync": "on", "max_connections": 100}
        return {
            "scope": "octavo",
            "name": name,
            "restapi": {"listen": rest, "connect_address": rest},
            "etcd3": {"host": f"127.0.0.1:{self._etcd}"},
            "bootstrap": {
                "dcs": {
                    "ttl": 20, "loop_wait": 2, "retry_timeout": 5, "synchronous_mode": True,
                    "postgresql": {"use_pg_rewind": False, "parameters": common},
                },
                "initdb": [{"encoding": "UTF8"}, {"auth": "scram-sha-256"}],
            },
            "postgresql": {
                "listen": here,
                "connect_address": here,
                "pgpass": str(self._folder / name / "pgpass"),
                "data_dir": str(self._folder / name / "data"),
                "bin_dir": str(servers.postgres_programs()),
                "authentication": {
                    "superuser": {"username": "octavo", "password": _SECRET},
                    "replication": {"username": "follower", "password": _SECRET},
                },
                "parameters": {"unix_socket_directories": ""},
                "pg_hba": [f"host {what} all 127.0.0.1/32 scram-sha-256" for what in ("all", "replication")],
            },
        }  # fmt: skip

    def _cluster(self) -> list[dict[str, str]]:
        for port in self._rest.values():
            address = f"http://127.0.0.1:{port}/cluster"
            with suppress(OSError), urllib.request.urlopen(address, timeout=2) as reply:
                return list(json.load(reply)["members"])
        return []

    def members(self, *states: str) -> list[str]:
        """The nodes that are in one of these states."""
        return [member["name"] for member in self._cluster() if member["state"] in states]

    def synchronous(self) -> list[str]:
        """The nodes that have every commit before it is acknowledged."""
        return [member["name"] for member in self._cluster() if member["role"] == "sync_standby"]

    def leader(self) -> str | None:
        """The node that leads, None between two."""
        return next((member["name"] for member in self._cluster() if member["role"] == "leader"), None)

    def wait_for(self, is_so: Callable[[], bool], seconds: float = 180) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > deadline:
                logs = [path.read_text()[-1500:] for path in self._folder.glob("*/log")]
                raise RuntimeError("the cluster does not come up:\n" + "\n".join(logs))
            time.sleep(0.3)

    def kill(self, name: str) -> None:
        """End a node's supervisor and all its database's processes at once, as a lost machine does."""
        file = self._folder / name / "data" / "postmaster.pid"
        database = int(file.read_text().split()[0]) if file.exists() else None
        _end_group(self._running.pop(name))
        if database is not None:
            with suppress(ProcessLookupError):
                os.kill(database, signal.SIGKILL)  # those it started end with it

    def end(self) -> None:
        """End everything there is."""
        for name in list(self._running):
            if name != "etcd":
                self.kill(name)
        for process in self._running.values():
            _end_group(process)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


class Writers:
    """Threads that commit to one account each, and note what was acknowledged and when."""

    def __init__(self, url: str, cache: Path) -> None:
        self.acknowledged: list[tuple[float, int, str]] = []
        self.refused = 0
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(url, cache, number)) for number in range(_WRITERS)
        ]
        for thread in self._threads:
            thread.start()

    def _write(self, url: str, cache: Path, number: int) -> None:
        with opened(url, number, cache) as account:
            n = 0
            while not self._stop.is_set():
                text, n = f"writer {number} says {n}", n + 1
                try:
                    account.remember(text, kind="register", topic=f"line {n}")
                except Unavailable:
                    self.refused += 1
                    continue
                self.acknowledged.append((time.monotonic(), number, text))

    def end(self) -> float:
        """Stop them; the longest time in which nothing was acknowledged."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        times = sorted(moment for moment, _, _ in self.acknowledged)
        return max(later - earlier for earlier, later in pairwise(times))


def opened(url: str, number: int, cache: Path) -> octavo.Account:
    """A writer's own account."""
    return octavo.open(
        url, f"writer {number}", actor="human:bench", policy=BY_HAND, embedder=False, cache=cache
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Write, kill the leader, promote, write on, and count."""
    bench = harness.begin("failover", "A leader killed under load", argv)
    seconds = bench.pick(10, 2)
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # it says of every connection that it broke
    with tempfile.TemporaryDirectory(prefix="octavo-failover-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        cluster = Supervised(folder)
        try:
            cluster.start()
            hosts = ",".join(f"127.0.0.1:{port}" for port in cluster.ports.values())
            url = f"postgresql://octavo:{_SECRET}@{hosts}/postgres?target_session_attrs=read-write"
            writers = Writers(url, folder / "cache")
            time.sleep(seconds)
            doomed = cluster.leader()
            assert doomed is not None
            cluster.kill(doomed)
            before = len(writers.acknowledged)
            cluster.wait_for(lambda: cluster.leader() not in (None, doomed))
            time.sleep(seconds)
            pause = writers.end()
            missing = problems = 0
            for number in range(_WRITERS):
                with opened(url, number, folder / "another machine") as account:
                    there = {memory.text for memory in account.memories()}
                    missing += sum(
                        1 for _, who, text in writers.acknowledged if who == number and text not in there
                    )
                    problems += len(account.check().problems)
        finally:
            cluster.end()
    bench.figure("commits acknowledged", len(writers.acknowledged), "")
    bench.figure("of these after the leader was killed", len(writers.acknowledged) - before, "")
    bench.figure("acknowledged and lost", missing, "", at_most=0)
    bench.figure("problems found by check", problems, "", at_most=0)
    bench.figure("calls that ended as Unavailable", writers.refused, "")
    bench.figure("longest time without a commit", pause, "s")
    bench.note("Patroni with a ttl of 20 s, the shortest it takes, and synchronous_mode; one etcd.")
    bench.finish()


if __name__ == "__main__":
    main()
