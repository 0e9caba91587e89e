"""Standing orders and wishes: what the user asked for once and for all, and what of it applies to a question.

"Always include the platform when I ask about films" shares no word with "what should I watch tonight?", so
an order is not left to the ranking: it is recognised when it is said, and matched with every question.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache

from msgspec import Struct

from octavo import words as word_lists
from octavo.domain import cues
from octavo.domain.memory import Memory, is_human
from octavo.domain.text import fold, split_runs, terms_of_run
from octavo.domain.units import USERS, asks, is_person

ENDED = "order-ended"  # the category of a register that says that an order holds no longer
LONGEST = 400
SHOWN, GENERAL_SHOWN, WISHES_SHOWN = 3, 2, 4  # of generals the last so many are never pushed out
WORDS_APPLY = 0.15
# So much less a wish fits what does not ask for something by its words, and a question about what was.
_UNCLEAR, _ASKED_ABOUT = 0.3, 1.0
_DOUBTED = 0.3  # so much better what may be no order at all must fit, the surer it is none
_SHARE_APPLIES = 0.3  # without vectors: this share of the condition's words, or the same topic
_STATEMENTS = ("fact", "register", "canon")
_SENTENCE_END = re.compile(
    rf"(?<=[.!?…])(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.){cues.UNENDED}\s+|\n+"
)
# What is quoted was said by somebody else: marks around more than a word or two, a block of code, a mail's >.
_QUOTED = re.compile(r"```.*?(?:```|\Z)|^[ \t]*>[^\n]*|[\"“”«„][^\"“”»]{12,}[\"”»]", re.DOTALL | re.MULTILINE)
_MARK = re.compile('[`>"“”«„]')  # most texts have none
_INTRODUCED = re.compile(r"[:\n]\s{0,20}\S")  # most texts hand nothing in
_CONDITION_END = re.compile(r"[,;:.!?]|\b(?:please|always|never|then|make sure)\b", re.IGNORECASE)
_QUOTE = "\ue000"  # what stands for the characters of a quote

# Of a sentence that may be an order: whether it is a wish, whether it is general, how far it is from certain.
Reading = tuple[bool, bool, float]
Said = tuple[int | None, str, datetime]  # in which turn, what and when


class Order(Struct, frozen=True, kw_only=True):
    """A sentence of the user's that holds from then on; a wish weighs only when something is asked for.

    The more `doubt` there is that a sentence is one at all, the better it must fit what is asked.
    """

    memory: str
    turn: int | None
    text: str
    condition: str | None = None
    is_wish: bool = False
    is_general: bool = False
    doubt: float = 0.0
    scope: str
    at: datetime
    version: int = 0

    @property
    def key(self) -> str:
        """What is the same of an order that is said again."""
        return hashlib.blake2b(fold(self.text).encode(), digest_size=10).hexdigest()


@cache
def _cue(name: str) -> re.Pattern[str]:
    """A pattern made of the word lists of every language, when it is first asked for."""
    english, thai = word_lists.section("orders")["en"], word_lists.section("orders")["th"]
    match name:
        case "order":
            always = rf"(?:always|never)\s+(?!(?:{'|'.join(english['no_verb'])})\b)[a-z'’]+\s+\S"
            opening = rf"^[^\w\"“«„>`]*{english['polite']}(?:(?:{'|'.join(english['opening'])})\b|{always})"
            anywhere = rf"\b(?:{'|'.join(english['anywhere'])})\b|^\W*(?:{'|'.join(thai['opening'])})"
            source = rf"{opening}|{anywhere}|{'|'.join(thai['anywhere'])}"
        case "condition" | "clause":
            source = rf"\b(?:{english[name]})\s+(?P<en>\S.*)|(?:{thai[name]})(?P<th>\S+)"
        case "material":  # to the end of the turn: where it ends nobody can tell
            return re.compile("|".join((*english[name], *thai[name])), re.IGNORECASE)
        case "once":
            forms = (form.replace("{do}", english["do"]) for form in english["once"])
            source = "|".join((*forms, *thai["once"]))
        case "lasts":
            source = f"{english[name]}|{thai[name]}"
        case "no_speaker":  # as it is written
            names = "|".join(english[name])
            return re.compile(rf"(?<![^\W_])(?:{names})(?![^\W_])|{'|'.join(thai[name])}")
        case _:
            source = rf"\b(?:{'|'.join(english[name])})\b|{'|'.join(thai[name])}"
            if name == "request":
                source += rf"|^\W*{english['polite']}(?:{'|'.join(english['imperative'])})\b"
    return re.compile(source, re.IGNORECASE)


@cache
def _hints(is_ascii: bool) -> list[str]:
    hints = (hint for lists in word_lists.section("orders").values() for hint in lists["hints"])
    return [hint for hint in hints if hint.isascii() or not is_ascii]


@cache
def _topics() -> tuple[tuple[frozenset[str], ...], tuple[re.Pattern[str], ...]]:
    """What people ask for, each in its words: English ones by their stems, Thai ones anywhere."""
    lists = word_lists.section("orders")
    return tuple(terms(topic) for topic in lists["en"]["topics"]), tuple(
        map(re.compile, lists["th"]["topics"])
    )


@cache
def _shapes() -> tuple[re.Pattern[str], ...]:
    """What may be seen of a sentence whatever it is about, each in the words of every language."""
    lists = (language["shape"] for language in word_lists.section("orders").values())
    return tuple(re.compile("|".join(filter(None, some)), re.IGNORECASE) for some in zip(*lists, strict=True))


def shape_of(sentence: str) -> list[bool]:
    """How a sentence is built: whom it speaks of, and when; whether it asks, denies, likes or orders."""
    return [shape.search(sentence) is not None for shape in _shapes()]


def orders_of(
    memory: Memory,
    version: int = 0,
    read: Callable[[str], Reading | None] | None = None,
    *,
    said: Iterable[Said] | None = None,
) -> list[Order]:
    """The orders and wishes that the user said, in their turns or in a statement by a person's own hand.

    What they `said` may be known already.
    """
    found = []
    for turn, text, at in said_by_user(memory) if said is None else said:
        for sentence in sentences_of(text) if read or may_hold(text) else ():
            told = by_words(sentence) if read is None and may_hold(sentence) else None
            reading = read(sentence) if read else told
            if reading is not None:
                found.append(
                    Order(
                        memory=memory.id,
                        turn=turn,
                        text=sentence,
                        condition=condition_of(sentence),
                        is_wish=reading[0],
                        is_general=reading[1],
                        doubt=reading[2],
                        scope=memory.scope,
                        at=at,
                        version=version,
                    )
                )
    return found


def said_by_user(memory: Memory) -> Iterator[Said]:
    """What the user themselves said: never an assistant's words, a tool's or a document's."""
    if memory.gone or memory.source == "tool":
        return
    if memory.kind in _STATEMENTS and is_human(memory.actor):
        yield None, memory.text, memory.at
    speakers = {turn.speaker.casefold() for turn in memory.turns}
    users = speakers & USERS
    if not users:  # people by name who talk with a machine: people among themselves give it no orders
        own = memory.actor.partition(":")[2].casefold() if memory.actor.startswith("agent:") else None
        machines = {speaker for speaker in speakers if speaker == own or not is_person(speaker)}
        if not machines:
            return
        users = {speaker for speaker in speakers - machines if not _cue("no_speaker").search(speaker)}
    for place, turn in enumerate(memory.turns):
        if turn.speaker.casefold() in users:
            yield place, turn.text, turn.at or memory.at


