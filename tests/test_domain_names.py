"""Names: who is meant by the whole of a name, a part of it, an alias, or what others call somebody."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from octavo.domain.memory import Memory, Turn, transcript
from octavo.domain.names import agreed, called_in, meanings
from octavo.domain.query import read_question

NOW = date(2026, 5, 1)


def episode(*turns: tuple[str, str]) -> Memory:
    said = tuple(Turn(speaker=speaker, text=text) for speaker, text in turns)
    at = datetime(2026, 3, 1, tzinfo=UTC)
    return Memory(id="e1", kind="episode", text=transcript(said), turns=said, at=at)


def meant(question: str, *speakers: str, **more: dict[str, str]) -> str | None:
    names = meanings(speakers, **more)
    return read_question(question, now=NOW, speakers=speakers, names=names).speaker


def test_a_part_of_a_name_means_the_one_speaker_who_has_it():
    assert meant("what does Fahim cook?", "Fahim Khan", "Nok") == "Fahim Khan"
    assert meant("what does Fahim Khan cook?", "Fahim Khan", "Nok") == "Fahim Khan"
    assert meant("what are Khan's plans?", "Fahim Khan", "Nok") == "Fahim Khan"
    assert meant("สมชายทำงานที่ไหน", "สมชาย ใจดี", "Nok") == "สมชาย ใจดี"


def test_an_ambiguous_name_is_nobodys():
    assert meant("what does Fahim cook?", "Fahim Khan", "Fahim Ali") is None
    assert meant("what does Fahim Ali cook?", "Fahim Khan", "Fahim Ali") == "Fahim Ali"


def test_a_speaker_of_exactly_that_name_goes_before_one_who_has_it_as_a_part():
    assert meant("what does Fahim cook?", "Fahim Khan", "Fahim") == "Fahim"


def test_a_common_word_is_no_part_of_a_name_and_case_tells_the_others():
    assert meant("when will we meet?", "Will Smith", "Nok") is None
    assert meant("is the rose red?", "Rose Hall", "Nok") is None
    assert meant("where does Rose live?", "Rose Hall", "Nok") == "Rose Hall"


def test_an_alias_means_whom_it_was_given_to():
    assert meant("where does Kate live?", "Emi", "Nok", aliases={"Kate": "Emi"}) == "Emi"
    assert meant("where does Kate live?", "Fahim Khan", "Nok", aliases={"Kate": "Fahim"}) == "Fahim Khan"
    assert meant("where does Kate live?", "Nok", aliases={"Kate": "Emi"}) is None


def test_a_name_that_a_speaker_is_called_by_means_that_speaker():
    talk = [episode(("Melanie", "Hey Caro!"), ("Caroline", "Hi Mel, how are you?"))] * 2
    uses = [(name, speaker, 1) for memory in talk for name, speaker in called_in(memory)]
    called = agreed(uses)
    assert called == {"Caro": "Caroline", "Mel": "Melanie"}
    assert meant("what did Mel paint?", "Caroline", "Melanie", called=called) == "Melanie"


def test_a_greeting_of_everybody_names_nobody_and_once_is_not_enough():
    talk = episode(("Ana", "Hi there! Thanks, everyone."), ("Bo", "Hello Ana, hi Kit!"), ("user", "Hi Bo."))
    assert list(called_in(talk)) == []
    pair = episode(("Ana", "Hi there! Hey Kit!"), ("Bo", "Hi."))
    assert list(called_in(pair)) == [("Kit", "Bo")]
    assert agreed([("Kit", "Bo", 1)]) == {}
    assert agreed([("Kit", "Bo", 2), ("Kit", "Ana", 2)]) == {}


def test_nobody_is_called_by_a_role():
    assert list(called_in(episode(("user", "Thanks, Orion!"), ("assistant", "Bye, Nok.")))) == []


def test_in_thai_a_speaker_is_called_by_a_title_and_a_name():
    said = episode(("Nok", "สวัสดีค่ะ คุณเมล วันนี้เป็นไงบ้าง"), ("Melanie", "ขอบคุณนะพี่นกครับ"), ("Nok", "ขอบคุณค่ะ"))
    assert list(called_in(said)) == [("เมล", "Melanie"), ("นก", "Nok")]
    assert meant("เมลชอบกินอะไร", "Melanie", "Nok", called={"เมล": "Melanie"}) == "Melanie"


def test_a_name_that_is_a_common_word_is_meant_as_it_is_written():
    assert meant("what will the weather be?", "Will", "Nok") is None
    assert meant("what does Will cook?", "Will", "Nok") == "Will"


@pytest.mark.parametrize(
    ("speaker", "known", "unknown"),
    [
        ("ณัฐพล (บอย)", ("ณัฐพล", "บอย"), ()),
        ("สมชาย ใจดี", ("สมชาย",), ("ใจดี",)),  # Thai surnames are words, and nobody is called by one
        ("Dr. Emily Stone", ("Emily", "Stone"), ("Dr", "Dr.")),
        ("van der Berg, Anna", ("Berg", "Anna"), ("van", "der")),
        ('Robert "Bob" Smith', ("Robert", "Bob", "Smith"), ()),
        ("Jean-Luc Picard", ("Jean-Luc", "Picard"), ()),
    ],
)
def test_people_go_by_first_names_surnames_and_nicknames_not_by_titles(speaker, known, unknown):
    meant = meanings([speaker, "Somebody Else"])
    assert all(meant.get(name) == speaker for name in known)
    assert not set(unknown) & set(meant)
