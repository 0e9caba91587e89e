"""What speaks for a newer fact in an older one's place, as a question sees them, and how much."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from octavo.domain.likeness import shared_in_order
from octavo.domain.query import is_listing
from octavo.domain.readings import (
    CLASSES_THAI,
    PARTICIPLES,
    SPEAKER,
    Reading,
    classes,
    cues_in,
    has,
    opposed,
    opposites,
    read,
    stem_of,
    stems,
)
from octavo.domain.rivals import (
    DETERMINERS,
    ENOUGH_GRAMS,
    has_new_object,
    has_other_use,
    is_narrower,
    is_of_somebody_else,
    is_other_of_the_same,
    is_rival,
    is_rival_in_thai,
    loses_key,
    loses_name,
    same_start,
    shared_head,
)

# How much each feature says for the newer fact: a logistic regression on pairs of the development sets.
# They tell by words alone; with vectors `models.replacing` weighs the same features again, beside others.
WEIGHTS: Mapping[str, float] = {
    "newer": 1.04,
    "cover": 5.43,
    "lost_nouns": -1.04,
    "lost_verbs": 0.21,
    "start": -1.30,
    "start_kept": 1.03,
    "alike": 0.17,
    "change": 2.22,
    "negation": 0.92,
    "addition": -1.27,
    "plan": -3.37,
    "event": -2.54,
    "elaboration": -0.79,
    "value_named": 0.81,
    "value_lost": 2.14,
    "change_lost": 0.96,
    "key_lost": -3.01,
    "name_lost": -3.59,
    "owned": -4.51,
    "new_object": -3.95,
    "new_subject": -0.98,
    "shared": 1.10,
    "class_change": 2.55,
    "class_plain": -0.40,
    "rival": -2.23,
    "other_number": 0.86,
    # Set by hand, because too few pairs of the development sets have it: facts that merely share a question's
    # words, another kind of value in the same frame, a use that nobody asked about.
    "loose": -2.0,
    "other_shape": -1.0,
    "other_use": -2.0,
}


_DO = frozenset(("do", "does", "did", "should", "can", "will"))
BE = frozenset(("is", "are", "was", "were", "be", "been"))
_WHO = frozenset(("who", "what", "which"))
_PERSONAL = frozenset(("i", "you", "he", "she", "we", "they", "it"))
_NO_VERB_AFTER = frozenset(("of", "for", "at", "to", "about", "the", "a", "in", "on"))
_UNLIKELY = -1.5  # below that nobody asks how unlikely the newer is
FRAME = 0.35  # how alike two facts are that say the same of different values


def probability(question: str, older: str, newer: str) -> float:
    """The probability that of two facts the newer is what the question wants."""
    readings = read(question), read(older), read(newer)
    return 1 / (1 + math.exp(-score(*readings, features(*readings))))


def score(asked: Reading, before: Reading, after: Reading, values: Mapping[str, float]) -> float:
    """What the features of a pair say together for the newer."""
    found = sum(weight * values[name] for name, weight in WEIGHTS.items())
    is_plain = not (values["change"] or values["negation"] or values["rival"])
    if is_plain and found > _UNLIKELY:  # only then: two texts are laid beside each other slowly
        is_other = is_rival_in_thai if asked.is_thai else is_narrower
        found += WEIGHTS["rival"] * is_other(asked, before, after)
    return found


def features(question: Reading, older: Reading, newer: Reading) -> dict[str, float]:
    """What speaks for and against the newer fact, by name."""
    turned, is_thai = _turned(question, older, newer), question.is_thai
    kept = _kept_in_thai(question, older, newer) if is_thai else _kept(question, older, newer, turned)
    plan = newer.is_plan and not older.is_plan
    change = not plan and bool(newer.changes - older.changes or newer.renewed & question.asked)
    negation = bool(turned or newer.negations - older.negations)
    says_so = change or negation
    value = older.terms - question.asked
    repeated = len(value & newer.terms) / len(value) if value else 0.0
    start, alike = _shared_start(older.tokens, newer.tokens), alike_in_order(older.tokens, newer.tokens)
    lost = min(1.0, kept["lost_nouns"] + 0.5 * kept["lost_verbs"] + kept["lost_grams"])
    event = newer.is_event and not older.has_event_time and not change
    # "I" is whoever speaks, in all three: it counts as a name would; "she" may be anybody.
    is_speaker = bool(question.pronouns & older.pronouns & newer.pronouns & SPEAKER)
    asked = max(1, len(question.asked) + is_speaker)
    is_other = bool(kept["rival"]) or (question.is_thai and is_other_of_the_same(older, newer))
    same = kept["class"] and not (question.is_thai and not says_so)
    return {
        "newer": 1.0,
        "cover": (
            len(question.asked & (newer.terms | turned))
            - len(question.asked & older.terms - _named(question, older))
        )
        / asked,
        "lost_nouns": kept["lost_nouns"],
        "lost_verbs": kept["lost_verbs"],
        "start": start,
        "start_kept": start * (1 - lost),
        "alike": alike,
        "loose": (0.5 if kept["whole"] else 1.0) * (alike < FRAME and not says_so),
        "change": float(change),
        "negation": float(negation),
        "addition": float(newer.is_additive and not older.is_additive),
        "plan": float(plan),
        "event": float(event),
        "elaboration": 0.0 if says_so else repeated,
        "value_named": repeated if says_so else 0.0,
        "value_lost": repeated * lost if says_so else 0.0,
        "change_lost": lost if change else 0.0,
        "key_lost": float(loses_key(question, older, newer, negation)),
        "name_lost": float(loses_name(question, older, newer)),
        "owned": float(is_of_somebody_else(question, older, newer)),
        "new_object": float(not kept["whole"] and has_new_object(question, older, newer)),
        "new_subject": float(
            not question.is_thai
            and newer.subject is not None
            and newer.subject not in older.terms | question.asked
        ),
        "shared": kept["shared"],
        "class_change": float(bool(same) and says_so),
        "class_plain": float(bool(same) and not says_so),
        "rival": float(is_other),
        "other_number": float(_has_other_number(question, older, newer)),
        "other_shape": float(
            not says_so and not question.is_thai and _has_other_shape(question, older, newer)
        ),
        "other_use": float(not says_so and has_other_use(question, older, newer)),
    }


def both_hold(asked: str, before: str, after: str) -> bool:
    """Whether the newer leaves the older true: several are asked for, or it may be said of many.

    "She likes Thai food" stays true beside "she likes Ethiopian food", until somebody says otherwise.
    """
    question, older, newer = read(asked), read(before), read(after)
    changes = newer.changes - older.changes
    is_list = is_listing(asked) or has(asked, "several_asked")
    if changes and is_list:
        changes -= cues_in(after, "begun")  # "has taken up pottery" ends no other hobby
    if changes or newer.negations - older.negations or _has_other_number(question, older, newer):
        return False
    return is_list or has(shared_head(before.lower(), after.lower()), "several")


def _turned(question: Reading, older: Reading, newer: Reading) -> frozenset[str]:
    """The words of the older whose opposite the newer has, of the same thing: "enabled", "disabled"."""
    if older.stems.isdisjoint(opposed()):
        return frozenset()
    words: set[str] = set()
    for pair in opposites():
        for one, other in (pair, pair[::-1]):
            if not (one.isdisjoint(older.stems) or other.isdisjoint(newer.stems)):
                words |= one & older.stems - newer.stems
    if not words or is_of_somebody_else(question, older, newer):
        return frozenset()
    kept = older.terms - words
    is_of_one = not kept.isdisjoint(newer.terms) and question.asked & kept <= newer.terms
    return frozenset(words) if is_of_one else frozenset()


def _named(question: Reading, older: Reading) -> frozenset[str]:
    """Words of a question that in the older belong to a name: "which hotel", "the Hotel Miramar"."""
    return frozenset(stem_of(name) for name in older.names - question.names if name not in question.capitals)


def _kept(question: Reading, older: Reading, newer: Reading, turned: frozenset[str]) -> dict[str, float]:
    """Which words of the question the older has and the newer drops, by what kind of words they are."""
    names = names_of(question)
    had = (question.asked & older.terms) - names - _named(question, older)
    verbs = _verbs(question, older)
    is_do = not _DO.isdisjoint(question.words)
    lost_nouns = lost_verbs = 0
    same = has_rival = False
    for term in had - newer.terms:
        if term in question.keys or term.isdigit():
            continue
        if term in turned or any(term in group and group & newer.terms for group in classes()):
            same = True
        elif term in verbs or (term in stems("light") and is_do):
            lost_verbs += 1
        else:
            lost_nouns += 1
            has_rival = has_rival or is_rival(term, older.tokens, newer.tokens, question.asked)
    together = (older.terms & newer.terms) - names
    shared = bool(together) or any(
        not (group.isdisjoint(older.terms) or group.isdisjoint(newer.terms)) for group in classes()
    )
    size = max(1, len(had))
    return {
        "lost_nouns": lost_nouns / size,
        "lost_verbs": lost_verbs / size,
        "lost_grams": 0.0,
        "class": float(same),
        "rival": float(has_rival),
        "shared": float(shared),
        "whole": float(bool(had) and had <= newer.terms),
    }


def _kept_in_thai(question: Reading, older: Reading, newer: Reading) -> dict[str, float]:
    """The same of Thai, where grams stand for words."""
    had = question.asked & older.terms
    lost = len(had - newer.terms) / len(had) if had else 0.0
    same = lost > 0.3 and any(c.search(question.text) and c.search(newer.text) for c in CLASSES_THAI)
    return {
        "lost_nouns": 0.0,
        "lost_verbs": 0.0,
        "lost_grams": lost,
        "class": float(same),
        "rival": 0.0,
        "shared": float(len(older.terms & newer.terms) >= ENOUGH_GRAMS),
        "whole": float(bool(had) and not lost),
    }


def _verbs(question: Reading, older: Reading) -> set[str]:
    """The terms of a question that are verbs in it, by their form: an answer may use others."""
    words = question.words
    is_do, is_be = not _DO.isdisjoint(words), not BE.isdisjoint(words)
    verbs = set()
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        term = stem_of(word)
        is_other_form = word not in older.words and term in older.terms  # "work" and "works"
        is_past_form = word.endswith(("ed", "ing")) or word in PARTICIPLES
        if (
            (is_do and (before in _PERSONAL or before in question.names or is_other_form))
            or (is_be and is_past_form and before not in _NO_VERB_AFTER)
            or (place == 1 and not is_do and words[0] in _WHO and word.endswith("s"))
        ):
            verbs.add(term)
    return verbs


def _has_other_number(question: Reading, older: Reading, newer: Reading) -> bool:
    """Whether a number that nobody asked about has another one in its place: "12 minutes", "4 minutes"."""
    before, after = older.counted, newer.counted
    return any(
        beside in after and after[beside] != number
        for beside, number in before.items()
        if number.rstrip(".,:") not in question.keys
    )


def names_of(question: Reading) -> frozenset[str]:
    """The names of a question, as they stand and as they are compared."""
    return question.names.union(map(stem_of, question.names))


def _has_other_shape(question: Reading, older: Reading, newer: Reading) -> bool:
    """Whether two facts begin alike and go on with values of another kind: a name, a number, "her seat".

    What is asked for tells of itself that both answer: "his favourite restaurant is".
    """
    same = same_start(older.tokens, newer.tokens)
    nouns = question.asked - names_of(question) - stems("light")
    return nouns.isdisjoint(older.tokens[:same]) and same >= 2 and _shape(older, same) != _shape(newer, same)


def _shape(fact: Reading, start: int) -> str:
    """What a text goes on with: a name, a number, something with an article, or a plain word."""
    token = fact.tokens[start] if start < len(fact.tokens) else ""
    if token[:1].isdigit():
        return "number"
    return "named" if token in fact.capitals else "thing" if token in DETERMINERS else "plain"


def _shared_start(older: Sequence[str], newer: Sequence[str]) -> float:
    """How much of the shorter text both begin with."""
    shorter = min(len(older), len(newer))
    return same_start(older, newer) / shorter if shorter else 0.0


def alike_in_order(older: Sequence[str], newer: Sequence[str]) -> float:
    """The longest common subsequence as a share of both."""
    both = len(older) + len(newer)
    return 2 * shared_in_order(older, newer) / both if both else 0.0
