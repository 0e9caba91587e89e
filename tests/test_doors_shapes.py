"""Views: tables that fit a terminal, any value by its form, and nothing that steers a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import octavo
from octavo.domain.memory import Memory
from octavo.doors import cli, render
from octavo.doors.operations import OPERATIONS, perform
from octavo.doors.plain import clean, document
from octavo.doors.render.console import draw
from octavo.doors.render.shapes import Page, Table, grid, line, said, table, value_lines
from octavo.doors.settings import Settings

NOW = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
WORDS = st.text(alphabet="ab กีน้ำ漢字 \n", max_size=60)
STYLES = st.sampled_from(["", "bold", "red strike", "dim"])
ESCAPE = re.compile("\x1b\\[[0-9;]*m")
THAI_MARKS = "ัิีึืุู็่้๊๋์"
STEERING = "\x00\x07\x1b\x7f\x9b\u061c\u200e\u200f\u2028\u202e\u2066\u2069\ufff9\U000e0041"


def lines(shown, width: int = 80, *, coloured: bool = False) -> list[str]:
    drawn = draw(shown, width=width, coloured=coloured)
    return [each.rstrip(" ") for each in drawn.removesuffix("\n").split("\n")]


def two_columns(*rows: tuple[str, str]) -> Table:
    return table([{"n": n, "text": text} for n, text in rows])


def test_columns_stand_below_each_other_and_numbers_to_the_right():
    shown = two_columns(("1", "lives in Lampang"), ("12", "ชอบกาแฟดำ"))
    assert lines(shown) == [" n  text", " 1  lives in Lampang", "12  ชอบกาแฟดำ"]


def test_only_the_wide_column_folds_and_does_so_at_spaces():
    shown = two_columns(("1000", "one two three four five six seven"))
    assert lines(shown, 30) == ["   n  text", "1000  one two three four five", "      six seven"]


def test_a_word_without_spaces_is_broken_but_never_a_letter_from_its_marks():
    word = "น้ำตาลที่เชียงใหม่ก็หวานดีนะ" * 3
    folded = [each[3:] for each in lines(two_columns(("1", word)), 30)][1:]
    assert "".join(folded) == word
    assert len(folded) > 1
    assert not [each for each in folded if each[0] in THAI_MARKS]


def test_where_there_is_no_room_each_row_stands_by_itself_its_cells_below_each_other():
    first = ("01kajx2f6w9m4d8c7t5s", "2026-05-04 09:30", "4", "ย้ายมาเชียงใหม่แล้ว and likes it here very much")
    second = ("01kajx2f6w9m4d8c7t5t", "2026-05-04 09:31", "", "likes tea")
    rows = table([dict(zip(("id", "at", "lines", "text"), row, strict=True)) for row in (first, second)])
    assert lines(rows, 60) == [
        "id     01kajx2f6w9m4d8c7t5s",
        "at     2026-05-04 09:30",
        "lines  4",
        "text   ย้ายมาเชียงใหม่แล้ว and likes it here very much",
        "",
        "id    01kajx2f6w9m4d8c7t5t",
        "at    2026-05-04 09:31",
        "text  likes tea",
    ]
    assert len(lines(rows, 120)) == 3


@given(
    st.lists(st.tuples(WORDS, WORDS, st.integers(0, 10**12).map(str), WORDS), min_size=1, max_size=5),
    st.integers(min_value=24, max_value=60),
)
def test_no_line_of_a_table_is_wider_than_the_terminal(rows, width):
    made = table([dict(zip(("id", "name", "n", "text"), row, strict=True)) for row in rows])
    assert max(map(cell_len, lines(made, width))) <= width


ASKED = (
    *("memories", "sandboxes", "history", "refusals", "orders", "proposals", "rejections", "versions"),
    *("deletion_candidates", "merge_candidates", "cores", "spheres", "sessions", "assemblies", "patterns"),
    *("behaviors", "merge_log", "recall", "get", "stats", "buffer"),
)
LONG = "ย้ายมาเชียงใหม่แล้ว and likes it here very much, more than the harbour where the ferries leave"


def test_every_list_fits_forty_columns(tmp_path):
    with octavo.open(tmp_path, actor="human:nok", embedder=False) as account:
        account.remember(LONG, id="m", tags=["place"], topic="home/of/the/whole/family", scope="orion")
        account.remember(f"{LONG} now", id="other")
        account.revise("m", text=f"today {LONG}")
        account.remember("my card is 4111 1111 1111 1111")
        account.reject(f"never {LONG}", reason=LONG)
        account.sandbox(LONG[:60]).close()
        with account.sandbox("talk") as talk:
            talk.turn("user", f"from now on always tell me {LONG}")
    with octavo.open(tmp_path, actor="agent:orion", embedder=False) as account:
        account.remember(f"canon {LONG}", kind="canon")
    where, shown = Settings(root=tmp_path, actor="human:nok"), set()
    for operation in OPERATIONS:
        if operation.name in ASKED and not operation.writes:
            said = {"id": "m", "query": "ferries", "words": True, "sandbox": LONG[:60]}
            value = perform(operation, where, {k: v for k, v in said.items() if k in needed_by(operation)})
            for each in render.VIEWS.get(operation.name, value_lines)(value):
                if isinstance(each, Table):
                    shown.add(operation.name)
                    assert max(map(cell_len, lines(each, 40))) <= 40, operation.name
    assert {"memories", "sandboxes", "history", "refusals", "proposals", "rejections", "versions"} <= shown
    assert {"sessions", "recall", "get", "stats"} <= shown


def needed_by(operation):
    return {p.name for p in operation.parameters if p.is_required or p.name == "words"}


def test_names_and_values_stand_beside_each_other_and_what_is_empty_is_left_out():
    assert lines(grid({"id": "x", "tags": "", "text": "one\ntwo"})) == ["id    x", "text  one", "      two"]


def test_a_page_has_a_line_between_its_paragraphs_and_is_no_wider_than_a_book():
    shown = lines(Page([line("one two three " * 20), line("สอง")]), 200)
    assert max(map(cell_len, shown)) <= 88
    assert shown[-2:] == ["", "สอง"]


def test_the_lines_of_a_list_hang_behind_their_dashes():
    shown = Page([line(("What happened", "bold"), "\n- one two three four\n• ห้า หก เจ็ด แปด")])
    assert lines(shown, 14) == ["What happened", "- one two", "  three four", "• ห้า หก เจ็ด", "  แปด"]


def test_a_core_among_other_memories_is_told_by_its_first_paragraph():
    core = Memory(
        id="core_000_000", kind="core", text="May: 8 sessions.\n\nWhat happened\n- a", at=NOW, actor="system"
    )
    assert said(core).plain == "May: 8 sessions."


def test_sessions_fit_eighty_columns_as_one_table(tmp_path):
    with octavo.open(tmp_path, actor="human:nok", embedder=False) as account, account.sandbox("talk") as talk:
        talk.turn("user", "ย้ายมาเชียงใหม่แล้ว")
    with octavo.open(tmp_path, actor="human:nok", embedder=False) as account:
        (shown,) = render.VIEWS["sessions"]({"sessions": account.sessions()})
        assert len(lines(shown, 80)) == 2


@given(st.lists(st.tuples(WORDS, STYLES), max_size=6), st.integers(min_value=30, max_value=60))
def test_folding_loses_no_word_and_styles_change_no_character(pieces, width):
    text = line("x", *pieces)
    shown = two_columns(("1", text))
    plain = lines(shown, width)
    assert "".join("".join(plain).split()) == "".join(["n", "text", "1", *text.plain.split()])
    coloured = [ESCAPE.sub("", each).rstrip(" ") for each in lines(shown, width, coloured=True)]
    assert coloured == plain


class Song(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    sung_at: datetime
    times: int = 0
    by: str | None = None
    notes: tuple[str, ...] = ()


SONGS = [
    Song(title="ลาวดวงเดือน", sung_at=datetime(2026, 5, 4, 9, 30, tzinfo=UTC), times=3),
    Song(title="[red]Greensleeves[/red]", sung_at=datetime(2026, 5, 5, tzinfo=UTC), times=12, notes=("a",)),
]


def test_records_without_a_view_are_a_table_of_the_fields_that_say_something():
    (shown,) = value_lines({"songs": SONGS})
    assert lines(shown) == [
        "title                    sung at           times  notes",
        "ลาวดวงเดือน               2026-05-04 09:30      3",
        "[red]Greensleeves[/red]  2026-05-05 00:00     12  a",
    ]


def test_one_record_without_a_view_is_shown_field_by_field():
    (shown,) = value_lines(SONGS[0])
    assert lines(shown) == ["title    ลาวดวงเดือน", "sung at  2026-05-04 09:30", "times    3"]


@pytest.mark.parametrize(
    ("value", "text"),
    [({"songs": []}, "nothing found"), ({"path": Path("a/b")}, "a/b"), (3, "3"), (True, "yes"), (0.5, "0.5")],
)
def test_any_other_value_is_a_word(value, text):
    assert [shown.plain for shown in value_lines(value)] == [text]


def test_an_operation_without_a_view_is_shown_by_its_value(capfd):
    render.show("an operation of tomorrow", {"songs": ["ลาวดวงเดือน", "x\x1b[2J"]})
    assert capfd.readouterr().out == "ลาวดวงเดือน\nx\\x1b[2J\n"


def test_every_steering_character_is_shown_as_its_number():
    assert not set(clean(STEERING)) & set(STEERING)
    assert clean("\x1b\u202e\U000e0041") == "\\x1b\\u202e\\U000e0041"
    assert clean("บรรทัด\nที่สอง\t👩‍👩‍👧 می‌خواهم") == "บรรทัด\nที่สอง\t👩‍👩‍👧 می‌خواهم"


def test_a_column_s_name_is_data_too():
    (shown,) = value_lines({"songs": [{"[red]x\x1b": 1, "b": 2}, {"b": 3}]})
    assert lines(shown)[0] == "[red]x\\x1b  b"


def test_a_traceback_that_is_asked_for_steers_nothing(capfd, monkeypatch):
    def failing(**_):
        raise ValueError(EVIL)

    monkeypatch.setenv("OCTAVO_DEBUG", "1")
    assert cli.run(["stats"], failing) == 1
    err = capfd.readouterr().err
    assert "Traceback" in err
    assert not set(STEERING) & set(err)


def test_every_steering_character_is_escaped_in_json_and_comes_back():
    told = document({"name": STEERING, "ชื่อ": "กาแฟ"})
    assert not set(told) & set(STEERING)
    assert "กาแฟ" in told
    assert json.loads(told)["name"] == STEERING


# What a person, an agent or a document may have named; each stands in some view.
TURNED = "evil \x9b2J \u202e turned"  # where control characters are refused
EVIL = "evil \x1b]0;x\x07 \u202e turned"


def test_no_view_lets_a_name_or_a_text_steer_the_terminal(tmp_path, capfd, monkeypatch):
    monkeypatch.setenv("OCTAVO_EMBEDDER", "none")
    with octavo.open(tmp_path, actor="human:nok", embedder=False) as account:
        account.remember(
            f"fact {EVIL}", id="m", tags=[TURNED], topic=TURNED, category=TURNED, data={EVIL: EVIL}
        )
        account.revise("m", text=f"another {EVIL}")
        account.reject(f"never {EVIL}", reason=EVIL)
        sandbox = account.sandbox(EVIL)
        sandbox.turn(EVIL, f"said {EVIL}")
        sandbox.update_state(TURNED, {EVIL: EVIL})
        sandbox.remember(f"noted {EVIL}")
        sandbox.close()
        other = account.sandbox(EVIL + "2")
        other.turn(EVIL, f"heard {EVIL}")
        other.consolidate()
    with octavo.open(tmp_path, actor="agent:orion", embedder=False) as account:
        asked = account.remember(f"canon {EVIL}", kind="canon").proposal
    commands = [
        *(
            ["sandboxes"],
            ["buffer", sandbox.id],
            ["memories"],
            ["get", "m"],
            ["history", "m"],
            ["diff", "0", "2"],
        ),
        *(
            ["diff", "0"],
            ["proposals"],
            ["proposal", asked],
            ["rejections"],
            ["refusals"],
            ["versions"],
            ["stats"],
        ),
        *(["recall", "evil", "--why"], ["recall", "evil"], ["explain", "evil", "m"], ["brief", "evil"]),
        *(
            ["deletion-candidates"],
            ["merge-candidates"],
            ["sessions"],
            ["get", EVIL],
            ["turn", EVIL + "3", "x", "y"],
        ),
        *(
            ["remember", EVIL],
            ["memories", "--sandbox", EVIL],
            ["consolidate", sandbox.id],
            ["sandbox", EVIL],
        ),
    ]
    for command in commands:
        for more in ([], ["--json"]):
            cli.run(["--root", str(tmp_path), *command, *more])
            out, err = capfd.readouterr()
            assert not (set(STEERING) - {"\x00"}) & set(out + err), command


@pytest.mark.parametrize(
    ("said", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_a_terminal_gets_colours_unless_it_wants_none(tmp_path: Path, said, coloured) -> None:
    with octavo.open(tmp_path, embedder=False) as account:
        account.remember("ชอบกาแฟดำ", kind="register", topic="เครื่องดื่ม")
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "OCTAVO_ROOT": str(tmp_path)}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "octavo.doors.cli", "memories"]
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
