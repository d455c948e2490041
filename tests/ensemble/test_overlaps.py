"""Rows that base clusters share, and the weights that follow."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskcluster.ensemble.incidence import LabelCoder, check_base_clusterings, scan_labels
from daskcluster.ensemble.overlaps import LEAST_WEIGHT, cluster_entropies, local_weights, overlaps, shared_rows
from tests.reference import ensemble

LABELS = hnp.arrays(np.int64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=8), elements=st.integers(-1, 3)).filter(
    lambda labels: (labels >= 0).any()
)


def counted(labels, chunks=3):
    book = scan_labels(check_base_clusterings(labels)).book
    codes = LabelCoder(book)(labels)
    return overlaps(da.from_array(codes, chunks=(chunks, -1)), book), book


@given(LABELS, st.integers(1, 8))
def test_counts_are_those_of_the_matrix(labels, chunks):
    counts, book = counted(labels, chunks)
    B = ensemble.bipartite(labels)
    np.testing.assert_array_equal(counts, B.T @ B)
    np.testing.assert_array_equal(np.diag(counts), book.sizes)
    there = (labels >= 0).astype(float)
    np.testing.assert_array_equal(shared_rows(counts, book), B.T @ there)


@given(LABELS)
def test_entropies_are_those_of_the_plain_loops(labels):
    counts, book = counted(labels)
    expected = ensemble.entropies(labels)
    np.testing.assert_allclose(cluster_entropies(counts, book), expected, atol=1e-12)
    for theta in (0.1, 0.4, 2.0):
        weights = local_weights(counts, book, theta)
        assert weights.max() == 1
        wanted = np.exp(-(expected - expected.min()) / theta)
        np.testing.assert_allclose(weights, np.maximum(wanted, LEAST_WEIGHT), rtol=1e-9)


def test_entropies_by_hand():
    """{0, 1, 2, 3} is halved by the second base clustering, {4, 5} is whole there; the others lie in one each."""
    labels = np.array([[0, 0], [0, 0], [0, 1], [0, 1], [1, 2], [1, 2]])
    counts, book = counted(labels)
    assert cluster_entropies(counts, book) == pytest.approx([0.5, 0, 0, 0, 0])
    assert local_weights(counts, book, 0.25) == pytest.approx([np.exp(-2), 1, 1, 1, 1])


def test_a_base_clustering_without_labels_says_nothing():
    labels = np.array([[0, 0], [0, 0], [0, 1], [0, 1], [1, 2], [1, 2]])
    wanted = cluster_entropies(*counted(labels))
    for place in (0, 1, 2):
        counts, book = counted(np.insert(labels, place, -1, axis=1))
        np.testing.assert_array_equal(cluster_entropies(counts, book), wanted)
