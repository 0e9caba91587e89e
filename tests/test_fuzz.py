"""Unclear input: whatever JSON-like value is handed in for whatever parameter, only typed errors leave."""

from __future__ import annotations

import inspect
import math
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import octavo
from octavo.errors import BadInput, OctavoError, SandboxClosed, Unavailable
from surface import (
    ENDING,
    OF_ACCOUNT,
    OF_DOCUMENTS,
    OF_HANDLE,
    OF_SANDBOX,
    acts,
    call,
    holder,
    methods,
    needed,
    variants,
    world,
)

NASTY: list[Any] = [
    None, True, 0, -5, 2**70, 0.5, math.nan, math.inf, "", " ", "\ud800", "\u200b", "\x00",
    "a" * 3000, "../x", "*", [], [None], ["\ud800"], [[]], {}, {"a": math.nan}, {"\ud800": 1},
    {"a": {"b": [1, None]}}, (), b"bytes",
]  # fmt: skip
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
# They end the handle, or wait for others as long as they are told to.
SLOW = {"close", "wait", "importing"}


def tolerated(handle: Any, name: str, arguments: dict[str, Any]) -> None:
    """Call, and let nothing but a typed error pass."""
    with suppress(OctavoError):
        call(handle, name, arguments)


@pytest.mark.parametrize("name", sorted(set(OF_HANDLE) - SLOW))
def test_an_account_answers_nasty_values_with_typed_errors(opened, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    w = world(opened, tmp_path)
    handle = holder(w.account, name)
    for arguments in variants(handle, name, OF_HANDLE[name](w), NASTY):
        tolerated(handle, name, arguments)
    assert w.account.check().problems == ()


def test_what_explains_assemblies_answers_nasty_values_with_typed_errors(opened, tmp_path):
    w = world(opened, tmp_path)
    explained = w.account.explained
    for name in sorted(methods(type(explained))):
        base = {"id_": w.fact, "memory_id": w.fact, "ids": [w.fact], "memory": w.account.get(w.fact)}
        taken = inspect.signature(getattr(explained, name)).parameters
        for arguments in variants(explained, name, {k: v for k, v in base.items() if k in taken}, NASTY):
            tolerated(explained, name, arguments)
    assert w.account.explained.assemblies() == []


@pytest.mark.parametrize("name", sorted(set(OF_SANDBOX) - set(ENDING)))
def test_a_sandbox_answers_nasty_values_with_typed_errors(opened, tmp_path, name):
    w = world(opened, tmp_path)
    for arguments in variants(w.sandbox, name, OF_SANDBOX[name](w), NASTY):
        tolerated(w.sandbox, name, arguments)
    assert w.sandbox.consolidate()
    assert w.account.check().problems == ()


@pytest.mark.parametrize("name", sorted(OF_DOCUMENTS))
def test_a_documents_interface_answers_nasty_values_with_typed_errors(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    handle = OF_DOCUMENTS[name](tmp_path / "data")
    for method in acts(handle):
        base = needed(getattr(handle, method))
        for arguments in variants(handle, method, base, NASTY):
            tolerated(handle, method, arguments)


@pytest.mark.parametrize("function", [octavo.open, octavo.accounts, octavo.delete_account])
def test_what_opens_and_lists_accounts_answers_nasty_values_with_typed_errors(
    tmp_path, monkeypatch, function
):
    monkeypatch.chdir(tmp_path)
    base = {"root": tmp_path, "account": "mali", "embedder": False}
    taken = {name: value for name, value in base.items() if name in inspect.signature(function).parameters}
    octavo.open(**base).close()
    for parameter in inspect.signature(function).parameters:
        for value in (*NASTY, "human:", "s3://", "://", "postgresql://127.0.0.1:1/x"):
            with suppress(OctavoError):
                answer = function(**{**taken, parameter: value})
                if isinstance(answer, octavo.Account):
                    answer.close()
    assert "mali" in octavo.accounts(tmp_path) or function is octavo.delete_account


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_for_any_parameter_is_taken_or_a_typed_error(opened, tmp_path, data):
    if not hasattr(opened, "world"):
        opened.world = world(opened, tmp_path)
    w = opened.world
    table = data.draw(st.sampled_from([OF_HANDLE, OF_SANDBOX]))
    name = data.draw(st.sampled_from(sorted(set(table) - SLOW - set(ENDING) - {"reindex", "repair"})))
    base, handle = table[name](w), w.sandbox if table is OF_SANDBOX else holder(w.account, name)
    tolerated(handle, name, {**base, **{key: data.draw(VALUES) for key in base}})


@pytest.mark.parametrize("text", ["", " ", "\u200b\u200b", "\u2060", "\u3164", "\ufe0f"])
def test_an_invisible_text_is_no_fact(account, text):
    verdict = account.remember(text)
    assert (verdict.outcome, verdict.check) == ("refused", "empty")


@pytest.mark.parametrize("budget", [-5, math.nan, True, "10", 2.5])
def test_a_budget_is_a_whole_number_and_not_below_nothing(account, budget):
    with pytest.raises(BadInput):
        account.brief("tea", budget=budget)


def test_a_closed_handle_says_that_it_was_closed(opened, tmp_path):
    w = world(opened, tmp_path)
    w.sandbox.close()
    with pytest.raises(SandboxClosed):
        w.sandbox.turn("user", "hello")
    w.account.close()
    for name in ("get", "memories", "remember", "versions", "stats"):
        with pytest.raises(Unavailable, match="closed") as told:
            call(w.account, name, OF_ACCOUNT[name](w))
        assert "open the account again" in told.value.advice


def test_the_deepest_nesting_is_a_typed_error(account, tmp_path):
    deep: Any = {}
    for _ in range(200):
        deep = {"a": deep}
    with pytest.raises(BadInput):
        account.remember("nested", data=deep)
    path = tmp_path / "deep.jsonl"
    path.write_text("[" * 100_000)
    with suppress(OctavoError):
        assert account.import_(path, format="vault").counts == {}


@pytest.mark.parametrize(
    "call",
    [
        lambda account, sandbox: octavo.Account.remember(None, colour="red"),
        lambda account, sandbox: account.remember("likes tea", confidense=0.9),
        lambda account, sandbox: sandbox.remember("likes tea", colour="red"),
        lambda account, sandbox: account.revise("x", txt="likes tea"),
        lambda account, sandbox: sandbox.revise("x", kind="fact"),
        lambda account, sandbox: account.explain("tea", "x", kind="fact"),
        lambda account, sandbox: sandbox.write_episode({"turn_1": "hello"}, level="L1"),
        lambda account, sandbox: account.recall("tea", limit=3),
    ],
)
def test_a_name_that_fits_no_parameter_is_told_with_those_that_do(account, call):
    with account.sandbox() as sandbox, pytest.raises(BadInput, match="unexpected keyword argument") as told:
        call(account, sandbox)
    assert told.value.advice.startswith("it takes ")
    assert account.memories() == []


def test_a_field_of_a_memory_that_is_of_another_type_is_told_with_its_own(account):
    with pytest.raises(BadInput, match="remember: confidence is str") as told:
        account.remember("likes tea", confidence="sure")
    assert "float | None" in told.value.advice
    with pytest.raises(BadInput, match="revise: salience is None"):
        account.revise("x", salience=None)
    assert "confidence" in inspect.signature(account.remember).parameters


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda a, s: a.recall("tea", unit="page"),
            "recall: unit is 'page' (unit is str, one of episode, turn)",
        ),
        (lambda a, s: a.recall("tea", kinds=["fact", "dream"]), "recall: kinds is ['fact', 'dream']"),
        (lambda a, s: a.explain("tea", "x", strategy="deep"), "one of mixed, layered"),
        (lambda a, s: a.memories(limit=-1), "memories: limit is -1 (limit is int | None, at least 0)"),
        (lambda a, s: a.remember("likes tea", salience=1.5), "float | None, between 0 and 1"),
        (lambda a, s: a.remember_many([{"text": "likes tea", "kind": "dream"}]), "kind is 'dream'"),
        (lambda a, s: a.remember("likes tea", key="k" * 501), "not empty and at most 500 characters"),
        (lambda a, s: s.turn("  ", "hello"), "turn: role is '  '"),
        (lambda a, s: s.turn("user", "hello", salience=-0.1), "salience is -0.1"),
        (lambda a, s: s.use("x", feedback=2), "use: feedback is 2"),
    ],
)
def test_what_lies_outside_of_a_parameters_bounds_or_choices_is_told_with_them(account, call, said):
    with account.sandbox() as sandbox, pytest.raises(BadInput, match=re.escape(said)):
        call(account, sandbox)
    assert account.memories() == []


def test_an_error_does_not_repeat_megabytes(account):
    with pytest.raises(BadInput, match="topic") as told:
        account.remember("likes tea", kind="register", topic="ชา " * 100_000)
    assert len(str(told.value)) < 10_000
    assert account.remember("likes tea", kind="register", topic="ชา").outcome == "admitted"
