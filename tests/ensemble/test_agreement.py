"""Labels of rows whose base clusters agree, beside those of the nearest centres of all rows."""

from functools import partial

import numpy as np
import pytest

from daskcluster.ensemble.agreement import AgreedLabels
from daskcluster.ensemble.incidence import incidence_edges
from daskcluster.pipeline.lift import LiftedRows
from daskcluster.pipeline.lloyd import NearestCenters


@pytest.mark.parametrize("seed", range(4))
def test_agreed_labels_are_those_of_the_nearest_centers(seed):
    """With missing labels, base clusters that have no place in the embedding, and centres of unequal lengths."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=1000)
    sizes = rng.integers(3, 9, size=6)
    offsets = np.r_[0, np.cumsum(sizes)]
    group = np.concatenate([np.arange(size) % 3 for size in sizes])
    codes = np.stack([(truth + 3 * rng.integers(3, size=1000)) % size for size in sizes], axis=1).astype(np.int8)
    codes[rng.random(codes.shape) < 0.1] = -1
    codes[:5] = -1
    vectors = np.eye(3)[group] * rng.uniform(0.5, 2, (offsets[-1], 1)) + 0.2 * rng.normal(size=(offsets[-1], 3))
    vectors[rng.random(offsets[-1]) < 0.1] = 0
    points = LiftedRows(partial(incidence_edges, offsets=offsets), vectors)
    centers = np.eye(3) * rng.uniform(0.6, 1, (3, 1)) + 0.1 * rng.normal(size=(3, 3))
    labels = AgreedLabels(points, offsets, centers)
    assert {-2, 0, 1, 2} <= set(labels.sure.tolist())
    assert np.array_equal(labels(codes), NearestCenters(points, centers).labels(codes))
    assert (labels(codes)[:5] == -1).all()
