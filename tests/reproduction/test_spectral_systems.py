"""The systems of uspec_usenc_2019 beside its own: by hand, and against independent programs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import make_moons
from sklearn.preprocessing import normalize

from ci.reproduction.systems import fastesc
from ci.reproduction.systems.common import left_vectors, squared_distances
from ci.reproduction.systems.escg import efficient_spectral_clustering, supernodes
from ci.reproduction.systems.eulersc import euler_features, euler_spectral_clustering
from ci.reproduction.systems.fastesc import explicit_spectral_clustering, explicit_vectors, fourier_features
from ci.reproduction.systems.kmeans import kmeans
from ci.reproduction.systems.lsc import LSC
from ci.reproduction.systems.neighbor_graph import gaussian_graph, neighbor_graph
from ci.reproduction.systems.nystrom import nystrom_spectral_clustering, nystrom_vectors
from ci.reproduction.systems.spectral import spectral_clustering
from daskcluster.metrics import normalized_mutual_info
from tests.reference.two_parts import (
    best_two_parts,
    first_vectors,
    normalized_affinity,
    normalized_cut,
    two_means,
    unit_length,
)


def blobs() -> tuple[np.ndarray, np.ndarray]:
    """Three small far groups of different sizes."""
    y = np.repeat([0, 1, 2], [20, 30, 40])
    centers = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    return centers[y] + np.random.default_rng(0).normal(size=(90, 2)), y


def moons() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_moons(300, noise=0.1, random_state=0)
    return X, y


def few_rows() -> np.ndarray:
    """Nine rows for which the length of vectors decides."""
    return np.random.default_rng(6).normal(size=(9, 2))


def together(labels: np.ndarray) -> list[list[bool]]:
    """A partition without its numbers."""
    return (labels[:, None] == labels).tolist()


ON_ROWS = {
    "k-means": kmeans,
    "Nyström": lambda X, k, random_state: nystrom_spectral_clustering(X, k, n_samples=30, random_state=random_state),
    "FastESC": explicit_spectral_clustering,
    "EulerSC": euler_spectral_clustering,
    "SC": lambda X, k, random_state: spectral_clustering(neighbor_graph(X, 8), k, random_state=random_state),
    "ESCG": lambda X, k, random_state: efficient_spectral_clustering(
        neighbor_graph(X, 8), k, n_supernodes=30, random_state=random_state
    ),
}


@pytest.mark.parametrize("name", ON_ROWS)
def test_far_groups_are_found(name):
    X, y = blobs()
    best = max(normalized_mutual_info(y, ON_ROWS[name](X, 3, random_state=seed)) for seed in range(3))
    assert best == pytest.approx(1)


@pytest.mark.parametrize("name", ON_ROWS)
def test_equal_seeds_give_equal_labels(name):
    X, _ = blobs()
    first, again = (ON_ROWS[name](X, 4, random_state=7) for _ in range(2))
    assert first.tolist() == again.tolist()


def test_kmeans_by_cosine_does_not_see_lengths():
    X = scipy.sparse.csr_matrix([[1, 0], [100, 1], [0, 1], [1, 100]])
    labels = kmeans(X, 2, cosine=True, random_state=1)
    assert (labels[:, None] == labels).tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]


@pytest.mark.parametrize("seed", range(6))
def test_a_large_cluster_by_cosine_does_not_draw_rows(seed):
    """Six rows at 0 degrees and two at 90 and 60, of which the latter is nearer to 90 from any start."""
    X = scipy.sparse.csr_matrix([[1, 0]] * 6 + [[0, 1], [1, 3**0.5]])
    labels = kmeans(X, 2, cosine=True, random_state=seed)
    assert (labels == labels[0]).tolist() == [True] * 6 + [False] * 2


@pytest.mark.parametrize("seed", range(4))
def test_an_empty_cluster_by_cosine_takes_the_row_that_is_farthest(seed):
    """Most starts are two equal rows, of which the first has all others; all starts lead to the last row alone."""
    X = scipy.sparse.csr_matrix([[1, 0]] * 18 + [[2, 1], [0, 1]])
    labels = kmeans(X, 2, cosine=True, random_state=seed)
    assert (labels == labels[0]).tolist() == [True] * 19 + [False]


def test_neighbor_graph_by_hand():
    """Nearest others: of 0 is 1, of 1 is 0, of 3 is 1; sigma is the mean of 1, 1, 2."""
    W = neighbor_graph(np.array([[0.0], [1.0], [3.0]]), 1).toarray()
    near, far = np.exp(-1 / (2 * (4 / 3) ** 2)), np.exp(-4 / (2 * (4 / 3) ** 2))
    np.testing.assert_allclose(W, [[0, near, 0], [near, 0, far], [0, far, 0]])


def test_gaussian_graph_by_hand():
    """Squared distances are 1, 9 and 4: their median is 4."""
    W = gaussian_graph(np.array([[0.0], [1.0], [3.0]])).toarray()
    a, b, c = np.exp(-1 / 8), np.exp(-9 / 8), np.exp(-1 / 2)
    np.testing.assert_allclose(W, [[1, a, b], [a, 1, c], [b, c, 1]])


def test_supernodes_by_hand():
    """A path whose third edge is weak: row 2 belongs to the first seed; the last row is on no path."""
    W = scipy.sparse.lil_matrix((5, 5))
    for i, weight in enumerate([0.9, 0.9, 0.2]):
        W[i, i + 1] = W[i + 1, i] = weight
    assert supernodes(scipy.sparse.csr_matrix(W), np.array([0, 3])).tolist() == [0, 0, 0, 1, -1]


@pytest.mark.parametrize("system", [spectral_clustering, efficient_spectral_clustering])
def test_curved_groups_are_cut_as_scikit_learn_cuts_them(system):
    X, y = moons()
    W = neighbor_graph(X, 10)
    reference = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(W)
    labels = system(W, 2, random_state=0)
    assert normalized_mutual_info(y, labels) > 0.9
    assert normalized_mutual_info(reference, labels) > 0.9


def test_large_graphs_take_the_sparse_solver():
    W = scipy.sparse.block_diag([np.ones((600, 600)), np.ones((500, 500))], format="csr")
    labels = spectral_clustering(W, 2, random_state=0)
    assert labels[:600].std() == labels[600:].std() == 0
    assert labels[0] != labels[-1]


def test_rows_of_a_piece_are_together_whatever_they_weigh():
    """Two pieces; two rows of the first have so heavy a link that their vectors are far longer than all others."""
    piece = np.zeros((12, 12))
    piece[0, 1:] = piece[1:, 0] = 0.01
    piece[0, 1] = piece[1, 0] = 1.0
    W = scipy.sparse.block_diag([piece, np.ones((10, 10))], format="csr")
    labels = spectral_clustering(W, 2, random_state=0)
    assert (labels == labels[0]).tolist() == [True] * 12 + [False] * 10


def test_supernodes_of_all_rows_are_scaled_by_degrees():
    """W R is W then, whose singular vectors, those of the largest |eigenvalues|, are multiplied by D^-1/2."""
    W = neighbor_graph(few_rows(), 4)
    A = normalized_affinity(W.toarray())
    vectors = first_vectors(A @ A, 2) / np.sqrt(W.toarray().sum(axis=1))[:, None]
    assert together(efficient_spectral_clustering(W, 2, random_state=0)) == together(two_means(vectors))


def test_left_vectors_are_those_of_the_decomposition():
    G = np.random.default_rng(0).normal(size=(30, 6))
    found, expected = left_vectors(G, 3), np.linalg.svd(G, full_matrices=False)[0][:, :3]
    np.testing.assert_allclose(np.abs((found * expected).sum(axis=0)), 1)


def test_nystrom_with_all_rows_gives_the_eigenvectors():
    X, _ = blobs()
    W = np.exp(-squared_distances(X, X) / 20)
    half = W.sum(axis=1) ** -0.5
    _, expected = scipy.linalg.eigh(W * half * half[:, None], subset_by_index=[87, 89])
    found = nystrom_vectors(W, np.arange(90), 3)
    np.testing.assert_allclose(np.abs((found * expected[:, ::-1]).sum(axis=0)), 1, atol=1e-6)


def test_exact_affinities_are_clustered_on_unit_rows(monkeypatch):
    """What Nyström has with all rows, FastESC with features that are exact; sigma is the mean distance in both."""

    def exact_features(X: np.ndarray, n_features: int, sigma: float, draw: np.random.Generator) -> np.ndarray:
        return np.linalg.cholesky(np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * sigma**2)))

    X = few_rows()
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    W = np.exp(-((distances / distances.mean()) ** 2) / 2)
    expected = two_means(unit_length(first_vectors(normalized_affinity(W), 2)))
    assert together(nystrom_spectral_clustering(X, 2, n_samples=9, random_state=0)) == together(expected)
    monkeypatch.setattr(fastesc, "fourier_features", exact_features)
    assert together(explicit_spectral_clustering(X, 2, random_state=0)) == together(expected)


def test_explicit_vectors_are_those_of_the_normalized_affinity():
    """Degrees are the row sums of Z Z'; those that are negative are set to the least that is not."""
    Z = np.random.default_rng(0).normal(0.4, 1, (12, 5))
    W = Z @ Z.T
    degrees = W.sum(axis=1)
    assert (degrees < 0).any()
    half = np.where(degrees > 0, degrees, degrees[degrees > 0].min()) ** -0.5
    expected = first_vectors(W * half * half[:, None], 3)
    np.testing.assert_allclose(np.abs((explicit_vectors(Z, 3) * expected).sum(axis=0)), 1)


