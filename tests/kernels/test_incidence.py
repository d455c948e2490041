"""Kernels on base clusterings of one block, against dense matrices made by plain loops."""

from itertools import pairwise

import numpy as np
import pytest

from daskcluster.kernels.incidence import (
    agreement_rows,
    assign_labels,
    count_labels,
    count_together,
    encode_labels,
    exchange_labels,
    label_edges,
    label_weights,
    lloyd_labels,
    plus_plus_labels,
    sqdist_labels,
)
from tests.reference import ensemble, sec


def draw(seed, n_rows=30, missing=0.0):
    """Codes (n, m) int8 of base clusterings of 3, 2 and 5 clusters that all occur; offsets and sizes."""
    rng = np.random.default_rng(seed)
    numbers = np.array([3, 2, 5])
    codes = np.stack([np.concatenate([np.arange(k), rng.integers(k, size=n_rows - k)]) for k in numbers], axis=1)
    codes = rng.permuted(codes, axis=0)
    gone = rng.random(codes.shape) < missing
    gone[:10] = False
    gone[10] = missing > 0
    codes[gone] = -1
    for column, k in enumerate(numbers):  # every code stays
        codes[:k, column] = np.arange(k)
    offsets = np.concatenate([[0], np.cumsum(numbers)]).astype(np.int64)
    sizes = np.concatenate([[(codes[:, j] == c).sum() for c in range(k)] for j, k in enumerate(numbers)])
    return codes.astype(np.int8), offsets, sizes.astype(np.int64)


def tables(codes, offsets, means, padding=8):
    inner = np.pad(means.T, ((0, 1), (0, padding - len(means))))
    norms = np.array([(inner[a:b] ** 2).sum(axis=0) for a, b in pairwise(offsets)])
    norms[:, len(means) :] = np.inf
    return inner, norms, norms.sum(axis=0)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_edges_and_weights(twin, missing):
    codes, offsets, sizes = draw(0, missing=missing)
    edges = twin(label_edges)(codes, offsets)
    B = np.zeros((len(codes), len(sizes)))
    for x in range(len(codes)):
        for edge in edges[x][edges[x] >= 0]:
            B[x, edge] += 1
    assert np.array_equal(B, sec.incidence(codes))
    assert np.array_equal((edges < 0), codes < 0)
    weights = twin(label_weights)(codes, offsets, sizes)
    assert np.array_equal(weights, sec.co_association(codes).sum(axis=1))


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_assignment_and_sums_of_a_pass(twin, missing):
    codes, offsets, sizes = draw(1, missing=missing)
    partition = np.random.default_rng(2).integers(4, size=len(codes))
    partition[:4] = range(4)
    means = sec.centers(codes, partition, 4)
    inner, norms, every = tables(codes, offsets, means)
    expected = sec.distances(codes, means)
    labelled = (codes >= 0).any(axis=1)
    labels = twin(assign_labels)(codes, offsets, sizes, inner, norms, every)
    assert np.array_equal(labels[~labelled], np.full((~labelled).sum(), -1))
    chosen = expected[np.arange(len(codes)), np.maximum(labels, 0)]
    assert chosen[labelled] == pytest.approx(expected[labelled].min(axis=1), abs=1e-12)
    sqdist = twin(sqdist_labels)(codes, offsets, sizes, inner, norms, every, 4)
    w = sec.co_association(codes).sum(axis=1)
    assert sqdist[labelled] == pytest.approx((expected / np.maximum(w, 1)[:, None])[labelled], abs=1e-12)
    assert np.isnan(sqdist[~labelled]).all()

    counts, masses, first = np.zeros((10, 8), np.int64), np.zeros((3, 8)), np.full(8, 99, np.int64)
    constant = twin(lloyd_labels)(codes, offsets, sizes, inner, norms, every, counts, masses, first)
    again, heavy = np.zeros((10, 8), np.int64), np.zeros((3, 8))
    same = twin(count_together)(codes, offsets, sizes, labels, again, heavy)
    assert np.array_equal(counts, again)
    assert np.array_equal(masses, heavy)
    assert constant == same == pytest.approx(sum((codes[x] >= 0).sum() / w[x] for x in np.flatnonzero(labelled)))
    for k in range(4):
        assert np.array_equal(counts[:, k], sec.incidence(codes)[labels == k].sum(axis=0))
        for j in range(3):
            assert masses[j, k] == w[(labels == k) & (codes[:, j] >= 0)].sum()
        assert first[k] == (np.argmax(labels == k) if (labels == k).any() else 99)


