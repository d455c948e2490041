"""GCC and ECMC: the best of three partitions, and the completed matrix."""

from __future__ import annotations

import numpy as np
import pytest

from ci.reproduction.systems import gcc
from ci.reproduction.systems.ecmc import agreed_pairs, complete, completed_affinity, completed_consensus
from tests.reference.two_parts import first_vectors, normalized_affinity, two_means, unit_length

#: The four labelings of seven objects of Strehl and Ghosh, 2002, and their consensus.
EXAMPLE = np.array([[1, 1, 1, 2, 2, 3, 3], [2, 2, 2, 3, 3, 1, 1], [1, 1, 2, 2, 3, 3, 3], [1, 2, -1, 1, 2, -1, -1]]).T
CONSENSUS = np.array([0, 0, 0, 1, 1, 2, 2])


def same(first: np.ndarray, second: np.ndarray) -> bool:
    return bool(((first[:, None] == first) == (second[:, None] == second)).all())


def test_mean_information_looks_at_labelled_rows():
    base = np.array([[0, 0], [0, -1], [1, 1], [1, -1]])
    assert gcc.mean_information(np.array([0, 0, 1, 1]), base) == pytest.approx(1)
    assert gcc.mean_information(np.array([0, 1, 0, 1]), base) == pytest.approx(0)


def test_the_partition_that_agrees_most_is_taken(monkeypatch):
    good, bad = CONSENSUS.astype(np.int32), np.array([0, 1, 2, 0, 1, 2, 0], np.int32)
    for order in ((good, bad), (bad, good)):
        fakes = {str(i): lambda base, k, random_state, labels=labels: labels for i, labels in enumerate(order)}
        monkeypatch.setattr(gcc, "PARTITIONS", fakes)
        assert same(gcc.graph_based_consensus(EXAMPLE, 3), CONSENSUS)


def test_the_three_partitions_on_the_example():
    pytest.importorskip("pymetis")
    pytest.importorskip("mtkahypar")
    assert same(gcc.graph_based_consensus(EXAMPLE, 3, random_state=0), CONSENSUS)


def test_a_low_rank_matrix_is_completed():
    """Two blocks; some entries are unknown, and a few known ones are wrong."""
    labels = np.repeat([0, 1], [25, 35])
    truth = (labels[:, None] == labels).astype(float)
    draw = np.random.default_rng(0)
    unknown = np.triu(draw.random(truth.shape) < 0.3, 1)
    wrong = np.triu(draw.random(truth.shape) < 0.02, 1)
    unknown, wrong = unknown | unknown.T, wrong | wrong.T
    given = np.where(unknown, 0.0, np.where(wrong, 1 - truth, truth))
    found = complete(given, ~unknown, 1 / np.sqrt(60))
    assert np.abs(found - truth).max() < 0.01
    assert np.abs(given - truth).max() == 1


def test_agreed_pairs_by_hand():
    """Of four base clusterings, pairs agree in 4, 2, 1 or 0; what agrees at times is not known."""
    base = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 2], [1, 2, 2, 3]])
    S, known = agreed_pairs(base, 0.0, 0.5)
    assert S.tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert known.tolist() == [[1, 1, 0, 1], [1, 1, 0, 1], [0, 0, 1, 0], [1, 1, 0, 1]]
    S, known = agreed_pairs(base, 0.25, 0.75)
    assert S.tolist() == np.eye(4).tolist()
    assert known.tolist() == [[1, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]


def test_a_wrong_pair_is_corrected():
    """One row of each block is in a base cluster of these two in half of the base clusterings.

    At a penalty of 1 / sqrt(60) that pair is an error; from 1 on, it would be cheaper as a part of the matrix.
    """
    truth = np.repeat([0, 1], 30)
    base = np.repeat(truth[:, None], 4, axis=1)
    base[[0, 59], :2] = 2
    expected = (truth[:, None] == truth).astype(float)
    S, known = agreed_pairs(base, 0.0, 0.5)
    assert np.argwhere(expected != S).tolist() == [[0, 59], [59, 0]]
    assert known.all()
    np.testing.assert_allclose(completed_affinity(base, 0.0, 0.5), expected, atol=0.01)


def test_completed_consensus_finds_the_blocks():
    truth = np.repeat([0, 1, 2], 15)
    draw = np.random.default_rng(1)
    base = np.stack([np.where(draw.random(45) < 0.08, draw.integers(0, 3, 45), truth) for _ in range(20)], axis=1)
    assert same(completed_consensus(base, 3, random_state=0), truth)


def test_the_completed_matrix_is_clustered_spectrally():
    """Degrees, the length of rows and both thresholds matter for these ten rows."""
    base = np.random.default_rng(191).integers(0, 3, (10, 6))
    A = np.maximum(completed_affinity(base, 0.0, 0.5), 0)
    expected = two_means(unit_length(first_vectors(normalized_affinity(A), 2)))
    for seed in range(3):
        assert same(completed_consensus(base, 2, random_state=seed), expected)
