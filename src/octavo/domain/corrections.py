"""Whether the newer of two facts is what a question wants: a scorer of pairs, and the order it gives.

No fact is judged by itself and nothing is decided at writing: "she lives in Lyon" is replaced by "she moved
to Marseille" for who asks where she lives, and for nobody else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import combinations
from typing import Protocol

from msgspec import Struct

from octavo.domain.dates import Interval, find_times
from octavo.domain.readings import (
    PAST_NAME,
    Reading,
    classes,
    has,
    is_of_then,
    objects_in,
    read,
    share_a_class,
    stems,
    without,
)
from octavo.domain.replacing import BE, FRAME, alike_in_order, both_hold, names_of, probability
from octavo.domain.rivals import ENOUGH_GRAMS, SHORTEST_NAME, same_start, shared_head

REPLACES = 0.75  # from here on the newer goes first
KEEPS = 0.25  # up to here the older does; between them whichever fits the question better
CERTAIN = 0.9  # from here on the older is told as what held until then
MAY_REPLACE = 0.2  # without a question: enough to mention it to the writer
TOP = 6  # so many of the best are compared
SHARE = 0.2  # of the best one's relevance that the others need
_FITS = 0.35  # of a newer fact's relevance that an older one needs to be kept before it
_ANSWERS = 0.5  # of a newer fact's relevance that an older one needs to be an answer too
_AS_MUCH = 0.8  # of the grams of a question that any fact has
_RELATED = 0.5  # of the current fact's relevance that what it replaced needs


class Fact(Struct, frozen=True, kw_only=True):
    """A fact that a recall found: its place in time, and how well it fits the question."""

    id: str
    text: str
    at: datetime
    version: int
    relevance: float


class Meaning(Protocol):
    """What vectors tell of facts, by their ids, beside the words."""

    def nearest(self, one: str, others: Sequence[str]) -> Sequence[str]:
        """Those of other facts that are near one by what they mean, the nearest first."""

    def is_known(self, *ids: str) -> bool:
        """Whether facts have vectors."""

    def probabilities(self, question: str, pairs: Sequence[tuple[str, str, str, str]]) -> Sequence[float]:
        """Of pairs, the older's id and text and the newer's, whether the newer is what a question wants."""


class Replacement(Struct, frozen=True, kw_only=True):
    """The newer of two facts takes the older one's place, for one question, with a certainty."""

    older: str
    newer: str
    at: datetime
    certainty: float

    @property
    def is_certain(self) -> bool:
        """Whether the older may be told as what held until then."""
        return self.certainty >= CERTAIN


def is_change(text: str) -> bool:
    """Whether a text says by itself that something is otherwise than before."""
    return has(text, "change") and not has(text, "plan")


def may_replace(older: str, newer: str) -> bool:
    """Whether a fact may take another's place, before anybody asked; too weak to decide anything by."""
    return probability(older, older, newer) > MAY_REPLACE


def tells_a_change(ours: Reading, theirs: Reading) -> bool:
    """Whether the newer tells a change of the same one in another word for it: "lives", "moved"."""
    if not theirs.changes - ours.changes or objects_in(theirs.text) or theirs.owned:
        return False
    if ours.is_thai:
        start = shared_head(ours.text, theirs.text)
        return len(start) >= SHORTEST_NAME and share_a_class(ours.text, theirs.text)
    is_of_one = ours.subject == theirs.subject or bool(ours.pronouns & theirs.pronouns)
    said, says = ours.terms - {ours.subject}, theirs.terms - {theirs.subject}
    is_same = any(group & said and group & says for group in classes())
    return is_of_one and is_same and ours.words[:1] == theirs.words[:1]


def is_about_the_past(question: str) -> bool:
    """Whether a question asks how it was: by a word for it, the past tense alone is none."""
    if PAST_NAME.search(question) or has(question, "past"):
        return True
    is_then = not has(question, "present") if read(question).is_thai else is_of_then(question)
    return is_then and has(question, "before")


def is_about_now(question: str) -> bool:
    """Whether a question asks how something is, and not what happened."""
    return not (is_of_then(question) or is_about_the_past(question))


def present(question: str) -> str:
    """A question about the past as it would be asked about the present."""
    return without(question, "past_only").strip(" ?") or question


