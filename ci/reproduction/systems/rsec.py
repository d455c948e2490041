"""RSEC: robust spectral ensemble clustering, Tao, Liu, Li, Ding, Fu, CIKM 2016, as its authors' program solves it.

The problem is that of isec_2020, eq. (5). The paper was not at hand; the program does what neither paper's equations
have, see `low_rank_partition`, as the public R function `robustSpectral` tells it, which follows it. Written anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ci.reproduction.systems.partitioners import agreement
from daskcluster.constraints.embedding import unit_rows
from daskcluster.ensemble.lowrank import shrink_columns, shrink_singular_values, spectral_rows
from daskcluster.linalg import largest_eigenpairs
from daskcluster.runtime.threads import one_blas_thread

__all__ = ["low_rank_partition", "robust_embeddings", "sharpened"]

#: The penalty starts at so much over the spectral norm of S, and grows by the factor a round, up to the largest.
FIRST_PENALTY, PENALTY_GROWTH, LARGEST_PENALTY = 1.5, 1.1, 1e10
#: Eigenvalues below this share of the largest are dropped.
SMALL = 1e-4


def sharpened(M: NDArray[np.float64]) -> NDArray[np.float64]:
    """Affinities (n, n) of a symmetric M: fourth powers of the cosines between rows of U |S|^1/2, with M = U S U'."""
    values, vectors = scipy.linalg.eigh(M)
    values = np.abs(values)
    kept = values > SMALL * values.max()
    rows = unit_rows(vectors[:, kept] * np.sqrt(values[kept]))
    return np.asarray((rows @ rows.T) ** 4)


def low_rank_partition(
    S: NDArray[np.float64],
    n_clusters: int,
    *,
    lambda_1: float = 0.1,
    lambda_2: float = 0.01,
    max_iter: int = 500,
    tol: float = 1e-7,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """H (n, k) and Z (n, n) of a co-association matrix, by eq. (11), (13), (15) and (17) of isec_2020.

    Notes
    -----
    Of the program, not of the papers: H starts as 0 and D as ones; H are the first eigenvectors of the normalized
    affinities that `sharpened` makes of (Z + Z') / 2 + H H', times D^-1/2; the penalty's start and growth. It ends when
    neither S - S Z - E nor Z - J has an entry above `tol`.
    """
    n = len(S)
    with one_blas_thread():
        penalty = FIRST_PENALTY / float(np.linalg.norm(S, 2))
        squared = S @ S
        factor = scipy.linalg.cho_factor(squared + np.eye(n))
        Z, E, Y1, Y2 = np.zeros((4, n, n))
        H, roots = np.zeros((n, n_clusters)), np.ones((n, 1))
        for _ in range(max_iter):
            J = shrink_singular_values(Z + Y2 / penalty, lambda_1 / penalty)
            scaled = roots * H
            right = squared + J + S @ (Y1 / penalty - E) + (scaled @ scaled.T - Y2) / penalty
            Z = scipy.linalg.cho_solve(factor, right)
            E = shrink_columns(S - S @ Z + Y1 / penalty, lambda_2 / penalty)
            W = sharpened((Z + Z.T) / 2 + H @ H.T)
            roots = 1 / np.sqrt(W.sum(axis=1, keepdims=True))
            H = roots * largest_eigenpairs(W * roots * roots.T, n_clusters)[1]
            rest, apart = S - S @ Z - E, Z - J
            if max(np.abs(rest).max(), np.abs(apart).max()) < tol:
                break
            Y1, Y2 = Y1 + penalty * rest, Y2 + penalty * apart
            penalty = min(PENALTY_GROWTH * penalty, LARGEST_PENALTY)
    return H, Z


def robust_embeddings(base: Any, n_clusters: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Unit rows of H, and of the spectral embedding of Z, each (n, k), of base clusterings (n, m)."""
    H, Z = low_rank_partition(agreement(base), n_clusters)
    return unit_rows(H), unit_rows(spectral_rows(Z, n_clusters))
