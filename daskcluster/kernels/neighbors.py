"""Stage 2 on one block: the K nearest representatives of every row.

The exact search compares a row with all representatives. Where these are many, a float32 matrix product finds the few
that can be among the nearest, see `nearest_points`. Few of them, and the neighbourhoods of the approximate search, are
compared by differences in the block's own dtype, so nothing is lost far from the origin; the K kept ones are computed
again in float64. There candidates are ranked in float32, ties by the order in which they stand: the bits of a float
>= 0 sort like its value, so (bits, position) is one integer, and the smallest of integers are found without branches
that the processor would guess wrong.

Two layouts of neighbourhoods serve two sizes: up to `WIDE_FEATURES` features the candidates stand as columns and the
loops vectorise over candidates, above it they stand as rows and the loops vectorise over features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .jit import jit, jit_fast
from .nearest_points import ProductTable, kth_smallest, nearest_by_products, product_table

__all__ = [
    "LONG_STRIP",
    "NEAREST_IN_NEIGHBORHOODS",
    "PAD_COLUMNS",
    "SHORT_FEATURES",
    "SHORT_STRIP",
    "WIDE_FEATURES",
    "ExactSearch",
    "exact_search",
    "nearest_exact",
    "nearest_in_neighborhoods_wide",
    "nearest_starts",
    "nearest_starts_wide",
    "order_by_start",
]

#: Above this number of features the loops run over features.
WIDE_FEATURES = 64
#: Columns are padded to a multiple of this with infinite ones, a whole number of vector registers.
PAD_COLUMNS = 16

#: A matrix product serves the exact search from p (d + `FIXED_FEATURES`) >= `LEAST_PRODUCT` on: what it costs a row
#: besides the product is that of some hundred comparisons.
LEAST_PRODUCT, FIXED_FEATURES = 4096, 16

_LARGEST_KEY = np.iinfo(np.int64).max
_LARGEST_BITS = np.iinfo(np.int32).max
_POSITION = 2**32 - 1
# Rounding of the distances in the triangle inequality.
_SLACK = 1e-5


@jit_fast
def _sqdist(rows, i, others, j):
    """Squared distance of row i of (n, d) to row j of (p, d), in the rows' dtype; vectorised over the features."""
    total = rows.dtype.type(0)
    for f in range(rows.shape[1]):
        difference = rows[i, f] - others[j, f]
        total += difference * difference
    return total


@jit
def _keep(best, key):
    """Put a key into the sorted smallest ones, which drops the largest; no branches."""
    for q in range(best.shape[0]):
        other = best[q]
        best[q] = min(other, key)
        key = max(other, key)


@jit
def _finish(rows, i, representatives, kept, indices, distances):
    """Write row i's kept neighbours in ascending float64 distance, recomputed as differences."""
    for q in range(kept.shape[0]):
        total = 0.0
        for f in range(rows.shape[1]):
            difference = np.float64(rows[i, f]) - representatives[kept[q], f]
            total += difference * difference
        distance = np.float32(np.sqrt(total))
        position = q
        while position > 0 and distances[i, position - 1] > distance:
            distances[i, position] = distances[i, position - 1]
            indices[i, position] = indices[i, position - 1]
            position -= 1
        distances[i, position] = distance
        indices[i, position] = kept[q]


@jit_fast
def nearest_starts(rows, groups, sizes, members, coordinates):
    """Step 2: the nearest representative inside the nearest rep-cluster, uspec_usenc_2019 section 3.1.2.

    Parameters
    ----------
    rows : (n, d) float
    groups : (n,) int32
        The nearest rep-cluster of each row, step 1.
    sizes : (z,) intp
        Columns of each rep-cluster, padding included.
    members : (z, m) int32
        Representatives of each rep-cluster.
    coordinates : (z, d, m) float
        Their coordinates as columns, padded with infinite ones.

    Returns
    -------
    (n,) int32

    Notes
    -----
    The comparison leaves out as many of the last bits of float32 as the position needs, which takes their place: enough
    for a start.
    """
    n_rows = rows.shape[0]
    largest = coordinates.shape[2]
    sqdist = np.empty(largest, rows.dtype)
    low = np.empty(largest, np.float32)
    bits = low.view(np.int32)
    mask = np.int32(1)
    while mask < largest:
        mask *= np.int32(2)
    mask -= np.int32(1)
    starts = np.empty(n_rows, np.int32)
    for i in range(n_rows):
        group = groups[i]
        size = sizes[group]
        x = rows[i, 0]
        for j in range(size):
            difference = x - coordinates[group, 0, j]
            sqdist[j] = difference * difference
        for f in range(1, rows.shape[1]):
            x = rows[i, f]
            for j in range(size):
                difference = x - coordinates[group, f, j]
                sqdist[j] += difference * difference
        for j in range(size):
            low[j] = np.float32(sqdist[j])
        smallest = np.int32(_LARGEST_BITS)
        for j in range(size):
            key = (bits[j] & ~mask) | np.int32(j)
            smallest = key if key < smallest else smallest
        starts[i] = members[group, smallest & mask]
    return starts


