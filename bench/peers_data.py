"""What all peers are given: the same documents, the same questions and the same vectors."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from bench.texts import Texts

DIMENSION = 512
_BEGAN = datetime(2023, 1, 1, tzinfo=UTC)
_SESSION = 100  # turns of a synthetic session


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One turn: what was said, by whom, when, in which session."""

    id: str
    session: str
    speaker: str
    text: str
    at: datetime

    @property
    def line(self) -> str:
        """The turn as one text, for peers that have no field for a speaker."""
        return f"{self.speaker}: {self.text}"

    @property
    def dated(self) -> str:
        """The turn as one text with its day, for peers that search words of one field."""
        return f"{self.at.day} {self.at:%B %Y}, {self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and the turns that answer it; none when only speed is asked for."""

    text: str
    evidence: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """What one store holds, and what is asked of it."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]


class Vectors:
    """Texts to vectors, each embedded once; `seconds` is what embedding has taken, to be taken off again."""

    def __init__(self, *, synthetic: bool = False) -> None:
        self._known: dict[str, Any] = {}
        self._synthetic = synthetic
        self._model: Any = None
        self.seconds = self.cpu_seconds = 0.0
        self.embedded = 0

    def __call__(self, texts: Sequence[str]) -> Any:
        """One row a text; what is known costs a look-up."""
        began, worked = time.perf_counter(), time.thread_time()
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= zip(new, self._embed(new), strict=True)
            self.seconds += time.perf_counter() - began
            self.cpu_seconds += time.thread_time() - worked
            self.embedded += len(new)
        return np.array([self._known[text] for text in texts], dtype=np.float32)

    def save(self, path: Path) -> None:
        """Keep what is known for the workers."""
        path.with_suffix(".json").write_text(json.dumps(list(self._known)))
        np.save(path.with_suffix(".npy"), np.array(list(self._known.values()), dtype=np.float32))

    def load(self, path: Path) -> None:
        """Take over what was kept."""
        if path.with_suffix(".json").exists():
            texts = json.loads(path.with_suffix(".json").read_text())
            self._known |= zip(texts, np.load(path.with_suffix(".npy")), strict=True)

    def _embed(self, texts: Sequence[str]) -> Any:
        if self._synthetic:
            return [_seeded(text) for text in texts]
        if self._model is None:
            from octavo.models.embedders import offline_embedder

            self._model = offline_embedder()
        found = self._model.embed(texts)
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def conversations(data: Path) -> list[Talk]:
    """The conversations of the development half, questions of categories 1 to 4."""
    found = []
    for number, entry in enumerate(json.loads((data / "locomo-dev.json").read_text("utf-8")), start=1):
        documents = tuple(_turns(entry["conversation"]))
        known = {document.id for document in documents}
        questions = tuple(
            Question(text=asked["question"], evidence=frozenset(known & set(asked["evidence"])))
            for asked in entry["qa"]
            if asked["category"] != 5 and known & set(asked["evidence"])
        )
        found.append(Talk(name=f"talk{number}", documents=documents, questions=questions))
    return found


def synthetic(size: int, questions: int, *, seed: int = 8) -> Talk:
    """Seeded small talk of any size, in English and Thai; it is for speed, nothing is to be found in it."""
    texts, speakers = Texts(seed), ("Mali", "Kenji")
    documents = tuple(
        Document(
            id=f"d{number}",
            session=f"s{number // _SESSION}",
            speaker=speakers[number % 2],
            text=texts.sentence(),
            at=_BEGAN + timedelta(minutes=number),
        )
        for number in range(size)
    )
    asked = Texts(seed + 1)
    return Talk(
        name=f"synthetic{size}",
        documents=documents,
        questions=tuple(Question(text=asked.sentence()) for _ in range(questions)),
    )


def marked(number: int) -> Document:
    """A document like no other, to see whether it can be found."""
    word = hashlib.sha256(str(number).encode()).hexdigest()[:12]
    return Document(
        id=f"marked{number}",
        session="marked",
        speaker="Mali",
        text=f"the word of the day is {word}",
        at=_BEGAN + timedelta(days=400, minutes=number),
    )


def _turns(conversation: dict[str, Any]) -> list[Document]:
    found = []
    number = 1
    while f"session_{number}" in conversation:
        written = conversation[f"session_{number}_date_time"]
        at = datetime.strptime(written, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in conversation[f"session_{number}"]:
            caption = turn.get("blip_caption")
            found.append(
                Document(
                    id=turn["dia_id"],
                    session=f"session_{number}",
                    speaker=turn["speaker"],
                    text=f"{turn['text']} [photo: {caption}]" if caption else turn["text"],
                    at=at,
                )
            )
        number += 1
    return found


def _seeded(text: str) -> Any:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    vector = np.random.default_rng(seed).standard_normal(DIMENSION, dtype=np.float32)
    return vector / np.linalg.norm(vector)