def test_fourier_features_stand_for_the_gaussian():
    X = np.random.default_rng(0).normal(size=(12, 3))
    Z = fourier_features(X, 40_000, 1.5, np.random.default_rng(1))
    np.testing.assert_allclose(Z @ Z.T, np.exp(-squared_distances(X, X) / (2 * 1.5**2)), atol=0.03)


def test_euler_features_by_hand():
    """Of the columns 0, 1, 4 and 2, 2, 2: scaled they are 0, 1/4, 1, and a constant one is 0."""
    F = euler_features(np.array([[0.0, 2.0], [1.0, 2.0], [4.0, 2.0]]), 1.9)
    unit = np.array([0, 0.25, 1])
    np.testing.assert_allclose(F @ F.T, (2 + np.cos(1.9 * np.pi * (unit[:, None] - unit)) + 1) / 2)


def test_euler_clustering_cuts_the_graph_of_its_features():
    """The best partition of all is found, and in every one that is found no row is nearer to the other part.

    What is nearer follows from W: of row i and a part, sum W_jl / vol**2 - 2 sum W_ij / (d_i vol), but for a constant.
    """
    X = np.random.default_rng(7).exponential(size=(9, 2)) ** 2
    F = euler_features(X, 1.0)
    W = F @ F.T
    degrees = W.sum(axis=1)

    def distances(part: np.ndarray) -> np.ndarray:
        volume = degrees[part].sum()
        return W[part][:, part].sum() / volume**2 - 2 * W[:, part].sum(axis=1) / (degrees * volume)

    found = [euler_spectral_clustering(X, 2, alpha=1.0, random_state=seed) for seed in range(20)]
    least = normalized_cut(W, best_two_parts(lambda labels: normalized_cut(W, labels), 9))
    assert min(normalized_cut(W, labels) for labels in found) == pytest.approx(least)
    for labels in found:
        first, second = distances(labels == 0), distances(labels == 1)
        assert (np.where(labels == 0, first - second, second - first) < 1e-9).all()


@pytest.mark.parametrize("selection", ["kmeans", "random"])
def test_lsc_is_the_decomposition_of_its_paper(selection):
    """Zhat = D^-1/2 Z of the representatives and bandwidth that were found parts the rows alike."""
    X, _y = moons()
    model = LSC(2, n_representatives=60, n_neighbors=4, selection=selection, random_state=0).fit(X)
    distances = squared_distances(X, model.representatives_)
    nearest = np.argsort(distances, axis=1)[:, : model.n_neighbors_]
    Z = np.zeros_like(distances)
    weights = np.exp(-np.take_along_axis(distances, nearest, axis=1) / (2 * model.bandwidth_**2))
    np.put_along_axis(Z, nearest, weights / weights.sum(axis=1, keepdims=True), axis=1)
    sums = Z.sum(axis=0)
    U = np.linalg.svd(Z / np.sqrt(np.where(sums > 0, sums, 1)), full_matrices=False)[0][:, :2]
    expected = KMeans(2, n_init=5, random_state=0).fit_predict(normalize(U))
    assert normalized_mutual_info(expected, model.labels_) > 0.95