def may_hold(text: str) -> bool:
    """Whether a text may hold an order by its words; most do not, at a glance."""
    lowered = text.lower()
    for hint in _hints(text.isascii()):  # noqa: SIM110 - a generator costs more than the searches
        if hint in lowered:
            return True
    return False


def sentences_of(text: str) -> Iterator[str]:
    """The sentences of a text that can be orders or wishes.

    No question is one, nor what the user quotes, or hands in to be worked on ("translate this: …"): that is
    told, not asked for.
    """
    own, begin = _without_quotes(text, _QUOTE), 0
    if _INTRODUCED.search(own) and (handed := _cue("material").search(own)):
        own = own[: handed.start()]
    for said in _SENTENCE_END.split(own):
        begin = own.index(said, begin)
        told = text[begin : begin + len(said)].strip()
        is_fit = 0 < len(told) <= LONGEST and not _only_asks(told)
        if is_fit and not said.strip().startswith(_QUOTE):
            yield told


def _only_asks(sentence: str) -> bool:
    """Whether a sentence asks; in Thai, which has no mark for that, an order may name what to ask for."""
    is_sure = sentence.isascii() or sentence.endswith("?")
    return asks(sentence) and (is_sure or _cue("lasts").search(sentence) is None)


def _without_quotes(text: str, sign: str) -> str:
    """A text with a sign for each character that is quoted."""
    return _QUOTED.sub(lambda quote: sign * len(quote[0]), text) if _MARK.search(text) else text


def by_words(sentence: str) -> Reading | None:
    """Whether a sentence is a wish, and whether it holds for every answer; None if its words tell neither."""
    said = _without_quotes(sentence, "q")
    is_order = _cue("order").search(said) is not None
    if is_once(said) or (not is_order and not _cue("wish").search(said)):
        return None
    return not is_order, is_about_answers(sentence), 0.0


