"""Stage 2: the search against the paper's steps, its recall, and its independence from chunks."""

from itertools import chain

import dask.array as da
import numpy as np
import pytest
from hypothesis import example, given, settings
from scipy.spatial import cKDTree
from sklearn.datasets import make_blobs

from daskcluster.io.inputs import check_rows
from daskcluster.pipeline import neighbors as neighbors_module
from daskcluster.pipeline.bipartite import unpack_edges
from daskcluster.pipeline.neighbors import (
    choose_neighborhood,
    index_representatives,
    nearest_block,
    nearest_representatives,
    recall,
)
from daskcluster.pipeline.rows import RowForm
from tests.reference import neighbors
from tests.strategies import chunkings

BLOCK_ROWS = 32
pytestmark = pytest.mark.usefixtures("small_blocks")

N_ROWS = 100


def plain(n_features, unit_length=False):
    """The form that leaves rows as they are."""
    return RowForm(np.zeros(n_features), 1.0, unit_length)


def draw(seed, n_rows, n_features, dtype="f4"):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features)).astype(dtype)


def index_of(representatives, dtype="f4", n_neighbors=3, neighborhood=8, form=None):
    form = plain(representatives.shape[1]) if form is None else form
    return index_representatives(
        representatives.astype(float), form, np.dtype(dtype), n_neighbors, neighborhood=neighborhood
    )


def rep_clusters_of(index):
    """Members of each rep-cluster, in the order in which the search looks at them."""
    found = []
    for size, members in zip(index.sizes, index.members, strict=True):
        inside = members[:size].tolist()
        while len(inside) > 1 and inside[-1] == 0:  # padding
            inside.pop()
        found.append(inside)
    return found


def true_neighbors(rows, representatives, n_neighbors):
    """By SciPy's tree, an independent exact search."""
    return cKDTree(representatives).query(rows, n_neighbors)[1]


# -- the index


@pytest.mark.parametrize("n_features", [2, 70])
@pytest.mark.parametrize("n_representatives", [25, 99])
def test_rep_clusters_are_a_partition_of_floor_root_p_parts(n_representatives, n_features):
    """Pre-step 1 of section 3.1.2."""
    index = index_of(draw(0, n_representatives, n_features))
    assert len(index.centers) == int(n_representatives**0.5)
    members = rep_clusters_of(index)
    assert sorted(chain(*members)) == list(range(n_representatives))
    assert min(map(len, members)) > 0


def test_rep_cluster_centres_are_the_means_of_their_members():
    """Eq. (4): of separate groups, where k-means ends before its last pass."""
    representatives, _ = make_blobs(64, 2, centers=8, cluster_std=0.05, random_state=0)
    index = index_of(representatives)
    expected = neighbors.rep_cluster_centers(representatives, rep_clusters_of(index))
    assert index.centers == pytest.approx(np.array(expected), abs=1e-12)


def test_a_rep_cluster_without_members_is_dropped(monkeypatch):
    """Nothing could start there."""
    lloyd = neighbors_module.lloyd_in_memory

    def with_an_empty_one(*arguments, **options):
        found, labels = lloyd(*arguments, **options)
        centers = np.insert(found.centers, 1, [0.01, 0.01], axis=0)
        return type(found)(centers, found.inertia, found.n_iter), labels + (labels >= 1)

    monkeypatch.setattr(neighbors_module, "lloyd_in_memory", with_an_empty_one)
    representatives = draw(1, 49, 2)
    index = index_of(representatives, neighborhood=40)
    assert len(index.centers) == 7
    rows = draw(2, 200, 2)
    assert recall(index.search(rows, 3)[0], true_neighbors(rows, representatives, 3)) > 0.95


def test_neighborhoods_are_the_nearest_representatives():
    """Pre-step 2: each representative and its K' nearest others."""
    representatives = draw(3, 40, 2, "f8")
    index = index_of(representatives, "f8", neighborhood=6)
    expected = neighbors.neighborhoods(representatives, 6)
    assert index.neighbors[:, :7].tolist() == expected
    assert (index.neighbors[:, 7:] == index.neighbors[:, 6:7]).all()  # padded to whole strips


def test_a_neighborhood_of_all_is_an_exact_search():
    representatives = draw(4, 20, 2)
    assert index_of(representatives, neighborhood=19).exact
    assert index_of(representatives, neighborhood=100).exact
    assert not index_of(representatives, neighborhood=18).exact


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n_features", [1, 2, 7, 70])
@pytest.mark.parametrize("small", [False, True], ids=["with coordinates", "without"])
def test_the_search_is_that_of_the_paper(monkeypatch, dtype, n_features, small):
    """Steps 1 to 3 from the index's own rep-clusters; many features or much memory take the wide layout."""
    if small:
        monkeypatch.setattr(neighbors_module, "MOST_COORDINATE_BYTES", 0)
    representatives, rows = draw(5, 60, n_features, "f8"), draw(6, 150, n_features, dtype)
    index = index_of(representatives, dtype, 4, 9)
    assert index.wide is (small or n_features == 70)
    expected = neighbors.approximate(rows, representatives, rep_clusters_of(index), index.centers, 9, 4)
    found, distances = index.search(rows, 4)
    exact = np.array(neighbors.distances(rows, representatives, expected))
    if dtype == "f8":
        assert found.tolist() == expected
    else:  # float32 may take the other one of two that are almost equally near
        assert recall(found, np.array(expected)) > 0.99
    close = (found == np.array(expected)).all(axis=1)
    assert distances[close] == pytest.approx(exact[close], rel=1e-5, abs=1e-6)
    assert (np.diff(distances, axis=1) >= 0).all()
    assert all(len(set(row)) == 4 for row in found.tolist())


