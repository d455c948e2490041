"""The second phase of MATLAB's `kmeans`, on unless it is switched off: single rows move while that helps.

Lloyd's iteration ends where each row is nearest to its own centre. A row may then still be worth moving, since both
centres follow it (Hartigan, Clustering algorithms, 1975; Spath, Cluster dissection and analysis, 1985).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from daskcluster.kernels.jit import jit

__all__ = ["move_single_rows"]

#: A move must gain this share of the objective's size, or rounding could go round in circles.
LEAST = 1e-12


def move_single_rows(
    X: Any, labels: NDArray[np.int32], n_clusters: int, *, cosine: bool = False, max_passes: int = 100
) -> NDArray[np.int32]:
    """Labels (n,) that no move of one row improves, or those after `max_passes` passes over the rows.

    Parameters
    ----------
    X : (n, d), dense or sparse
    labels : (n,)
        Where to begin; no cluster is left empty.
    n_clusters : int
    cosine : bool
        Rows are of unit length, and what is maximised is the sum of their cosines to the centres, the sum of |S_c| over
        the clusters' sums. Else what is minimised is the sum of squared distances to the means.
    max_passes : int
    """
    rows = scipy.sparse.csr_array(X, dtype=np.float64)
    moved = labels.astype(np.int32)
    members = scipy.sparse.csr_array(
        (np.ones(len(moved)), (moved, np.arange(len(moved)))), shape=(n_clusters, len(moved))
    )
    sums = np.ascontiguousarray((members @ rows).toarray().T)
    counts = np.bincount(moved, minlength=n_clusters)
    _pass_on(
        rows.data, rows.indices, rows.indptr, sums, (sums**2).sum(axis=0), counts, moved, cosine, max_passes, LEAST
    )
    return moved


@jit
def _change(cosine, sign, count, dot, square, own):
    """What the objective, to be small, gains by a row in a cluster: that joins (sign 1), or before it leaves (-1)."""
    if cosine:
        return sign * (np.sqrt(square) - np.sqrt(max(square + 2 * sign * dot + own, 0.0)))
    apart = own - 2 * dot / count + square / (count * count)
    return count / (count + sign) * apart


@jit
def _pass_on(data, indices, indptr, sums, squares, counts, labels, cosine, max_passes, least):
    n, k = len(labels), len(counts)
    dots = np.empty(k)
    still = 0
    for step in range(max_passes * n):
        i = step % n
        old = labels[i]
        if counts[old] > 1:
            dots[:] = 0.0
            own = 0.0
            for at in range(indptr[i], indptr[i + 1]):
                own += data[at] * data[at]
                for c in range(k):
                    dots[c] += data[at] * sums[indices[at], c]
            here = _change(cosine, -1.0, counts[old], dots[old], squares[old], own)
            best, lowest = old, here - least * (abs(here) + own)
            for c in range(k):
                if c != old and counts[c] > 0:
                    there = _change(cosine, 1.0, counts[c], dots[c], squares[c], own)
                    if there < lowest:
                        best, lowest = c, there
            if best != old:
                for at in range(indptr[i], indptr[i + 1]):
                    sums[indices[at], old] -= data[at]
                    sums[indices[at], best] += data[at]
                squares[old] += own - 2 * dots[old]
                squares[best] += own + 2 * dots[best]
                counts[old] -= 1
                counts[best] += 1
                labels[i] = best
                still = 0
                continue
        still += 1
        if still == n:
            return
