"""The search for the nearest representatives, against the paper's steps in plain loops.

Most rows stand on a lattice of integers: there distances are exact in float32, and ties are many and real.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskcluster.kernels.nearest_points import product_table
from daskcluster.kernels.neighbors import (
    LONG_STRIP,
    NEAREST_IN_NEIGHBORHOODS,
    PAD_COLUMNS,
    SHORT_STRIP,
    nearest_exact,
    nearest_in_neighborhoods_wide,
    nearest_starts,
    nearest_starts_wide,
    order_by_start,
)
from tests.reference import neighbors

each_dtype = pytest.mark.parametrize("dtype", ["f4", "f8"])
each_layout = pytest.mark.parametrize("wide", [False, True], ids=["narrow", "wide"])


def search_exact(twin, rows, representatives, n_neighbors):
    columns = np.ascontiguousarray(representatives.T, rows.dtype)
    return twin(nearest_exact)(rows, columns, representatives.astype(np.float64), n_neighbors)


def search_starts(twin, rows, representatives, rep_clusters, centers, wide):
    """Step 1 by the reference, step 2 by the kernel in the layout that it documents."""
    nearest = [neighbors.closest(row, centers, range(len(centers)), 1)[0] for row in rows]
    groups = np.array(nearest, np.int32)
    sizes = np.array([len(names) for names in rep_clusters], np.intp)
    if not wide:
        sizes = -(-sizes // PAD_COLUMNS) * PAD_COLUMNS
    members = np.zeros((len(rep_clusters), sizes.max()), np.int32)
    columns = np.full((len(rep_clusters), rows.shape[1], sizes.max()), np.inf, rows.dtype)
    for c, names in enumerate(rep_clusters):
        members[c, : len(names)] = names
        columns[c, :, : len(names)] = representatives[names].T
    if wide:
        tables = [product_table(representatives[names], 1) for names in rep_clusters]
        return nearest_starts_wide(rows, groups, sizes, members, tables)
    return twin(nearest_starts)(rows, groups, sizes, members, columns)


def search_neighborhoods(twin, rows, starts, representatives, candidates, n_neighbors, wide, strip=SHORT_STRIP):
    """Step 3 in the layout that the kernels document."""
    reach = np.array(
        [
            [neighbors.distance(representatives[names[0]], representatives[name]) for name in names]
            for names in candidates
        ],
        np.float32,
    )
    candidates, starts = np.array(candidates, np.int32), np.array(starts, np.int32)
    exact = representatives.astype(np.float64)
    if wide:
        coordinates = representatives.astype(rows.dtype)
        kernel = nearest_in_neighborhoods_wide
    else:
        n_candidates, n_features = candidates.shape[1], rows.shape[1]
        padded = np.full((len(candidates), -(-n_candidates // strip) * strip, n_features), np.inf, rows.dtype)
        padded[:, :n_candidates] = representatives[candidates]
        coordinates = padded.reshape(len(candidates), -1, strip, n_features).transpose(0, 1, 3, 2).copy()
        kernel = NEAREST_IN_NEIGHBORHOODS[strip]
    order = twin(order_by_start)(starts, len(candidates))
    return twin(kernel)(rows, starts, order, candidates, reach, coordinates, exact, n_neighbors)


def lattice(seed, n_rows, n_features, n_representatives, dtype="f4", side=6, offset=0):
    """Rows and representatives on a lattice, many of them equal."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(side, size=(n_rows, n_features)) + offset
    representatives = rng.integers(side, size=(n_representatives, n_features)) + offset
    return rows.astype(dtype), representatives.astype(np.float64)


def split(n_representatives, n_groups, seed=0):
    """Rep-clusters: a random partition of the representatives without an empty part."""
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(n_groups), rng.integers(n_groups, size=n_representatives - n_groups)])
    rng.shuffle(groups)
    return [np.flatnonzero(groups == g).tolist() for g in range(n_groups)]


