"""LangGraph's store over an account: namespaces are walls, wildcards are few, what is put has a history."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

import octavo
from octavo.doors.adapters.langgraph import OctavoStore
from octavo.errors import BadInput, Refused

USER, OTHER = ("users", "emi"), ("users", "emi_2")


@pytest.fixture
def store(opened: Callable[..., octavo.Account]) -> OctavoStore:
    return OctavoStore(opened("agent:graph", embedder=False))


def test_an_item_comes_back_as_it_was_put_and_ends_when_it_is_deleted(store: OctavoStore) -> None:
    value = {"text": "ชอบชาไทย", "score": 1.5, "nested": {"list": [1, None, True]}}
    store.put(USER, "drink", value)
    item = store.get(USER, "drink")
    assert (item.namespace, item.key, item.value) == (USER, "drink", value)
    assert store.get(OTHER, "drink") is None
    store.delete(USER, "drink")
    assert store.get(USER, "drink") is None
    store.put(USER, "drink", {"text": "tea again"})
    assert store.get(USER, "drink").value == {"text": "tea again"}


def test_a_second_put_is_a_revision_that_keeps_when_it_began(opened: Callable[..., octavo.Account]) -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    store = OctavoStore(opened("agent:graph", embedder=False), clock=lambda: now)
    store.put(USER, "city", {"text": "lives in Lampang"})
    now += timedelta(days=1)
    store.put(USER, "city", {"text": "lives in Chiang Mai"})
    item = store.get(USER, "city")
    assert (item.created_at.day, item.updated_at.day) == (1, 2)
    [memory] = store.account.memories(category="langgraph")
    assert [r.memory.text for r in store.account.history(memory.id)] == [
        "lives in Lampang",
        "lives in Chiang Mai",
    ]


def test_a_batch_is_one_version_and_its_reads_see_what_was_before(store: OctavoStore) -> None:
    store.put(USER, "a", {"n": 1})
    before = store.account.version
    answers = store.batch(
        [PutOp(USER, "a", {"n": 2}), GetOp(USER, "a"), PutOp(USER, "a", {"n": 3}), PutOp(USER, "b", {"n": 4})]
    )
    assert answers[1].value == {"n": 1}
    assert store.account.version == before + 1
    assert [store.get(USER, key).value["n"] for key in "ab"] == [3, 4]


def test_what_the_gate_refuses_is_an_error_and_nothing_of_the_batch_is_written(store: OctavoStore) -> None:
    with pytest.raises(Refused, match="secret"):
        store.batch([PutOp(USER, "fine", {"n": 1}), PutOp(USER, "key", {"aws": "AKIAIOSFODNN7EXAMPLE"})])
    assert store.search(()) == []


HOSTILE = ["a_%", "%", "a' OR 1=1 --", '"]', "a\nb", "ns:x", "users/emi", "..", "ชื่อ", "x" * 400, "A_%", "*"]


def test_a_namespace_is_a_wall_whatever_stands_in_its_name(store: OctavoStore) -> None:
    spaces = [("tenant", name) for name in HOSTILE if "." not in name]
    store.batch([PutOp(space, "key", {"n": number}) for number, space in enumerate(spaces)])
    for number, space in enumerate(spaces):
        assert [item.value["n"] for item in store.search(space)] == [number]
        assert store.get(space, "key").value == {"n": number}
        assert store.get(("tenant",), f"{space[1]}") is None
    assert len(store.search(("tenant",), limit=50)) == len(spaces)
    assert store.search(("ten",)) == []


@pytest.mark.parametrize("namespace", [("a.b",), ("a\x00",), ("a", ""), (7,)])
def test_an_impossible_name_is_refused_in_every_operation(store: OctavoStore, namespace: Any) -> None:
    condition = MatchCondition("prefix", namespace)
    for op in (
        GetOp(namespace, "k"),
        PutOp(namespace, "k", {"v": 1}),
        SearchOp(namespace),
        ListNamespacesOp((condition,)),
    ):
        with pytest.raises(InvalidNamespaceError):
            store.batch([op])
        with pytest.raises(InvalidNamespaceError):
            asyncio.run(store.abatch([op]))


SPACES = [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "c", "f"), ("b", "a", "f"), ("users", "1")]


def test_namespaces_are_listed_as_the_store_in_memory_lists_them(store: OctavoStore) -> None:
    theirs = InMemoryStore()
    for number, space in enumerate(SPACES):
        for each in (store, theirs):
            each.put(space, f"k{number}", {"n": number})
    for asked in (
        {},
        {"prefix": ("a",)},
        {"suffix": ("f",)},
        {"prefix": ("a", "*"), "suffix": ("f",)},
        {"prefix": ("*", "a")},
        {"suffix": ("*", "f")},
        {"max_depth": 2},
        {"prefix": ("a", "b"), "max_depth": 3},
        {"limit": 2, "offset": 1},
        {"prefix": ("none",)},
    ):
        assert store.list_namespaces(**asked) == theirs.list_namespaces(**asked), asked


def test_values_are_filtered_as_the_store_in_memory_filters_them(store: OctavoStore) -> None:
    theirs = InMemoryStore()
    for number in range(6):
        value = {"n": number, "colour": "red" if number % 2 else "blue", "deep": {"list": [number, 1]}}
        for each in (store, theirs):
            each.put(("t",), f"k{number}", value)
    for condition in (
        {"n": 3},
        {"colour": "red", "n": {"$gt": 1}},
        {"n": {"$gte": 2, "$lt": 5}},
        {"n": {"$ne": 0}},
        {"deep": {"list": [4, 1]}},
        {"colour": {"$eq": "blue"}},
        {"missing": 1},
        {"n": {"$lte": 0}},
    ):
        ours = {item.key for item in store.search(("t",), filter=condition)}
        assert ours == {item.key for item in theirs.search(("t",), filter=condition)}, condition
    assert store.search(("t",), filter={"colour": {"$gt": 1}}) == []
    with pytest.raises(ValueError, match="Unsupported"):
        store.search(("t",), filter={"n": {"$like": 1}})


def test_a_query_ranks_and_what_has_no_index_comes_last_without_a_score(store: OctavoStore) -> None:
    store.put(USER, "a", {"text": "jasmine tea in the morning"})
    store.put(USER, "b", {"text": "a red bicycle"})
    store.put(USER, "c", {"text": "jasmine tea, hidden"}, index=False)
    store.put(OTHER, "d", {"text": "jasmine tea of somebody else"})
    store.account.remember("jasmine tea that is no item")
    items = store.search(USER, query="jasmine tea")
    assert [item.key for item in items] == ["a", "b", "c"]
    assert items[0].score > items[1].score
    assert items[2].score is None
    assert [item.key for item in store.search(USER, query="jasmine tea", limit=1, offset=1)] == ["b"]


def test_only_the_fields_of_the_index_are_searched(opened: Callable[..., octavo.Account]) -> None:
    store = OctavoStore(opened("agent:graph", embedder=False), index={"fields": ["text"]})
    store.put(USER, "a", {"text": "jasmine", "note": "bicycle"})
    store.put(USER, "b", {"text": "oolong", "note": "bicycle"}, index=["note"])
    assert store.search(USER, query="bicycle")[0].key == "b"
    assert store.search(USER, query="jasmine")[0].key == "a"


def test_an_item_lives_as_long_as_it_was_given_and_reading_lengthens_that(
    opened: Callable[..., octavo.Account],
) -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    store = OctavoStore(opened("agent:graph", embedder=False), ttl={"default_ttl": 10}, clock=lambda: now)
    store.put(USER, "short", {"n": 1})
    store.put(USER, "long", {"n": 2}, ttl=None)
    now += timedelta(minutes=9)
    assert store.get(USER, "short") is not None
    now += timedelta(minutes=9)
    assert [item.key for item in store.search(USER, refresh_ttl=False)] == ["short", "long"]
    now += timedelta(minutes=2)
    assert store.get(USER, "short") is None
    assert [item.key for item in store.search(USER)] == ["long"]
    assert store.sweep_ttl() == 1
    assert len(store.account.memories(category="langgraph")) == 1


def test_many_at_once_from_one_loop_lose_nothing(store: OctavoStore) -> None:
    async def all_at_once() -> list[Any]:
        await asyncio.gather(*[store.aput(USER, f"k{n}", {"n": n}) for n in range(8)])
        return await store.asearch(USER, limit=20)

    assert {item.value["n"] for item in asyncio.run(all_at_once())} == set(range(8))


@pytest.mark.slow
def test_the_stores_own_tests_of_langgraph_pass(tmp_path: Path) -> None:
    """All but one, which compares scores with a bare cosine; ours count words, age and more."""
    version = metadata.version("langgraph-checkpoint")
    kept = Path(__file__).parent.parent / "build" / "langgraph"
    source = kept / f"langgraph_checkpoint-{version}.tar.gz"
    if not source.exists():
        line = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(kept)]
        line += ["--no-binary", "langgraph-checkpoint", f"langgraph-checkpoint=={version}"]
        subprocess.run(line, check=True, capture_output=True, timeout=300)
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    tests = next(tmp_path.glob("*/tests"))
    (tests / "__init__.py").touch()
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "langgraph_suite", "-c"]
    line += [
        os.devnull,
        "--rootdir",
        str(tests.parent),
        "--deselect",
        "tests/test_store.py::test_embed_with_path",
    ]
    paths = [str(Path(__file__).parent), str(Path(octavo.__file__).parent.parent)]
    done = subprocess.run(
        [*line, "tests/test_store.py"],
        cwd=tests.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert re.search(r"^1\d\d passed, 1 deselected", done.stdout, re.MULTILINE), done.stdout[-3000:]


@pytest.mark.parametrize("value", [{"text": "cut \ud83d"}, {"cut \ud83d": 1}, {"n": float("nan")}])
def test_half_a_character_and_what_is_no_number_are_bad_input(
    store: OctavoStore, value: dict[str, Any]
) -> None:
    with pytest.raises(BadInput, match=r"half a character|no number"):
        store.put(USER, "drink", value)
    with pytest.raises(BadInput, match="half a character"):
        store.put(("cut \ud83d",), "drink", {"text": "ชา"})
    assert store.get(USER, "drink") is None
