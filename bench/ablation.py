"""What each part of the ranker adds on LoCoMo: every recipe on the same accounts and vectors."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bench.locomo import NOW, measure, percent, turns_of, unit_of
from octavo.domain.filters import Filter
from octavo.domain.ranking import Recipe
from octavo.domain.units import Watermark
from octavo.models.embedders import offline_embedder
from octavo.storage.index import Index, extend, passages_of
from octavo.storage.vectors import ModelManifest, Vectors, append_vectors

FULL = Recipe()
BARE = replace(
    FULL, neighbours=(), session=0.0, meaning=0.0, meaning_neighbours=(), speaker=0.0, address=0.0, time=0.0
)
NAMED = replace(BARE, speaker=FULL.speaker, address=FULL.address)
RECIPES: dict[str, Recipe] = {
    "words alone, no context, no speaker, no time": BARE,
    "+ speaker": replace(BARE, speaker=FULL.speaker),
    "+ address": NAMED,
    "+ time": replace(NAMED, time=FULL.time),
    "+ neighbours' terms": replace(FULL, session=0.0, meaning=0.0, meaning_neighbours=()),
    "+ session's terms (words alone, whole recipe)": replace(FULL, meaning=0.0, meaning_neighbours=()),
    "+ meaning, own text only": replace(FULL, meaning_neighbours=()),
    "+ meaning of neighbours (whole recipe)": FULL,
    "whole, without neighbours' and session's terms": replace(FULL, neighbours=(), session=0.0),
    "whole, without speaker and address": replace(FULL, speaker=0.0, address=0.0),
    "whole, without address": replace(FULL, address=0.0),
    "whole, without time": replace(FULL, time=0.0),
    "whole, unknown terms unbounded": replace(FULL, unknown_idf=99.0),
    "whole, speaker .5 instead of .4": replace(FULL, speaker=0.5),
}


def main() -> None:
    """Print a Markdown table."""
    conversations = json.loads((Path(sys.argv[1]) / "locomo-dev.json").read_text())
    model = offline_embedder()
    rows: dict[str, list[tuple[int, dict[str, float]]]] = {name: [] for name in RECIPES}
    for conversation in conversations:
        with tempfile.TemporaryDirectory() as folder:
            _measure_all(Path(folder), conversation, model, rows)
    print("| recipe | R@5 | R@10 | R@20 | sessions R@5 | category 5 R@10 |")
    print("|---|---|---|---|---|---|")
    for name, measured in rows.items():
        asked = [measures for category, measures in measured if category != 5]
        cells = [percent([m[key] for m in asked]) for key in ("R@5", "R@10", "R@20", "sessions R@5")]
        fifth = percent([m["R@10"] for category, m in measured if category == 5])
        print(f"| {name} | {' | '.join(f'{cell:.1f}' for cell in (*cells, fifth))} |", flush=True)


def _measure_all(folder: Path, conversation: dict[str, Any], model: Any, rows: dict[str, Any]) -> None:
    turns = list(turns_of(conversation["conversation"], captions=True))
    session_of = {turn.id: turn.session for turn in turns}
    units = [unit_of(turn, position) for position, turn in enumerate(turns)]
    extend(folder, units, [], Watermark(version=1, header="1"), since=Watermark(version=0, header=""))
    empty = Vectors.open(
        folder / "vectors", ModelManifest(model=model.name, dimension=model.dimension, history="")
    )
    vectors = append_vectors(empty, model.embed(passages_of(units)))
    indexes = {name: Index(folder, recipe=recipe) for name, recipe in RECIPES.items()}
    for asked in conversation["qa"]:
        evidence = {turn for turn in asked["evidence"] if turn in session_of}
        if not evidence:
            continue
        query = None
        for name, index in indexes.items():
            question = index.read(asked["question"], now=NOW.date(), version=1, scopes=None)
            query = sum(model.embed(list(question.phrasings))) if query is None else query
            used = None if index.recipe.meaning == 0 else query
            found = index.search(question, Filter(), version=1, limit=100, vectors=vectors, query=used)
            result = measure([match.memory for match in found], evidence, session_of)
            rows[name].append((asked["category"], result))


if __name__ == "__main__":
    main()
