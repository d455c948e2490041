"""Constraints on one block: Laplacians of labelled rows and of pairs of rows, projected onto the representatives."""

from __future__ import annotations

import numpy as np

from .jit import jit

__all__ = ["add_labelled_rows", "add_pairs"]


@jit
def add_labelled_rows(indices, weights, codes, confidences, masses, products, class_sums, column_sums):
    """Add a block's rows to the sums from which the projected Laplacians follow in closed form.

    Parameters
    ----------
    indices : (n, K) int32
        Right vertices; a negative one is a missing edge.
    weights : (n, K) float32
    codes : (n,) int32
        Class of each row, -1 for rows without a label.
    confidences : (n,) float32
        w of the labelled rows.
    masses : (T,) float64
        Sum of w over each class, in all blocks; T = 0 leaves the labels out.
    products : (p, p, 1 or 3) float64, changed in place
        Upper triangles of sum(z z^T), and of sums over the labelled rows with factors w * masses[t] and
        w * (total - masses[t]): the degrees of a row in the must-link and in the cannot-link graph.
    class_sums : (T, p) float64, changed in place
        Sum of w z over each class.
    column_sums : (p,) float64, changed in place
        Sum of z.

    Notes
    -----
    z is a row of Z^T, eq. (4) of fast_csc_and_secrp_2017: the affinities divided by their sum. K (K + 1) / 2
    additions to neighbouring places a row, in row order.
    """
    n_rows, n_neighbors = indices.shape
    labelled = len(masses) > 0
    total = 0.0
    for t in range(len(masses)):
        total += masses[t]
    shares = np.empty(n_neighbors)
    for i in range(n_rows):
        degree = 0.0
        for a in range(n_neighbors):
            if indices[i, a] >= 0:
                degree += np.float64(weights[i, a])
        if degree <= 0:
            continue
        for a in range(n_neighbors):
            shares[a] = np.float64(weights[i, a]) / degree if indices[i, a] >= 0 else 0.0
        code = codes[i] if labelled else -1
        confidence = np.float64(confidences[i]) if code >= 0 else 0.0
        same = confidence * masses[code] if code >= 0 else 0.0
        other = confidence * (total - masses[code]) if code >= 0 else 0.0
        for a in range(n_neighbors):
            u = indices[i, a]
            if u < 0:
                continue
            column_sums[u] += shares[a]
            if code >= 0:
                class_sums[code, u] += confidence * shares[a]
            for b in range(a, n_neighbors):
                v = indices[i, b]
                if v < 0:
                    continue
                product = shares[a] * shares[b]
                low, high = min(u, v), max(u, v)
                products[low, high, 0] += product
                if code >= 0:
                    products[low, high, 1] += same * product
                    products[low, high, 2] += other * product


@jit
def add_pairs(first, second, pair_weights, indices, shares, laplacian):
    """Add w (z_i - z_j) (z_i - z_j)^T of pairs of rows to the upper triangle of `laplacian`.

    Parameters
    ----------
    first, second : (m,) int64
        Pairs, as places in `indices` and `shares`.
    pair_weights : (m,) float64
    indices : (c, K) int32
        Right vertices of the rows that are named; negative for rows without edges, whose pairs do not count.
    shares : (c, K) float64
        Rows z of Z^T.
    laplacian : (p, p) float64, changed in place

    Notes
    -----
    The sum over all pairs is Z L Z^T: no Laplacian of the rows is needed. At most K (2 K + 1) additions a pair.
    """
    n_neighbors = indices.shape[1]
    columns = np.empty(2 * n_neighbors, np.int64)
    values = np.empty(2 * n_neighbors)
    for e in range(len(first)):
        i, j = first[e], second[e]
        if indices[i, 0] < 0 or indices[j, 0] < 0:
            continue
        count = 0
        for a in range(n_neighbors):
            columns[count] = indices[i, a]
            values[count] = shares[i, a]
            count += 1
        for b in range(n_neighbors):
            place = -1
            for a in range(n_neighbors):
                if columns[a] == indices[j, b]:
                    place = a
            if place < 0:
                columns[count] = indices[j, b]
                values[count] = -shares[j, b]
                count += 1
            else:
                values[place] -= shares[j, b]
        for a in range(count):
            if values[a] == 0:
                continue
            for b in range(a, count):
                low, high = min(columns[a], columns[b]), max(columns[a], columns[b])
                laplacian[low, high] += pair_weights[e] * values[a] * values[b]
