"""Weighted k-means in memory and by passes, against plain loops and scikit-learn."""

from copy import deepcopy
from itertools import pairwise

import dask
import dask.array as da
import numpy as np
import pytest
import sklearn.cluster
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs

from daskcluster.io.inputs import check_rows
from daskcluster.kernels.lloyd import assign_rows
from daskcluster.pipeline import kmeans as kmeans_module
from daskcluster.pipeline import lloyd as lloyd_module
from daskcluster.pipeline.kmeans import START_ROWS, center_starts, parallel_starts, sample_size
from daskcluster.pipeline.lloyd import lloyd_block, lloyd_in_memory, lloyd_over_blocks
from daskcluster.runtime.execution import FAN_IN, add_parts
from tests.reference import lloyd
from tests.strategies import chunkings

BLOCK_ROWS = 32
pytestmark = pytest.mark.usefixtures("small_blocks")

N_ROWS = 330  # eleven blocks of 32 rows: the tree has two levels
ONES = np.ones(N_ROWS)


def every_row(block):
    return block, None


def positive_rows(block):
    rows = np.flatnonzero(block[:, 0] > 0)
    return block[rows], rows


def draw(seed=0, n_rows=N_ROWS, n_features=2, dtype="f8"):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features)).astype(dtype)


def lattice(seed=0, n_rows=N_ROWS):
    """Sums over such rows and weights are exact, in any order."""
    rng = np.random.default_rng(seed)
    return rng.integers(-8, 8, size=(n_rows, 2)).astype(float), rng.integers(0, 4, size=n_rows).astype(float)


def blocks_of(X, lengths=None):
    return check_rows(X if lengths is None else da.from_array(X, chunks=(lengths, (X.shape[1],)))).blocks


def as_set(centers):
    return np.array(sorted(centers.tolist()))


def first_rows(labels):
    """Row at which each label shows up first, in the order of the labels."""
    return [labels.tolist().index(label) for label in range(labels.max() + 1)]


# -- in memory


def test_the_sample_grows_with_the_clusters():
    assert START_ROWS == 2**14
    assert sample_size(8) == 2**14
    assert sample_size(64) == 2**14
    assert sample_size(65) == 65 * 256


