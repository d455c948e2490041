"""Stage 5: labels of an embedding; and all stages together against the paper in plain loops."""

import warnings
from itertools import chain

import dask.array as da
import numpy as np
import pytest
from hypothesis import example, given, settings
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

import daskcluster as dc
from daskcluster.errors import FewerClustersWarning
from daskcluster.io.inputs import check_rows
from daskcluster.pipeline import discretize as discretize_module
from daskcluster.pipeline import lloyd as lloyd_module
from daskcluster.pipeline.affinity import affinity_graph, distance_sum, mean_distance
from daskcluster.pipeline.bipartite import pack_edges, unpack_edges
from daskcluster.pipeline.cut import transfer_cut
from daskcluster.pipeline.discretize import MANY_CLUSTERS, assign_labels, discretize, starting_points, warn_fewer
from daskcluster.pipeline.lift import LiftedRows, LinkedRows
from daskcluster.pipeline.lloyd import nearest_centers
from daskcluster.pipeline.neighbors import index_representatives, nearest_representatives
from daskcluster.pipeline.rows import RowForm
from daskcluster.runtime.execution import map_to_objects, objects_of
from tests.reference import lloyd, uspec
from tests.strategies import chunkings

BLOCK_ROWS = 32
pytestmark = pytest.mark.usefixtures("small_blocks")

N_ROWS = 200


def finite_points(block):
    """Rows of the block that take part, as an embedding would give them."""
    rows = np.flatnonzero(np.isfinite(block[:, 0]))
    return block[rows], None if len(rows) == len(block) else rows


def draw_embedding(seed=0, n_clusters=4):
    return make_blobs(N_ROWS, 3, centers=n_clusters, cluster_std=0.3, random_state=seed)[0].astype(np.float32)


def blocks_of(points, lengths=None):
    lazy = points if lengths is None else da.from_array(points, chunks=(lengths, (points.shape[1],)))
    return check_rows(lazy, "label").blocks


# -- labels of an embedding


@given(lengths=chunkings(N_ROWS))
@example(lengths=(1,) * N_ROWS)
@example(lengths=(0, 150, 0, 50))
@settings(max_examples=4)
def test_labels_do_not_depend_on_chunks(lengths):
    points = np.random.default_rng(0).normal(size=(N_ROWS, 3)).astype(np.float32)  # no clear clusters
    points[60] = np.nan
    expected = discretize(blocks_of(points), finite_points, points[:50], 5)
    found = discretize(blocks_of(points, lengths), finite_points, points[:50], 5)
    assert found.centers.tobytes() == expected.centers.tobytes()
    assert (found.inertia, found.n_iter) == (expected.inertia, expected.n_iter)
    labels = assign_labels(blocks_of(points, lengths), finite_points, found.centers)
    assert labels.chunks == ((32,) * 6 + (8,),)
    assert labels.dtype == np.int32
    assert np.array_equal(labels.compute(), nearest_centers(finite_points, expected.centers).labels(points))


def test_a_label_is_that_of_the_nearest_centre():
    points = draw_embedding()
    found = discretize(blocks_of(points), finite_points, points, 4)
    labels = assign_labels(blocks_of(points), finite_points, found.centers).compute()
    assert labels.tolist() == lloyd.assign(points, found.centers)
    assert found.inertia == pytest.approx(lloyd.inertia(points, np.ones(N_ROWS), found.centers, labels))


@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_found_and_numbered_by_their_first_row(seed):
    points, truth = make_blobs(N_ROWS, 3, centers=5, cluster_std=0.1, random_state=seed)
    found = discretize(blocks_of(points), finite_points, points[:60], 5, seed=seed)
    labels = assign_labels(blocks_of(points), finite_points, found.centers).compute()
    assert adjusted_rand_score(truth, labels) == 1
    assert (np.diff([labels.tolist().index(label) for label in range(5)]) > 0).all()


