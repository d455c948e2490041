"""The systems that fast_csc_and_secrp_2017 compares with: by hand, and against plain programs of the formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import daskcluster as dc
from ci.reproduction.systems.ccs import ccs_vectors, generalized_constrained_clustering
from ci.reproduction.systems.common import constraint_matrix
from ci.reproduction.systems.cop_kmeans import ConstraintsFailed, constrained_kmeans
from ci.reproduction.systems.landmarks import landmark_matrix
from ci.reproduction.systems.neighbor_graph import neighbor_graph
from ci.reproduction.systems.scacs import scacs_vectors, scalable_constrained_spectral_clustering
from ci.reproduction.systems.sec_svd import binary_matrix, projected_rows, sec_by_svd
from tests.reference.fast_csc import full_eigenvectors, full_problem, landmark_affinities, pairs_of_labels, scaled
from tests.reference.two_parts import best_two_parts, two_means, unit_length


def groups(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three groups in a row, of which the outer ones touch the middle one; classes, and 12 known labels."""
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(60, 2)) * 0.5
    X[:, 0] += 2.0 * truth
    known = np.full(60, -1)
    known[::5] = truth[::5]
    return X, truth, known


def test_landmark_matrix_is_that_of_the_formulas():
    X = groups()[0]
    Z = landmark_matrix(X, 60, 3, random_state=0).toarray()  # every row is a landmark, in an order that is drawn
    expected = scaled(landmark_affinities(X, X, 3))
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=1e-12)
    few = landmark_matrix(np.repeat(X[:5], 4, axis=0), 8, 3, random_state=0)
    assert few.shape[1] <= 5
    np.testing.assert_allclose((few @ (few.T @ np.ones(20))), 1.0)  # unit degrees


def scacs_by_the_text(Z: np.ndarray, Q: np.ndarray, n_vectors: int) -> np.ndarray:
    """Eq. (8) of csp_ml_and_fast_csp_ml_2019 on W = Z Z^T itself, by the general solver, with beta_0 = 0.1."""
    n = len(Z)
    range_of = scipy.linalg.orth(Z, rcond=1e-5)  # only vectors Zhat^T y are looked for
    L, small = range_of.T @ (np.eye(n) - Z @ Z.T) @ range_of, range_of.T @ Q @ range_of
    beta = 0.1 * np.linalg.eigvalsh(small)[-1]
    values, vectors = scipy.linalg.eig(L, small - beta * np.eye(len(small)))
    feasible = vectors[:, (values.real > 1e-8) & (np.abs(values.imag) < 1e-9)].real
    feasible /= np.linalg.norm(feasible, axis=0)
    return range_of @ feasible[:, np.argsort(np.diag(feasible.T @ L @ feasible))[:n_vectors]] * np.sqrt(n)


def test_scacs_solves_csp_of_the_landmark_graph():
    """With as many landmarks as rows nothing is projected away."""
    X, _, known = groups(1)
    Z = scipy.sparse.csr_array(scaled(landmark_affinities(X, X, 6)))
    Q = constraint_matrix(dc.Constraints.from_labels(known), len(X))
    found, expected = scacs_vectors(Z, Q, 2, 0.1), scacs_by_the_text(Z.toarray(), np.asarray(Q.todense()), 2)
    np.testing.assert_allclose(found * np.sign((found * expected).sum(axis=0)), expected, atol=1e-4)


def test_two_clusters_of_scacs_are_the_signs_of_one_vector():
    """At another threshold it would be another vector, and its values, or two vectors, would be parted elsewhere."""
    X = np.random.default_rng(35).normal(size=(12, 2))
    known = dc.Constraints.from_labels([0, 0, 1, 1, 2, 2, *[-1] * 6])
    Q = np.asarray(constraint_matrix(known, 12).todense())
    signs = scacs_by_the_text(scaled(landmark_affinities(X, X, 3)), Q, 1)[:, 0] > 0
    found = scalable_constrained_spectral_clustering(X, known, 2, n_landmarks=12, random_state=0)
    assert dc.metrics.rand_index(signs.astype(int), found) == 1


@pytest.mark.parametrize("alpha", [0.0, 5.0])
def test_ccs_solves_the_full_problem(alpha):
    X, _, known = groups(2)
    W = scipy.sparse.csr_array(neighbor_graph(X, 8))
    found, x = ccs_vectors(W, dc.Constraints.from_labels(known), 3, alpha, random_state=0)
    values, vectors = full_eigenvectors(*full_problem(W.toarray(), *pairs_of_labels(known), alpha), 3)
    np.testing.assert_allclose(found, values, rtol=1e-6)
    x, vectors = x - x.mean(axis=0), vectors - vectors.mean(axis=0)
    cosines = (x * vectors).sum(axis=0) / np.linalg.norm(x, axis=0) / np.linalg.norm(vectors, axis=0)
    np.testing.assert_allclose(np.abs(cosines), 1.0, rtol=1e-6)


