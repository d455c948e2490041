"""Co-association -> its low-rank representation, and a partition learned with it (ISEC).

isec_2020 writes the co-association matrix as S = S Z + E with Z of low rank and E of few columns, and lets the
partition H and Z shape each other:

    min  tr(H^T L_Z H) + lambda_1 |Z|_* + lambda_2 |E|_2,1   s.t.  H^T H = I,  S = S Z + E                    eq. (5)
    L_Z = I - D^-1/2 ((Z + Z^T) / 2 + H H^T) D^-1/2                                                            eq. (6)

Everything here is dense, in memory, and O(n^3) a round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..kernels.incidence import label_edges
from ..linalg import largest_eigenpairs
from ..runtime.threads import one_blas_thread
from .incidence import LabelBook

__all__ = [
    "LowRank",
    "co_association",
    "low_rank_bytes",
    "low_rank_representation",
    "mean_by_cluster",
    "shrink_columns",
    "shrink_singular_values",
    "spectral_rows",
]

#: The penalty starts here and grows by this factor a round, up to the largest.
FIRST_PENALTY = 1.0
PENALTY_GROWTH = 1.2
LARGEST_PENALTY = 1e6
#: Matrices (n, n) float64 that a round holds.
N_MATRICES = 13


@dataclass(frozen=True)
class LowRank:
    """Result of the augmented Lagrange multiplier method.

    Attributes
    ----------
    partition : (n, k) float64
        H, orthonormal columns.
    representation : (n, n) float64
        Z.
    history : (n_rounds,) float64
        |S - S Z - E|_F / |S|_F after every round; Fig. 1 (a) of isec_2020.
    """

    partition: NDArray[np.float64]
    representation: NDArray[np.float64]
    history: NDArray[np.float64]


def low_rank_bytes(n_rows: int) -> int:
    """Peak memory of `low_rank_representation`."""
    return 8 * N_MATRICES * n_rows**2


def co_association(codes: NDArray[np.integer], book: LabelBook) -> NDArray[np.float64]:
    """Share of the base clusterings in which two rows have the same label, (n, n); eq. (2) of isec_2020, over r.

    A missing label agrees with nothing.
    """
    edges = label_edges(codes, book.offsets)
    incidence = np.zeros((len(codes), book.n_base_clusters + 1), np.float32)
    np.put_along_axis(incidence, edges.astype(np.intp), 1.0, axis=1)  # -1 is the last column
    incidence = incidence[:, :-1]
    with one_blas_thread():
        together = incidence @ incidence.T  # whole numbers, exact in float32
    return together.astype(np.float64) / book.n_base_clusterings


def _degree_roots(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """D^-1/2 (n, 1) of a matrix with entries >= 0; 0 for a row of zeros."""
    degrees = matrix.sum(axis=1)
    return np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)[:, None]


def _leading(matrix: NDArray[np.float64], roots: NDArray[np.float64], n_components: int) -> NDArray[np.float64]:
    """First eigenvectors of D^-1/2 W D^-1/2, which are those of its Laplacian's smallest eigenvalues."""
    return largest_eigenpairs(matrix * roots * roots.T, n_components)[1]


