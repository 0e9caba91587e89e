"""The gate: the checks that every write passes, on every path.

Text checks run before any durable byte; state checks run again, binding, at every attempt to commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from octavo.domain import likeness, noise, privacy
from octavo.domain.memory import SHARED, Memory, Turn, transcript
from octavo.domain.policy import GatePolicy, Policy, PrivacyPolicy
from octavo.domain.state import View
from octavo.domain.text import key_of

# Checks whose refusal must not keep the refused text.
SILENT = frozenset({"secret", "rejection", "redaction"})

_STORES = frozenset({"concept", "relationship", "gks"})
_STATEMENTS = ("fact", "register", "canon", "skill")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The memory stays out; `check` names the check that stopped it."""

    check: str
    detail: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Like:
    """A memory that says nearly the same; `contrast` names what differs, None if it only restates."""

    memory: Memory
    contrast: str | None


def check_text(memory: Memory, policy: Policy, *, overridden: bool = False) -> Memory | Stop:
    """The checks of a text by itself: noise, length, secrets; an admitted memory may come back masked."""
    row = policy.kinds.of(memory.kind)
    said = memory.text or (" ".join(t.text for t in memory.turns))
    if not said.strip() and not memory.data:
        return Stop(check="empty", detail="there is no text", advice="say what to remember")
    signal = noise.is_noise(memory.text, policy.gate.signals) if row.noise and not overridden else None
    if signal is not None:
        detail = f"journal-only signal {signal!r} and little else"
        return Stop(check="noise", detail=detail, advice="write it as an episode of category `event`")
    if row.max_length is not None and len(said) > row.max_length and not overridden:
        detail = f"the text is too long: {len(said)} characters, {row.max_length} are allowed"
        return Stop(check="length", detail=detail, advice="compress it or split it")
    return _check_privacy(memory, policy.privacy, mask=row.secrets == "mask", allow=row.secrets == "allow")


def is_plain(turn: Turn, policy: Policy) -> bool:
    """Whether the text checks of an episode would pass a turn as it is; most are, and need no closer look."""
    row = policy.kinds.episode
    if row.noise or not turn.text.strip():
        return False
    if row.max_length is not None and len(transcript((turn,))) > row.max_length:
        return False
    return row.secrets == "allow" or not _found_in((turn.speaker, turn.text), (turn.data,), policy.privacy)


def check_state(
    view: View, memory: Memory, keyed: Callable[[str], str], *, overridden: bool = False
) -> Memory | Stop:
    """What a person refused or erased stays out; an episode is kept, with erased text masked."""
    if memory.kind in _STATEMENTS and memory.text:
        key = keyed(key_of(memory.text))
        if view.is_redacted(key):
            return Stop(check="redaction", detail="a person erased this text", advice="say it anew, or not")
        refused = view.is_rejected(key, memory.scope) or view.is_rejected(key, SHARED)
        if refused and not overridden:
            detail = "a person refused this value and it stays refused"
            return Stop(check="rejection", detail=detail, advice="a person may lift the rejection")
    if memory.kind != "episode" or not view.has_redactions():
        return memory
    if any(view.is_redacted(keyed(key_of(turn.text))) for turn in memory.turns):
        turns = tuple(_without_redacted(turn, view, keyed) for turn in memory.turns)
        return replace(memory, turns=turns, text=transcript(turns))
    return memory


def nearest(view: View, memory: Memory, policy: GatePolicy) -> Like | None:
    """The live memory of its kind and scope that says nearly the same; a restatement before a contrast."""
    contrasting: Like | None = None
    for other in view.alike(memory.kind, memory.scope, memory.text):
        if other.topic or other.id == memory.id or _are_apart(other, memory):
            continue
        if not likeness.is_near(other.text, memory.text, policy):
            continue
        contrast = likeness.contrast(other.text, memory.text)
        if contrast is None:
            return Like(memory=other, contrast=None)
        contrasting = contrasting or Like(memory=other, contrast=contrast)
    return contrasting


def _are_apart(one: Memory, other: Memory) -> bool:
    """Whether two memories belong to different stores of knowledge: an edge of the graph is no fact."""
    return one.category != other.category and bool({one.category, other.category} & _STORES)


def _check_privacy(memory: Memory, policy: PrivacyPolicy, *, mask: bool, allow: bool) -> Memory | Stop:
    if allow:
        return memory
    found = _findings(memory, policy)
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
    turns = tuple(
        replace(turn, text=privacy.masked(turn.text, policy), data=privacy.mask_data(turn.data, policy))
        for turn in memory.turns
    )
    return replace(
        memory,
        text=transcript(turns) if turns else privacy.masked(memory.text, policy),
        turns=turns,
        topic=privacy.masked(memory.topic, policy) if memory.topic else None,
        category=privacy.masked(memory.category, policy) if memory.category else None,
        tags=tuple(privacy.masked(tag, policy) for tag in memory.tags),
        data=privacy.mask_data(memory.data, policy),
    )


def _findings(memory: Memory, policy: PrivacyPolicy) -> set[str]:
    """The names of all secrets in the text and in every string beside it."""
    texts = [text for text in (memory.topic, memory.category, *memory.tags) if text]
    nested = [memory.data] if memory.data else []
    for turn in memory.turns:
        texts += (turn.speaker, turn.text)
        if turn.data:
            nested.append(turn.data)
    if not memory.turns:
        texts.append(memory.text)
    return _found_in(texts, nested, policy)


def _found_in(texts: Sequence[str], nested: Iterable[Any], policy: PrivacyPolicy) -> set[str]:
    found: set[str] = set()
    if privacy.is_suspect("\n".join(texts), policy):  # one look at all of them clears nearly every memory
        found.update(finding.what for text in texts for finding in privacy.find(text, policy))
    for data in nested:
        found.update(finding.what for finding in privacy.find_data(data, policy))
    return found


def _without_redacted(turn: Turn, view: View, keyed: Callable[[str], str]) -> Turn:
    if view.is_redacted(keyed(key_of(turn.text))):
        return replace(turn, text="[redacted]", data={})
    return turn
