"""What people decide, plan and say of themselves, in their own words; with negation, tense and change.

Precision goes before number: a sentence that only might be a decision is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from octavo import words as word_lists
from octavo.domain import cues
from octavo.domain.cores import Statement
from octavo.domain.patterns import pattern
from octavo.domain.sentences import content, is_question, is_telling
from octavo.domain.text import stem, words

KINDS = ("decision", "commitment", "preference")
_NO_NAME = r"(?:I|I'm|I'll|I've|I'd|Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)(?:day)?\b"
NAME = pattern(rf"(?<=[\w,;:–-] )(?!{_NO_NAME})[A-ZÀ-Ý][\w'’À-ÿ]+")
_CUE = {name: cues.cue(f"statements.{name}") for name in word_lists.languages()["en"]["statements"]}
_MATTER = word_lists.valued("statements.matter")
_NO_MATTER = word_lists.listed("statements.no_matter")
_NAMING = pattern(r"\b(?:called|named)\b")
_OPENS_AWAY = frozenset("it its that thats this they them those these".split())  # noqa: SIM905
_LEAST_THAI, _LEAST_MATTER = 14, 3
_AROUND = pattern(word_lists.block("statements.around", "th").strip())
_LONGEST = 160


@lru_cache(maxsize=4096)
def kind_of(text: str) -> str | None:
    """Whether a sentence tells a decision, a commitment or a preference of its speaker."""
    plain = text.replace("’", "'")
    is_thai = bool(cues.THAI.search(plain))
    telling = set(content(plain))
    if is_question(plain) or not telling or _is_small(plain, is_thai):
        return None
    if not is_thai and not cues.SECOND_PERSON.isdisjoint(words(plain)):  # a promise names its day
        return "commitment" if _has(plain, "future") and _is_planned(plain) else None
    points_away = not is_thai and is_pointing(plain)
    if _has(plain, "decision") and not _has(plain, "undecided") and not points_away:
        return "decision"
    unsure = points_away or _has(plain, "unsure")
    if _has(plain, "preference") and not _has(plain, "reaction") and not unsure and len(plain) <= _LONGEST:
        return "preference"
    if not is_thai and (unsure or (len(telling) < 2 and not NAME.search(plain))):
        return None
    return "commitment" if _is_planned(plain) else None


def is_pointing(text: str) -> bool:
    """Whether a pronoun comes before anything it could stand for."""
    opening = words(text)[:1]
    if opening and opening[0] in _OPENS_AWAY:
        return True
    pronoun = cues.POINTING.search(text)
    return pronoun is not None and len(content(text[: pronoun.start()])) < 3


def changes(statements: Sequence[Statement]) -> list[tuple[Statement | None, Statement]]:
    """Statements that end an earlier one of the same speaker about the same thing, with the one they end.

    A sentence that tells both sides ("I used to, but now …") stands alone.
    """
    preferences = [row for row in statements if row.kind == "preference"]
    pairs: dict[str, tuple[Statement | None, Statement]] = {}
    for later in preferences:
        if _has(later.text, "both_sides"):
            pairs[later.text] = (None, later)
        else:
            pairs |= {earlier.text: (earlier, later) for earlier in preferences if _is_ended(earlier, later)}
    return list(pairs.values())


def holding(statements: Sequence[Statement]) -> list[Statement]:
    """The statements that no later one ends."""
    ended = {earlier.text for earlier, _ in changes(statements) if earlier is not None}
    return [row for row in statements if row.text not in ended]


def is_courtesy(text: str) -> bool:
    """Whether what sounds like a preference is said to please, or of something uncertain."""
    return _has(text, "reaction") or _has(text, "unsure")


def _is_ended(earlier: Statement, later: Statement) -> bool:
    is_before = (earlier.at or "") < (later.at or "") and earlier.from_session != later.from_session
    if not is_before or earlier.speaker != later.speaker or not _share_matter(earlier.text, later.text):
        return False
    turned = _has(earlier.text, "negative") != _has(later.text, "negative")
    return turned or _has(later.text, "change")


def _share_matter(earlier: str, later: str) -> bool:
    """Whether two statements are about the same thing; in Thai what is left of the one is in the other."""
    if not cues.THAI.search(earlier) or not cues.THAI.search(later):
        return not _matter(earlier).isdisjoint(_matter(later))
    ours, theirs = (set(filter(None, _AROUND.split(text))) for text in (earlier, later))
    within = (len(one) >= _LEAST_MATTER and one in other for one in theirs for other in ours)
    return not ours.isdisjoint(theirs) or any(within)


def _matter(text: str) -> set[str]:
    telling = (word for word in words(text) if is_telling(word) and word not in _NO_MATTER)
    return {_MATTER.get(word, stem(word)) for word in telling}


def _is_small(text: str, is_thai: bool) -> bool:
    """Whether a sentence only encourages, or is too short to tell anything."""
    if is_thai:
        return len(cues.THAI.findall(cues.THAI_SMALL_TALK.sub("", text))) < _LEAST_THAI
    return bool(cues.VAGUE.search(text))


def _is_planned(text: str) -> bool:
    if _has(text, "no_plan"):
        return False
    if _has(text, "commitment"):
        return True
    is_coming = _has(text, "future") and _has(text, "arranged") and not _has(text, "done")
    return is_coming and (_has(text, "under_way") or not cues.PAST.search(_NAMING.sub("", text)))


def _has(text: str, name: str) -> bool:
    return bool(_CUE[name].search(text.replace("’", "'")))
