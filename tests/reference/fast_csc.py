"""Constrained spectral clustering on all rows, and through landmarks; fast_csc_and_secrp_2017, sections 2.1, 2.2 and 3.

Every matrix is dense and every sum over pairs of rows is a loop.
"""

import math

import numpy as np
import scipy.linalg


def landmark_affinities(rows, landmarks, r):
    """Z^T of eq. (4), (n, p): Gaussian affinities to the r nearest landmarks, divided by their sum.

    The bandwidth is the mean of all n r distances.
    """
    n, p = len(rows), len(landmarks)
    distances = [[math.dist(row, landmark) for landmark in landmarks] for row in rows]
    nearest = [sorted(range(p), key=lambda j, i=i: distances[i][j])[:r] for i in range(n)]
    sigma = math.fsum(distances[i][j] for i in range(n) for j in nearest[i]) / (n * r)
    Z = np.zeros((n, p))
    for i in range(n):
        affinities = [math.exp(-((distances[i][j] / sigma) ** 2) / 2) for j in nearest[i]]
        for j, affinity in zip(nearest[i], affinities, strict=True):
            Z[i, j] = affinity / math.fsum(affinities)
    return Z


def scaled(Z):
    """Zhat^T (n, p) of eq. (5): the columns divided by the roots of their sums."""
    return np.array([[value / math.sqrt(math.fsum(Z[:, j])) for j, value in enumerate(row)] for row in Z])


def pairs_of_labels(labels):
    """Must-links and cannot-links of partial labels, eq. (33): lists of (i, j, 1.0)."""
    must, cannot = [], []
    for i in range(len(labels)):
        for j in range(i + 1, len(labels)):
            if labels[i] >= 0 and labels[j] >= 0:
                (must if labels[i] == labels[j] else cannot).append((i, j, 1.0))
    return must, cannot


def laplacian(n, links):
    """L = D - W of the graph whose edges are (i, j, weight)."""
    L = np.zeros((n, n))
    for i, j, weight in links:
        L[i, i] += weight
        L[j, j] += weight
        L[i, j] -= weight
        L[j, i] -= weight
    return L


def full_problem(W, must, cannot, alpha):
    """Both sides of eq. (2) for an adjacency matrix of unit degrees, the demand graph K / n added on the right."""
    n = len(W)
    degrees = W.sum(axis=1)
    K = np.outer(degrees, degrees) / degrees.sum()
    demand = np.diag(K.sum(axis=1)) - K
    left = np.diag(degrees) - W + alpha * laplacian(n, must)
    right = laplacian(n, cannot) + demand / n
    return left, right


def full_eigenvectors(left, right, k):
    """The first k nontrivial generalized eigenpairs: lambda (k,), x (n, k), orthogonal to the constant vector."""
    n = len(left)
    basis = scipy.linalg.null_space(np.ones((1, n)))
    mu, z = scipy.linalg.eigh(basis.T @ right @ basis, basis.T @ left @ basis)
    return 1 / mu[::-1][:k], (basis @ z)[:, ::-1][:, :k]


def embedding(x):
    """Step 5: subtract the mean, scale the columns to unit length, then the rows."""
    x = x - x.mean(axis=0)
    x = x / np.linalg.norm(x, axis=0)
    return np.array([row / math.sqrt(math.fsum(row * row)) for row in x])


def landmark_eigenvectors(Zhat, must, cannot, alpha, k):
    """The same through landmarks, eq. (12) and (13): lambda (k,), x = Zhat^T y (n, k)."""
    n = len(Zhat)
    G = Zhat.T @ Zhat
    g = Zhat.sum(axis=0)
    left = G - G @ G + alpha * Zhat.T @ laplacian(n, must) @ Zhat
    right = Zhat.T @ laplacian(n, cannot) @ Zhat + (G - np.outer(g, g) / n) / n
    basis = scipy.linalg.null_space(g[None])
    left, right = basis.T @ left @ basis, basis.T @ right @ basis
    mu, z = scipy.linalg.eigh(right, left + 1e-12 * np.eye(len(left)))
    return 1 / mu[::-1][:k], Zhat @ (basis @ z)[:, ::-1][:, :k]
