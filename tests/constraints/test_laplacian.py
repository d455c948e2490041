"""Projected Laplacians and the constrained cut against dense matrices of all pairs."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import scipy.linalg
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import make_blobs

import daskcluster as dc
from daskcluster.constraints.cut import constrained_cut, largest_of_pencil
from daskcluster.constraints.laplacian import project_constraints
from daskcluster.io.inputs import check_rows
from daskcluster.pipeline.bipartite import BipartiteGraph, pack_edges, unpack_edges
from daskcluster.pipeline.lift import LiftedRows
from tests.reference import fast_csc

N, P, K = 60, 12, 3


def random_graph(rng, n=N, p=P, missing=()):
    indices = np.array([rng.choice(p, K, replace=False) for _ in range(n)], np.int32)
    weights = rng.uniform(0.1, 1, (n, K)).astype(np.float32)
    indices[list(missing)] = -1
    weights[list(missing)] = 0
    return indices, weights


def as_graph(indices, weights, chunks, p=P):
    return BipartiteGraph(da.from_array(pack_edges(indices, weights), chunks=(chunks, 2 * K)), unpack_edges, p)


def dense(indices, weights, p=P):
    Z = np.zeros((len(indices), p))
    for i in range(len(indices)):
        for a in range(K):
            if indices[i, a] >= 0:
                Z[i, indices[i, a]] = float(weights[i, a]) / float(weights[i].astype(np.float64).sum())
    return Z


def on_rows(constraints, n=N, chunks=N):
    rows = check_rows(np.zeros((n, 1)))
    found = constraints.on_rows(rows)
    return found if found.codes is None else _rechunk(found, chunks)


def _rechunk(found, chunks):
    from dataclasses import replace

    codes = found.codes.rechunk(chunks)
    return replace(
        found, codes=codes, confidences=None if found.confidences is None else found.confidences.rechunk(chunks)
    )


@pytest.mark.parametrize("chunks", [60, 17, 1])
@pytest.mark.parametrize("weighted", [False, True])
def test_labels_in_closed_form_are_the_sum_over_all_pairs(chunks, weighted):
    rng = np.random.default_rng(0)
    indices, weights = random_graph(rng, missing=[5, 30])
    y = rng.integers(-1, 4, N)
    y[:20] = -1  # whole blocks without labels
    confidence = rng.uniform(0.2, 1, N).astype(np.float32) if weighted else np.ones(N)
    made = dc.Constraints.from_labels(y, weight=confidence if weighted else None)
    found = project_constraints(as_graph(indices, weights, chunks), on_rows(made, chunks=chunks))
    y = np.where((indices >= 0).all(axis=1), y, -1)
    must, cannot = (
        [(i, j, float(confidence[i]) * float(confidence[j])) for i, j, _ in links]
        for links in fast_csc.pairs_of_labels(y)
    )
    Z = dense(indices, weights)
    np.testing.assert_allclose(found.gram, Z.T @ Z, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.masses, Z.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.must_link, Z.T @ fast_csc.laplacian(N, must) @ Z, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(found.cannot_link, Z.T @ fast_csc.laplacian(N, cannot) @ Z, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("chunks", [60, 17])
def test_pairs_are_the_projected_laplacian(chunks):
    rng = np.random.default_rng(1)
    indices, weights = random_graph(rng, missing=[5, 30])
    must = [(0, 1, 0.5), (1, 7, 1.0), (5, 8, 1.0), (2, 59, 0.25)]
    cannot = [(0, 59, 0.7), (30, 31, 1.0), (40, 41, 1.0)]
    made = dc.Constraints.from_pairs(
        *([(i, j) for i, j, _ in links] for links in (must, cannot)),
        *([w for _, _, w in links] for links in (must, cannot)),
    )
    found = project_constraints(as_graph(indices, weights, chunks), on_rows(made))
    Z = dense(indices, weights)
    for projected, links in ((found.must_link, must), (found.cannot_link, cannot)):
        present = [link for link in links if not {5, 30} & set(link[:2])]
        np.testing.assert_allclose(projected, Z.T @ fast_csc.laplacian(N, present) @ Z, rtol=1e-12, atol=1e-14)


def test_pairs_of_labels_give_what_labels_give():
    rng = np.random.default_rng(2)
    graph = as_graph(*random_graph(rng), 20)
    made = dc.Constraints.from_labels(rng.integers(-1, 3, N))
    Q = made.to_sparse().todense()
    pairs = dc.Constraints.from_pairs(np.argwhere(np.triu(Q) > 0), np.argwhere(np.triu(Q) < 0))
    one, other = project_constraints(graph, on_rows(made, chunks=20)), project_constraints(graph, on_rows(pairs))
    np.testing.assert_allclose(one.must_link, other.must_link, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(one.cannot_link, other.cannot_link, rtol=1e-11, atol=1e-11)


def test_both_sides_vanish_at_the_trivial_vector():
    rng = np.random.default_rng(3)
    found = project_constraints(
        as_graph(*random_graph(rng), 20), on_rows(dc.Constraints.from_labels(rng.integers(-1, 3, N)), chunks=20)
    )
    ones = np.ones(P)  # D^-1/2 times y = sqrt(masses)
    for laplacian in (found.must_link, found.cannot_link):
        np.testing.assert_allclose(laplacian @ ones, 0, atol=1e-10)
    np.testing.assert_allclose(found.gram @ ones, found.masses, rtol=1e-12)


def lifted(cut, graph):
    values, rows = LiftedRows(graph.edges_of, cut.vectors)(graph.held.compute())
    assert rows is None
    return values


@pytest.mark.parametrize("kind", ["labels", "must", "cannot", "none"])
def test_the_cut_is_that_of_the_reference(kind):
    rng = np.random.default_rng(4)
    indices, weights = random_graph(rng)
    graph = as_graph(indices, weights, 20)
    must, cannot = fast_csc.pairs_of_labels(np.where(np.arange(N) < 12, rng.integers(0, 3, N), -1))
    must, cannot = (must if kind in ("labels", "must") else []), (cannot if kind in ("labels", "cannot") else [])
    made = dc.Constraints.from_pairs(*([(i, j) for i, j, _ in links] for links in (must, cannot)))
    cut = constrained_cut(project_constraints(graph, on_rows(made)), 4, 5.0)
    Zhat = fast_csc.scaled(dense(indices, weights))
    eigenvalues, x = fast_csc.landmark_eigenvectors(Zhat, must, cannot, 5.0, 4)
    np.testing.assert_allclose(cut.eigenvalues, eigenvalues, rtol=1e-6)
    expected = fast_csc.embedding(x)
    found = lifted(cut, graph)
    expected *= np.sign((expected * found).sum(axis=0))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_theorem_4_every_row_a_landmark():
    """With p = n and an invertible Zhat the landmarks give the eigenvectors of the full problem, eq. (19)."""
    rng = np.random.default_rng(5)
    rows = np.concatenate([rng.normal(0, 1, (20, 2)), rng.normal(5, 1, (20, 2))])
    Z = fast_csc.landmark_affinities(rows, rows, K)
    Zhat = fast_csc.scaled(Z)
    assert np.linalg.cond(Zhat) < 1e4
    labels = np.full(40, -1)
    labels[[0, 3, 8, 20, 21, 33]] = [0, 1, 0, 1, 1, 0]
    must, cannot = fast_csc.pairs_of_labels(labels)
    eigenvalues, x = fast_csc.full_eigenvectors(*fast_csc.full_problem(Zhat @ Zhat.T, must, cannot, 5.0), 3)
    nearest = np.argsort(-Z, axis=1, kind="stable")[:, :K].astype(np.int32)
    graph = as_graph(nearest, np.take_along_axis(Z, nearest, axis=1).astype(np.float32), 40, p=40)
    made = dc.Constraints.from_labels(labels)
    cut = constrained_cut(project_constraints(graph, on_rows(made, 40, 40)), 3, 5.0)
    np.testing.assert_allclose(cut.eigenvalues, eigenvalues, rtol=1e-4)
    expected, found = fast_csc.embedding(x), lifted(cut, graph)
    expected *= np.sign((expected * found).sum(axis=0))
    np.testing.assert_allclose(found, expected, atol=2e-3)


@pytest.mark.parametrize(("n", "n_features", "n_neighbors", "k"), [(120, 2, 16, 3), (100, 3, 12, 4)])
def test_theorem_4_where_many_directions_carry_little(n, n_features, n_neighbors, k):
    """A connected landmark graph whose smooth affinities leave some of G's eigenvalues below 1e-9."""
    X, y = make_blobs(n, n_features, centers=k, cluster_std=2.5, random_state=0)
    known = np.where(np.random.default_rng(0).random(n) < 0.1, y, -1)
    Zhat = fast_csc.scaled(fast_csc.landmark_affinities(X, X, n_neighbors))
    W = Zhat @ Zhat.T
    assert connected_components(W > 0)[0] == 1
    assert 1e-12 < np.linalg.eigvalsh(W)[0] < 1e-8
    problem = fast_csc.full_problem(W, *fast_csc.pairs_of_labels(known), 5.0)
    eigenvalues, x = fast_csc.full_eigenvectors(*problem, k)
    model = dc.FastCSC(
        k, n_representatives=n, n_neighbors=n_neighbors, neighbors="exact", direction_factor=None, random_state=0
    )
    model.fit(X, known)
    kept = len(model.eigenvalues_)  # the last one is left out where the eigenvalues leap before it
    assert kept == k if eigenvalues[-1] <= 10 * eigenvalues[-2] else kept == k - 1
    np.testing.assert_allclose(model.eigenvalues_, eigenvalues[:kept], rtol=1e-6)
    found, expected = model.transform(X), fast_csc.embedding(x[:, :kept])
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=2e-3)


