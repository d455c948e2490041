"""The cross-affinity matrix, by plain loops; uspec_usenc_2019, eq. (5) and (6)."""

import math

import numpy as np

from tests.reference.neighbors import distance


def bandwidth(distances):
    """sigma of eq. (6): the average distance between the objects and their K nearest representatives."""
    values = [float(value) for row in distances for value in row]
    return math.fsum(values) / len(values)


def gaussian(distances, sigma):
    """exp(-distance^2 / (2 sigma^2)) of every entry, eq. (6)."""
    return [[math.exp(-(float(value) ** 2) / (2 * sigma**2)) for value in row] for row in distances]


def cross_affinity(rows, representatives, nearest):
    """B (N, p) of eq. (5), dense, and its sigma."""
    distances = [[distance(x, representatives[name]) for name in names] for x, names in zip(rows, nearest, strict=True)]
    sigma = bandwidth(distances)
    matrix = np.zeros((len(rows), len(representatives)))
    for i, (names, values) in enumerate(zip(nearest, gaussian(distances, sigma), strict=True)):
        for j, value in zip(names, values, strict=True):
            matrix[i, j] = value
    return matrix, sigma


def dense(indices, weights, n_right):
    """B (N, p) of listed edges; a negative index is no edge."""
    matrix = np.zeros((len(indices), n_right))
    for i, (names, values) in enumerate(zip(indices, weights, strict=True)):
        for j, value in zip(names, values, strict=True):
            if j >= 0:
                matrix[i, j] += float(value)
    return matrix


def adaptive(distances):
    """Weights of the K nearest from the K + 1 nearest distances of one row; Nie, Wang, Jordan, Huang, AAAI 2016."""
    *kept, farthest = (distance * distance for distance in distances)
    total = len(kept) * farthest - sum(kept)
    return [(farthest - square) / total if total > 0 else 1 / len(kept) for square in kept]