@pytest.mark.parametrize("method", ["k-means++", "random"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_starts_are_distinct_rows(method, dtype):
    points = np.repeat(draw(n_rows=12, dtype=dtype), 4, axis=0)
    for n_clusters, expected in [(1, 1), (5, 5), (12, 12), (20, 12)]:
        starts = center_starts(points, n_clusters, np.random.default_rng(0), method=method)
        assert starts.dtype == np.float64
        assert len(np.unique(starts, axis=0)) == len(starts) == expected
        assert set(map(tuple, starts)) <= set(map(tuple, points.astype(float)))


@pytest.mark.parametrize("method", ["k-means++", "random"])
def test_starts_have_weight(method):
    points = np.arange(20.0)[:, None]
    weights = np.arange(20) % 2 * 1.0
    starts = center_starts(points, 20, np.random.default_rng(0), weights, method)
    assert sorted(starts.ravel()) == list(range(1, 20, 2))


def test_plus_plus_starts_by_the_random_numbers_of_the_generator():
    """2 + log(k) trials a step."""
    points = draw(n_rows=40)
    uniforms = np.random.default_rng(5).random((8, 2 + 2))
    expected = points[lloyd.plus_plus(points, np.ones(40), uniforms)]
    assert np.array_equal(center_starts(points, 8, np.random.default_rng(5)), expected)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_iter", [1, 2, 5, 100])
def test_lloyd_agrees_with_plain_loops(dtype, weighted, n_iter):
    points = draw(1, 80, dtype=dtype)
    weights = np.where(np.arange(80) % 5 == 0, 0.0, 1 + np.arange(80) % 3) if weighted else np.ones(80)
    starts = points[:5].astype(float)
    expected, labels = lloyd.lloyd(points, weights, starts, n_iter)
    found, found_labels = lloyd_in_memory(points, starts, weights if weighted else np.empty(0), max_iter=n_iter)
    assert found.n_iter <= n_iter
    assert as_set(found.centers) == pytest.approx(as_set(expected), rel=1e-6)
    assert found.inertia == pytest.approx(lloyd.inertia(points, weights, expected, labels), rel=1e-6)
    assert first_rows(found_labels) == sorted(first_rows(found_labels))
    order = np.argsort(first_rows(np.array(labels)))
    assert found_labels.tolist() == [order.tolist().index(label) for label in labels]


def test_lloyd_never_raises_the_inertia():
    points, starts = draw(2, 200), draw(3, 6)
    inertias = [lloyd_in_memory(points, starts, max_iter=n_iter)[0].inertia for n_iter in range(1, 12)]
    assert (np.diff(inertias) <= 1e-12).all()
    assert inertias[-1] < 0.9 * inertias[0]


def test_empty_clusters_go_to_the_farthest_rows_by_weight():
    """By hand: after a pass the centres are 0.5 and 10.75; weight * sqdist is .25, .25, .5625 and .1875."""
    points = np.array([[0.0], [1.0], [10.0], [11.0], [50.0]])
    weights = np.array([1.0, 1.0, 1.0, 3.0, 0.0])
    starts = np.array([[10.0], [-500.0], [0.0], [49.0]])
    found, labels = lloyd_in_memory(points, starts, weights)
    assert found.centers.tolist() == [[0.0], [1.0], [10.0], [11.0]]
    assert labels.tolist() == [0, 1, 2, 3, 3]
    blocks = da.from_array(points, chunks=(2, 1))
    column = da.from_array(weights, chunks=2)
    over = lloyd_over_blocks(blocks, every_row, starts, column, max_iter=20, limit=0.0)
    assert over.centers.tolist() == found.centers.tolist()
    one = lloyd_over_blocks(blocks, every_row, starts[:1], column, max_iter=20, limit=0.0, n_clusters=3)
    assert len(one.centers) == 3, "clusters that the starts lack begin empty"


def test_without_refilling_an_empty_cluster_is_dropped_and_one_without_weight_stays():
    points = np.array([[0.0], [1.0], [10.0], [11.0], [50.0]])
    weights = np.array([1.0, 1.0, 1.0, 3.0, 0.0])
    found, labels = lloyd_in_memory(points, np.array([[10.0], [-500.0], [0.0], [49.0]]), weights, refill=False)
    assert found.centers.tolist() == [[0.5], [10.75], [49.0]]
    assert labels.tolist() == [0, 0, 1, 1, 2]


def test_fewer_clusters_only_where_there_are_fewer_distinct_rows():
    points = np.repeat([[0.0], [5.0]], 10, axis=0)
    found, _ = lloyd_in_memory(points, np.array([[0.0], [1.0], [100.0]]))
    assert found.centers.tolist() == [[0.0], [5.0]]


def test_lloyd_stops_when_centres_move_less_than_the_tolerance():
    points, starts = draw(4, 300), draw(5, 8)
    exact = lloyd_in_memory(points, starts)[0]
    loose = lloyd_in_memory(points, starts, tol=0.01)[0]
    assert 1 < loose.n_iter < exact.n_iter
    assert exact.inertia < loose.inertia < 1.1 * exact.inertia


def test_plus_plus_with_lloyd_is_as_good_as_scikit_learn():
    ours, theirs = [], []
    for seed in range(6):
        points, _ = make_blobs(600, 5, centers=12, random_state=seed)
        theirs.append(sklearn.cluster.KMeans(12, n_init=1, random_state=seed).fit(points).inertia_)
        ours.append(lloyd_in_memory(points, center_starts(points, 12, np.random.default_rng(seed)))[0].inertia)
    assert sum(ours) < 1.03 * sum(theirs)


# -- by passes over blocks


@given(lengths=chunkings(N_ROWS))
@example(lengths=(1,) * N_ROWS)
@example(lengths=(0, 300, 0, 30))
@settings(max_examples=5)
def test_passes_do_not_depend_on_chunks(lengths):
    X, weights = draw(6, dtype="f4"), np.arange(N_ROWS) % 4 / 3
    starts = X[:4].astype(float)
    expected = lloyd_over_blocks(blocks_of(X), every_row, starts, max_iter=5, limit=0)
    found = lloyd_over_blocks(blocks_of(X, lengths), every_row, starts, max_iter=5, limit=0)
    assert found.centers.tobytes() == expected.centers.tobytes()
    assert (found.inertia, found.n_iter) == (expected.inertia, expected.n_iter)
    blocks = blocks_of(X)
    canonical = da.from_array(weights, chunks=(blocks.chunks[0],))
    given_ = da.from_array(weights, chunks=(lengths,)).rechunk((blocks.chunks[0],))
    one, two = (lloyd_over_blocks(blocks, every_row, starts, w, max_iter=3, limit=0) for w in (canonical, given_))
    assert one.centers.tobytes() == two.centers.tobytes()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_iter", [1, 3, 40])
def test_passes_agree_with_plain_loops(weighted, n_iter):
    X = draw(7)
    weights = np.where(np.arange(N_ROWS) % 5 == 0, 0.0, 1 + np.arange(N_ROWS) % 3) if weighted else ONES
    blocks = blocks_of(X)
    lazy = da.from_array(weights, chunks=(blocks.chunks[0],)) if weighted else None
    found = lloyd_over_blocks(blocks, every_row, X[:5], lazy, max_iter=n_iter, limit=0.0)
    expected, labels = lloyd.lloyd(X, weights, X[:5], n_iter)
    assert as_set(found.centers) == pytest.approx(as_set(expected), rel=1e-9)
    assert found.inertia == pytest.approx(lloyd.inertia(X, weights, expected, labels), rel=1e-9)
    assert found.n_iter <= n_iter


def test_centres_are_those_by_which_the_last_pass_assigned():
    """So an assignment to them has their inertia and their order, however early the passes end."""
    X = draw(8)
    for n_iter in (1, 2, 4):
        found = lloyd_over_blocks(blocks_of(X), every_row, X[:6], max_iter=n_iter, limit=0)
        labels = assign_rows(X, found.centers)
        assert found.n_iter == n_iter
        assert found.inertia == pytest.approx(lloyd.inertia(X, ONES, found.centers, labels), rel=1e-12)
        assert first_rows(labels) == sorted(first_rows(labels))


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
def test_clusters_are_numbered_by_their_first_row(order):
    """First rows lie in other blocks, and one centre has no row."""
    X = np.concatenate([np.full(100, 5.0), np.full(100, 0.0), np.full(100, 9.0)])[:, None]
    centers = np.array([[5.0], [0.0], [9.0]])[order]
    found = lloyd_over_blocks(blocks_of(X), every_row, np.vstack([[[99.0]], centers]), max_iter=3, limit=0)
    assert found.centers.ravel().tolist() == [5, 0, 9]
    assert found.inertia == 0


def test_rows_that_take_no_part():
    X = draw(9)
    X[:40] = -1  # the whole first block and a part of the second
    found = lloyd_over_blocks(blocks_of(X), positive_rows, X[X[:, 0] > 0][:4], max_iter=50, limit=0)
    taken = X[X[:, 0] > 0]
    expected, labels = lloyd.lloyd(taken, np.ones(len(taken)), taken[:4], 50)
    assert as_set(found.centers) == pytest.approx(as_set(expected), rel=1e-9)
    assert found.inertia == pytest.approx(lloyd.inertia(taken, np.ones(len(taken)), expected, labels), rel=1e-9)


def test_passes_stop_at_the_limit():
    X = draw(10)
    moves = []
    for n_iter in range(1, 8):
        centers = lloyd_over_blocks(blocks_of(X), every_row, X[:4], max_iter=n_iter, limit=0).centers
        moves.append(centers)
    shifts = [float(((b - a) ** 2).sum()) for a, b in pairwise(moves)]
    found = lloyd_over_blocks(blocks_of(X), every_row, X[:4], max_iter=100, limit=shifts[3])
    assert found.n_iter == 1 + next(i for i, shift in enumerate(shifts) if shift <= shifts[3])


@settings(max_examples=25)
@given(data=st.data())
def test_how_partial_results_are_combined_is_irrelevant(data):
    """Any tree over the blocks in their order: counts, masses, sums of exact numbers, and first rows."""
    X, weights = lattice(data.draw(st.integers(0, 9)), n_rows=40)
    centers = X[data.draw(st.lists(st.integers(0, 39), min_size=1, max_size=5))]
    cuts = sorted(data.draw(st.sets(st.integers(1, 39), min_size=1, max_size=7)))

    def passed(part):
        return lloyd_block(X[part], every_row, centers, weights[part, None])

    def combined(parts):
        if len(parts) == 1:
            return parts[0]
        cut = data.draw(st.integers(1, len(parts) - 1))
        return add_parts([combined(parts[:cut]), combined(parts[cut:])])

    whole = passed(slice(0, 40))
    found = combined([passed(slice(low, high)) for low, high in zip([0, *cuts], [*cuts, 40], strict=True)])
    assert found["rows"] == 40
    for key in ("first", "masses", "sums"):
        assert np.array_equal(found[key], whole[key]), key
    assert found["inertia"] == whole["inertia"]


def test_combining_leaves_the_parts_alone():
    """A scheduler may run a task again."""
    X, weights = lattice()
    parts = [lloyd_block(X[part], every_row, X[:3], weights[part, None]) for part in (slice(0, 100), slice(100, 330))]
    first = deepcopy(add_parts(parts))
    second = add_parts(parts)
    assert all(np.array_equal(first[key], second[key]) for key in first)


# -- k-means||


@given(lengths=chunkings(N_ROWS))
@example(lengths=(1,) * N_ROWS)
@settings(max_examples=5)
def test_parallel_starts_do_not_depend_on_chunks(lengths):
    X = draw(11, dtype="f4")
    expected = parallel_starts(blocks_of(X), every_row, X[:1].astype(float), 4, 0)
    assert np.array_equal(parallel_starts(blocks_of(X, lengths), every_row, X[:1].astype(float), 4, 0), expected)


@pytest.mark.slow
def test_parallel_starts_are_as_good_as_scikit_learn():
    """Their potential, before a pass over all rows, and what Lloyd's iteration makes of them."""
    starts_potential, ours, theirs = 0.0, 0.0, 0.0
    for seed in range(4):
        X, _ = make_blobs(800, 3, centers=10, random_state=seed)
        theirs += sklearn.cluster.KMeans(10, n_init=1, random_state=seed).fit(X).inertia_
        starts = parallel_starts(blocks_of(X), every_row, X[:1], 10, seed)
        starts_potential += lloyd.potential(X, np.ones(800), starts)
        ours += lloyd_over_blocks(blocks_of(X), every_row, starts, max_iter=100, limit=0).inertia
    assert ours < 1.03 * theirs
    assert starts_potential < 1.25 * theirs


def test_parallel_starts_where_every_row_is_a_candidate():
    X = np.repeat([[0.0], [3.0], [7.0]], 40, axis=0)
    starts = parallel_starts(blocks_of(X), every_row, X[:1], 5, 0)
    assert sorted(starts.ravel()) == [0, 3, 7]


def test_parallel_starts_heed_weights():
    X = np.concatenate([np.zeros(100), np.full(100, 10.0), np.full(100, 500.0)])[:, None]
    blocks = blocks_of(X)
    weights = da.from_array(np.repeat([1.0, 1.0, 0.0], 100), chunks=(blocks.chunks[0],))
    starts = parallel_starts(blocks, every_row, X[:1], 3, 0, weights)
    assert sorted(starts.ravel()) == [0, 10]


def test_rows_are_drawn_in_proportion_to_weight_and_squared_distance():
    """Masses 1, 4, 3, 0 and 0 of 8: of 400 single draws 50, 200, 150 and none; a standard deviation is 10 at most."""
    block = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0], [0.0, 5.0], [0.0, 0.0]])
    weights = np.array([[1.0], [1.0], [3.0], [0.0], [1.0]])
    drawn = np.zeros(5)
    for seed in range(400):
        found = kmeans_module._draw_block(block, 0, every_row, np.zeros((1, 2)), 1, (seed, 0), weights)
        drawn += (found["rows"] == block).all(axis=1)
    assert drawn.tolist() == pytest.approx([50, 200, 150, 0, 0], abs=32)
    assert drawn[3:].tolist() == [0, 0]


