"""Centres of a consensus by its normalized cut: the best of several starts, and clusters joined of finer ones."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import dask.array as da
import numpy as np
import pytest

from daskcluster.ensemble import cut_centers
from daskcluster.ensemble.cut_centers import CutCenters, cluster_means, finer_number, join_clusters, normalized_cut
from daskcluster.ensemble.incidence import LabelCoder, check_base_clusterings, incidence_graph, scan_labels
from daskcluster.pipeline.cut import cut_small_graph, small_affinity
from daskcluster.pipeline.lift import LiftedRows

#: Four clusters of rows, each of which three pieces of every base clustering make up.
N_CLUSTERS, ROWS, PIECES = 4, 60, 3


def pieces(seed=0, m=8):
    """Base clusterings (n, m), the true clusters, and the finest pieces that are the same in half of them."""
    rng = np.random.default_rng(seed)
    true = np.repeat(np.arange(N_CLUSTERS), ROWS)
    place = np.tile(np.arange(ROWS) / ROWS, N_CLUSTERS)
    labels = np.empty((len(true), m), np.int64)
    for j in range(m):
        for c in range(N_CLUSTERS):
            cuts = np.sort(rng.uniform(0.1, 0.9, PIECES - 1))
            labels[true == c, j] = PIECES * c + np.searchsorted(cuts, place[true == c])
    return labels, true, place


def counts_of(labels, clusters, n_clusters):
    columns = []
    for column in labels.T:
        for value in np.unique(column[column >= 0]):
            columns.append(np.bincount(clusters[column == value], minlength=n_clusters))
    return np.array(columns, float)


def dense_cut(labels, clusters, weights):
    """The normalized cut of the rows' own graph, as it is defined."""
    B = np.concatenate([column[:, None] == np.unique(column[column >= 0]) for column in labels.T], axis=1) * 1.0
    S = (B * weights / B.sum(axis=0)) @ B.T
    return sum(
        S[np.ix_(clusters == c, clusters != c)].sum() / S[clusters == c].sum() for c in np.unique(clusters).tolist()
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_the_cut_is_that_of_the_rows(weighted):
    rng = np.random.default_rng(1)
    labels, clusters = rng.integers(-1, 5, (50, 6)), rng.integers(0, 3, 50)
    counts = counts_of(labels, clusters, 3)
    weights = rng.uniform(0.1, 1, len(counts)) if weighted else np.ones(len(counts))
    assert normalized_cut(counts, weights) == pytest.approx(dense_cut(labels, clusters, weights), abs=1e-12)


def test_the_pair_is_joined_that_costs_least():
    """Five clusters, of which the cut of the rows says which two to join, twice."""
    rng = np.random.default_rng(2)
    labels, clusters = rng.integers(0, 6, (80, 7)), rng.integers(0, 5, 80)
    labels[:, :3] = np.where(rng.random((80, 3)) < 0.7, clusters[:, None], labels[:, :3])
    counts = counts_of(labels, clusters, 5)
    weights, wanted = np.ones(len(counts)), clusters
    for _ in range(2):
        names = np.unique(wanted)
        pairs = [(a, b) for a in names for b in names if a < b]
        first, second = min(
            pairs, key=lambda pair: dense_cut(labels, np.where(wanted == pair[1], pair[0], wanted), weights)
        )
        wanted = np.where(wanted == second, first, wanted)
    found = join_clusters(counts, weights, 3)[clusters]
    assert sorted(set(found.tolist())) == [0, 1, 2]
    assert len({*zip(found.tolist(), wanted.tolist(), strict=True)}) == 3


def placer(labels, n_init=2):
    book = scan_labels(check_base_clusterings(labels)).book
    codes = LabelCoder(book)(labels)
    graph = incidence_graph(da.from_array(codes, chunks=(50, -1)), book)
    cut = cut_small_graph(small_affinity(graph), finer_number(N_CLUSTERS), None, N_CLUSTERS)
    points, finer = LiftedRows(graph.edges_of, cut.vectors[:, :N_CLUSTERS]), LiftedRows(graph.edges_of, cut.vectors)
    weights = np.ones(book.n_base_clusters)
    options = (N_CLUSTERS, n_init, 100, 0)
    return codes, CutCenters(book.offsets, weights, points, finer, cut.eigenvalues[:N_CLUSTERS], *options)


def same_partition(a, b):
    return len({*zip(a.tolist(), b.tolist(), strict=True)}) == len({*a.tolist()}) == len({*b.tolist()})


def test_centres_of_a_far_worse_cut_are_exchanged(monkeypatch):
    labels, true, place = pieces()
    codes, place_by_cut = placer(labels)
    values = place_by_cut.points(codes)[0]
    # Two clusters in one, and another one in halves.
    wrong = np.where(true == 1, 0, true)
    wrong[(true == 3) & (place > 0.5)] = 1
    centers = place_by_cut.exchanged(codes, cluster_means(values, wrong))
    found = ((values[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert same_partition(found, true)

    # The right ones stay what they are, without a look at finer clusters: no cut can be better.
    right = cluster_means(values, true)
    monkeypatch.setattr(cut_centers, "join_clusters", partial(pytest.fail, "was called"))
    assert place_by_cut.exchanged(codes, right) is right


def test_centres_of_a_cut_that_is_hardly_worse_stay():
    labels, true, place = pieces(seed=3)
    codes, place_by_cut = placer(labels)
    values = place_by_cut.points(codes)[0]
    nearly = true.copy()
    nearly[(true == 3) & (place > 0.95)] = 2
    centers = cluster_means(values, nearly)
    np.testing.assert_array_equal(place_by_cut.exchanged(codes, centers), centers)


def test_of_several_starts_the_smallest_cut_is_taken(monkeypatch):
    """And not the smallest sum of squares."""
    labels, true, place = pieces(seed=5)
    codes, place_by_cut = placer(labels)
    values = place_by_cut.points(codes)[0]
    worse, cut_in_two = true.copy(), np.where(true == 1, 0, true)
    worse[(true == 3) & (place > 0.9)] = 2
    cut_in_two[(true == 3) & (place > 0.5)] = 1
    tries = [cut_in_two, worse, cut_in_two, worse, worse, true, worse, cut_in_two]
    starts = iter(cluster_means(values, labels) for labels in tries)
    monkeypatch.setattr(cut_centers, "center_starts", lambda *given: next(starts))
    monkeypatch.setattr(
        cut_centers, "lloyd_in_memory", lambda values, start, **more: (found(start), nearest(values, start))
    )
    assert same_partition(nearest(values, place_by_cut(codes)), true)
    assert next(starts, None) is None


def nearest(values, centers):
    return ((values[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1).astype(np.int32)


def found(centers):
    return SimpleNamespace(centers=centers, inertia=0.0)
