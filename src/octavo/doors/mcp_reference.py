"""The reference of the MCP door, made from its tools."""

from __future__ import annotations

from typing import Any

from octavo.doors.tools import TOOLS, Tool


def reference() -> str:
    """Every tool with its parameters and annotations, in Markdown."""
    return "\n\n".join(["## Tools", *(_told(tool) for tool in TOOLS)])


def _told(tool: Tool) -> str:
    marks = ["reads only"] if tool.is_read else ["ends memories"] if tool.ends else ["adds"]
    marks += ["may be repeated"] if tool.is_read or tool.repeats else []
    required = tool.schema["required"]
    rows = [_row(name, part, name in required) for name, part in tool.schema["properties"].items()]
    table = "\n".join(["| | | |", "|---|---|---|", *rows]) if rows else "It takes nothing."
    return "\n\n".join([f"### `{tool.name}`", f"{tool.description} *({', '.join(marks)})*", table])


def _row(name: str, part: dict[str, Any], is_required: bool) -> str:
    one = part.get("items", part)
    type_ = f"list of {one['type']}s" if part["type"] == "array" else one["type"]
    choices = f" One of {', '.join(f'`{c}`' for c in one['enum'])}." if "enum" in one else ""
    default = f" Default: `{part['default']}`." if "default" in part else ""
    most = f" At most {one['maximum']:g}." if "maximum" in one else ""
    need = ", required" if is_required else ""
    return f"| `{name}` | {type_}{need} | {part['description']}{choices}{default}{most} |"
