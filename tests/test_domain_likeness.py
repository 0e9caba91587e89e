"""Near-duplicates are recognised, told apart from corrections, and found among many."""

from __future__ import annotations

import random
from collections.abc import Callable
from difflib import SequenceMatcher
from math import ceil

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from rapidfuzz.distance import LCSseq

from octavo.domain import likeness
from octavo.domain.likeness import (
    contrast,
    filed_under,
    is_near,
    overlap,
)
from octavo.domain.policy import GatePolicy
from octavo.domain.state import CANDIDATES, MANY, most_shared
from octavo.domain.text import fold, words

POLICY = GatePolicy()


def fingerprint(text: str) -> set[int]:
    """What a text is filed under besides its key, in any kind and scope."""
    _, *numbers = filed_under("fact", "shared", text)
    return set(numbers)


def sequence(a: str, b: str) -> float:
    """The ratio of matching stretches, whichever text comes first."""
    return likeness._ratio(*likeness._stretches(a, b))


def is_near_by_words(a: str, b: str, threshold: float) -> bool:
    """Whether two texts of comparable size share enough of their words."""
    return likeness._share_enough(set(words(a)), set(words(b)), threshold)


BURST = (
    "Burst mode lets the agent run several ticks in a row without waiting for the operator",
    "In burst mode the agent runs several ticks in a row and does not wait for operator input",
)
PYTHON = (
    "User is building a Python agent with long memory",
    "User works on a Python project, an agent with tools",
)


def meet(a: str, b: str) -> bool:
    return bool(fingerprint(a) & fingerprint(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("prefers dark mode in all apps", "prefers dark mode in all applications"),
        BURST,
        ("likes tea", "Likes tea!"),
        ("tea", "Tea"),
        ("Anna likes green tea", "Ｎａ: anna likes green tea"),
        ("ชอบกินข้าวเหนียวมะม่วง", "ชอบกินข้าวเหนียวมะม่วงครับ"),
        ("นัดหมอฟันวันศุกร์บ่ายสามโมง", "นัดหมอฟันวันศุกร์บ่ายสี่โมง"),
        ("喜欢喝绿茶和咖啡", "喜欢喝绿茶与咖啡"),
    ],
)
def test_texts_that_say_nearly_the_same_are_near_either_way(a: str, b: str) -> None:
    assert is_near(a, b, POLICY)
    assert is_near(b, a, POLICY)
    assert meet(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        PYTHON,
        ("tea", "likes green tea"),
        ("likes tea", "likes long walks on the beach"),
        (
            "uses dark mode",
            "uses a dark room and airplane mode when she develops photos in the cellar at night",
        ),
        ("Favorite editor is VS Code", "The ledger is written once and never changed"),
        ("ชอบชา", "ไปเที่ยวเชียงใหม่กับครอบครัวเดือนหน้า"),
        ("", "likes tea"),
        ("", ""),
        ("...", "!!!"),
    ],
)
def test_texts_that_share_little_are_not_near(a: str, b: str) -> None:
    assert not is_near(a, b, POLICY)
    assert not is_near(b, a, POLICY)


def test_overlap_is_shared_words_over_the_smaller_set() -> None:
    assert overlap(*BURST) == pytest.approx(11 / 15)
    assert overlap(*PYTHON) == pytest.approx(5 / 9)
    assert overlap("tea", "likes tea") == 1.0
    assert overlap("", "tea") == 0.0


def test_the_policy_sets_both_thresholds() -> None:
    assert is_near(*PYTHON, GatePolicy(token_overlap=0.5))
    assert is_near(*PYTHON, GatePolicy(sequence_ratio=0.6))
    assert not is_near(*BURST, GatePolicy(token_overlap=0.75, sequence_ratio=0.8))


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_measures_lie_between_0_and_1_and_do_not_depend_on_the_order(a: str, b: str) -> None:
    assert 0 <= overlap(a, b) == overlap(b, a) <= 1
    assert 0 <= sequence(a, b) == sequence(b, a) <= 1
    assert is_near(a, b, POLICY) == is_near(b, a, POLICY)
    assert is_near(a, a, POLICY) == bool(fold(a))


@given(st.text("abc ", max_size=40), st.text("abc ", max_size=40))
def test_the_quick_bound_never_rejects_what_the_ratio_admits(a: str, b: str) -> None:
    first, second = likeness._stretches(a, b)
    longest = LCSseq.similarity(first, second)
    assert 2 * longest >= sequence(a, b) * (len(first) + len(second)) - 1e-9


