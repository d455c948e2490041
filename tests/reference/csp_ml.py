"""Multi-layer constrained spectral clustering with dense matrices; csp_ml_and_fast_csp_ml_2019, sections 2 to 4."""

import math

import numpy as np
import scipy.linalg


def layers(rows, must, cannot, gamma):
    """W_1, W_2 of eq. (9) and W_3 of eq. (10), zero diagonals; links are (i, j, weight)."""
    n = len(rows)
    W = np.zeros((3, n, n))
    for i in range(n):
        for j in range(n):
            if i != j:
                W[0, i, j] = math.exp(-gamma * math.dist(rows[i], rows[j]) ** 2)
                W[2, i, j] = 1.0
    for i, j, weight in must:
        W[1, i, j] = W[1, j, i] = weight
    for i, j, weight in cannot:
        W[2, i, j] = W[2, j, i] = 1 - weight
    return W


def laplacian(W):
    """L = D^-1/2 (D - W) D^-1/2; a row without edges is that of I."""
    degrees = W.sum(axis=1)
    scale = np.array([1 / math.sqrt(d) if d > 0 else 0.0 for d in degrees])
    return np.eye(len(W)) - scale[:, None] * W * scale


def first_eigenvectors(L, k):
    """Eigenvectors of the k smallest eigenvalues that are below 1: A = I - L has positive ones there."""
    values, vectors = scipy.linalg.eigh(L)
    return vectors[:, :k][:, values[:k] < 1 - 1e-9]


def modified_laplacian(W, k, alpha):
    """L_mod of eq. (5)."""
    total = np.zeros_like(W[0])
    for layer in W:
        L = laplacian(layer)
        U = first_eigenvectors(L, k)
        total += L - alpha * U @ U.T
    return total


def csp_ml(W, k, alpha):
    """Algorithm 3: the first k eigenvalues of L_mod, and their vectors with rows at unit length."""
    values, vectors = scipy.linalg.eigh(modified_laplacian(W, k, alpha))
    return values[:k], unit_rows(vectors[:, :k])


def nystroem(C, at, k, ratio, positive):
    """Largest approximate eigenvectors U (n, k') and eigenvalues of sampled columns C (n, l) at rows `at`."""
    Q = (C[at] + C[at].T) / 2
    values, vectors = scipy.linalg.eigh(Q)
    chosen = [
        c
        for c in range(len(Q) - 1, len(Q) - 1 - k, -1)
        if c >= 0 and (values[c] if positive else abs(values[c])) > 1e-9
    ]
    return ratio * C @ vectors[:, chosen] / values[chosen], values[chosen] / ratio**2


def fast_csp_ml(W, at, k, alpha):
    """Algorithm 4 on the normalized adjacencies: eigenvalues, and the embedding with rows at unit length."""
    n, ratio = W.shape[1], math.sqrt(len(at) / W.shape[1])
    total = np.zeros((n, len(at)))
    for layer in W:
        columns = layer[:, at]
        D, Delta = columns.sum(axis=1), columns.sum(axis=0)
        D, Delta = (np.array([1 / math.sqrt(d) if d > 0 else 0.0 for d in degrees]) for degrees in (D, Delta))
        C = ratio * D[:, None] * columns * Delta  # eq. (13) and (14), without I(:, S)
        if not C.any():
            continue
        U, _ = nystroem(C, at, k, ratio, True)
        total += C + alpha * U @ U[at].T  # eq. (15) and (16)
    U, values = nystroem(total, at, k, ratio, False)
    return values, unit_rows(U)


def unit_rows(U):
    return np.array([row / (math.sqrt(math.fsum(row * row)) or 1.0) for row in U])
