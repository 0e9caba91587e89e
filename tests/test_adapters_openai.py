"""The session of an OpenAI agent in an account: the same calls, the same items as in SQLiteSession."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, set_tracing_disabled
from agents.memory import SessionSettings
from openai import AsyncOpenAI

from llm_server import Reply, llm_server
from octavo.doors.adapters.openai_agents import OctavoSession
from octavo.errors import BadInput

ITEMS: list[Any] = [
    {"role": "user", "content": "I live in Chiang Mai"},
    {"role": "user", "content": "ฉันชอบชาไทย"},
    {"role": "assistant", "content": [{"type": "output_text", "text": "noted", "annotations": []}]},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Chiang Mai"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
    {"type": "reasoning", "summary": [], "weight": 0.5, "none": None},
]


async def play(session: Any, seed: int) -> list[Any]:
    """Random calls, and what each gave back."""
    chance, answers = random.Random(seed), []
    for _ in range(12):
        match chance.choice(["add", "add", "get", "get", "pop", "clear"]):
            case "add":
                answers.append(await session.add_items(chance.choices(ITEMS, k=chance.randrange(4))))
            case "get":
                answers.append(await session.get_items(chance.choice([None, None, 0, 1, 3, 100, -1])))
            case "pop":
                answers.append(await session.pop_item())
            case "clear":
                answers.append(await session.clear_session() if chance.random() < 0.3 else "kept")
    return [*answers, await session.get_items()]


def test_random_calls_are_answered_as_by_the_session_on_sqlite(opened: Any) -> None:
    account = opened("agent:bot", embedder=False)
    for seed in range(60):
        ours = asyncio.run(play(OctavoSession(f"talk {seed}", account), seed))
        theirs = asyncio.run(play(SQLiteSession(f"talk {seed}"), seed))
        assert ours == theirs, seed


def test_sessions_do_not_see_each_other_and_their_items_are_recalled(agent: Any) -> None:
    async def talk() -> None:
        one, other = OctavoSession("one", agent), OctavoSession("two", agent)
        await one.add_items([ITEMS[0], ITEMS[1]])
        assert await other.get_items() == []
        assert [await one.pop_item(), await one.get_items()] == [ITEMS[1], [ITEMS[0]]]

    asyncio.run(talk())
    assert "Chiang Mai" in agent.recall("where do I live")[0].memory.text


def test_a_secret_in_an_item_is_masked_and_the_limit_of_the_settings_holds(agent: Any) -> None:
    session = OctavoSession("s", agent, session_settings=SessionSettings(limit=1))
    said = [{"role": "user", "content": "my key is AKIAIOSFODNN7EXAMPLE"}, ITEMS[0]]
    asyncio.run(session.add_items(said))
    assert asyncio.run(session.get_items()) == [ITEMS[0]]
    assert "AKIAIOSFODNN7EXAMPLE" not in str(asyncio.run(session.get_items(5)))
    for wrong in ("", "x" * 501):
        with pytest.raises(BadInput):
            OctavoSession(wrong, agent)


def test_a_runner_hands_an_agent_what_was_said_in_the_session_before(agent: Any) -> None:
    set_tracing_disabled(True)
    with llm_server(Reply(text="You live in Chiang Mai.")) as server:

        async def talk() -> None:
            client = AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0)
            model = OpenAIChatCompletionsModel(model="loopback", openai_client=client)
            asked = Agent(name="guide", model=model)
            for question in ("I live in Chiang Mai", "where do I live?"):
                await Runner.run(asked, question, session=OctavoSession("trip", agent))
            await client.close()

        asyncio.run(talk())
    last = [message["content"] for message in server.requests[-1]["messages"]]
    assert last[0] == "I live in Chiang Mai"
    assert len(last) == 3


def test_an_item_with_half_a_character_is_bad_input(opened: Any) -> None:
    session = OctavoSession("cut", opened("agent:a", embedder=False))
    with pytest.raises(BadInput, match="half a character"):
        asyncio.run(session.add_items([{"role": "user", "content": "cut \ud83d"}]))
    assert asyncio.run(session.get_items()) == []