@pytest.mark.parametrize("n_neighbors", [1, 20])
def test_one_neighbour_and_all_of_them(n_neighbors):
    representatives, rows = draw(7, 20, 2, "f8"), draw(8, 50, 2, "f8")
    index = index_of(representatives, "f8", n_neighbors, 6 if n_neighbors == 1 else 19)
    assert index.exact is (n_neighbors == 20)
    found = index.search(rows, n_neighbors)[0]
    if n_neighbors == 20:
        assert found.tolist() == neighbors.exact(rows, representatives, 20)
    else:
        assert recall(found, np.array(neighbors.exact(rows, representatives, 1))) > 0.9


def test_duplicate_representatives():
    """As many nearest ones as were asked for, all different, however many are equal."""
    representatives = np.repeat(draw(9, 10, 2), 4, axis=0)
    found, distances = index_of(representatives, n_neighbors=4, neighborhood=12).search(representatives[::4], 4)
    assert (np.sort(found, axis=1) == np.arange(40).reshape(10, 4)).all()
    assert not distances.any()


def test_recall_by_hand():
    truth = np.array([[0, 1, 2], [3, 4, 5]])
    assert recall(np.array([[2, 1, 0], [5, 3, 4]]), truth) == 1
    assert recall(np.array([[0, 1, 9], [5, 8, 7]]), truth) == 0.5
    found = np.array([[0, 1, 9], [5, 8, 7]])
    assert recall(found, truth) == neighbors.recall(found.tolist(), truth.tolist())


# -- recall on data


def rows_and_representatives(kind, n_features, n_rows=4000, n_representatives=1000):
    """Representatives are drawn as the rows are, and none of them is a row."""
    rng = np.random.default_rng(0)
    shape = (n_rows + n_representatives, n_features)
    if kind == "blobs":
        drawn, _ = make_blobs(shape[0], n_features, centers=20, random_state=0)
    elif kind == "noise":
        drawn = rng.normal(size=shape)
    else:
        drawn = rng.uniform(size=shape)
    drawn = drawn.astype("f4")
    return drawn[n_representatives:], drawn[:n_representatives].astype(float)


@pytest.mark.parametrize("kind", ["blobs", "noise", "uniform"])
@pytest.mark.parametrize(("n_features", "least"), [(2, 0.99), (16, 0.95)])
def test_recall_of_the_true_neighbours(kind, n_features, least):
    """p = 1000 and K = 5, the paper's; K' starts at the paper's 10 K."""
    rows, representatives = rows_and_representatives(kind, n_features)
    index, size = choose_neighborhood(representatives, plain(n_features), rows[:2000], 5)
    truth = true_neighbors(rows[2000:], representatives, 5)  # of other rows than those of its check
    assert recall(index.search(rows[2000:], 5)[0], truth) >= least
    if n_features == 2:
        assert size == 50
        assert not index.exact


@pytest.mark.parametrize(("n_features", "expected"), [(4, 50), (5, 100), (7, 200), (16, 999)])
def test_the_neighborhood_is_doubled_until_it_serves(n_features, expected):
    """The more dimensions noise has, the more neighbours the paper's K' = 50 loses; 999 is an exact search."""
    rows, representatives = rows_and_representatives("noise", n_features, 1500)
    index, size = choose_neighborhood(representatives, plain(n_features), rows, 5)
    assert size == expected
    assert index.exact is (expected == 999)
    truth = true_neighbors(rows, representatives, 5)
    paper = index_of(representatives, n_neighbors=5, neighborhood=50)
    assert recall(index.search(rows, 5)[0], truth) > 0.97
    assert (recall(paper.search(rows, 5)[0], truth) > 0.97) is (expected == 50)
    if n_features == 16:
        assert recall(paper.search(rows, 5)[0], truth) < 0.7


def test_recall_of_a_wide_table():
    rows, representatives = rows_and_representatives("blobs", 100, 1200, 200)
    index, _ = choose_neighborhood(representatives, plain(100), rows, 5)
    assert recall(index.search(rows, 5)[0], true_neighbors(rows, representatives, 5)) >= 0.95


def test_the_neighborhood_can_be_chosen():
    rows, representatives = rows_and_representatives("blobs", 2, 500, 100)
    assert choose_neighborhood(representatives, plain(2), rows, 5)[1] == 50
    assert choose_neighborhood(representatives, plain(2), rows, 5, neighbor_factor=4)[1] == 20
    for options in ({"neighbors": "exact"}, {"neighbor_factor": 20}):
        index, size = choose_neighborhood(representatives, plain(2), rows, 5, **options)
        assert index.exact
        assert size == 99
    index, size = choose_neighborhood(representatives[:1], plain(2), rows, 1)
    assert index.exact
    assert size == 0


