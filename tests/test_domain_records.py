"""Record types are taken apart by one thread: msgspec brings the process down where two do it at once."""

from __future__ import annotations

import subprocess
import sys

MANY = """
import sys, threading, types
import msgspec
from octavo.domain.records import shape_of

sys.setswitchinterval(1e-6)
lines = ["from __future__ import annotations", "from msgspec import Struct"]
for n in range(400):
    lines += [f"class Inner{n}(Struct, frozen=True):", "    version: int = 0", "    header: str = str()"]
    lines += [f"class Outer{n}(Struct, frozen=True):", f"    mark: Inner{n} = Inner{n}()"]
    lines += ["    rows: int = 0", "    counts: dict[str, float] = {}", "    names: list[str] = []"]
made = types.ModuleType("made")
sys.modules["made"] = made
exec("\\n".join(lines), made.__dict__)
told = {"rows": 1, "mark": {"version": 1, "header": "x"}, "counts": {"a": 1.0}, "names": ["b"]}
for n in range(400):
    kind, start = getattr(made, f"Outer{n}"), threading.Barrier(3)
    def read():
        start.wait()
        msgspec.convert(told, shape_of(kind))
    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("alive")
"""


def test_threads_that_first_read_a_record_at_the_same_moment_all_live():
    done = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "alive"), done.stderr[-2000:]
