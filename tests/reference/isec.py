"""The augmented Lagrange multiplier method of isec_2020 with a singular value decomposition and a solver a round."""

import numpy as np
import scipy.linalg


def singular_value_threshold(M, threshold):
    U, s, Vt = np.linalg.svd(M)
    return U @ np.diag(np.maximum(s - threshold, 0)) @ Vt


def shrink_column(q, threshold):
    length = np.linalg.norm(q)
    return (length - threshold) / length * q if length > threshold else 0 * q


def cut(W, degrees, k):
    root = np.diag(1 / np.sqrt(degrees))
    _, vectors = scipy.linalg.eigh(np.eye(len(W)) - root @ W @ root)
    return vectors[:, :k]


def solve(S, k, lambda_1, lambda_2, rounds, penalty=1.0, growth=1.2):
    """H H^T, Z and the relative errors after so many rounds; degrees from absolute values."""
    n = len(S)
    eye = np.eye(n)
    degrees = S.sum(axis=1)
    H = cut(S, degrees, k)
    Z, E, Y1, Y2 = np.zeros((4, n, n))
    errors = []
    for _ in range(rounds):
        J = singular_value_threshold(Z + Y2 / penalty, lambda_1 / penalty)
        root = np.diag(1 / np.sqrt(degrees))
        A = root @ H @ H.T @ root
        Z = np.linalg.solve(S.T @ S + eye, S.T @ S + J - S.T @ E + (A + S.T @ Y1 - Y2) / penalty)
        Q = S - S @ Z + Y1 / penalty
        E = np.stack([shrink_column(q, lambda_2 / penalty) for q in Q.T], axis=1)
        degrees = ((np.abs(Z) + np.abs(Z.T)) / 2 + np.abs(H @ H.T)).sum(axis=1)
        H = cut((Z + Z.T) / 2 + H @ H.T, degrees, k)
        errors.append(np.linalg.norm(S - S @ Z - E) / np.linalg.norm(S))
        Y1 = Y1 + penalty * (S - S @ Z - E)
        Y2 = Y2 + penalty * (Z - J)
        penalty *= growth
    return H @ H.T, Z, errors


def lagrange(S, H, degrees, Z, J, E, Y1, Y2, penalty):
    """The terms of eq. (9) that depend on Z, with D held fixed."""
    root = np.diag(1 / np.sqrt(degrees))
    rest = S - S @ Z - E
    return (
        -np.trace(H.T @ root @ (Z + Z.T) @ root @ H) / 2
        + (Y1 * rest).sum()
        + (Y2 * (Z - J)).sum()
        + penalty / 2 * ((rest**2).sum() + ((Z - J) ** 2).sum())
    )