def test_rows_that_take_no_part_have_the_label_minus_1():
    points = draw_embedding()
    missing = np.array([0, 31, 32, 199])
    points[missing] = np.nan
    points[64:96] = np.nan  # a whole block
    found = discretize(blocks_of(points), finite_points, points[np.isfinite(points[:, 0])], 4)
    labels = assign_labels(blocks_of(points), finite_points, found.centers).compute()
    assert ((labels == -1) == np.isnan(points[:, 0])).all()
    assert set(labels) == {-1, 0, 1, 2, 3}


def test_the_best_of_several_starts_goes_on(monkeypatch):
    """The starts are on the sample; one of them alone goes over all rows."""
    points = np.random.default_rng(1).normal(size=(N_ROWS, 3)).astype(np.float32)
    inertias, passed = [], []
    in_memory, over_blocks = lloyd_module.lloyd_in_memory, discretize_module.lloyd_over_blocks

    def watch_sample(*arguments, **options):
        found = in_memory(*arguments, **options)
        inertias.append((found[0].inertia, found[0].centers))
        return found

    def watch_passes(held, points, centers, **options):
        passed.append(centers)
        return over_blocks(held, points, centers, **options)

    monkeypatch.setattr(lloyd_module, "lloyd_in_memory", watch_sample)
    monkeypatch.setattr(discretize_module, "lloyd_over_blocks", watch_passes)
    discretize(blocks_of(points), finite_points, points, 9, n_init=6)
    assert len(inertias) == 6
    assert len({round(inertia, 6) for inertia, _ in inertias}) > 1
    (best,) = passed
    assert np.array_equal(best, min(inertias, key=lambda pair: pair[0])[1])


def test_equal_seeds_give_equal_centres():
    points = np.random.default_rng(0).normal(size=(N_ROWS, 3)).astype(np.float32)
    one, two, other = (discretize(blocks_of(points), finite_points, points, 6, n_init=1, seed=s) for s in (1, 1, 2))
    assert np.array_equal(one.centers, two.centers)
    assert not np.array_equal(one.centers, other.centers)


def test_passes_over_all_rows_are_limited():
    points = np.random.default_rng(0).normal(size=(N_ROWS, 3)).astype(np.float32)
    for max_iter in (1, 3):
        assert discretize(blocks_of(points), finite_points, points[:20], 6, max_iter=max_iter).n_iter <= max_iter
    assert discretize(blocks_of(points), finite_points, points[:20], 6).n_iter > 3


# -- many clusters

MANY = MANY_CLUSTERS


def draw_linked(n_rows, seed=0):
    """Edges of rows to 3 of the 5 representatives of their cluster, a few to another one; and the clusters."""
    rng = np.random.default_rng(seed)
    sizes = np.linspace(1, 30, MANY)
    truth = rng.choice(MANY, n_rows, p=sizes / sizes.sum())
    truth[:MANY] = np.arange(MANY)
    indices = 5 * truth[:, None] + np.array([rng.choice(5, 3, replace=False) for _ in range(n_rows)])
    indices[::17, 0] = rng.integers(0, 5 * MANY, len(indices[::17]))
    places = np.repeat(np.linalg.qr(rng.normal(size=(MANY, MANY)))[0], 5, axis=0)
    places += 0.02 * rng.normal(size=places.shape)
    weights = rng.uniform(0.2, 1, (n_rows, 3)).astype(np.float32)
    weights[:, 0] *= 0.2
    return pack_edges(indices.astype(np.int32), weights), LinkedRows(unpack_edges, places), truth


