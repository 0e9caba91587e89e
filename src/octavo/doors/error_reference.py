"""The reference of errors, made from the one tree of them."""

from __future__ import annotations

from collections.abc import Iterator

from octavo.errors import OctavoError


def reference() -> str:
    """Every error with its exit code, its HTTP status, what it means and what to do, in Markdown."""
    rows = [
        f"| {'&emsp;' * depth}`{kind.__name__}` | {kind.exit_code} | {kind.http_status} | {_summary(kind)} |"
        f" {kind.hint} |"
        for depth, kind in tree()
    ]
    head = ["| error | exit | HTTP | means | what to do |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows])


def tree(kind: type[OctavoError] = OctavoError, depth: int = 0) -> Iterator[tuple[int, type[OctavoError]]]:
    """The errors in the order of the tree, each with its depth."""
    yield depth, kind
    for below in kind.__subclasses__():
        if below.__module__ == OctavoError.__module__:
            yield from tree(below, depth + 1)


def _summary(kind: type[OctavoError]) -> str:
    return (kind.__doc__ or "").partition("\n")[0]
