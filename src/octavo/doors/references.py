"""The generated part of the pages in docs/: commands, REST, MCP tools, policy and errors, from the code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from octavo.doors import cli_reference, error_reference, mcp_reference, policy_reference, rest_reference

MARK = "<!-- Below this line `make docs` writes. -->"

PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_reference.reference,
    "errors.md": error_reference.reference,
    "mcp.md": mcp_reference.reference,
    "policy.md": policy_reference.reference,
    "rest.md": rest_reference.reference,
}


def write(folder: Path) -> None:
    """Write every reference anew below its page's mark; what stands above it is kept."""
    for name, made in PAGES.items():
        page = folder / name
        kept, _, _ = page.read_text().partition(MARK)
        page.write_text(f"{kept}{MARK}\n\n{made().strip()}\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