def assert_equal(found, rows, representatives, expected):
    indices, distances = found
    assert indices.dtype == np.int32
    assert distances.dtype == np.float32
    assert indices.tolist() == expected
    exact = neighbors.distances(rows.tolist(), representatives.tolist(), expected)
    assert np.array_equal(distances, np.array(exact, np.float32).reshape(distances.shape))


@each_dtype
@pytest.mark.parametrize(("n_features", "n_representatives", "n_neighbors"), [(1, 9, 3), (2, 30, 5), (70, 12, 4)])
def test_exact_search_agrees_with_plain_loops(twin, dtype, n_features, n_representatives, n_neighbors):
    rows, representatives = lattice(0, 25, n_features, n_representatives, dtype)
    expected = neighbors.exact(rows, representatives, n_neighbors)
    assert_equal(search_exact(twin, rows, representatives, n_neighbors), rows, representatives, expected)


@each_dtype
@pytest.mark.parametrize("n_representatives", [1, 7])
def test_exact_search_for_all_representatives_sorts_them(twin, dtype, n_representatives):
    rows, representatives = lattice(1, 20, 2, n_representatives, dtype)
    expected = neighbors.exact(rows, representatives, n_representatives)
    found = search_exact(twin, rows, representatives, n_representatives)
    assert_equal(found, rows, representatives, expected)
    assert (np.sort(found[0], axis=1) == np.arange(n_representatives)).all()


def test_equally_near_representatives_come_in_their_order(twin):
    representatives = np.array([[2.0], [0.0], [2.0], [1.0], [0.0]])
    indices, distances = search_exact(twin, np.array([[1.0]]), representatives, 5)
    assert indices.tolist() == [[3, 0, 1, 2, 4]]
    assert distances.tolist() == [[0, 1, 1, 1, 1]]


@each_dtype
def test_exact_search_far_from_the_origin(twin, dtype):
    """Squares of these coordinates differ by less than float32 resolves; their differences are exact."""
    rows, representatives = lattice(2, 25, 3, 20, dtype, offset=10**6)
    expected = neighbors.exact(rows, representatives, 4)
    assert_equal(search_exact(twin, rows, representatives, 4), rows, representatives, expected)


@pytest.mark.parametrize("n_features", [1, 2, 16, 80])
def test_exact_search_in_float64_agrees_on_any_numbers(twin, n_features):
    rng = np.random.default_rng(n_features)
    rows, representatives = rng.normal(size=(30, n_features)), rng.normal(size=(40, n_features))
    indices, distances = search_exact(twin, rows, representatives, 5)
    expected = neighbors.exact(rows, representatives, 5)
    assert indices.tolist() == expected
    assert distances == pytest.approx(np.array(neighbors.distances(rows, representatives, expected)), rel=1e-6)


def test_distances_are_recomputed_in_float64(twin):
    """Of two representatives that float32 cannot tell apart the distances are right to float32's last digit."""
    representatives = np.array([[1 + 2.0**-26], [1.0]])
    indices, distances = search_exact(twin, np.array([[1.0]], np.float32), representatives, 2)
    assert indices.tolist() == [[1, 0]]
    assert distances.tolist() == [[0.0, 2.0**-26]]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_distances_beyond_the_range_of_float32_keep_the_neighbours_distinct(dtype):
    """A new row may be far from everything; its neighbours are still K different representatives."""
    rows = np.array([[1e30, -1e30]], dtype)
    representatives = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    indices, distances = search_exact(lambda kernel: kernel, rows, representatives, 3)
    assert len(set(indices[0].tolist())) == 3
    assert distances[0] == pytest.approx([2**0.5 * 1e30] * 3, rel=1e-6)


@each_dtype
@each_layout
@pytest.mark.parametrize("n_features", [1, 3, 70])
def test_starts_agree_with_steps_1_and_2(twin, dtype, wide, n_features):
    rows, representatives = lattice(3, 40, n_features, 20, dtype)
    rep_clusters = split(20, 5)
    centers = representatives[:5]  # on the lattice: the ties are real in any dtype
    found = search_starts(twin, rows, representatives, rep_clusters, centers, wide)
    assert found.dtype == np.int32
    assert found.tolist() == neighbors.starts(rows, representatives, rep_clusters, centers)