def nearest_starts_wide(
    rows: NDArray[np.floating],
    groups: NDArray[np.int32],
    sizes: NDArray[np.intp],
    members: NDArray[np.int32],
    tables: Sequence[ProductTable],
) -> NDArray[np.int32]:
    """As `nearest_starts` for many features: rep-clusters as tables (z) for matrix products, `sizes` without padding.

    Notes
    -----
    The rows of one rep-cluster are copied together at a time.
    """
    starts = np.empty(len(rows), np.int32)
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(len(sizes) + 1))
    for group in np.flatnonzero(np.diff(ends)).tolist():
        inside = order[ends[group] : ends[group + 1]]
        found, _ = nearest_by_products(rows[inside], tables[group], 1, distances=False)
        starts[inside] = members[group][found[:, 0]]
    return starts


@jit
def order_by_start(starts, n_starts):
    """Numbers of rows by their starts (n,), those of one start in their order; (n,) int32."""
    places = np.zeros(n_starts + 1, np.int64)
    for i in range(starts.shape[0]):
        places[starts[i] + 1] += 1
    for j in range(n_starts):
        places[j + 1] += places[j]
    order = np.empty(starts.shape[0], np.int32)
    for i in range(starts.shape[0]):
        order[places[starts[i]]] = i
        places[starts[i]] += 1
    return order


#: Width of the strips of neighbours for up to `SHORT_FEATURES` features, where the search ends early, and for more,
#: where longer loops count for more.
SHORT_FEATURES, SHORT_STRIP, LONG_STRIP = 4, 16, 64


def _make_nearest_in_neighborhoods(strip: int) -> Any:
    """Compile step 3 for one width of the strips: a constant in the inner loops doubles their speed."""

    @jit_fast
    def nearest_in_neighborhoods(rows, starts, order, neighbors, reach, coordinates, representatives, n_neighbors):
        """Step 3: the K nearest among a representative and its K' neighbours, uspec_usenc_2019 section 3.1.2.

        Parameters
        ----------
        rows : (n, d) float
        starts : (n,) int32
            Result of step 2.
        order : (n,) int32
            In which the rows are looked at: those of one start after the other find its neighbourhood in the cache.
        neighbors : (p, s * strip) int32
            Each representative and its K' nearest ones, nearest first, padded.
        reach : (p, s * strip) float32
            Distances from the representative to these.
        coordinates : (p, s, d, strip) float
            Their coordinates as columns, in the rows' dtype, in s strips, padded with infinite columns.
        representatives : (p, d) float64
        n_neighbors : int
            K, at most K' + 1.

        Returns
        -------
        indices : (n, K) int32
        distances : (n, K) float32
            Euclidean, ascending.

        Notes
        -----
        A neighbour is at least ``reach`` less the row's distance to the start away. When that exceeds the K-th best,
        no later one can be nearer, and the search ends: the result is that of looking at all K' + 1.
        """
        n_rows, n_features = rows.shape
        sqdist = np.empty(strip, rows.dtype)
        low = np.empty(strip, np.float32)
        bits = low.view(np.int32)
        taken = np.empty(strip + 1, np.uint64)
        best = np.empty(n_neighbors, np.int64)
        kept = np.empty(n_neighbors, np.int32)
        indices = np.empty((n_rows, n_neighbors), np.int32)
        distances = np.empty((n_rows, n_neighbors), np.float32)
        for i in order:
            start = starts[i]
            best[:] = _LARGEST_KEY
            from_start = np.float32(0)
            for s in range(coordinates.shape[1]):
                begin = s * strip
                if s > 0:
                    gap = reach[start, begin] * (1 - _SLACK) - from_start * (1 + _SLACK)
                    if gap > 0:
                        low[0] = gap * gap
                        if bits[0] > best[n_neighbors - 1] >> np.int64(32):
                            break
                x = rows[i, 0]
                for j in range(strip):
                    difference = x - coordinates[start, s, 0, j]
                    sqdist[j] = difference * difference
                for f in range(1, n_features):
                    x = rows[i, f]
                    for j in range(strip):
                        difference = x - coordinates[start, s, f, j]
                        sqdist[j] += difference * difference
                for j in range(strip):
                    low[j] = np.float32(sqdist[j])
                ranked = 0
                if s == 0:
                    from_start = np.sqrt(low[0])
                    ranked = strip
                    if strip == SHORT_STRIP:
                        for j in range(strip):  # most of these are kept at first: without a branch
                            _keep(best, (np.int64(bits[j]) << np.int64(32)) | np.int64(j))
                    else:
                        last = kth_smallest(bits, n_neighbors)
                        n_taken = np.uint64(0)
                        for j in range(strip):
                            taken[n_taken] = j
                            n_taken += np.uint64(1) if bits[j] <= last else np.uint64(0)
                        for q in range(n_taken):
                            j = taken[q]
                            _keep(best, (np.int64(bits[j]) << np.int64(32)) | np.int64(j))
                for j in range(ranked, strip):
                    if bits[j] < best[n_neighbors - 1] >> np.int64(32):
                        _keep(best, (np.int64(bits[j]) << np.int64(32)) | np.int64(begin + j))
            for q in range(n_neighbors):
                kept[q] = neighbors[start, best[q] & _POSITION]
            _finish(rows, i, representatives, kept, indices, distances)
        return indices, distances

    return nearest_in_neighborhoods


