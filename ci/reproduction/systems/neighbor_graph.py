"""Affinities for spectral clustering: of nearest neighbours (uspec_usenc_2019, section 4.2), and of all pairs."""

from __future__ import annotations

import numpy as np
import scipy.sparse
import scipy.spatial.distance
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

__all__ = ["gaussian_graph", "neighbor_graph"]


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


def gaussian_graph(X: NDArray[np.float64]) -> scipy.sparse.csr_matrix:
    """Gaussian affinities (n, n) of all pairs of rows, each with itself too, with sigma the median of the distances."""
    distances = scipy.spatial.distance.pdist(X, "sqeuclidean")
    width = float(np.median(distances)) or 1.0
    W = scipy.spatial.distance.squareform(np.exp(-distances / (2 * width)))
    np.fill_diagonal(W, 1.0)
    return scipy.sparse.csr_matrix(W)
