"""The gate: the checks that every write passes, on every path.

Text checks run before any durable byte; state checks run again, binding, at every attempt to commit.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import likeness, noise, screening
from octavo.domain.lookalikes import look, looks
from octavo.domain.memory import SHARED, Memory, Turn, transcript
from octavo.domain.policy import GatePolicy, Policy, PrivacyPolicy
from octavo.domain.state import View
from octavo.domain.text import key_of
from octavo.errors import BadInput

# Checks whose refusal must not keep the refused text.
SILENT = frozenset({"secret", "rejection", "redaction"})

_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Mn", "Zl", "Zp", "Zs"})
_BLANK = "\u115f\u1160\u2800\u3164\uffa0"  # letters and signs that show nothing

_STORES = frozenset({"concept", "relationship", "gks"})
_STATEMENTS = ("fact", "register", "canon", "skill")


class Stop(Struct, frozen=True, kw_only=True):
    """The memory stays out; `check` names the check that stopped it."""

    check: str
    detail: str
    advice: str = ""


class Like(Struct, frozen=True, kw_only=True):
    """A memory that says nearly the same; `contrast` names what differs, None if it only restates."""

    memory: Memory
    contrast: str | None


def check_text(memory: Memory, policy: Policy, *, overridden: bool = False) -> Memory | Stop:
    """The checks of a text by itself: noise, length, secrets; an admitted memory may come back masked."""
    row = policy.kinds.of(memory.kind)
    said = memory.text or (" ".join(t.text for t in memory.turns))
    if not is_visible(said) and not memory.data:
        return Stop(check="empty", detail="there is no text", advice="say what to remember")
    signal = noise.is_noise(memory.text, policy.gate.signals) if row.noise and not overridden else None
    if signal is not None:
        detail = f"journal-only signal {signal!r} and little else"
        return Stop(check="noise", detail=detail, advice="write it as an episode of category `event`")
    if row.max_length is not None and len(said) > row.max_length and not overridden:
        detail = f"the text is too long: {len(said)} characters, {row.max_length} are allowed"
        return Stop(check="length", detail=detail, advice="compress it or split it")
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
    return row.secrets == "allow" or not screening.findings(turn, policy.privacy)


def check_state(
    view: View, memory: Memory, keyed: Callable[[str], str], *, overridden: bool = False
) -> Memory | Stop:
    """What a person refused or erased stays out; an episode is kept, with erased text masked.

    What a memory says and is called by decides whether it goes in; beside that, such a value is masked.
    """
    if not view.has_refused():
        return memory
    if memory.kind == "episode":
        return _episode_without(view, memory, keyed)
    for text in filter(None, (memory.text, memory.topic)) if memory.kind in _STATEMENTS else ():
        if view.is_redacted(keyed(key_of(text)), memory.scope):
            return Stop(check="redaction", detail="a person erased this text", advice="say it anew, or not")
        if not overridden and is_rejected(view, text, memory.scope, keyed):
            detail = "a person refused this value and it stays refused"
            return Stop(check="rejection", detail=detail, advice="a person may lift the rejection")
    return without_refused(view, memory, keyed, overridden=overridden)


def without_refused(
    view: View, memory: Memory, keyed: Callable[[str], str], *, overridden: bool = False
) -> Memory:
    """A memory whose category, tags, feeling and data say nothing that a person refused or erased."""
    if not view.has_refused():
        return memory

    def clean(text: str) -> str:
        if not key_of(text):
            return text
        if view.is_redacted(keyed(key_of(text)), memory.scope):
            return "[redacted]"
        return "[refused]" if not overridden and is_rejected(view, text, memory.scope, keyed) else text

    emotion = memory.emotion
    return replace(
        memory,
        category=memory.category and clean(memory.category),
        tags=tuple(tag for tag in memory.tags if clean(tag) == tag),
        emotion=replace(emotion, label=clean(emotion.label)) if emotion and emotion.label else emotion,
        data=screening.mapped(memory.data, clean),
    )


def is_rejected(view: View, text: str, scope: str, keyed: Callable[[str], str]) -> bool:
    """Whether a person refused a value, in this scope or everywhere, however it is dressed up."""
    keys = (keyed(key_of(text)), *(keyed(f"look {form}") for form in looks(text)))
    return any(view.is_rejected(key, where) for key in keys for where in dict.fromkeys((scope, SHARED)))


def look_key(text: str, keyed: Callable[[str], str]) -> str:
    """The keyed hash of what a text looks like."""
    return keyed(f"look {look(text)}")


def _episode_without(view: View, memory: Memory, keyed: Callable[[str], str]) -> Memory:
    if not view.has_redactions():
        return memory
    if any(view.is_redacted(keyed(key_of(turn.text)), memory.scope) for turn in memory.turns):
        turns = tuple(_without_redacted(turn, memory.scope, view, keyed) for turn in memory.turns)
        return replace(memory, turns=turns, text=transcript(turns))
    return memory


def nearest(view: View, memory: Memory, policy: GatePolicy) -> Like | None:
    """The live memory of its kind and scope that says nearly the same; a restatement before a contrast."""
    contrasting: Like | None = None
    is_near = likeness.near_to(memory.text, policy)
    for other in view.alike(memory.kind, memory.scope, memory.text, is_near):
        if other.topic or other.id == memory.id or _are_apart(other, memory):
            continue
        contrast = likeness.contrast(other.text, memory.text)
        if contrast is None:
            return Like(memory=other, contrast=None)
        contrasting = contrasting or Like(memory=other, contrast=contrast)
    return contrasting


def _are_apart(one: Memory, other: Memory) -> bool:
    """Whether two memories belong to different stores of knowledge: an edge of the graph is no fact."""
    return one.category != other.category and bool({one.category, other.category} & _STORES)


def _named_secret(memory: Memory) -> Stop | None:
    """A name cannot be masked, so one that holds a secret keeps the memory out, whatever its kind."""
    try:
        screening.must_be_clean(memory)
    except BadInput as error:
        return Stop(check="secret", detail=error.message, advice=error.advice)
    return None


def _check_privacy(memory: Memory, policy: PrivacyPolicy, *, mask: bool, allow: bool) -> Memory | Stop:
    if allow:
        return memory
    if named := _named_secret(memory):
        return named
    found = screening.findings(memory, policy)
    if not found:
        return memory
    hard = found - {what for what in ("phone", "email") if getattr(policy, what) == "mask"}
    if hard and not mask:
        kinds = ", ".join(sorted(hard))
        return Stop(
            check="secret",
            detail=f"PII or a secret: {kinds}",
            advice="leave the secret out; it was not kept",
        )
    return screening.masked(memory, policy)


def _without_redacted(turn: Turn, scope: str, view: View, keyed: Callable[[str], str]) -> Turn:
    if view.is_redacted(keyed(key_of(turn.text)), scope):
        return replace(turn, text="[redacted]", data={})
    return turn
