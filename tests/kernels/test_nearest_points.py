"""The nearest points by a float32 product: what float64 differences give, whatever the product's digits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskcluster.kernels import nearest_points as products
from daskcluster.kernels.lloyd import CenterSearch, reassign_rows
from daskcluster.kernels.nearest_points import nearer_points, nearest_by_products, product_table
from tests.reference import neighbors

each_dtype = pytest.mark.parametrize("dtype", ["f4", "f8"])


@pytest.fixture
def plain(monkeypatch):
    """The kernel as plain Python."""
    monkeypatch.setattr(products, "_nearest_of_products", products._nearest_of_products.py_func)


def search(rows, points, n_neighbors):
    return nearest_by_products(rows, product_table(points, n_neighbors), n_neighbors)


def by_differences(rows, points, n_neighbors):
    """Squared distances to all points in extended precision, and the K nearest by them, the first of equal ones."""
    differences = rows.astype(np.longdouble)[:, None] - points.astype(np.longdouble)
    sqdist = (differences**2).sum(axis=2)
    return sqdist, np.argsort(sqdist, axis=1, kind="stable")[:, :n_neighbors]


def assert_nearest(found, rows, points, n_neighbors):
    """The K nearest but for what float64 cannot tell apart, ascending, with distances right in float32."""
    indices, distances = found
    sqdist, order = by_differences(rows, points, n_neighbors)
    least = np.take_along_axis(sqdist, order, 1)
    taken = np.take_along_axis(sqdist, indices, 1)
    assert (np.abs(taken - least) <= 1e-13 * least).all()
    assert all(len(set(row)) == n_neighbors for row in indices.tolist())
    assert np.allclose(distances, np.sqrt(least).astype(np.float64), rtol=2e-7, atol=1e-45)
    clear = np.diff(np.sort(sqdist, axis=1), axis=1).min(axis=1) > 1e-12 * sqdist.max(axis=1)
    assert np.array_equal(indices[clear], order[clear])


@each_dtype
@pytest.mark.parametrize(
    ("n_features", "n_points", "n_neighbors"),
    [(1, 1, 1), (1, 9, 3), (2, 30, 5), (3, 30, 30), (17, 300, 5), (70, 40, 4), (33, 260, 1)],
)
def test_agrees_with_plain_loops_on_lattices(dtype, n_features, n_points, n_neighbors):
    """There distances are exact and many are equal: of these the first are taken."""
    rng = np.random.default_rng(n_features)
    rows = rng.integers(4, size=(25, n_features)).astype(dtype)
    points = rng.integers(4, size=(n_points, n_features)).astype(float)
    indices, distances = search(rows, points, n_neighbors)
    expected = neighbors.exact(rows, points, n_neighbors)
    assert indices.tolist() == expected
    assert np.array_equal(distances, np.array(neighbors.distances(rows, points, expected), np.float32))


@pytest.mark.usefixtures("plain")
def test_the_plain_function_agrees():
    rng = np.random.default_rng(0)
    rows, points = rng.integers(5, size=(8, 3)).astype("f4"), rng.integers(5, size=(40, 3)).astype(float)
    assert search(rows, points, 4)[0].tolist() == neighbors.exact(rows, points, 4)


@each_dtype
@pytest.mark.parametrize("scale", [1e-30, 1e-18, 1e-6, 1.0, 1e6, 1e14, 1e18])
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4])
def test_any_scale_and_offset(dtype, scale, offset):
    """Squares leave the range of float32, or differences are its last digits: then more points are compared."""
    rng = np.random.default_rng(1)
    rows = ((rng.normal(size=(40, 20)) + offset) * scale).astype(dtype)
    points = (rng.normal(size=(120, 20)) + offset) * scale
    assert_nearest(search(rows, points, 5), rows, points, 5)


@pytest.mark.parametrize("scale", [1e-150, 1e100, 1e150])
def test_float64_beyond_float32(scale):
    rng = np.random.default_rng(2)
    rows, points = rng.normal(size=(30, 10)) * scale, rng.normal(size=(90, 10)) * scale
    indices, _ = search(rows, points, 4)
    assert np.array_equal(indices, by_differences(rows, points, 4)[1])


@each_dtype
def test_rows_beyond_the_range_have_different_neighbours(dtype):
    most = float(np.finfo(np.float32).max)
    rows = np.array([[most, -most], [1e30, 1e30], [0, 1e20]], dtype)
    points = np.random.default_rng(3).normal(size=(70, 2))
    indices, distances = search(rows, points, 5)
    assert all(len(set(row)) == 5 for row in indices.tolist())
    assert np.allclose(distances[1:, 0], [2**0.5 * 1e30, 1e20], rtol=1e-6)


@each_dtype
def test_near_ties_below_the_digits_of_the_product(dtype):
    """Points around a row at distances that differ by 1e-7 of themselves, in any order, and a few far ones."""
    rng = np.random.default_rng(4)
    directions = rng.normal(size=(200, 30))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    center = rng.normal(size=30).astype(np.float32).astype(float)
    points = center + directions * (1 + 1e-7 * rng.permutation(200))[:, None]
    points[::17] += 50
    rows = np.repeat(center[None], 3, axis=0).astype(dtype)
    assert_nearest(search(rows, points, 7), rows, points, 7)
    assert len(np.unique(search(rows, points, 7)[1])) > 1


@each_dtype
def test_a_tight_group_far_from_the_others(dtype):
    """The bound of a row is that of the points that may be near it, and the others are not."""
    rng = np.random.default_rng(5)
    points = np.concatenate(
        [rng.normal(size=(90, 12)), 1e6 + rng.normal(size=(5, 12)), 1e-5 * rng.normal(size=(60, 12))]
    )
    rows = np.concatenate([1e-5 * rng.normal(size=(20, 12)), rng.normal(size=(20, 12))]).astype(dtype)
    assert_nearest(search(rows, points, 6), rows, points, 6)


def test_duplicates_come_in_their_order():
    points = np.repeat(np.random.default_rng(6).normal(size=(50, 40)), 6, axis=0)
    rows = points[::6].astype("f8")
    indices, distances = search(rows, points, 6)
    assert np.array_equal(indices, np.arange(300).reshape(50, 6))
    assert not distances.any()


@each_dtype
@pytest.mark.parametrize("spread", [1e-4, 1.0])
def test_the_digits_of_the_product_decide_nothing(dtype, spread, monkeypatch):
    """Products that are wrong by as much as d 2**-24 abs(x) abs(y) give the same bits, as those of another BLAS do."""
    rng = np.random.default_rng(7)
    centers = rng.normal(size=(6, 50))
    points = centers[rng.integers(6, size=300)] + spread * rng.normal(size=(300, 50))
    rows = (centers[rng.integers(6, size=200)] + spread * rng.normal(size=(200, 50))).astype(dtype)
    expected = search(rows, points, 5)
    multiply = products._multiply

    def wrong(a, b, out):
        exact = multiply(a, b, out)
        error = a.shape[1] * 2.0**-25 * np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=0)
        exact += (rng.choice([-1, 1], size=exact.shape) * error).astype(np.float32)
        return exact

    monkeypatch.setattr(products, "_multiply", wrong)
    for _ in range(3):
        for found, right in zip(search(rows, points, 5), expected, strict=True):
            assert found.tobytes() == right.tobytes()


@pytest.mark.parametrize("most_rows", [1, 7, 64])
def test_tiles_decide_nothing(most_rows, monkeypatch):
    rng = np.random.default_rng(8)
    rows, points = rng.normal(size=(150, 30)).astype("f4"), rng.normal(size=(200, 30))
    expected = search(rows, points, 5)
    monkeypatch.setattr(products, "MOST_ROWS", most_rows)
    for found, right in zip(search(rows, points, 5), expected, strict=True):
        assert found.tobytes() == right.tobytes()
    assert search(rows[::2], points, 5)[0].tobytes() == expected[0][::2].tobytes()


@given(data=st.data())
@settings(max_examples=40)
def test_drawn_lattices(data):
    n_points = data.draw(st.integers(1, 40))
    n_features = data.draw(st.integers(1, 5))
    n_neighbors = data.draw(st.integers(1, n_points))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    side = data.draw(st.sampled_from([1, 2, 50]))
    offset = data.draw(st.sampled_from([0, 10**6]))
    points = rng.integers(side, size=(n_points, n_features)) + offset
    rows = (rng.integers(side, size=(6, n_features)) + offset).astype(data.draw(st.sampled_from(["f4", "f8"])))
    assert search(rows, points.astype(float), n_neighbors)[0].tolist() == neighbors.exact(rows, points, n_neighbors)


def test_an_empty_block():
    indices, distances = search(np.empty((0, 3), np.float32), np.zeros((5, 3)), 2)
    assert indices.shape == distances.shape == (0, 2)


@pytest.mark.parametrize("n_points", [1, 31, 1000, 70_000])
@pytest.mark.parametrize("n_neighbors", [1, 5, 51])
def test_groups_hold_the_neighbours_and_little_padding(n_points, n_neighbors):
    groups = products._group_count(n_points, n_neighbors)
    assert groups >= min(n_neighbors, n_points)
    assert n_points <= -(-n_points // groups) * groups <= 2 * n_points + products.PAD_GROUPS


# -- assignments after a move


def test_the_nearer_of_two(twin):
    points = product_table(np.array([[0.0], [2.0], [5.0]]), 1).points
    rows = np.array([[1.0], [3.0], [5.0]], np.float32)
    first, second = np.array([1, 2, 0], np.int32), np.array([0, 1, 2], np.int32)
    assert twin(nearer_points)(rows, points, first, second).tolist() == [0, 1, 2]


@each_dtype
@pytest.mark.parametrize("n_moved", [0, 1, 7, 39, 40])
@pytest.mark.parametrize("side", [2, 1000])
def test_rows_are_assigned_anew_by_the_centres_that_moved(dtype, n_moved, side):
    """On a coarse lattice, where many centres are equally near, and on a fine one."""
    rng = np.random.default_rng(n_moved)
    points = rng.integers(side, size=(300, 40)).astype(dtype)
    centers = points[:40].astype(float)
    before = CenterSearch(centers)(points)
    after = centers.copy()
    moved = np.zeros(40, bool)
    moved[rng.permutation(40)[:n_moved]] = True
    after[moved] = points[rng.permutation(300)[:n_moved]]
    moved = (after != centers).any(axis=1)
    search = CenterSearch(after)
    assert search.table is not None
    assert np.array_equal(reassign_rows(points, search, before, moved), search(points))
