"""The transfer cut on one block, against dense matrices made by plain loops."""

import numpy as np
import pytest

from daskcluster.kernels.cut import lift_rows, small_graph
from tests.reference import cut
from tests.reference.affinity import dense


def draw_graph(seed, n_rows=40, n_neighbors=4, n_right=9, missing=0.0):
    """Edges (n, K) with weights; a share of them is missing, but never the first ones."""
    rng = np.random.default_rng(seed)
    indices = np.argsort(rng.random((n_rows, n_right)), axis=1)[:, :n_neighbors].astype(np.int32)
    weights = rng.uniform(0.1, 1.0, size=indices.shape).astype(np.float32)
    gone = rng.random(indices.shape) < missing
    gone[:, 0] = False
    indices[gone] = -1
    return indices, weights


def small(kernel, indices, weights, n_right):
    matrix = np.zeros((n_right, n_right))
    kernel(indices, weights, matrix)
    return matrix


def lift(kernel, indices, weights, vectors, padding=0, left_out=()):
    padded = np.pad(vectors.astype(np.float32), ((0, 0), (0, padding)))
    linked = np.ones(len(vectors), np.bool_)
    linked[list(left_out)] = False
    return kernel(indices, weights, padded, linked, vectors.shape[1])


@pytest.mark.parametrize("n_neighbors", [1, 4, 9])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_small_graph_agrees_with_plain_loops(twin, n_neighbors, missing):
    indices, weights = draw_graph(1, n_neighbors=n_neighbors, missing=missing)
    found = small(twin(small_graph), indices, weights, 9)
    assert np.array_equal(found, np.triu(found))
    expected = cut.small_affinity(dense(indices, weights, 9))
    assert found + np.triu(found, 1).T == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("common", [False, True])
def test_small_graph_of_equal_edges(twin, common):
    """Base clusters, in columns apart; and right vertices that several columns have."""
    indices = np.random.default_rng(2).integers(3, size=(50, 3)).astype(np.int32)
    indices = (
        np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]], np.int32)[indices[:, 0]]
        if common
        else indices + np.array([0, 3, 6])
    )
    weights = np.ones((50, 3), np.float32)
    found = small(twin(small_graph), indices.astype(np.int32), weights, 9)
    expected = cut.small_affinity(dense(indices, weights, 9))
    assert found + np.triu(found, 1).T == pytest.approx(expected, rel=1e-12, abs=1e-14)


def test_small_graph_solved_by_hand(twin):
    # The only row has affinities 1, 2, 5 of sum 8: E_R = b b^T / 8.
    indices, weights = np.array([[2, 0, 1]], np.int32), np.array([[1, 2, 5]], np.float32)
    expected = np.array([[4, 10, 2], [0, 25, 5], [0, 0, 1]]) / 8
    assert np.array_equal(small(twin(small_graph), indices, weights, 3), expected)


def test_small_graph_adds_to_what_is_there(twin):
    indices, weights = draw_graph(2)
    whole = small(twin(small_graph), indices, weights, 9)
    parts = np.zeros((9, 9))
    for start in (0, 13, 14):
        stop = {0: 13, 13: 14, 14: 40}[start]
        twin(small_graph)(indices[start:stop], weights[start:stop], parts)
    assert np.array_equal(parts, whole)  # rows are added in row order, wherever blocks end


def test_rows_without_edges_or_weight_add_nothing(twin):
    indices, weights = draw_graph(3)
    whole = small(twin(small_graph), indices, weights, 9)
    nothing = np.array([[-1, -1, -1, -1], [0, 1, 2, 3]], np.int32)
    weightless = np.array([[1, 1, 1, 1], [0, 0, 0, 0]], np.float32)
    longer = small(twin(small_graph), np.vstack([indices, nothing]), np.vstack([weights, weightless]), 9)
    assert np.array_equal(longer, whole)


def test_smallest_weights_are_kept(twin):
    tiny = np.finfo(np.float32).tiny
    found = small(twin(small_graph), np.array([[0, 1]], np.int32), np.array([[tiny, tiny]], np.float32), 2)
    assert found[np.triu_indices(2)].tolist() == [tiny / 2] * 3


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize(("n_components", "padding"), [(1, 0), (3, 0), (3, 13)])
def test_lift_agrees_with_equation_12(twin, missing, n_components, padding):
    indices, weights = draw_graph(4, missing=missing)
    B = dense(indices, weights, 9)
    eigenvalues, v = cut.small_cut(B, n_components)
    scaled = v / [1 - cut.gamma_of(value) for value in eigenvalues]
    expected = cut.unit_rows(cut.lift(B, eigenvalues, v))
    found = lift(twin(lift_rows), indices, weights, scaled, padding)
    assert found.dtype == np.float32
    assert found.shape == expected.shape
    assert found == pytest.approx(expected, abs=2e-6)


def test_lift_solved_by_hand(twin):
    # 1 * (1, 0) + 3 * (0, 1) = (1, 3), of length sqrt(10); the missing edge's weight does not count.
    indices, weights = np.array([[0, -1, 1], [-1, -1, -1]], np.int32), np.array([[1, 9, 3], [1, 1, 1]], np.float32)
    lifted = lift(twin(lift_rows), indices, weights, np.eye(2))
    assert lifted[0] == pytest.approx(np.array([1, 3]) / np.sqrt(10), rel=1e-6)
    assert lifted[1].tolist() == [0, 0]  # no edges


def test_edges_to_right_vertices_that_are_left_out_count_as_missing(twin):
    indices, weights = draw_graph(6)
    vectors = np.random.default_rng(0).normal(size=(9, 3))
    without = np.where(np.isin(indices, [2, 5]), -1, indices).astype(np.int32)
    expected = lift(twin(lift_rows), without, weights, vectors)
    assert (without < 0).any(axis=1).sum() > 10
    assert np.array_equal(lift(twin(lift_rows), indices, weights, vectors, left_out=(2, 5)), expected)
    nothing = lift(twin(lift_rows), np.full((1, 2), 5, np.int32), np.ones((1, 2), np.float32), vectors, left_out=(5,))
    assert nothing.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("size", [1.0, 1e-37])
def test_the_size_of_the_weights_does_not_matter(twin, size):
    """All weights of a row are tiny where it is far from its representatives."""
    indices, weights = draw_graph(5)
    vectors = np.random.default_rng(0).normal(size=(9, 4))
    lifted = lift(twin(lift_rows), indices, weights * np.float32(size), vectors)
    assert np.linalg.norm(lifted, axis=1) == pytest.approx(np.ones(40), rel=1e-6)
    assert lifted == pytest.approx(lift(twin(lift_rows), indices, weights, vectors), abs=1e-5)


def test_an_empty_block(twin):
    indices, weights = np.empty((0, 3), np.int32), np.empty((0, 3), np.float32)
    assert not small(twin(small_graph), indices, weights, 2).any()
    assert lift(twin(lift_rows), indices, weights, np.eye(2)).shape == (0, 2)
