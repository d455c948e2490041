"""Kernels on projected rows, against dense matrices made by plain loops."""

import numpy as np
import pytest

from daskcluster.kernels.projection import add_projected, lower_to_rows, nearest_of_products, project_labels


def draw(seed=0, n_rows=40, n_components=5):
    """Whole numbers (n, r) and weights (n,) from 1 to 9."""
    rng = np.random.default_rng(seed)
    return rng.integers(-4, 5, size=(n_rows, n_components)).astype(np.int8), rng.integers(1, 10, n_rows).astype(float)


def test_projecting_is_the_product(twin):
    rng = np.random.default_rng(5)
    codes = rng.integers(-1, 3, size=(30, 4)).astype(np.int8)
    signs = rng.integers(-1, 2, size=(12, 6)).astype(np.int8)
    dense = np.hstack([codes[:, [j]] == np.arange(3) for j in range(4)]).astype(int)
    found = np.zeros((30, 6), np.int8)
    twin(project_labels)(codes, np.arange(5) * 3, signs, found)
    assert (found == dense @ signs).all()


def test_the_nearest_center_is_that_of_the_distances(twin):
    rows, weights = draw()
    rows, weights = rows.astype(np.float64), weights / 3
    centers = np.random.default_rng(1).normal(size=(6, 5))
    weights[7] = 0.0
    taken = weights > 0
    points = rows[taken] / weights[taken, None]
    expected = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    labels = np.empty(40, np.int32)
    half = 0.5 * (centers**2).sum(axis=1)
    products = (centers @ rows.T).astype(np.float32)
    twin(nearest_of_products)(products, weights.astype(np.float32), half.astype(np.float32), labels)
    assert labels[7] == -1
    assert labels[taken].tolist() == expected.tolist()


def test_the_first_of_equally_near_centers(twin):
    labels = np.empty(2, np.int32)
    products, half = np.array([[1, 0], [1, 2], [1, 2]], np.float32), np.ones(3, np.float32)
    twin(nearest_of_products)(products, np.ones(2, np.float32), half, labels)
    assert labels.tolist() == [0, 1]


def test_sums_of_a_pass(twin):
    rows, weights = draw()
    labels = np.random.default_rng(2).integers(-1, 3, size=40).astype(np.int32)
    sums, masses, first = np.zeros((4, 5), np.int32), np.zeros(4), np.full(4, 99)
    constant = twin(add_projected)(rows, weights, labels, sums, masses, first)
    for c in range(3):
        assert sums[c].tolist() == rows[labels == c].sum(axis=0).tolist()
        assert masses[c] == weights[labels == c].sum()
        assert first[c] == np.flatnonzero(labels == c)[0]
    assert (masses[3], first[3]) == (0, 99)
    lengths = (rows.astype(float) ** 2).sum(axis=1) / weights
    assert constant == pytest.approx(lengths[labels >= 0].sum())


def test_lowering_to_rows(twin):
    rows, weights = draw(3)
    rows[11], weights[11] = rows[4], weights[4]
    chosen = np.array([4, 20])
    points = rows / weights[:, None]
    expected = weights * ((points[chosen][:, None] - points) ** 2).sum(axis=2)
    closest, lowered = np.full(40, np.median(expected)), np.empty((2, 40))
    products = (rows[chosen].astype(float) @ rows.T.astype(float)).astype(np.float32)
    sqnorms = (rows.astype(float) ** 2).sum(axis=1)
    twin(lower_to_rows)(products, sqnorms, weights, chosen, closest, lowered)
    assert lowered == pytest.approx(np.minimum(expected, closest))
    assert lowered[0, 4] == lowered[0, 11] == lowered[1, 20] == 0.0  # exactly, so that they are not drawn again
