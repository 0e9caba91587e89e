"""Episodes as the documents write them (turn_1, turn_2, RI_global …), in and out without loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from octavo.domain.memory import Emotion, Link, Memory, Turn
from octavo.errors import BadInput

_TEXTS = ("raw_text", "text", "text_excerpt", "content", "summary")
_SPEAKERS = ("speaker", "role")
# What a turn's data says about how its document spelt it; it goes out the same way.
_TEXT_FIELD, _SPEAKER_FIELD, _LIST_FORM = "text_field", "speaker_field", "turns_as_list"
_SNAPSHOTS = ("state_snapshot", "emotive_snapshot", "timestamp", "ri_level", "RI_global")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What a document's episode says, in our words; `id` and `at` are None if it does not say."""

    id: str | None
    at: datetime | None
    turns: tuple[Turn, ...]
    salience: float
    emotion: Emotion | None
    tags: tuple[str, ...]
    links: tuple[Link, ...]
    data: dict[str, Any]


def from_document(given: Mapping[str, Any]) -> Document:
    """Read a document's episode; every field that has no word of ours stays in `data`."""
    numbered = [key for key in given if _is_numbered(key) and isinstance(given[key], Mapping)]
    as_list = not numbered and isinstance(given.get("turns"), list | tuple)
    if as_list:
        spoken = [_turn(turn, n) for n, turn in enumerate(given["turns"])]
    else:
        spoken = [_turn(given[key], n) for n, key in enumerate(sorted(numbered))]
    taken = {"episode_id", *numbered, *(["turns"] if as_list else [])}
    data = {key: value for key, value in given.items() if key not in taken}
    if as_list:
        data[_LIST_FORM] = True
    id_ = given.get("episode_id")
    return Document(
        id=None if id_ is None else str(id_),
        at=moment(given.get("timestamp") or given.get("created_at")),
        turns=tuple(spoken),
        salience=_salience(given),
        emotion=_emotion(given),
        tags=tuple(str(tag) for tag in _list(given.get("episode_tag"))),
        links=_links(given.get("crosslinks")),
        data=data,
    )


def to_document(memory: Memory) -> dict[str, Any]:
    """Write an episode the way its document spelt it, or in the seed's form."""
    data = dict(memory.data)
    as_list = data.pop(_LIST_FORM, False)
    written: dict[str, Any] = {"episode_id": memory.id}
    if memory.session is not None:
        written["session_id"] = memory.session
    written["timestamp"] = iso(memory.at)
    turns = [_turn_out(turn) for turn in memory.turns]
    written |= {"turns": turns} if as_list else {f"turn_{n}": turn for n, turn in enumerate(turns, 1)}
    if not _has_resonance(data):
        written["RI_global"] = memory.salience
    return written | data


def at_level(memory: Memory, level: str) -> Memory:
    """The RI write levels of seed 000: L1 keeps the snapshot, L2 adds the summary, L3 keeps everything."""
    if level not in ("L1", "L2"):
        return memory
    kept = {key: memory.data[key] for key in _SNAPSHOTS if key in memory.data} | {"ri_level": level}
    summary = memory.data.get("summary") if level == "L2" else None
    if summary is not None:
        kept["summary"] = summary
    return replace(memory, turns=(), text=str(summary or ""), tags=(), links=(), data=kept)


def moment(value: Any) -> datetime | None:
    """A document's time: ISO text (UTC if it does not say), epoch seconds, or a datetime."""
    match value:
        case None | "":
            return None
        case datetime():
            found = value
        case bool():
            raise BadInput(f"{value!r} is no time")
        case int() | float():
            found = datetime.fromtimestamp(value, UTC)
        case str():
            try:
                found = datetime.fromisoformat(value)
            except ValueError as error:
                raise BadInput(f"{value!r} is no time", hint="use ISO 8601, 2026-01-31T09:30:00Z") from error
        case _:
            raise BadInput(f"{value!r} is no time", hint="use ISO 8601, 2026-01-31T09:30:00Z")
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def iso(value: datetime) -> str:
    """A time as every file of ours writes it: UTC, with a Z."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _is_numbered(key: str) -> bool:
    return key.startswith("turn_") and key.removeprefix("turn_").isdigit()


def _turn(given: Any, number: int) -> Turn:
    if not isinstance(given, Mapping):
        raise BadInput(f"turn {number + 1} is {type(given).__name__}, not an object with a text")
    text_field = next((f for f in _TEXTS if isinstance(given.get(f), str)), "text")
    speaker_field = next((f for f in _SPEAKERS if isinstance(given.get(f), str)), "speaker")
    data = {key: value for key, value in given.items() if key not in (text_field, speaker_field)}
    if text_field != "text":
        data[_TEXT_FIELD] = text_field
    if speaker_field != "speaker":
        data[_SPEAKER_FIELD] = speaker_field
    speaker = given.get(speaker_field) or ("user" if number % 2 == 0 else "assistant")
    return Turn(
        speaker=str(speaker),
        text=str(given.get(text_field) or ""),
        at=moment(given.get("timestamp")) if isinstance(given.get("timestamp"), str) else None,
        data=data,
    )


def _turn_out(turn: Turn) -> dict[str, Any]:
    data = dict(turn.data)
    text_field = data.pop(_TEXT_FIELD, "text")
    speaker_field = data.pop(_SPEAKER_FIELD, "speaker")
    return {speaker_field: turn.speaker, text_field: turn.text, **data}


def _salience(given: Mapping[str, Any]) -> float:
    for holder in (given, given.get("state_snapshot")):
        for key in ("RI_global", "Resonance_index", "RI"):
            value = holder.get(key) if isinstance(holder, Mapping) else None
            if isinstance(value, int | float) and not isinstance(value, bool):
                return min(max(float(value), 0.0), 1.0)
    return 0.5


def _has_resonance(data: Mapping[str, Any]) -> bool:
    holders = (data, data.get("state_snapshot"))
    keys = ("RI_global", "Resonance_index", "RI")
    return any(isinstance(h, Mapping) and any(k in h for k in keys) for h in holders)


def _emotion(given: Mapping[str, Any]) -> Emotion | None:
    snapshot = given.get("state_snapshot")
    matrix = snapshot.get("EVA_matrix") if isinstance(snapshot, Mapping) else None
    label = matrix.get("emotion_label") if isinstance(matrix, Mapping) else given.get("emotion")
    return Emotion(label=label) if isinstance(label, str) and label else None


def _links(given: Any) -> tuple[Link, ...]:
    if not isinstance(given, Mapping):
        return ()
    return tuple(
        Link(name=str(name), to=to)
        for name, targets in given.items()
        for to in _list(targets)
        if isinstance(to, str) and to
    )


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]
