"""Stage 4 on one block: the small graph of the transfer cut, and the lift of its eigenvectors to the rows."""

from __future__ import annotations

import numpy as np

from .jit import jit, jit_fast

__all__ = ["lift_rows", "small_graph"]


@jit
def small_graph(indices, weights, small):
    """Add a block's share of E_R = B^T D_X^-1 B to the upper triangle of `small`; uspec_usenc_2019, eq. (9).

    Parameters
    ----------
    indices : (n, K) int32
        Right vertices; a negative one is a missing edge.
    weights : (n, K) float32
    small : (p, p) float64, changed in place

    Notes
    -----
    K (K + 1) / 2 additions a row, in row order, so the sum depends on nothing but the block.
    """
    n_rows, n_neighbors = indices.shape
    for i in range(n_rows):
        degree = 0.0
        for a in range(n_neighbors):
            if indices[i, a] >= 0:
                degree += np.float64(weights[i, a])
        if degree <= 0:
            continue
        for a in range(n_neighbors):
            u = indices[i, a]
            if u < 0:
                continue
            share = np.float64(weights[i, a]) / degree
            for b in range(a, n_neighbors):
                v = indices[i, b]
                if v >= 0:
                    small[min(u, v), max(u, v)] += share * weights[i, b]


@jit_fast
def lift_rows(indices, weights, vectors, linked, n_components):
    """Lift the eigenvectors to a block's rows and scale each row to unit length; uspec_usenc_2019, eq. (12).

    Parameters
    ----------
    indices : (n, K) int32
        Right vertices; a negative one is a missing edge.
    weights : (n, K) float32
    vectors : (p, q') float32
        v / (1 - gamma), one column an eigenvector, padded with zeros to a multiple of `PAD_COLUMNS`.
    linked : (p,) bool
        Right vertices that belong to the cut; edges to the others count as missing.
    n_components : int
        q <= q'.

    Returns
    -------
    (n, q) float32
        Row i is the weighted mean of the vectors of its right vertices, at unit length; zeros for a row without edges.
    """
    n_rows, n_neighbors = indices.shape
    n_padded = vectors.shape[1]
    row = np.empty(n_padded, np.float32)
    lifted = np.empty((n_rows, n_components), np.float32)
    for i in range(n_rows):
        degree = np.float32(0)
        for a in range(n_neighbors):
            if indices[i, a] >= 0 and linked[indices[i, a]]:
                degree += weights[i, a]
        for c in range(n_padded):
            row[c] = 0
        for a in range(n_neighbors):
            u = indices[i, a]
            if u >= 0 and linked[u]:
                share = weights[i, a] / degree  # first: all weights of a row can be tiny
                for c in range(n_padded):
                    row[c] += share * vectors[u, c]
        sqnorm = 0.0
        for c in range(n_padded):
            sqnorm += np.float64(row[c]) * np.float64(row[c])
        scale = np.float32(1.0 / np.sqrt(sqnorm)) if sqnorm > 0 else np.float32(0)
        for c in range(n_components):
            lifted[i, c] = row[c] * scale
    return lifted
