"""Labels of rows by the nearest centre in their embedding."""

import pickle

import numpy as np
import pytest

from daskcluster.pipeline import lift
from daskcluster.pipeline.bipartite import pack_edges, unpack_edges
from daskcluster.pipeline.lift import LiftedLabels, LinkedRows

NUMBERS, WIDTHS = (3, 37, 20, 40), (5, 17, 3, 23)  # both ways


def example(n_rows=500, p=60, q=23, n_neighbors=4, missing=(), seed=0):
    """Edges, the embedding of their rows, and centres of several clusterings of its first columns."""
    rng = np.random.default_rng(seed)
    indices = np.array([rng.choice(p, n_neighbors, replace=False) for _ in range(n_rows)], np.int32)
    indices[list(missing)] = -1
    edges = pack_edges(indices, rng.random((n_rows, n_neighbors), np.float32) + np.float32(0.1))
    points = LinkedRows(unpack_edges, rng.normal(size=(p, q)))
    centers = []
    for number, width in zip(NUMBERS, WIDTHS, strict=True):
        rows = np.abs(rng.normal(size=(number, width)))
        centers.append(rows / np.linalg.norm(rows, axis=1)[:, None] * rng.uniform(0.5, 1, (number, 1)))
    return edges, points, centers


def distances(edges, points, centers):
    """Squared distances of the rows, scaled to unit length in the columns of the centres, in float64."""
    indices, weights = unpack_edges(edges)
    lifted = np.einsum("ij,ijk->ik", weights.astype(np.float64), points.vectors.astype(np.float64)[indices])
    lifted = lifted[:, : centers.shape[1]]
    lifted /= np.linalg.norm(lifted, axis=1)[:, None]
    return ((lifted[:, None] - centers) ** 2).sum(axis=2)


def test_labels_are_those_of_the_nearest_centers():
    edges, points, centers = example()
    labels = LiftedLabels(points, centers, np.int8)(edges)
    assert labels.shape == (500, 4)
    assert labels.dtype == np.int8
    for j, own in enumerate(centers):
        exact = distances(edges, points, own)
        assert np.take_along_axis(exact, labels[:, [j]].astype(int), axis=1)[:, 0] == pytest.approx(
            exact.min(axis=1), abs=1e-5
        )
        assert (labels[:, j] == exact.argmin(axis=1)).mean() > 0.998


def test_a_clustering_does_not_depend_on_those_beside_it():
    edges, points, centers = example(missing=(0, 7, 499))
    together = LiftedLabels(points, centers)(edges)
    for j, own in enumerate(centers):
        narrow = LinkedRows(unpack_edges, points.vectors[:, : own.shape[1]].astype(np.float64))
        assert np.array_equal(narrow.nearest_centers(own).labels(edges), together[:, j])
    assert (together[[0, 7, 499]] == -1).all()
    assert (np.delete(together, [0, 7, 499], axis=0) >= 0).all()


def test_labels_and_embedding_belong_together():
    edges, points, centers = example(missing=(0, 3))
    wide = centers[3]
    values, rows, labels = points.nearest_centers(wide).assign(edges)
    embedded, numbers = points(edges)
    assert np.array_equal(values, embedded)
    assert np.array_equal(rows, numbers)
    assert np.array_equal(labels, points.nearest_centers(wide).labels(edges)[rows])


@pytest.mark.parametrize("apart", [0.0, 0.3, 3.0])
def test_labels_of_which_all_vertices_are_sure_are_those_of_the_products(apart, monkeypatch):
    """Vertices in groups, of which edges mostly stay in one: nothing is computed for these rows, nor differs."""
    rng = np.random.default_rng(int(10 * apart))
    group = np.sort(rng.integers(6, size=60))
    points = LinkedRows(unpack_edges, apart * rng.normal(size=(6, 23))[group] + rng.normal(size=(60, 23)))
    first = rng.integers(60, size=2000)
    indices = np.stack([first, *((first + rng.integers(-3, 4, size=2000)).clip(0, 59) for _ in "abc")], axis=1)
    edges = pack_edges(indices.astype(np.int32), rng.random((2000, 4), np.float32))
    lengths = np.linalg.norm(points.vectors, axis=1)[:, None]
    centers = [(points.vectors[:, :23] / lengths)[rng.choice(60, k, replace=False)] * 0.9 for k in (20, 30)]
    found = LiftedLabels(points, centers)
    labels = found(edges)
    sure = found._tables[-1][indices]
    known = ((sure >= 0) & (sure == sure[:, :1])).all(axis=1).mean()
    assert 0 < known < 1
    monkeypatch.setattr(lift, "sure_centers", lambda products, half, lengths: np.full(len(products), -1))
    assert np.array_equal(labels, LiftedLabels(points, centers)(edges))


