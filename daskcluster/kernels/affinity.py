"""Stage 3 on one block: affinities of the kept distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .jit import jit

__all__ = ["adaptive_weights", "gaussian_weights", "sum_distances"]

_TINY = np.finfo(np.float32).tiny


def gaussian_weights(distances: NDArray[np.float32], bandwidth: float) -> NDArray[np.float32]:
    """Affinities exp(-distance**2 / (2 bandwidth**2)), eq. (6) of uspec_usenc_2019.

    Parameters
    ----------
    distances : (n, K) float32
    bandwidth : float
        The mean distance sigma; 0 (every row is a duplicate of its representatives) gives weight 1.

    Returns
    -------
    (n, K) float32
        In (0, 1]. An affinity that underflows becomes the smallest normal number, so no row loses its edges.

    Notes
    -----
    NumPy's vectorised float32 exponential is six times as fast as a compiled loop over the C library's.
    """
    if not bandwidth > 0:
        return np.ones_like(distances)
    with np.errstate(over="ignore"):  # a ratio beyond float32 has the smallest affinity
        # First the quotient: the square of a bandwidth can underflow.
        weights = distances / max(bandwidth, float(_TINY))
        weights = weights.astype(np.float32, copy=False)
        np.multiply(weights, weights, out=weights)
    np.multiply(weights, np.float32(-0.5), out=weights)
    np.exp(weights, out=weights)
    return np.maximum(weights, _TINY, out=weights)


@jit
def adaptive_weights(distances):
    """Weights that fall with the squared distance, and are 0 at the neighbor after the kept ones.

    Parameters
    ----------
    distances : (n, K + 1) float32
        Ascending.

    Returns
    -------
    (n, K) float32
        (d_{K+1}**2 - d_j**2) / (K d_{K+1}**2 - sum_l d_l**2), which sum to 1; 1 / K where all distances of a row are
        equal.

    Notes
    -----
    The adaptive neighbors of Nie, Wang, Jordan, Huang, AAAI 2016, which have no parameter. The squares are of
    quotients, so they do not underflow.
    """
    n_rows, n_kept = distances.shape[0], distances.shape[1] - 1
    weights = np.empty((n_rows, n_kept), np.float32)
    for i in range(n_rows):
        farthest = np.float64(distances[i, n_kept])
        total = 0.0
        for j in range(n_kept):
            ratio = np.float64(distances[i, j]) / farthest if farthest > 0 else 1.0
            nearness = max(0.0, 1.0 - ratio * ratio)
            weights[i, j] = nearness
            total += nearness
        for j in range(n_kept):
            weights[i, j] = weights[i, j] / total if total > 0 else 1.0 / n_kept
    return weights


@jit
def sum_distances(indices, distances):
    """Sum of the distances (n, K) of rows with edges, in float64 and row order, and how many they are."""
    total = 0.0
    count = 0
    for i in range(indices.shape[0]):
        if indices[i, 0] >= 0:
            for j in range(indices.shape[1]):
                total += np.float64(distances[i, j])
            count += indices.shape[1]
    return total, count
