"""The bipartite graph between rows and a small right-hand side: representatives or base clusters.

Its edges are held as one chunked array, K edges a row: an (n, 2 K) int32 array, the K right vertices first and then the
bits of the K float32 numbers that belong to them. One array means one task, one chunk and one read a row block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..runtime.execution import compute, map_rows

__all__ = ["BipartiteGraph", "EdgesOf", "linked_rows", "n_neighbors_of", "pack_edges", "unpack_edges"]

#: Block of held edges -> (indices (n, K) int32, weights (n, K) float32).
EdgesOf = Callable[[NDArray[Any]], tuple[NDArray[np.int32], NDArray[np.float32]]]


def pack_edges(indices: NDArray[np.int32], values: NDArray[np.float32]) -> NDArray[np.int32]:
    """Pack right vertices and numbers (n, K) of a block into (n, 2 K) int32."""
    return np.concatenate([indices, values.view(np.int32)], axis=1)


def unpack_edges(edges: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Right vertices (n, K) int32 and numbers (n, K) float32 of a packed block, as copies in C order."""
    n_neighbors = n_neighbors_of(edges)
    return (
        np.ascontiguousarray(edges[:, :n_neighbors]),
        np.ascontiguousarray(edges[:, n_neighbors:]).view(np.float32),
    )


def n_neighbors_of(edges: NDArray[np.int32] | da.Array) -> int:
    """K of packed edges."""
    return int(edges.shape[1]) // 2


def linked_rows(edges: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Rows of a packed block (n,) that have edges; the others are missing."""
    return edges[:, 0] >= 0


@dataclass(frozen=True)
class BipartiteGraph:
    """Rows against p right vertices, at most K edges a row.

    Attributes
    ----------
    held : dask array (n, ...)
        Held row blocks.
    edges_of : callable
        Block -> (indices (n, K) int32, weights (n, K) float32); a row without edges has indices of -1.
    n_right : int
        p.
    points : (p, d) float64 or None
        Where the right vertices are, if they are anywhere: how near its unlinked parts are to each other.
    """

    held: da.Array
    edges_of: EdgesOf
    n_right: int
    points: NDArray[np.float64] | None = None

    def _part(self, which: int, dtype: Any) -> da.Array:
        n_neighbors = self.edges_of(np.zeros((0, *self.held.shape[1:]), self.held.dtype))[0].shape[1]
        return map_rows(
            _edge_part,
            self.held,
            name="dc-edges",
            columns=n_neighbors,
            dtype=dtype,
            edges_of=self.edges_of,
            which=which,
        )

    @property
    def indices(self) -> da.Array:
        """Right vertices of each row, lazy (n, K) int32; -1 for none."""
        return self._part(0, np.int32)

    @property
    def weights(self) -> da.Array:
        """Affinities of each row, lazy (n, K) float32."""
        return self._part(1, np.float32)

    def to_sparse(self) -> Any:
        """The cross-affinity matrix B as a pydata ``sparse.GCXS`` (n, p), for small n: all edges are gathered."""
        import scipy.sparse
        import sparse

        indices, weights = compute(self.indices, self.weights)
        rows = np.repeat(np.arange(len(indices)), indices.shape[1])
        there = indices.ravel() >= 0
        matrix = scipy.sparse.csr_array(
            (weights.ravel()[there], (rows[there], indices.ravel()[there])),
            shape=(len(indices), self.n_right),
        )
        return sparse.GCXS.from_scipy_sparse(matrix)


def _edge_part(block: NDArray[Any], edges_of: EdgesOf, which: int) -> NDArray[Any]:
    return edges_of(block)[which]
