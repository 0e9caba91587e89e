"""The REST door: a FastAPI app whose routes are read from the table of operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import asynccontextmanager
from importlib import metadata
from typing import Any

from octavo.doors import problems, rest_events, rest_own
from octavo.doors.operations import OPERATIONS, Operation
from octavo.doors.pool import Pool
from octavo.doors.rest_answers import Shape, answer_errors, condition, idempotency, shown
from octavo.doors.rest_guard import Guard, Limits, Metrics
from octavo.doors.rest_routes import ACCOUNT, add_route
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors

# The resources, each an operation; every other one that names no file answers below /operations.
ROUTES: tuple[tuple[str, str, str], ...] = (
    ("GET", "/memories", "memories"),
    ("POST", "/memories", "remember"),
    ("POST", "/memories/batch", "remember_many"),
    ("GET", "/memories/search", "recall"),
    ("POST", "/memories/search", "recall"),
    ("GET", "/memories/{id}", "get"),
    ("PATCH", "/memories/{id}", "revise"),
    ("DELETE", "/memories/{id}", "forget"),
    ("GET", "/memories/{id}/history", "history"),
    ("POST", "/memories/{id}/promote", "promote"),
    ("POST", "/memories/{id}/redact", "redact"),
    ("GET", "/versions", "versions"),
    ("POST", "/versions/{version}/restore", "restore"),
    ("POST", "/versions/{version}/revert", "revert"),
    ("GET", "/diff", "diff"),
    ("GET", "/sandboxes", "sandboxes"),
    ("POST", "/sandboxes", "sandbox"),
    ("GET", "/sandboxes/{sandbox}", "buffer"),
    ("DELETE", "/sandboxes/{sandbox}", "discard"),
    ("POST", "/sandboxes/{sandbox}/turns", "turn"),
    ("POST", "/sandboxes/{sandbox}/consolidate", "consolidate"),
    ("GET", "/proposals", "proposals"),
    ("GET", "/proposals/{id}", "proposal"),
    ("POST", "/proposals/{id}/approve", "approve"),
    ("POST", "/proposals/{id}/decline", "decline"),
    ("POST", "/proposals/{id}/reopen", "reopen"),
    ("GET", "/assemblies", "assemblies"),
    ("POST", "/assemblies", "assemble"),
    ("GET", "/assemblies/{id}", "assembly"),
    ("GET", "/assemblies/{id}/lineage", "lineage"),
    ("GET", "/health", "check"),
    ("GET", "/brief", "brief"),
    ("GET", "/stats", "stats"),
)
BY_NAME = {operation.name: operation for operation in OPERATIONS}
REMOTE = tuple(o for o in OPERATIONS if not o.local and o.subjects != (Settings,))


def app(
    pool: Pool,
    settings: Settings,
    *,
    visitors: Visitors | None = None,
    limits: Limits | None = None,
    mounts: Iterable[Callable[[Any, Pool, Visitors], None]] = (),
) -> Any:
    """The FastAPI app of a folder of accounts; each of `mounts` adds its own routes to it."""
    from fastapi import FastAPI

    visitors, limits = visitors or Visitors(settings), limits or Limits()

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        yield
        pool.close()

    made = FastAPI(
        title="Octavo",
        version=metadata.version("octavo"),
        description="Long-term memory for AI agents. Errors are RFC 9457 problems.",
        lifespan=lifespan,
        redoc_url=None,
        docs_url=None,
        responses={"default": _PROBLEM},
        separate_input_output_schemas=False,
    )
    made.state.visitors, made.state.is_ending = visitors, lambda: False
    metrics = Metrics(pool)
    answer_errors(made)
    rest_own.add(made, pool, visitors, metrics)
    for method, path, name in ROUTES:
        add_operation(made, pool, visitors, BY_NAME[name], method, ACCOUNT + path)
    for operation in REMOTE:
        add_operation(made, pool, visitors, operation, "POST", f"{ACCOUNT}/operations/{operation.name}")
    rest_events.add(made, pool, visitors, limits.streams)
    for mount in mounts:
        mount(made, pool, visitors)
    made.add_middleware(Guard, visitors=visitors, limits=limits, metrics=metrics)
    return made


_PROBLEM: dict[str, Any] = {
    "description": "What went wrong, as an RFC 9457 problem.",
    "content": {problems.MEDIA_TYPE: {"schema": problems.SCHEMA}},
}


def add_operation(
    made: Any,
    pool: Pool,
    visitors: Visitors,
    operation: Operation,
    method: str,
    path: str,
    shape: Shape | None = None,
) -> None:
    """Add the route of an operation; `shape` says its value in another document's form."""

    def act(request: Any, who: Settings, values: dict[str, Any]) -> Any:
        values |= {**condition(request, operation), **idempotency(request, operation)}
        return shown(request, operation, pool.perform(operation, who, values), shape)

    add_route(
        made,
        visitors,
        method,
        path,
        act,
        operation.parameters,
        section=operation.section,
        summary=operation.summary,
        description="Only a human actor may." if operation.human else "",
    )
