"""Linkage of weighted points, against SciPy on all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from daskcluster.ensemble.linkage import LINKAGES
from daskcluster.kernels.linkage import agglomerate

EACH = pytest.mark.parametrize("kind", LINKAGES)


def named_by_first(labels):
    _, first, places = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[places]


def all_rows(likeness, counts, n_clusters, kind):
    """SciPy's clusters of all rows, at distance 0 within a point; one a point."""
    which = np.repeat(np.arange(len(counts)), counts)
    square = squareform(1 - likeness)[np.ix_(which, which)]
    tree = linkage(squareform(square, checks=False), kind)
    found = named_by_first(fcluster(tree, n_clusters, "maxclust"))
    assert all(len(set(found[which == point])) == 1 for point in range(len(counts)))
    return found[np.cumsum(counts) - 1]


@EACH
@given(seed=st.integers(0, 2**32 - 1), n_points=st.integers(2, 12))
def test_weighted_points_are_as_many_rows(kind, seed, n_points):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 6, size=n_points)
    likeness = rng.random(n_points * (n_points - 1) // 2)  # no ties
    for n_clusters in range(1, n_points + 1):
        found = agglomerate(likeness.copy(), counts.astype(float), n_clusters, LINKAGES[kind])
        expected = all_rows(likeness, counts, n_clusters, kind)
        np.testing.assert_array_equal(named_by_first(expected), found)


def test_the_weights_count_in_the_mean(twin):
    """0 and 1 are joined; 2 is at .4 from the light one of them and at .1 from the heavy one, and at .3 from 3."""
    likeness = squareform(np.array([[0, 0.9, 0.4, 0], [0.9, 0, 0.1, 0], [0.4, 0.1, 0, 0.3], [0, 0, 0.3, 0]]))
    join = twin(agglomerate)
    assert join(likeness.copy(), np.array([9.0, 1, 1, 1]), 2, LINKAGES["average"]).tolist() == [0, 0, 0, 1]
    assert join(likeness.copy(), np.array([1.0, 9, 1, 1]), 2, LINKAGES["average"]).tolist() == [0, 0, 1, 1]


@EACH
def test_ties_go_to_the_light_and_then_to_the_first(twin, kind):
    join, one = twin(agglomerate), LINKAGES[kind]
    alike = np.full(6, 0.5)
    assert join(alike.copy(), np.ones(4), 3, one).tolist() == [0, 0, 1, 2]
    assert join(alike.copy(), np.array([2.0, 2, 1, 1]), 3, one).tolist() == [0, 1, 2, 2]
    assert join(alike.copy(), np.ones(4), 2, one).tolist() == [0, 0, 1, 1]


def test_rounding_breaks_no_tie():
    """A mean of three times a third is 1 third, whatever the order of the sum."""
    third = 1 / 3
    likeness = squareform(
        np.array([[0, 1, third, 0], [1, 0, third + 1e-14, 0], [third, third + 1e-14, 0, third], [0, 0, third, 0]])
    )
    for counts in ([1, 1, 1, 5], [3, 7, 1, 20]):  # 2 and 3 are lighter, or heavier, together than 0, 1 and 2
        found = agglomerate(likeness.copy(), np.array(counts, float), 2, LINKAGES["average"])
        assert found.tolist() == [0, 0, 0, 1]
    assert agglomerate(likeness.copy(), np.array([3.0, 7, 1, 1]), 2, LINKAGES["average"]).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("n_points", [1, 2])
def test_few_points(twin, n_points):
    assert twin(agglomerate)(np.zeros(n_points - 1), np.ones(n_points), 1, 0).tolist() == [0] * n_points
