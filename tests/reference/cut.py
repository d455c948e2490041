"""The cut of a bipartite graph: all N + p nodes, and the transfer cut; uspec_usenc_2019, section 3.1.3.

Every matrix is dense, and B must have no empty row and no empty column.
"""

import math

import numpy as np
import scipy.linalg


def full_affinity(B):
    """E of eq. (7) with the N objects first, in the order of u in eq. (11)."""
    n, p = B.shape
    E = np.zeros((n + p, n + p))
    for i in range(n):
        for j in range(p):
            E[i, n + j] = E[n + j, i] = B[i, j]
    return E


def full_cut(B, k):
    """First k eigenpairs of L u = gamma D u on the graph of all N + p nodes, eq. (8): gamma (k,), u (N + p, k)."""
    E = full_affinity(B)
    D = np.diag(E.sum(axis=1))
    gamma, u = scipy.linalg.eigh(D - E, D)
    return gamma[:k], u[:, :k]


def small_affinity(B):
    """E_R = B^T D_X^-1 B (p, p), entry by entry."""
    n, p = B.shape
    E_R = np.zeros((p, p))
    for i in range(n):
        degree = math.fsum(B[i])
        for a in range(p):
            for b in range(p):
                E_R[a, b] += B[i, a] * B[i, b] / degree
    return E_R


def transition(B):
    """T = D_X^-1 B (N, p)."""
    return np.array([[value / math.fsum(row) for value in row] for row in B])


def small_cut(B, k):
    """First k eigenpairs of L_R v = lambda D_R v, eq. (9): lambda (k,), v (p, k)."""
    E_R = small_affinity(B)
    D_R = np.diag(E_R.sum(axis=1))
    eigenvalues, v = scipy.linalg.eigh(D_R - E_R, D_R)
    return eigenvalues[:k], v[:, :k]


def gamma_of(eigenvalue):
    """The solution gamma <= 1 of gamma (2 - gamma) = lambda, eq. (10)."""
    return 1 - math.sqrt(1 - min(max(eigenvalue, 0.0), 1.0))


def lift(B, eigenvalues, v):
    """h_i = T v_i / (1 - gamma_i), eq. (12)."""
    T = transition(B)
    columns = [T @ column / (1 - gamma_of(value)) for value, column in zip(eigenvalues, v.T, strict=True)]
    return np.stack(columns, axis=1)


def unit_rows(embedding):
    """Rows at unit length; the step of the authors' program that the paper does not name."""
    return np.array([row / math.sqrt(math.fsum(row * row)) for row in embedding])