def test_short_texts_are_compared_by_characters_and_long_ones_by_words() -> None:
    short = ("likes hiking", "like hikes")
    assert sequence(*short) == SequenceMatcher(None, *sorted(short, key=len), autojunk=False).ratio()
    long = " ".join(f"word{n}" for n in range(60))
    assert sequence(long, long.replace("word7 ", "other ")) == pytest.approx(59 / 60)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("Alice likes green tea", "Bob likes green tea", "name"),
        ("The meeting with Alice is on Monday", "The meeting with Alice is on Friday", "name"),
        ("lives in Bangkok", "lives in Bangkok near Asok", "name"),
        ("meeting at 3", "meeting at 4", "number"),
        ("has two cats", "has three cats", "number"),
        ("budget is 1,000 baht", "budget is 10,000 baht", "number"),
        ("version 3.11 is used", "version 3.12 is used", "number"),
        ("likes tea", "does not like tea", "negation"),
        ("likes tea", "doesn't like tea", "negation"),
        ("drinks coffee with sugar", "drinks coffee without sugar", "negation"),
        ("no longer eats meat", "eats meat", "negation"),
        ("likes green tea", "likes black coffee", "term"),
        ("likes green tea", "likes black tea", "term"),
        ("works at the bank", "worked at the bank", "term"),
        ("his dog is old", "her dog is old", "term"),
        ("the flight to paris", "the flight from paris", "term"),
        ("likes tea", "likes tea but only in winter", "term"),
        ("allergic to nuts", "allergic to nuts and shellfish", "term"),
        ("allergic to nuts and shellfish", "allergic to nuts", "term"),
        ("the cat chased the dog", "the dog chased the cat", "term"),
        ("has hypertension", "has hypotension", "term"),
        ("ชอบชาเขียว", "ไม่ชอบชาเขียว", "negation"),
        ("ใส่ผักชีได้", "อย่าใส่ผักชี", "negation"),
        ("เคยไปญี่ปุ่น", "ไม่ได้ไปญี่ปุ่น", "negation"),
        ("นัดบ่าย 3 โมง", "นัดบ่าย 4 โมง", "number"),
        ("นัดบ่าย ๓ โมง", "นัดบ่าย ๔ โมง", "number"),
        ("แม่ชอบชาเขียว", "พ่อชอบชาเขียว", "term"),
        ("ชอบหมา", "ชอบมา", "term"),
        ("แพ้กุ้ง", "แพ้กุ้งและปู", "term"),
        ("อย่างนี้ดี", "นี้ดี", "term"),
    ],
)
def test_a_change_is_named_and_both_ways_it_is_one(old: str, new: str, what: str) -> None:
    assert contrast(old, new) == what
    assert contrast(new, old) == what


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("prefers dark mode in all apps", "prefers dark mode in all applications"),
        ("User prefers dark mode", "The user really prefers dark mode."),
        ("Prefers dark mode", "prefers dark mode"),
        ("I like green tea", "likes green tea!"),
        ("favourite colour is blue", "favorite color is blue"),
        ("has 1,000 euros", "has 1000 euros"),
        ("has two cats", "has 2 cats"),
        ("does not like tea", "doesn't like tea"),
        ("Anna likes tea", "Αnna likes tea"),
        ("ชอบชาเขียว", "ชอบชาเขียวครับ"),
        ("ผมชอบชาเขียว", "ชอบชาเขียวมากค่ะ"),
        ("นัดบ่าย ๓ โมง", "นัดบ่าย 3 โมง"),
        ("ชอบชา เขียว", "ชอบชาเขียว"),
        ("ชอบ\u200bชาเขียว", "ชอบชาเขียว"),
    ],
)
def test_a_restatement_contrasts_with_nothing(old: str, new: str) -> None:
    assert contrast(old, new) is None
    assert contrast(new, old) is None


@given(st.text(max_size=80))
def test_a_text_restates_itself(text: str) -> None:
    assert contrast(text, text) is None


def test_long_texts_are_told_apart_as_short_ones_are() -> None:
    for texts, more in ((ENGLISH, ", really."), (THAI, "ครับ")):
        long = " ".join(texts)
        assert contrast(long, long + more) is None
        assert contrast(long, " ".join(texts[::-1])) == "term"
        assert contrast(long, long + " 5") == "number"


def test_what_a_text_is_filed_under_is_stable_and_within_29_bits() -> None:
    numbers = filed_under("fact", "shared", "Anna likes green tea")
    assert numbers == filed_under("fact", "shared", "  anna LIKES green tea!")
    assert numbers[0] == 104892527
    assert sum(numbers) == 3355677394
    assert fingerprint("") == fingerprint("...") == set()


def test_kinds_and_scopes_are_filed_apart() -> None:
    apart = [
        filed_under(*place, "Anna likes green tea")
        for place in (("fact", "a"), ("fact", "b"), ("canon", "a"))
    ]
    assert len(set().union(*apart)) == sum(map(len, apart))