def components_of_landmarks(rng):
    """Rows and landmarks in three components, a graph whose cut costs nothing; some rows are labelled by components."""
    component = np.repeat([0, 1, 2], N // 3)
    indices = np.array([rng.choice(P // 3, K, replace=False) + c * (P // 3) for c in component], np.int32)
    return indices, rng.uniform(0.1, 1, (N, K)).astype(np.float32), np.where(rng.random(N) < 0.3, component, -1)


@pytest.mark.parametrize("seed", range(4))
def test_components_take_no_digits_from_what_comes_after_them(seed):
    """Two eigenvalues are 0, and the others those of the pencil without these directions, to nearly all digits."""
    indices, weights, labels = components_of_landmarks(np.random.default_rng(seed))
    made = dc.Constraints.from_labels(labels)
    graph = as_graph(indices, weights, 20)
    cut = constrained_cut(project_constraints(graph, on_rows(made, chunks=20)), 6, 5.0)

    must, cannot = fast_csc.pairs_of_labels(labels)
    Zhat = fast_csc.scaled(dense(indices, weights))
    G, g = Zhat.T @ Zhat, Zhat.sum(axis=0)
    left = G - G @ G + 5.0 * Zhat.T @ fast_csc.laplacian(N, must) @ Zhat
    right = Zhat.T @ fast_csc.laplacian(N, cannot) @ Zhat + (G - np.outer(g, g) / N) / N
    free = g[:, None] * np.repeat(np.eye(3), P // 3, axis=0)  # (p, 3), where `left` is 0
    np.testing.assert_allclose(left @ free, 0, atol=1e-12)
    seen = right @ free
    rest = right - seen @ np.linalg.pinv(free.T @ seen, rcond=1e-10) @ seen.T
    basis = scipy.linalg.null_space(free.T)
    mu, z = scipy.linalg.eigh(basis.T @ rest @ basis, basis.T @ left @ basis)
    np.testing.assert_allclose(cut.eigenvalues[:2], 0, atol=1e-9)
    np.testing.assert_allclose(cut.eigenvalues[2:], 1 / mu[::-1][:4], rtol=1e-10)

    y = basis @ z
    y -= free @ np.linalg.pinv(free.T @ seen, rcond=1e-10) @ (seen.T @ y)
    x = (Zhat @ y)[:, ::-1][:, :4]
    found = dense(indices, weights) @ cut.vectors[:, 2:]
    found, x = (values / np.linalg.norm(values - values.mean(axis=0), axis=0) for values in (found, x))
    found, x = found - found.mean(axis=0), x - x.mean(axis=0)
    np.testing.assert_allclose(found * np.sign((found * x).sum(axis=0)), x, atol=1e-7)


def test_eigenvalues_of_very_different_sizes_keep_their_digits():
    rng = np.random.default_rng(0)
    exact = np.array([1e-11, 3e-11, 1e-6, 1.0, 1.1, 3.0, 3.2, 9.0])
    inverse = np.linalg.qr(rng.normal(size=(8, 8)))[0] * rng.uniform(0.5, 2, 8)  # its inverse has the eigenvectors
    left, right = (inverse.T * exact) @ inverse, inverse.T @ inverse
    mu, y = largest_of_pencil(right.copy(), left.copy(), 6)
    np.testing.assert_allclose(1 / mu, exact[:6], rtol=1e-8, atol=1e-13)
    np.testing.assert_allclose(1 / mu[3:], exact[3:6], rtol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(y, axis=0), 1)
    products = inverse @ y
    products /= np.linalg.norm(products, axis=0)
    np.testing.assert_allclose(np.abs(products), np.eye(8, 6), atol=1e-3)
    np.testing.assert_allclose(np.abs(products[:, 3:]), np.eye(8, 6)[:, 3:], atol=1e-9)


def test_more_components_than_directions():
    indices = np.array([[0, 1, -1], [0, 1, -1], [0, 1, -1]], np.int32)
    weights = np.array([[1, 0.5, 0], [1, 1, 0], [0.5, 1, 0]], np.float32)
    graph = as_graph(indices, weights, 3, p=4)
    cut = constrained_cut(project_constraints(graph, on_rows(dc.Constraints.from_labels([0, 0, 1]), 3, 3)), 5, 1.0)
    assert cut.vectors.shape == (4, 1)
    assert (cut.vectors[2:] == 0).all()
    assert cut.n_linked == 2
    alone = as_graph(np.zeros((3, K), np.int32) - np.array([0, 1, 1], np.int32), np.ones((3, K), np.float32), 3, p=2)
    cut = constrained_cut(project_constraints(alone, on_rows(dc.Constraints.from_pairs(), 3)), 2, 1.0)
    assert (cut.n_linked, cut.vectors.tolist()) == (1, [[0.0], [0.0]])