def arrange(
    question: str, facts: Sequence[Fact], meaning: Meaning | None = None
) -> tuple[list[str], list[Replacement]]:
    """The ids of facts, best first, each newer one before what it replaces; and what replaces what.

    The facts come in the order of their relevance. Only the best few are compared, pair by pair, and the very
    best with those that are near it. A question about the past gets what was replaced first. Without
    `meaning` the words alone tell.
    """
    if not facts:
        return [], []
    is_past = is_about_the_past(question)
    asked = present(question) if is_past else question
    day = None if is_past else _asked_day(question, facts)
    best, beside = _compared(facts, meaning, is_past)
    top, pairs = best + beside, [*combinations(best, 2), *((best[0], fact) for fact in beside)]
    certainty: dict[tuple[str, str], float] = {}
    replaced: set[tuple[str, str]] = set()
    ended: set[tuple[str, str]] = set()
    kept: list[tuple[Fact, Fact]] = []
    for older, newer, sure in _judged(asked, pairs, meaning):
        fits = sure > KEEPS and older.relevance >= _ANSWERS * newer.relevance
        is_known = meaning is not None and meaning.is_known(older.id, newer.id)
        is_same = fits and (is_known or _share_a_matter(asked, older.text, newer.text))
        is_near = is_same or _is_news_of(asked, older.text, newer.text)
        is_over = fits and sure > (REPLACES if is_near else CERTAIN)
        is_late = is_over and _is_too_late(question, older, newer, day)  # not yet so on the day asked about
        if is_over and not is_late:
            replaced.add((newer.id, older.id))
        elif is_late or sure < KEEPS:
            kept.append((older, newer))
        if is_near and ((newer.id, older.id) in replaced or is_past):
            certainty[older.id, newer.id] = sure
            is_told = _share_a_matter(asked, older.text, newer.text) or (
                is_known and _answers(asked, older.text)
            )
            if is_same and is_told and _is_ended(asked, older, newer, top):
                ended.add((older.id, newer.id))
    ranked = _ordered(top, replaced, kept)
    if is_past:
        ranked = _past_first(question, ranked, certainty, ended)
    replacements = _replacements(asked, ranked, {pair: certainty[pair] for pair in ended})
    placed = {fact.id for fact in ranked}
    return [f.id for f in ranked] + [f.id for f in facts if f.id not in placed], replacements


def _ordered(
    facts: Sequence[Fact], replaced: set[tuple[str, str]], kept: Sequence[tuple[Fact, Fact]]
) -> list[Fact]:
    """The facts in the order they come, but a newer one in the place of what it replaces, and before it.

    An older one that is kept goes before the newer, unless that replaces something that fits much better.
    """
    place = {fact.id: n for n, fact in enumerate(facts)}
    best = {fact.id: fact for fact in facts}  # itself, or the best of what it replaces
    for newer, older in replaced:
        best[newer] = min(best[newer], facts[place[older]], key=lambda fact: place[fact.id])
    before = {(old.id, new.id) for old, new in kept if old.relevance >= _FITS * best[new.id].relevance}
    ranked: list[Fact] = []
    left = sorted(facts, key=lambda fact: (place[best[fact.id].id], fact is best[fact.id]))
    while left:
        current = [one for one in left if not any((other.id, one.id) in replaced for other in left)]
        free = (one for one in current if not any((other.id, one.id) in before for other in left))
        ranked.append(next(free, (current or left)[0]))
        left.remove(ranked[-1])
    return ranked


def _compared(facts: Sequence[Fact], meaning: Meaning | None, is_past: bool) -> tuple[list[Fact], list[Fact]]:
    """The best facts that fit the question well, and what is near the very best by its meaning.

    "She moved to Marseille" shares no word with "where does she live?". Only what is newer may take its
    place; of the past the older is asked for, too.
    """
    first = facts[0]
    best = [fact for fact in facts[:TOP] if fact.relevance >= SHARE * first.relevance] or [first]
    others = {fact.id: fact for fact in facts if fact not in best and (is_past or _age(fact) > _age(first))}
    return best, [others[id_] for id_ in meaning.nearest(first.id, [*others])] if meaning else []


def _judged(
    asked: str, pairs: Sequence[tuple[Fact, Fact]], meaning: Meaning | None
) -> Iterator[tuple[Fact, Fact, float]]:
    """Each pair, the older first, with the probability that the newer is what the question wants."""
    told = [(min(pair, key=_age), max(pair, key=_age)) for pair in pairs]
    known = [pair for pair in told if meaning is not None and meaning.is_known(pair[0].id, pair[1].id)]
    seen: dict[tuple[str, str], float] = {}
    if meaning is not None and known:
        given = [(older.id, older.text, newer.id, newer.text) for older, newer in known]
        found = meaning.probabilities(asked, given)
        seen = {(older.id, newer.id): sure for (older, newer), sure in zip(known, found, strict=True)}
    for older, newer in told:
        sure = seen.get((older.id, newer.id))
        yield older, newer, probability(asked, older.text, newer.text) if sure is None else sure


def _is_ended(question: str, older: Fact, newer: Fact, facts: Sequence[Fact]) -> bool:
    """Whether the older was an answer that no longer holds; what tells of another thing only goes behind.

    It has to tell of all that is asked for, as far as any fact does, and the newer to say that it changed, or
    the same of another value.
    """
    asked, before, after = read(question), read(older.text), read(newer.text)
    says_so = after.changes - before.changes or after.negations - before.negations
    if not says_so and alike_in_order(before.tokens, after.tokens) < FRAME:
        return False
    if asked.is_thai:
        best = max(len(asked.asked & read(fact.text).terms) for fact in facts)
        return len(asked.asked & before.terms) >= _AS_MUCH * best
    nouns = asked.asked - stems("light")
    told = before.terms.union(*(group for group in classes() if group & before.terms))
    return not any((nouns & read(fact.text).terms) - told for fact in facts)


