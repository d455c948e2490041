"""Distances and objectives of k-means by utilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcluster.ensemble.incidence import LabelCoder, check_base_clusterings, scan_labels
from daskcluster.ensemble.utility_kmeans import SPREAD, UTILITIES, UtilityMeans, utility_objective
from daskcluster.ensemble.weighted_kmeans import lloyd_sample
from tests.ensemble.test_overlaps import LABELS
from tests.reference import kcc

EACH = pytest.mark.parametrize("utility", UTILITIES)
#: An even share of a base clustering with up to four clusters adds so much to a distance, or less.
WIDE = -np.log2(1 - SPREAD)


def partition_of(labels, seed, n_clusters=3):
    """Some partition of the rows that have a label, and what the package makes of it."""
    labels = labels[(labels >= 0).any(axis=1)]
    book = scan_labels(check_base_clusterings(labels)).book
    partition = np.random.default_rng(seed).integers(n_clusters, size=len(labels)).astype(np.int32)
    return labels, LabelCoder(book)(labels), book, partition


@EACH
@given(labels=LABELS, seed=st.integers(0, 2**32 - 1), p=st.sampled_from([1.5, 2.0, 5.0]))
def test_distances_are_those_of_the_plain_loops(utility, labels, seed, p):
    labels, codes, book, partition = partition_of(labels, seed)
    means = UtilityMeans(book, utility, p)
    centers = means.of_partition(codes, partition, 3)
    np.testing.assert_allclose(centers, kcc.shares(labels, partition, 3), atol=1e-12)
    expected = kcc.distances(labels, centers, utility, p)
    found = means.nearest(centers).distances(codes)
    near = np.isfinite(expected)
    np.testing.assert_allclose(found[near], expected[near], atol=1e-9 + labels.shape[1] * WIDE)
    assert (found[~near] > -np.log2(SPREAD)).all()  # far, not infinitely far


@EACH
@given(labels=LABELS, seed=st.integers(0, 2**32 - 1), p=st.sampled_from([1.5, 5.0]))
def test_objectives_are_those_of_the_utility(utility, labels, seed, p):
    labels, codes, book, partition = partition_of(labels, seed)
    means = UtilityMeans(book, utility, p)
    counts = np.zeros((book.n_base_clusters, 3), np.int64)
    for row, k in zip(codes, partition, strict=True):
        for column, code in enumerate(row):
            if code >= 0:
                counts[book.offsets[column] + code, k] += 1
    expected = kcc.objective(labels, partition, utility, p)
    assert utility_objective(counts, means) == pytest.approx(expected, abs=1e-9)
    assert kcc.utility_form(labels, partition, utility, p) == pytest.approx(expected, abs=1e-9)


@EACH
@given(labels=LABELS, seed=st.integers(0, 2**32 - 1))
def test_no_pass_raises_the_objective(utility, labels, seed):
    labels, codes, book, partition = partition_of(labels, seed)
    means = UtilityMeans(book, utility, 5.0)
    run = lloyd_sample(codes, book, means.of_partition(codes, partition, 3), max_iter=20, means=means)
    assert (np.diff(run.history) <= 1e-9 + labels.size * WIDE).all()


def test_small_shares_keep_their_order_by_any_norm():
    labels = np.arange(40)[:, None] % 40
    book = scan_labels(check_base_clusterings(labels)).book
    shares = np.full((1, 40), 1 / 40)
    for p in (1.0001, 2.0, 300.0, 1e6):
        table = UtilityMeans(book, "lp", p).table(shares)
        assert np.isfinite(table).all()
        assert (table <= 1).all()
        assert (table >= 0).all()
