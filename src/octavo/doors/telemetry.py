"""Spans and durations by OpenTelemetry's conventions for memory, around what the doors do.

A program that exports spans has loaded OpenTelemetry itself; in every other one nothing is loaded and nothing
is done. Ids and counts are told; a text only where it was asked for (`settings.captures_text`).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from octavo.domain.memory import Memory
from octavo.domain.verdicts import Verdict
from octavo.errors import OctavoError

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
STORE = "gen_ai.memory.store.id"
RECORD = "gen_ai.memory.record.id"
COUNT = "gen_ai.memory.record.count"
QUERY = "gen_ai.memory.query.text"
RECORDS = "gen_ai.memory.records"
ERROR = "error.type"
DURATION = "gen_ai.client.operation.duration"


class Told:
    """What an operation gave back, once it has."""

    value: Any = None


@contextmanager
def span(name: str | None, store: str, said: Mapping[str, Any], *, text: bool = False) -> Iterator[Told]:
    """A span around what the conventions have a name for; the caller hands in what came of it."""
    told, trace = Told(), sys.modules.get("opentelemetry.trace")
    if trace is None or name is None:
        yield told
        return
    began = time.perf_counter()
    which = {OPERATION: name, PROVIDER: "octavo"}
    tracer = trace.get_tracer("octavo")
    with tracer.start_as_current_span(
        name,
        kind=trace.SpanKind.CLIENT,
        attributes={**which, STORE: store, **_asked(said, text)},
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield told
        except OctavoError as error:
            # The message may quote a memory; the kind of the error is enough.
            which[ERROR] = type(error).__name__
            current.set_attribute(ERROR, which[ERROR])
            current.set_status(trace.Status(trace.StatusCode.ERROR))
            raise
        finally:
            if (metrics := sys.modules.get("opentelemetry.metrics")) is not None:
                _durations(metrics.get_meter_provider()).record(time.perf_counter() - began, which)
        for key, value in _came(told.value, text).items():
            current.set_attribute(key, value)


@cache
def _durations(provider: Any) -> Any:
    """The histogram of how long operations take, made once for whoever collects it."""
    return provider.get_meter("octavo").create_histogram(DURATION, unit="s")


def _asked(said: Mapping[str, Any], text: bool) -> dict[str, Any]:
    ids = [said["id"]] if isinstance(said.get("id"), str) else list(said.get("ids") or ())
    asked: dict[str, Any] = {RECORD: ids[0]} if len(ids) == 1 else {}
    return asked | ({QUERY: said["query"]} if text and isinstance(said.get("query"), str) else {})


def _came(value: Any, text: bool) -> dict[str, Any]:
    """The count and, if there is one memory, the id of what came; the texts only if they may be told."""
    memories: list[Memory]
    match value:
        case {"hits": list(hits)}:
            memories = [hit["memory"] for hit in hits]
        case Verdict() | [Verdict(), *_]:
            verdicts = [value] if isinstance(value, Verdict) else value
            memories = [verdict.memory for verdict in verdicts if verdict and verdict.memory]
        case _:
            return {}
    came: dict[str, Any] = {COUNT: len(memories)}
    if len(memories) == 1:
        came[RECORD] = memories[0].id
    if text:
        told = [{"id": memory.id, "content": memory.text} for memory in memories]
        came[RECORDS] = json.dumps(told, ensure_ascii=False)
    return came
