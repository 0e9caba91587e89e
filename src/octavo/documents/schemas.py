"""The JSON Schemas of the documents, files in each one's folder; other fields are allowed too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from octavo.errors import NotFound


def schema(name: str) -> dict[str, Any]:
    """The schema of `master_state`, `session_buffer`, `metadata`, `core` or `sphere`."""
    for path in Path(__file__).parent.glob(f"*/schemas/{name}.json"):
        return dict(json.loads(path.read_text(encoding="utf-8")))
    raise NotFound(f"there is no schema {name!r}")