@each_dtype
@each_layout
def test_starts_far_from_the_origin(twin, dtype, wide):
    rows, representatives = lattice(4, 40, 2, 20, dtype, offset=10**6)
    found = search_starts(twin, rows, representatives, split(20, 4), representatives[4:8], wide)
    assert found.tolist() == neighbors.starts(rows, representatives, split(20, 4), representatives[4:8])


@each_layout
@pytest.mark.parametrize("n_groups", [1, 6])
def test_starts_in_one_rep_cluster_or_single_representatives(twin, wide, n_groups):
    """Either step alone finds the nearest representative: one rep-cluster of all, or all of them alone."""
    rows, representatives = lattice(5, 30, 2, 6)
    rep_clusters = split(6, n_groups) if n_groups == 1 else [[name] for name in range(6)]
    centers = representatives[:1] if n_groups == 1 else representatives
    found = search_starts(twin, rows, representatives, rep_clusters, centers, wide)
    assert found.tolist() == [first for (first,) in neighbors.exact(rows, representatives, 1)]


@each_dtype
@each_layout
@pytest.mark.parametrize(("n_features", "n_neighbors"), [(1, 1), (2, 5), (2, 9), (70, 5)])
def test_neighborhoods_agree_with_step_3(twin, dtype, wide, n_features, n_neighbors):
    """K' + 1 = 9 candidates, of which K are kept: some, or all."""
    rows, representatives = lattice(6, 40, n_features, 25, dtype)
    candidates = neighbors.neighborhoods(representatives, 8)
    starts = np.random.default_rng(0).integers(25, size=40).tolist()
    expected = [
        neighbors.closest(row, representatives, candidates[start], n_neighbors)
        for row, start in zip(rows, starts, strict=True)
    ]
    found = search_neighborhoods(twin, rows, starts, representatives, candidates, n_neighbors, wide)
    assert_equal(found, rows, representatives, expected)


@each_dtype
@pytest.mark.parametrize("layout", ["wide", SHORT_STRIP, LONG_STRIP])
@pytest.mark.parametrize("side", [1, 30])
def test_the_search_may_end_early_but_misses_nothing(twin, dtype, layout, side):
    """Neighbourhoods of several strips, rows near to and far from their starts, distances equal or different."""
    rows, representatives = lattice(11, 40, 2, 140, dtype, side=side)
    candidates = neighbors.neighborhoods(representatives, 139)
    assert 2 * LONG_STRIP < 140
    starts = [name for (name,) in neighbors.exact(rows[:20], representatives, 1)]
    starts += np.random.default_rng(0).integers(140, size=20).tolist()
    expected = [
        neighbors.closest(row, representatives, candidates[start], 5) for row, start in zip(rows, starts, strict=True)
    ]
    strip = SHORT_STRIP if layout == "wide" else layout
    found = search_neighborhoods(twin, rows, starts, representatives, candidates, 5, layout == "wide", strip)
    assert_equal(found, rows, representatives, expected)


@pytest.mark.parametrize("strip", [SHORT_STRIP, LONG_STRIP])
@pytest.mark.parametrize("n_candidates", [2, SHORT_STRIP, SHORT_STRIP + 1, LONG_STRIP, LONG_STRIP + 1])
def test_strips_that_are_full_or_not(twin, strip, n_candidates):
    """All candidates are asked for: none is lost, and none of the padding is taken for one."""
    rows, representatives = lattice(12, 10, 2, 80, side=30)
    candidates = neighbors.neighborhoods(representatives, n_candidates - 1)
    starts = np.arange(10).tolist()
    expected = [
        neighbors.closest(row, representatives, candidates[start], n_candidates)
        for row, start in zip(rows, starts, strict=True)
    ]
    found = search_neighborhoods(twin, rows, starts, representatives, candidates, n_candidates, False, strip)
    assert_equal(found, rows, representatives, expected)


