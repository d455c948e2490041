"""Stage 3: K nearest, distances -> bipartite graph (n, K) edges to p."""

from __future__ import annotations

from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.affinity import adaptive_weights, gaussian_weights, sum_distances
from .bipartite import BipartiteGraph, EdgesOf, unpack_edges

__all__ = [
    "AFFINITIES",
    "adaptive_edges",
    "affinity_graph",
    "distance_sum",
    "edges_by",
    "gaussian_edges",
    "mean_distance",
    "n_held",
]

#: Names of the affinities of rows and their nearest representatives, see `affinity_graph`.
AFFINITIES = ("gaussian", "adaptive")


def distance_sum(edges: NDArray[np.int32]) -> dict[str, Any]:
    """Sum of a block's distances in float64, and how many they are."""
    total, count = sum_distances(*unpack_edges(edges))
    return {"distance": float(total), "count": int(count)}


def mean_distance(sums: list[dict[str, Any]]) -> float:
    """The bandwidth sigma: exactly the mean of all n K distances, from the blocks' sums in block order; eq. (6)."""
    return sum(part["distance"] for part in sums) / sum(part["count"] for part in sums)


def gaussian_edges(block: NDArray[np.int32], bandwidth: float) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Packed distances of a block -> right vertices and Gaussian affinities (n, K)."""
    indices, distances = unpack_edges(block)
    return indices, gaussian_weights(distances, bandwidth)


def adaptive_edges(block: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Packed distances (n, K + 1) of a block -> right vertices and adaptive affinities (n, K)."""
    indices, distances = unpack_edges(block)
    return np.ascontiguousarray(indices[:, :-1]), adaptive_weights(distances)


def n_held(n_neighbors: int, n_representatives: int, affinity: str) -> int:
    """Neighbors that are found of each row: K, or one more, where there is one, by which the others are measured."""
    return min(n_neighbors + (affinity != "gaussian"), n_representatives)


def edges_by(affinity: str, bandwidth: float, n_columns: int) -> EdgesOf:
    """Function of packed distances, of so many columns, that gives right vertices and affinities of this kind.

    Without a neighbor to spare (K = p = 1) every affinity is Gaussian.
    """
    if affinity == "gaussian" or n_columns <= 2:
        return partial(gaussian_edges, bandwidth=bandwidth)
    return adaptive_edges


def affinity_graph(
    nearest: da.Array, bandwidth: float, representatives: NDArray[np.float64], affinity: str = "gaussian"
) -> BipartiteGraph:
    """Bipartite graph of rows and representatives, with affinities of their distances.

    Parameters
    ----------
    nearest : dask array (n, 2 K') int32
        Packed edges with distances, see `nearest_representatives`; K' as `n_held` says.
    bandwidth : float
        sigma in the units of these distances.
    representatives : (p, d) float64
        Prepared.
    affinity : {"gaussian", "adaptive"}

    Notes
    -----
    "gaussian": exp(-d**2 / (2 sigma**2)), eq. (5) and (6) of uspec_usenc_2019. "adaptive": `adaptive_weights`,
    which have no parameter. The affinities are not stored: K exponentials cost less than reading K numbers.
    """
    edges_of = edges_by(affinity, bandwidth, nearest.shape[1])
    return BipartiteGraph(nearest, edges_of, len(representatives), representatives)
