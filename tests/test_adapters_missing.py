"""An adapter whose framework is not installed says which line installs it."""

from __future__ import annotations

import importlib
import sys

import pytest

from octavo.errors import Unavailable

ADAPTERS = {"langgraph": "langgraph", "anthropic": "anthropic", "openai_agents": "agents"}


@pytest.mark.parametrize(("adapter", "framework"), ADAPTERS.items())
def test_a_missing_framework_is_an_error_with_the_line_that_installs_it(
    adapter: str, framework: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n == framework or n.startswith(f"{framework}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, framework, None)
    monkeypatch.delitem(sys.modules, f"octavo.doors.adapters.{adapter}", raising=False)
    with pytest.raises(Unavailable) as caught:
        importlib.import_module(f"octavo.doors.adapters.{adapter}")
    assert caught.value.advice == f"pip install 'octavo[{adapter.replace('_', '-')}]'"
