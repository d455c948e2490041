"""Meta-clusters of base clusters, and votes for them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskcluster.ensemble.incidence import LabelCoder
from daskcluster.ensemble.meta_clusters import Votes, jaccard, meta_clusters, propagated
from tests.ensemble.test_overlaps import LABELS, counted
from tests.reference import ecpcs

OPTIONS = {"n_init": 5, "max_iter": 50, "seed": 0}


@given(LABELS, st.sampled_from([1, 2, 20]))
def test_similarities_are_those_of_the_plain_loops(labels, n_steps):
    counts, book = counted(labels)
    expected = ecpcs.jaccard(labels)
    found = jaccard(counts, book)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(propagated(found, n_steps), ecpcs.propagated(expected, n_steps), atol=1e-9)


def test_similarities_by_hand():
    """{0, 1, 2, 3} and {4, 5}; {0, 1} and {2, 3, 4, 5}."""
    labels = np.array([[0, 0], [0, 0], [0, 1], [0, 1], [1, 1], [1, 1]])
    found = jaccard(*counted(labels))
    assert found == pytest.approx(
        np.array([[1, 0, 1 / 2, 1 / 3], [0, 1, 0, 1 / 2], [1 / 2, 0, 1, 0], [1 / 3, 1 / 2, 0, 1]])
    )
    # One step from {0, 1, 2, 3} goes to the other two at 3 : 2, one from {4, 5} to the last only.
    assert propagated(found, 1)[0, 1] == pytest.approx(2 / np.sqrt(13))


@given(LABELS, st.integers(0, 2**32 - 1))
def test_votes_are_those_of_the_plain_loops(labels, seed):
    _, book = counted(labels)
    rng = np.random.default_rng(seed)
    meta = rng.permutation(np.arange(book.n_base_clusters) % rng.integers(1, 4)).astype(np.int32)
    codes = LabelCoder(book)(labels)
    expected = ecpcs.shares(labels, meta)
    there = (labels >= 0).any(axis=1)
    votes = Votes(book, meta)
    assert votes.shares(codes)[there] == pytest.approx(expected[there])
    assert np.isnan(votes.shares(codes)[~there]).all()
    found = votes(codes)
    assert (found[~there] == -1).all()
    assert expected[there, found[there]] == pytest.approx(expected[there].max(axis=1))
    # Other names of the meta-clusters, and none of those that win no row: the same partition.
    taken = rng.permutation(np.unique(found[there]))
    named = Votes(book, meta, taken)
    np.testing.assert_array_equal(taken[named(codes)[there]], found[there])
    assert named.shares(codes)[there] == pytest.approx(expected[np.ix_(there, taken)])


def test_base_clusters_that_share_nothing_take_no_meta_cluster():
    """Two blocks of ten, and a base cluster by itself: the two clusters are the blocks."""
    similarities = np.eye(21)
    similarities[:10, :10] = similarities[10:20, 10:20] = 1.0
    similarities[20, 20] = 1e-3
    meta = meta_clusters(similarities, 2, **OPTIONS)
    assert len(set(meta[:10])) == len(set(meta[10:20])) == 1
    assert meta[0] != meta[10]
    assert len(set(meta_clusters(similarities, 3, **OPTIONS))) == 3
