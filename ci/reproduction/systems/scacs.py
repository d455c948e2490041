"""SCACS: scalable constrained spectral clustering of Li, Xia, Shan, Liu, TKDE 2015.

The problem of CSP on a graph of landmarks. Equations are those of fast_csc_and_secrp_2017, which cites it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ci.reproduction.systems.common import STARTS, cluster_rows, constraint_matrix
from ci.reproduction.systems.csp import cheapest_feasible
from ci.reproduction.systems.landmarks import landmark_matrix
from daskcluster.constraints import Constraints
from daskcluster.constraints.embedding import unit_rows
from daskcluster.linalg import largest_eigenpairs
from daskcluster.typing import Seed
from daskcluster.validation import check_integer

__all__ = ["scacs_vectors", "scalable_constrained_spectral_clustering"]

#: Eigenvalues of Zhat Zhat^T below carry no direction.
LEAST_EIGENVALUE = 1e-10


def scalable_constrained_spectral_clustering(
    X: NDArray[Any],
    constraints: Constraints,
    n_clusters: int,
    *,
    n_landmarks: int = 500,
    n_neighbors: int = 3,
    beta_share: float = 0.1,
    n_init: int = STARTS,
    random_state: Seed = None,
) -> NDArray[np.int32]:
    """Labels (n,): k - 1 constrained vectors of the landmark graph, rows at unit length, k-means.

    Raises
    ------
    ValueError
        If no eigenvector is feasible: there are no constraints, or they name nothing that the graph can serve.

    Notes
    -----
    `beta_share` is the paper's beta_0. Its original could not be read here; beta = beta_0 vol lambda_max is how the
    text's "solve the generalized eigenvector problem twice" and "beta_0 = 0.1" are understood, lambda_max the largest
    eigenvalue of the projected constraints: the first of the two problems.
    """
    check_integer("n_clusters", n_clusters, 1)
    Z = landmark_matrix(X, n_landmarks, n_neighbors, random_state)
    Q = constraint_matrix(constraints, len(X))
    vectors = scacs_vectors(Z, Q, max(1, n_clusters - 1), beta_share)
    return cluster_rows(unit_rows(vectors), n_clusters, random_state, n_init)


def scacs_vectors(
    Z: scipy.sparse.csr_array, Q: scipy.sparse.csr_array, n_vectors: int, beta_share: float
) -> NDArray[np.float64]:
    """x = Zhat^T y (n, n_vectors), cheapest first, of CSP's problem for L = I - Zhat^T Zhat; Z is Zhat^T (n, p).

    Notes
    -----
    Written in the eigenvectors of G = Zhat Zhat^T, scaled so that x^T x = 1: there L is diagonal, 1 minus G's
    eigenvalues, and the norm's matrix is the identity. Degrees are 1, so Q needs no normalization and vol = n.
    """
    n = len(Z.indptr) - 1
    G = np.asarray((Z.T @ Z).todense())
    spectrum, basis = largest_eigenpairs(G, len(G))
    kept = spectrum > LEAST_EIGENVALUE
    spectrum, basis = spectrum[kept], basis[:, kept]
    basis = basis / np.sqrt(spectrum)
    projected = basis.T @ np.asarray((Z.T @ Q @ Z).todense()) @ basis
    beta = beta_share * n * float(largest_eigenpairs(projected.copy(), 1)[0][0])
    trivial = basis.T @ (Z.T @ np.ones(n)) / np.sqrt(n)
    costs = np.diag(np.maximum(1 - spectrum, 0.0))
    return np.asarray(Z @ (basis @ cheapest_feasible(costs, projected, beta, n, trivial, n_vectors)))
