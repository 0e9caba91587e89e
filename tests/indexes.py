"""Small accounts for the tests of the index, and the plain answer to what may be found in them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from octavo.domain.filters import Filter
from octavo.domain.text import runs, terms_of_run
from octavo.domain.units import Unit, Watermark
from octavo.storage.batches import grown
from octavo.storage.index import Index, extend
from octavo.storage.rows import behind
from octavo.storage.search import ScoredUnit
from octavo.storage.vectors import ModelManifest, Vectors, held_vectors

START = datetime(2023, 5, 1, 12, tzinfo=UTC)


def mark(version: int) -> Watermark:
    """The watermark of a version."""
    return Watermark(version=version, header=f"h{version}" if version else "")


def turn(
    name: str,
    text: str,
    *,
    version: int = 1,
    session: str | None = "s1",
    position: int | None = 0,
    scope: str = "shared",
    speaker: str | None = "Mali",
    days: int = 0,
    rev: int = 1,
    tags: tuple[str, ...] = (),
    category: str | None = None,
) -> Unit:
    """A unit with everything that does not matter filled in."""
    return Unit(
        memory=name,
        rev=rev,
        turn=None if position is None else 0,
        scope=scope,
        kind="fact" if position is None else "episode",
        layer="semantic" if position is None else "episodic",
        text=text,
        at=START + timedelta(days=days),
        valid_from=version,
        session=session,
        position=position,
        speaker=None if position is None else speaker,
        tags=tags,
        category=category,
    )


def fact(name: str, text: str, **fields: object) -> Unit:
    """A unit that is no turn."""
    return turn(name, text, position=None, speaker=None, **fields)  # type: ignore[arg-type]


def write(
    folder: Path, version: int, units: list[Unit], ends: list[tuple[str, int, int]] | None = None
) -> None:
    """Index one version on top of the one before."""
    assert extend(folder, units, ends or [], mark(version), since=mark(version - 1))


def ask(folder: Path, text: str, *, limit: int = 10, version: int = 99, **fields: object) -> list[ScoredUnit]:
    """Recall by words alone."""
    known = Filter.__struct_fields__
    filter_ = Filter(**{k: v for k, v in fields.items() if k in known})  # type: ignore[arg-type]
    more = {k: v for k, v in fields.items() if k not in known}
    index = Index(folder)
    question = index.read(text, now=START.date(), version=version, scopes=filter_.scopes)
    return index.search(question, filter_, version=version, limit=limit, **more)  # type: ignore[arg-type]


def beside(
    folder: Path, *units: Unit, ends: frozenset[tuple[str, int]] = frozenset(), vectors: Any = None
) -> dict[str, object]:
    """What a search is told of that is not in the index."""
    held, made = grown(behind(Index(folder).units()), units), None
    if vectors is not None:
        none = Vectors.open(folder / "none", ModelManifest(model="t", dimension=len(vectors[0]), history=""))
        made = held_vectors(none, vectors)
    return {"held": (held, made), "ends": ends}


def names(matches: list[ScoredUnit]) -> list[str]:
    """The ids of what was found, in order."""
    return [match.memory for match in matches]


def terms(text: str) -> list[str]:
    """The terms a text is indexed by, in order."""
    return [term for run in runs(text) for term in terms_of_run(run)]