def test_the_index_of_a_model_is_that_of_its_fit():
    """`predict` makes the index anew from K' and the seed."""
    rows, representatives = rows_and_representatives("noise", 8, 1000, 150)
    index, size = choose_neighborhood(representatives, plain(8), rows, 3, seed=4)
    again = index_representatives(representatives, plain(8), rows.dtype, 3, neighborhood=size, seed=4)
    assert again.exact is index.exact
    for found, expected in zip(again.search(rows, 3), index.search(rows, 3), strict=True):
        assert np.array_equal(found, expected)


# -- blocks


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", ">f4"])
def test_a_block_is_brought_into_form_and_its_edges_are_packed(dtype):
    block = (50 * draw(10, 40, 3) + 500).astype(dtype)
    form = RowForm(np.array([500.0, 480.0, 510.0]), 2.0**-8, False)
    representatives = block[:12].astype(float) + 0.25
    index = index_of(representatives, dtype, 3, form=form)
    indices, distances = unpack_edges(nearest_block(block, index, 3))
    expected = neighbors.exact(block.astype(float), representatives, 3)
    assert (np.sort(indices, axis=1) == np.sort(expected, axis=1)).all(axis=1).mean() > 0.9
    exact = [
        [neighbors.distance(x, representatives[j]) for j in row]
        for x, row in zip(block.astype(float), indices, strict=True)
    ]
    assert distances == pytest.approx(np.array(exact) * 2.0**-8, rel=1e-4)


def test_missing_rows_have_no_edges():
    block = draw(11, 30, 2)
    block[[0, 7], 1] = np.nan
    block[29] = np.inf
    index = index_of(draw(12, 20, 2), neighborhood=6)
    indices, distances = unpack_edges(nearest_block(block, index, 3))
    missing = ~np.isfinite(block).all(axis=1)
    assert (indices[missing] == -1).all()
    assert not distances[missing].any()
    expected = unpack_edges(nearest_block(block[~missing], index, 3))
    assert np.array_equal(indices[~missing], expected[0])
    assert np.array_equal(distances[~missing], expected[1])
    nothing, _ = unpack_edges(nearest_block(np.full((4, 2), np.nan, "f4"), index, 3))
    assert (nothing == -1).all()


def test_distances_of_directions():
    """1 - cos, and 1 for a row without direction."""
    form = plain(2, unit_length=True)
    representatives = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    block = np.array([[5, 0], [3, 4], [0, 0]], np.float32)
    indices, distances = unpack_edges(nearest_block(block, index_of(representatives, form=form), 3))
    assert indices[:2].tolist() == [[0, 1, 2], [1, 0, 2]]
    assert distances == pytest.approx(np.array([[0, 1, 2], [0.2, 0.4, 1.6], [1, 1, 1]]), abs=1e-6)
    angles = np.linspace(0, 3, 40)
    many = np.column_stack([np.cos(angles), np.sin(angles)])[::-1]
    indices, _ = unpack_edges(nearest_block(block, index_of(many, form=form), 3))
    assert indices[2].tolist() == [0, 1, 2]  # neighbours of the first, and no bridge between others


@given(lengths=chunkings(N_ROWS))
@example(lengths=(1,) * N_ROWS)
@example(lengths=(0, 60, 0, 40))
@settings(max_examples=15)
def test_neighbours_do_not_depend_on_chunks(lengths):
    X = draw(13, N_ROWS, 2)
    X[50] = np.nan
    index = index_of(draw(14, 30, 2))
    lazy = nearest_representatives(check_rows(da.from_array(X, chunks=(lengths, (2,))), "label"), index, 3)
    assert lazy.chunks == ((32, 32, 32, 4), (6,))
    assert lazy.dtype == np.int32
    assert lazy.compute().tobytes() == nearest_block(X, index, 3).tobytes()


def test_neighbours_are_lazy():
    def explode(block):
        raise AssertionError("read")

    X = da.zeros((N_ROWS, 2), chunks=30).map_blocks(explode, dtype=float, meta=np.empty((0, 0)))
    nearest_representatives(check_rows(X), index_of(draw(14, 30, 2), "f8"), 3)


@pytest.mark.parametrize("n_features", [2, 20])
def test_the_order_in_which_rows_are_looked_at_changes_nothing(monkeypatch, n_features):
    index, rows = index_of(draw(1, 60, n_features)), draw(2, 300, n_features)
    assert not index.exact
    usual = index.search(rows, 3)
    asked = []
    real = neighbors_module.order_by_start
    monkeypatch.setattr(neighbors_module, "CACHE_BYTES", 0)
    monkeypatch.setattr(neighbors_module, "order_by_start", lambda *args: asked.append(args) or real(*args))
    ordered = index.search(rows, 3)
    assert len(asked) == 1
    for a, b in zip(usual, ordered, strict=True):
        np.testing.assert_array_equal(a, b)
