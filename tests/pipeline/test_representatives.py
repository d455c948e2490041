"""Stage 1: hybrid, random and k-means selection of representatives."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import example, given, settings
from sklearn.datasets import make_blobs

from daskcluster.io.inputs import check_rows
from daskcluster.pipeline import representatives as representatives_module
from daskcluster.pipeline.representatives import SELECTIONS, Represent, choose_representatives
from daskcluster.pipeline.rows import PreparedRows, RowForm
from daskcluster.pipeline.scan import scan
from tests.reference import lloyd
from tests.strategies import chunkings

BLOCK_ROWS = 32
pytestmark = pytest.mark.usefixtures("small_blocks")

N_ROWS = 300

each_selection = pytest.mark.parametrize("selection", ["hybrid", "random", "kmeans"])


def choose(X, n_representatives=12, selection="hybrid", factor=5, missing="raise", unit_length=False, **options):
    rows = check_rows(X, missing)
    size = Represent(n_representatives, selection, factor, 1).n_candidates
    found = scan(rows, size, np.random.default_rng(options.get("seed", 0)), unit_length=unit_length)
    return choose_representatives(rows, found, n_representatives, n_candidates=size, selection=selection, **options)


def draw(seed=0, n_rows=N_ROWS, n_features=2, dtype="f4"):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features)).astype(dtype)


def potential(X, centers):
    return lloyd.potential(X, np.ones(len(X)), centers)


def test_the_table_of_selections():
    assert list(SELECTIONS) == ["hybrid", "random", "kmeans"]


def test_candidates_of_the_paper():
    """p' = 10 p for the hybrid selection; a random one draws p."""
    assert Represent(1000, "hybrid", 10, 1).n_candidates == 10_000
    assert Represent(1000, "random", 10, 1).n_candidates == 1000


@each_selection
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1"])
def test_representatives_are_distinct_and_in_the_units_of_the_input(selection, dtype):
    X = (40 * draw() + 120).clip(0, 255).astype(dtype)
    found = choose(X, selection=selection)
    assert found.shape == (12, 2)
    assert found.dtype == np.float64
    assert len(np.unique(found, axis=0)) == 12
    assert (X.min(axis=0) <= found).all()
    assert (found <= X.max(axis=0)).all()


def test_random_representatives_are_rows():
    X = draw(dtype="f8")
    found = choose(X, selection="random")
    distances = np.abs(found[:, None] - X[None]).max(axis=2).min(axis=1)
    assert distances == pytest.approx(np.zeros(12), abs=1e-14)


def test_hybrid_is_ten_passes_of_lloyd_on_the_candidates(monkeypatch):
    """From 12 distinct ones of 240 candidates, by plain loops, and it could go on."""
    seen = {}
    in_memory = representatives_module.lloyd_in_memory

    def watched(candidates, starts, **options):
        seen.update(candidates=candidates, starts=starts)
        return in_memory(candidates, starts, **options)

    monkeypatch.setattr(representatives_module, "lloyd_in_memory", watched)
    X = draw(1, dtype="f8")
    found = choose(X, factor=20)
    form = scan(check_rows(X), 240, np.random.default_rng(0)).form
    assert len(seen["candidates"]) == 240
    assert set(map(tuple, form.restore(seen["candidates"]).round(9))) <= set(map(tuple, X.round(9)))
    assert len(seen["starts"]) == 12
    assert set(map(tuple, seen["starts"])) <= set(map(tuple, seen["candidates"]))
    after = {
        n_iter: np.array(
            sorted(form.restore(lloyd.lloyd(seen["candidates"], np.ones(240), seen["starts"], n_iter)[0]).tolist())
        )
        for n_iter in (9, 10, 11)
    }
    assert np.array(sorted(found.tolist())) == pytest.approx(after[10], abs=1e-12)
    assert np.abs(after[9] - after[10]).max() > 1e-3
    assert np.abs(after[11] - after[10]).max() > 1e-3


def test_better_selections_represent_the_data_better():
    """Fig. 1 of the paper: the hybrid selection lies between the random one and k-means on all rows."""
    X, _ = make_blobs(2000, 2, centers=15, random_state=0)
    quality = {selection: potential(X, choose(X, 60, selection, factor=10)) for selection in SELECTIONS}
    assert quality["kmeans"] < quality["hybrid"] < 0.8 * quality["random"]


