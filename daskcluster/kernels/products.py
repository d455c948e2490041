"""Products of a sparse matrix with a few columns."""

from __future__ import annotations

from .jit import jit_fast

__all__ = ["combine_product"]


@jit_fast
def combine_product(indptr, indices, data, columns, before, out, product, own, other):
    """Write ``product * S @ columns + own * columns + other * before``, a step of a three-term recurrence.

    Parameters
    ----------
    indptr, indices, data
        S (p, p) by compressed rows.
    columns, before : (p, m) float64
    out : (p, m) float64, written
        An array of its own.
    product, own, other : float
    """
    n_rows, n_columns = columns.shape
    for i in range(n_rows):
        for c in range(n_columns):
            out[i, c] = own * columns[i, c] + other * before[i, c]
        place, end = indptr[i], indptr[i + 1]
        while place + 1 < end:  # two entries at once: the row of `out` is written half as often
            one, two = product * data[place], product * data[place + 1]
            j, k = indices[place], indices[place + 1]
            for c in range(n_columns):
                out[i, c] += one * columns[j, c] + two * columns[k, c]
            place += 2
        if place < end:
            one, j = product * data[place], indices[place]
            for c in range(n_columns):
                out[i, c] += one * columns[j, c]