def is_once(sentence: str) -> bool:
    """Whether a sentence asks for something there and then, or tells what was: nothing holds from then on."""
    is_meant = _cue("once").search(sentence) is not None and _cue("lasts").search(sentence) is None
    return is_meant and condition_of(sentence) is None


def is_about_answers(sentence: str) -> bool:
    """Whether a sentence tells by its words how to answer, whatever is asked."""
    return _cue("general").search(sentence) is not None


def is_quoting(sentence: str) -> bool:
    """Whether a sentence tells what somebody else said."""
    return _QUOTED.search(sentence) is not None


@lru_cache(maxsize=8192)
def condition_of(sentence: str) -> str | None:
    """When an order applies: what follows "when I ask about", or any other condition; None if it has none."""
    for form in ("condition", "clause"):
        if match := _cue(form).search(sentence):
            if match["th"]:
                return match["th"]
            return _CONDITION_END.split(match["en"], maxsplit=1)[0].strip() or None
    return None


def is_request(question: str) -> bool:
    """Whether something is asked for, rather than about."""
    return _cue("request").search(question) is not None and _cue("no_request").search(question) is None


@lru_cache(maxsize=8192)
def less_a_wish(question: str) -> float:
    """How much less a wish fits a question that by its words asks for nothing, or about what was."""
    if _cue("no_request").search(question):
        return _ASKED_ABOUT
    return 0.0 if is_request(question) else _UNCLEAR


def score(question: str, order: Order, fit: float | None) -> float:
    """How well an order applies to a question, by its meaning (`fit`), or else by shared words and topic."""
    if fit is not None:
        return fit - _DOUBTED * order.doubt
    is_same = share_topic(question, order)
    stems = terms(order.condition or order.text)
    share = len(terms(question) & stems) / max(1, len(stems))
    return WORDS_APPLY * (share / _SHARE_APPLIES + is_same) - (
        less_a_wish(question) if order.is_wish else 0.0
    )


def applying(
    question: str,
    orders: Sequence[Order],
    fits: Sequence[float] | None,
    *,
    floor: float = WORDS_APPLY,
) -> list[Order]:
    """The few orders that apply to a question, the later first.

    `fits` tells for each order how well it applies by its meaning; `floor` is what it must reach. Of orders
    at most three stand that fit; those about every answer fill these places, and two of them always stand.
    Beside them stand at most four wishes.
    """
    special = [
        (score(question, order, None if fits is None else fits[place]), order)
        for place, order in enumerate(orders)
        if not order.is_general
    ]
    fitting = sorted((pair for pair in special if pair[0] >= floor), key=lambda pair: -pair[0])
    shown = [order for _, order in fitting if not order.is_wish][:SHOWN]
    shown += unconditional(orders)[: max(GENERAL_SHOWN, SHOWN - len(shown))]
    wishes = [order for _, order in fitting if order.is_wish]
    return sorted(shown + wishes[:WISHES_SHOWN], key=_later_first)


def unconditional(orders: Sequence[Order]) -> list[Order]:
    """The few orders that hold whatever is asked, the later first."""
    return [order for order in orders if order.is_general][:SHOWN]


@lru_cache(maxsize=8192)
def terms(text: str) -> frozenset[str]:
    """The terms that a question and an order are compared by."""
    return frozenset(term for run in split_runs(fold(text)) for term in terms_of_run(run))


@lru_cache(maxsize=8192)
def topics_of(text: str) -> frozenset[int]:
    """What a text is about, of the things that people ask for."""
    (spoken, written), words = _topics(), terms(text)
    named = {number for number, topic in enumerate(spoken) if not topic.isdisjoint(words)}
    found = {number for number, topic in enumerate(written, len(spoken)) if topic.search(text)}
    return frozenset(named | found)


def share_topic(question: str, order: Order) -> bool:
    """Whether a question is about one of the things that an order is about."""
    return not topics_of(question).isdisjoint(topics_of(order.condition or order.text))


def _later_first(order: Order) -> tuple[float, str]:
    return -order.at.timestamp(), order.memory


def ended_in(memories: Iterable[Memory]) -> dict[str, datetime]:
    """Which orders a person has ended, and when; an agent cannot."""
    ends = [memory for memory in memories if memory.category == ENDED and not memory.gone]
    return {str(memory.data.get("order")): memory.at for memory in ends if is_human(memory.actor)}


def distinct(orders: Iterable[Order], ended: Mapping[str, datetime] | None = None) -> list[Order]:
    """Each order once: said again, only the latest counts, and after its end only one said since."""
    ends = ended or {}
    latest: dict[str, Order] = {}
    for order in sorted(orders, key=lambda order: (order.at, order.version)):
        if not ends or order.key not in ends or order.at > ends[order.key]:
            latest[fold(order.text)] = order
    return sorted(latest.values(), key=_later_first)
