"""The reference of the command line, made from the table of operations."""

from __future__ import annotations

from octavo.interfaces.cli_line import option_of, spelt
from octavo.interfaces.operation import Operation
from octavo.interfaces.operations import OPERATIONS
from octavo.interfaces.parameters import Parameter


def reference() -> str:
    """Every command with its arguments, options and example, in Markdown."""
    sections: dict[str, list[Operation]] = {}
    for operation in OPERATIONS:
        sections.setdefault(operation.section, []).append(operation)
    parts = []
    for section, operations in sections.items():
        parts.append(f"## {section.capitalize()}\n")
        parts += [_command(operation) for operation in operations]
    return "\n".join(parts)


def _command(operation: Operation) -> str:
    arguments = [_argument(p) for p in operation.parameters if p.positional]
    usage = " ".join([f"octavo {spelt(operation)}", *arguments])
    rows = [f"| {_spelling(p)} | {_summary(p)} |" for p in operation.parameters]
    if operation.asks:
        rows.append("| `--yes` | Do not ask. |")
    table = "\n".join(["| | |", "|---|---|", *rows]) if rows else ""
    humans = " Only a human actor may." if operation.who == "human" else ""
    example = f"```sh\n{operation.example}\n```\n"
    return "\n\n".join(
        part for part in (f"### `{usage}`", f"{operation.summary}{humans}", table, example) if part
    )


def _argument(parameter: Parameter) -> str:
    name = parameter.name.upper() + ("…" if parameter.form == "texts" else "")
    return name if parameter.required else f"[{name}]"


def _spelling(parameter: Parameter) -> str:
    return f"`{parameter.name.upper()}`" if parameter.positional else f"`{option_of(parameter)}`"


def _summary(parameter: Parameter) -> str:
    choices = f" One of {', '.join(f'`{c}`' for c in parameter.choices)}." if parameter.choices else ""
    default = f" Default: `{parameter.default}`." if parameter.default is not None else ""
    return f"{parameter.summary}{choices}{default}"
