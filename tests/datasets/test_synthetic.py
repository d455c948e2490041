"""The five generated sets: the same rows whatever the chunks, the shapes that are documented, bounded work."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from daskcluster import datasets
from daskcluster.datasets import (
    make_circles_gaussians,
    make_concentric_circles,
    make_flower,
    make_smiling_face,
    make_two_bananas,
    synthetic,
)
from daskcluster.datasets.synthetic import AUTO_ROWS, BLOCK_ROWS
from tests.strategies import chunkings

#: Documented share of every class.
SHARES = {
    make_two_bananas: [0.5, 0.5],
    make_smiling_face: [0.2, 0.2, 0.56, 0.04],
    make_concentric_circles: [0.17, 0.3, 0.53],
    make_circles_gaussians: [0.06, 0.12, *[0.05] * 8, 0.42],
    make_flower: [0.07, *[0.035] * 6, *[0.12] * 6],
}
each_set = pytest.mark.parametrize("make", SHARES, ids=lambda make: make.__name__)


def drawn(make, n_samples, **options) -> tuple[np.ndarray, np.ndarray]:
    X, y = dask.compute(*make(n_samples, **options), scheduler="synchronous")
    return X, y


# -- the arrays -------------------------------------------------------------------------------------------------------


@each_set
def test_arrays(make):
    lazy_X, lazy_y = make(1000, random_state=0)
    assert isinstance(lazy_X, da.Array)
    assert isinstance(lazy_y, da.Array)
    X, y = drawn(make, 1000, random_state=0)
    for array in (lazy_X, X):
        assert (array.shape, array.dtype) == ((1000, 2), np.float32)
    for array in (lazy_y, y):
        assert (array.shape, array.dtype) == ((1000,), np.int32)
    assert np.isfinite(X).all()
    assert lazy_X.chunks[0] == lazy_y.chunks[0]


@each_set
@settings(max_examples=8)
@given(chunks=chunkings(2 * BLOCK_ROWS + 100))
def test_the_same_rows_for_any_chunking(make, chunks):
    n_samples = sum(chunks)
    expected_X, expected_y = drawn(make, n_samples, random_state=5)
    X, y = drawn(make, n_samples, chunks=chunks, random_state=5)
    np.testing.assert_array_equal(X, expected_X)
    np.testing.assert_array_equal(y, expected_y)


@each_set
def test_the_first_rows_of_a_larger_set_are_the_smaller(make):
    X, y = drawn(make, 20_000, random_state=1)
    larger_X, larger_y = make(10**9, random_state=1)
    np.testing.assert_array_equal(larger_X[:20_000].compute(), X)
    np.testing.assert_array_equal(larger_y[:20_000].compute(), y)
    np.testing.assert_array_equal(drawn(make, 1, random_state=1)[0], X[:1])


@each_set
def test_rows_repeat_nowhere(make):
    X, _ = drawn(make, 3 * BLOCK_ROWS, random_state=0)
    assert len(np.unique(X, axis=0)) > 0.999 * len(X)


def test_labels_and_features_belong_together_when_read_apart():
    X, y = make_concentric_circles(5000, chunks=700, random_state=2)
    radius = np.hypot(*X[1000:3000].compute().T)
    np.testing.assert_array_equal(y[1000:3000].compute(), np.digitize(radius, [1.35, 2.5]))


# -- seeds ------------------------------------------------------------------------------------------------------------


def test_seeds():
    X, _ = drawn(make_flower, 500, random_state=3)
    np.testing.assert_array_equal(X, drawn(make_flower, 500, random_state=np.int64(3))[0])
    assert not np.array_equal(X, drawn(make_flower, 500, random_state=4)[0])


@pytest.mark.parametrize("generator", [np.random.RandomState, np.random.default_rng])
def test_generators_give_the_seed_and_move_on(generator):
    source = generator(8)
    first, second = (drawn(make_flower, 500, random_state=source)[0] for _ in range(2))
    np.testing.assert_array_equal(first, drawn(make_flower, 500, random_state=generator(8))[0])
    assert not np.array_equal(first, second)


def test_no_seed_is_fresh_at_the_call_and_fixed_after_it():
    X, y = make_flower(500, chunks=100)
    np.testing.assert_array_equal(X.compute(), X.compute())
    np.testing.assert_array_equal(X[:150].compute(), X.compute()[:150])
    assert not np.array_equal(X.compute(), make_flower(500)[0].compute())
    assert len(y.compute()) == 500


def test_equal_calls_have_equal_names():
    assert make_flower(500, random_state=3)[0].name == make_flower(500, random_state=3)[0].name
    assert make_flower(500, random_state=3)[0].name != make_flower(500, random_state=4)[0].name
    assert make_flower(500, random_state=3)[0].name.startswith("dc-make-flower-")


# -- chunks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chunks", "rows"),
    [
        ("auto", (1000,)),
        (400, (400, 400, 200)),
        (-1, (1000,)),
        (None, (1000,)),
        ((400, 2), (400, 400, 200)),
        ((400, -1), (400, 400, 200)),
        ([400, 400], (400, 400, 200)),
        ((250, 750), (250, 750)),
        ((999, 0, 1), (999, 0, 1)),
        (((999, 0, 1), (2,)), (999, 0, 1)),
        ((998, 2), (998, 2)),
        (np.int64(600), (600, 400)),
        (5000, (1000,)),
    ],
)
def test_chunks(chunks, rows):
    X, y = make_two_bananas(1000, chunks=chunks, random_state=0)
    assert X.chunks == (rows, (2,))
    assert y.chunks == (rows,)


@pytest.mark.parametrize("chunks", [0, -3, 2.5, "much", (100, 1), (3, 3, 3), (500, (1, 1)), ()])
def test_rejects_chunks(chunks):
    with pytest.raises(ValueError, match=r"chunks.*n_samples=1000|chunks must be"):
        make_two_bananas(1000, chunks=chunks)


def test_automatic_chunks_hold_whole_logical_blocks():
    assert AUTO_ROWS % BLOCK_ROWS == 0
    assert make_flower(3 * 10**6, random_state=0)[0].chunks[0][0] == AUTO_ROWS
    with dask.config.set({"array.chunk-size": "1 MiB"}):
        assert make_flower(3 * 10**6, random_state=0)[0].chunks[0][0] == 2**17
    with dask.config.set({"array.chunk-size": "1 B"}):
        assert make_flower(3 * 10**6, random_state=0)[0].chunks[0][0] == BLOCK_ROWS


@pytest.mark.parametrize(
    ("n_samples", "error"),
    [(0, ValueError), (-1, ValueError), (2.5, TypeError), (1e6, TypeError), ("9", TypeError), (True, TypeError)],
)
def test_rejects_sizes(n_samples, error):
    with pytest.raises(error, match="n_samples must be an integer >= 1"):
        make_two_bananas(n_samples)


@pytest.mark.parametrize("random_state", [-1, "seed", 0.5])
def test_rejects_seeds(random_state):
    with pytest.raises((TypeError, ValueError), match=r"random_state|seed"):
        make_two_bananas(10, random_state=random_state)


# -- cost -------------------------------------------------------------------------------------------------------------


def test_a_task_draws_the_logical_blocks_that_it_touches(monkeypatch):
    blocks = []
    classes = synthetic._classes

    def watched(name, seed, block):
        blocks.append(block)
        return classes(name, seed, block)

    monkeypatch.setattr(synthetic, "_classes", watched)
    X, y = make_flower(20 * BLOCK_ROWS, chunks=BLOCK_ROWS, random_state=0)
    assert blocks == []
    with dask.config.set(scheduler="synchronous"):
        X[5 * BLOCK_ROWS : 7 * BLOCK_ROWS].compute()
        assert sorted(blocks) == [5, 6]
        y[10 * BLOCK_ROWS - 1 : 10 * BLOCK_ROWS + 1].compute()
    assert sorted(blocks) == [5, 6, 9, 10]


def test_tasks_are_small_and_travel():
    X, y = make_two_bananas(10**6, chunks=10**5, random_state=0)
    sent = pickle.dumps((X, y))
    assert len(sent) < 20_000
    there = pickle.loads(sent)
    np.testing.assert_array_equal(there[0][-5:].compute(), X[-5:].compute())
    np.testing.assert_array_equal(there[1][-5:].compute(), y[-5:].compute())


# -- the shapes -------------------------------------------------------------------------------------------------------


@each_set
def test_shares(make):
    """Five standard deviations around the documented share."""
    n_samples = 200_000
    counts = np.bincount(drawn(make, n_samples, random_state=7)[1], minlength=len(SHARES[make]))
    shares = np.array(SHARES[make])
    assert shares.sum() == pytest.approx(1.0)
    assert len(counts) == len(shares)
    assert (abs(counts - n_samples * shares) <= 5 * np.sqrt(n_samples * shares * (1 - shares))).all()


def classes_of(make) -> list[np.ndarray]:
    X, y = drawn(make, 20_000, random_state=0)
    return [X[y == c].astype(float) for c in range(len(SHARES[make]))]


def radii(points, center=(0.0, 0.0)) -> np.ndarray:
    return np.hypot(*(points - center).T)


def test_two_bananas():
    upper, lower = classes_of(make_two_bananas)
    assert abs(radii(upper) - 1).max() < 0.7
    assert np.median(upper[:, 1]) > 0.5
    assert np.median(lower[:, 1]) < -0.2
    # Interlocking: the tip of each lies inside the other.
    assert ((abs(lower[:, 0]) < 0.3) & (lower[:, 1] > 0.1)).any()
    assert ((abs(upper[:, 0] - 1) < 0.3) & (upper[:, 1] < 0.2)).any()


def test_smiling_face():
    left, right, smile, nose = classes_of(make_smiling_face)
    assert left[:, 0].max() < right[:, 0].min()
    np.testing.assert_allclose(left.mean(axis=0) * [-1, 1], right.mean(axis=0), atol=0.05)
    # Arches are open below, the smile is open above, and below both arches and wider than both.
    assert smile[:, 1].max() < left[:, 1].max()
    assert smile[:, 0].min() < left[:, 0].min()
    assert smile[:, 0].max() > right[:, 0].max()
    assert abs(smile[np.argmin(smile[:, 1]), 0]) < 0.8
    # The nose is small, inside the smile, under the arches.
    assert radii(nose, (0, -0.4)).max() < 0.6
    assert smile[:, 1].min() < nose[:, 1].min() < nose[:, 1].max() < left[:, 1].min()


def test_concentric_circles():
    inner, middle, outer = (radii(points) for points in classes_of(make_concentric_circles))
    borders = [inner.min(), inner.max(), middle.min(), middle.max(), outer.min(), outer.max()]
    np.testing.assert_allclose(borders, [0.25, 1.0, 1.7, 2.1, 2.9, 3.3], atol=0.02)
    # Uniform on the area: half of it lies inside the root mean square of the two radii.
    assert (inner < np.sqrt((0.25**2 + 1) / 2)).mean() == pytest.approx(0.5, abs=0.03)


def test_circles_gaussians():
    middle, small, *around, large = classes_of(make_circles_gaussians)
    assert np.quantile(radii(middle), 0.999) < small_edge(small)
    assert radii(small).std() < 0.08
    angles = [np.arctan2(*points.mean(axis=0)[::-1]) % (2 * np.pi) for points in around]
    np.testing.assert_allclose(np.unwrap(angles), 2 * np.pi * np.arange(8) / 8, atol=0.05)
    for points in around:
        assert small_edge(small) < radii(points).mean() < radii(large).min()
        np.testing.assert_allclose(points.std(axis=0), 0.2, rtol=0.15)
    assert radii(large).std() < 0.08


def small_edge(ring: np.ndarray) -> float:
    return float(radii(ring).min())


def test_flower():
    centre, *rest = classes_of(make_flower)
    stems, petals = rest[:6], rest[6:]
    assert radii(centre).max() < 1.1
    for number, (stem, petal) in enumerate(zip(stems, petals, strict=True)):
        angle = 2 * np.pi * number / 6
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        stem, petal = stem @ turn, petal @ turn
        # Straight outward, and its end in the middle of the petal.
        assert abs(stem[:, 1]).max() < 0.3
        assert stem[:, 0].min() > 0.7
        assert stem[:, 0].max() == pytest.approx(3.0, abs=0.2)
        # A ring round the end of the stem, open towards the centre.
        np.testing.assert_allclose(radii(petal, (3.0, 0.0)), 1.2, atol=0.3)
        assert (np.arctan2(petal[:, 1], petal[:, 0] - 3.0).__abs__() < 0.85 * np.pi).all()


@pytest.mark.parametrize(
    ("make", "low", "high"),
    [
        (make_two_bananas, 0.18, 0.34),
        (make_smiling_face, 0.35, 0.65),
        (make_concentric_circles, 0.0, 0.01),
        (make_circles_gaussians, 0.55, 0.72),
        (make_flower, 0.57, 0.75),
    ],
)
def test_k_means_fails_about_as_in_the_paper(make, low, high):
    """Table 4 of uspec_usenc_2019: 0.257, 0.473, 0.000, 0.632, 0.642."""
    X, y = drawn(make, 3000, random_state=0)
    scores = [
        normalized_mutual_info_score(
            y, KMeans(len(SHARES[make]), n_init=1, random_state=seed).fit_predict(X), average_method="geometric"
        )
        for seed in range(2)
    ]
    assert low <= np.mean(scores) <= high


@each_set
def test_neighbours_are_of_one_class(make):
    """The classes hardly overlap: another row within a short distance is of the same class."""
    from scipy.spatial import cKDTree

    X, y = drawn(make, 10_000, random_state=0)
    _, nearest = cKDTree(X).query(X, 2)
    assert (y[nearest[:, 1]] == y).mean() > 0.995


@settings(max_examples=30)
@given(st.integers(0, 2**40), st.integers(1, 3 * BLOCK_ROWS))
def test_logical_blocks_cover_a_chunk_once(start, length):
    pieces = synthetic._logical_blocks(start, start + length)
    assert [first for _, first, _ in pieces] == [start, *(last for _, _, last in pieces[:-1])]
    assert pieces[-1][2] == start + length
    assert all(block == first // BLOCK_ROWS == (last - 1) // BLOCK_ROWS for block, first, last in pieces)


def test_every_public_name_exists():
    assert all(callable(getattr(datasets, name)) for name in datasets.__all__)
