"""Stage 2 on one block: the K nearest representatives of every row.

Candidates are compared by distances in the block's own dtype, as differences and never by the expanded formula, so
nothing is lost far from the origin; the K kept distances are computed again in float64. Two layouts serve two sizes:
up to `WIDE_FEATURES` features the candidates stand as columns and the loops vectorise over candidates, above it they
stand as rows and the loops vectorise over features.
"""

from __future__ import annotations

import numpy as np

from .jit import jit, jit_fast

__all__ = [
    "WIDE_FEATURES",
    "group_rows",
    "nearest_exact",
    "nearest_in_neighborhoods",
    "nearest_in_neighborhoods_wide",
    "nearest_starts",
    "nearest_starts_wide",
]

#: Above this number of features the loops run over features.
WIDE_FEATURES = 64


@jit_fast
def _sqdist_to_columns(row, columns, n_columns, sqdist):
    """Squared distances of one row (d,) to the first columns of a (d, m) array; vectorised over the columns."""
    for j in range(n_columns):
        sqdist[j] = 0
    for f in range(columns.shape[0]):
        x = row[f]
        for j in range(n_columns):
            difference = x - columns[f, j]
            sqdist[j] += difference * difference


@jit_fast
def _sqdist(row, other, zero):
    """Squared distance of two rows (d,), summed in the type of `zero`; vectorised over the features."""
    total = zero
    for f in range(row.shape[0]):
        difference = row[f] - other[f]
        total += difference * difference
    return total


@jit
def _smallest(values, n_values):
    """Position of the first smallest of the first values."""
    best = 0
    smallest = values[0]
    for j in range(1, n_values):
        if values[j] < smallest:
            smallest = values[j]
            best = j
    return best


@jit
def _keep_smallest(sqdist, n_values, names, kept_sqdist, kept):
    """Keep the K smallest of the first values, in ascending order, ties in the order in which they stand."""
    n_kept = kept.shape[0]
    for q in range(n_kept):
        kept_sqdist[q] = np.inf
        kept[q] = names[0]
    for j in range(n_values):
        value = sqdist[j]
        if value < kept_sqdist[n_kept - 1]:
            q = n_kept - 1
            while q > 0 and kept_sqdist[q - 1] > value:
                kept_sqdist[q] = kept_sqdist[q - 1]
                kept[q] = kept[q - 1]
                q -= 1
            kept_sqdist[q] = value
            kept[q] = names[j]


@jit
def _finish(row, representatives, kept, indices, distances):
    """Write one row's kept neighbours in ascending float64 distance, recomputed as differences."""
    n_kept = kept.shape[0]
    n_features = row.shape[0]
    for q in range(n_kept):
        total = 0.0
        for f in range(n_features):
            difference = np.float64(row[f]) - representatives[kept[q], f]
            total += difference * difference
        distance = np.float32(np.sqrt(total))
        position = q
        while position > 0 and distances[position - 1] > distance:
            distances[position] = distances[position - 1]
            indices[position] = indices[position - 1]
            position -= 1
        distances[position] = distance
        indices[position] = kept[q]


@jit
def group_rows(groups, n_groups):
    """Order of the rows (n,) intp that puts equal groups together, stable; a counting sort."""
    position = np.zeros(n_groups + 1, np.intp)
    for i in range(groups.shape[0]):
        position[groups[i] + 1] += 1
    for g in range(n_groups):
        position[g + 1] += position[g]
    order = np.empty(groups.shape[0], np.intp)
    for i in range(groups.shape[0]):
        order[position[groups[i]]] = i
        position[groups[i]] += 1
    return order


@jit_fast
def nearest_starts(rows, centers, members, bounds, coordinates):
    """Steps 1 and 2: the nearest representative inside the nearest rep-cluster, uspec_usenc_2019 section 3.1.2.

    Parameters
    ----------
    rows : (n, d) float
    centers : (d, z) float
        Rep-cluster centres as columns, eq. (4).
    members, bounds : (p,) int32, (z + 1,) intp
        Representatives of rep-cluster c: ``members[bounds[c]:bounds[c + 1]]``.
    coordinates : (p * d,) float
        Their coordinates; those of rep-cluster c are a (d, size) array that begins at ``d * bounds[c]``.

    Returns
    -------
    (n,) int32
    """
    n_rows, n_features = rows.shape
    n_groups = centers.shape[1]
    largest = n_groups
    for c in range(n_groups):
        largest = max(largest, bounds[c + 1] - bounds[c])
    sqdist = np.empty(largest, rows.dtype)
    starts = np.empty(n_rows, np.int32)
    for i in range(n_rows):
        _sqdist_to_columns(rows[i], centers, n_groups, sqdist)
        c = _smallest(sqdist, n_groups)
        size = bounds[c + 1] - bounds[c]
        block = coordinates[n_features * bounds[c] : n_features * bounds[c + 1]].reshape(n_features, size)
        _sqdist_to_columns(rows[i], block, size, sqdist)
        starts[i] = members[bounds[c] + _smallest(sqdist, size)]
    return starts


