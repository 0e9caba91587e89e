"""The word lists: one file a language, read once, the same sections in each."""

from __future__ import annotations

import re

from octavo import words
from octavo.domain import cues, dates


def test_every_file_is_a_language_that_says_whether_it_writes_spaces() -> None:
    assert {"en", "th"} <= set(words.languages())
    assert words.languages() is words.languages()
    assert [name for name, lists in words.languages().items() if lists["spaced"]] == ["en"]


def test_a_list_is_the_words_of_every_language_or_of_those_with_spaces() -> None:
    every = words.listed("talk.generic")
    assert {"people", "เพื่อน"} <= every
    assert "เพื่อน" not in words.listed("talk.generic", spaced=True)
    assert "people" not in words.listed("talk.generic", spaced=False)
    assert words.listed("talk.dangling", spaced=False) == frozenset()


def test_a_valued_list_gives_the_value_of_each_word() -> None:
    assert words.valued("search.irregular")["bought"] == "buy"
    assert words.valued("dates.months")["พ.ค."] == words.valued("dates.months")["may"] == "5"
    assert words.valued("numbers.few", "en")["a couple of"] == "2"
    assert "may" not in words.valued("dates.months", "th")


def test_a_cue_matches_whole_words_in_english_and_anywhere_in_thai() -> None:
    worry = cues.FEELINGS["worry"]
    assert worry.search("I am worried")
    assert not worry.search("unworriedly")
    assert worry.search("ผมกังวลมากครับ")


def test_every_line_of_every_language_compiles_and_no_list_repeats_a_word() -> None:
    for language, sections in words.languages().items():
        for section, lists in sections.items():
            for key in lists if section in ("talk", "feelings") else ():
                for line in words.lines(f"{section}.{key}", language):
                    re.compile(line)
        for key in ("stop", "small_talk", "generic"):
            spoken = words.block(f"talk.{key}", language).split()
            assert len(spoken) == len(set(spoken)), (language, key)


def test_every_form_of_a_date_has_a_reader() -> None:
    day = dates.date(2026, 11, 16)
    for text in ("8 May 2026", "last March", "two weeks ago", "เมื่อวาน", "2 สัปดาห์ที่แล้ว", "พฤษภาคม 2569"):
        assert dates.find_times(text, day)[0], text
