"""Eigenpairs: solved by hand, in closed form, and the same for any number of threads."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from daskcluster import linalg
from daskcluster.linalg import largest_eigenpairs


def draw_symmetric(n_rows, seed=0):
    matrix = np.random.default_rng(seed).normal(size=(n_rows, n_rows))
    return matrix + matrix.T


def test_two_by_two_by_hand():
    # [[2, 1], [1, 2]] has eigenvalues 3 and 1 with (1, 1) and (1, -1).
    values, vectors = largest_eigenpairs(np.array([[2.0, 1.0], [1.0, 2.0]]), 2)
    assert values == pytest.approx([3, 1])
    assert vectors == pytest.approx(np.array([[1, 1], [1, -1]]) / np.sqrt(2))


def test_a_single_row():
    values, vectors = largest_eigenpairs(np.array([[-3.0]]), 1)
    assert values.tolist() == [-3]
    assert vectors.tolist() == [[1]]


@pytest.mark.parametrize("n_components", [1, 3, 12])
def test_path_graph_in_closed_form(n_components):
    """The adjacency matrix of a path of n nodes has eigenvalues 2 cos(j pi / (n + 1)), j = 1..n."""
    values, vectors = largest_eigenpairs(np.eye(12, k=1) + np.eye(12, k=-1), n_components)
    j = np.arange(1, n_components + 1)
    assert values == pytest.approx(2 * np.cos(j * np.pi / 13))
    expected = np.sin(np.outer(np.arange(1, 13), j) * np.pi / 13) * np.sqrt(2 / 13)
    assert np.abs(vectors) == pytest.approx(np.abs(expected), abs=1e-12)


@pytest.mark.parametrize("n_components", [1, 5, 30])
def test_eigenpairs_of_any_symmetric_matrix(n_components):
    matrix = draw_symmetric(30)
    values, vectors = largest_eigenpairs(matrix.copy(), n_components)
    assert (np.diff(values) <= 0).all()
    assert values == pytest.approx(np.sort(np.linalg.eigvalsh(matrix))[::-1][:n_components])
    assert matrix @ vectors == pytest.approx(vectors * values, abs=1e-12)
    assert vectors.T @ vectors == pytest.approx(np.eye(n_components), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_entry_of_each_vector_is_positive(seed):
    _, vectors = largest_eigenpairs(draw_symmetric(20, seed), 20)
    assert (vectors.max(axis=0) == np.abs(vectors).max(axis=0)).all()


def test_of_equally_large_entries_the_first_is_positive():
    _, vectors = largest_eigenpairs(np.array([[1.0, -1.0], [-1.0, 1.0]]), 1)
    assert vectors[0, 0] == -vectors[1, 0] > 0


def test_equal_eigenvalues_span_their_space():
    """Two blocks of ones: eigenvalue 2 twice; the projection on its space is fixed, its basis is not."""
    blocks = np.kron(np.eye(2), np.ones((2, 2)))
    values, vectors = largest_eigenpairs(blocks.copy(), 2)
    assert values == pytest.approx([2, 2])
    assert vectors @ vectors.T == pytest.approx(blocks / 2, abs=1e-14)


def test_only_the_upper_triangle_is_read():
    matrix = draw_symmetric(8)
    expected = largest_eigenpairs(matrix.copy(), 3)
    upper = np.triu(matrix) + np.tril(np.full((8, 8), np.nan), -1)
    for found, known in zip(largest_eigenpairs(upper, 3), expected, strict=True):
        assert np.array_equal(found, known)


def test_results_are_their_own_arrays():
    values, vectors = largest_eigenpairs(draw_symmetric(6), 2)
    assert values.base is None
    assert vectors.flags.c_contiguous


def test_one_thread_and_the_same_digits_for_any_number_of_threads(monkeypatch):
    inside = []
    largest = linalg._largest

    def watched(*arguments):
        inside.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return largest(*arguments)

    monkeypatch.setattr(linalg, "_largest", watched)
    found = []
    for n_threads in (1, 4):
        with threadpool_limits(n_threads, user_api="blas"):
            found.append(largest_eigenpairs(draw_symmetric(300), 5))
    assert set(inside) == {1}
    assert np.array_equal(found[0][0], found[1][0])
    assert np.array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize(("n_rows", "n_components"), [(1, 1), (2, 1), (7, 7), (200, 9)])
def test_the_routine_without_the_lock_is_that_of_scipy(n_rows, n_components, monkeypatch):
    matrix = draw_symmetric(n_rows)
    found = largest_eigenpairs(matrix.copy(), n_components)
    monkeypatch.setattr(linalg, "_dsyevr", lambda: None)
    for own, expected in zip(found, largest_eigenpairs(matrix.copy(), n_components), strict=True):
        assert np.array_equal(own, expected)
