"""Weighted k-means on projected rows, against the general one on the same points as floats."""

import dask.array as da
import numpy as np
import pytest

from daskcluster.ensemble.incidence import check_base_clusterings, code_labels, scan_labels
from daskcluster.ensemble.projected_kmeans import (
    NearestProjected,
    lloyd_projected,
    lloyd_projected_sample,
    partition_in_projection,
    projected_starts,
)
from daskcluster.ensemble.projection import ProjectedRows, projection_of
from daskcluster.pipeline.kmeans import center_starts
from daskcluster.pipeline.lloyd import lloyd_in_memory
from daskcluster.runtime.threads import one_blas_thread


def project(seed, n_rows=300, n_columns=8, n_components=24, missing=0.0):
    """Codes, their projection, rows, weights, and points as floats; weights differ by a factor of 3 and more."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(4, size=n_rows, p=[0.6, 0.25, 0.1, 0.05])
    shape = (n_rows, n_columns)
    labels = np.where(rng.random(shape) < 0.35, rng.integers(4, size=shape), truth[:, None])
    labels[rng.random(shape) < missing] = -1
    rows = check_base_clusterings(labels)
    book = scan_labels(rows).book
    codes = code_labels(rows, book).compute()
    points = ProjectedRows(book, projection_of(book, n_components, seed, 0), 50.0 * n_columns)
    projected, weights = points(codes), points.weights(codes)
    assert weights.max() > (3 if n_columns == 8 else 1.5) * weights[weights > 0].min()
    return codes, points, projected, weights, points.points(projected, np.where(weights > 0, weights, 1))


@pytest.mark.parametrize("n_columns", [8, 200])
@pytest.mark.parametrize("seed", range(4))
def test_starts_are_those_of_weighted_k_means(seed, n_columns):
    _, points, projected, weights, p = project(seed, n_columns=n_columns)
    expected = center_starts(p, 5, np.random.default_rng(seed), weights / points.mean_weight)
    found = projected_starts(projected, points, weights, 5, np.random.default_rng(seed))
    assert found == pytest.approx(expected, rel=1e-12)
    unweighted = center_starts(p, 5, np.random.default_rng(seed))
    assert not np.array_equal(found, unweighted)


def test_fewer_starts_than_clusters():
    _, points, projected, weights, _ = project(0)
    twice = np.r_[projected[:2], projected[:2]], np.r_[weights[:2], weights[:2]]
    assert len(projected_starts(twice[0], points, twice[1], 4, np.random.default_rng(0))) == 2


@pytest.mark.parametrize("missing", [0.0, 0.6])
@pytest.mark.parametrize("seed", range(3))
def test_lloyd_is_that_of_weighted_k_means(seed, missing):
    codes, points, projected, weights, p = project(seed, missing=missing)
    there = weights > 0
    assert there.all() == (missing == 0.0)
    starts = p[there][:4].copy()
    expected, labels = lloyd_in_memory(p[there], starts, weights[there] / points.mean_weight)
    plain, _ = lloyd_in_memory(p[there], starts)
    assert np.abs(plain.centers - expected.centers).max() > 1e-3
    found = lloyd_projected_sample(projected, weights, points, starts, max_iter=100)
    assert found.centers == pytest.approx(expected.centers, rel=1e-9, abs=1e-9)
    assert found.inertia == pytest.approx(expected.inertia, rel=1e-9)
    assert NearestProjected(points, found.centers)(codes)[there].tolist() == labels.tolist()
    assert (NearestProjected(points, found.centers)(codes)[~there] == -1).all()
    over = lloyd_projected(
        da.from_array(projected, chunks=(110, -1)),
        da.from_array(weights, chunks=110),
        points,
        starts,
        max_iter=100,
        limit=0.0,
        n_clusters=4,
    )
    assert np.array_equal(over.centers, found.centers)  # sums of whole numbers: the same in any blocks
    assert over.inertia == pytest.approx(found.inertia, rel=1e-12)
    assert over.n_iter == found.n_iter


def test_passes_do_not_project(monkeypatch):
    _, points, projected, weights, p = project(0)
    monkeypatch.setattr(ProjectedRows, "__call__", lambda *given: 1 / 0)
    held = da.from_array(projected, chunks=(110, -1)), da.from_array(weights, chunks=110)
    assert lloyd_projected(*held, points, p[:4].copy(), max_iter=9, limit=0.0, n_clusters=4).n_iter > 1


def test_centers_of_a_partition_are_weighted_means():
    _, points, projected, weights, p = project(1)
    labels = (np.arange(300) % 3).astype(np.int32)
    found = partition_in_projection(projected, weights, points, labels, 4)
    for c in range(3):
        assert found[c] == pytest.approx(np.average(p[labels == c], axis=0, weights=weights[labels == c]))
    assert (found[3] == 0).all()


def test_an_empty_cluster_moves_to_the_farthest_row_by_weight():
    _, points, projected, weights, p = project(2)
    starts = np.vstack([p[:2], np.full(24, 1e3)])
    expected, _ = lloyd_in_memory(p, starts, weights / points.mean_weight)
    found = lloyd_projected_sample(projected, weights, points, starts, max_iter=100)
    assert len(found.centers) == 3
    assert found.centers == pytest.approx(expected.centers, rel=1e-9, abs=1e-9)
    wanted = lloyd_projected_sample(projected, weights, points, p[:2], max_iter=100, n_clusters=5)
    assert len(wanted.centers) == 5


def test_a_row_gets_the_same_label_in_any_company():
    codes, points, _, _, p = project(3, n_rows=5000)
    nearest = NearestProjected(points, p[:40].copy())
    with one_blas_thread():
        every = nearest(codes)
        assert nearest(codes[::-1])[::-1].tolist() == every.tolist()
        assert np.concatenate([nearest(codes[i : i + 1]) for i in range(100)]).tolist() == every[:100].tolist()
        assert nearest(codes[1234:3777]).tolist() == every[1234:3777].tolist()


def test_equal_centers_are_told_apart_by_their_bytes_not_their_numbers():
    codes, points, _, _, p = project(0)
    centers = p[:6].copy()
    order = np.array([3, 1, 5, 0, 2, 4])
    one, other = NearestProjected(points, centers)(codes), NearestProjected(points, centers[order])(codes)
    assert order[other].tolist() == one.tolist()
