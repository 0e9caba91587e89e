"""The themes of sessions: names kept whole and noun phrases, in words a person would use.

English has names by their capitals and nouns by what stands around them; Thai has neither capitals nor
spaces, so `repeats` finds its words. Weights of all themes sum to 1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import log, sqrt

from octavo import words as word_lists
from octavo.domain import cues, repeats
from octavo.domain.cores import Concept
from octavo.domain.patterns import pattern
from octavo.domain.sentences import SessionSource, is_empty, is_person, prose, said
from octavo.domain.text import fold, stem

Line = tuple[int, bool, str]  # the session's number, whether a person said it, and what

_TITLES = "|".join(word_lists.block("themes.titles", "en").split())
_INSIDE = "|".join(word_lists.block("themes.inside_names", "en").split())
_CAPITAL = r"[A-ZÀ-Ý][\w’'À-ÿ-]*"
_NAME = pattern(rf"(?:(?:{_TITLES})\.? )?{_CAPITAL}(?:(?: (?:{_INSIDE})(?: the)?)? {_CAPITAL})*")
_TITLED = pattern(rf"(?:{_TITLES})\.?(?: |$)")
_OPENING = pattern(r"(?:^|[.!?:…\"“\n])\s*$|^\s*[-*•]\s*$")
_PHRASE_ENDS = pattern(r"[.!?,;:()\"“”\n…–—]+")
_TOKEN = pattern(r"[A-Za-zÀ-ÿ][\w'’À-ÿ-]*|\d[\d.,:]*")
_LOWER = pattern(r"\b[a-z][a-z'’-]+\b")
_POSSESSIVE = pattern(r"['’]s?$")
_ADJECTIVE = pattern(word_lists.block("themes.adjective", "en"))
_OWN_NAME, _CALLED = (pattern(word_lists.block(f"themes.{key}", "en")) for key in ("own_name", "called"))
_VERBS, _BEFORE_NOUN, _BEFORE_VERB, _AFTER_VERB = (
    word_lists.listed(f"themes.{key}") for key in ("verbs", "before_noun", "before_verb", "after_verb")
)
_NO_THEME = frozenset().union(*(word_lists.listed(f"themes.{key}") for key in ("calendar", "units", "plain")))
_DAYS = frozenset((*word_lists.valued("dates.months", "en"), *word_lists.valued("dates.weekdays", "en")))
_EDGES_OF_NAMES = frozenset(("&", "of", "the", "I", "I'm", "I'll", "I've", "I'd", "OK", "Ok"))
_LONGEST_WORD = 40
_BESIDE = "~"  # marks a word that stands before a noun, while counting
STORED, SHOWN = 40, 8


class _Seen:
    """What is known of one candidate while counting."""

    __slots__ = ("by_people", "factor", "is_name", "nouns", "sessions", "surfaces", "verbs")

    def __init__(self, factor: float = 1.0, *, is_name: bool | None = None) -> None:
        self.sessions = defaultdict[int, float](float)
        self.by_people = set[int]()
        self.surfaces = Counter[str]()
        self.nouns = self.verbs = 0
        self.is_name, self.factor = is_name, factor

    def see(self, session: int, surface: str, by_person: bool) -> None:
        self.sessions[session] += 1.0 if by_person else 0.5
        self.surfaces[surface] += 1
        if by_person:
            self.by_people.add(session)

    def add(self, other: _Seen) -> None:
        for session, count in other.sessions.items():
            self.sessions[session] += count
        self.by_people |= other.by_people

    @property
    def surface(self) -> str:
        return max(self.surfaces.items(), key=lambda pair: (pair[1], len(pair[0]), pair[0]))[0]


def themes(sessions: Sequence[SessionSource]) -> tuple[Concept, ...]:
    """The themes of sessions, heaviest first, each with how many of them and with its first and last day.

    A name is one wherever it is said, any other theme in two sessions or more.
    """
    lines = [
        (number, is_person(turn.speaker), prose(turn.text))
        for number, session in enumerate(sessions)
        for _, turn in said(session)
    ]
    without = _people(lines) | _called({turn.speaker for one in sessions for _, turn in said(one)})
    seen = _names(lines, without)
    _count_nouns(lines, without, seen)
    _join_parts(seen)
    seen.update(_unspaced(lines, len(sessions), without))
    _count_tags(sessions, seen)
    fewest = min(2, len(sessions))
    # What assistants alone say ("congratulations", "I'm sorry") is no theme of the people they talk with.
    anyone = not any(by_person for _, by_person, _ in lines)
    weighed = [
        (round(_weight(one, len(sessions)), 6), one)
        for one in seen.values()
        if (one.by_people or anyone)
        and (one.is_name is not None or (len(one.sessions) >= fewest and one.nouns > one.verbs))
    ]
    weighed.sort(key=lambda row: (row[1].is_name is False, -row[0], row[1].surface))
    total = sum(weight for weight, _ in weighed) or 1.0
    return tuple(_concept(one, weight / total, sessions) for weight, one in _distinct(weighed))


def recurring(concepts: Sequence[Concept]) -> tuple[str, ...]:
    """The themes of two sessions or more that a page shows."""
    able = (one for one in concepts if one.is_name is not False and (one.sessions or 0) >= 2)
    return tuple(concept.theme for concept in able)[:SHOWN]


def is_titled(name: str) -> bool:
    """Whether a name begins with a title, as `Dr Okafor` does."""
    return _TITLED.match(name) is not None


def _count_tags(sessions: Sequence[SessionSource], seen: dict[str, _Seen]) -> None:
    for number, session in enumerate(sessions):
        for tag in (tag for episode in session.episodes for tag in episode.tags):
            one = seen.setdefault(fold(tag), _Seen())
            one.see(number, tag, True)
            one.nouns += 1


def _people(lines: Sequence[Line]) -> set[str]:
    """What people call themselves or are called by the assistant."""
    return {
        fold(name)
        for _, by_person, text in lines
        for name in (_OWN_NAME if by_person else _CALLED).findall(text)
    }


def _called(speakers: set[str]) -> set[str]:
    """Names and the short forms of them: nobody is a theme of their own conversation."""
    parts = {fold(part) for name in speakers for part in (name, *name.split())}
    return parts | {part[:size] for part in parts for size in range(3, len(part)) if part not in cues.GENERIC}


def _is_no_theme(word: str) -> bool:
    plain = _singular(word)
    return (
        not 3 <= len(word) <= _LONGEST_WORD
        or is_empty(word)
        or any(form in _NO_THEME or form in cues.GENERIC for form in (word, plain))
    )


def _singular(word: str) -> str:
    word = _POSSESSIVE.sub("", fold(word))
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ss", "us", "is")) or not word.endswith("s") or len(word) <= 3:
        return word
    return word[:-2] if word.endswith(("ches", "shes", "xes", "sses", "zes")) else word[:-1]


def _capitals(text: str) -> Iterator[tuple[list[str], bool]]:
    """Runs of words with capitals, and whether each opens a sentence, where a capital says nothing."""
    for match in _NAME.finditer(text):
        yield match[0].split(), _OPENING.search(text[: match.start()]) is not None


def _names(lines: Sequence[Line], without: set[str]) -> dict[str, _Seen]:
    inside: set[str] = set()
    for _, _, text in lines:
        for parts, opens in _capitals(text):
            inside.update(_POSSESSIVE.sub("", part) for part in parts[opens:])
    lower = {word for _, _, text in lines for word in _LOWER.findall(text)}
    seen: dict[str, _Seen] = {}
    for number, by_person, text in lines:
        for parts, opens in _capitals(text):
            name = _trimmed(parts, opens, inside)
            is_sure = bool(name)
            name = name or _trimmed(parts[:1], False, inside)
            if _is_name(name, without, lower, inside):
                one = seen.setdefault(fold(name), _Seen(1.3 if is_sure else 0.1, is_name=is_sure))
                one.see(number, name, by_person)
    return seen


def _trimmed(parts: list[str], opens: bool, inside: set[str]) -> str:
    """A run of capitals without what opens its sentence, calendar words and small words at its ends."""
    if opens and not is_titled(parts[0]):
        is_known = parts[0] in inside or _POSSESSIVE.sub("", parts[0]) in inside
        parts = parts if is_known and fold(parts[0]) not in cues.STOP else parts[1:]
    while parts and _falls(parts[0]):
        parts = parts[1:]
    while parts and (fold(_POSSESSIVE.sub("", parts[-1])) in _DAYS or parts[-1] in _EDGES_OF_NAMES):
        parts = parts[:-1]
    return " ".join(_POSSESSIVE.sub("", part) for part in parts)


def _falls(word: str) -> bool:
    plain = fold(_POSSESSIVE.sub("", word))
    return plain in cues.STOP or plain in cues.SMALL_TALK or plain in _DAYS or word in _EDGES_OF_NAMES


def _is_name(name: str, without: set[str], lower: set[str], inside: set[str]) -> bool:
    parts = [fold(part) for part in name.split()]
    if all(part in without for part in parts) or not 3 <= len(name) <= _LONGEST_WORD:
        return False
    is_word = len(parts) == 1 and parts[0] in lower and name not in inside
    return len(parts) > 1 or not (is_word or is_titled(name) or _is_no_theme(parts[0]))


def _count_nouns(lines: Sequence[Line], without: set[str], seen: dict[str, _Seen]) -> None:
    """Runs of content words between others: the last word is the head, with the one before it a pair."""
    for number, by_person, text in lines:
        for phrase in _PHRASE_ENDS.split(text):
            run: list[str] = []
            before = ""
            for token in (*_TOKEN.findall(phrase), "."):
                plain = fold(token)
                is_content = token[0].islower() and plain.isalpha() and plain == token
                if is_content and plain not in without and not _is_no_theme(plain):
                    run.append(plain)
                    continue
                _count_run(run, before, plain, seen, (number, by_person))
                run, before = [], plain


def _count_run(
    run: list[str], before: str, after: str, seen: dict[str, _Seen], said_in: tuple[int, bool]
) -> None:
    while run and (run[0] in _VERBS or (run[0].endswith(("ing", "ed")) and before not in _BEFORE_NOUN)):
        run, before = run[1:], ""
    while run and (_ADJECTIVE.search(run[-1]) or run[-1] in _VERBS):
        run = run[:-1]
    if not run:
        return
    head = _singular(run[-1])
    if _is_no_theme(head):
        return
    number, by_person = said_in
    acts = len(run) > 1 and run[-1].endswith("s") and after in _AFTER_VERB
    one = seen.setdefault(head, _Seen())
    one.see(number, run[-1], by_person)
    one.nouns += (before in _BEFORE_NOUN or len(run) > 1) and not acts
    one.verbs += before in _BEFORE_VERB or acts
    if len(run) > 1 and not _ADJECTIVE.search(run[-2]):
        pair = seen.setdefault(f"{_singular(run[-2])} {head}", _Seen(1.25))
        pair.see(number, " ".join(run[-2:]), by_person)
        pair.nouns += 1
        seen.setdefault(f"{_BESIDE}{_singular(run[-2])}", _Seen()).see(number, head, by_person)


def _join_parts(seen: dict[str, _Seen]) -> None:
    """A noun is also told by what it stands beside (pottery bowl, pottery class), if that is more than one.

    A single name goes to the one full name that begins or ends with it; an acronym stays.
    """
    for key in [key for key in seen if key.startswith(_BESIDE)]:
        beside, noun = seen.pop(key), seen.get(key.removeprefix(_BESIDE))
        if noun and noun.nouns and len(beside.surfaces) > 1:
            noun.add(beside)
    full = [key for key, one in seen.items() if one.is_name and " " in key]
    for key in [key for key, one in seen.items() if one.is_name and " " not in key]:
        owners = [name for name in full if key in (name.split()[0], name.split()[-1])]
        if not owners or seen[key].surface.isupper() or len({name.split()[-1] for name in owners}) > 1:
            continue
        part = seen.pop(key)
        seen[max(owners, key=lambda name: sum(seen[name].sessions.values()))].add(part)


def _unspaced(lines: Sequence[Line], sessions: int, without: set[str]) -> dict[str, _Seen]:
    texts: list[list[str]] = [[] for _ in range(sessions)]
    by_people = [""] * sessions
    for number, by_person, text in lines:
        texts[number].append(text)
        by_people[number] += f"{text}\n" * by_person
    seen: dict[str, _Seen] = {}
    for word, (factor, places) in repeats.repeated(texts, without).items():
        one = seen.setdefault(word, _Seen(factor * 0.75))
        for number in places:
            one.see(number, word, word in by_people[number])
        one.nouns = len(places)
    return {word: one for word, one in seen.items() if sum(one.sessions.values()) >= 2}


def _weight(one: _Seen, sessions: int) -> float:
    mass = sum(log(1 + count) for count in one.sessions.values())
    return sqrt(len(one.sessions) / sessions) * mass * one.factor


def _distinct(weighed: Sequence[tuple[float, _Seen]]) -> list[tuple[float, _Seen]]:
    """The heaviest themes of which none shares a word with a heavier one or is part of it."""
    kept: list[tuple[float, _Seen]] = []
    taken: list[tuple[str, set[str]]] = []
    for weight, one in weighed:
        name = fold(one.surface)
        parts = {stem(part) for part in name.split()}
        if not any(
            parts & other or (not name.isascii() and _is_within(name, longer)) for longer, other in taken
        ):
            kept.append((weight, one))
            taken.append((name, parts))
        if len(kept) == STORED:
            break
    return kept


def _is_within(one: str, other: str) -> bool:
    return one in other or other in one


def _concept(one: _Seen, share: float, sessions: Sequence[SessionSource]) -> Concept:
    days = [sessions[number].started_at.date().isoformat() for number in sorted(one.by_people)]
    return Concept(
        theme=one.surface,
        weight=int(share * 10_000) / 10_000,
        sessions=len(one.sessions),
        is_name=one.is_name,
        first=days[0] if days else None,
        last=days[-1] if days else None,
    )
