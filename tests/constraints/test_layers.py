"""Layers, exact and sampled, against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

import daskcluster as dc
from daskcluster.constraints import embedding, layers
from daskcluster.constraints.embedding import leading_eigenvectors, multilayer_embedding
from daskcluster.constraints.layers import affinity_layer, constraint_layers
from daskcluster.constraints.sampled import embed_rows, sample_layers
from daskcluster.io.inputs import check_rows
from daskcluster.pipeline.scan import scan
from tests.reference import csp_ml

N, K, GAMMA, ALPHA = 60, 3, 0.4, 0.3
RNG = np.random.default_rng(0)
ROWS = np.concatenate([RNG.normal(center, 0.8, (20, 2)) for center in ([0, 0], [3, 0], [0, 3])])
TRUTH = np.repeat(np.arange(3), 20)
KNOWN = np.where(RNG.random(N) < 0.4, TRUTH, -1)
CONFIDENCE = RNG.uniform(0.3, 1, N).astype(np.float32)


def kinds():
    confidence = CONFIDENCE.astype(float)
    hard, soft = dc.Constraints.from_labels(KNOWN), dc.Constraints.from_labels(KNOWN, weight=CONFIDENCE)
    links = {
        "labels": (hard, lambda i, j: 1.0),
        "soft labels": (soft, lambda i, j: confidence[i] * confidence[j]),
    }
    found = {}
    for name, (made, weight) in links.items():
        pairs = [(i, j) for i in range(N) for j in range(i) if KNOWN[i] >= 0 and KNOWN[j] >= 0]
        must = [(i, j, weight(i, j)) for i, j in pairs if KNOWN[i] == KNOWN[j]]
        cannot = [(i, j, weight(i, j)) for i, j in pairs if KNOWN[i] != KNOWN[j]]
        found[name] = (made, must, cannot)
    must, cannot = [(0, 1, 0.7), (1, 5, 1.0), (30, 33, 1.0)], [(0, 59, 1.0), (2, 40, 0.4)]
    for name, a, b in (("pairs", must, cannot), ("must", must, []), ("cannot", [], cannot), ("none", [], [])):
        made = dc.Constraints.from_pairs(
            *([(i, j) for i, j, _ in x] for x in (a, b)), *([w for _, _, w in x] or None for x in (a, b))
        )
        found[name] = (made, a, b)
    return found


KINDS = kinds()
BLOCK_ROWS = 16


@pytest.fixture
def small_tiles(small_blocks, monkeypatch):
    monkeypatch.setattr(layers, "TILE_ROWS", 5)


def same_up_to_signs(found, expected, **tolerance):
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, **tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_layers_are_applied_as_the_dense_matrices(kind):
    made, must, cannot = KINDS[kind]
    found = [affinity_layer(ROWS, GAMMA), *constraint_layers(made.on_rows(check_rows(ROWS)), N)]
    W = [layer for layer in csp_ml.layers(ROWS, must, cannot, GAMMA) if layer.any()]
    assert len(found) == len(W)
    for layer, matrix in zip(found, W, strict=True):
        np.testing.assert_allclose(layer.apply(np.eye(N)), matrix, atol=1e-7)
        np.testing.assert_allclose(layer.degrees, matrix.sum(axis=1), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_embedding_of_the_multilayer_graph(kind):
    made, must, cannot = KINDS[kind]
    W = csp_ml.layers(ROWS, must, cannot, GAMMA)
    values, expected = csp_ml.csp_ml(W, K, ALPHA)
    found, eigenvalues = multilayer_embedding(
        [affinity_layer(ROWS, GAMMA), *constraint_layers(made.on_rows(check_rows(ROWS)), N)], K, ALPHA
    )
    np.testing.assert_allclose(eigenvalues, 3 - values, rtol=1e-6)
    same_up_to_signs(found, expected, atol=1e-4)


@pytest.mark.parametrize("n_sampled", [60, 12, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_sampled_layers(kind, n_sampled, small_tiles):
    made, must, cannot = KINDS[kind]
    rows = check_rows(ROWS)
    found = scan(rows, N, np.random.default_rng(0))
    at = np.sort(np.random.default_rng(1).choice(N, n_sampled, replace=False))
    known = made.on_rows(rows)
    sampled, eigenvalues = sample_layers(rows, found.form, ROWS[at], at, N, known, GAMMA, K, ALPHA)
    values, expected = csp_ml.fast_csp_ml(csp_ml.layers(ROWS, must, cannot, GAMMA), at, K, ALPHA)
    if not len(values):  # one column of zero diagonal has no positive eigenvalue
        assert eigenvalues.tolist() == [0.0]
        return
    np.testing.assert_allclose(eigenvalues, values, rtol=1e-6)
    same_up_to_signs(np.asarray(embed_rows(rows, sampled, known)), expected, atol=1e-4)


def test_all_columns_give_the_exact_method():
    made, _, _ = KINDS["labels"]
    rows = check_rows(ROWS)
    known = made.on_rows(rows)
    exact, values = multilayer_embedding([affinity_layer(ROWS, GAMMA), *constraint_layers(known, N)], K, ALPHA)
    form = scan(rows, N, np.random.default_rng(0)).form
    sampled, sampled_values = sample_layers(rows, form, ROWS, np.arange(N), N, known, GAMMA, K, ALPHA)
    np.testing.assert_allclose(sampled_values, values, rtol=1e-7)
    same_up_to_signs(np.asarray(embed_rows(rows, sampled, known)), exact, atol=1e-5)


def test_iteration_finds_equal_eigenvalues(monkeypatch):
    monkeypatch.setattr(embedding, "FORMED_ROWS", 10)
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(300, 300)))[0]
    spectrum = np.concatenate([[2.0, 1.0, 1.0, 1.0, 0.9], rng.uniform(-1, 0.7, 295)])
    matrix = (Q * spectrum) @ Q.T
    values, vectors = leading_eigenvectors(lambda V: matrix @ V, 300, 5, 0)
    np.testing.assert_allclose(values, spectrum[:5], atol=1e-10)
    np.testing.assert_allclose(vectors @ vectors.T, Q[:, :5] @ Q[:, :5].T, atol=1e-6)
    again = leading_eigenvectors(lambda V: matrix @ V, 300, 5, 0)
    np.testing.assert_array_equal(again[1], vectors)


def test_iteration_and_formed_matrix_agree(monkeypatch):
    made, _, _ = KINDS["labels"]
    graph = [affinity_layer(ROWS, GAMMA), *constraint_layers(made.on_rows(check_rows(ROWS)), N)]
    formed = multilayer_embedding(graph, K, ALPHA)  # as many as classes: with fewer the subspaces are open
    monkeypatch.setattr(embedding, "FORMED_ROWS", 10)
    monkeypatch.setattr(embedding, "KRYLOV_STEPS", 2)
    iterated = multilayer_embedding(graph, K, ALPHA)
    np.testing.assert_allclose(iterated[1], formed[1], rtol=1e-8)
    same_up_to_signs(iterated[0], formed[0], atol=1e-5)
