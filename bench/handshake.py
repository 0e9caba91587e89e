"""How long an MCP client waits for `octavo mcp`: processor and wall time until the handshake is answered."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}


def handshake(root: str) -> tuple[float, float]:
    """Start a server, wait for its answer and end it: (processor seconds of its whole life, wall seconds)."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "octavo", "--root", root, "mcp"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        assert b"serverInfo" in process.stdout.readline()
        wall = time.perf_counter() - began
        process.stdin.close()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        handshake(root)  # the first one writes byte code
        runs = [handshake(root) for _ in range(5)]
    cpu, wall = (sorted(column)[2] for column in zip(*runs, strict=True))
    print(f"median of 5: {cpu:.2f} s processor, {wall:.2f} s wall")
