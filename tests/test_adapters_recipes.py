"""The wirings of docs/recipes.md: each runs with stand-ins that take what its framework takes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import octavo

PAGE = (Path(__file__).parent.parent / "docs" / "recipes.md").read_text()
BLOCKS = {
    re.findall(r"from (\w+)", text)[0]: text for text in re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
}


class Taken(SimpleNamespace):
    """Whatever a framework's class is given: by name, the rest in order."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(args=args, **named)

    def instructions(self, function: Callable[..., str]) -> Callable[..., str]:
        self.known = function
        return function

    def append_instructions(self, texts: list[str]) -> None:
        self.told = texts

    @classmethod
    def from_defaults(cls, fn: Callable[..., Any]) -> Taken:
        return cls(fn=fn, metadata=SimpleNamespace(name=fn.__name__))


def tool(name: str) -> Callable[[Callable[..., Any]], Taken]:
    return lambda function: Taken(name=name, fn=function)


STAND_INS: dict[str, dict[str, dict[str, Any]]] = {
    "google": {"google.adk.agents": {"Agent": Taken}, "google.adk": {}, "google": {}},
    "pydantic_ai": {"pydantic_ai": {"Agent": Taken, "RunContext": Taken}},
    "crewai": {"crewai": {"Agent": Taken}, "crewai.tools": {"tool": tool}},
    "llama_index": {
        "llama_index": {},
        "llama_index.core": {},
        "llama_index.core.agent": {},
        "llama_index.core.agent.workflow": {"FunctionAgent": Taken},
        "llama_index.core.tools": {"FunctionTool": Taken},
    },
    "autogen_agentchat": {
        "autogen_agentchat": {},
        "autogen_core": {},
        "autogen_agentchat.agents": {"AssistantAgent": Taken},
        "autogen_core.memory": {
            "ListMemory": Taken,
            "MemoryContent": Taken,
            "MemoryMimeType": SimpleNamespace(TEXT="text/plain"),
        },
    },
}


@pytest.fixture
def wired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Run the part of the page that stands before the wirings, then one of them."""
    monkeypatch.chdir(tmp_path)
    accounts: list[octavo.Account] = []

    def run(framework: str) -> dict[str, Any]:
        for name, held in STAND_INS[framework].items():
            module = ModuleType(name)
            vars(module).update(held, __path__=[])
            monkeypatch.setitem(sys.modules, name, module)
        namespace: dict[str, Any] = {"model": "gpt-4o"}
        for text in before_wirings():
            exec(text, namespace)
        accounts.append(namespace["account"])
        exec(BLOCKS[framework], namespace)
        return namespace

    yield run
    for account in accounts:
        account.close()


def before_wirings() -> Iterator[str]:
    for text in re.findall(r"```python\n(.*?)```", PAGE.partition("```py\n")[0], re.DOTALL):
        if any(name in text for name in ("octavo.open", "def recall", "def standing")):
            yield text.replace("from octavo.doors.adapters.langgraph import OctavoStore", "").partition(
                "store ="
            )[0]


def test_every_framework_of_the_table_has_its_wiring() -> None:
    assert set(BLOCKS) == set(STAND_INS)
    assert "Google ADK, Pydantic AI, CrewAI, LlamaIndex, AutoGen" in PAGE.partition("##")[0]


@pytest.mark.parametrize("framework", STAND_INS)
def test_a_wiring_hands_over_both_tools_and_the_brief(
    framework: str, wired: Callable[[str], dict[str, Any]]
) -> None:
    names = wired(framework)
    agent = names["agent"]
    assert "night market" in names["recall"]("where does Emi work?")[0]
    assert [getattr(one, "fn", one) for one in agent.tools] == [names["recall"], names["remember"]]
    assert "night market" in told(framework, names)


def told(framework: str, names: dict[str, Any]) -> str:
    """What the wiring puts before the messages of somebody who asks where Emi works."""
    question = "where does Emi work?"
    if framework == "google":
        part = SimpleNamespace(text=question)
        context, request = SimpleNamespace(user_content=SimpleNamespace(parts=[part])), Taken()
        names["agent"].before_model_callback(context, request)
        return str(request.told[0])
    if framework == "pydantic_ai":
        return str(names["known"](SimpleNamespace(prompt=question)))
    if framework == "crewai":
        return str(names["agent"].backstory)
    if framework == "llama_index":
        return str(names["agent"].system_prompt)
    return str(names["memory"].memory_contents[0].content)