def shrink_singular_values(matrix: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """Singular value thresholding, eq. (11) of isec_2020.

    Notes
    -----
    By the eigenvectors of M^T M, and only those above the threshold: a tenth of the time of a singular value
    decomposition. Squaring costs the digits of singular values below 1e-8 of the largest, which the threshold drops.
    """
    gram = matrix.T @ matrix
    most = float(np.trace(gram))
    if np.sqrt(most) <= threshold:  # a threshold may be too large for its square
        return np.zeros_like(matrix)
    values, vectors = scipy.linalg.eigh(
        gram, subset_by_value=(threshold**2, 2 * most), overwrite_a=True, check_finite=False
    )
    return (matrix @ vectors * (1.0 - threshold / np.sqrt(values))) @ vectors.T


def shrink_columns(matrix: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """Columns shortened by a threshold, those below it to 0; eq. (15) of isec_2020."""
    lengths = np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    kept = lengths > threshold
    return matrix * np.where(kept, 1.0 - threshold / np.where(kept, lengths, 1.0), 0.0)


def _random_columns(n_rows: int, n_columns: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Orthonormal columns (n, k) in any direction alike."""
    columns, factor = np.linalg.qr(rng.standard_normal((n_rows, n_columns)))
    return np.asarray(columns * np.sign(factor.diagonal()))


def low_rank_representation(
    S: NDArray[np.float64],
    n_clusters: int,
    *,
    lambda_1: float = 0.1,
    lambda_2: float = 0.01,
    max_iter: int = 50,
    tol: float = 1e-6,
    rng: np.random.Generator | None = None,
) -> LowRank:
    """Solve eq. (5) of isec_2020 by its augmented Lagrange multiplier method, eq. (8) to (17).

    Parameters
    ----------
    S : (n, n) float64
        Co-association matrix, symmetric, entries in [0, 1].
    n_clusters : int
        k <= n.
    lambda_1, lambda_2 : float
        Weights of the rank of Z and of the columns of E.
    max_iter : int
        Rounds at most.
    tol : float
        Stop when the relative error, see `LowRank.history`, is below this.
    rng : numpy.random.Generator, optional
        H starts as random orthonormal columns of it; by default as the first eigenvectors of S.

    Notes
    -----
    With D held fixed, eq. (12), the terms of the Lagrange function in Z have the gradient -A - S^T Y_1 + Y_2 + mu (S^T
    (S Z + E - S) + Z - J), A = D^-1/2 H H^T D^-1/2: the trace term is linear in Z, and A is symmetric. Its zero is (S^T
    S + I) Z = S^T S + J - S^T E + (A + S^T Y_1 - Y_2) / mu, eq. (13).

    Departures: the degrees in D are sums of absolute values, of |Z| and |H H^T|, since those of eq. (7), with entries
    of both signs, reach 0 and below. What the paper leaves open: Z starts as 0, D as the degrees of S, H as the
    eigenvectors of S with these (with Z = S at the start H settles elsewhere, and worse); the penalty starts at
    `FIRST_PENALTY` and grows by `PENALTY_GROWTH` a round.
    """
    with one_blas_thread():
        size = float(np.linalg.norm(S))
        squared = S @ S
        factor = scipy.linalg.cho_factor(squared + np.eye(len(S)), overwrite_a=True, check_finite=False)
        roots = _degree_roots(S)
        H = _leading(S, roots, n_clusters) if rng is None else _random_columns(len(S), n_clusters, rng)
        Z, E, Y1, Y2 = np.zeros((4, *S.shape))
        penalty = FIRST_PENALTY
        history = []
        for _ in range(max_iter):
            J = shrink_singular_values(Z + Y2 / penalty, lambda_1 / penalty)  # eq. (11)
            scaled = H * roots
            right = squared + J + S @ (Y1 / penalty - E) + (scaled @ scaled.T - Y2) / penalty
            Z = scipy.linalg.cho_solve(factor, right, overwrite_b=True, check_finite=False)  # eq. (13)
            rest = S - S @ Z
            E = shrink_columns(rest + Y1 / penalty, lambda_2 / penalty)  # eq. (15)
            outer = H @ H.T
            magnitude = np.abs(Z)
            roots = _degree_roots((magnitude + magnitude.T) / 2 + np.abs(outer))
            H = _leading((Z + Z.T) / 2 + outer, roots, n_clusters)  # eq. (16)
            rest -= E
            history.append(float(np.linalg.norm(rest)) / size)
            if history[-1] < tol:
                break
            Y1 += penalty * rest  # eq. (17)
            Y2 += penalty * (Z - J)
            penalty = min(penalty * PENALTY_GROWTH, LARGEST_PENALTY)
    return LowRank(H, Z, np.array(history))


def spectral_rows(Z: NDArray[np.float64], n_clusters: int) -> NDArray[np.float64]:
    """Embedding (n, k) of spectral clustering on the affinities (|Z| + |Z^T|) / 2: the paper's ISEC-Z."""
    affinity = np.abs(Z)
    affinity = (affinity + affinity.T) / 2
    return _leading(affinity, _degree_roots(affinity), n_clusters)


def unit_rows(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows at unit length; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows / np.where(lengths > 0, lengths, 1.0)


def mean_by_cluster(codes: NDArray[np.integer], book: LabelBook, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the rows (s, q) in each base cluster, (c, q): the first half of a step through the incidence.

    Zeros for a base cluster that none of them belongs to.
    """
    edges = label_edges(codes, book.offsets)
    sums = np.zeros((book.n_base_clusters, rows.shape[1]))
    counts = np.zeros(book.n_base_clusters)
    for column in range(edges.shape[1]):
        there = edges[:, column] >= 0
        np.add.at(sums, edges[there, column], rows[there])
        counts += np.bincount(edges[there, column], minlength=len(counts))
    return sums / np.maximum(counts, 1.0)[:, None]
