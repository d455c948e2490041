"""The landmark graph of fast_csc_and_secrp_2017, section 2.2, in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from daskcluster.runtime.seeding import root_seed, stream
from daskcluster.typing import Seed

__all__ = ["landmark_matrix"]


def landmark_matrix(
    X: NDArray[Any], n_landmarks: int, n_neighbors: int, random_state: Seed = None
) -> scipy.sparse.csr_array:
    """Zhat^T (n, p) of eq. (4) and (5): affinities to the r nearest of p random rows, whose columns have equal weight.

    Notes
    -----
    sigma, which the paper leaves open, is the mean of all n r distances. Landmarks are distinct rows, fewer than p
    where there are fewer, and those that are nobody's neighbour are left out. W = Zhat^T Zhat has unit degrees.
    """
    X = np.asarray(X, np.float64)
    order = stream(root_seed(random_state), "landmarks").permutation(len(X))
    _, firsts = np.unique(X[order[: 2 * n_landmarks]], axis=0, return_index=True)
    landmarks = X[order[np.sort(firsts)[:n_landmarks]]]
    r = min(n_neighbors, len(landmarks))
    found = NearestNeighbors(n_neighbors=r, algorithm="brute").fit(landmarks)
    distances, nearest = found.kneighbors(X)
    affinities = _gaussian(distances)
    affinities /= affinities.sum(axis=1, keepdims=True)  # eq. (4)
    Z = scipy.sparse.csr_array((affinities.ravel(), nearest.ravel(), np.arange(0, len(X) * r + 1, r)))
    masses = np.asarray(Z.sum(axis=0)).ravel()
    linked = masses > 0
    return scipy.sparse.csr_array(Z[:, linked] @ scipy.sparse.diags_array(1 / np.sqrt(masses[linked])))  # eq. (5)


def _gaussian(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    sigma = max(float(distances.mean()), np.finfo(np.float64).tiny)
    # A row that is far from all others keeps its edges: their affinities are no zeros.
    return np.maximum(np.exp(-((distances / sigma) ** 2) / 2), 1e-30)