@pytest.mark.parametrize("seed", range(3))
def test_many_clusters_start_on_the_representatives(seed):
    """Few rows are drawn, and the clusters are there all the same; `n_init` starts, none of them on rows."""
    edges, points, truth = draw_linked(900, seed)
    begin, weights = starting_points(points, edges[:500], MANY)
    assert 5 * MANY - 10 < len(begin) <= 5 * MANY
    assert weights.sum() == pytest.approx(500)
    found = discretize(blocks_of(edges), points, edges[:500], MANY, n_init=2, seed=seed)
    labels = assign_labels(blocks_of(edges), points, found.centers).compute()
    assert adjusted_rand_score(truth, labels) > 0.99
    rows = points(edges)[0]
    assert found.inertia == pytest.approx(lloyd.inertia(rows, np.ones(len(rows)), found.centers, labels), rel=1e-5)


def test_few_clusters_start_on_rows():
    edges, points, _ = draw_linked(100)
    begin, weights = starting_points(points, edges, MANY - 1)
    assert np.array_equal(begin, points(edges)[0])
    assert len(weights) == 0


def test_fewer_representatives_than_clusters_are_filled_up_with_rows():
    """A start has as many centres as there are representatives; the others begin at far rows."""
    edges, points, _ = draw_linked(600)
    found = discretize(blocks_of(edges), points, edges[:300], 5 * MANY + 7)
    assert 5 * MANY < len(found.centers) <= 5 * MANY + 7


@given(lengths=chunkings(N_ROWS))
@example(lengths=(1,) * N_ROWS)
@settings(max_examples=2)
def test_many_clusters_do_not_depend_on_chunks(lengths):
    edges, points, _ = draw_linked(N_ROWS)
    expected = discretize(blocks_of(edges), points, edges[:150], MANY)
    found = discretize(blocks_of(edges, lengths), points, edges[:150], MANY)
    assert found.centers.tobytes() == expected.centers.tobytes()
    assert (found.inertia, found.n_iter) == (expected.inertia, expected.n_iter)


def test_fewer_distinct_points_than_clusters():
    points = np.repeat(np.eye(3, dtype=np.float32), [100, 60, 40], axis=0)
    found = discretize(blocks_of(points), finite_points, points, 5)
    assert found.centers.tolist() == np.eye(3).tolist()
    assert found.inertia == 0


def test_fewer_clusters_are_one_warning():
    with pytest.warns(FewerClustersWarning, match="USPEC found 3 clusters, not n_clusters=5") as caught:
        warn_fewer(dc.USPEC(5), 3, 5)
    assert len(caught) == 1
    X = np.repeat(np.eye(3), 20, axis=0)
    with pytest.warns(FewerClustersWarning, match="USPEC found 3 clusters, not n_clusters=5") as caught:
        model = dc.USPEC(5, random_state=0).fit(X)
    assert len(caught) == 1
    assert model.n_clusters_ == 3
    assert model.labels_.tolist() == [0] * 20 + [1] * 20 + [2] * 20


# -- all stages


def embed_by_stages(X, representatives, n_neighbors, k, neighborhood):
    """Stages 2 to 4 on given representatives: held blocks, the function that embeds them, sigma, and the index."""
    rows = check_rows(X)
    form = RowForm(np.zeros(2), 1.0, False)
    index = index_representatives(representatives, form, X.dtype, n_neighbors, neighborhood=neighborhood)
    nearest = nearest_representatives(rows, index, n_neighbors)

    def sums(block, number):
        return distance_sum(block)

    sigma = mean_distance(objects_of(map_to_objects(sums, nearest, name="dc-sum")))
    graph = affinity_graph(nearest, sigma, representatives)
    found = transfer_cut(graph, k)
    return nearest, LiftedRows(graph.edges_of, found.vectors), sigma, found, index


