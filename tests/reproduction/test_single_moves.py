"""The second phase of MATLAB's k-means, against the objective counted anew for every move."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from ci.reproduction.systems.kmeans import kmeans
from ci.reproduction.systems.single_moves import move_single_rows


def cost(X: np.ndarray, labels: np.ndarray, cosine: bool) -> float:
    """What k-means makes small."""
    if cosine:
        return -sum(float(np.linalg.norm(X[labels == c].sum(axis=0))) for c in np.unique(labels))
    return sum(float(((X[labels == c] - X[labels == c].mean(axis=0)) ** 2).sum()) for c in np.unique(labels))


def best_move(X: np.ndarray, labels: np.ndarray, k: int, cosine: bool) -> float:
    """The least cost that moving one row, not the last of its cluster, leads to."""
    found = np.inf
    for row in np.flatnonzero(np.bincount(labels, minlength=k)[labels] > 1):
        for c in range(k):
            moved = labels.copy()
            moved[row] = c
            found = min(found, cost(X, moved, cosine))
    return found


def test_a_row_that_is_nearest_to_its_centre_may_move():
    """Lloyd's iteration stays at {0, 2}, {3.2}, of cost 2; 2 is nearer to 1 than to 3.2, and {2, 3.2} costs 0.72."""
    begun = np.array([0, 0, 1], np.int32)
    assert move_single_rows(np.array([[0.0], [2.0], [3.2]]), begun, 2).tolist() == [0, 1, 1]
    assert begun.tolist() == [0, 0, 1]


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("cosine", [False, True])
def test_no_single_move_is_left(cosine, form):
    rng = np.random.default_rng(0)
    X = rng.random((40, 3)) + (0 if cosine else 10)
    X = X / np.linalg.norm(X, axis=1, keepdims=True) if cosine else X
    begun = rng.permutation(np.arange(40) % 4).astype(np.int32)
    labels = move_single_rows(form(X), begun, 4, cosine=cosine)
    assert cost(X, labels, cosine) < cost(X, begun, cosine) - 1e-3
    assert best_move(X, labels, 4, cosine) > cost(X, labels, cosine) - 1e-9


@pytest.mark.parametrize("cosine", [False, True])
def test_kmeans_takes_the_second_phase_where_it_is_asked_for(cosine):
    rng = np.random.default_rng(3)
    X = rng.random((60, 4))
    form = scipy.sparse.csr_array if cosine else np.asarray
    costs = []
    for single_moves in (False, True):
        labels = kmeans(form(X), 5, cosine=cosine, single_moves=single_moves, random_state=1)
        costs.append(cost(X / np.linalg.norm(X, axis=1, keepdims=True) if cosine else X, labels, cosine))
    assert costs[1] < costs[0] - 1e-6
