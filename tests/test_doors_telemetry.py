"""Spans around what the doors do: ids and counts always, texts by opt-in, nothing where nobody listens."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient

from octavo.doors import rest, telemetry
from octavo.doors.operations import OPERATIONS, perform
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import SAME_ORIGIN, Visitors
from octavo.errors import BadInput

BY_NAME = {operation.name: operation for operation in OPERATIONS}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What a program that listens would export."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    monkeypatch.delenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", raising=False)
    yield exporter
    provider.shutdown()


def do(root: Path, name: str, /, **said: Any) -> Any:
    return perform(BY_NAME[name], Settings(root=root, account="Emi", actor="human:emi"), said)


def life(root: Path) -> str:
    """An account's life, in the operations that the conventions know."""
    do(root, "init")
    id_ = do(root, "remember", text="ชอบชาไทย and jasmine tea").memory.id
    do(root, "recall", query="jasmine tea", words=True)
    do(root, "revise", id=id_, text="likes oolong")
    do(root, "forget", ids=[id_])
    do(root, "delete_account", name="Emi")
    return str(id_)


def test_an_accounts_life_is_told_in_ids_and_counts_and_no_text(
    spans: InMemorySpanExporter, root: Path
) -> None:
    id_ = life(root)
    told = [dict(span.attributes or {}) for span in spans.get_finished_spans()]
    assert [span.name for span in spans.get_finished_spans()] == [
        "create_memory_store",
        "create_memory",
        "search_memory",
        "update_memory",
        "delete_memory",
        "delete_memory_store",
    ]
    assert {attributes[telemetry.STORE] for attributes in told} == {"Emi"}
    assert [a.get(telemetry.RECORD) for a in told] == [None, id_, id_, id_, id_, None]
    assert [a.get(telemetry.COUNT) for a in told] == [None, 1, 1, 1, 1, None]
    assert all(span.kind is trace.SpanKind.CLIENT for span in spans.get_finished_spans())
    assert not any(word in str(told) for word in ("jasmine", "oolong", "ชา"))


def test_what_a_server_begins_and_deletes_is_told_as_well(spans: InMemorySpanExporter, root: Path) -> None:
    settings = Settings(root=root, account="Emi", actor="human:emi")
    visitors = Visitors(settings)
    app, headers = rest.app(Pool(), settings, visitors=visitors), {SAME_ORIGIN: visitors.same_origin}
    with TestClient(app, "http://127.0.0.1", headers=headers, client=("127.0.0.1", 1)) as client:
        assert client.put("/accounts/Emi").status_code == 201
        assert client.delete("/accounts/Emi").status_code == 200
    told = [(span.name, (span.attributes or {})[telemetry.STORE]) for span in spans.get_finished_spans()]
    assert told == [("create_memory_store", "Emi"), ("delete_memory_store", "Emi")]


def test_how_long_operations_take_is_counted_by_their_name_and_their_error(
    spans: InMemorySpanExporter, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    monkeypatch.setattr(metrics, "get_meter_provider", lambda: provider)
    life(root)
    do(root, "init")
    with pytest.raises(BadInput):
        do(root, "remember", text="a private thing", topic="")
    (metric,) = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    assert (metric.name, metric.unit) == (telemetry.DURATION, "s")
    counts = {tuple(dict(p.attributes).items()): p.count for p in metric.data.data_points}
    named = {(dict(key)[telemetry.OPERATION], dict(key).get(telemetry.ERROR)): n for key, n in counts.items()}
    assert named[("create_memory", None)] == 1
    assert named[("create_memory", "BadInput")] == 1
    assert named[("search_memory", None)] == 1
    provider.shutdown()


def test_texts_are_told_where_that_was_asked_for(
    spans: InMemorySpanExporter, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    life(root)
    search = next(span for span in spans.get_finished_spans() if span.name == "search_memory")
    assert search.attributes[telemetry.QUERY] == "jasmine tea"
    assert json.loads(str(search.attributes[telemetry.RECORDS]))[0]["content"] == "ชอบชาไทย and jasmine tea"


def test_an_error_is_told_by_its_kind_alone(spans: InMemorySpanExporter, root: Path) -> None:
    do(root, "init")
    with pytest.raises(BadInput):
        do(root, "remember", text="a private thing", topic="")
    failed = spans.get_finished_spans()[-1]
    assert failed.attributes[telemetry.ERROR] == "BadInput"
    assert not failed.status.is_ok
    assert "private" not in failed.to_json()


def test_where_nobody_loaded_opentelemetry_nothing_happens(
    spans: InMemorySpanExporter, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("opentelemetry")]:
        monkeypatch.delitem(sys.modules, name)
    life(root)
    assert spans.get_finished_spans() == ()
    assert not any(name.startswith("opentelemetry") for name in sys.modules)


def test_what_the_conventions_have_no_name_for_makes_no_span(spans: InMemorySpanExporter, root: Path) -> None:
    do(root, "init")
    do(root, "memories")
    assert len(spans.get_finished_spans()) == 1
