"""The reference of the REST door, made from its routes."""

from __future__ import annotations

from octavo.doors import rest, rest_seeds
from octavo.doors.operations import Operation


def reference() -> str:
    """Every path with what it does and what it takes, in Markdown."""
    resources = [f"| `{method} {path}` | {_does(rest.BY_NAME[name])} |" for method, path, name in rest.ROUTES]
    named = {name for _, _, name in rest.ROUTES}
    others = [f"| `{o.name}` | {_does(o)} |" for o in rest.REMOTE if o.name not in named]
    documents = [f"| `{method} {path}` | {o.summary} |" for method, path, o, _ in rest_seeds.PATHS]
    head = ["| | |", "|---|---|"]
    return "\n".join(
        [
            "## Resources\n",
            "Below `/accounts/{account}`; parameters as in [cli.md](cli.md), in the query",
            "of a GET or DELETE, else in a JSON body.\n",
            *head,
            *resources,
            "| `GET /events` | Stream new versions. |",
            "\n## Every operation\n",
            "`POST /accounts/{account}/operations/<name>` with a JSON body does any operation that names no",
            "file: those above, and\n",
            *head,
            *others,
            "\n## Paths of the documents\n",
            "As the documents write them; the account is the token's, or the server's own.\n",
            *head,
            *documents,
        ]
    )


def _does(operation: Operation) -> str:
    return operation.summary + (" Only a human actor may." if operation.human else "")
