"""GCC, ECMC and RSEC: the best of three partitions, the completed matrix, and the low-rank one."""

from __future__ import annotations

import numpy as np
import pytest

from ci.reproduction.systems import gcc
from ci.reproduction.systems.common import cluster_rows
from ci.reproduction.systems.ecmc import agreed_pairs, complete, completed_affinity, completed_consensus
from ci.reproduction.systems.rsec import low_rank_partition, robust_embeddings, sharpened
from tests.reference import rsec as slow_rsec
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


def test_sharpened_affinities_by_hand():
    """Rows of U S^1/2 of M = [[2, 1], [1, 2]]: (3, 1) and (1, 3) in squares, cosine (3 - 1) / 4; signs do not count."""
    np.testing.assert_allclose(sharpened(np.array([[2.0, 1.0], [1.0, 2.0]])), [[1, 1 / 16], [1 / 16, 1]])
    np.testing.assert_allclose(sharpened(-np.array([[2.0, 1.0], [1.0, 2.0]])), [[1, 1 / 16], [1 / 16, 1]])
    np.testing.assert_allclose(sharpened(np.array([[4.0, 2.0], [2.0, 1.0]])), np.ones((2, 2)))  # of rank one


def noisy_base(n_rows: int, n_members: int, seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    truth = np.arange(n_rows) % 3
    return np.stack(
        [np.where(draw.random(n_rows) < 0.2, draw.integers(0, 3, n_rows), truth) for _ in range(n_members)], 1
    )


@pytest.mark.parametrize("rounds", [1, 2, 12])
def test_rounds_of_rsec_are_those_of_a_slow_program(rounds):
    base = noisy_base(18, 7, 0)
    S = (base[:, None] == base).mean(axis=2)
    H, Z = low_rank_partition(S, 3, lambda_1=0.2, lambda_2=0.05, max_iter=rounds)
    outer, expected = slow_rsec.solve(S, 3, 0.2, 0.05, rounds)
    np.testing.assert_allclose(Z, expected, atol=1e-9)
    np.testing.assert_allclose(H @ H.T, outer, atol=1e-9)


def test_blocks_are_represented_by_themselves():
    """Z is then 0 between blocks and one number in all of them; later rounds change nothing."""
    truth = np.arange(12) % 3
    S = (truth[:, None] == truth).astype(float)
    H, Z = low_rank_partition(S, 3)
    np.testing.assert_allclose(Z, Z[0, 0] * S, atol=1e-9)
    assert 0.2 < Z[0, 0] <= 0.25
    assert np.linalg.matrix_rank(H) == 3
    np.testing.assert_array_equal(low_rank_partition(S, 3, max_iter=5000)[1], Z)


def test_rsec_finds_the_blocks():
    for embedding in robust_embeddings(noisy_base(60, 15, 1), 3):
        np.testing.assert_allclose(np.linalg.norm(embedding, axis=1), 1)
        assert same(cluster_rows(embedding, 3, 0), np.arange(60) % 3)
