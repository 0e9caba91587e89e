"""The generated part of the pages in docs/: commands, REST, MCP tools, policy and errors, from the code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from octavo.doors import policy_reference, rest, rest_seeds
from octavo.doors.commands import COMMANDS, option_of, spelt
from octavo.doors.operations import Operation, Parameter
from octavo.doors.tools import TOOLS, Tool
from octavo.errors import OctavoError

MARK = "<!-- Below this line `make docs` writes. -->"


def write(folder: Path) -> None:
    """Write every reference anew below its page's mark; what stands above it is kept."""
    for name, made in PAGES.items():
        page = folder / name
        kept, _, _ = page.read_text().partition(MARK)
        page.write_text(f"{kept}{MARK}\n\n{made().strip()}\n")


def commands() -> str:
    """Every command with its arguments, options and example."""
    parts, section = [], ""
    for operation in COMMANDS:
        if operation.section != section:
            section = operation.section
            parts.append(f"## {section.capitalize()}\n")
        parts.append(_command(operation))
    return "\n".join(parts)


def errors() -> str:
    """Every error with its exit code, its HTTP status, what it means and what to do."""
    rows = [
        f"{'&emsp;' * depth}`{kind.__name__}` | {kind.exit_code} | {kind.http_status} | {_first_line(kind)} |"
        f" {kind.hint}"
        for depth, kind in tree()
    ]
    return _table(rows, "error | exit | HTTP | means | what to do")


def tools() -> str:
    """Every tool of the MCP door with its parameters and annotations."""
    return "\n\n".join(["## Tools", *map(_tool, TOOLS)])


def paths() -> str:
    """Every path of the REST door with what it does and what it takes."""
    named = {name for _, _, name in rest.ROUTES}
    structures = [
        f"`{method} {path}` | {rest.BY_NAME[name].summary}"
        for method, path, name in rest_seeds.STRUCTURES
        if name in rest.BY_NAME
    ]
    documents = [f"`{method} {path}` | {_first_line(act)}" for method, path, act in rest_seeds.PATHS]
    resources = [f"`{method} {path}` | {_does(rest.BY_NAME[name])}" for method, path, name in rest.ROUTES]
    return "\n".join(
        [
            "## Resources\n",
            "Below `/accounts/{account}`; parameters as in [cli.md](cli.md), in the query",
            "of a GET or DELETE, else in a JSON body.\n",
            _table([*resources, "`GET /events` | Stream new versions."]),
            "\n## Every operation\n",
            "`POST /accounts/{account}/operations/<name>` with a JSON body does any operation that names no",
            "file: those above, and\n",
            _table([f"`{o.name}` | {_does(o)}" for o in rest.REMOTE if o.name not in named]),
            "\n## Paths of the documents\n",
            "As the documents write them; the account is the token's, or the server's own.\n",
            _table([*structures, *documents]),
        ]
    )


def tree(kind: type[OctavoError] = OctavoError, depth: int = 0) -> Iterator[tuple[int, type[OctavoError]]]:
    """The errors in the order of the tree, each with its depth."""
    yield depth, kind
    for below in kind.__subclasses__():
        if below.__module__ == OctavoError.__module__:
            yield from tree(below, depth + 1)


def _command(operation: Operation) -> str:
    arguments = [_argument(p) for p in operation.parameters if p.is_positional]
    usage = " ".join([f"octavo {spelt(operation)}", *arguments])
    rows = [f"{_spelling(p)} | {p.summary}{_bounds(p.choices, p.default)}" for p in operation.parameters]
    rows += ["`--yes`, `-y` | Do not ask."] if operation.asks else []
    local = " It takes files of this machine." if operation.local else ""
    table, example = _table(rows) if rows else "", f"```sh\n{operation.example}\n```\n"
    return "\n\n".join(filter(None, (f"### `{usage}`", f"{_does(operation)}{local}", table, example)))


def _argument(parameter: Parameter) -> str:
    name = parameter.name.upper() + ("…" if parameter.is_many else "")
    return name if parameter.is_required else f"[{name}]"


def _spelling(parameter: Parameter) -> str:
    if parameter.is_positional:
        return f"`{parameter.name.upper()}`"
    return f"`{option_of(parameter)}`" + (f", `{parameter.short}`" if parameter.short else "")


def _tool(tool: Tool) -> str:
    marks = ["reads only"] if tool.is_read else ["ends memories"] if tool.ends else ["adds"]
    marks += ["may be repeated"] if tool.is_read or tool.repeats else []
    rows = [
        _taken(name, part, name in tool.schema["required"])
        for name, part in tool.schema["properties"].items()
    ]
    table = _table(rows, " | | ") if rows else "It takes nothing."
    return "\n\n".join([f"### `{tool.name}`", f"{tool.description} *({', '.join(marks)})*", table])


def _taken(name: str, part: dict[str, Any], is_required: bool) -> str:
    one = part.get("items", part)
    type_ = f"list of {one['type']}s" if part["type"] == "array" else one["type"]
    told = _bounds(one.get("enum", ()), part.get("default"))
    most = f" At most {one['maximum']:g}." if "maximum" in one else ""
    return f"`{name}` | {type_}{', required' if is_required else ''} | {part['description']}{told}{most}"


def _bounds(choices: Iterable[str], default: Any) -> str:
    listed = ", ".join(f"`{choice}`" for choice in choices)
    one_of = f" One of {listed}." if listed else ""
    return one_of + (f" Default: `{default}`." if default not in (None, "", False, 0.0) else "")


def _table(rows: Iterable[str], head: str = " | ") -> str:
    """Rows of cells below a head; its cells may be empty."""
    under = "|".join("---" for _ in head.split("|"))
    return "\n".join(
        [f"| {head} |" if head.strip(" |") else f"|{head}|", f"|{under}|", *(f"| {r} |" for r in rows)]
    )


def _does(operation: Operation) -> str:
    return operation.summary + (" Only a human actor may." if operation.human else "")


def _first_line(documented: Any) -> str:
    return (documented.__doc__ or "").partition("\n")[0]


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": commands,
    "errors.md": errors,
    "mcp.md": tools,
    "policy.md": policy_reference.reference,
    "rest.md": paths,
}


if __name__ == "__main__":
    write(Path(sys.argv[1]))
