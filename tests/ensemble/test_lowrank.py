"""ISEC's low-rank representation, against a slow version and its own optimality conditions; isec_2020."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from daskcluster.ensemble.incidence import check_base_clusterings, code_labels, scan_labels
from daskcluster.ensemble.lowrank import (
    co_association,
    low_rank_representation,
    mean_by_cluster,
    shrink_columns,
    shrink_singular_values,
    spectral_rows,
    unit_rows,
)
from tests.reference import isec, sec


def coded(labels):
    rows = check_base_clusterings(labels)
    book = scan_labels(rows).book
    return code_labels(rows, book).compute(), book


def noisy(seed=0, n_rows=60, noise=0.2):
    rng = np.random.default_rng(seed)
    truth = np.arange(n_rows) % 3
    columns = [np.where(rng.random(n_rows) < noise, rng.integers(3, size=n_rows), truth) for _ in range(10)]
    return np.stack(columns, axis=1), truth


def test_co_association():
    labels, _ = noisy()
    labels[3, :4] = -1
    labels[7] = -1
    codes, book = coded(labels)
    assert np.array_equal(co_association(codes, book), sec.co_association(labels) / 10)


def test_agrees_with_the_slow_version():
    codes, book = coded(noisy()[0])
    S = co_association(codes, book)
    found = low_rank_representation(S, 3, max_iter=6, tol=0.0)
    outer, Z, errors = isec.solve(S, 3, 0.1, 0.01, 6)
    assert found.partition @ found.partition.T == pytest.approx(outer, abs=1e-7)
    assert found.representation == pytest.approx(Z, abs=1e-7)
    assert found.history == pytest.approx(errors, rel=1e-5)


def test_converges_in_about_15_rounds():
    for noise in (0.1, 0.4):
        codes, book = coded(noisy(1, 150, noise)[0])
        found = low_rank_representation(co_association(codes, book), 3)
        assert len(found.history) <= 22
        assert found.history[-1] < 1e-6
        H = found.partition
        assert np.allclose(H.T @ H, np.eye(3), atol=1e-10)


def test_equation_13_is_the_zero_of_the_gradient():
    """No small change of the Z of a round lowers the Lagrange function as that round began."""
    codes, book = coded(noisy(noise=0.4)[0])
    S = co_association(codes, book)
    first, second = (low_rank_representation(S, 3, max_iter=rounds, tol=0.0) for rounds in (1, 2))
    H, Z = first.partition, first.representation
    Y2 = Z  # the first penalty is 1, and J was 0
    E = np.stack([isec.shrink_column(q, 0.01) for q in (S - S @ Z).T], axis=1)
    Y1 = S - S @ Z - E
    degrees = ((np.abs(Z) + np.abs(Z.T)) / 2 + np.abs(H @ H.T)).sum(axis=1)
    penalty = 1.2
    J = isec.singular_value_threshold(Z + Y2 / penalty, 0.1 / penalty)
    Z = second.representation
    least = isec.lagrange(S, H, degrees, Z, J, E, Y1, Y2, penalty)
    rng = np.random.default_rng(0)
    for _ in range(20):
        step = rng.normal(size=S.shape)
        for size in (0.1, -0.1):
            change = isec.lagrange(S, H, degrees, Z + size * step, J, E, Y1, Y2, penalty) - least
            assert change == pytest.approx(penalty / 2 * size**2 * ((S @ step) ** 2 + step**2).sum(), rel=1e-5)


def test_the_embedding_of_z_takes_absolute_values():
    codes, book = coded(noisy(noise=0.4)[0])
    Z = low_rank_representation(co_association(codes, book), 3, max_iter=6).representation
    assert (Z < 0).mean() > 0.3
    affinity = (np.abs(Z) + np.abs(Z.T)) / 2
    rows, expected = spectral_rows(Z, 3), isec.cut(affinity, affinity.sum(axis=1), 3)
    assert rows @ rows.T == pytest.approx(expected @ expected.T, abs=1e-8)


def test_shrinking():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(12, 3)) @ rng.normal(size=(3, 12))
    for threshold in (0.1, 3.0, 1000.0):
        assert shrink_singular_values(M, threshold) == pytest.approx(
            isec.singular_value_threshold(M, threshold), abs=1e-8
        )
        expected = np.stack([isec.shrink_column(q, threshold) for q in M.T], axis=1)
        assert shrink_columns(M, threshold) == pytest.approx(expected, abs=1e-12)
    assert not shrink_columns(np.zeros((3, 3)), 1.0).any()


def test_both_partitions_find_what_noise_hides():
    labels, truth = noisy(2, 90, 0.15)
    codes, book = coded(labels)
    found = low_rank_representation(co_association(codes, book), 3)
    for rows in (found.partition, spectral_rows(found.representation, 3)):
        labels_found = KMeans(3, n_init=10, random_state=0).fit_predict(unit_rows(rows))
        assert adjusted_rand_score(truth, labels_found) > 0.95


def test_means_of_base_clusters():
    codes = np.array([[0, 1], [0, -1], [1, 0]], np.int8)
    _, book = coded(np.array([[0, 1], [0, -1], [1, 0], [1, 2]]))
    found = mean_by_cluster(codes, book, np.array([[1.0], [3.0], [10.0]]))
    assert found[:, 0].tolist() == [2, 10, 10, 1, 0]