NEAREST_IN_NEIGHBORHOODS = {strip: _make_nearest_in_neighborhoods(strip) for strip in (SHORT_STRIP, LONG_STRIP)}


@jit_fast
def nearest_in_neighborhoods_wide(rows, starts, order, neighbors, reach, coordinates, representatives, n_neighbors):
    """As `nearest_in_neighborhoods` for many features: `coordinates` (p, d) are the representatives as rows."""
    n_rows = rows.shape[0]
    n_candidates = neighbors.shape[1]
    low = np.empty(1, np.float32)
    bits = low.view(np.int32)
    best = np.empty(n_neighbors, np.int64)
    kept = np.empty(n_neighbors, np.int32)
    indices = np.empty((n_rows, n_neighbors), np.int32)
    distances = np.empty((n_rows, n_neighbors), np.float32)
    for i in order:
        start = starts[i]
        best[:] = _LARGEST_KEY
        from_start = np.float32(0)
        for j in range(n_candidates):
            gap = reach[start, j] * (1 - _SLACK) - from_start * (1 + _SLACK)
            if j >= n_neighbors and gap > 0:
                low[0] = gap * gap
                if bits[0] > best[n_neighbors - 1] >> np.int64(32):
                    break
            low[0] = np.float32(_sqdist(rows, i, coordinates, neighbors[start, j]))
            if j == 0:
                from_start = np.sqrt(low[0])
            key = (np.int64(bits[0]) << np.int64(32)) | np.int64(j)
            if key < best[n_neighbors - 1]:
                _keep(best, key)
        for q in range(n_neighbors):
            kept[q] = neighbors[start, best[q] & _POSITION]
        _finish(rows, i, representatives, kept, indices, distances)
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
    sqdist = np.empty(n_representatives, rows.dtype)
    low = np.empty(n_representatives, np.float32)
    bits = low.view(np.int32)
    best = np.empty(n_neighbors, np.int64)
    kept = np.empty(n_neighbors, np.int32)
    indices = np.empty((n_rows, n_neighbors), np.int32)
    distances = np.empty((n_rows, n_neighbors), np.float32)
    for i in range(n_rows):
        x = rows[i, 0]
        for j in range(n_representatives):
            difference = x - columns[0, j]
            sqdist[j] = difference * difference
        for f in range(1, rows.shape[1]):
            x = rows[i, f]
            for j in range(n_representatives):
                difference = x - columns[f, j]
                sqdist[j] += difference * difference
        for j in range(n_representatives):
            low[j] = np.float32(sqdist[j])
        best[:] = _LARGEST_KEY
        for j in range(n_representatives):
            if bits[j] < best[n_neighbors - 1] >> np.int64(32):
                _keep(best, (np.int64(bits[j]) << np.int64(32)) | np.int64(j))
        for q in range(n_neighbors):
            kept[q] = best[q] & _POSITION
        _finish(rows, i, representatives, kept, indices, distances)
    return indices, distances


@dataclass(frozen=True)
class ExactSearch:
    """The search for the nearest of all representatives.

    Attributes
    ----------
    points : (p, d) float64
    columns : (d, p) in the rows' dtype, or None
    table : ProductTable, or None
        One of the two.
    """

    points: NDArray[np.float64]
    columns: NDArray[np.floating] | None
    table: ProductTable | None

    def __call__(self, rows: NDArray[np.floating], n_neighbors: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """K nearest of each row (n, d): indices (n, K) and Euclidean distances (n, K), ascending."""
        if self.table is not None:
            return nearest_by_products(rows, self.table, n_neighbors)
        indices, distances = nearest_exact(rows, self.columns, self.points, n_neighbors)
        return indices, distances


def exact_search(points: NDArray[np.float64], dtype: np.dtype[Any], n_neighbors: int) -> ExactSearch:
    """Prepare representatives (p, d) for rows of a dtype and so many neighbours."""
    n_points, n_features = points.shape
    if n_points * (n_features + FIXED_FEATURES) >= LEAST_PRODUCT:
        return ExactSearch(points, None, product_table(points, n_neighbors))
    return ExactSearch(points, np.ascontiguousarray(points.T, dtype=dtype), None)