@jit_fast
def nearest_starts_wide(rows, centers, members, bounds, representatives):
    """As `nearest_starts` for many features: centres (z, d) and representatives (p, d) as rows, in the rows' dtype."""
    n_rows = rows.shape[0]
    zero = rows.dtype.type(0)
    starts = np.empty(n_rows, np.int32)
    for i in range(n_rows):
        nearest = 0
        smallest = _sqdist(rows[i], centers[0], zero)
        for c in range(1, centers.shape[0]):
            value = _sqdist(rows[i], centers[c], zero)
            if value < smallest:
                smallest = value
                nearest = c
        best = members[bounds[nearest]]
        smallest = _sqdist(rows[i], representatives[best], zero)
        for j in range(bounds[nearest] + 1, bounds[nearest + 1]):
            value = _sqdist(rows[i], representatives[members[j]], zero)
            if value < smallest:
                smallest = value
                best = members[j]
        starts[i] = best
    return starts


@jit_fast
def nearest_in_neighborhoods(rows, order, starts, neighbors, coordinates, representatives, n_neighbors):
    """Step 3: the K nearest among a representative and its K' neighbours, uspec_usenc_2019 section 3.1.2.

    Parameters
    ----------
    rows : (n, d) float
    order : (n,) intp
        Order of the visits; see `group_rows`.
    starts : (n,) int32
        Result of step 2.
    neighbors : (p, K' + 1) int32
        Each representative and its K' nearest ones, nearest first.
    coordinates : (p, d, K' + 1) float
        Their coordinates as columns, in the rows' dtype.
    representatives : (p, d) float64
    n_neighbors : int
        K, at most K' + 1.

    Returns
    -------
    indices : (n, K) int32
    distances : (n, K) float32
        Euclidean, ascending.
    """
    n_rows = rows.shape[0]
    n_candidates = neighbors.shape[1]
    sqdist = np.empty(n_candidates, rows.dtype)
    kept_sqdist = np.empty(n_neighbors, rows.dtype)
    kept = np.empty(n_neighbors, np.int32)
    indices = np.empty((n_rows, n_neighbors), np.int32)
    distances = np.empty((n_rows, n_neighbors), np.float32)
    for t in range(n_rows):
        i = order[t]
        start = starts[i]
        _sqdist_to_columns(rows[i], coordinates[start], n_candidates, sqdist)
        _keep_smallest(sqdist, n_candidates, neighbors[start], kept_sqdist, kept)
        _finish(rows[i], representatives, kept, indices[i], distances[i])
    return indices, distances


@jit_fast
def nearest_in_neighborhoods_wide(rows, order, starts, neighbors, coordinates, representatives, n_neighbors):
    """As `nearest_in_neighborhoods` for many features: `coordinates` (p, d) are the representatives as rows."""
    n_rows = rows.shape[0]
    n_candidates = neighbors.shape[1]
    zero = rows.dtype.type(0)
    sqdist = np.empty(n_candidates, rows.dtype)
    kept_sqdist = np.empty(n_neighbors, rows.dtype)
    kept = np.empty(n_neighbors, np.int32)
    indices = np.empty((n_rows, n_neighbors), np.int32)
    distances = np.empty((n_rows, n_neighbors), np.float32)
    for t in range(n_rows):
        i = order[t]
        candidates = neighbors[starts[i]]
        for j in range(n_candidates):
            sqdist[j] = _sqdist(rows[i], coordinates[candidates[j]], zero)
        _keep_smallest(sqdist, n_candidates, candidates, kept_sqdist, kept)
        _finish(rows[i], representatives, kept, indices[i], distances[i])
    return indices, distances


@jit_fast
def nearest_exact(rows, columns, representatives, n_neighbors):
    """The K nearest of all representatives, by comparing with every one.

    Parameters
    ----------
    rows : (n, d) float
    columns : (d, p) float
        Representatives as columns, in the rows' dtype.
    representatives : (p, d) float64
    n_neighbors : int
        K, at most p.

    Returns
    -------
    indices : (n, K) int32
    distances : (n, K) float32
        Euclidean, ascending.
    """
    n_rows = rows.shape[0]
    n_representatives = columns.shape[1]
    names = np.arange(n_representatives).astype(np.int32)
    sqdist = np.empty(n_representatives, rows.dtype)
    kept_sqdist = np.empty(n_neighbors, rows.dtype)
    kept = np.empty(n_neighbors, np.int32)
    indices = np.empty((n_rows, n_neighbors), np.int32)
    distances = np.empty((n_rows, n_neighbors), np.float32)
    for i in range(n_rows):
        _sqdist_to_columns(rows[i], columns, n_representatives, sqdist)
        _keep_smallest(sqdist, n_representatives, names, kept_sqdist, kept)
        _finish(rows[i], representatives, kept, indices[i], distances[i])
    return indices, distances
