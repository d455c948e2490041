"""What the systems share: checked input, and k-means on the rows of an embedding."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from daskcluster.constraints import Constraints
from daskcluster.pipeline.kmeans import center_starts
from daskcluster.pipeline.lloyd import Centers, lloyd_in_memory
from daskcluster.runtime.seeding import root_seed, stream
from daskcluster.typing import Seed

#: k-means++ starts, of which the best counts.
STARTS = 10


def checked_affinity(affinity: Any, constraints: Constraints) -> NDArray[np.float64]:
    """A copy of an affinity matrix, checked against what it has to be and against the constraints."""
    W = np.array(affinity, np.float64)
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ValueError(f"affinity must be a square matrix (n, n), got shape {W.shape}")
    bad = ~(np.isfinite(W) & (W >= 0))
    if bad.any():
        i, j = np.unravel_index(np.argmax(bad), W.shape)
        raise ValueError(f"affinity must be finite and not negative, got {W[i, j]} at row {i}, column {j}")
    if not np.allclose(W, W.T):
        raise ValueError("affinity must be symmetric")
    constraints.check_n_rows(len(W), "affinity")
    return W


def cluster_rows(
    points: NDArray[np.float64], n_clusters: int, random_state: Seed, n_init: int = STARTS
) -> NDArray[np.int32]:
    """Labels (n,) of the best of some k-means clusterings."""
    seed = root_seed(random_state)
    best: tuple[Centers, NDArray[np.int32]] | None = None
    for number in range(n_init):
        starts = center_starts(points, n_clusters, stream(seed, "discretize", number))
        found = lloyd_in_memory(points, starts)
        if best is None or found[0].inertia < best[0].inertia:
            best = found
    assert best is not None
    return best[1]


def squared_distances(X: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared Euclidean distances (n, l) of rows to points, not below 0."""
    found = (X * X).sum(axis=1)[:, None] - 2 * X @ points.T + (points * points).sum(axis=1)
    return np.maximum(found, 0.0)


def left_vectors(G: NDArray[np.float64], n_components: int) -> NDArray[np.float64]:
    """The first left singular vectors (n, n_components) of a tall G (n, l), from its l by l Gram matrix."""
    values, vectors = np.linalg.eigh(G.T @ G)
    first = np.argsort(values)[::-1][:n_components]
    scale = np.sqrt(np.maximum(values[first], np.finfo(np.float64).tiny))
    result: NDArray[np.float64] = G @ (vectors[:, first] / scale)
    return result


def constraint_matrix(constraints: Constraints, n_rows: int) -> scipy.sparse.csr_array:
    """Q (n, n) of eq. (33) of fast_csc_and_secrp_2017: weights of must-links, minus those of cannot-links."""
    constraints.check_n_rows(n_rows, "X")
    return scipy.sparse.csr_array(constraints.to_sparse(n_rows).to_scipy_sparse())
