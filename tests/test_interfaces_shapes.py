"""Shapes: text in styles, and tables that fold to a width without cutting a letter from its marks."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import octavo
from octavo.interfaces.render.shapes import Column, Table, Text, written

STYLES = st.sampled_from(["", "bold", "red strike", "dim"])
WORDS = st.text(alphabet="ab กีน้ำ漢字 \n", max_size=60)
ESCAPE = re.compile("\x1b\\[[0-9;]*m")


def lines(table: Table, width: int = 80) -> list[str]:
    return list(table.lines(width, coloured=False))


def two_columns(*rows: tuple[str | Text, str | Text]) -> Table:
    made = Table(Column("n", is_right=True), Column("text", folds=True), has_header=True)
    for row in rows:
        made.add_row(*row)
    return made


def test_columns_stand_below_each_other_and_numbers_to_the_right():
    table = two_columns(("1", "lives in Lampang"), ("12", "ชอบกาแฟดำ"))
    assert lines(table) == [" n  text", " 1  lives in Lampang", "12  ชอบกาแฟดำ"]


def test_only_the_column_that_may_fold_does_so_at_spaces():
    table = two_columns(("100000000000000", "one two three four"))
    assert lines(table, 30) == [
        "              n  text",
        "100000000000000  one two three",
        "                 four",
    ]


def test_a_word_without_spaces_is_broken_but_never_a_letter_from_its_marks():
    word = "น้ำตาลที่เชียงใหม่ก็หวานดีนะ"
    folded = [line[3:] for line in lines(two_columns(("1", word)), 18)][1:]
    assert "".join(folded) == word
    assert len(folded) > 1
    assert not [line for line in folded if line[0] in "ัิีึืุู็่้๊๋์"]


def test_a_wide_character_takes_two_cells():
    table = Table(Column(), Column())
    table.add_row("漢字", "|")
    table.add_row("ab", "|")
    table.add_row("ที่", "|")
    assert lines(table) == ["漢字  |", "ab    |", "ที่     |"]


def test_lines_of_a_cell_stay_lines_and_missing_cells_are_empty():
    table = two_columns(("1", "first\nsecond"), ("2", "third"))
    table.add_row()
    assert lines(table)[1:] == ["1  first", "   second", "2  third", ""]


def test_airy_rows_have_a_line_between_them_and_a_page_is_no_wider_than_it_may_be():
    table = Table(Column(folds=True, widest=10), airy=True)
    table.add_row("one two three")
    table.add_row("สอง")
    assert lines(table, 200) == ["one two", "three", "", "สอง"]


def test_a_table_of_nothing_is_nothing():
    assert lines(Table(Column("text"))) == []


@given(st.lists(st.tuples(WORDS, STYLES), max_size=6), st.integers(min_value=13, max_value=60))
def test_folding_loses_no_word_and_styles_change_no_character(pieces, width):
    text = Text.assemble(*pieces)
    table = Table(Column(folds=True))
    table.add_row(text)
    plain = list(table.lines(width, coloured=False))
    assert "".join("".join(plain).split()) == "".join(text.plain.split())
    coloured = [ESCAPE.sub("", line).rstrip(" ") for line in table.lines(width, coloured=True)]
    assert coloured == plain


def test_neighbours_of_one_style_share_their_escape():
    pieces = [("a", "red"), ("b", "red"), ("", "bold"), ("c", "")]
    assert written(pieces, coloured=True) == "\x1b[31mab\x1b[0mc"
    assert written(pieces, coloured=False) == "abc"


@pytest.mark.parametrize(
    ("said", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_gets_colours_unless_it_wants_none(tmp_path: Path, said, coloured) -> None:
    with octavo.open(tmp_path, embedder=False) as account:
        account.remember("ชอบกาแฟดำ", kind="register", topic="เครื่องดื่ม")
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "OCTAVO_ROOT": str(tmp_path)}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "octavo.interfaces.cli", "memories"]
    subprocess.run(command, stdout=follower, env=environment | said, check=True)
    os.close(follower)
    shown = b""
    try:
        while part := os.read(leader, 65536):
            shown += part
    except OSError:
        pass  # everything is read, and nobody writes any more
    finally:
        os.close(leader)
    assert "ชอบกาแฟดำ" in shown.decode()
    assert (b"\x1b[" in shown) is coloured
