"""CCS: constrained clustering by generalized eigenvectors, Cucuringu, Koutis, Chawla, Miller, Peng, AISTATS 2016.

Equations are those of fast_csc_and_secrp_2017, section 2.1, which describes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from ci.reproduction.systems.common import cluster_rows, constraint_matrix
from ci.reproduction.systems.neighbor_graph import neighbor_graph
from daskcluster.constraints import Constraints
from daskcluster.constraints.embedding import unit_rows
from daskcluster.runtime.seeding import root_seed, stream
from daskcluster.typing import Seed
from daskcluster.validation import check_integer

__all__ = ["ccs_vectors", "generalized_constrained_clustering"]

#: What makes the left side definite, relative to each row's degree.
RIDGE = 1e-10


def generalized_constrained_clustering(
    X: NDArray[Any],
    constraints: Constraints,
    n_clusters: int,
    *,
    n_neighbors: int = 30,
    alpha: float = 5.0,
    random_state: Seed = None,
) -> NDArray[np.int32]:
    """Labels (n,): k generalized eigenvectors of the nearest neighbours' graph, on the sphere, k-means.

    Notes
    -----
    fast_csc_and_secrp_2017 runs it on 30 nearest neighbours with alpha = 5. The embedding is the original's: the
    columns' mean, weighted by degrees, is subtracted, they are scaled to equal length, then the rows to unit length.
    Constraints have the weights that they are given, 1 for labels; weights by degrees, which the original gives to
    those without any, are not made.
    """
    check_integer("n_clusters", n_clusters, 1)
    W = scipy.sparse.csr_array(neighbor_graph(np.asarray(X, np.float64), n_neighbors))
    degrees = np.asarray(W.sum(axis=1)).ravel()
    _, x = ccs_vectors(W, constraints, n_clusters, alpha, random_state)
    x = x - degrees @ x / degrees.sum()
    x = x / np.sqrt(degrees @ x**2)
    return cluster_rows(unit_rows(x), n_clusters, random_state)


def ccs_vectors(
    W: scipy.sparse.csr_array, constraints: Constraints, n_vectors: int, alpha: float, random_state: Seed = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The first nontrivial eigenpairs of eq. (2): lambda (k,), ascending, and x (n, k), up to constants.

    Notes
    -----
    The right side has the original's demand graph K / n beside the cannot-links, K_ij = d_i d_j / vol: without it, it
    would be singular. Solved as L_H x = mu L_G x for the largest mu = 1 / lambda, by Lanczos' method; systems with L_G
    by conjugate gradients with its diagonal. Constants are in the null space of both sides, and mu is 0 there.
    """
    n = W.shape[0]
    degrees = np.asarray(W.sum(axis=1)).ravel()
    Q = constraint_matrix(constraints, n)
    left = _laplacian(W + alpha * Q.maximum(0))
    left = scipy.sparse.csr_array(left + RIDGE * scipy.sparse.diags_array(left.diagonal()))
    cannot = _laplacian((-Q).maximum(0))
    volume = degrees.sum()

    def right(x: NDArray[np.float64]) -> NDArray[np.float64]:
        x = x.ravel()
        return np.asarray(cannot @ x + (degrees * x - degrees * (degrees @ x / volume)) / n)

    inverse_diagonal = scipy.sparse.diags_array(1 / left.diagonal())

    def solve(b: NDArray[np.float64]) -> NDArray[np.float64]:
        b = b.ravel() - b.mean()
        found, _ = scipy.sparse.linalg.cg(left, b, rtol=1e-10, maxiter=2000, M=inverse_diagonal)
        return np.asarray(found)

    def operator(function: Any) -> Any:
        return scipy.sparse.linalg.LinearOperator((n, n), matvec=function, dtype=np.float64)

    start = stream(root_seed(random_state), "start").normal(size=n)
    mu, x = scipy.sparse.linalg.eigsh(
        operator(right), min(n_vectors, n - 2), M=left, Minv=operator(solve), which="LA", v0=start, tol=1e-6
    )
    order = np.argsort(-mu)
    return 1 / mu[order], x[:, order]


def _laplacian(W: Any) -> Any:
    return scipy.sparse.diags_array(np.asarray(W.sum(axis=1)).ravel()) - W