def test_ccs_clusters_the_centred_and_scaled_vectors():
    """The embedding of the full problem at alpha = 5, with degrees; without a step the best two clusters are others."""
    X = np.random.default_rng(196).normal(size=(9, 2))
    known = np.array([0, 0, 1, 1, *[-1] * 5])
    W = neighbor_graph(X, 3)
    _, x = full_eigenvectors(*full_problem(W.toarray(), *pairs_of_labels(known), 5.0), 2)
    degrees = W.toarray().sum(axis=1)
    x = x - np.average(x, axis=0, weights=degrees)
    expected = two_means(unit_length(x / np.sqrt(np.average(x**2, axis=0, weights=degrees))))
    found = generalized_constrained_clustering(X, dc.Constraints.from_labels(known), 2, n_neighbors=3, random_state=0)
    assert dc.metrics.rand_index(expected, found) == 1


@pytest.mark.parametrize("method", [scalable_constrained_spectral_clustering, generalized_constrained_clustering])
def test_constraints_lead_to_the_classes(method):
    X, truth, known = groups(3)
    X[:, 0] += truth  # farther apart
    found = method(X, dc.Constraints.from_labels(known), 3, random_state=0)
    assert dc.metrics.rand_index(truth, found) > 0.9


def test_scacs_without_constraints_has_no_answer():
    with pytest.raises(ValueError, match="no eigenvector is feasible"):
        scalable_constrained_spectral_clustering(
            groups()[0], dc.Constraints.from_pairs(n_samples=60), 3, random_state=0
        )


def test_constrained_kmeans_by_hand():
    """Two pairs on a line; a must-link takes 1 to the far pair, a cannot-link parts the pair at 0."""
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    free = constrained_kmeans(X, dc.Constraints.from_pairs(n_samples=4), 2, random_state=0)
    assert free.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    must = constrained_kmeans(X, dc.Constraints.from_pairs([(1, 2)], [(0, 1)]), 2, random_state=0)
    assert (must == must[1]).tolist() == [False, True, True, True]


def test_constrained_kmeans_keeps_all_constraints_and_closes_must_links():
    X, _, known = groups(4)
    found = constrained_kmeans(X, dc.Constraints.from_labels(known), 3, random_state=0)
    kept = dc.Constraints.from_labels(known).satisfaction(found)
    assert (kept.must_link, kept.cannot_link) == (1.0, 1.0)
    chain = dc.Constraints.from_pairs([(40, 0), (40, 20)], n_samples=60)  # 0 and 20 are placed before 40
    found = constrained_kmeans(X, chain, 3, random_state=0)
    assert found[0] == found[20] == found[40]


def test_constrained_kmeans_fails_or_breaks_the_least():
    X = np.array([[0.0], [0.1], [10.0]])
    apart = dc.Constraints.from_labels([0, 1, 2])
    with pytest.raises(ConstraintsFailed, match="no cluster of 2 keeps the constraints of row 2"):
        constrained_kmeans(X, apart, 2, random_state=0)
    assert len(set(constrained_kmeans(X, apart, 2, infeasible="least", random_state=0)[:2])) == 2


BASE = np.array([[0, 5, 7], [0, 5, 7], [0, 5, 2], [3, 8, 7], [3, 8, 2], [3, 8, 2]])


def test_binary_matrix_by_hand():
    expected = [[1, 0, 1, 0, 0, 1], [1, 0, 1, 0, 0, 1], [1, 0, 1, 0, 1, 0]]
    assert binary_matrix(BASE)[:3].toarray().tolist() == expected
    with pytest.raises(ValueError, match="none missing"):
        binary_matrix(np.array([[0, -1]]))


#: Sizes of clusters differ, so that the best partition is another one without the weights, or without the division.
UNEVEN = np.array([[0, 1, 1], [0, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 1], [1, 1, 0]])


def best_partition(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of weighted k-means with two clusters."""

    def cost(labels: np.ndarray) -> float:
        total = 0.0
        for inside in (labels == 0, labels == 1):
            center = np.average(points[inside], axis=0, weights=weights[inside])
            total += float((weights[inside] * ((points[inside] - center) ** 2).sum(axis=1)).sum())
        return total

    return best_two_parts(cost, len(points))


def test_all_singular_vectors_change_nothing():
    """The partition is then the best of weighted k-means on b / w."""
    B = binary_matrix(UNEVEN).toarray()
    weights = (B @ B.T).sum(axis=1)
    found = sec_by_svd(UNEVEN, 2, 6, random_state=0)
    assert dc.metrics.rand_index(found, best_partition(B / weights[:, None], weights)) == 1
    for points, others in ((B / weights[:, None], np.ones(8)), (B, weights)):
        assert dc.metrics.rand_index(found, best_partition(points, others)) < 1


def test_rows_on_singular_vectors():
    """B V of the decomposition B = U S V' by LAPACK, up to signs, over the row sums of B B'."""
    B = binary_matrix(UNEVEN)
    points, weights = projected_rows(B, 2)
    sums = (B @ B.T).toarray().sum(axis=1)
    np.testing.assert_allclose(weights, sums / sums.mean())
    expected = (B @ np.linalg.svd(B.toarray())[2][:2].T) / weights[:, None]
    np.testing.assert_allclose(np.abs(points), np.abs(expected), atol=1e-12)
    one = sec_by_svd(UNEVEN, 2, 1, random_state=0)
    assert dc.metrics.rand_index(one, best_partition(points[:, :1], weights)) == 1
