"""The K-nearest-neighbour graph that SC and ESCG take in uspec_usenc_2019, section 4.2."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

__all__ = ["neighbor_graph"]


def neighbor_graph(X: NDArray[np.float64], n_neighbors: int) -> scipy.sparse.csr_matrix:
    """Gaussian affinities (n, n) of rows and their K nearest others, as eq. (6) with sigma their mean distance.

    Symmetric: an edge stands if one of its two rows has it; no row is its own neighbour.
    """
    n_neighbors = min(n_neighbors, len(X) - 1)
    found = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors_graph(mode="distance")
    sigma = float(found.data.mean()) or 1.0
    W = found.copy()
    W.data = np.exp(-(found.data**2) / (2 * sigma**2))
    return scipy.sparse.csr_matrix(W.maximum(W.T))
