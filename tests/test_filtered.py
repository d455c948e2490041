"""Chebyshev-filtered subspace iteration: against the dense solver, in closed form, and when it declines."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from daskcluster import filtered
from daskcluster.filtered import filtered_eigenpairs
from daskcluster.linalg import largest_eigenpairs


@pytest.fixture
def any_size(monkeypatch):
    """Small matrices are filtered too, whatever the work."""
    monkeypatch.setattr(filtered, "LEAST_ROWS", 1)
    monkeypatch.setattr(filtered, "MOST_WORK", 1e6)


def draw_graph(n_rows, n_parts, seed, bridges=0.0):
    """Normalized affinity matrix of a ring of random neighbors in unlinked parts, or with weak links between them."""
    rng = np.random.default_rng(seed)
    part = np.arange(n_rows) * n_parts // n_rows
    weights = np.zeros((n_rows, n_rows))
    for shift in (1, 2, 3):
        one = np.arange(n_rows)
        other = (one + shift) % n_rows
        weights[one, other] = rng.random(n_rows) * np.where(part[one] == part[other], 1.0, bridges)
    weights = weights + weights.T + np.diag(rng.random(n_rows))
    roots = np.sqrt(weights.sum(axis=1))
    return weights / roots[:, None] / roots


def assert_same_space(one, other, atol=1e-9):
    """Orthonormal columns that span the same space."""
    assert np.linalg.svd(one.T @ other, compute_uv=False) == pytest.approx(np.ones(one.shape[1]), abs=atol)


def dense(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_parts", "bridges"), [(1, 0), (7, 0), (12, 0), (7, 1e-9), (12, 1e-5), (12, 1e-2)])
def test_spaces_are_those_of_the_dense_solver(any_size, n_parts, bridges, seed):
    """Unlinked parts have the eigenvalue 1 once each, weakly linked ones have eigenvalues that nearly are it."""
    matrix = draw_graph(240, n_parts, seed, bridges)
    expected, basis = dense(matrix)
    values, vectors = filtered_eigenpairs(matrix, 12)
    assert values == pytest.approx(expected[:12], abs=1e-12)
    assert vectors.T @ vectors == pytest.approx(np.eye(12), abs=1e-12)
    assert matrix @ vectors == pytest.approx(vectors * values, abs=1e-11)
    for end in (n_parts, 12):  # all copies, and all that are wanted
        assert expected[end - 1] - expected[end] > 1e-7
        assert_same_space(vectors[:, :end], basis[:, :end])


@pytest.mark.parametrize("copies", [2, 5])
def test_every_eigenvalue_as_often_as_it_is_there(any_size, copies):
    matrix = np.kron(np.eye(copies), draw_graph(60, 1, 0))
    values, vectors = filtered_eigenpairs(matrix, 2 * copies)
    expected, basis = dense(matrix)
    assert values == pytest.approx(expected[: 2 * copies], abs=1e-12)
    for end in (copies, 2 * copies):
        assert_same_space(vectors[:, :end], basis[:, :end])


def test_a_matrix_with_negative_eigenvalues(any_size):
    """Those are larger in magnitude: the path's adjacency less 2 has eigenvalues 2 cos(j pi / (n + 1)) - 2."""
    n_rows = 120
    matrix = np.eye(n_rows, k=1) + np.eye(n_rows, k=-1) - 2 * np.eye(n_rows)
    values, _ = filtered_eigenpairs(matrix, 4)
    assert values == pytest.approx(2 * np.cos(np.arange(1, 5) * np.pi / (n_rows + 1)) - 2, abs=1e-11)


def test_only_the_upper_triangle_is_read(any_size):
    matrix = draw_graph(80, 2, 0)
    expected = filtered_eigenpairs(matrix, 3)
    for found, known in zip(filtered_eigenpairs(np.triu(matrix), 3), expected, strict=True):
        assert np.array_equal(found, known)


def test_a_grid_in_closed_form_by_the_function_that_all_call():
    """A grid's adjacency has the sums of a path's eigenvalues; of unequal pairs each sum comes twice."""
    side, n_components = 46, 9
    path = np.eye(side, k=1) + np.eye(side, k=-1)
    grid = np.kron(path, np.eye(side)) + np.kron(np.eye(side), path)
    assert filtered_eigenpairs(grid, n_components) is not None
    values, vectors = largest_eigenpairs(grid, n_components)
    ones = 2 * np.cos(np.arange(1, side + 1) * np.pi / (side + 1))
    expected = np.sort((ones[:, None] + ones).ravel())[::-1][:n_components]
    assert values == pytest.approx(expected, abs=1e-11)
    assert (vectors.max(axis=0) == np.abs(vectors).max(axis=0)).all()


def test_the_same_digits_for_any_number_of_threads(any_size):
    found = []
    for n_threads in (1, 4):
        with threadpool_limits(n_threads, user_api="blas"):
            found.append(largest_eigenpairs(draw_graph(300, 3, 0), 5))
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)


def test_small_full_and_wide_problems_are_left_to_the_dense_solver(monkeypatch):
    assert filtered_eigenpairs(draw_graph(300, 1, 0), 3) is None
    monkeypatch.setattr(filtered, "LEAST_ROWS", 1)
    assert filtered_eigenpairs(np.ones((300, 300)), 3) is None
    assert filtered_eigenpairs(draw_graph(300, 1, 0), 200) is None


def test_more_equal_eigenvalues_than_the_block_has_columns(any_size, monkeypatch):
    """The filter cannot tell copies from each other; a few rounds show it, and the dense solver goes on."""
    monkeypatch.setattr(filtered, "MOST_WORK", 50.0)
    matrix = draw_graph(240, 40, 0)
    assert filtered_eigenpairs(matrix, 3) is None
    values, vectors = largest_eigenpairs(matrix.copy(), 3)
    assert values == pytest.approx(np.ones(3))
    assert matrix @ vectors == pytest.approx(vectors, abs=1e-12)


@pytest.mark.parametrize(
    "matrix", [np.zeros((200, 200)), np.eye(200), -np.eye(200)], ids=["zeros", "ones", "minus ones"]
)
def test_matrices_with_one_eigenvalue(any_size, matrix):
    values, vectors = largest_eigenpairs(matrix.copy(), 3)
    assert values == pytest.approx(np.diag(matrix)[:3])
    assert vectors.T @ vectors == pytest.approx(np.eye(3), abs=1e-12)
