"""Sums over a row's labels on one block: what a table (c, k) of base clusters and clusters says of a row.

Codes are those of `kernels.incidence`; a missing label adds nothing.
"""

from __future__ import annotations

import numpy as np

from .jit import jit

__all__ = ["least_sums", "lloyd_sums", "sum_labels"]


@jit
def _sum_row(codes, i, offsets, table, sums):
    """Add up the rows of the table that row i's labels name, in their order; the number of its labels."""
    sums[:] = 0.0
    n_labels = 0
    for j in range(codes.shape[1]):
        code = np.int64(codes[i, j])
        if code >= 0:
            n_labels += 1
            for c in range(sums.shape[0]):
                sums[c] += table[offsets[j] + code, c]
    return n_labels


@jit
def _least(sums):
    best = 0
    for c in range(1, sums.shape[0]):
        if sums[c] < sums[best]:
            best = c
    return best


@jit
def sum_labels(codes, offsets, table):
    """Sums of each row (n, k) float64; NaN for a row without labels.

    Parameters
    ----------
    codes : (n, m) int
    offsets : (m + 1,) int64
    table : (c, k) float64
    """
    out = np.empty((codes.shape[0], table.shape[1]))
    for i in range(codes.shape[0]):
        if _sum_row(codes, i, offsets, table, out[i]) == 0:
            out[i] = np.nan
    return out


@jit
def least_sums(codes, offsets, table):
    """Column of each row's smallest sum (n,) int32, the first of equal ones; -1 for a row without labels."""
    sums = np.empty(table.shape[1])
    labels = np.empty(codes.shape[0], np.int32)
    for i in range(codes.shape[0]):
        n_labels = _sum_row(codes, i, offsets, table, sums)
        labels[i] = _least(sums) if n_labels > 0 else -1
    return labels


@jit
def lloyd_sums(codes, offsets, table, counts, first):
    """Add a block's rows to the sums of a pass that assigns each row to its smallest sum.

    Parameters
    ----------
    codes, offsets, table
        As in `sum_labels`.
    counts : (c, k) int64, changed in place
        Rows of each base cluster in each cluster.
    first : (k,) int64, changed in place
        Smallest row number of each cluster within the block; its initial value stays for a cluster without rows.
    """
    sums = np.empty(table.shape[1])
    for i in range(codes.shape[0]):
        if _sum_row(codes, i, offsets, table, sums) == 0:
            continue
        label = _least(sums)
        for j in range(codes.shape[1]):
            code = np.int64(codes[i, j])
            if code >= 0:
                counts[offsets[j] + code, label] += 1
        if i < first[label]:
            first[label] = i