@pytest.mark.parametrize("neighborhood", [8, 99], ids=["approximate", "exact"])
def test_all_stages_agree_with_the_paper_in_plain_loops(neighborhood):
    """Two moons from given representatives: sigma, eigenvalues, embedding and labels."""
    X, truth = make_moons(180, noise=0.04, random_state=0)
    representatives = X[::5] + 0.001
    held, points, sigma, found, index = embed_by_stages(X, representatives, 4, 2, neighborhood)
    rep_clusters, n_candidates = None, None
    if neighborhood == 8:
        assert not index.exact
        padded = [members[:size].tolist() for size, members in zip(index.sizes, index.members, strict=True)]
        rep_clusters = [[m for j, m in enumerate(names) if j == 0 or m != 0] for names in padded]
        assert sorted(chain(*rep_clusters)) == list(range(36))
        n_candidates = 8
    embedding, eigenvalues, expected_sigma = uspec.embed(X, representatives, 4, 2, rep_clusters, n_candidates)
    assert sigma == pytest.approx(expected_sigma, rel=1e-6)
    assert found.eigenvalues == pytest.approx(eigenvalues, abs=1e-6)
    ours = points(held.compute())[0]
    signs = np.sign((ours * embedding).sum(axis=0))
    assert ours == pytest.approx(embedding * signs, abs=1e-3)

    uniforms = np.random.default_rng(0).random((2, 2))
    expected = uspec.uspec(X, representatives, 4, 2, uniforms, rep_clusters, n_candidates)
    centers = discretize(held, points, held.compute(), 2).centers
    labels = assign_labels(held, points, centers).compute()
    assert adjusted_rand_score(expected, labels) == 1
    assert adjusted_rand_score(truth, labels) == 1


@given(lengths=chunkings(N_ROWS))
@example(lengths=(1,) * N_ROWS)
@example(lengths=(0, 150, 0, 50))
@settings(max_examples=6)
def test_a_whole_fit_does_not_depend_on_chunks(lengths):
    X = np.random.default_rng(0).normal(size=(N_ROWS, 2)).astype(np.float32)
    X[70] = np.nan
    model = dc.USPEC(4, n_representatives=30, n_neighbors=3, missing="label", random_state=0)
    expected = model.fit(X)
    attributes = [expected.representatives_, expected.eigenvalues_, expected.cluster_centers_, expected.bandwidth_]
    labels = expected.labels_
    found = model.fit(da.from_array(X, chunks=(lengths, (1, 1))))
    others = [found.representatives_, found.eigenvalues_, found.cluster_centers_, found.bandwidth_]
    assert [np.asarray(a).tobytes() for a in attributes] == [np.asarray(b).tobytes() for b in others]
    assert np.array_equal(found.labels_.compute(), labels)


@pytest.mark.parametrize("move", [lambda X: X * 2.0**20, lambda X: X * 2.0**-20, lambda X: X + 4096])
def test_shifting_and_scaling_do_not_change_the_partition(move):
    """Of lattice points, whose moved values are exact: equal labels, and a bandwidth in the units of the input."""
    X = np.random.default_rng(1).integers(-40, 40, size=(N_ROWS, 2)).astype(np.float64) / 8
    model = dc.USPEC(4, n_representatives=30, n_neighbors=3, random_state=0)
    labels, bandwidth = model.fit(X).labels_, model.bandwidth_
    moved = model.fit(move(X))
    assert np.array_equal(moved.labels_, labels)
    unit = np.ptp(move(X)[:, 0]) / np.ptp(X[:, 0])
    assert moved.bandwidth_ == pytest.approx(bandwidth * unit, rel=1e-12)


def test_float32_and_float64_give_the_same_partition():
    X, truth = make_moons(N_ROWS, noise=0.05, random_state=0)
    labels = [
        dc.USPEC(2, n_representatives=60, n_neighbors=4, random_state=0).fit(X.astype(dtype)).labels_
        for dtype in ("f4", "f8")
    ]
    assert adjusted_rand_score(*labels) == adjusted_rand_score(truth, labels[0]) == 1


def test_fits_that_warn_do_so_in_their_own_name():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dc.USPEC(2, n_representatives=20, random_state=0).fit(np.random.default_rng(0).normal(size=(60, 2)))
