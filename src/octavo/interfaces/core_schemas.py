"""The JSON Schemas of seed 001's cores and spheres, shipped beside those of the other documents.

`python -m octavo.interfaces.core_schemas` writes them anew; a test keeps the files and the types equal.
"""

from __future__ import annotations

import json
from pathlib import Path

from octavo.models.schemas import schema

FOLDER = Path(__file__).parent / "schemas"
NAMES = ("core", "sphere")


def text(name: str) -> str:
    """A schema as its file has it."""
    return json.dumps({"$id": f"octavo:{name}", **schema(name)}, ensure_ascii=False, indent=2) + "\n"


def write(folder: Path = FOLDER) -> None:
    """Write both schemas into a folder."""
    for name in NAMES:
        (folder / f"{name}.json").write_text(text(name), encoding="utf-8")


if __name__ == "__main__":
    write()
