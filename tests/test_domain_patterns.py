"""Patterns: they do what compiled ones do, and nothing before somebody asks."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.domain.patterns import pattern

SOURCES = st.sampled_from([r"[ก-๛]+", r"(?i)chiang\s+mai", r"\d+(?:[.,]\d+)*", r"ไม่(?:ได้)?"])


@given(SOURCES, st.text(alphabet="Chiang Mai ไม่ได้ ก๛ 0,5"))
def test_a_pattern_finds_replaces_and_splits_as_a_compiled_one(source: str, text: str) -> None:
    ours, theirs = pattern(source), re.compile(source)
    assert bool(ours.search(text)) is bool(theirs.search(text))
    assert bool(ours.match(text)) is bool(theirs.match(text))
    assert bool(ours.fullmatch(text)) is bool(theirs.fullmatch(text))
    assert ours.sub("·", text) == theirs.sub("·", text)
    assert ours.subn("·", text) == theirs.subn("·", text)
    assert ours.split(text) == theirs.split(text)
    assert ours.findall(text) == theirs.findall(text)
    assert [m.span() for m in ours.finditer(text)] == [m.span() for m in theirs.finditer(text)]


def test_flags_count() -> None:
    assert pattern("lampang", re.IGNORECASE).search("Lampang")
    assert not pattern("lampang").search("Lampang")


def test_a_pattern_is_compiled_at_its_first_use() -> None:
    broken = pattern("(ยังไม่ปิด")
    with pytest.raises(re.error):
        broken.search("ยังไม่ปิด")


def test_what_no_pattern_has_is_not_there() -> None:
    assert not hasattr(pattern("x"), "scanner")
