"""The best partition of a few rows in two parts, found by trying all, and the vectors of spectral clustering."""

import math

import numpy as np


def best_two_parts(cost, n):
    """Labels (n,), 0 and 1, of the least cost; row 0 has 0."""
    every = (np.array([number >> i & 1 for i in range(n)]) for number in range(2, 2**n, 2))
    return min(every, key=cost)


def two_means(points):
    """Of k-means with two clusters: the least sum of squared distances of points (n, q) to the means of their parts."""

    def cost(labels):
        parts = [points[labels == c] for c in (0, 1)]
        return math.fsum(((part - part.mean(axis=0)) ** 2).sum() for part in parts)

    return best_two_parts(cost, len(points))


def normalized_cut(W, labels):
    """The share of a part's affinities that leaves it, summed over the parts."""
    parts = [labels == c for c in set(labels.tolist())]
    return math.fsum(W[inside][:, ~inside].sum() / W[inside].sum() for inside in parts)


def unit_length(x):
    """Rows scaled to unit length."""
    return np.array([row / math.sqrt(math.fsum(row * row)) for row in x])


def normalized_affinity(W):
    """D^-1/2 W D^-1/2."""
    half = W.sum(axis=1) ** -0.5
    return W * half * half[:, None]


def first_vectors(A, k):
    """Eigenvectors (n, k) of a symmetric matrix to its largest eigenvalues."""
    return np.linalg.eigh(A)[1][:, ::-1][:, :k]
