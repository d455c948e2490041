"""Stage 3: the mean distance and the graph of affinities."""

import math

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskcluster.pipeline.affinity import (
    adaptive_edges,
    affinity_graph,
    distance_sum,
    edges_by,
    gaussian_edges,
    mean_distance,
)
from daskcluster.pipeline.bipartite import pack_edges, unpack_edges
from tests.reference import affinity, neighbors


def draw_nearest(n_rows=40, n_neighbors=3, seed=0, missing=()):
    """Packed edges with distances, as stage 2 gives them, and what they are made of."""
    rng = np.random.default_rng(seed)
    rows, representatives = rng.normal(size=(n_rows, 2)), rng.normal(size=(8, 2))
    nearest = neighbors.exact(rows, representatives, n_neighbors)
    indices = np.array(nearest, np.int32)
    distances = np.array(neighbors.distances(rows, representatives, nearest), np.float32)
    indices[list(missing)], distances[list(missing)] = -1, 0
    return pack_edges(indices, distances), rows, representatives, nearest


def test_the_bandwidth_is_the_mean_of_all_distances():
    """sigma of eq. (6), over blocks of any length."""
    packed, rows, representatives, nearest = draw_nearest()
    expected = affinity.bandwidth(neighbors.distances(rows, representatives, nearest))
    for cuts in ([], [20], [1, 2, 3, 39], [0, 0, 40]):
        sums = [distance_sum(part) for part in np.split(packed, cuts)]
        assert sum(part["count"] for part in sums) == 120
        assert mean_distance(sums) == pytest.approx(expected, rel=1e-7)


def test_missing_rows_have_no_share_of_the_bandwidth():
    packed, rows, representatives, nearest = draw_nearest(missing=(0, 17, 39))
    taken = [i for i in range(40) if i not in (0, 17, 39)]
    expected = affinity.bandwidth([neighbors.distances(rows, representatives, nearest)[i] for i in taken])
    sums = [distance_sum(part) for part in np.split(packed, [1, 20])]  # the first block is missing as a whole
    assert sums[0] == {"distance": 0, "count": 0}
    assert mean_distance(sums) == pytest.approx(expected, rel=1e-7)


def test_distances_are_summed_without_loss():
    """float32 would end at 2**24 when 1 is added to it."""
    distances = np.ones((100, 1), np.float32)
    distances[0] = 2.0**24
    found = distance_sum(pack_edges(np.zeros((100, 1), np.int32), distances))
    assert found == {"distance": 2.0**24 + 99, "count": 100}


@settings(max_examples=20)
@given(data=st.data())
def test_the_order_of_partial_sums_does_not_matter_for_counts(data):
    packed, *_ = draw_nearest()
    cuts = sorted(data.draw(st.lists(st.integers(0, 40), max_size=6)))
    parts = [distance_sum(part) for part in np.split(packed, cuts)]
    shuffled = data.draw(st.permutations(parts))
    assert sum(part["count"] for part in shuffled) == 120
    assert math.isclose(mean_distance(shuffled), mean_distance(parts), rel_tol=1e-14)


def test_the_graph_is_the_cross_affinity_of_equation_6():
    packed, rows, representatives, nearest = draw_nearest()
    expected, sigma = affinity.cross_affinity(rows, representatives, nearest)
    graph = affinity_graph(da.from_array(packed, chunks=(15, 6)), sigma, np.zeros((8, 2)))
    assert graph.n_right == 8
    assert graph.to_sparse().todense() == pytest.approx(expected, rel=1e-5)
    weights = graph.weights.compute()
    assert weights.dtype == np.float32
    assert ((weights > 0) & (weights <= 1)).all()


def test_affinities_are_made_when_they_are_read():
    def explode(block):
        raise AssertionError("read")

    packed, *_ = draw_nearest()
    lazy = da.from_array(packed, chunks=(15, 6)).map_blocks(explode, dtype=np.int32, meta=np.empty((0, 0), np.int32))
    graph = affinity_graph(lazy, 1.0, np.zeros((8, 2)))
    assert graph.held is lazy
    assert graph.indices.shape == (40, 3)


def test_rows_that_are_duplicates_of_representatives():
    """All distances 0: sigma is 0, and every affinity 1."""
    indices = np.arange(10, dtype=np.int32)[:, None] % 4
    packed = pack_edges(indices, np.zeros((10, 1), np.float32))
    assert mean_distance([distance_sum(packed)]) == 0
    found, weights = gaussian_edges(packed, 0.0)
    assert np.array_equal(found, indices)
    assert np.array_equal(weights, np.ones((10, 1)))


def test_scaling_the_distances_changes_no_affinity():
    packed, *_ = draw_nearest()
    indices, distances = unpack_edges(packed)
    scaled = pack_edges(indices, distances * np.float32(2.0**-40))
    sigma, small = (mean_distance([distance_sum(edges)]) for edges in (packed, scaled))
    assert small == sigma * 2.0**-40
    assert np.array_equal(gaussian_edges(scaled, small)[1], gaussian_edges(packed, sigma)[1])


def test_affinities_that_fall_to_0_at_the_next_neighbor():
    packed, *_ = draw_nearest(n_neighbors=4, missing=(3,))
    indices, distances = unpack_edges(packed)
    graph = affinity_graph(da.from_array(packed, chunks=(15, 8)), 0.5, np.zeros((8, 2)), "adaptive")
    expected = [affinity.adaptive(row) for row in distances[4:]]
    assert np.array_equal(graph.indices.compute(), indices[:, :3])
    assert graph.weights.compute()[4:] == pytest.approx(np.array(expected), rel=1e-4, abs=1e-6)


def test_adaptive_affinities_by_hand():
    """Distances 1, 2, 3: (9 - 1) / 13 and (9 - 4) / 13."""
    packed = pack_edges(np.array([[2, 0, 1]], np.int32), np.array([[1, 2, 3]], np.float32))
    indices, weights = adaptive_edges(packed)
    assert np.array_equal(indices, [[2, 0]])
    assert weights == pytest.approx(np.array([[8 / 13, 5 / 13]]))


@pytest.mark.parametrize("distance", [0.0, 1e-30, 3.0])
def test_rows_as_far_from_all_their_representatives(distance):
    """None of their edges is lost, and they are equal."""
    packed = pack_edges(np.array([[0, 1, 2]], np.int32), np.full((1, 3), distance, np.float32))
    _, weights = edges_by("adaptive", distance, 6)(packed)
    assert weights.tolist() == [[0.5, 0.5]]


def test_one_representative_has_no_next_neighbor():
    packed = pack_edges(np.zeros((5, 1), np.int32), np.ones((5, 1), np.float32))
    indices, weights = edges_by("adaptive", 1.0, packed.shape[1])(packed)
    assert indices.shape == weights.shape == (5, 1)
