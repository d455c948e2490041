"""How far base clusterings bear out a consensus, against plain loops and on consensus clusters that are wrong."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import zarr
from sklearn.metrics import roc_auc_score

from daskcluster.metrics import consensus_confidence
from tests.reference.ensemble import confidence

pytestmark = pytest.mark.usefixtures("small_blocks")


def ensemble(n: int = 700, k: int = 5, m: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Clusters along a line, and base clusterings that cut each of them into intervals of their own."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    place = rng.random(n)
    base = np.empty((n, m), np.int64)
    for j in range(m):
        pieces = rng.integers(2, 6, size=k)
        base[:, j] = np.r_[0, np.cumsum(pieces)][truth] + (place * pieces[truth] + rng.random()) % pieces[truth] // 1
    return base, truth


def noisy(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Base clusterings with noise and missing labels, and a consensus with rows in no cluster."""
    base, labels = ensemble(300, 3, 4, seed)
    rng = np.random.default_rng(seed)
    base = np.where(rng.random(base.shape) < 0.1, rng.integers(4, size=base.shape), base)
    base[rng.random(base.shape) < 0.2] = -1
    base[7] = -1
    return base, np.where(rng.random(300) < 0.1, -1, labels)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_steps", [1, 2, 7])
def test_agrees_with_plain_loops(seed, n_steps):
    base, labels = noisy(seed)
    found = consensus_confidence(base, labels, n_steps=n_steps)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, confidence(base, labels, n_steps), rtol=1e-6)
    assert np.array_equal(np.isnan(found), (labels < 0) | (base < 0).all(axis=1))


def test_split_and_merged_clusters_are_low():
    base, truth = ensemble()
    right = consensus_confidence(base, truth)
    assert right.min() > 0.85
    half = np.random.default_rng(1).random(len(truth)) < 0.5
    torn = np.where((truth == 2) & half, 5, truth)
    cut = np.where((truth == 2) & (base[:, 0] == base[truth == 2, 0].min()), 5, truth)
    for wrong, labels in ((truth == 2, torn), (truth == 2, cut), (truth >= 3, truth.clip(max=3))):
        found = consensus_confidence(base, labels)
        assert roc_auc_score(wrong, -found) > 0.99
        np.testing.assert_allclose(found[~wrong], right[~wrong], atol=0.1)


@pytest.mark.parametrize("chunks", [(50, -1), (700, 3), ((1, 0, 600, 99), -1)], ids=str)
def test_bit_equal_for_any_chunking_and_lazy(chunks):
    base, labels = ensemble()
    X = da.from_array(base, chunks=chunks)
    found = consensus_confidence(X, da.from_array(labels, chunks=77))
    assert isinstance(found, da.Array)
    assert found.chunks == (X.chunks[0],)
    np.testing.assert_array_equal(found.compute(), consensus_confidence(base, labels))


def test_paths_and_dtypes(tmp_path):
    base, labels = ensemble()
    zarr.create_array(str(tmp_path / "base.zarr"), data=base.astype(np.int16), chunks=(90, 2))
    found = consensus_confidence(tmp_path / "base.zarr", labels.astype(np.uint8))
    np.testing.assert_array_equal(found.compute(), consensus_confidence(base.astype(float), labels))


def test_names_of_clusters_do_not_matter():
    base, labels = ensemble()
    renamed = consensus_confidence(base[:, ::-1] * 7 + 3, 40 - labels * 9)
    np.testing.assert_allclose(renamed, consensus_confidence(base, labels), rtol=1e-5)


@pytest.mark.parametrize(
    ("base", "labels", "message"),
    [
        ([[0], [1]], [0], "X has 2, labels has 1"),
        ([[0], [1]], [0.0, 1.0], "labels must hold whole numbers, got dtype float64"),
        ([[0.5], [1]], [0, 1], "X must hold labels"),
        ([[-1], [-1]], [0, 1], "X and labels must have a row with a label"),
        ([[0], [1]], [-1, -1], "X and labels must have a row with a label"),
        ([0, 1], [0, 1], "X must have 2 dimensions"),
    ],
)
def test_what_is_refused(base, labels, message):
    with pytest.raises(ValueError, match=message):
        consensus_confidence(base, labels)
    with pytest.raises(ValueError, match="n_steps must be"):
        consensus_confidence([[0], [1]], [0, 1], n_steps=0)