@given(st.text(max_size=1200))
def test_a_text_is_filed_under_few_numbers(text: str) -> None:
    numbers = filed_under("fact", "shared", text)
    assert len(numbers) <= 1 + 21 + 7
    assert all(0 <= number < 2**29 for number in numbers)
    assert bool(fingerprint(text)) == bool(words(text))


# Words that share a head, common words, numbers and Thai among words of their own.
_VOCABULARY = [
    "person", "personal", "personality", "the", "a", "in", "likes", "user", "prefers", "green", "tea",
    "violet", "umbrella", "harbour", "sailing", "42", "7", "ชา", "กา", "หมา", "แมว", "ไป", "มา", "ชอบ",
    "Ελένη", "кот",
]  # fmt: skip


@st.composite
def near_pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Two texts of at most ten words, each with three of five of its words in the other."""
    ours = draw(st.lists(st.sampled_from(_VOCABULARY), min_size=3, max_size=10, unique=True))
    count = draw(st.integers(ceil(POLICY.token_overlap * len(ours)), len(ours)))
    shared = draw(st.permutations(ours))[:count]
    others = st.sampled_from([word for word in _VOCABULARY if word not in ours])
    room = min(int(count / POLICY.token_overlap), 10) - count
    extra = draw(st.lists(others, max_size=room, unique=True))
    return " ".join(ours), " ".join(shared + extra)


@given(near_pairs(), st.booleans())
@example(("person personal personality", "personality personal person tea green"), True)
def test_every_pair_near_by_words_meets_in_its_fingerprints(pair: tuple[str, str], swapped: bool) -> None:
    a, b = reversed(pair) if swapped else pair
    assume(is_near_by_words(a, b, POLICY.token_overlap))
    assert meet(a, b)


ENGLISH = [
    "Anna is allergic to peanuts and carries an injector in her handbag",
    "The weekly planning call moved to Thursday morning at half past nine",
    "Prefers window seats on long flights and aisle seats on short ones",
    "Bob's daughter started violin lessons at the music school in September",
    "The backup of the production database runs every night at two",
    "She wants reminders by text message and never by phone call",
    "Kai is writing a small compiler in Rust as a birthday present for himself",
    "Their landlord agreed to repair the balcony before the rainy season",
    "Uses a split keyboard because of an old wrist injury",
    "The invoice for the garden shed was paid from the joint account",
    "Mira collects vintage postcards from harbour towns",
    "Dinner guests on Saturday include two vegetarians and one vegan",
    "The old laptop overheats when more than one browser is open",
    "He trains for the city marathon three evenings a week along the river",
    "Grandmother's recipe for plum cake needs less sugar than the book says",
    "The team agreed to freeze features two weeks before each release",
    "Prefers short answers with a source over long explanations",
    "The spare key is with the neighbour on the second floor",
    "Lena speaks Finnish with her children and English at work",
    "The dentist recommended a softer brush after the last visit",
    "Orders groceries on Sunday evening from the shop near the station",
    "The cat needs its thyroid tablets twice a day with food",
    "Wants all dates written with the day before the month",
    "Tom sold the sailing boat last spring and regrets it a little",
    "The hiking group meets behind the town hall if it does not snow",
]
THAI = [
    "แม่แพ้กุ้งและปูแต่กินปลาหมึกได้",
    "นัดหมอฟันวันศุกร์บ่ายสามโมงที่คลินิกใกล้บ้าน",
    "น้องชายเพิ่งเริ่มเรียนกีตาร์ที่โรงเรียนดนตรีเมื่อเดือนก่อน",
    "ชอบนั่งริมหน้าต่างเวลาบินไกลแต่เลือกริมทางเดินเวลาบินใกล้",
    "บริษัทย้ายประชุมประจำสัปดาห์ไปเป็นเช้าวันพฤหัส",
    "พ่อปลูกมะม่วงน้ำดอกไม้ไว้หลังบ้านสามต้น",
    "อยากให้เตือนทางข้อความไม่ต้องโทรมา",
    "ลูกสาวพูดภาษาฟินแลนด์กับพ่อและภาษาไทยกับแม่",
    "รถคันเก่าร้อนจัดเวลาขึ้นเขาต้องพักทุกครึ่งชั่วโมง",
    "ซ้อมวิ่งมาราธอนสัปดาห์ละสามเย็นริมแม่น้ำ",
    "คุณยายทำขนมเทียนใส่น้ำตาลน้อยกว่าสูตรในหนังสือ",
    "เจ้าของบ้านรับปากจะซ่อมระเบียงก่อนเข้าหน้าฝน",
    "แมวต้องกินยาไทรอยด์วันละสองครั้งพร้อมอาหาร",
    "ชอบคำตอบสั้นๆ พร้อมแหล่งอ้างอิงมากกว่าคำอธิบายยาว",
    "กุญแจสำรองฝากไว้กับเพื่อนบ้านชั้นสอง",
    "สั่งของสดทุกเย็นวันอาทิตย์จากร้านหน้าสถานีรถไฟ",
    "ใช้แป้นพิมพ์แยกครึ่งเพราะเคยบาดเจ็บที่ข้อมือ",
    "ขายเรือใบไปเมื่อต้นปีแล้วก็แอบเสียดายอยู่บ้าง",
    "แขกมื้อเย็นวันเสาร์มีคนกินมังสวิรัติสองคน",
    "ทีมตกลงหยุดเพิ่มความสามารถสองสัปดาห์ก่อนออกรุ่นใหม่",
    "สะสมโปสการ์ดเก่าจากเมืองท่าทั่วเอเชีย",
    "สำรองฐานข้อมูลทุกคืนตอนตีสองบนเครื่องที่เชียงราย",
    "หมอฟันแนะนำให้เปลี่ยนเป็นแปรงขนนุ่มหลังตรวจครั้งล่าสุด",
    "กลุ่มเดินป่านัดเจอหลังศาลากลางถ้าฝนไม่ตก",
]


def one_word(text: str, rng: random.Random) -> str:
    """A text with one to three words dropped, doubled with a filler, replaced or misspelt."""
    parts = text.split()
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(parts))
        change = rng.randrange(4)
        if change == 0 and len(parts) > 3:
            del parts[place]
        elif change == 1:
            parts.insert(place, rng.choice(["really", "also", "Tuesday", "new", "usually"]))
        elif change == 2:
            parts[place] = rng.choice(rng.choice(ENGLISH).split())
        else:
            parts[place] = misspelt(parts[place], rng)
    return " ".join(parts)


def most_words(text: str, rng: random.Random) -> str:
    """A text with most of its words inflected or misspelt, so that only the stretches are alike."""
    return " ".join(misspelt(word, rng) if rng.random() < 0.6 else word for word in text.split())


def misspelt(word: str, rng: random.Random) -> str:
    place = rng.randrange(len(word))
    return rng.choice(
        [
            word[:place] + word[place + 1 :],
            word[:place] + word[place:] + word[place],
            word + "s",
            word + "ed",
            word[:-1],
        ]
    )


def a_stretch(text: str, rng: random.Random) -> str:
    """A text with a stretch of up to eight characters put in, taken out or replaced."""
    place, size, other = rng.randrange(len(text)), rng.randint(1, 8), rng.choice(THAI)
    return rng.choice(
        [text[:place] + other[:size] + text[place:], text[:place] + text[place + size :],
         text[:place] + other[:size] + text[place + size :]]
    )  # fmt: skip


def many_characters(text: str, rng: random.Random) -> str:
    """A text with about one character of ten lost, doubled or replaced."""
    choices = [lambda c: "", lambda c: c + c, lambda c: rng.choice("กนมรยาสท")]
    return "".join(rng.choice(choices)(c) if rng.random() < 0.1 else c for c in text)


@pytest.mark.parametrize(
    ("texts", "edit", "by_words", "most_missed"),
    [
        (ENGLISH, one_word, True, 0.001),
        (THAI, a_stretch, True, 0.003),
        (ENGLISH, most_words, False, 0.01),
        (THAI, many_characters, False, 0.08),
    ],
)
def test_near_pairs_beyond_the_exact_bound_are_seldom_missed(
    texts: list[str], edit: Callable[[str, random.Random], str], by_words: bool, most_missed: float
) -> None:
    rng = random.Random(2026)
    near = missed = 0
    while near < 1000:
        text = rng.choice(texts)
        other = edit(text, rng)
        if is_near(text, other, POLICY) and is_near_by_words(text, other, POLICY.token_overlap) == by_words:
            near += 1
            missed += not meet(text, other)
    assert missed / near <= most_missed


def test_unrelated_texts_seldom_meet() -> None:
    texts = ENGLISH + THAI
    pairs = [(a, b) for i, a in enumerate(texts) for b in texts[:i]]
    assert sum(meet(a, b) for a, b in pairs) / len(pairs) <= 0.02


def test_of_many_look_alikes_only_those_that_share_most_are_compared_the_newest_of_equals_first():
    filed = [["a", "b"], ["b", "c"], ["c", "b", "d"], [f"other {n}" for n in range(30)]]
    assert most_shared(filed, 4)[:3] == ["b", "c", "other 9"]
    assert len(most_shared(filed, 4)) == CANDIDATES
    assert most_shared(filed, MANY + 1) == ["b", "c"]
    assert most_shared([], 4) == []
