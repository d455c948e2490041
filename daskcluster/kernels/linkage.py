"""Distinct rows of codes -> how alike two of them are, and agglomeration of weighted points by that.

Likeness of pairs is condensed, as SciPy has it: of i < j at ``i * (2 u - i - 3) / 2 + j - 1``.
"""

from __future__ import annotations

import numpy as np

from .jit import jit

__all__ = ["AVERAGE", "COMPLETE", "SINGLE", "agglomerate", "connected_triples", "row_likeness"]

AVERAGE, COMPLETE, SINGLE = 0, 1, 2
#: Likeness is compared in whole multiples of 1 over this: what differs by rounding only, is a tie.
STEPS = 2.0**32


@jit
def row_likeness(codes, offsets, weights, unlike, starts, mean):
    """Likeness of rows, their mean likeness in the base clusterings; condensed.

    Parameters
    ----------
    codes : (u, m) int
    offsets : (m + 1,) int64
    weights : (c,) float64
        What two rows of the same base cluster are alike.
    unlike : (sum of K_i**2,) float64, or empty
        What two rows of different clusters of a base clustering are alike; empty for 0.
    starts : (m,) int64
        Where the K_i**2 numbers of each base clustering start.
    mean : float
        What two rows are alike on average.

    Returns
    -------
    (u (u - 1) / 2,) float64

    Notes
    -----
    Of rows with missing labels the mean goes over the base clusterings that label both, and one more in which they are
    as alike as any two: else a row that has but one label would be as similar as can be to all with that label.
    """
    n_rows, n_columns = codes.shape
    out = np.empty(n_rows * (n_rows - 1) // 2)
    place = 0
    for i in range(n_rows):
        for k in range(i + 1, n_rows):
            both = 0
            total = 0.0
            for j in range(n_columns):
                one = np.int64(codes[i, j])
                other = np.int64(codes[k, j])
                if one < 0 or other < 0:
                    continue
                both += 1
                if one == other:
                    total += weights[offsets[j] + one]
                elif len(unlike) > 0:
                    total += unlike[starts[j] + one * (offsets[j + 1] - offsets[j]) + other]
            out[place] = total / both if both == n_columns else (total + mean) / (both + 1)
            place += 1
    return out


@jit
def connected_triples(links, offsets, starts, out):
    """Sum over all base clusters of the smaller of two clusters' links to it, for clusters of one base clustering.

    Parameters
    ----------
    links : (c, c) float64
    offsets : (m + 1,) int64
    starts : (m,) int64
    out : (sum of K_i**2,) float64, written
        Symmetric within each base clustering; 0 on the diagonals.
    """
    for a in range(len(starts)):
        width = offsets[a + 1] - offsets[a]
        for i in range(width):
            out[starts[a] + i * width + i] = 0.0
            for k in range(i + 1, width):
                total = 0.0
                for other in range(links.shape[0]):
                    total += min(links[offsets[a] + i, other], links[offsets[a] + k, other])
                out[starts[a] + i * width + k] = total
                out[starts[a] + k * width + i] = total


@jit
def _at(n, i, j):
    """Place of a pair i < j."""
    return i * (2 * n - i - 3) // 2 + j - 1


@jit
def _steps(value, weight):
    return np.floor(value / weight * STEPS + 0.5)


@jit
def _look(likeness, sizes, active, n, i, average, best, together, partner):
    """Set the partner of i among the later ones: the most similar, of equal ones the lightest, of these the first.

    `best[i]` and `together[i]` come as bounds: nothing is better, so a partner as good as that ends the search.
    """
    bound = best[i]
    least = together[i]
    found = -1.0
    weight = np.inf
    row = _at(n, i, 0)
    for j in range(i + 1, n):
        if active[j]:
            value = _steps(likeness[row + j], sizes[i] * sizes[j] if average else 1.0)
            if value > found or (value == found and sizes[i] + sizes[j] < weight):
                found = value
                weight = sizes[i] + sizes[j]
                partner[i] = j
                if value == bound and weight == least:
                    break
    best[i] = found
    together[i] = weight


@jit
def _first_pair(sizes, active, likeness, n, average, best, together, partner, stale):
    """Return the first of the two clusters to join next, whose partner is known."""
    while True:
        a = -1
        for i in range(n):
            if not active[i] or best[i] < 0:
                continue
            if a < 0 or best[i] > best[a] or (best[i] == best[a] and together[i] < together[a]):
                a = i
        if not stale[a]:
            return a
        stale[a] = False
        _look(likeness, sizes, active, n, a, average, best, together, partner)


@jit
def _join(likeness, n, i, a, b, kind):
    """Likeness of i and the cluster that a becomes with b."""
    to_a = _at(n, min(i, a), max(i, a))
    to_b = _at(n, min(i, b), max(i, b))
    if kind == AVERAGE:
        likeness[to_a] += likeness[to_b]
    elif kind == COMPLETE:
        likeness[to_a] = min(likeness[to_a], likeness[to_b])
    else:
        likeness[to_a] = max(likeness[to_a], likeness[to_b])


@jit
def agglomerate(likeness, sizes, n_clusters, kind):
    """Join the two most similar clusters of points until so many are left.

    Parameters
    ----------
    likeness : (u (u - 1) / 2,) float64, changed in place
        Not negative, at most 1.
    sizes : (u,) float64
        Weight of each point.
    n_clusters : int
    kind : int
        `AVERAGE`: clusters are as similar as their points in the weighted mean; `COMPLETE`, `SINGLE`: as the least, the
        most similar pair of points.

    Returns
    -------
    (u,) int32
        Cluster of each point, numbered by their first points.

    Notes
    -----
    Of equally similar pairs those of the least weight together are joined, and of these those whose first points come
    first. Likeness is compared in multiples of 2**-32, so that neither the order of sums nor whether a point of weight
    w stands as w points decides. Each cluster keeps its best partner among the later ones; when that is joined to
    another, what it was bounds what is left, and it is looked for again when the bound is the best of all. Some u**2
    steps.
    """
    n = len(sizes)
    average = kind == AVERAGE
    sizes = sizes.copy()
    cluster = np.arange(n)
    active = np.ones(n, np.bool_)
    best = np.full(n, np.inf)
    together = np.zeros(n)
    partner = np.full(n, -1, np.int64)
    stale = np.zeros(n, np.bool_)
    if average:
        for i in range(n):
            row = _at(n, i, 0)
            for j in range(i + 1, n):
                likeness[row + j] *= sizes[i] * sizes[j]
    for i in range(n):
        _look(likeness, sizes, active, n, i, average, best, together, partner)
    for _ in range(n - n_clusters):
        a = _first_pair(sizes, active, likeness, n, average, best, together, partner, stale)
        b = partner[a]
        for i in range(n):
            if active[i] and i != a and i != b:
                _join(likeness, n, i, a, b, kind)
        active[b] = False
        cluster[b] = a
        sizes[a] += sizes[b]
        for i in range(b):
            if not active[i]:
                continue
            if partner[i] == a or partner[i] == b:
                stale[i] = True
            if i < a:
                value = _steps(likeness[_at(n, i, a)], sizes[i] * sizes[a] if average else 1.0)
                weight = sizes[i] + sizes[a]
                if value > best[i] or (value == best[i] and (weight, a) < (together[i], partner[i])):
                    best[i] = value
                    together[i] = weight
                    partner[i] = a
                    stale[i] = False
        best[a] = np.inf  # unknown: it is looked for at once
        together[a] = 0.0
        stale[a] = True
    labels = np.empty(n, np.int32)
    n_found = 0
    for i in range(n):
        if cluster[i] == i:
            labels[i] = n_found
            n_found += 1
        else:
            labels[i] = labels[cluster[i]]
    return labels
