"""Packages of npm that tests talk to: installed once into build/npm, or a clear word why not."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "build" / "npm"


def installed(package: str, version: str) -> Path:
    """The folder of node_modules that holds a package, which is installed first if it is not there."""
    if shutil.which("npm") is None:
        pytest.skip(f"npm is not installed: nothing was shown with {package}")
    modules = FOLDER / "node_modules"
    if not (modules / package / "package.json").exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", "--silent", f"{package}@{version}"]
        subprocess.run(command, cwd=FOLDER, check=True, timeout=300)
    return modules


def node22() -> str:
    """A Node of version 22, which the inspector and the conformance suite need."""
    return str(installed("node", "22") / "node" / "bin" / "node")
