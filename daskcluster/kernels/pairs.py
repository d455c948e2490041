"""Base clusterings on one block: the rows that two base clusters share.

Codes are those of `kernels.incidence`.
"""

from __future__ import annotations

import numpy as np

from .jit import jit

__all__ = ["count_pairs"]


@jit
def count_pairs(codes, offsets, counts):
    """Count the rows of a block that two base clusters share: the upper triangle of N = B^T B.

    Parameters
    ----------
    codes : (n, m) int
    offsets : (m + 1,) int64
    counts : (c, c) float64, changed in place
        Whole numbers, exact.
    """
    n_columns = codes.shape[1]
    for i in range(codes.shape[0]):
        for a in range(n_columns):
            if codes[i, a] < 0:
                continue
            u = offsets[a] + np.int64(codes[i, a])
            for b in range(a, n_columns):
                if codes[i, b] >= 0:
                    counts[u, offsets[b] + np.int64(codes[i, b])] += 1.0