@each_layout
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_beyond_the_range_of_float32_have_neighbours(dtype, wide):
    """Their squared distances are infinite, like the padding; the neighbours are K different representatives still."""
    _, representatives = lattice(13, 0, 3, 30)
    most = float(np.finfo(np.float32).max)
    rows = np.array([[most, most, most], [-most, 0, 1], [1e25, -1e25, 0], [0, 1e30, 0]], dtype)
    starts = search_starts(lambda kernel: kernel, rows, representatives, split(30, 4), representatives[:4], wide)
    assert set(starts.tolist()) <= set(range(30))
    candidates = neighbors.neighborhoods(representatives, 9)
    indices, _ = search_neighborhoods(lambda kernel: kernel, rows, starts, representatives, candidates, 5, wide)
    for start, found in zip(starts, indices.tolist(), strict=True):
        assert len(set(found)) == 5
        assert set(found) <= set(candidates[start])


@each_layout
def test_the_three_steps_together(twin, wide):
    rows, representatives = lattice(8, 60, 2, 36, "f8", side=40)
    rep_clusters = split(36, 6)
    centers = neighbors.rep_cluster_centers(representatives, rep_clusters)
    expected = neighbors.approximate(rows, representatives, rep_clusters, centers, 10, 4)
    assert 0 < neighbors.recall(expected, neighbors.exact(rows, representatives, 4)) < 1  # it is an approximation
    starts = search_starts(twin, rows, representatives, rep_clusters, centers, wide)
    candidates = neighbors.neighborhoods(representatives, 10)
    found = search_neighborhoods(twin, rows, starts, representatives, candidates, 4, wide)
    assert_equal(found, rows, representatives, expected)


@each_dtype
@each_layout
@settings(max_examples=30)
@given(data=st.data())
def test_both_layouts_on_drawn_lattices(dtype, wide, data):
    n_features = data.draw(st.integers(1, 4))
    n_representatives = data.draw(st.integers(2, 12))
    points = st.lists(st.integers(-4, 4), min_size=n_features, max_size=n_features)
    rows = np.array(data.draw(st.lists(points, min_size=1, max_size=8)), dtype)
    representatives = np.array(data.draw(st.lists(points, min_size=n_representatives, max_size=n_representatives)))
    n_candidates = data.draw(st.integers(1, n_representatives - 1))
    n_neighbors = data.draw(st.integers(1, n_candidates + 1))
    rep_clusters = split(n_representatives, data.draw(st.integers(1, n_representatives)))
    centers = representatives[: len(rep_clusters)]
    expected = neighbors.approximate(rows, representatives, rep_clusters, centers, n_candidates, n_neighbors)
    starts = search_starts(lambda kernel: kernel, rows, representatives, rep_clusters, centers, wide)
    candidates = neighbors.neighborhoods(representatives, n_candidates)
    found = search_neighborhoods(lambda kernel: kernel, rows, starts, representatives, candidates, n_neighbors, wide)
    assert_equal(found, rows, representatives, expected)


@each_layout
def test_an_empty_block(twin, wide):
    rows, representatives = lattice(9, 0, 2, 6)
    assert [part.shape for part in search_exact(twin, rows, representatives, 3)] == [(0, 3), (0, 3)]
    starts = search_starts(twin, rows, representatives, split(6, 2), representatives[:2], wide)
    assert starts.shape == (0,)
    candidates = neighbors.neighborhoods(representatives, 3)
    found = search_neighborhoods(twin, rows, starts, representatives, candidates, 2, wide)
    assert [part.shape for part in found] == [(0, 2), (0, 2)]


def test_rows_of_one_start_stand_together(twin):
    starts = np.array([3, 0, 3, 1, 0, 3], np.int32)
    order = twin(order_by_start)(starts, 5)
    assert order.dtype == np.int32
    assert order.tolist() == [1, 4, 3, 0, 2, 5]
    assert twin(order_by_start)(starts[:0], 5).tolist() == []
