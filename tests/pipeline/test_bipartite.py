"""The bipartite graph: its packed form, its parts, and its matrix."""

import pickle

import dask.array as da
import numpy as np
import pytest
import sparse

from daskcluster.pipeline.bipartite import BipartiteGraph, linked_rows, n_neighbors_of, pack_edges, unpack_edges
from tests.reference.affinity import dense


def draw_edges(n_rows=11, n_neighbors=3, n_right=7, seed=0):
    rng = np.random.default_rng(seed)
    indices = np.argsort(rng.random((n_rows, n_right)), axis=1)[:, :n_neighbors].astype(np.int32)
    indices[4] = -1
    indices[6, 1] = -1
    return indices, rng.uniform(0.1, 1.0, size=indices.shape).astype(np.float32)


def graph_of(indices, weights, chunk=4, n_right=7):
    packed = pack_edges(indices, weights)
    return BipartiteGraph(da.from_array(packed, chunks=(chunk, packed.shape[1])), unpack_edges, n_right)


@pytest.mark.parametrize("n_neighbors", [1, 4])
def test_packing_keeps_every_bit(n_neighbors):
    indices = np.arange(3 * n_neighbors, dtype=np.int32).reshape(3, n_neighbors) - 1
    values = np.resize(np.array([np.nan, -0.0, np.inf, 1e-45, 0.1], np.float32), indices.shape)
    packed = pack_edges(indices, values)
    assert packed.shape == (3, 2 * n_neighbors)
    assert packed.dtype == np.int32
    for found, expected in zip(unpack_edges(packed), (indices, values), strict=True):
        assert found.tobytes() == expected.tobytes()
        assert found.dtype == expected.dtype
        assert found.flags.c_contiguous
        assert not np.shares_memory(found, packed)


def test_what_packed_edges_tell():
    packed = pack_edges(*draw_edges())
    assert np.flatnonzero(~linked_rows(packed)).tolist() == [4]  # row 6 has lost one edge only
    assert n_neighbors_of(packed) == 3
    assert n_neighbors_of(da.from_array(packed, chunks=4)) == 3


def test_an_empty_block():
    packed = pack_edges(np.empty((0, 3), np.int32), np.empty((0, 3), np.float32))
    assert [part.shape for part in unpack_edges(packed)] == [(0, 3), (0, 3)]


@pytest.mark.parametrize("chunk", [1, 4, 11])
def test_parts_are_lazy_arrays(chunk):
    indices, weights = draw_edges()
    graph = graph_of(indices, weights, chunk)
    for part, expected in ((graph.indices, indices), (graph.weights, weights)):
        assert isinstance(part, da.Array)
        assert part.chunks == (graph.held.chunks[0], (3,))
        assert part.dtype == expected.dtype
        assert np.array_equal(part.compute(), expected)


def test_the_matrix_is_the_cross_affinity():
    """Eq. (5): rows against right vertices, nothing where there is no edge."""
    indices, weights = draw_edges()
    matrix = graph_of(indices, weights).to_sparse()
    assert isinstance(matrix, sparse.GCXS)
    assert matrix.shape == (11, 7)
    assert matrix.nnz == 3 * 11 - 4
    assert np.array_equal(matrix.todense(), dense(indices, weights, 7))


def test_right_vertices_without_edges_are_columns():
    matrix = graph_of(*draw_edges(), n_right=20).to_sparse()
    assert matrix.shape == (11, 20)
    assert not matrix.todense()[:, 7:].any()


def test_a_graph_travels():
    graph = graph_of(*draw_edges())
    travelled = pickle.loads(pickle.dumps(graph))
    assert travelled.n_right == 7
    assert np.array_equal(travelled.weights.compute(), graph.weights.compute())
