"""Weighted k-means on one block, against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskcluster.kernels import lloyd as kernels
from daskcluster.kernels import nearest_points as products
from daskcluster.kernels.lloyd import (
    accumulate_rows,
    assign_rows,
    closest_sqdist,
    nearest_center,
    plus_plus_rows,
    sqdist_to_centers,
)
from tests.reference import lloyd

NO_WEIGHTS = np.empty(0)

each_dtype = pytest.mark.parametrize("dtype", ["f4", "f8"])


@pytest.fixture(params=["loops", "product"])
def branch(request, monkeypatch):
    """Either form of the assignment, whatever the sizes."""
    size = {"loops": 10**9, "product": 1}[request.param]
    monkeypatch.setattr(kernels, "PRODUCT_FEATURES", size)
    monkeypatch.setattr(kernels, "PRODUCT_CENTERS", size)
    monkeypatch.setattr(kernels, "MANY_FEATURES", size)


def lattice(seed, n_points, n_features, n_centers, dtype="f8", offset=0):
    """Points and centres on a lattice of integers: distances are exact in any dtype, and many are equal."""
    rng = np.random.default_rng(seed)
    points = rng.integers(-4, 5, size=(n_points, n_features)) + offset
    centers = rng.integers(-4, 5, size=(n_centers, n_features)) + offset
    return points.astype(dtype), centers.astype(np.float64)


def accumulate(kernel, points, weights, labels, centers):
    sums, masses = np.zeros_like(centers), np.zeros(len(centers))
    first = np.full(len(centers), len(points), np.int64)
    inertia = kernel(points, weights, labels, centers, sums, masses, first)
    return inertia, sums, masses, first


# -- assignment


@each_dtype
@pytest.mark.parametrize(
    ("n_points", "n_features", "n_centers"), [(50, 1, 1), (50, 1, 6), (50, 40, 35), (1, 2, 3), (256, 2, 3), (515, 3, 7)]
)
def test_nearest_center_agrees_with_plain_loops(twin, dtype, n_points, n_features, n_centers):
    """Rows fall into no tile that is full, into one, or into two and a part."""
    assert kernels.TILE == 256
    points, centers = lattice(0, n_points, n_features, n_centers, dtype)
    found = twin(nearest_center)(points, centers.astype(dtype))
    assert found.dtype == np.int32
    assert found.tolist() == lloyd.assign(points, centers)


@pytest.mark.usefixtures("branch")
@each_dtype
@pytest.mark.parametrize(("n_features", "n_centers"), [(1, 1), (1, 6), (3, 7), (40, 64)])
def test_assignment_agrees_with_plain_loops(dtype, n_features, n_centers):
    """The mean of 1, 2 or 64 lattice points is exact, so the product's ties are real as well.

    Of equally near centres that one is taken whose bytes come first.
    """
    points, centers = lattice(1, 60, n_features, n_centers, dtype)
    if n_centers in (6, 7):
        centers = np.vstack([centers, centers, centers])[:8]  # duplicates: the first of equal centres is taken
    order = sorted(range(len(centers)), key=lambda c: centers[c].tobytes())
    expected = [order[label] for label in lloyd.assign(points, centers[order])]
    assert assign_rows(points, centers).tolist() == expected


@pytest.mark.usefixtures("branch")
def test_ties_do_not_depend_on_the_order_of_the_centers():
    points, centers = lattice(1, 60, 2, 7, "f8")
    names = np.random.default_rng(0).permutation(7)
    assert names[assign_rows(points, centers[names])].tolist() == assign_rows(points, centers).tolist()


@each_dtype
def test_both_forms_agree_where_the_product_is_used(dtype, monkeypatch):
    """2,500 points: more than two tiles, the last of them not full."""
    rng = np.random.default_rng(2)
    centers = rng.normal(size=(50, 32))
    points = (centers[rng.integers(50, size=2500)] + 0.1 * rng.normal(size=(2500, 32))).astype(dtype)
    assert centers.shape[1] >= kernels.PRODUCT_FEATURES
    assert len(centers) >= kernels.PRODUCT_CENTERS
    called = []
    monkeypatch.setattr(kernels, "nearest_center", lambda *arguments: called.append(1))
    product = assign_rows(points, centers)
    assert not called
    assert np.array_equal(product, nearest_center(points, centers.astype(dtype)))
    assert len(np.unique(product)) == 50


@pytest.mark.parametrize("n_rows", [1, 3, 4, 5, 8, 9])
def test_every_row_falls_into_a_tile(n_rows, monkeypatch):
    monkeypatch.setattr(products, "MOST_ROWS", 4)
    monkeypatch.setattr(kernels, "MANY_FEATURES", 1)
    points = np.arange(n_rows, dtype=float)[:, None]
    assert assign_rows(points, points).tolist() == list(range(n_rows))


@pytest.mark.usefixtures("branch")
@each_dtype
def test_assignment_far_from_the_origin(dtype):
    """Differences of 1 at 10^6: the squares of the expanded formula would lose them without a common origin."""
    points, centers = lattice(3, 60, 30, 32, dtype, offset=10**6)
    found = assign_rows(points, centers)
    nearest = [min(lloyd.sqdist(x, c) for c in centers) for x in points]
    assert [lloyd.sqdist(x, centers[c]) for x, c in zip(points, found, strict=True)] == pytest.approx(nearest, rel=0.01)


@pytest.mark.usefixtures("branch")
def test_assignment_of_an_empty_block():
    assert assign_rows(np.empty((0, 3), np.float32), np.zeros((2, 3))).shape == (0,)


def test_assignment_takes_any_memory_order():
    points, centers = lattice(4, 30, 3, 5, "f4")
    expected = assign_rows(points, centers)
    assert np.array_equal(assign_rows(np.asfortranarray(points), np.asfortranarray(centers)), expected)
    assert np.array_equal(assign_rows(np.repeat(points, 2, axis=1)[:, ::2], centers), expected)


# -- the sums of a pass


@each_dtype
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_features", [1, 3])
def test_sums_agree_with_plain_loops(twin, dtype, weighted, n_features):
    rng = np.random.default_rng(5)
    points = rng.normal(size=(60, n_features)).astype(dtype)
    centers = rng.normal(size=(4, n_features))
    labels = np.array(lloyd.assign(points, centers), np.int32)
    weights = np.where(rng.random(60) < 0.3, 0.0, rng.uniform(0.5, 2.0, size=60)) if weighted else NO_WEIGHTS
    inertia, sums, masses, first = accumulate(twin(accumulate_rows), points, weights, labels, centers)
    plain = weights if weighted else np.ones(60)
    assert inertia == pytest.approx(lloyd.inertia(points, plain, centers, labels), rel=1e-12)
    assert masses == pytest.approx([plain[labels == c].sum() for c in range(4)], rel=1e-12)
    assert first.tolist() == [labels.tolist().index(c) if c in labels else 60 for c in range(4)]
    moved = centers + np.divide(sums, masses[:, None], out=np.zeros_like(sums), where=masses[:, None] > 0)
    assert moved == pytest.approx(lloyd.means(points, plain, centers, labels), rel=1e-12)


def test_sums_solved_by_hand(twin):
    points = np.array([[1, 2], [5, 5], [3, 0], [9, 9]], np.float32)
    labels = np.array([1, -1, 1, 0], np.int32)
    centers = np.array([[8.0, 8.0], [2.0, 1.0], [0.0, 0.0]])
    inertia, sums, masses, first = accumulate(
        twin(accumulate_rows), points, np.array([2.0, 7.0, 1.0, 0.0]), labels, centers
    )
    assert inertia == 2 * 2 + 1 * 2
    assert sums.tolist() == [[0, 0], [2 * -1 + 1, 2 * 1 - 1], [0, 0]]
    assert masses.tolist() == [0, 3, 0]
    assert first.tolist() == [3, 0, 4]  # a row without weight is a row; the third cluster has none


def test_sums_are_added_to_what_is_there(twin):
    points, centers = lattice(6, 30, 2, 3)
    labels = assign_rows(points, centers)
    whole = accumulate(twin(accumulate_rows), points, NO_WEIGHTS, labels, centers)
    sums, masses, first = np.zeros((3, 2)), np.zeros(3), np.full(3, 30, np.int64)
    inertia = 0.0
    for part in (slice(0, 11), slice(11, 30)):
        inertia += twin(accumulate_rows)(points[part], NO_WEIGHTS, labels[part], centers, sums, masses, first)
    assert inertia == whole[0]
    assert np.array_equal(sums, whole[1])
    assert np.array_equal(masses, whole[2])


def test_sums_keep_digits_far_from_the_origin(twin):
    """Coordinates of 10^9 summed over 10^4 rows would lose the fourth decimal; their differences do not."""
    offsets = np.arange(10_000) % 10 * 0.125
    points = (1e9 + offsets)[:, None]
    centers = np.array([[1e9]])
    _, sums, masses, _ = accumulate(twin(accumulate_rows), points, NO_WEIGHTS, np.zeros(10_000, np.int32), centers)
    assert sums[0, 0] / masses[0] == 0.5625  # the mean of 0, 1/8, ..., 9/8


@each_dtype
@pytest.mark.parametrize("n_features", [1, 4])
def test_squared_distances_to_centers(twin, dtype, n_features):
    rng = np.random.default_rng(7)
    points, centers = rng.normal(size=(20, n_features)).astype(dtype), rng.normal(size=(5, n_features))
    found = twin(sqdist_to_centers)(points, centers)
    assert found.dtype == np.float64
    assert found == pytest.approx(np.array([[lloyd.sqdist(x, c) for c in centers] for x in points]), rel=1e-12)


@each_dtype
def test_closest_squared_distances_are_only_lowered(twin, dtype):
    points = np.array([[0, 0], [3, 4], [6, 8]], dtype)
    closest = np.array([np.inf, 1.0, 30.0])
    twin(closest_sqdist)(points, np.array([0, 0], dtype), closest)
    assert closest.tolist() == [0, 1, 30]
    twin(closest_sqdist)(points, np.array([3, 4], dtype), closest)
    assert closest.tolist() == [0, 0, 25]


# -- k-means++


@each_dtype
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n_features", "n_clusters", "n_trials"), [(1, 3, 1), (2, 8, 4), (5, 30, 2)])
def test_plus_plus_agrees_with_plain_loops(twin, dtype, weighted, n_features, n_clusters, n_trials):
    rng = np.random.default_rng(8)
    points = rng.normal(size=(30, n_features)).astype(dtype)
    weights = np.where(rng.random(30) < 0.3, 0.0, rng.uniform(0.5, 2.0, size=30)) if weighted else NO_WEIGHTS
    uniforms = rng.random((n_clusters, n_trials))
    expected = lloyd.plus_plus(points, weights if weighted else np.ones(30), uniforms)
    found = twin(plus_plus_rows)(points, weights, uniforms)
    assert found.tolist() == expected
    assert len(expected) == min(n_clusters, 30 if not weighted else int((weights > 0).sum()))


def test_plus_plus_keeps_the_trial_with_the_lowest_potential(twin):
    # After 0: masses 0, 1, 100, 121 of 222. The draws 1/222 and 101.5/222 give rows 2 and 3, with potentials
    # 0 + 1 + 0 + 1 = 2 and 0 + 1 + 1 + 0 = 2: the first one is kept. A draw of row 1 leaves 81 + 100.
    points = np.array([[0.0], [1.0], [10.0], [11.0]])
    first = [0.0, 0.0, 0.0]
    assert twin(plus_plus_rows)(points, NO_WEIGHTS, np.array([first, [0.001, 1.5 / 222, 101.5 / 222]])).tolist() == [
        0,
        2,
    ]
    assert twin(plus_plus_rows)(points, NO_WEIGHTS, np.array([first, [0.001, 101.5 / 222, 1.5 / 222]])).tolist() == [
        0,
        3,
    ]


@pytest.mark.parametrize("uniform", [0.0, 1 - 2.0**-53])
@pytest.mark.parametrize("weight", [1.0, 5e-324])
def test_rows_without_weight_are_never_drawn(twin, uniform, weight):
    """Not by the largest random number either, whose product with a smallest total is that total."""
    points = np.array([[5.0], [0.0], [6.0], [1.0], [7.0]])
    weights = weight * np.array([0.0, 1.0, 0.0, 1.0, 0.0])
    chosen = twin(plus_plus_rows)(points, weights, np.full((4, 2), uniform))
    assert sorted(chosen.tolist()) == [1, 3]  # and no third one


def test_duplicates_are_chosen_once(twin):
    points = np.array([[1.0], [1.0], [2.0], [2.0], [1.0]])
    chosen = twin(plus_plus_rows)(points, NO_WEIGHTS, np.random.default_rng(0).random((5, 3)))
    assert sorted(points[chosen, 0].tolist()) == [1, 2]


def test_nothing_is_chosen_without_weight(twin):
    assert twin(plus_plus_rows)(np.ones((3, 1)), np.zeros(3), np.zeros((2, 1))).shape == (0,)


@settings(max_examples=40)
@given(data=st.data())
def test_plus_plus_on_drawn_lattices(data):
    rows = st.lists(st.integers(-3, 3), min_size=2, max_size=2)
    points = np.array(data.draw(st.lists(rows, min_size=1, max_size=12)), float)
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(points), max_size=len(points))), float)
    shape = data.draw(st.tuples(st.integers(1, 6), st.integers(1, 3)))
    uniforms = np.random.default_rng(data.draw(st.integers(0, 2**32))).random(shape)
    assert plus_plus_rows(points, weights, uniforms).tolist() == lloyd.plus_plus(points, weights, uniforms)