def test_distances_solved_by_hand(twin):
    # Two base clusterings of three rows: {0,1},{2} and {0},{1,2}. w = 2+1, 2+2, 1+2.
    codes = np.array([[0, 0], [0, 1], [1, 1]], np.int8)
    offsets, sizes = np.array([0, 2, 4]), np.array([2, 1, 1, 2])
    assert twin(label_weights)(codes, offsets, sizes).tolist() == [3, 4, 3]
    # The centre of row 0 alone is (1/3, 0, 1/3, 0): row 1 is at 4 ((1/4 - 1/3)^2 + 1/9 + 1/16) = 4 * 26/144.
    inner, norms, every = tables(codes, offsets, np.array([[1 / 3, 0, 1 / 3, 0]]))
    found = twin(sqdist_labels)(codes, offsets, sizes, inner, norms, every, 1)[:, 0]
    assert found * [3, 4, 3] == pytest.approx([0, 4 * 26 / 144, 3 * 4 / 9], abs=1e-15)


def test_plus_plus_chooses_rows_that_differ(twin):
    codes, offsets, sizes = draw(3, missing=0.2)
    codes = codes[(codes >= 0).any(axis=1)]
    uniforms = np.random.default_rng(0).random((6, 3))
    chosen = twin(plus_plus_labels)(codes, offsets, sizes, uniforms)
    assert len(chosen) == 6
    assert len({codes[x].tobytes() for x in chosen}) == 6
    same = np.repeat(codes[:3], 10, axis=0)
    assert len(twin(plus_plus_labels)(same, offsets, sizes, uniforms)) == 3


def test_plus_plus_weighs_by_the_distance(twin):
    # With one trial the second row is drawn in proportion to w |b/w - m|^2.
    codes, offsets, sizes = draw(4)
    first = 0
    expected = sec.distances(codes, sec.incidence(codes)[[first]] / sec.co_association(codes).sum(axis=1)[first])[:, 0]
    borders = np.cumsum(expected)
    weights = np.cumsum(sec.co_association(codes).sum(axis=1))
    for share in (0.1, 0.5, 0.9):
        uniforms = np.array([[weights[first] / weights[-1] / 2], [share]])
        chosen = twin(plus_plus_labels)(codes, offsets, sizes, uniforms)
        assert chosen.tolist() == [first, int(np.searchsorted(borders, share * borders[-1], side="right"))]


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_exchanges_end_where_no_single_move_lowers_the_objective(twin, missing):
    codes, offsets, sizes = draw(8, missing=missing)
    codes = codes[(codes >= 0).any(axis=1)][:24]
    sizes = np.concatenate([[(codes[:, j] == c).sum() for c in range(k)] for j, k in enumerate((3, 2, 5))])
    labels = np.arange(24, dtype=np.int32) % 3
    counts, masses = np.zeros((10, 3), np.int64), np.zeros((3, 3))
    count_together(codes, offsets, sizes, labels, counts, masses)
    objective = sec.objective(codes, labels)
    while twin(exchange_labels)(codes, offsets, sizes, labels, counts, masses):
        lower = sec.objective(codes, labels)
        assert lower < objective
        objective = lower
    again, heavy = np.zeros((10, 3), np.int64), np.zeros((3, 3))
    count_together(codes, offsets, sizes, labels, again, heavy)
    assert np.array_equal(counts, again)
    assert np.array_equal(masses, heavy)
    for x in range(24):
        for k in range(3):
            other = labels.copy()
            other[x] = k
            assert sec.objective(codes, other) >= objective - 1e-12


def test_counting_and_coding(twin):
    labels = np.array([[7, -1], [9, 10**12], [7, -1], [-1, -1]], np.int64)
    counts = np.zeros(3, np.int64)
    assert twin(count_labels)(labels, np.array([7, 0]), np.array([0, -1]), counts) == 3
    assert counts.tolist() == [2, 0, 1]
    codes = np.full((5, 2), 99, np.int8)
    more = np.vstack([labels, [[8, 3]]])
    table = np.array([0, -1, 1], np.int32)
    twin(encode_labels)(more, np.array([7, 0]), np.array([0, -1]), np.array([3, 0]), table, codes)
    assert codes[:, 0].tolist() == [0, 1, 0, -1, -1]
    assert (codes[:, 1] == 99).all()  # left to the caller


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_agreement(twin, missing):
    codes, offsets, sizes = draw(6, missing=missing)
    labels = np.where((codes >= 0).any(axis=1), np.arange(30) % 3, -1).astype(np.int32)
    counts, masses = np.zeros((10, 3), np.int64), np.zeros((3, 3))
    count_together(codes, offsets, sizes, labels, counts, masses)
    found = twin(agreement_rows)(codes, offsets, labels, counts / sizes[:, None])
    assert found == pytest.approx(ensemble.agreement(codes, labels), rel=1e-6, nan_ok=True)
