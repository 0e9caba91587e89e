"""Episodes as the documents write them (turn_1, turn_2, RI_global …), in and out without loss."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from msgspec.structs import replace

from octavo.domain.memory import Emotion, Link, Memory, Turn, is_id
from octavo.errors import BadInput

_TEXTS = ("raw_text", "text", "text_excerpt", "content", "summary")
_SPEAKERS = ("speaker", "role")
_UNRATED = 0.5
_RESONANCES = ("RI_global", "Resonance_index", "RI")
_SNAPSHOTS = ("state_snapshot", "emotive_snapshot", "timestamp", "ri_level", "RI_global")
# What data says about how a document spelt something; it goes out the same way. A document's own field
# of this name moves inside, under `own`.
SPELLING = "spelling"


def from_document(given: Mapping[str, Any], *, lenient: bool = False) -> dict[str, Any]:
    """A document's episode as fields of a memory; what has no word of ours stays in `data`.

    `id` and `at` are None if it does not say; a time that cannot be read is an error, or, if lenient, kept.
    """
    numbers = sorted(int(key[5:]) for key in given if _is_turn(key, given[key]))
    turns = given.get("turns")
    is_list = isinstance(turns, list | tuple) and all(isinstance(turn, Mapping | str) for turn in turns)
    as_list = not numbers and is_list
    spoken = given["turns"] if as_list else [given[f"turn_{n}"] for n in numbers]
    id_ = given.get("episode_id")
    taken = {f"turn_{n}" for n in numbers} | ({"turns"} if as_list else set())
    if id_ is None or is_id(id_):
        taken.add("episode_id")
    spelling: dict[str, Any] = {}
    if as_list:
        spelling["turns"] = "list"
    elif numbers != list(range(1, len(numbers) + 1)):
        spelling["turns"] = numbers
    resonance = _resonance(given)
    return {
        "id": id_ if is_id(id_) else None,
        "at": moment(given.get("timestamp") or given.get("created_at"), lenient=lenient),
        "turns": tuple(_turn(turn, n, lenient) for n, turn in enumerate(spoken)),
        "salience": _UNRATED if resonance is None else resonance,
        "emotion": _emotion(given),
        "tags": tuple(str(tag) for tag in _list(given.get("episode_tag"))),
        "links": _links(given.get("crosslinks")),
        "data": spelt({key: value for key, value in given.items() if key not in taken}, spelling),
    }


def to_document(memory: Memory, *, bare: bool = False) -> dict[str, Any]:
    """Write an episode the way its document spelt it, or in the seed's form.

    `bare` adds nothing that the document did not say.
    """
    data, spelling = unspelt(memory.data)
    written: dict[str, Any] = {"episode_id": memory.id, **({} if bare else _added(memory, data))}
    for key in spelling.get("absent", ()):
        written.pop(key, None)
    turns = [_turn_out(turn) for turn in memory.turns]
    numbers = spelling.get("turns", range(1, len(turns) + 1))
    if numbers == "list":
        written["turns"] = turns
    else:
        written |= {f"turn_{n}": turn for n, turn in zip(numbers, turns, strict=False)}
    return written | data


def as_given(memory: Memory, given: Mapping[str, Any]) -> Memory:
    """The episode, marked so that it goes out exactly as it came in: nothing added, its own id kept."""
    written = to_document(memory)
    absent = sorted(written.keys() - given.keys())
    is_named = "episode_id" in given and written.get("episode_id") != given["episode_id"]
    if not absent and not is_named:
        return memory
    data = {**memory.data, **({"episode_id": given["episode_id"]} if is_named else {})}
    if absent:
        data[SPELLING] = {**data.get(SPELLING, {}), "absent": absent}
    return replace(memory, data=data)


def spelt(data: Mapping[str, Any], spelling: Mapping[str, Any]) -> dict[str, Any]:
    """Data with a note of how its document spelt it, if there is anything to note."""
    kept = dict(data)
    own = {"own": kept.pop(SPELLING)} if SPELLING in kept else {}
    return {**kept, SPELLING: {**spelling, **own}} if spelling or own else kept


def unspelt(data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Data as its document had it, and the note of how that spelt it."""
    kept = dict(data)
    noted = kept.pop(SPELLING, None)
    if not isinstance(noted, Mapping):
        return dict(data), {}
    spelling = dict(noted)
    if "own" in spelling:
        kept[SPELLING] = spelling.pop("own")
    return kept, spelling


def at_level(memory: Memory, level: str) -> Memory:
    """The RI write levels of seed 000: L1 keeps the snapshot, L2 adds the summary, L3 keeps everything."""
    if level not in ("L1", "L2"):
        return memory
    kept = {key: memory.data[key] for key in _SNAPSHOTS if key in memory.data} | {"ri_level": level}
    summary = _summary(memory) if level == "L2" else None
    if summary is not None:
        kept["summary"] = summary
    return replace(memory, turns=(), text=str(summary or ""), tags=(), links=(), data=kept)


