"""Projected rows of the incidence matrix as small integers: projecting, and the sums of a Lloyd pass over them.

A row b/w times the random matrix R is the integer row z = b (sqrt(a) R) over sqrt(a) w, so its m additions, and all
sums of a cluster's rows by weight, are exact.
"""

from __future__ import annotations

import numpy as np

from .jit import jit, jit_fast

__all__ = ["add_projected", "lower_to_rows", "nearest_of_products", "project_labels"]


@jit
def project_labels(codes, offsets, signs, projected):
    """Rows of the incidence matrix times a matrix of signs.

    Parameters
    ----------
    codes : (n, m) int
    offsets : (m,) int64
    signs : (c, r) int8
        Each row of the product is the sum of m of its rows.
    projected : (n, r) int, all zero, changed in place
        Of a dtype that holds whole numbers from -m to m.
    """
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            code = np.int64(codes[i, j])
            if code >= 0:
                u = offsets[j] + code
                for f in range(signs.shape[1]):
                    projected[i, f] += signs[u, f]


@jit_fast
def nearest_of_products(products, lengths, half_sqnorms, labels):
    """Nearest centre c of the rows z / t by the products z c: t |c|^2 / 2 - z c is smallest there.

    Parameters
    ----------
    products : (k, n) float32, changed in place
    lengths : (n,) float32
        t; 0 for a row that does not take part.
    half_sqnorms : (k,) float32
    labels : (n,) int32, changed in place
        The first one of equally near centres; -1 for a row that does not take part.
    """
    n_rows = lengths.shape[0]
    smallest = np.empty(n_rows, np.float32)
    for c in range(products.shape[0]):
        half = half_sqnorms[c]
        if c == 0:
            for r in range(n_rows):
                smallest[r] = lengths[r] * half - products[0, r]
                labels[r] = 0 if lengths[r] > 0 else -1
            continue
        for r in range(n_rows):
            score = lengths[r] * half - products[c, r]
            nearer = (score < smallest[r]) & (lengths[r] > 0)
            smallest[r] = score if nearer else smallest[r]
            labels[r] = np.int32(c) if nearer else labels[r]


@jit
def add_projected(rows, weights, labels, sums, masses, first):
    """Add labelled rows to the sums of a Lloyd pass.

    Parameters
    ----------
    rows : (n, r) int
    weights : (n,) float64
        Whole numbers.
    labels : (n,) int32
        A row with a negative one is skipped.
    sums : (k, r) int32, masses : (k,) float64, changed in place
        Sums of the rows and of their weights.
    first : (k,) int64, changed in place
        Smallest row number of each cluster; its initial value stays for a cluster without rows.

    Returns
    -------
    float
        Sum of |z|^2 / w over the rows.
    """
    constant = 0.0
    for i in range(rows.shape[0]):
        c = labels[i]
        if c < 0:
            continue
        masses[c] += weights[i]
        sqlength = np.int64(0)
        for f in range(rows.shape[1]):
            value = np.int32(rows[i, f])
            sums[c, f] += value
            sqlength += value * value
        constant += sqlength / weights[i]
        if i < first[c]:
            first[c] = i
    return constant


@jit
def lower_to_rows(products, sqnorms, weights, chosen, closest, lowered):
    """Weight times squared distance of the rows z / w to some of them, where that is below what it was.

    Parameters
    ----------
    products : (t, n) float
        z z' with the row z' of each trial.
    sqnorms, weights : (n,) float64
        |z|^2, and w > 0.
    chosen : (t,) intp
        The rows z'.
    closest : (n,) float64
        w times the squared distance to the nearest of the rows before.
    lowered : (t, n) float64, changed in place
        The smaller of the two; exactly 0 for rows equal to the chosen one, if the products are exact.
    """
    for t in range(products.shape[0]):
        inverse = 1.0 / weights[chosen[t]]
        own = sqnorms[chosen[t]] * inverse * inverse
        for i in range(products.shape[1]):
            other = 1.0 / weights[i]
            sqdist = (sqnorms[i] * other * other + own) - 2.0 * (np.float64(products[t, i]) * other * inverse)
            lowered[t, i] = min(weights[i] * max(sqdist, 0.0), closest[i])
