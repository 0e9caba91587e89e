"""LoCoMo: how many evidence turns and sessions recall finds, without an LLM."""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import octavo
from octavo.domain.compression import CompressionPolicy
from octavo.domain.policy import Policy
from octavo.domain.units import Unit
from octavo.models.rerank import offline_reranker

NOW = datetime(2024, 6, 1, tzinfo=UTC)
Recall = Callable[[str, int], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of a conversation, as the data has it."""

    id: str
    session: int
    speaker: str
    text: str
    at: datetime


def main() -> None:
    """Measure every conversation and print the table."""
    options = _options()
    rows: list[tuple[int, dict[str, float]]] = []
    for conversation in json.loads((options.data / "locomo-dev.json").read_text()):
        turns = list(turns_of(conversation["conversation"], captions=not options.no_captions))
        session_of = {turn.id: turn.session for turn in turns}
        with tempfile.TemporaryDirectory() as folder:
            recall = store(
                Path(folder),
                turns,
                embedder=options.embedder,
                rerank=options.rerank,
                compress=options.compress,
                budget=options.budget,
            )
            for asked in conversation["qa"]:
                evidence = {turn for turn in asked["evidence"] if turn in session_of}
                if evidence:
                    found = recall(asked["question"], 100)
                    rows.append((asked["category"], measure(found, evidence, session_of)))
    _report(rows)


def store(
    folder: Path,
    turns: list[Turn],
    *,
    embedder: str,
    rerank: bool = False,
    compress: bool = False,
    budget: int | None = None,
) -> Recall:
    """Put a conversation into an account, session by session, and return its recall as turn ids."""
    account = octavo.open(
        folder,
        actor="human:bench",
        policy=Policy(compression=CompressionPolicy(mode="immediate" if compress else "manual")),
        embedder=None if embedder == "use" else False,
        reranker=offline_reranker() if rerank else False,
    )
    for _, said in groupby(turns, key=lambda turn: turn.session):
        session = list(said)
        with account.sandbox(started_at=session[0].at) as sandbox:
            for turn in session:
                sandbox.turn(turn.speaker, turn.text, at=turn.at, data={"number": turn.id})
    account.catch_up()

    def recall(question: str, k: int) -> list[str]:
        bound = {"k": k} if budget is None else {"budget": budget}
        hits = account.recall(question, unit="turn", **bound)
        return [hit.memory.turns[hit.turn].data["number"] for hit in hits if hit.turn is not None]

    return recall


def unit_of(turn: Turn, position: int) -> Unit:
    """A turn as the index takes it."""
    return Unit(
        memory=turn.id,
        rev=1,
        turn=0,
        scope="shared",
        kind="episode",
        layer="episodic",
        text=turn.text,
        at=turn.at,
        valid_from=1,
        session=f"session-{turn.session}",
        position=position,
        speaker=turn.speaker,
    )


def turns_of(conversation: dict[str, object], *, captions: bool) -> Iterator[Turn]:
    """The turns of a conversation in order."""
    numbers = sorted(int(key[8:]) for key in conversation if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        written = str(conversation[f"session_{number}_date_time"])
        at = datetime.strptime(written, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in conversation[f"session_{number}"]:  # type: ignore[attr-defined]
            caption = turn.get("blip_caption")
            text = f"{turn['text']} [photo: {caption}]" if caption and captions else turn["text"]
            yield Turn(id=turn["dia_id"], session=number, speaker=turn["speaker"], text=text, at=at)


def measure(found: list[str], evidence: set[str], session_of: dict[str, int]) -> dict[str, float]:
    """The shares of one question."""
    sessions = list(dict.fromkeys(session_of[turn] for turn in found))[:5]
    wanted = {session_of[turn] for turn in evidence}
    shares = {f"R@{k}": len(evidence & set(found[:k])) / len(evidence) for k in (5, 10, 20)}
    shares["R"] = len(evidence & set(found)) / len(evidence)
    return {**shares, "sessions R@5": len(wanted & set(sessions)) / len(wanted)}


def _report(rows: list[tuple[int, dict[str, float]]]) -> None:
    asked = [measures for category, measures in rows if category != 5]
    result = {name: percent([measures[name] for measures in asked]) for name in asked[0]}
    for category in range(1, 6):
        of_category = [measures["R@10"] for c, measures in rows if c == category]
        result[f"category {category} R@10"] = percent(of_category)
        result[f"category {category} R"] = percent([m["R"] for c, m in rows if c == category])
    print(json.dumps({"questions": len(asked), **result}, indent=2))


def percent(values: list[float]) -> float:
    """The mean in percent."""
    return round(100 * sum(values) / max(1, len(values)), 2)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="the folder that holds locomo-dev.json")
    parser.add_argument("--embedder", default="use", choices=["use", "none"])
    parser.add_argument("--rerank", action="store_true", help="with the rerank extra")
    parser.add_argument("--compress", action="store_true", help="with cores made as sessions close")
    parser.add_argument("--budget", type=int, help="as many turns as fit so many tokens, instead of 100")
    parser.add_argument("--no-captions", action="store_true", help="leave the photos' captions out")
    options = parser.parse_args()
    if not (options.data / "locomo-dev.json").exists():
        parser.error(f"{options.data} holds no locomo-dev.json; see the data folder's README")
    return options


if __name__ == "__main__":
    main()