@each_selection
@given(lengths=chunkings(N_ROWS))
@example(lengths=(1,) * N_ROWS)
@example(lengths=(0, 290, 0, 10, 0))
@settings(max_examples=6)
def test_representatives_do_not_depend_on_chunks(selection, lengths):
    X = draw(2)
    expected = choose(X, selection=selection)
    found = choose(da.from_array(X, chunks=(lengths, (2,))), selection=selection)
    assert found.tobytes() == expected.tobytes()


@each_selection
def test_missing_rows_count_as_absent(selection):
    X = draw(3)
    X[::7] = np.nan
    valid = np.isfinite(X[:, 0])
    found = choose(X, selection=selection, missing="label", max_iter=4)
    expected = choose(X[valid], selection=selection, max_iter=4)
    # The blocks of k-means are others, and so are the last digits of its sums.
    assert found == pytest.approx(expected, rel=1e-6 if selection == "kmeans" else 0)


@each_selection
def test_equal_seeds_give_equal_representatives(selection):
    X = draw(4)
    assert np.array_equal(choose(X, selection=selection, seed=3), choose(X, selection=selection, seed=3))
    assert not np.array_equal(choose(X, selection=selection, seed=3), choose(X, selection=selection, seed=4))


@each_selection
@pytest.mark.parametrize("n_distinct", [1, 5, 12])
def test_fewer_distinct_rows_than_representatives(selection, n_distinct):
    X = np.repeat(np.arange(n_distinct, dtype=np.float64)[:, None], 20, axis=0)
    found = sorted(choose(X, selection=selection, factor=20).ravel())
    if selection == "random":  # which draws no more than 12 rows
        assert len(set(found)) == len(found)
        assert set(found) <= set(range(n_distinct))
    else:
        assert found == list(range(n_distinct))


@each_selection
def test_fewer_rows_than_representatives(selection):
    X = draw(5, n_rows=4, dtype="f8")
    found = choose(X, selection=selection)
    assert np.array(sorted(found.tolist())) == pytest.approx(np.array(sorted(X.tolist())), abs=1e-14)


@each_selection
def test_directions_have_unit_length(selection):
    X = draw(6, n_features=3) * np.random.default_rng(0).uniform(0.1, 100, size=(N_ROWS, 1)).astype("f4")
    X[::10] = 0
    found = choose(X, selection=selection, unit_length=True)
    assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(len(found)), rel=1e-12)
    assert len(found) == 12 or selection != "hybrid"  # zeros may be drawn, or draw a centre to them


@pytest.mark.parametrize("selection", ["hybrid", "kmeans"])
def test_rows_of_zeros_take_no_place_of_a_representative(selection):
    angles = np.arange(13) * 2 * np.pi / 13
    X = np.repeat(np.column_stack([np.cos(angles), np.sin(angles)]), 8, axis=0)
    X[::2] = 0
    found = choose(X, 13, selection, factor=40, unit_length=True)
    assert len(found) == 13
    assert (found @ X[1::8].T).max(axis=1) == pytest.approx(np.ones(13))
    assert len(set((found @ X[1::8].T).argmax(axis=1))) == 13


@each_selection
def test_opposite_directions_have_no_mean(selection):
    X = np.repeat([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], 30, axis=0)
    for n_representatives in (1, 2):
        found = choose(X, n_representatives, selection, factor=40, unit_length=True)
        assert np.linalg.norm(found, axis=1) == pytest.approx(np.ones(len(found)))


def test_rows_of_zeros_only_have_one_representative():
    assert choose(np.zeros((40, 2)), unit_length=True).tolist() == [[0, 0]]


def test_kmeans_selection_makes_at_most_max_iter_passes():
    X = draw(7)
    computed = []

    def read(block):
        computed.append(1)
        return block

    blocks = da.from_array(X, chunks=(32, 2)).map_blocks(read, dtype=X.dtype, meta=np.empty((0, 0), X.dtype))
    choose(blocks, selection="kmeans", max_iter=3)
    assert len(computed) == 10 * (1 + 3)
    computed.clear()
    choose(blocks, selection="hybrid")
    assert len(computed) == 10


def test_prepared_rows():
    form = RowForm(np.array([1.0, 2.0]), 0.5, False)
    block = np.array([[1, 2], [np.nan, 0], [3, 6]], np.float32)
    values, numbers = PreparedRows(form)(block)
    assert values.tolist() == [[0, 0], [1, 2]]
    assert numbers is not None
    assert numbers.tolist() == [0, 2]
    assert PreparedRows(form)(block[[0, 2]])[1] is None
