"""Random walks over distinct rows, and the graph that follows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcluster.ensemble.distinct import Distinct
from daskcluster.ensemble.incidence import LabelBook
from daskcluster.ensemble.meta_clusters import propagated
from daskcluster.ensemble.trajectories import default_steps, elite_links, row_weights_by_trajectories
from tests.reference import eac, ecpcs


@given(st.integers(2, 9), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_links_are_those_of_the_plain_loops(u, n_neighbors, seed):
    rng = np.random.default_rng(seed)
    alike = np.triu(rng.integers(5, size=(u, u)) / 4, 1)
    alike += alike.T
    counts = rng.integers(1, 5, size=u)
    expected = eac.walk_links(alike, counts, n_neighbors)
    found = elite_links(alike.copy(), counts, n_neighbors)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(propagated(found, 3), ecpcs.propagated(expected, 3), atol=1e-12)


def test_edges_are_means_over_distinct_rows():
    """Base clusters {0, 1}, {2} and {0}, {2}; the second row has no second label. Rows count once, however many."""
    distinct = Distinct(np.array([[0, 0], [0, -1], [1, 1]], np.int8), np.array([5, 1, 2]))
    book = LabelBook(np.array([0, 1, 0, 1]), np.array([0, 2, 4]), np.array([6, 2, 5, 2]))
    similar = np.array([[1, 0.5, 0.2], [0.5, 1, 0], [0.2, 0, 1]])
    expected = [[0.75, 0.2, 1, 0.2], [0.75, 0, 0.5, 0], [0.1, 1, 0.2, 1]]
    assert row_weights_by_trajectories(similar, distinct, book) == pytest.approx(np.array(expected))


def test_default_steps():
    assert [default_steps(u) for u in (1, 4, 100, 120, 10_000)] == [1, 1, 5, 5, 50]
