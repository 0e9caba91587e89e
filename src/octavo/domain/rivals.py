"""What tells a newer fact to be about another: another name, owner, day, number, thing or use."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import takewhile

from octavo.domain.readings import (
    BEFORE_NAME_THAI,
    CALENDAR,
    OF_THAI,
    OWNING_THAI,
    SPEAKER,
    THEMSELVES_THAI,
    Reading,
    classes,
    kind_of_key,
    objects_in,
    stem_of,
    stems,
    without,
)
from octavo.domain.text import STOP_WORDS

DETERMINERS = frozenset(("a", "an", "the", "his", "her", "their", "its", "my", "our", "your", "some"))
ENOUGH_GRAMS = 3
SHORTEST_NAME = 2  # letters of Thai
_THIRD = frozenset(("he", "she", "they", "his", "her", "their", "it"))
_POSSESSIVES = frozenset(("my", "our", "his", "her", "their"))
_USES = frozenset(("for", "as"))
_RENEWED = frozenset(("new", "current", "latest", "next", "replac", "old"))


def is_rival(term: str, older: Sequence[str], newer: Sequence[str], asked: frozenset[str]) -> bool:
    """Whether another word stands in the newer where a lost one stands in the older, beside one asked for.

    "The hallway wall" is not "the kitchen wall"; in "we painted the wall" nothing stands in its place.
    """
    for step in (-1, 1):
        beside, between = _neighbour(term, older, step)
        if beside in asked and beside in newer:
            other, gap = _neighbour(beside, newer, -step)
            if other and gap == between[::-1] and other not in older:
                return True
    return False


def _neighbour(token: str, tokens: Sequence[str], step: int) -> tuple[str, tuple[str, ...]]:
    """The next word with content before or behind a token, and what stands between them."""
    between: list[str] = []
    place = tokens.index(token) + step if token in tokens else -1
    while 0 <= place < len(tokens):
        if tokens[place] not in STOP_WORDS and tokens[place] != "'s":
            return tokens[place], tuple(between)
        between.append(tokens[place])
        place += step
    return "", ()


def is_narrower(question: Reading, older: Reading, newer: Reading) -> bool:
    """Whether the newer says of what is asked about which one it is: "the library", "the library café"."""
    inside = question.asked | DETERMINERS
    for place, named in enumerate(older.tokens):
        before = older.tokens[max(place - 1, 0) : place]
        if named not in question.asked or not inside.issuperset(before):
            continue
        for end in (place for place, token in enumerate(newer.tokens) if token == named):
            known = (n for n in range(end, 0, -1) if newer.tokens[n - 1] in older.tokens)
            start = next(known, 0)
            added = set(newer.tokens[start:end]) - STOP_WORDS - _RENEWED
            if newer.tokens[max(start - 1, 0) : start] == before and any(word.isalpha() for word in added):
                return True
    return False


def _changes(one: Sequence[str], other: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    """How one sequence becomes another, step by step."""
    return SequenceMatcher(None, one, other, autojunk=False).get_opcodes()


def is_rival_in_thai(question: Reading, older: Reading, newer: Reading) -> bool:
    """Whether what the newer puts in another's place is what the question asks about."""
    covered = _covered(older.text, question.text)
    if not covered:
        return False
    for tag, start, end, first, last in _changes(older.text, newer.text):
        if tag == "replace" and len(covered.intersection(range(start, end))) >= 2:
            return True
        if tag == "insert" and start and last - first >= ENOUGH_GRAMS and {start - 1, start} <= covered:
            return True  # "the shop", "the shop opposite"
    return False


@lru_cache(maxsize=64)
def _covered(fact: str, question: str) -> frozenset[int]:
    """The places in a fact that a question in Thai repeats; each fact is compared with several others."""
    asked = without(question, "asking")
    blocks = SequenceMatcher(None, fact, asked, autojunk=False).get_matching_blocks()
    return frozenset(
        place
        for block in blocks
        if block.size >= ENOUGH_GRAMS
        for place in range(block.a, block.a + block.size)
    )


def is_other_of_the_same(older: Reading, newer: Reading) -> bool:
    """Whether both tell something of the same owner, and not the same: "ผู้ว่าจ้างของเรา", "ผู้ตรวจบัญชีของเรา"."""
    ours, theirs = (
        {match[2]: match[1] for match in OWNING_THAI.finditer(one.text)} for one in (older, newer)
    )
    return any(thing not in newer.text for owner, thing in ours.items() if owner in theirs)


