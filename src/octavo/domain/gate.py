"""The gate: the checks that every write passes, on every path.

Text checks run before any durable byte; state checks run again, binding, at every attempt to commit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache

from msgspec.structs import replace

from octavo.domain import likeness, noise, privacy, screening
from octavo.domain.lookalikes import look, looks
from octavo.domain.memory import SHARED, Memory, Turn, transcript
from octavo.domain.names import ALIAS
from octavo.domain.patterns import pattern
from octavo.domain.policy import GatePolicy, Policy, PrivacyPolicy
from octavo.domain.state import View
from octavo.domain.text import key_of
from octavo.domain.verdicts import Verdict, refused
from octavo.errors import BadInput

REDACTED, REFUSED = "[redacted]", "[refused]"  # what stands in the place of a text that must not
# Where a text falls into parts that each say something: sentences, lines, paths, what follows a label.
_PIECES = pattern(r"[\n;|/]+|(?<=[.!?…。！？ฯ])\s+|:\s+|\s[-–—]\s")
_TELLING = 12  # letters of a part that says something by itself

_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Mn", "Zl", "Zp", "Zs"})
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"  # letters and signs that show nothing

_STORES = frozenset({"concept", "relationship", "gks"})
_STATEMENTS = ("fact", "register", "canon", "skill")


def check_text(memory: Memory, policy: Policy, *, overridden: bool = False) -> Memory | Verdict:
    """The checks of a text by itself: noise, length, secrets; an admitted memory may come back masked."""
    row = policy.kinds.of(memory.kind)
    said = memory.text or (" ".join(t.text for t in memory.turns))
    if not is_visible(said) and not memory.data:
        return refused("empty", "there is no text", "say what to remember")
    signal = noise.is_noise(memory.text, policy.gate.signals) if row.noise and not overridden else None
    if signal is not None:
        detail = f"journal-only signal {signal!r} and little else"
        return refused("noise", detail, "write it as an episode of category `event`")
    if row.max_length is not None and len(said) > row.max_length and not overridden:
        detail = f"the text is too long: {len(said)} characters, {row.max_length} are allowed"
        return refused("length", detail, "compress it or split it")
    return _check_privacy(memory, policy.privacy, mask=row.secrets == "mask", allow=row.secrets == "allow")


def is_visible(text: str) -> bool:
    """Whether a reader would see anything of a text."""
    return any(c not in _BLANK and unicodedata.category(c) not in _UNSEEN for c in text)


def is_plain(turn: Turn, policy: Policy) -> bool:
    """Whether the text checks of an episode would pass a turn as it is; most are, and need no closer look."""
    row = policy.kinds.episode
    if row.noise or not is_visible(turn.text):
        return False
    if row.max_length is not None and len(turn.speaker) + 2 + len(turn.text) > row.max_length:
        return False
    is_bare = not turn.data and turn.emotion is None  # besides these two a turn has numbers
    if is_bare and not privacy.is_suspect(f"{turn.speaker}\n{turn.text}", policy.privacy):
        return True
    return row.secrets == "allow" or not screening.findings(turn, policy.privacy)


def check_state(
    view: View, memory: Memory, keyed: Callable[[str], str], *, overridden: bool = False
) -> Memory | Verdict:
    """What a person refused or erased stays out; an episode is kept, with erased text masked.

    What a memory says and is called by decides whether it goes in; beside that, such a value is masked.
    """
    if not view.has_refused():
        return memory
    said = (memory.text, memory.topic, *(memory.data.values() if memory.category == ALIAS else ()))
    for text in filter(None, said) if memory.kind in _STATEMENTS else ():
        if view.is_redacted(keyed(key_of(text)), memory.scope):
            return refused("redaction", "a person erased this text", "say it anew, or not")
        if not overridden and is_rejected(view, text, memory.scope, keyed):
            detail = "a person refused this value and it stays refused"
            return refused("rejection", detail, "a person may lift the rejection")
    return without_refused(view, memory, keyed, overridden=overridden)


def without_refused(
    view: View, memory: Memory, keyed: Callable[[str], str], *, overridden: bool = False
) -> Memory:
    """A memory of which no string but what it says holds what a person refused or erased.

    Of what was said in an episode only what was erased is masked: a conversation is kept as it was.
    """

    def is_erased(text: str) -> bool:
        return view.is_redacted(keyed(key_of(text)), memory.scope)

    @cache
    def clean(text: str) -> str:
        return without(view, text, memory.scope, keyed, overridden=overridden)

    def is_kept(name: str) -> bool:
        return clean(name) is name

    beside = replace(memory, text="", topic=None, turns=(), tags=(), links=())
    turns = tuple(_cleaned(turn, clean, is_erased) for turn in memory.turns)
    cleaned: Memory = screening.mapped(beside, clean)
    return replace(
        cleaned,
        text=transcript(turns) if turns else memory.text,
        topic=memory.topic if memory.kind in _STATEMENTS else memory.topic and clean(memory.topic),
        turns=turns,
        tags=tuple(filter(is_kept, memory.tags)),
        links=tuple(link for link in memory.links if is_kept(link.name)),
    )


def without(
    view: View, text: str, scope: str, keyed: Callable[[str], str], *, overridden: bool = False
) -> str:
    """A text, or what stands in its place because a person refused or erased it."""
    if not key_of(text):
        return text
    if view.is_redacted(keyed(key_of(text)), scope):
        return REDACTED
    return REFUSED if not overridden and is_rejected(view, text, scope, keyed) else text


def is_rejected(view: View, text: str, scope: str, keyed: Callable[[str], str]) -> bool:
    """Whether a person refused a value, in this scope or everywhere, however it is dressed up.

    So is a text in which it stands as a sentence, a line, a part of a path or behind a label.
    """
    scopes = tuple(dict.fromkeys((scope, SHARED)))
    for piece in dict.fromkeys((text, *_PIECES.split(text))):
        if piece is not text and len(look(piece)) < _TELLING:
            continue
        keys = (keyed(key_of(piece)), *(keyed(f"look {form}") for form in looks(piece)))
        if any(view.is_rejected(key, where) for key in keys for where in scopes):
            return True
    return False


def nearest(view: View, memory: Memory, policy: GatePolicy) -> tuple[Memory, str | None] | None:
    """The live memory of its kind and scope that says nearly the same, and what differs, if anything does.

    A restatement comes before a contrast.
    """
    contrasting: tuple[Memory, str | None] | None = None
    is_near = likeness.near_to(memory.text, policy)
    for other in view.alike(memory.kind, memory.scope, memory.text, is_near):
        # What belongs to different stores of knowledge: an edge of the graph is no fact.
        stores = {other.category, memory.category}
        if other.topic or other.id == memory.id or (len(stores) > 1 and stores & _STORES):
            continue
        contrast = likeness.contrast(other.text, memory.text)
        if contrast is None:
            return other, None
        contrasting = contrasting or (other, contrast)
    return contrasting


def _check_privacy(memory: Memory, policy: PrivacyPolicy, *, mask: bool, allow: bool) -> Memory | Verdict:
    if allow:
        return memory
    try:
        screening.must_be_clean(memory)
    except BadInput as error:  # a name cannot be masked, so it keeps the memory out, whatever its kind
        return refused("secret", error.message, error.advice)
    found = screening.findings(memory, policy)
    if not found:
        return memory
    hard = found - {what for what in ("phone", "email") if getattr(policy, what) == "mask"}
    if hard and not mask:
        kinds = ", ".join(sorted(hard))
        return refused("secret", f"PII or a secret: {kinds}", "leave the secret out; it was not kept")
    return screening.masked(memory, policy)


def _cleaned(turn: Turn, clean: Callable[[str], str], is_erased: Callable[[str], bool]) -> Turn:
    """A turn whose words stay unless they were erased, with what it carries cleaned."""
    gone = is_erased(turn.text)
    carried: Turn = screening.mapped(replace(turn, text="", data={} if gone else turn.data), clean)
    return replace(carried, text=REDACTED if gone else turn.text)
