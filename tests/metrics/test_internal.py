"""Inertia of rows and centers, normalized cut of a small graph."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from daskcluster.metrics import inertia, normalized_cut_value
from tests.strategies import labelings, rechunked

RNG = np.random.default_rng(3)
ROWS = RNG.normal(size=(500, 3))
LABELS = RNG.integers(-1, 4, 500)
CENTERS = RNG.normal(size=(4, 3))


def plain_inertia(X, labels, centers) -> float:
    total = 0.0
    for row, label in zip(X, labels, strict=True):
        if label >= 0:
            total += sum((float(x) - float(c)) ** 2 for x, c in zip(row, centers[label], strict=True))
    return total


# -- inertia ----------------------------------------------------------------------------------------------------------


def test_inertia_by_hand():
    assert inertia([[0, 0], [3, 4], [1, 1]], [0, 0, 1], [[0, 0], [1, 2]]) == 26.0


def test_inertia_against_a_loop():
    assert inertia(ROWS, LABELS, CENTERS) == pytest.approx(plain_inertia(ROWS, LABELS, CENTERS), rel=1e-13)


def test_inertia_is_that_of_k_means():
    model = KMeans(4, n_init=1, random_state=0).fit(ROWS)
    assert inertia(ROWS, model.labels_, model.cluster_centers_) == pytest.approx(model.inertia_, rel=1e-12)


@settings(max_examples=25)
@given(st.data())
def test_inertia_is_bit_equal_for_any_chunking(data):
    expected = inertia(ROWS, LABELS, CENTERS)
    X, labels = (data.draw(st.one_of(st.just(array), rechunked(array))) for array in (ROWS, LABELS))
    assert inertia(X, labels, CENTERS) == expected


def test_inertia_is_bit_equal_over_several_blocks(tmp_path):
    """Rows of 4000 features make blocks of 256 rows; memory order, storage and column chunks do not matter."""
    X = RNG.normal(size=(700, 4000)).astype(np.float32)
    labels = RNG.integers(0, 2, 700)
    centers = X[:2]
    expected = inertia(X, labels, centers)
    assert expected == pytest.approx(((X.astype(float) - centers[labels]) ** 2).sum(), rel=1e-12)
    stored = zarr.create_array(str(tmp_path / "X.zarr"), shape=X.shape, dtype=X.dtype, chunks=(600, 1000))
    stored[...] = X
    assert inertia(np.asfortranarray(X), labels, centers) == expected
    assert inertia(da.from_array(X, chunks=(123, 999)), da.from_array(labels, chunks=50), centers) == expected
    assert inertia(tmp_path / "X.zarr", labels, centers) == expected


@given(labelings(30))
def test_rows_without_a_label_add_nothing(labels):
    kept = labels >= 0
    X = np.where(kept[:, None], ROWS[:30], np.nan)
    assert inertia(X, labels, CENTERS) == pytest.approx(inertia(X[kept], labels[kept], CENTERS), rel=1e-13)


def test_shifted_rows_keep_their_digits():
    far = inertia(ROWS + 1e6, LABELS, CENTERS + 1e6)
    assert far == pytest.approx(inertia(ROWS, LABELS, CENTERS), rel=1e-8)


def test_inertia_of_nothing():
    assert inertia(np.empty((0, 3)), [], CENTERS) == 0.0
    assert inertia(da.empty((0, 3), chunks=2), [], CENTERS) == 0.0


def test_inertia_of_unknown_chunks_and_on_a_cluster(client_inprocess):
    X = da.from_array(ROWS, chunks=(100, 3))
    X = X[da.ones(500, chunks=100, dtype=bool)]
    assert inertia(X, LABELS, CENTERS) == inertia(ROWS, LABELS, CENTERS)
    assert np.isnan(X.shape[0])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X": ROWS[:, 0]}, "X must have 2 dimensions"),
        ({"X": ROWS[:, :2]}, "X has 2 features, but centers has 3"),
        ({"X": ROWS[:9]}, "X has 9, labels has 500"),
        ({"X": ROWS.astype(complex)}, "X must hold real numbers"),
        ({"X": np.where(ROWS > 2, np.nan, ROWS)}, "X holds NaN"),
        ({"X": ROWS * 1e200}, "too large"),
        ({"labels": LABELS + 1}, "labels must be from -1 to 3 for 4 centers, got 4"),
        ({"labels": LABELS - 1}, "labels must be from -1 to 3 for 4 centers, got -2"),
        ({"labels": LABELS.astype(str)}, "labels must hold whole numbers"),
        ({"labels": LABELS + 0.5}, "labels must hold whole numbers"),
        ({"centers": CENTERS[0]}, "centers must have 2 dimensions"),
        ({"centers": CENTERS * np.inf}, "centers holds NaN or infinity"),
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_inertia_rejects(changed, message, chunked):
    arguments = {"X": ROWS, "labels": LABELS, "centers": CENTERS, **changed}
    if chunked:
        arguments["X"] = da.from_array(arguments["X"], chunks=100)
    with pytest.raises(ValueError, match=message):
        inertia(**arguments)


# -- normalized cut ---------------------------------------------------------------------------------------------------

#: Two triangles of weight 1, joined by one edge of weight 0.5.
TRIANGLES = np.array(
    [
        [0, 1, 1, 0, 0, 0],
        [1, 0, 1, 0, 0, 0],
        [1, 1, 0, 0.5, 0, 0],
        [0, 0, 0.5, 0, 1, 1],
        [0, 0, 0, 1, 0, 1],
        [0, 0, 0, 1, 1, 0],
    ]
)


def plain_cut(affinity, labels) -> float:
    total = 0.0
    for label in set(labels):
        inside = [i for i, other in enumerate(labels) if other == label]
        outside = [i for i, other in enumerate(labels) if other != label]
        cut = sum(affinity[i, j] for i in inside for j in outside)
        volume = sum(affinity[i, j] for i in inside for j in range(len(labels)))
        total += cut / volume if volume else 0.0
    return total


def test_cut_by_hand():
    assert normalized_cut_value(TRIANGLES, [0, 0, 0, 1, 1, 1]) == pytest.approx(2 * 0.5 / 6.5)
    assert normalized_cut_value(TRIANGLES, [0] * 6) == 0.0
    assert normalized_cut_value(TRIANGLES, range(6)) == 6.0


@given(labelings(6))
def test_cut_against_a_loop_dense_and_sparse(labels):
    expected = plain_cut(TRIANGLES, labels.tolist())
    for affinity in (TRIANGLES, scipy.sparse.csr_array(TRIANGLES), scipy.sparse.coo_matrix(TRIANGLES)):
        assert normalized_cut_value(affinity, labels) == pytest.approx(expected, abs=1e-12)


@given(labelings(6), st.integers(0, 2**16))
def test_cut_ignores_names_scale_and_order(labels, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(6)
    renamed = np.array(list("dcbaef"))[labels + 1]
    other = normalized_cut_value(8 * TRIANGLES[np.ix_(order, order)], renamed[order])
    assert other == pytest.approx(normalized_cut_value(TRIANGLES, labels), abs=1e-12)


def test_cut_of_rows_without_edges():
    affinity = TRIANGLES.copy()
    affinity[5] = affinity[:, 5] = 0
    assert normalized_cut_value(affinity, [0, 0, 0, 0, 0, 1]) == 0.0
    assert normalized_cut_value(scipy.sparse.csr_array((3, 3)), [0, 1, 1]) == 0.0
    assert normalized_cut_value(np.zeros((0, 0)), []) == 0.0


def test_cut_counts_loops_as_volume():
    assert normalized_cut_value([[2, 1], [1, 0]], [0, 1]) == pytest.approx(1 / 3 + 1)


@pytest.mark.parametrize(
    ("affinity", "labels", "message"),
    [
        (TRIANGLES[:5], range(6), "affinity must be a square matrix"),
        (TRIANGLES[0], range(6), "affinity must be a square matrix"),
        (-TRIANGLES, range(6), "non-negative"),
        (TRIANGLES * np.nan, range(6), "finite"),
        (np.triu(TRIANGLES), range(6), "symmetric"),
        (scipy.sparse.csr_array(np.triu(TRIANGLES)), range(6), "symmetric"),
        (TRIANGLES.astype(complex), range(6), "non-negative numbers"),
        (TRIANGLES, range(5), "affinity has 6 rows, but labels has 5"),
        (TRIANGLES, [[0] * 6], "labels must have 1 dimension"),
    ],
)
def test_cut_rejects(affinity, labels, message):
    with pytest.raises(ValueError, match=message):
        normalized_cut_value(affinity, labels)
