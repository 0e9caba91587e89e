"""The OpenAPI description is true: schemathesis asks each route for what it says and what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup

import octavo
from octavo.doors import hooks, rest, rest_seeds
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import SAME_ORIGIN, Visitors

# What fits the description may still be refused by the gate (422), or mean nothing here (400, 404, 409).
FITTING = ["2xx", "400", "403", "404", "409", "422"]
FEW = settings(
    max_examples=1,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def described(root: Path) -> Any:
    """The description of a server with one account, asked as its own page asks."""
    octavo.open(root, "User01", actor="human:you", embedder=False).close()
    asking = Settings(root=root, account="User01", actor="human:you", models={"OCTAVO_EMBEDDER": "none"})
    visitors = Visitors(asking)
    app = rest.app(Pool(), asking, visitors=visitors, mounts=(rest_seeds.add, hooks.add))
    headers = {"Host": "127.0.0.1", SAME_ORIGIN: visitors.same_origin}

    async def near(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "client": ("127.0.0.1", 1)}, receive, send)

    loaded = schemathesis.openapi.from_asgi("/openapi.json", near, headers=headers)
    loaded.config.update(headers=headers)
    loaded.config.checks.positive_data_acceptance.expected_statuses = FITTING
    return loaded.exclude(path_regex="/events$")


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_route_answers_as_it_is_described(root: Path, mode: GenerationMode) -> None:
    schema = described(root)
    failures, asked = [], 0
    for found in schema.get_all_operations():
        operation = found.ok()

        @FEW
        @given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            nonlocal asked
            asked += 1
            case.call_and_validate()

        try:
            ask()
        except Unsatisfiable:
            continue  # nothing can be said wrong
        except FailureGroup as error:
            failures.append(f"{operation.label}: {error}"[:1000])
    assert asked > 120
    assert failures == [], "\n\n".join(failures)
