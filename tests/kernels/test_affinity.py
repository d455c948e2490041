"""Gaussian affinities, against eq. (6) in plain loops and cases solved by hand."""

import numpy as np
import pytest

from daskcluster.kernels.affinity import gaussian_weights, sum_distances
from tests.reference import affinity


@pytest.mark.parametrize("shape", [(30, 5), (30, 1), (1, 3), (0, 4)])
def test_weights_agree_with_equation_6(shape):
    distances = np.random.default_rng(0).gamma(2.0, size=shape).astype(np.float32)
    sigma = affinity.bandwidth(distances) if distances.size else 1.0
    weights = gaussian_weights(distances, sigma)
    expected = np.array(affinity.gaussian(distances, sigma)).reshape(shape)
    assert weights.dtype == np.float32
    assert weights == pytest.approx(expected, rel=3e-6)


def test_weights_solved_by_hand():
    # exp(0) = 1; exp(-1/2) = 0.606531; exp(-2) = 0.135335; exp(-9/2) = 0.0111090
    weights = gaussian_weights(np.array([[0, 3, 6, 9]], np.float32), 3.0)
    assert weights[0] == pytest.approx([1, 0.606531, 0.135335, 0.0111090], rel=1e-5)


def test_weights_leave_the_distances_alone():
    distances = np.array([[1.0, 2.0]], np.float32)
    gaussian_weights(distances, 1.5)
    assert distances.tolist() == [[1.0, 2.0]]


def test_bandwidth_0_gives_weight_1():
    weights = gaussian_weights(np.zeros((4, 3), np.float32), 0.0)
    assert weights.dtype == np.float32
    assert np.array_equal(weights, np.ones((4, 3)))


def test_no_affinity_underflows():
    # exp(-14**2 / 2) is 2.7e-43; the square of the largest number leaves the range.
    weights = gaussian_weights(np.array([[1.0, 14.0, 1e4, np.finfo("f4").max, np.inf]], np.float32), 1.0)
    assert weights[0, 0] == pytest.approx(np.exp(-0.5), rel=1e-6)
    assert (weights[0, 1:] == np.finfo(np.float32).tiny).all()


@pytest.mark.parametrize("unit", [2.0**-100, 2.0**-60, 2.0**100])
def test_weights_depend_on_the_ratio_only(unit):
    """The square of the bandwidth may leave the range of float32."""
    distances = np.array([[0.5, 1.0, 2.5]], np.float32)
    scaled = (distances * unit).astype(np.float32)
    assert np.array_equal(gaussian_weights(scaled, 1.25 * unit), gaussian_weights(distances, 1.25))


@pytest.mark.parametrize("bandwidth", [1e-44, 1e-180])
def test_a_bandwidth_below_the_range_of_float32(bandwidth):
    """The mean of many zeros and one smallest distance."""
    weights = gaussian_weights(np.array([[0.0, 1e-30]], np.float32), bandwidth)
    assert weights[0].tolist() == [1.0, np.finfo(np.float32).tiny]


@pytest.mark.parametrize("shape", [(300, 5), (7, 1), (0, 3)])
def test_distances_are_summed_in_float64(twin, shape):
    rng = np.random.default_rng(1)
    indices = rng.integers(9, size=shape).astype(np.int32)
    distances = rng.uniform(size=shape).astype(np.float32)
    distances[:1] = 1e9
    total, count = twin(sum_distances)(indices, distances)
    assert count == distances.size
    assert total == pytest.approx(np.sum(distances.astype(object)) if distances.size else 0, rel=1e-14)


def test_rows_without_edges_have_no_distance(twin):
    indices = np.array([[1, 0], [-1, -1], [2, 1]], np.int32)
    distances = np.array([[1, 2], [50, 50], [3, 5]], np.float32)
    assert twin(sum_distances)(indices, distances) == (11.0, 4)
