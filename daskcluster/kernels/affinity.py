"""Stage 3 on one block: Gaussian affinities of the kept distances."""

from __future__ import annotations

import numpy as np

from .jit import jit

__all__ = ["gaussian_weights"]

_TINY = np.finfo(np.float32).tiny


@jit
def gaussian_weights(distances, bandwidth):
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
    """
    n_rows, n_neighbors = distances.shape
    weights = np.ones((n_rows, n_neighbors), np.float32)
    if bandwidth > 0:
        for i in range(n_rows):
            for j in range(n_neighbors):
                # The quotient first: the square of a bandwidth can underflow.
                ratio = np.float64(distances[i, j]) / bandwidth
                weights[i, j] = max(np.float32(np.exp(-0.5 * ratio * ratio)), _TINY)
    return weights
