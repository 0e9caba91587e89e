"""Records of cores and spheres: the seed's JSON in and out, unknown fields, hashes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.domain import cores
from octavo.domain.cores import Core, integrity_hash, is_intact, to_json
from octavo.errors import BadInput
from seed_001 import SEED_CORE, SEED_SPHERE


def bare_core(**more: Any) -> dict[str, Any]:
    return {
        "core_id": "core_000_000",
        "sphere_seq": 0,
        "core_seq": 0,
        "session_count": 8,
        "source_sessions": ["a"],
        "compressed_narrative": {"summary": ""},
        "meta": {"compression_method": "statistical_aggregation"},
        **more,
    }


def test_the_seeds_core_goes_in_and_out_without_loss_in_the_same_order() -> None:
    assert to_json(cores.read(cores.Core, SEED_CORE)) == SEED_CORE
    assert list(to_json(cores.read(cores.Core, SEED_CORE))) == list(SEED_CORE)


def test_the_seeds_sphere_goes_in_and_out_without_loss_in_the_same_order() -> None:
    assert to_json(cores.read(cores.Sphere, SEED_SPHERE)) == SEED_SPHERE
    assert list(to_json(cores.read(cores.Sphere, SEED_SPHERE))) == list(SEED_SPHERE)


def test_unknown_fields_are_kept_at_every_depth() -> None:
    given_core = {**SEED_CORE, "namespace": "EVA", "extra": 1}
    given_core["meta"] = {**SEED_CORE["meta"], "provenance": {"model": "x", "ids": [1, 2]}}
    assert to_json(cores.read(cores.Core, given_core)) == given_core


def test_what_is_not_known_is_written_as_null_and_never_as_zero() -> None:
    written = to_json(cores.read(cores.Core, bare_core()))
    assert written["aggregated_state"] == {
        "avg_stress": None,
        "avg_warmth": None,
        "dominant_emotion": None,
        "interaction_count": None,
    }
    assert written["compressed_narrative"]["emotional_arc"]["peak_emotion"] is None
    assert written["meta"]["detail_retention"] is None
    assert written["timestamp_start"] is None


@pytest.mark.parametrize(
    ("broken", "path"),
    [
        ({"core_seq": "1"}, "core.core_seq"),
        ({"source_sessions": "a"}, "core.source_sessions"),
        ({"source_sessions": [1]}, r"core.source_sessions\["),
        ({"compressed_narrative": {}}, "`summary` - at `core.compressed_narrative"),
        ({"meta": {"compression_method": "magic"}}, "'magic' - at `core.meta.compression_method"),
        ({"session_count": True}, "core.session_count"),
    ],
)
def test_a_broken_core_is_refused_with_the_path_of_what_is_wrong(broken: dict[str, Any], path: str) -> None:
    with pytest.raises(BadInput, match=path):
        cores.read(cores.Core, bare_core(**broken))


def test_the_hash_is_over_the_sorted_sources() -> None:
    assert integrity_hash(["b", "a"]) == integrity_hash(["a", "b", "a"])
    assert integrity_hash(["a"]) == "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    assert integrity_hash(["a", "b"]) != integrity_hash(["a\n", "b"])


def test_a_core_whose_sources_were_changed_is_not_intact() -> None:
    sound = cores.read(cores.Core, bare_core(integrity_hash=integrity_hash(["a"])))
    changed = cores.read(cores.Core, bare_core(integrity_hash=integrity_hash(["a", "b"])))
    assert is_intact(sound)
    assert not is_intact(changed)
    assert is_intact(cores.read(cores.Sphere, SEED_SPHERE))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(min_size=1).filter(lambda name: name not in Core.__struct_fields__), JSON))
def test_any_unknown_fields_survive_the_round_trip(unknown: dict[str, Any]) -> None:
    given_core = {**SEED_CORE, **unknown}
    assert to_json(cores.read(cores.Core, given_core)) == given_core
