"""Stage 4: the transfer cut against the eigenproblem of the full graph, and the lift."""

import pickle

import dask.array as da
import numpy as np
import pytest
import scipy.linalg
from hypothesis import example, given, settings

from daskcluster.io.inputs import check_rows
from daskcluster.pipeline import cut as cut_module
from daskcluster.pipeline.bipartite import BipartiteGraph, pack_edges, unpack_edges
from daskcluster.pipeline.cut import TransferCut, lift_embedding, transfer_cut
from daskcluster.pipeline.lift import LiftedRows
from tests.reference import cut
from tests.reference.affinity import dense
from tests.strategies import chunkings

BLOCK_ROWS = 32
pytestmark = pytest.mark.usefixtures("small_blocks")

N_ROWS = 100


def draw_edges(seed=0, n_rows=N_ROWS, n_neighbors=3, n_right=12):
    """Every right vertex has edges; weights spread over two decades."""
    rng = np.random.default_rng(seed)
    indices = np.argsort(rng.random((n_rows, n_right)), axis=1)[:, :n_neighbors].astype(np.int32)
    indices[:n_right, 0] = np.arange(n_right)
    for row in indices[:n_right]:  # no right vertex twice
        others = [v for v in range(n_right) if v != row[0]]
        row[1:] = rng.choice(others, n_neighbors - 1, replace=False)
    weights = (10 ** rng.uniform(-2, 0, size=indices.shape)).astype(np.float32)
    return indices, weights


def graph_of(indices, weights, n_right, lengths=None):
    packed = pack_edges(indices, weights)
    lazy = packed if lengths is None else da.from_array(packed, chunks=(lengths, (packed.shape[1],)))
    return BipartiteGraph(check_rows(lazy).blocks, unpack_edges, n_right)


def components(groups, n_rows_each=20, n_right_each=4, n_neighbors=2):
    """A graph of several connected parts, the rows one part after the other."""
    indices, weights = [], []
    for group in range(groups):
        part, strength = draw_edges(group, n_rows_each, n_neighbors, n_right_each)
        indices.append(part + group * n_right_each)
        weights.append(strength)
    return np.concatenate(indices).astype(np.int32), np.concatenate(weights)


def same_space(first, second):
    """Largest sine of the angles between two subspaces that columns span."""
    return np.sin(scipy.linalg.subspace_angles(first, second)).max()


def lifted_by_hand(found, B):
    """h of eq. (12) from the product's v / (1 - gamma), without the scaling of rows."""
    return cut.transition(B) @ found.vectors


# -- against the graph of all nodes


