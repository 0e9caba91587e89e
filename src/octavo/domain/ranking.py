"""The recipe of recall: its weights and its formulas, for one number or for arrays of them alike.

The formulas use arithmetic only, so that the index can hand in whole columns; what they mean is here, how
the columns are gathered is the index's business.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

Numbers = Any  # a float, or an array of them
LEAST_RETAINED = 0.3


class Recipe(Struct, frozen=True, kw_only=True):
    """The weights of the ranker; docs/recall.md says what each of them adds."""

    saturation: float = 0.6
    length_weight: float = 0.4
    full_length: float = 20.0
    unknown_idf: float = 4.0
    overlap: float = 0.5
    neighbours: tuple[float, ...] = (0.35, 0.2, 0.1)
    session: float = 0.1
    passages: float = 0.5
    meaning: float = 0.7
    meaning_neighbours: tuple[float, ...] = (0.4, 0.15)
    speaker: float = 0.4
    address: float = 0.15
    time: float = 1.0
    day_reach: float = 4.0
    month_reach: float = 15.0
    passage_count: float = 0.1
    person: float = 0.1
    salience: float = 0.1
    decay: float = 0.1
    emotion: float = 0.1
    abstraction: float = 0.03
    rerank: float = 2.2
    rerank_neighbour: float = 0.8
    substance: float = 0.7
    substance_listed: float = 0.85  # where several things are asked for
    substance_reranked: float = 0.5  # beside a second look, which sees part of the same
    asked: float = 0.8  # so much a question loses of what it shares with the one that is asked
    echo: float = 0.5  # and a machine's answer to it
    layers: Mapping[str, float] = field(
        default_factory=lambda: {"episodic": 0.0, "semantic": 0.02, "procedural": 0.04}
    )


def idf(total: int, containing: int, recipe: Recipe) -> float:
    """How telling a term is; a term nobody used yet is bounded, so that it cannot drown the others."""
    value = math.log(1 + (total - containing + 0.5) / (containing + 0.5))
    return min(value, recipe.unknown_idf) if containing == 0 else value


def term_weights(
    terms: Sequence[str],
    previous: Mapping[str, str],
    containing: Mapping[str, int],
    total: int,
    recipe: Recipe,
) -> list[float]:
    """The weight of each query term.

    Overlapping grams of one word tell the same thing again when they occur equally often: such a gram
    counts less, or long words would outvote short ones.
    """
    weights = []
    for term in terms:
        weight = idf(total, containing[term], recipe)
        if before := previous.get(term):
            one, two = containing[term] + 0.5, containing[before] + 0.5
            weight *= 1 - recipe.overlap * min(one, two) / max(one, two)
        weights.append(weight)
    return weights


def frequency(count: Numbers, length: Numbers, average: float, recipe: Recipe) -> Numbers:
    """A term's frequency in a passage, corrected for the passage's length."""
    b = recipe.length_weight
    return count / (1 - b + b * length / average)


def saturated(frequency: Numbers, recipe: Recipe) -> Numbers:
    """What a frequency is worth: the first occurrence most, between 0 and 1 + saturation."""
    return (1 + recipe.saturation) * frequency / (frequency + recipe.saturation)


def passage_prior(count: Numbers, log: Any, recipe: Recipe) -> Numbers:
    """What a long text loses because it has more chances to match."""
    return -recipe.passage_count * log(count)


def reach(days: int, recipe: Recipe) -> float:
    """How many days around an interval still count: fewer around a day or week than around a month."""
    return recipe.day_reach if days <= 7 else recipe.month_reach


def substance(
    *,
    only_asks: Numbers,
    names: Numbers,
    number: Numbers,
    dated: Numbers,
    past: Numbers,
    asks: Numbers,
    late: Numbers,
    rarity: Numbers,
    fullness: Numbers,
    meaning: Numbers,
    words: Numbers,
    is_list: bool,
) -> Numbers:
    """How likely a turn tells something: names, numbers, times and rare words, each against its speaker's.

    A question in it speaks against that, and that it comes late in its conversation. A question that wants a
    list is answered by turns that share its meaning rather than its words.
    """
    told = 0.25 * names + (0.0 if is_list else 0.2) * number + (1.6 if is_list else 0.8) * rarity
    told = told + 0.1 * dated + 0.05 * past - 0.07 * asks
    of_list = 0.4 * meaning - 0.3 * words if is_list else 0.0
    return (1 - only_asks) * fullness * told - 0.16 * only_asks - 0.1 * late + 0.3 * meaning + of_list


# The moment of asking, in seconds since 1970, and what a day leaves of each kind, in their order.
Ages = tuple[float, tuple[float, ...]]


def retention(factor: Numbers, days: Numbers, maximum: Any = max) -> Numbers:
    """What age leaves of a memory: the kind's factor a day, never below the floor."""
    return maximum(LEAST_RETAINED, factor ** maximum(0.0, days))


def importance(*, salience: Numbers, retained: Numbers, layer: Numbers, recipe: Recipe) -> dict[str, Numbers]:
    """The parts of a score that do not come from the query: small, so that relevance decides.

    `layer` is what the recipe gives the memory's layer.
    """
    return {
        "salience": recipe.salience * (salience - 0.5),
        "age": -recipe.decay * (1 - retained),
        "layer": layer,
    }
