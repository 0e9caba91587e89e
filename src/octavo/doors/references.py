"""The generated part of the pages in docs/: commands, REST, MCP tools, policy and errors, from the code."""

from __future__ import annotations

import json
import sys
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
from octavo.doors.operations import Operation, Parameter
from octavo.doors.tools import TOOLS, Tool
from octavo.errors import OctavoError

MARK = "<!-- Below this line `make docs` writes. -->"


# What each key does. A row of `kinds` and of `compression.levels` is described once, under `*`.
SENTENCES = {
    "kinds.*.rule": "By which rule it becomes part of the next version; leave it as it is.",
    "kinds.*.decay": "By which factor a day recall lets it weaken; 1.0 does not weaken it.",
    "kinds.*.max_length": "How many characters its text may have.",
    "kinds.*.capacity": "How many live memories of the kind an account may have.",
    "kinds.*.min_confidence": "It must be surer than this to be kept.",
    "kinds.*.noise": "Whether the gate keeps journal noise out.",
    "kinds.*.secrets": "What happens to secrets and personal data in it.",
    "kinds.*.duplicates": "Whether a restatement merges into the memory it restates.",
    "sandbox.max_episodes": "How many episodes a sandbox may hold; seed 000 says 30.",
    "sandbox.write_levels": "Whether seed 000's write levels decide which episodes are kept.",
    "canon.pass_confidence": "From which confidence an agent may write canon that clashes with nothing.",
    "gate.token_overlap": "From which share of common words two texts look alike.",
    "gate.sequence_ratio": "From which share of common sequences two texts look alike.",
    "gate.signals": "Words that make a text noise when hardly anything else is said.",
    "gate.refusals_kept": "How many refusals are kept to be looked at.",
    "privacy.phone": "What happens to phone numbers.",
    "privacy.email": "What happens to e-mail addresses.",
    "review.expire_days": "After how many days without an answer a proposal lapses.",
    "review.stale_days": "After how many days without a write a register is worth asking about.",
    "compression.levels": "The table of levels; it stays as it is once the first core is made.",
    "compression.levels.*.kind": "The kind of what is made.",
    "compression.levels.*.name": "What its ids begin with.",
    "compression.levels.*.letters": "What it is called in seed 001's names of sessions.",
    "compression.levels.*.radix": "How many sessions, or members of the level below, fold into one.",
    "compression.levels.*.summary_length": "How many characters its summary may have.",
    "compression.digest_length": "How many characters a core says about one session.",
    "compression.milestone_salience": "Above which salience an episode stays whole.",
    "compression.routine_salience": "From which average salience a session's originals are never retired.",
    "compression.mode": "When cores and spheres are made: beside the conversation, at once, or when asked.",
    "compression.retire": "Whether routine originals go to the archive once their core is verified.",
    "compression.attempts": "How often failed background work is tried again before it is reported.",
    "commit.attempts": "How often a commit tries again when others are first.",
    "commit.wait_seconds": "How long a commit waits in line before it goes on without the lock.",
    "assemblies.mode": "When memories are grouped: beside a conversation, at once, when asked, or never.",
    "assemblies.likeness": "From which mean cosine with its members a memory joins an assembly.",
    "assemblies.max_per_memory": "How many assemblies a memory joins by itself.",
    "assemblies.max_members": "How many members an assembly may have.",
    "assemblies.max_assemblies": "At how many assemblies no more are begun; `check` says so.",
    "assemblies.merging": "Whether assemblies that are alike become one, by themselves or by a proposal.",
    "assemblies.merge_likeness": "From which cosine two assemblies become one.",
    "assemblies.merges_per_pass": "How many pairs become one at a time.",
    "assemblies.activation": "From which cosine with the question an assembly lifts its members.",
    "assemblies.boost": "How much an assembly that fits wholly adds to a member's score; 0 adds nothing.",
    "assemblies.boost_mode": "How the lift follows from the cosine.",
    "assemblies.explain": "Whether activations, merges and lineages are explained to whoever asks.",
    "emotion.gate": "Whether a recall with a mood leaves out memories that would weigh on it.",
    "index.max_allowed_drift_seconds": "For how long vectors count as fresh after they were last verified.",
    "index.rerank": "Whether recall takes a second look at the best hits, where the extra is installed.",
    "retention.mode": "Whether upkeep moves episodes past their limits to the archive.",
    "retention.conversation_days": "How old a conversation may get that a core holds.",
    "retention.conversation_files": "How many conversations stay.",
    "retention.event_days": "How old an event may get.",
    "retention.event_megabytes": "How much events may take.",
    "retention.run_days": "How old a robot's run may get.",
    "retention.run_files": "How many runs stay.",
    "retention.versions_shown": "How many versions of a knowledge page are listed; the ledger keeps all.",
    "patterns.days": "How far back patterns are looked for.",
    "patterns.min_count": "How often a sequence must be seen to become knowledge.",
    "patterns.min_sources": "In how many episodes it must be seen.",
    "patterns.min_denials": "How often a denial must be seen.",
    "patterns.min_outcomes": "How often an outcome must be seen.",
    "patterns.consistency": "Which share of outcomes must agree.",
    "patterns.denial_confidence": "How sure a denial is that was seen so often.",
    "patterns.stable_days": "After how many days unchanged knowledge is proposed as procedure.",
    "patterns.min_uses": "How often it must have been used until then.",
    "mirror.mode": "Whether a mirror follows every commit, or only `octavo mirror`, `sync` and `upkeep`.",
}


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
    documents = [f"`{method} {path}` | {o.summary}" for method, path, o, _ in rest_seeds.PATHS]
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


def policy_keys(kind: Any = Policy, path: str = "") -> Iterator[str]:
    """Every key of the policy, dotted; a row of a table is written `*`."""
    hints = get_type_hints(kind)
    for name, hint in hints.items():
        row = next((item for item in get_args(hint) if _is_record(item)), None)
        if hint is KindPolicy:
            continue
        if _is_record(hint):
            yield from policy_keys(hint, f"{path}{name}.")
        else:
            yield f"{path}{name}"
            yield from () if row is None else policy_keys(row, f"{path}{name}.*.")
    if KindPolicy in hints.values():
        yield from policy_keys(KindPolicy, f"{path}*.")


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
