"""CSP: constrained spectral clustering of Wang, Qian, Davidson, DMKD 2014.

Equations and steps are those of csp_ml_and_fast_csp_ml_2019, section 3, which describes it.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ci.reproduction.systems.common import checked_affinity, cluster_rows
from daskcluster.constraints import Constraints
from daskcluster.constraints.embedding import inverse_roots, unit_rows
from daskcluster.linalg import largest_eigenpairs
from daskcluster.runtime.threads import one_blas_thread
from daskcluster.typing import Seed
from daskcluster.validation import check_integer

__all__ = ["cheapest_feasible", "constrained_spectral_clustering", "csp_vectors"]

#: What makes the Laplacian definite.
RIDGE = 1e-10


def constrained_spectral_clustering(
    affinity: NDArray[np.float64],
    constraints: Constraints,
    n_clusters: int,
    *,
    beta: float | None = None,
    random_state: Seed = None,
) -> NDArray[np.int32]:
    """CSP in memory: the problem (7), by way of eq. (8).

    Parameters
    ----------
    affinity : (n, n) float64
        Symmetric, not negative. Its diagonal does not count.
    constraints : Constraints
        Soft ones count by their weights.
    n_clusters : int
    beta : float, optional
        Threshold of eq. (8), below the largest eigenvalue of the normalized Q times the volume. By default half of
        the (k - 1)-th largest, so that k - 1 eigenvectors are feasible.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    (n,) int32

    Raises
    ------
    ValueError
        If `affinity` is something else, the constraints are for another number of rows, or no eigenvector is feasible:
        `beta` is too large, or there are no constraints.

    Notes
    -----
    The rows of D^-1/2 V* are clustered by k-means (step 4 for k clusters), here at unit length, which the text does not
    say: without it the published figures are out of reach (Rand indices on Glass 0.49 against 0.65 at 75 labels). The
    authors' program multiplies each vector by one minus its cost instead; so done it is 0.46, with Q not normalized
    0.55 (6 draws, the threshold halfway between the k-th and the next singular value, as there).

    The diagonal of the affinity is zero, as in the authors' loader of data: a row that is far from all others has no
    edge then, where an edge to itself makes it a part of the graph of its own, whose eigenvector costs nothing and is
    taken before those that serve the constraints. On Ionosphere this decides, see docs/constraints.md.
    """
    check_integer("n_clusters", n_clusters, 1)
    W = checked_affinity(affinity, constraints)
    np.fill_diagonal(W, 0.0)
    Q = np.asarray(constraints.to_sparse(len(W)).todense(), np.float64)  # eq. (6)
    return cluster_rows(unit_rows(csp_vectors(W, Q, max(1, n_clusters - 1), beta)), n_clusters, random_state)


def csp_vectors(
    W: NDArray[np.float64], Q: NDArray[np.float64], n_vectors: int, beta: float | None = None
) -> NDArray[np.float64]:
    """Columns D^-1/2 v (n, n_vectors) of the cheapest feasible v at v^T v = vol; fewer where fewer are feasible.

    Notes
    -----
    L v = lambda (Q - beta / vol I) v, eq. (8), with Q normalized like L. L is positive semidefinite, so the
    eigenvectors of positive lambda are those of (Q - beta / vol I) v = mu (L + tiny I) v with mu = 1 / lambda > 0: a
    symmetric-definite problem, O(n**3). The trivial vector D^1/2 1 is left out, as (7) asks. Of the others those with
    the smallest v^T L v are taken (step 3).
    """
    n = len(W)
    degrees = W.sum(axis=1)
    roots = inverse_roots(degrees)
    L = np.diag((degrees > 0).astype(np.float64)) - roots[:, None] * W * roots
    Q = roots[:, None] * Q * roots
    volume = float(degrees.sum())
    if beta is None:
        beta = 0.5 * volume * float(largest_eigenpairs(Q.copy(), min(n_vectors, n))[0][-1])
    trivial = np.sqrt(degrees / max(volume, np.finfo(np.float64).tiny))
    chosen = cheapest_feasible(L, Q, beta, volume, trivial, n_vectors)
    return roots[:, None] * chosen


def cheapest_feasible(
    L: NDArray[np.float64],
    Q: NDArray[np.float64],
    beta: float,
    volume: float,
    trivial: NDArray[np.float64],
    n_vectors: int,
) -> NDArray[np.float64]:
    """Solutions v (n, n_vectors) of L v = lambda (Q - beta / vol I) v, lambda > 0, at v^T v = vol, cheapest first.

    `trivial` (n,) at unit length is the vector that the problem excludes. Fewer where fewer are feasible; with none at
    all a ValueError.
    """
    with one_blas_thread():
        mu, vectors = scipy.linalg.eigh(Q - beta / volume * np.eye(len(L)), L + RIDGE * np.eye(len(L)))
    vectors = vectors[:, mu > 0]
    vectors = vectors / np.linalg.norm(vectors, axis=0) * np.sqrt(volume)
    vectors = vectors[:, np.abs(trivial @ vectors) < (1 - 1e-6) * np.sqrt(volume)]
    if not vectors.shape[1]:
        raise ValueError(f"no eigenvector is feasible at beta={beta:g}: it is too large, or there are no constraints")
    costs = np.einsum("ij,ij->j", vectors, L @ vectors)
    return np.asarray(vectors[:, np.argsort(costs, kind="stable")[:n_vectors]])
