"""The systems that the papers compare with."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

import daskcluster as dc
from ci.reproduction.systems.csp import constrained_spectral_clustering, csp_vectors
from ci.reproduction.systems.spectral_learning import spectral_learning
from tests.reference.two_parts import first_vectors, two_means, unit_length


def partial_labels(y: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    known = np.full(len(y), -1)
    rows = np.random.default_rng(seed).choice(len(y), count, replace=False)
    known[rows] = y[rows]
    return known


def wine() -> tuple[np.ndarray, np.ndarray]:
    data = load_wine()
    return StandardScaler().fit_transform(data.data), data.target


SYSTEMS = [spectral_learning, constrained_spectral_clustering]


def blocks(sizes: tuple[int, ...]) -> np.ndarray:
    return np.repeat(np.arange(len(sizes)), sizes)


def random_graph(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Affinities whose degrees differ by a factor of ten, and the constraint matrix of soft pairs."""
    rng = np.random.default_rng(seed)
    scales = np.geomspace(0.3, 1.0, n)
    W = rng.uniform(0.1, 1.0, (n, n)) * scales * scales[:, None]
    Q = rng.uniform(-1, 1, (n, n)) * (rng.random((n, n)) < 0.4)
    W, Q = np.triu(W, 1), np.triu(Q, 1)
    return W + W.T, Q + Q.T


def csp_by_the_text(W: np.ndarray, Q: np.ndarray, n_vectors: int, beta: float | None = None) -> np.ndarray:
    """Eq. (8) as it stands, by the general solver, and steps 2 to 4 of csp_ml_and_fast_csp_ml_2019."""
    d = W.sum(axis=1)
    half = np.diag(d**-0.5)
    L, Q, vol = np.eye(len(W)) - half @ W @ half, half @ Q @ half, d.sum()
    if beta is None:
        beta = vol * np.sort(np.linalg.eigvalsh(Q))[-n_vectors] / 2
    values, vectors = scipy.linalg.eig(L, Q - beta / vol * np.eye(len(W)))
    assert np.abs(values.imag).max() < 1e-8
    feasible = vectors[:, values.real > 1e-8].real  # 0 belongs to the trivial vector
    feasible *= np.sqrt(vol) / np.linalg.norm(feasible, axis=0)
    cost = np.diag(feasible.T @ L @ feasible)
    assert len(cost) > n_vectors  # else step 3 has no choice
    return half @ feasible[:, np.argsort(cost)[:n_vectors]]


@pytest.mark.parametrize("beta", [None, 0.3])
@pytest.mark.parametrize("n_vectors", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_csp_takes_the_cheapest_feasible_eigenvectors(seed, n_vectors, beta):
    W, Q = random_graph(14, seed)
    found, expected = csp_vectors(W, Q, n_vectors, beta), csp_by_the_text(W, Q, n_vectors, beta)
    # The ridge under L leaves the trivial vector an eigenvalue of 1e10, beside which six digits of the others remain.
    np.testing.assert_allclose(found * np.sign((found * expected).sum(axis=0)), expected, atol=1e-4)


def test_two_clusters_of_csp_are_the_signs_of_one_vector():
    W, Q = random_graph(14, 0)
    first, second = np.nonzero(np.triu(Q))
    must = Q[first, second] > 0
    pairs, weights = np.stack([first, second], axis=1), np.abs(Q[first, second])
    known = dc.Constraints.from_pairs(pairs[must], pairs[~must], weights[must], weights[~must])
    signs = (csp_by_the_text(W, Q, 1)[:, 0] > 0).astype(int)
    assert set(signs) == {0, 1}
    found = constrained_spectral_clustering(W, known, 2, random_state=0)
    assert dc.metrics.rand_index(signs, found) == 1


@pytest.mark.parametrize("method", SYSTEMS)
def test_constraints_decide_where_the_graph_is_silent(method):
    """All affinities are equal, so only the constraints can tell blocks apart."""
    truth = blocks((3, 4, 5))
    found = method(np.full((12, 12), 0.5), dc.Constraints.from_labels(truth), 3, random_state=0)
    assert dc.metrics.rand_index(truth, found) == 1


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("must", [0, 0, 0, 1, 1, 1]), ("cannot", [0, 0, 0, 1, 1, 1]), ("both", [0, 0, 0, 1, 1, 1]), ("none", None)],
)
def test_spectral_learning_sets_affinities_to_1_and_0(kind, expected):
    """Three pairs of rows; row 2 belongs to the second group by its affinity, and to the first by the constraints."""
    W = np.full((6, 6), 0.1)
    W[:2, :2] = W[2:, 2:] = 0.6
    W[2, :2] = W[:2, 2] = 0.2
    must, cannot = [(0, 2), (1, 2)], [(2, 3), (2, 4), (2, 5)]
    given = {
        "must": dc.Constraints.from_pairs(must),
        "cannot": dc.Constraints.from_pairs(None, cannot),
        "both": dc.Constraints.from_pairs(must + cannot, cannot),  # a pair of both kinds is a cannot-link
        "none": dc.Constraints.from_pairs(n_samples=6),
    }[kind]
    found = spectral_learning(W, given, 2, random_state=0)
    assert dc.metrics.rand_index(expected or [0, 0, 1, 1, 1, 1], found) == 1


