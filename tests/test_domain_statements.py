"""What people decide, plan and say of themselves: negation, tense, change, courtesy."""

from __future__ import annotations

import pytest

from octavo.domain.cores import Statement
from octavo.domain.statements import changes, holding, kind_of

DECIDED = [
    "I've decided on a three-deck electric oven.",
    "We agreed to close the shop on Mondays.",
    "Let's go with SQLite.",
    "I said no to the supermarket.",
    "ผมตัดสินใจลาออกจากโรงเรียนสิ้นเดือนมีนาคม",
]
PLANNED = [
    "I'll operate on him myself on Thursday.",
    "Next month I'm going to rent a small studio at the mill.",
    "The operation is on 14 October at the Infirmary.",
    "I will bake the bread for your opening on 9 May.",
    "เราวางแผนจะปลูกต้นกาแฟใหม่ปีหน้า",
]
OF_THEMSELVES = [
    "I prefer metric units",
    "I'm allergic to peanuts.",
    "I don't eat meat any more.",
    "I've stopped smoking since Easter.",
    "ผมไม่ชอบชีวิตในเมืองใหญ่เลย",
]
NOTHING = [
    "I can't decide between the red and the blue oven.",
    "We haven't decided on the oven yet.",
    "Help me choose a name for the bakery.",
    "All files are with Wren & Thistle, five days before the deadline.",
    "Maybe I'll visit Lisbon someday.",
    "I was going to call the bank.",
    "I'll let you know about the loan.",
    "I love it, what a picture!",
    "I'd love to see the harbour.",
    "I'm so proud of the whole team.",
    "Shall we go with SQLite?",
    "You decided to sell the van.",
    "ผมยังตัดสินใจไม่ได้ว่าจะขายสวนกาแฟ",
    "ขอบคุณมากครับ",
]


def said(text: str, day: int, speaker: str = "user") -> Statement:
    return Statement(
        kind="preference",
        text=text,
        speaker=speaker,
        at=f"2026-03-{day:02d}T09:00:00+00:00",
        from_session=f"s{day}",
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *((text, "decision") for text in DECIDED),
        *((text, "commitment") for text in PLANNED),
        *((text, "preference") for text in OF_THEMSELVES),
        *((text, None) for text in NOTHING),
    ],
)
def test_a_statement_is_what_it_does(text: str, kind: str | None) -> None:
    assert kind_of(text) == kind
    assert kind_of(text.replace("'", "’")) == kind


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("I'm not a coffee person, but I drank two cups.", "I guess I'm a coffee person now."),
        ("I'm a vegetarian.", "I'm not a vegetarian any more, I'm a pescatarian."),
        ("I don't eat meat any more.", "I guess I'm a pescatarian now."),
        ("I hate mornings in the bakery.", "I've begun to like mornings in the bakery."),
    ],
)
def test_a_later_statement_ends_the_earlier_one_about_the_same_thing(earlier: str, later: str) -> None:
    old, new = said(earlier, 1), said(later, 9)
    assert changes([old, new]) == [(old, new)]
    assert holding([old, new]) == [new]


def test_another_person_or_another_thing_ends_nothing() -> None:
    rows = [said("I'm a vegetarian.", 1, "Maya"), said("I'm not a vegetarian any more.", 9, "Ben")]
    assert changes(rows) == []
    assert changes([said("I love jazz.", 1), said("I no longer drink coffee.", 9)]) == []


@pytest.mark.parametrize(
    "text", ["I used to hate fish, but now I eat it weekly.", "ผมเคยชอบกาแฟเย็นแต่ตอนนี้ชอบกาแฟดริป"]
)
def test_a_sentence_that_tells_both_sides_stands_alone(text: str) -> None:
    row = said(text, 1)
    assert changes([row]) == [(None, row)]
