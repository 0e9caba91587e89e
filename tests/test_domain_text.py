"""The analysis that words are indexed and compared by."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indexes import terms
from octavo.domain.text import STOP_WORDS, fold, grams, key_of, normalise, passages, stem, words


def test_stop_words_carry_no_term():
    assert terms("What did the two of them do?") == ["two"]
    assert all(terms(word) == [] for word in STOP_WORDS)


@pytest.mark.parametrize(
    ("one", "other"),
    [("hiking", "hiked"), ("went", "go"), ("bought", "buying"), ("children", "child"), ("pets", "pet")],
)
def test_forms_of_one_word_share_a_term(one, other):
    assert terms(one) == terms(other)


def test_thai_becomes_overlapping_trigrams():
    assert terms("เชียงใหม่") == grams("เชียงใหม่", 3)
    assert set(terms("เชียงใหม่")) <= set(terms("ฉันย้ายไปเชียงใหม่เมื่อวาน"))


def test_chinese_and_japanese_become_pairs_so_that_short_words_are_found():
    assert terms("東京") == ["東京"]
    assert "東京" in terms("東京都に住む")


def test_mixed_scripts_are_split_where_the_script_changes():
    assert terms("ใช้Pythonเขียน") == ["ใช้", "python", *grams("เขียน", 3)]


def test_underscores_and_apostrophes_do_not_hide_words():
    assert terms("hiking_trails Mali's") == [stem("hiking"), stem("trails"), stem("malis")]


def test_invisible_characters_and_look_alikes_do_not_hide_words():
    assert terms("pass\u200bword") == terms("password")
    assert fold("раypal") == "paypal"
    assert key_of("Green  tea!") == key_of("green tea")


def test_every_invisible_character_of_unicode_is_dropped():
    formats = [chr(point) for point in range(0x110000) if unicodedata.category(chr(point)) == "Cf"]
    assert [c for c in formats if normalise(f"ก{c}ข") != "กข"] == []


@given(st.text(max_size=60) | st.text("' ’`aก", max_size=12))
def test_a_folded_text_has_single_spaces_and_none_around_it(text):
    assert fold(text) == " ".join(fold(text).split())


@given(st.text(st.characters(max_codepoint=127), max_size=100))
@example("'")
def test_plain_ascii_is_read_as_the_same_words_as_beside_other_letters(text):
    assert [*terms(text), "ก"] == terms(f"{text} ก")
    assert f"{fold(text)} ก".strip() == fold(f"{text} ก")


@given(st.text(st.characters(max_codepoint=127)))
def test_plain_ascii_has_the_same_key_and_words_as_beside_other_letters(text):
    assert words(f"{text} ö") == [*words(text), "ö"]
    assert key_of(f"{text} ö").split() == [*key_of(text).split(), "ö"]


@given(st.text(max_size=200))
def test_terms_do_not_depend_on_the_form_of_the_text(text):
    assert terms(normalise(text)) == terms(normalise(normalise(text)))


@given(st.text(alphabet="abc กขค.\n東", max_size=2000), st.integers(5, 60))
def test_no_passage_is_longer_than_the_limit_and_nothing_but_space_is_lost(text, limit):
    pieces = passages(text, limit)
    assert pieces
    assert all(len(piece) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_passages_end_where_sentences_end():
    text = "One sentence here. Another sentence there. ประโยคภาษาไทยยาวๆ"
    assert passages(text, 40) == ["One sentence here.", "Another sentence there.", "ประโยคภาษาไทยยาวๆ"]


def test_a_short_text_is_one_passage_as_it_is():
    assert passages(" two  spaces ") == [" two  spaces "]


def test_words_keep_stop_words_because_look_alikes_are_judged_by_all_of_them():
    assert words("the cat") == ["the", "cat"]
