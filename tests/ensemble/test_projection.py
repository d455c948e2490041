"""The sparse projection of fast_csc_and_secrp_2017: its form, Lemma 2, and Theorem 7 on small cases."""

import itertools

import numpy as np
import pytest

from daskcluster.ensemble.incidence import LabelBook, check_base_clusterings, code_labels, scan_labels
from daskcluster.ensemble.projection import ProjectedRows, integers_of, projection_matrix, strips_of
from tests.reference import sec


@pytest.mark.parametrize("n_components", [1, 2, 3, 10, 40, 41, 47, 100])
def test_strips(n_components):
    strips = strips_of(n_components)
    assert sum(strips) == n_components
    assert max(strips) - min(strips) <= 1
    assert len(strips) >= max(strips)


def test_the_form_of_equation_10():
    strips = (5, 5, 4)
    R = projection_matrix(2000, strips, np.random.default_rng(0))
    assert R.shape == (2000, 14)
    assert R.dtype == np.float32
    begin = 0
    for width in strips:
        block = R[:, begin : begin + width]
        assert (np.count_nonzero(block, axis=1) == 1).all()
        assert np.unique(np.abs(block[block != 0])) == pytest.approx([3**-0.5])
        assert np.count_nonzero(block, axis=0) == pytest.approx(2000 / width, rel=0.2)  # h is uniform
        assert abs((block > 0).sum() - 1000) < 100  # and so are the signs
        begin += width


@pytest.mark.parametrize("epsilon", [0.5, 0.3])
def test_lemma_2(epsilon):
    """Squared lengths are kept within 1 +- epsilon but for a share delta of the draws."""
    delta = 0.1
    a = int(np.ceil(2 * np.log(1 / delta) / epsilon))
    v = int(np.ceil(2 / epsilon))
    rng = np.random.default_rng(0)
    dense = rng.normal(size=400)
    sparse = np.zeros(400)
    sparse[rng.permutation(400)[:20]] = 1
    for x in (dense, sparse, sparse - np.roll(sparse, 1)):
        R = [projection_matrix(400, (v,) * a, np.random.default_rng(seed)).astype(np.float64) for seed in range(200)]
        ratios = np.array([((x @ each) ** 2).sum() / (x**2).sum() for each in R])
        assert np.mean(np.abs(ratios - 1) > epsilon) < delta
        assert ratios.mean() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("missing", [False, True])
def test_projected_rows_are_small_integers(missing):
    """p = z unit / w is b R in units of the mean weight, and z is whole."""
    labels = np.random.default_rng(0).integers(-1 if missing else 0, 4, size=(70, 3))
    labels[5] = -1
    rows = check_base_clusterings(labels)
    book = scan_labels(rows).book
    R = projection_matrix(book.n_base_clusters, (2, 2, 2), np.random.default_rng(0))
    w = sec.co_association(labels).sum(axis=1)
    expected = 9.0 * sec.incidence(labels) @ R / np.maximum(w, 1)[:, None]
    points = ProjectedRows(book, R, 9.0)
    codes = code_labels(rows, book).compute()
    projected, weights = points(codes), points.weights(codes)
    assert projected.dtype == np.int8
    assert (projected[5] == 0).all()
    assert weights.tolist() == w.tolist()
    found = points.points(projected[w > 0], weights[w > 0])
    assert found == pytest.approx(expected[w > 0], rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(("m", "dtype"), [(1, np.int8), (127, np.int8), (128, np.int16), (40_000, np.int32)])
def test_integers_hold_the_sums(m, dtype):
    assert integers_of(m) == dtype


@pytest.mark.parametrize("m", [127, 128, 300])
def test_many_equal_signs_do_not_overflow(m):
    codes = np.zeros((3, m), np.int8)
    book = LabelBook(np.zeros(m, np.int64), np.arange(m + 1), np.full(m, 3))
    for sign in (-1, 1):
        points = ProjectedRows(book, np.full((m, 1), sign, np.float32), 1.0)
        assert points(codes).tolist() == [[sign * m]] * 3


def test_theorem_7_on_small_cases():
    """The best partition in the projection costs at most 1 + (1 + epsilon) times the best one, with gamma = 1."""
    epsilon = 0.33
    failures = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        truth = np.repeat([0, 1], 4)
        labels = np.stack([np.where(rng.random(8) < 0.25, rng.integers(4, size=8), truth) for _ in range(8)], axis=1)
        B, w = sec.incidence(labels), sec.co_association(labels).sum(axis=1)
        R = projection_matrix(B.shape[1], (3,) * 4, rng)
        partitions = [np.array([0, *each]) for each in itertools.product(range(2), repeat=7)]

        def cost(points, partition, w=w):
            total = 0.0
            for k in range(2):
                inside = partition == k
                if inside.any():
                    mean = np.average(points[inside], axis=0, weights=w[inside])
                    total += (w[inside] * ((points[inside] - mean) ** 2).sum(axis=1)).sum()
            return total

        points = B / w[:, None]
        best = min(cost(points, each) for each in partitions)
        projected = min(partitions, key=lambda each: cost(points @ R, each))
        failures += cost(points, projected) > (2 + epsilon) * best + 1e-12
    assert failures / 25 <= 0.04  # with probability 0.97
