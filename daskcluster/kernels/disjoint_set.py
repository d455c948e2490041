"""Disjoint sets: which rows belong together when pairs of them do."""

from __future__ import annotations

import numpy as np

from .jit import jit

__all__ = ["component_roots", "merge_in_order"]


@jit
def _root(parents, row):
    """Root of a row; halves the path to it."""
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


@jit
def component_roots(first, second, n_rows):
    """Merge the rows of each pair.

    Parameters
    ----------
    first, second : (m,) int64
        Pairs of rows from 0 to n_rows - 1.
    n_rows : int

    Returns
    -------
    (n_rows,) int64
        The smallest row of each row's component, so the order of the pairs does not matter.

    Notes
    -----
    The smaller root is kept, with path halving: O((n + m) log n) at most, linear in practice. 8 n bytes.
    """
    parents = np.arange(n_rows)
    for e in range(len(first)):
        a, b = _root(parents, first[e]), _root(parents, second[e])
        if a < b:
            parents[b] = a
        else:
            parents[a] = b
    for row in range(n_rows):
        parents[row] = parents[parents[row]]  # the parent is smaller, so it points to its root already
    return parents


@jit
def merge_in_order(first, second, n_rows):
    """Which pairs merge two components, when the pairs come in the given order (Kruskal 1956).

    Parameters
    ----------
    first, second : (m,) int64
    n_rows : int

    Returns
    -------
    (m,) bool
    """
    parents = np.arange(n_rows)
    merges = np.zeros(len(first), np.bool_)
    for e in range(len(first)):
        a, b = _root(parents, first[e]), _root(parents, second[e])
        if a != b:
            merges[e] = True
            parents[max(a, b)] = min(a, b)
    return merges
