"""The generated part of the pages in docs/: commands, REST, MCP tools, policy and errors, from the code."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import fields

from octavo.domain.compression import CompressionPolicy, Level
from octavo.domain.memory import KINDS
from octavo.domain.policy import KindPolicy, Policy
from octavo.doors import rest, rest_seeds
from octavo.doors.commands import COMMANDS, option_of, spelt
from octavo.doors.operations import BY_NAME, PATHS, Operation, Parameter
from octavo.doors.tools import TOOLS, Tool
from octavo.errors import OctavoError

MARK = "<!-- Below this line `make docs` writes. -->"


SENTENCES: dict[str, str] = tomllib.loads(Path(__file__).with_name("policy_keys.toml").read_text("utf-8"))


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
    documents = [f"`{address}` | {o.summary}" for address, (o, _) in rest_seeds.PATHS.items()]
    resources = [f"`{address}` | {_does(BY_NAME[name])}" for address, name in PATHS.items()]
    return "\n".join(
        [
            "## Resources\n",
            "Below `/accounts/{account}`; parameters as in [cli.md](cli.md), in the query",
            "of a GET or DELETE, else in a JSON body.\n",
            _table([*resources, "`GET /events` | Stream new versions."]),
            "\n## Every operation\n",
            "`POST /accounts/{account}/operations/<name>` with a JSON body does any operation that names no",
            "file: those above, and\n",
            _table([f"`{o.name}` | {_does(o)}" for o in rest.REMOTE if o.name not in PATHS.values()]),
            "\n## Paths of the documents\n",
            "As the documents write them; the account is the token's, or the server's own.\n",
            _table(documents),
        ]
    )


def policy() -> str:
    """Every key of the policy with its default, what it may be and what it does."""
    parts, defaults = [], Policy()
    for section, hint in get_type_hints(Policy).items():
        if section == "kinds":
            tables = ", ".join(f"`[kinds.{kind}]`" for kind in KINDS)
            parts += [f"## Kinds\n\nOne table a kind: {tables}.", _keys("kinds.*", KindPolicy, bare=True)]
            columns = [(f"`{kind}`", defaults.kinds.of(kind)) for kind in KINDS]
            names = [field.name for field in fields(KindPolicy)]
            rows = [
                " | ".join([f"`{n}`", *(_default(getattr(kind, n)) for _, kind in columns)]) for n in names
            ]
            parts.append(_table(rows, " | ".join(["key", *(kind for kind, _ in columns)])))
        else:
            parts.append(f"## `[{section}]`\n\n{_first_line(hint).replace('None', '–')}")
            parts.append(_keys(section, hint))
        if hint is CompressionPolicy:
            parts += ["### `[[compression.levels]]`", _keys("compression.levels.*", Level, bare=True)]
            names = [field.name for field in fields(Level)]
            rows = [" | ".join(_default(getattr(level, name)) for name in names) for level in hint().levels]
            parts.append(_table(rows, " | ".join(f"`{name}`" for name in names)))
    return "\n\n".join(parts)


def _keys(path: str, kind: Any, *, bare: bool = False) -> str:
    hints, made = get_type_hints(kind), None if bare else kind()
    rows = []
    for name, hint in hints.items():
        default = "" if made is None else f" {_default(getattr(made, name))} |"
        rows.append(f"`{name}` |{default} {_form(hint)} | {SENTENCES[f'{path}.{name}']}")
    return _table(rows, "key | may be | does" if bare else "key | default | may be | does")


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
    listed = tool.listed
    hints, schema = listed["annotations"], listed["inputSchema"]
    does = "ends memories" if hints["destructiveHint"] else "reads only" if hints["readOnlyHint"] else "adds"
    marks = [does, *(["may be repeated"] if hints["idempotentHint"] else [])]
    rows = [_taken(name, part, name in schema["required"]) for name, part in schema["properties"].items()]
    table = _table(rows, " | | ") if rows else "It takes nothing."
    return "\n\n".join([f"### `{tool.name}`", f"{listed['description']} *({', '.join(marks)})*", table])


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


def _is_record(value: Any) -> bool:
    return isinstance(value, Struct) or (isinstance(value, type) and issubclass(value, Struct))


def _default(value: Any) -> str:
    """A value as TOML would say it; what has no value in TOML is written `–`."""
    match value:
        case None:
            return "–"
        case bool():
            return f"`{str(value).lower()}`"
        case tuple() if value and _is_record(value[0]):
            return "see below"
        case tuple():
            return "<br>".join(f"`{json.dumps(item)}`" for item in value)
        case dict():
            return f"`{{ {', '.join(f'{key} = {json.dumps(one)}' for key, one in value.items())} }}`"
        case _:
            return f"`{json.dumps(value)}`"


def _form(hint: Any) -> str:
    """What a key may be, in words."""
    options = get_args(hint)
    if hint is bool:
        return "true or false"
    if type(None) in options:
        return _form(next(option for option in options if option is not type(None)))
    if options and get_origin(hint) is tuple:
        return "tables" if _is_record(options[0]) else "a list of texts"
    if options and get_origin(hint) is dict:
        return "a table of numbers"
    if options:
        return ", ".join(f"`{option}`" for option in options)
    return {int: "a whole number", float: "a number", str: "a text"}[hint]


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": commands,
    "errors.md": errors,
    "mcp.md": tools,
    "policy.md": policy,
    "rest.md": paths,
}


if __name__ == "__main__":
    write(Path(sys.argv[1]))
