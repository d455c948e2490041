"""Weighted k-means on the incidence matrix: the theorems of sec_2015 on small data."""

import itertools

import dask
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcluster.ensemble.incidence import check_base_clusterings, code_labels, scan_labels
from daskcluster.ensemble.weighted_kmeans import (
    NearestCenter,
    lloyd_incidence,
    lloyd_sample,
    objective_of,
    partition_centers,
    start_rows,
)
from daskcluster.kernels.incidence import count_together
from tests.reference import sec
from tests.slow import slowly


def coded(labels):
    rows = check_base_clusterings(labels)
    found = scan_labels(rows)
    return found.book, code_labels(rows, found.book)


def draw(seed, n_rows=60, missing=0.0, noise=0.3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n_rows)
    numbers = [3, 4, 2, 5, 3]
    labels = np.stack(
        [np.where(rng.random(n_rows) < noise, rng.integers(k, size=n_rows), truth % k) for k in numbers], 1
    )
    labels[rng.random(labels.shape) < missing] = -1
    labels[(labels < 0).all(axis=1), 0] = 0
    return labels, truth


def coded_in_memory(labels):
    with dask.config.set(scheduler="synchronous"):
        book, codes = coded(labels)
        return book, codes.compute()


def objective(book, codes, partition):
    k = int(partition.max()) + 1
    counts, masses = np.zeros((book.n_base_clusters, k), np.int64), np.zeros((book.n_base_clusterings, k))
    constant = count_together(codes, book.offsets, book.sizes, partition.astype(np.int32), counts, masses)
    return objective_of(counts, masses, constant, book)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3, 0.7]))
def test_three_forms_of_the_objective(seed, missing):
    """Theorem 5, and the utility form of eq. (4) and (8), give the same number."""
    labels, truth = draw(seed, n_rows=20, missing=missing)
    partition = np.random.default_rng(seed).integers(4, size=20)
    rows = coded_in_memory(labels)
    for each in (truth, partition):
        found = objective(*rows, each)
        assert found == pytest.approx(sec.objective(labels, each), abs=1e-11)
        assert found == pytest.approx(sec.utility_form(labels, each), abs=1e-11)


def test_theorem_1_on_every_partition():
    """Objective and normalized-cut trace add up to the same number, so they rank any two partitions alike."""
    labels, _ = draw(0, n_rows=7)
    S = sec.co_association(labels)
    rows = coded_in_memory(labels)
    total = (np.diag(S) / S.sum(axis=1)).sum()
    for partition in itertools.product(range(3), repeat=6):
        each = np.array([0, *partition])
        assert objective(*rows, each) + sec.trace(labels, each) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("seed", [0, *slowly(1, 2, 3, 4)])
def test_the_objective_never_rises(seed, missing, small_blocks):
    """Theorem 6, in memory and over blocks, which agree."""
    labels, _ = draw(seed, n_rows=300, missing=missing, noise=0.6)
    book, codes = coded(labels)
    inside = codes.compute()
    start = start_rows(inside, book, 4, np.random.default_rng(seed))
    run = lloyd_sample(inside, book, start, max_iter=100)
    assert len(run.history) > 2
    assert (np.diff(run.history) <= 1e-12 * run.history[0]).all()
    assert run.history[-1] == run.objective
    labels_found = NearestCenter(book, run.centers)(inside)
    assert sec.objective(labels, labels_found) == pytest.approx(run.objective, rel=1e-10)
    assert np.array_equal(
        np.unique(labels_found, return_index=True)[1], np.sort(np.unique(labels_found, return_index=True)[1])
    )
    over = lloyd_incidence(codes, book, start, max_iter=100, tol=0.0)
    assert over.objective == pytest.approx(run.objective, rel=1e-12)
    assert np.array_equal(NearestCenter(book, over.centers)(inside), labels_found)


def test_tolerance_and_limit_end_the_passes():
    labels, _ = draw(1, n_rows=400, noise=0.8)
    book, codes = coded(labels)
    start = start_rows(codes.compute(), book, 5, np.random.default_rng(0))
    full = lloyd_incidence(codes, book, start, max_iter=100, tol=0.0)
    assert len(lloyd_incidence(codes, book, start, max_iter=3, tol=0.0).history) == 3
    assert 2 <= len(lloyd_incidence(codes, book, start, max_iter=100, tol=0.5).history) < len(full.history)


def test_an_empty_cluster_goes(monkeypatch):
    labels = np.array([[0, 0]] * 5 + [[1, 1]] * 5)
    book, codes = coded(labels)
    start = partition_centers(codes.compute(), book, np.array([0, 0, 1, 1, 1] + [2] * 5, np.int32), 3)
    run = lloyd_incidence(codes, book, start, max_iter=10, tol=0.0)
    assert len(run.centers) == 2
    assert run.objective == pytest.approx(0, abs=1e-15)


def test_a_missing_label_adds_nothing():
    """A base clustering that labels no row of a cluster has no say about it."""
    labels = np.array([[0, 0], [0, -1], [0, 0], [1, -1], [1, -1]])
    book, codes = coded(labels)
    centers = partition_centers(codes.compute(), book, np.array([0, 0, 0, 1, 1], np.int32), 2)
    assert centers[1, 2] == 0  # base cluster 0 of the second base clustering
    assert NearestCenter(book, centers)(codes.compute()).tolist() == [0, 0, 0, 1, 1]
    assert centers == pytest.approx(sec.centers(labels, np.array([0, 0, 0, 1, 1]), 2))