def test_parallel_starts_leave_rows_out_that_take_no_part():
    X = draw(12)
    starts = parallel_starts(blocks_of(X), positive_rows, X[X[:, 0] > 0][:1], 4, 0)
    assert (starts[:, 0] > 0).all()


def test_the_tree_of_these_tests_has_two_levels():
    assert blocks_of(draw()).numblocks[0] > FAN_IN


# -- assignments in memory


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
@pytest.mark.parametrize("n_clusters", [4, 60])
def test_assignments_beside_each_other_give_the_same(monkeypatch, scheduler, n_clusters):
    """In parts of 16 rows, with clusters that become empty and are moved or stay; all as one part gives them."""
    rng = np.random.default_rng(n_clusters)
    points = rng.normal(size=(300, 70)).astype("f4")
    starts = np.concatenate([points[:n_clusters], 50 + rng.normal(size=(3, 70))]).astype(float)
    monkeypatch.setattr(lloyd_module, "SPREAD_ROWS", 16)
    for refill in (False, True):
        expected, labels = lloyd_in_memory(points, starts, refill=refill)
        with dask.config.set(scheduler=scheduler), monkeypatch.context() as patch:
            patch.setattr(lloyd_module, "LEAST_SPREAD", 0)
            found, found_labels = lloyd_in_memory(points, starts, refill=refill, spread=True)
        assert found.centers.tobytes() == expected.centers.tobytes()
        assert found_labels.tobytes() == labels.tobytes()
        assert np.array_equal(labels, assign_rows(points, expected.centers))


def test_a_centre_whose_rows_stay_does_not_move(monkeypatch):
    """Not even by rounding, so its rows are compared with those that move only."""
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(300, 2)), 100 + rng.normal(size=(50, 2))]).astype("f4")
    starts = np.concatenate([points[:40], points[300:301]]).astype(float)
    seen = []
    call = lloyd_module._Assignments.__call__

    def watched(self, centers):
        seen.append(centers)
        return call(self, centers)

    monkeypatch.setattr(lloyd_module._Assignments, "__call__", watched)
    lloyd_in_memory(points, starts)
    moved = [(before != after).any(axis=1) for before, after in pairwise(seen)]
    assert moved[0][-1]
    assert len(moved) > 3
    assert not any(each[-1] for each in moved[1:])
    assert all(0 < each.sum() < 40 for each in moved[2:])