def _answers(question: str, fact: str) -> bool:
    """Whether a fact has a word of the question, or one like it, besides whom it asks about."""
    asked, said = read(question), read(fact)
    if asked.is_thai:
        return True
    words = asked.asked - names_of(asked)
    alike = words.union(*(group for group in classes() if group & words))
    return not alike.isdisjoint(said.terms) or not stems("light").isdisjoint(asked.stems & said.stems)


def _is_news_of(question: str, older: str, newer: str) -> bool:
    """Whether both open with the name asked about, and the newer says that something changed."""
    before, after = read(older), read(newer)
    is_news = after.changes - before.changes or after.negations - before.negations
    return bool(is_news) and before.subject == after.subject and before.subject in names_of(read(question))


def _share_a_matter(question: str, older: str, newer: str) -> bool:
    """Whether two facts have in common, besides whom they are about, what is asked for or what one says."""
    asked, before, after = read(question), read(older), read(newer)
    says_so = bool((after.changes - before.changes) or (after.negations - before.negations))
    if asked.is_thai:
        start = same_start(older, newer)
        head = 0 if says_so else start
        rest = read(older[head:]).terms & read(newer[head:]).terms
        is_of_one = says_so and start >= SHORTEST_NAME  # "ฉันอยู่…", "ฉันย้าย…"
        return len(rest) >= ENOUGH_GRAMS or (is_of_one and share_a_class(question, older, newer))
    names = names_of(asked)
    ours, theirs = before.terms - names, after.terms - names
    shared = ours & theirs
    subject = before.subject
    is_about_one = subject is not None and subject == after.subject
    if is_about_one and not BE.isdisjoint(before.words) and subject not in names:
        return bool(shared) or alike_in_order(before.tokens, after.tokens) >= FRAME  # "the landlord is …"
    if is_about_one:
        # "My mother moved" and "my mother had": whom both are about is not what they say.
        shared -= {subject}
        is_thing = subject not in names and subject not in stems("person")
        if not shared and says_so and is_thing:
            return not (asked.asked - {subject}).isdisjoint(ours)
    elif after.subject in before.terms and (
        after.subject not in asked.asked
        or (asked.asked | (asked.stems & stems("light"))) & before.stems <= {after.subject}
    ):
        shared -= {after.subject}  # what the older only mentions: "the cache", or "Maeve runs the data team"
    return bool(shared) or any(
        not (group.isdisjoint(ours) or group.isdisjoint(theirs) or group.isdisjoint(asked.asked))
        for group in classes()
    )


def _age(fact: Fact) -> tuple[datetime, int]:
    return fact.at, fact.version


def _past_first(
    question: str,
    ranked: list[Fact],
    certainty: Mapping[tuple[str, str], float],
    ended: Collection[tuple[str, str]],
) -> list[Fact]:
    """What the current fact replaced before it, the nearest first, or the oldest if that is asked for."""
    current = ranked[0]
    before = [
        fact
        for fact in ranked[1:]
        if certainty.get((fact.id, current.id), 0.0) > 0.5 and fact.relevance >= _RELATED * current.relevance
    ]
    before.sort(key=_age, reverse=not has(question, "first"))
    before.sort(key=lambda fact: (fact.id, current.id) not in ended)
    return before + [fact for fact in ranked if fact not in before]


def _replacements(
    asked: str, ranked: Sequence[Fact], certainty: Mapping[tuple[str, str], float]
) -> list[Replacement]:
    """For each fact the surest of those that take its place; where both hold, none does."""
    known = {fact.id: fact for fact in ranked}
    surest: dict[str, Replacement] = {}
    for (older, newer), sure in certainty.items():
        is_surer = older not in surest or sure > surest[older].certainty
        if sure > REPLACES and is_surer and not both_hold(asked, known[older].text, known[newer].text):
            surest[older] = Replacement(older=older, newer=newer, at=known[newer].at, certainty=sure)
    return list(surest.values())


def _asked_day(question: str, facts: Sequence[Fact]) -> date | None:
    """The last day of the time that a question in the past tense names, if any."""
    if not has(question, "past_tense"):
        return None
    days = [fact.at.date() for fact in facts]
    newest = max(days)
    named, _ = find_times(question, newest, Interval(first=min(days), last=newest))
    return max((interval.last for interval in named if interval.last < newest), default=None)


def _is_too_late(question: str, older: Fact, newer: Fact, day: date | None) -> bool:
    """Whether the newer was not yet so on the day asked about; a time that a fact names is its content."""
    if day is None or not newer.at.date() > day >= older.at.date():
        return False
    keys = {key for key in read(question).keys if not (len(key) == 4 and key.isdigit())}
    said = read(older.text).keys | read(newer.text).keys
    return keys.isdisjoint(said) and older.relevance >= 0.5 * newer.relevance
