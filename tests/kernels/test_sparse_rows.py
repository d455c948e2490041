"""Sparse rows on one block: the same numbers, distances and starts as those of the dense rows."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from daskcluster.kernels.lloyd import CenterSearch, byte_order, plus_plus_rows, sqdist_to_centers
from daskcluster.kernels.points import (
    distinct_points,
    mean_variance,
    moved_centers,
    packed_points,
    sparse_sums,
    sqdist_to_all,
    sqdist_to_own,
    start_rows,
    unpacked_points,
)
from daskcluster.kernels.rows import finite_rows, prepare_rows, scan_sparse
from daskcluster.kernels.sparse_rows import SparsePoints, SparseRows, sparse_byte_order, sparse_sqdist

NOTHING = np.empty(0)


def draw(n: int = 40, d: int = 30, seed: int = 0) -> np.ndarray:
    """Small whole numbers, most of them 0, some rows twice, one of zeros: sums of them are exact."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < 0.2, rng.integers(-3, 9, (n, d)), 0).astype(np.float64)
    X[5], X[7] = X[2], 0
    return X


X = draw()
S = SparseRows.of(X)


@pytest.mark.parametrize(
    "key", [slice(3, 9), slice(0, 0), slice(30, 99), slice(2, 20, 3), np.array([4, 4, 0]), X[:, 0] > 0]
)
def test_parts_of_rows(key):
    assert_array_equal(S[key].toarray(), X[key])
    assert_array_equal(S[key, :].toarray(), X[key])
    assert len(S[key]) == len(X[key])


def test_one_form_whatever_came():
    given = scipy.sparse.csr_array(([1.0, 0.0, 2.0, 3.0], [4, 0, 1, 4], [0, 4]), shape=(1, 5))
    rows = SparseRows.of(given)
    assert rows.indices.tolist() == [1, 4]
    assert rows.data.tolist() == [2.0, 4.0]
    assert given.indices.tolist() == [4, 0, 1, 4]
    assert_array_equal(SparseRows.stack([S[:3], S[3:3], S[3:]]).toarray(), X)
    assert_array_equal((S[:5] + S[5:10]).toarray(), X[:5] + X[5:10])
    assert_array_equal(unpacked_points("p", packed_points("p", S)).toarray(), X)
    with pytest.raises(TypeError, match="not made dense"):
        np.asarray(S)


def test_bytes_sort_as_those_of_dense_rows():
    assert_array_equal(sparse_byte_order(S), byte_order(X))
    assert_array_equal(distinct_points(S), distinct_points(X))


@pytest.mark.parametrize("n_neighbors", [1, 3])
def test_nearest_points(n_neighbors):
    points = draw(20, seed=1)
    indices, distances = SparsePoints(SparseRows.of(points))(S, n_neighbors)
    sqdist = ((X[:, None] - points) ** 2).sum(axis=2)
    expected = np.argsort(sqdist, axis=1, kind="stable")[:, :n_neighbors]
    assert_array_equal(indices, expected)
    assert_array_equal(distances, np.sqrt(np.take_along_axis(sqdist, expected, axis=1)).astype(np.float32))


def test_a_row_is_at_itself():
    rows = SparseRows.of(X / 7)
    which = np.arange(len(X), dtype=np.int32)[:, None]
    assert not sparse_sqdist(rows, rows, which).any()
    assert sqdist_to_all(rows, rows)[2, 5] == 0


def test_centers_as_of_dense_rows():
    labels = CenterSearch(SparseRows.of(X[:6]))(S)
    assert_array_equal(labels, CenterSearch(X[:6])(X))
    weights = np.arange(1.0, 41)
    assert_array_equal(sqdist_to_own(S, weights, labels, S[:6]), sqdist_to_own(X, weights, labels, X[:6]))
    assert_array_equal(sqdist_to_all(S, S[:6]), sqdist_to_centers(X, X[:6]))
    sums = sparse_sums(S, labels, weights, 7)
    masses = np.bincount(labels, weights, minlength=7)
    centers = SparseRows.of(X[:7])
    moved = moved_centers(centers, sums, masses, False).toarray()
    expected = [
        np.average(X[labels == c], axis=0, weights=weights[labels == c]) if masses[c] else X[c] for c in range(7)
    ]
    np.testing.assert_allclose(moved, expected, atol=1e-14)
    assert mean_variance(S) == pytest.approx(mean_variance(X))


@pytest.mark.parametrize("weights", [NOTHING, np.arange(40.0)], ids=["plain", "weighted"])
def test_starts_are_those_of_dense_rows(weights):
    uniforms = np.random.default_rng(3).random((12, 4))
    assert_array_equal(start_rows(S, weights, uniforms), plus_plus_rows(X, weights, uniforms))
    few = SparseRows.of(X[[0, 0, 2, 5]])
    assert len(start_rows(few, NOTHING, uniforms)) == 2


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
@pytest.mark.parametrize("unit_length", [False, True])
def test_prepared_as_dense_rows(dtype, unit_length):
    given = np.abs(X).astype(dtype)
    form = (np.zeros(30), 0.125, unit_length)
    dense = prepare_rows(given, *form)
    sparse = prepare_rows(SparseRows.of(given), *form, sparse=True)
    assert sparse.dtype == np.float64
    assert_array_equal(sparse.toarray(), dense)
    assert_array_equal(prepare_rows(SparseRows.of(given), *form), dense)


def test_values_that_are_not_finite():
    bad = X.copy()
    bad[4, 3], bad[9, 1] = np.nan, np.inf
    rows = SparseRows.of(bad)
    assert_array_equal(finite_rows(rows), finite_rows(bad))
    assert finite_rows(S) is None
    assert scan_sparse(rows) == (38, 4, 3, np.abs(X[np.isfinite(bad).all(axis=1)]).max())
    assert scan_sparse(S) == (40, -1, -1, np.abs(X).max())


def test_rows_too_far_for_any_number_have_neighbors_all_the_same():
    """Every score overflows: the neighbours are some of the points, infinitely far."""
    points = SparsePoints(SparseRows.of(np.full((3, 2), -1e200)))
    indices, distances = points(SparseRows.of(np.full((1, 2), 1e200)), 2)
    assert_array_equal(indices, [[0, 1]])
    assert_array_equal(distances, np.inf)
