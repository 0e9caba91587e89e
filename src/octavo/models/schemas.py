"""JSON Schemas of cores, spheres and of what a model is asked for, generated from the types."""

from __future__ import annotations

from typing import Any

import msgspec

from octavo.domain.cores import Core, Sphere
from octavo.models.drafts import CoreDraft, SphereDraft

_TYPES: dict[str, type] = {
    "core": Core,
    "sphere": Sphere,
    "core_draft": CoreDraft,
    "sphere_draft": SphereDraft,
}


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of `core`, `sphere`, `core_draft` or `sphere_draft`."""
    made = msgspec.json.schema(_TYPES[name])
    for row in made["$defs"].values():
        # In the JSON, fields that we do not know stand in the object itself, not in `extra`.
        row.get("properties", {}).pop("extra", None)
        for value in row.get("properties", {}).values():
            if isinstance(value.get("default"), dict):
                value["default"].pop("extra", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