@pytest.mark.parametrize("n_components", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_transfer_cut_solves_the_problem_of_the_full_graph(n_components, seed):
    """Eq. (8) on N + p nodes: gamma (2 - gamma) = lambda, and u = (h, v), each up to its length and sign."""
    indices, weights = draw_edges(seed)
    B = dense(indices, weights, 12)
    found = transfer_cut(graph_of(indices, weights, 12), n_components)
    gamma, u = cut.full_cut(B, n_components)
    assert np.diff(gamma).min(initial=1) > 1e-3  # no equal eigenvalues: each vector is its own space
    assert found.n_linked == 12
    assert found.eigenvalues == pytest.approx(gamma * (2 - gamma), abs=1e-12)  # eq. (10)
    v = found.vectors * np.sqrt(1 - found.eigenvalues)  # times 1 - gamma
    h = lifted_by_hand(found, B)
    for i in range(n_components):
        ours, theirs = np.concatenate([h[:, i], v[:, i]]), u[:, i]  # eq. (11)
        scale = ours @ theirs / (theirs @ theirs)
        assert ours == pytest.approx(scale * theirs, abs=1e-9 * abs(scale))


@pytest.mark.parametrize("seed", range(3))
def test_the_transfer_cut_agrees_with_equations_9_to_12(seed):
    indices, weights = draw_edges(seed)
    B = dense(indices, weights, 12)
    found = transfer_cut(graph_of(indices, weights, 12), 4)
    eigenvalues, v = cut.small_cut(B, 4)
    assert found.eigenvalues == pytest.approx(eigenvalues, abs=1e-12)
    h = cut.lift(B, eigenvalues, v)
    for i in range(4):
        assert same_space(found.vectors[:, [i]], v[:, [i]]) < 1e-7
        assert same_space(lifted_by_hand(found, B)[:, [i]], h[:, [i]]) < 1e-7


def test_two_rows_and_two_representatives_by_hand():
    """B = [[3, 1], [1, 3]]: E_R = [[2.5, 1.5], [1.5, 2.5]], degrees 4, eigenvalues of L_R v = lambda D_R v: 0 and 3/4.

    So gamma = 0 and 1/2, and v is (1, 1) and (1, -1), h = T v / (1 - gamma) is (1, 1) and (1, -1).
    """
    indices = np.array([[0, 1], [1, 0]], np.int32)
    weights = np.array([[3, 1], [3, 1]], np.float32)
    found = transfer_cut(graph_of(indices, weights, 2), 2)
    assert found.eigenvalues == pytest.approx([0, 0.75], abs=1e-15)
    first, second = found.vectors.T
    assert first == pytest.approx(first[0] * np.array([1, 1]))
    assert second == pytest.approx(second[0] * np.array([1, -1]))
    assert second[0] / first[0] == pytest.approx(2)  # divided by 1 - gamma
    embedding = lift_embedding(graph_of(indices, weights, 2), found).compute()
    assert np.abs(embedding) == pytest.approx(np.full((2, 2), 0.5**0.5), rel=1e-6)
    assert embedding[0] @ embedding[1] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("n_parts", [2, 3])
def test_a_graph_of_several_parts(n_parts):
    """As many eigenvalues of 0; their space is that of the full graph, and rows of a part share one direction."""
    indices, weights = components(n_parts)
    n_right = 4 * n_parts
    B = dense(indices, weights, n_right)
    graph = graph_of(indices, weights, n_right)
    found = transfer_cut(graph, n_parts)
    assert found.eigenvalues == pytest.approx(np.zeros(n_parts), abs=1e-12)
    _, u = cut.full_cut(B, n_parts)
    ours = np.concatenate([lifted_by_hand(found, B), found.vectors])
    assert same_space(ours, u) < 1e-7
    cosines = lift_embedding(graph, found).compute() @ lift_embedding(graph, found).compute().T
    parts = np.repeat(np.arange(n_parts), 20)
    assert cosines == pytest.approx((parts[:, None] == parts).astype(float), abs=1e-5)


def test_eigenvalues_ascend_from_0_to_1():
    found = transfer_cut(graph_of(*draw_edges(), 12), 12)
    assert found.eigenvalues[0] == pytest.approx(0, abs=1e-12)
    assert (np.diff(found.eigenvalues) >= 0).all()
    assert ((found.eigenvalues >= 0) & (found.eigenvalues < 1)).all()


# -- what is dropped


def test_right_vertices_without_edges_are_dropped():
    indices, weights = draw_edges()
    spread = (3 * indices + 1).astype(np.int32)
    found = transfer_cut(graph_of(spread, weights, 40), 4)
    expected = transfer_cut(graph_of(indices, weights, 12), 4)
    assert found.n_linked == 12
    assert found.vectors.shape == (40, 4)
    assert found.eigenvalues == pytest.approx(expected.eigenvalues, abs=1e-14)
    assert found.vectors[1::3][:12] == pytest.approx(expected.vectors)
    without = np.setdiff1d(np.arange(40), np.arange(1, 37, 3))
    assert not found.vectors[without].any()


def test_fewer_right_vertices_than_components():
    found = transfer_cut(graph_of(*draw_edges(n_right=4), 4), 9)
    assert found.vectors.shape == (4, 4)
    assert found.eigenvalues.shape == (4,)


def test_components_of_rounding_are_dropped():
    """All rows have the same affinities: E_R has rank 1, and one eigenvalue below 1."""
    indices = np.tile(np.arange(5, dtype=np.int32), (30, 1))
    weights = np.tile(np.linspace(0.1, 1, 5, dtype=np.float32), (30, 1))
    found = transfer_cut(graph_of(indices, weights, 5), 3)
    assert found.eigenvalues == pytest.approx([0], abs=1e-12)
    assert found.vectors.shape == (5, 1)
    assert np.isfinite(found.vectors).all()


def with_a_speck(weight):
    """Three equal parts, and a fourth of one row and one right vertex."""
    indices, weights = components(3)
    speck = np.array([[12, -1]], np.int32), np.array([[weight, 1]], np.float32)
    return np.vstack([indices, speck[0]]), np.vstack([weights, speck[1]])


def test_a_speck_does_not_take_the_cluster_of_a_part():
    """It is left out when there are more parts than clusters, and its weight is below 1 % of an equal share."""
    indices, weights = with_a_speck(0.01)
    share = weights[:-1].sum() / 3
    assert 0.01 * share > 0.01
    graph = graph_of(indices, weights, 13)
    found = transfer_cut(graph, 3)
    assert found.n_linked == 12
    assert not found.vectors[12].any()
    assert found.eigenvalues == pytest.approx(np.zeros(3), abs=1e-12)
    embedding = lift_embedding(graph, found).compute()
    parts = np.repeat(np.arange(3), 20)
    assert embedding[:-1] @ embedding[:-1].T == pytest.approx((parts[:, None] == parts).astype(float), abs=1e-5)
    assert not embedding[-1].any()


def test_a_speck_stays_where_it_has_a_cluster_or_is_large():
    indices, weights = with_a_speck(0.01)
    found = transfer_cut(graph_of(indices, weights, 13), 4)
    assert found.n_linked == 13
    assert found.eigenvalues == pytest.approx(np.zeros(4), abs=1e-12)
    indices, weights = with_a_speck(0.02 * weights[:-1].sum() / 3)
    assert transfer_cut(graph_of(indices, weights, 13), 3).n_linked == 13


def test_rows_without_edges_take_no_part():
    indices, weights = draw_edges()
    holes = np.insert(indices, [0, 50, 100], -1, axis=0)
    filled = np.insert(weights, [0, 50, 100], 1, axis=0)
    graph = graph_of(holes, filled, 12)
    found, expected = transfer_cut(graph, 3), transfer_cut(graph_of(indices, weights, 12), 3)
    assert found.eigenvalues == pytest.approx(expected.eigenvalues, abs=1e-14)
    assert np.abs(found.vectors) == pytest.approx(np.abs(expected.vectors), rel=1e-9)
    embedding = lift_embedding(graph, found).compute()
    without = (holes < 0).all(axis=1)
    assert np.isnan(embedding[without]).all()
    plain = lift_embedding(graph_of(indices, weights, 12), found).compute()
    assert np.array_equal(embedding[~without], plain)


def test_the_smallest_weights_are_enough():
    """All affinities of a row may have underflowed to the smallest number."""
    indices, weights = draw_edges()
    tiny = np.where(np.arange(N_ROWS)[:, None] % 2, weights, np.finfo(np.float32).tiny)
    graph = graph_of(indices, tiny.astype(np.float32), 12)
    found = transfer_cut(graph, 3)
    assert np.isfinite(found.vectors).all()
    lengths = np.linalg.norm(lift_embedding(graph, found).compute(), axis=1)
    assert lengths == pytest.approx(np.ones(N_ROWS), rel=1e-5)


# -- the lift


def test_the_embedding_is_equation_12_at_unit_length():
    indices, weights = draw_edges(1)
    B = dense(indices, weights, 12)
    graph = graph_of(indices, weights, 12)
    found = transfer_cut(graph, 3)
    lazy = lift_embedding(graph, found)
    assert lazy.chunks == (graph.held.chunks[0], (3,))
    embedding = lazy.compute()
    assert embedding.dtype == lazy.dtype
    eigenvalues, v = cut.small_cut(B, 3)
    signs = np.sign((found.vectors * v).sum(axis=0))
    assert embedding == pytest.approx(cut.unit_rows(cut.lift(B, eigenvalues, v * signs)), abs=1e-5)


def test_lifted_rows_travel_and_name_the_rows_with_edges():
    indices, weights = draw_edges(2)
    indices[[3, 50]] = -1
    found = transfer_cut(graph_of(indices, weights, 12), 3)
    points = pickle.loads(pickle.dumps(LiftedRows(unpack_edges, found.vectors)))
    lifted, rows = points(pack_edges(indices, weights))
    assert rows.tolist() == [i for i in range(N_ROWS) if i not in (3, 50)]
    assert lifted.shape == (98, 3)
    assert points(pack_edges(indices, weights)[4:40])[1] is None


# -- chunks and blocks


@given(lengths=chunkings(N_ROWS))
@example(lengths=(1,) * N_ROWS)
@example(lengths=(0, 70, 0, 30))
@settings(max_examples=12)
def test_the_cut_does_not_depend_on_chunks(lengths):
    indices, weights = draw_edges(3)
    expected = transfer_cut(graph_of(indices, weights, 12), 4)
    graph = graph_of(indices, weights, 12, lengths)
    found = transfer_cut(graph, 4)
    assert found.vectors.tobytes() == expected.vectors.tobytes()
    assert found.eigenvalues.tobytes() == expected.eigenvalues.tobytes()
    plain = lift_embedding(graph_of(indices, weights, 12), expected).compute()
    assert lift_embedding(graph, found).compute().tobytes() == plain.tobytes()


def test_parts_of_the_small_graph_are_added_in_any_tree():
    """Of weights whose shares are exact: 1, 1 and 2 of 4."""
    indices, _ = draw_edges(4)
    weights = np.tile(np.array([1, 1, 2], np.float32), (N_ROWS, 1))
    packed = pack_edges(indices, weights)
    parts = [cut_module._small_graph_block(part, unpack_edges, 12) for part in np.split(packed, [10, 11, 60])]
    whole = cut_module.sum_packed([cut_module._small_graph_block(packed, unpack_edges, 12)])
    left = cut_module.add_packed([cut_module.add_packed(parts[:3]), parts[3]])
    right = cut_module.add_packed([parts[0], cut_module.add_packed(parts[1:])])
    assert np.array_equal(cut_module.sum_packed([left]), whole)
    assert np.array_equal(cut_module.sum_packed([right]), whole)
    assert np.array_equal(
        np.triu(whole + whole.T), np.triu(cut.small_affinity(dense(indices, weights, 12)) * (1 + np.eye(12)))
    )


def test_the_lift_is_lazy():
    def explode(block):
        raise AssertionError("read")

    indices, weights = draw_edges(5)
    graph = graph_of(indices, weights, 12)
    found = transfer_cut(graph, 2)
    lazy = graph.held.map_blocks(explode, dtype=np.int32, meta=np.empty((0, 0), np.int32))
    lift_embedding(BipartiteGraph(lazy, unpack_edges, 12), TransferCut(found.vectors, found.eigenvalues, 12))
