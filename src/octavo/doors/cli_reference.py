"""The reference of the command line, made from the table of operations."""

from __future__ import annotations

from octavo.doors.commands import COMMANDS, option_of, spelt
from octavo.doors.operations import Operation, Parameter


def reference() -> str:
    """Every command with its arguments, options and example, in Markdown."""
    sections: dict[str, list[Operation]] = {}
    for operation in COMMANDS:
        sections.setdefault(operation.section, []).append(operation)
    parts = []
    for section, operations in sections.items():
        parts.append(f"## {section.capitalize()}\n")
        parts += [_command(operation) for operation in operations]
    return "\n".join(parts)


def _command(operation: Operation) -> str:
    arguments = [_argument(p) for p in operation.parameters if p.is_positional]
    usage = " ".join([f"octavo {spelt(operation)}", *arguments])
    rows = [f"| {_spelling(p)} | {_summary(p)} |" for p in operation.parameters]
    if operation.asks:
        rows.append("| `--yes`, `-y` | Do not ask. |")
    table = "\n".join(["| | |", "|---|---|", *rows]) if rows else ""
    humans = " Only a human actor may." if operation.human else ""
    local = " It takes files of this machine." if operation.local else ""
    example = f"```sh\n{operation.example}\n```\n"
    return "\n\n".join(
        part for part in (f"### `{usage}`", f"{operation.summary}{humans}{local}", table, example) if part
    )


def _argument(parameter: Parameter) -> str:
    name = parameter.name.upper() + ("…" if parameter.is_many else "")
    return name if parameter.is_required else f"[{name}]"


def _spelling(parameter: Parameter) -> str:
    if parameter.is_positional:
        return f"`{parameter.name.upper()}`"
    return f"`{option_of(parameter)}`" + (f", `{parameter.short}`" if parameter.short else "")


def _summary(parameter: Parameter) -> str:
    choices = f" One of {', '.join(f'`{c}`' for c in parameter.choices)}." if parameter.choices else ""
    default = parameter.default
    shown = f" Default: `{default}`." if default not in (None, "", False, 0.0) else ""
    return f"{parameter.summary}{choices}{shown}"
