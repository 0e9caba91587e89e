"""Lines that hold an erased text are found however they spell it; every other line stays as it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.domain.erasure import Erasure, plain
from octavo.domain.text import key_of

CANARY = "the zebraquux canary sings in the mine"
THAI = "นกขมิ้นลับเฉพาะร้องเพลงในเหมือง"
NEIGHBOURS = (
    b'{"id": "bbbbbbbbbbbb", "text": "the canary is a bird", "scope":"shared" }',
    '{"id": "cccccccccccc", "text": "นกขมิ้นเป็นนก"}'.encode(),
    b"  not json, but somebody's  ",
    b"",
    b'{"id": "dddddddddddd", "text": "the mine is clo',
    b"\xff\xfe\x00 bytes \r",
)


def erasure(*texts: str, ids: tuple[str, ...] = (), wordings: bool = True) -> Erasure:
    keys = {key_of(text) for text in texts}
    return Erasure(
        ids=set(ids),
        is_erased=lambda text: key_of(text) in keys,
        mask="[redacted]",
        wordings=texts if wordings else (),
    )


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize("text", [CANARY, THAI])
@pytest.mark.parametrize(
    "spelt",
    [
        lambda text: line(id="x", text=text),
        lambda text: line(text=text.upper() + " !"),
        lambda text: json.dumps({"text": text}, ensure_ascii=False).encode(),
        lambda text: line(text=5, note={"deep": [text]}),
        lambda text: json.dumps([text]).encode(),
        lambda text: line(id="x", text=text)[:-1],
        lambda text: line(text=text, version=3)[:-9],
        lambda text: b'{"id": "x" "text": ' + json.dumps(text).encode() + b"}",
        lambda text: f"note to self: {text} (do not tell)".encode(),
        lambda text: b'{"text": ' + json.dumps(text).encode()[: 6 + len(json.dumps(text)) // 2],
        lambda text: b'{"text": "' + text.encode()[: len(text.encode()) // 2],
    ],
)
def test_a_text_is_found_whole_torn_or_escaped(text, spelt):
    held = spelt(text)
    data = b"\n".join([*NEIGHBOURS, held, *NEIGHBOURS])
    assert erasure(text).without(data) == b"\n".join([*NEIGHBOURS, *NEIGHBOURS])
    assert erasure("somebody else's words entirely").without(data) == data


@pytest.mark.parametrize(
    "held",
    [
        line(id="aaaaaaaaaaaa", text="masked when it was taken in"),
        b'{"id": "aaaaaaaaaaaa", "version": 2, "te',
        b'garbage" {"id": "aaaaaaaaaaaa", "text": "x"',
    ],
)
def test_a_line_is_found_by_the_memory_it_names(held):
    data = b"\n".join([NEIGHBOURS[0], held])
    gone = erasure(ids=("aaaaaaaaaaaa",))
    assert gone.without(data) == NEIGHBOURS[0] + b"\n"  # so that who appends begins a line of its own
    assert gone.without(data, lambda line: b"instead") == NEIGHBOURS[0] + b"\ninstead"


def test_a_line_is_found_by_the_memory_it_became():
    data = b"\n".join([line(id="has spaces", text="password"), line(text="no id at all"), NEIGHBOURS[0]])
    named = {1: "aaaaaaaaaaaa", 2: "eeeeeeeeeeee"}
    assert erasure(ids=("aaaaaaaaaaaa", "eeeeeeeeeeee")).without(data, None, named) == NEIGHBOURS[0]


def test_a_line_that_was_erased_already_stays():
    data = line(id="aaaaaaaaaaaa", text="[redacted]") + b"\n"
    assert erasure(CANARY, ids=("aaaaaaaaaaaa",)).without(data) == data


def test_a_memory_that_stays_is_left_alone_though_it_says_the_same():
    data = b"\n".join(
        [line(id="aaaaaaaaaaaa", text=CANARY), line(id="orion", text=CANARY), line(text=CANARY)]
    )
    gone = Erasure(
        ids={"aaaaaaaaaaaa"},
        is_erased=lambda text: key_of(text) == key_of(CANARY),
        mask="[redacted]",
        is_other=lambda id_: id_ == "orion",
    )
    assert gone.without(data) == line(id="orion", text=CANARY) + b"\n"


def test_one_word_of_a_text_erases_no_neighbour():
    data = b"\n".join([line(id="a", text="shared ideas", scope="shared"), b'{"scope": "unshared", "te'])
    assert erasure("shared").without(data) == data


def test_a_lone_half_of_a_surrogate_pair_and_a_cut_escape_are_read_as_far_as_they_go():
    assert plain(r"a\ud83d") == "a\ufffd"
    assert plain(r"\u0e01\n\"\\") == 'ก\n"\\'


# A colon may begin a value that is cut off, and the start of a text is a reason to go.
@given(st.lists(st.binary(max_size=40).filter(lambda raw: b":" not in raw), max_size=6))
def test_any_other_bytes_come_back_as_they_were(lines):
    data = b"\n".join(lines)
    assert erasure(CANARY, ids=("aaaaaaaaaaaa",)).without(data) == data