def _summary(memory: Memory) -> str | None:
    """What the episode says in short: its own summary, or those of its turns."""
    said = (memory.data, *(turn.data for turn in memory.turns))
    found = [holder["summary"] for holder in said if isinstance(holder.get("summary"), str)]
    own = isinstance(memory.data.get("summary"), str)
    return found[0] if own else "\n".join(found) or None


def moment(value: Any, *, lenient: bool = False) -> datetime | None:
    """A document's time: ISO text or a day (UTC if it does not say), epoch seconds, or a datetime.

    One that cannot be read is an error, or None if lenient; `+00:00Z`, as some write it, can be read.
    """
    try:
        match value:
            case None | "":
                return None
            case datetime():
                found = value
            case int() | float() if not isinstance(value, bool):
                found = datetime.fromtimestamp(value, UTC)
            case str() | date():
                found = datetime.fromisoformat(str(value).replace("+00:00Z", "+00:00"))
            case _:
                raise ValueError
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError, OSError) as error:
        if lenient:
            return None
        hint = "use ISO 8601, 2026-01-31T09:30:00Z, or seconds since 1970"
        raise BadInput(f"{value!r:.80} is no time", hint=hint) from error


def iso(value: datetime) -> str:
    """A time as every file of ours writes it: UTC, with a Z."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _is_turn(key: str, value: Any) -> bool:
    number = key.removeprefix("turn_") if key.startswith("turn_") else ""
    plain = number.isascii() and number.isdecimal() and len(number) < 6 and str(int(number)) == number
    return plain and isinstance(value, Mapping | str)


def _turn(given: Mapping[str, Any] | str, number: int, lenient: bool) -> Turn:
    speaker = "user" if number % 2 == 0 else "assistant"
    if isinstance(given, str):
        return Turn(speaker=speaker, text=given, data=spelt({}, {"form": "text"}))
    text_field = next((f for f in _TEXTS if isinstance(given.get(f), str)), None)
    speaker_field = next((f for f in _SPEAKERS if isinstance(given.get(f), str) and given[f]), None)
    spelling = {} if text_field == "text" else {"text": text_field}
    spelling |= {} if speaker_field == "speaker" else {"speaker": speaker_field}
    rest = {key: value for key, value in given.items() if key not in (text_field, speaker_field)}
    said, salience = given.get("timestamp"), given.get("salience")
    is_rated = isinstance(salience, int | float) and not isinstance(salience, bool) and 0 <= salience <= 1
    return Turn(
        speaker=given[speaker_field] if speaker_field else speaker,
        text=given[text_field] if text_field else "",
        at=moment(said, lenient=lenient) if isinstance(said, str) else None,
        salience=float(given["salience"]) if is_rated else None,
        data=spelt(rest, spelling),
    )


def _turn_out(turn: Turn) -> dict[str, Any] | str:
    data, spelling = unspelt(turn.data)
    if spelling.get("form") == "text" and not data:
        return turn.text
    written: dict[str, Any] = {}
    if turn.at is not None:
        written["timestamp"] = iso(turn.at)
    if turn.salience is not None:
        written["salience"] = turn.salience
    text_field, speaker_field = spelling.get("text", "text"), spelling.get("speaker", "speaker")
    if speaker_field is not None:
        written[speaker_field] = turn.speaker
    if text_field is not None:
        written[text_field] = turn.text
    return written | data


def _added(memory: Memory, data: Mapping[str, Any]) -> dict[str, Any]:
    """What an episode of ours says besides its turns, in the documents' words."""
    found: dict[str, Any] = {"timestamp": iso(memory.at)}
    if memory.sandbox is not None:
        found["session_id"] = memory.sandbox
    holders = [holder for holder in (data, data.get("state_snapshot")) if isinstance(holder, Mapping)]
    if not any(key in holder for holder in holders for key in _RESONANCES):
        found["RI_global"] = recorded_salience(memory)
    if memory.category is not None:
        found["category"] = memory.category
    if memory.tags:
        found["episode_tag"] = list(memory.tags)
    for link in memory.links:
        found.setdefault("crosslinks", {}).setdefault(link.name, []).append(link.to)
    if memory.emotion is not None and memory.emotion.label and "state_snapshot" not in data:
        found["emotion"] = memory.emotion.label
    return found


def _resonance(given: Mapping[str, Any]) -> float | None:
    for holder in (given, given.get("state_snapshot")):
        for key in _RESONANCES:
            value = holder.get(key) if isinstance(holder, Mapping) else None
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(min(max(value, 0), 1))
    return None


def recorded_salience(memory: Memory) -> float | None:
    """How much an episode matters as somebody recorded it; None where a half only means that nobody did."""
    is_rated = any(turn.salience is not None for turn in memory.turns) or _resonance(memory.data) is not None
    return memory.salience if is_rated or memory.salience != _UNRATED else None


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