def test_spectral_learning_clusters_the_unit_rows():
    W, _ = random_graph(9, 4)
    given = dc.Constraints.from_pairs([(0, 1)], [(0, 2)], n_samples=9)
    found = spectral_learning(W, given, 2, random_state=0)
    W[0, 1] = W[1, 0] = 1.0
    W[0, 2] = W[2, 0] = 0.0
    degrees = W.sum(axis=1)
    vectors = first_vectors((W + np.diag(degrees.max() - degrees)) / degrees.max(), 2)
    assert dc.metrics.rand_index(two_means(unit_length(vectors)), found) == 1


def test_competitors_use_constraints():
    """On wine, whose 178 rows SL puts into one cluster without constraints, but for outliers."""
    X, y = wine()
    affinity = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    none, some, most, full = (dc.Constraints.from_labels(partial_labels(y, count)) for count in (0, 80, 140, 178))

    def score(method, known):
        return dc.metrics.rand_index(y, method(affinity, known, 3, random_state=0))

    assert score(spectral_learning, none) < 0.4
    assert score(spectral_learning, most) > 0.7
    assert score(spectral_learning, full) == 1
    assert score(constrained_spectral_clustering, some) > 0.95
    assert score(constrained_spectral_clustering, most) > 0.98


@pytest.mark.parametrize("method", SYSTEMS)
def test_labels_and_their_pairs_give_competitors_the_same(method):
    X, y = wine()
    affinity = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    known = dc.Constraints.from_labels(partial_labels(y, 40))
    pairs = dc.Constraints.from_pairs(*(np.argwhere(sign * known.to_sparse().todense() > 0) for sign in (1, -1)))
    np.testing.assert_array_equal(
        method(affinity, pairs, 3, random_state=0), method(affinity, known, 3, random_state=0)
    )


def test_the_diagonal_does_not_count():
    """With ones there a row far from all others would be a part of the graph of its own, which is cut off first."""
    X, y = wine()
    X[0] += 30.0
    affinity = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    known = dc.Constraints.from_labels(partial_labels(y, 80))
    found = [
        constrained_spectral_clustering(affinity + more * np.eye(len(y)), known, 3, random_state=0)
        for more in (-1, 0, 5)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert dc.metrics.rand_index(y, found[0]) > 0.9


def test_infeasible_competitor():
    with pytest.raises(ValueError, match="no eigenvector is feasible at beta=1e"):
        constrained_spectral_clustering(np.ones((4, 4)), dc.Constraints.from_pairs([(0, 1)]), 2, beta=1e9)


@pytest.mark.parametrize("method", SYSTEMS)
@pytest.mark.parametrize(
    ("affinity", "made", "message"),
    [
        (np.ones((4, 3)), {}, r"affinity must be a square matrix \(n, n\), got shape \(4, 3\)"),
        (np.ones(4), {}, r"affinity must be a square matrix \(n, n\), got shape \(4,\)"),
        (np.diag([1, np.nan, 1, 1]), {}, "affinity must be finite and not negative, got nan at row 1, column 1"),
        (np.diag([1, 1, -2.0, 1]), {}, r"affinity must be finite and not negative, got -2.0 at row 2, column 2"),
        (np.triu(np.ones((4, 4))), {}, "affinity must be symmetric"),
        (np.ones((4, 4)), {"n_samples": 5}, "made for the 4 rows of affinity, got n_samples=5"),
        (np.ones((2, 2)), {}, r"must_link must name rows 0 to 1, got the pair \(0, 2\)"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_competitors_refuse(method, affinity, made, message):
    with pytest.raises(ValueError, match=message):
        method(affinity, dc.Constraints.from_pairs([(0, 2)], **made), 2)
    if made:
        with pytest.raises(ValueError, match="y must have one entry for each of the 4 rows of affinity, got 5"):
            method(affinity, dc.Constraints.from_labels([0, 1, 0, 1, 0]), 2)
