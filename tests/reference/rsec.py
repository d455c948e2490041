"""The rounds of the authors' program of robust spectral ensemble clustering, with singular value decompositions."""

import numpy as np

from .isec import shrink_column, singular_value_threshold


def sharpened(M):
    U, s, _ = np.linalg.svd(M)
    rank = int((s > 1e-4 * s[0]).sum())
    rows = U[:, :rank] @ np.diag(np.sqrt(s[:rank]))
    rows = np.stack([row / np.linalg.norm(row) for row in rows])
    return (rows @ rows.T) ** 4


def solve(S, k, lambda_1, lambda_2, rounds):
    """H H' and Z after so many rounds."""
    n = len(S)
    penalty = 1.5 / np.linalg.svd(S)[1][0]
    Z, E, Y1, Y2 = np.zeros((4, n, n))
    H, D = np.zeros((n, k)), np.eye(n)
    for _ in range(rounds):
        J = singular_value_threshold(Z + Y2 / penalty, lambda_1 / penalty)
        A = D @ H @ H.T @ D
        Z = np.linalg.inv(S @ S.T + np.eye(n)) @ (S.T @ S + J - S.T @ E + (S.T @ Y1 - Y2 + A) / penalty)
        Q = S - S @ Z + Y1 / penalty
        E = np.stack([shrink_column(q, lambda_2 / penalty) for q in Q.T], axis=1)
        W = sharpened((Z + Z.T) / 2 + H @ H.T)
        D = np.diag(1 / np.sqrt(W.sum(axis=0)))
        H = D @ np.linalg.svd(D @ W @ D)[0][:, :k]
        Y1 = Y1 + penalty * (S - S @ Z - E)
        Y2 = Y2 + penalty * (Z - J)
        penalty *= 1.1
    return H @ H.T, Z
