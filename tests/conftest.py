"""What many tests begin with: a fresh folder, and an account in it opened by a person or by an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import octavo

# How long an example takes says how busy the machine is; what must be fast is measured by its own tests.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Loaded before anything else: hypothesis asks for its arrays while a worker may be half through its import.
assert np.ndarray


@pytest.fixture(autouse=True)
def _one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """No second look unless a test asks for it: its model would be loaded by every recall."""
    monkeypatch.setenv("OCTAVO_RERANKER", "none")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder for accounts."""
    return tmp_path / "data"


@pytest.fixture
def opened(root: Path) -> Iterator[Callable[..., octavo.Account]]:
    """Open the account `User01` of the test's folder, any number of times, for any actor."""
    handles = []

    def open_(actor: str = "human:you", account: str = "User01", **more: Any) -> octavo.Account:
        handles.append(octavo.open(root, account, actor=actor, **more))
        return handles[-1]

    yield open_
    for handle in handles:
        handle.close()


@pytest.fixture
def account(opened: Callable[..., octavo.Account]) -> octavo.Account:
    """The owner's handle."""
    return opened()


@pytest.fixture
def agent(opened: Callable[..., octavo.Account]) -> octavo.Account:
    """An agent's handle on the same account."""
    return opened("agent:bot")
