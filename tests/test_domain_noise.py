"""Journal noise stays out of memory; facts that only mention a signal do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.domain.noise import is_noise
from octavo.domain.policy import GatePolicy

SIGNALS = GatePolicy().signals
_LINES = (Path(__file__).parent / "corpora" / "noise.jsonl").read_text(encoding="utf-8")
CORPUS: list[dict[str, Any]] = [json.loads(line) for line in _LINES.splitlines()]


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("tick marker for burst 5", "tick marker"),
        ("routine scan complete, nothing to report", "routine scan"),
        ("Heartbeat OK", "heartbeat"),
        ("CHECK-IN 3", "check-in"),
        ("check in: done", "check-in"),
        ("tick_marker 12", "tick marker"),
        ("heart\u200bbeat ok", "heartbeat"),
    ],
)
def test_noise_is_named_by_the_first_signal_in_the_text(text: str, signal: str) -> None:
    assert is_noise(text, SIGNALS) == signal


@pytest.mark.parametrize(
    "text",
    [
        "weekly check-in on Mondays",
        "ephemeral storage policy",
        "heartbeat interval is 30 seconds",
        "Heartbeats by Jose Gonzalez is her favourite song",
        "ephemerally",
        "likes pizza",
        "",
        "5",
    ],
)
def test_a_fact_that_mentions_a_signal_or_holds_none_is_kept(text: str) -> None:
    assert is_noise(text, SIGNALS) is None


def test_a_policy_may_set_signals_of_scripts_without_spaces() -> None:
    signals = ("ไม่มีอะไรเปลี่ยนแปลง", "没有变化")
    assert is_noise("วันนี้ไม่มีอะไรเปลี่ยนแปลงครับ", signals) == "ไม่มีอะไรเปลี่ยนแปลง"
    assert is_noise("ไม่มีอะไรเปลี่ยนแปลงในแผนเที่ยวเชียงใหม่เดือนหน้า", signals) is None
    assert is_noise("没有变化 5", signals) == "没有变化"
    assert is_noise("合同没有变化直到三月", signals) is None


def test_no_signals_mean_no_noise() -> None:
    assert is_noise("heartbeat", ()) is None
    assert is_noise("heartbeat", ("", "  ")) is None


def test_a_signal_may_hold_signs_that_mean_something_in_patterns() -> None:
    assert is_noise("c++ (ok)", ("c++",)) == "c++"


def test_the_corpus_has_enough_lines_of_both_sorts_some_of_them_thai() -> None:
    noise = sum(row["noise"] for row in CORPUS)
    assert len(CORPUS) >= 90
    assert 40 <= noise <= len(CORPUS) - 40
    assert sum("signals" in row for row in CORPUS) >= 16


@pytest.mark.parametrize("row", CORPUS, ids=lambda row: row["text"])
def test_each_line_of_the_corpus_is_judged_as_a_person_would(row: dict[str, Any]) -> None:
    signal = is_noise(row["text"], tuple(row.get("signals", SIGNALS)))
    assert (signal is not None) == row["noise"]


@given(st.text(), st.sampled_from(SIGNALS))
def test_a_signal_with_numbers_is_noise_and_two_content_words_make_it_none(other: str, signal: str) -> None:
    assert is_noise(f"{signal} 17 3", SIGNALS) is not None
    assert is_noise(f"{signal} violet umbrella {other}", SIGNALS) is None
