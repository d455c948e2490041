"""Stage 3: K nearest, distances -> bipartite graph (n, K) edges to p."""

from __future__ import annotations

from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.affinity import gaussian_weights, sum_distances
from .bipartite import BipartiteGraph, unpack_edges

__all__ = ["distance_sum", "gaussian_affinity", "gaussian_edges", "mean_distance"]


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


def gaussian_affinity(nearest: da.Array, bandwidth: float, representatives: NDArray[np.float64]) -> BipartiteGraph:
    """Bipartite graph with affinities exp(-distance**2 / (2 sigma**2)), eq. (5) and (6) of uspec_usenc_2019.

    Parameters
    ----------
    nearest : dask array (n, 2 K) int32
        Packed edges with distances, see `nearest_representatives`.
    bandwidth : float
        sigma in the units of these distances.
    representatives : (p, d) float64
        Prepared.

    Notes
    -----
    The affinities are not stored: K exponentials cost less than reading K numbers.
    """
    edges_of = partial(gaussian_edges, bandwidth=bandwidth)
    return BipartiteGraph(nearest, edges_of, len(representatives), representatives)