def test_ties_do_not_depend_on_the_order_of_the_centers():
    edges, points, centers = example()
    twice = np.concatenate([centers[0], centers[0][::-1]])
    found = points.nearest_centers(np.pad(twice, ((0, 0), (0, 18)))).labels(edges)
    order = np.random.default_rng(1).permutation(6)
    shuffled = points.nearest_centers(np.pad(twice[order], ((0, 0), (0, 18)))).labels(edges)
    assert np.array_equal(twice[found], twice[order][shuffled])


def test_rows_without_a_place_in_the_cut():
    """All of their right vertices are left out: the centre nearest to nowhere, as for a row of zeros."""
    vectors = np.zeros((3, 2))
    vectors[0] = 1, 0
    points = LinkedRows(unpack_edges, vectors)
    edges = pack_edges(np.array([[0, 1], [1, 2]], np.int32), np.ones((2, 2), np.float32))
    centers = np.array([[0.0, 0.25], [1.0, 0.0]])
    assert points.nearest_centers(centers).labels(edges).tolist() == [1, 0]


def test_one_center_and_tiny_weights():
    edges, points, centers = example(n_rows=20)
    indices, weights = unpack_edges(edges)
    tiny = pack_edges(indices, weights * np.float32(1e-37))
    assert np.array_equal(LiftedLabels(points, centers)(tiny), LiftedLabels(points, centers)(edges))
    assert not points.nearest_centers(centers[3][:1]).labels(edges).any()


def test_a_pickled_one_is_small_and_labels_alike():
    edges, points, centers = example()
    labels = LiftedLabels(LinkedRows(unpack_edges, points.vectors.astype(np.float64)), centers, np.int16)
    before = len(pickle.dumps(labels))
    expected = labels(edges)
    assert len(pickle.dumps(labels)) == before
    assert np.array_equal(pickle.loads(pickle.dumps(labels))(edges), expected)


def test_right_vertices_have_the_places_of_rows_with_one_edge_and_the_mass_of_all_shares():
    edges, points, _ = example(n_rows=50, p=70, missing=(0, 49))
    places, masses = points.right_points(edges)
    indices, weights = unpack_edges(edges)
    expected = np.zeros(70)
    for own, shares in zip(indices, weights.astype(float), strict=True):
        for vertex, share in zip(own, shares, strict=True):
            if vertex >= 0:
                expected[vertex] += share / shares.sum()
    linked = np.flatnonzero(expected)
    assert masses == pytest.approx(expected[linked])
    assert masses.sum() == pytest.approx(48)
    one_edge = pack_edges(linked[:, None].astype(np.int32), np.full((len(linked), 1), 0.3, np.float32))
    assert places == pytest.approx(points(one_edge)[0], abs=1e-6)


def test_right_vertices_that_are_left_out_of_the_cut_have_no_mass():
    edges, points, _ = example(n_rows=50, p=10)
    vectors = points.vectors[:, :23].astype(float)
    vectors[3] = 0
    places, masses = LinkedRows(unpack_edges, vectors).right_points(edges)
    assert len(places) == len(masses) == 9
    assert masses.sum() == pytest.approx(50)
    assert np.linalg.norm(places, axis=1) == pytest.approx(np.ones(9), abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_rows_have_the_centre_of_which_all_their_vertices_are_sure(seed):
    """Whatever the weights, with centres and vectors of very different lengths."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(200, 3)) * rng.uniform(0.1, 3, (200, 1))
    centers = rng.normal(size=(6, 3)) * rng.uniform(0.1, 2, (6, 1))
    half = 0.5 * (centers**2).sum(axis=1)
    sure = lift.sure_centers(vectors @ centers.T, half, np.linalg.norm(vectors, axis=1))
    checked = 0
    for center in range(6):
        own = vectors[sure == center]
        if len(own):
            shares = rng.dirichlet(np.ones(3), size=300)
            rows = np.einsum("ij,ijk->ik", shares, own[rng.integers(len(own), size=(300, 3))])
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            nearest = ((rows[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
            assert (nearest == center).all()
            checked += 1
    assert checked >= 2