def has_other_use(question: Reading, older: Reading, newer: Reading) -> bool:
    """Whether the newer ends with a use that nobody asked about: "Figma for design", "fish as his shell"."""
    places = [place for place, word in enumerate(newer.words) if word in _USES]
    if not places or not _USES.isdisjoint(older.words):
        return False
    end = newer.words[places[-1] + 1 :]
    if any(word[0].isdigit() or word in stems("number") or word in CALENDAR for word in end):
        return False
    terms = {stem_of(word) for word in end if word not in STOP_WORDS}
    return bool(terms) and terms.isdisjoint(older.terms | question.asked)


def loses_key(question: Reading, older: Reading, newer: Reading, negation: bool) -> bool:
    """Whether the newer has another number, day or month than the one that the question names."""
    others = {kind_of_key(key) for key in newer.keys - older.keys}
    return any(
        kind_of_key(key) in others and not (negation and key in newer.text.lower())
        for key in (question.keys & older.keys) - newer.keys
    )


def loses_name(question: Reading, older: Reading, newer: Reading) -> bool:
    """Whether the newer is about somebody else than the name, or the "her", that question and older share."""
    if question.is_thai:
        head = shared_head(without(question.text, "asking").strip(), older.text)
        if head.startswith(THEMSELVES_THAI):
            return False
        is_there = head[:ENOUGH_GRAMS] in newer.text or head[:2] in newer.text
        return len(head) >= ENOUGH_GRAMS and not is_there
    lost = (question.names & frozenset(older.words)) - frozenset(newer.words) - question.keys
    if {name for name in lost if name.rstrip("s") not in CALENDAR} and _THIRD.isdisjoint(newer.words[:4]):
        return True
    if _is_of_another_person(question, older, newer) or _is_of_a_name(question, older, newer):
        return True
    shared = (question.pronouns & older.pronouns) - newer.pronouns
    return bool(shared) and newer.has_owner and not older.has_owner


def _is_of_another_person(question: Reading, older: Reading, newer: Reading) -> bool:
    """Whether the newer opens with somebody's person that neither the question nor the older tells of."""
    whose, person = (*newer.words[:2], "", "")[:2]
    is_of_them = not question.pronouns.isdisjoint(older.pronouns) and whose in _POSSESSIVES
    known = older.terms | question.asked
    if not is_of_them or stem_of(person) not in stems("person") - known:
        return False
    return not any(stem_of(person) in group and group & known for group in classes())


def _is_of_a_name(question: Reading, older: Reading, newer: Reading) -> bool:
    """Whether question and older are of the one who speaks, and the newer opens with somebody by name."""
    known = older.terms | question.asked
    if not question.pronouns & older.pronouns & SPEAKER or newer.pronouns & SPEAKER or newer.subject in known:
        return False
    is_told_of = newer.text[:1].isupper() and newer.words[1:2] and newer.words[1].endswith(("s", "ed"))
    return bool(is_told_of) and not any(newer.subject in group and group & known for group in classes())


def shared_head(one: str, other: str) -> str:
    """What two texts begin with alike."""
    return one[: same_start(one, other)]


def is_of_somebody_else(question: Reading, older: Reading, newer: Reading) -> bool:
    """Whether the newer is about a person or thing of the one asked about: "Jane's son" for "Jane"."""
    for owner, thing in newer.owned - older.owned:
        known = owner in older.tokens and owner in question.tokens
        if known and thing in stems("person") and thing not in older.tokens and thing not in question.tokens:
            return True
    if not newer.is_thai or newer.text[:ENOUGH_GRAMS] == older.text[:ENOUGH_GRAMS]:
        return False
    asked = without(question.text, "asking").strip()
    head = shared_head(asked, older.text) or asked.split(" ")[0]
    if len(head) >= 2 and BEFORE_NAME_THAI.fullmatch(newer.text, 0, newer.text.find(head[:ENOUGH_GRAMS])):
        return True
    return any(older.text.startswith(match.group(1)) for match in OF_THAI.finditer(newer.text))


def has_new_object(question: Reading, older: Reading, newer: Reading) -> bool:
    """Whether the newer tells a change of something that neither the question nor the older knows."""
    known = older.terms | question.asked
    related = known.union(*(group for group in classes() if group & known))
    objects = objects_in(newer.text)
    return bool(objects) and all(related.isdisjoint(stems) for stems in objects)


def same_start(one: Sequence[str], other: Sequence[str]) -> int:
    """How many of their first items, or characters, two have in common."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in pairs)
