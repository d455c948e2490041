"""The nearest of some points by a matrix product: float32 finds a few candidates, float64 decides between them.

With x and y less a common origin, abs(x - y)^2 / 2 is abs(x)^2 / 2 + s with the score s = abs(y)^2 / 2 - x y, and x y
of a tile of rows with all points is one matrix product, at the speed of the BLAS. Its rounding has a bound for any
order of the sums (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1), so the points that can be
among the K nearest are known for sure; they are compared by float64 differences, equally near ones by their position.
So the result is that of comparing differences with every point, and it depends neither on the BLAS nor on the
processor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .jit import jit

__all__ = [
    "ProductTable",
    "kth_smallest",
    "nearer_points",
    "nearest_by_products",
    "product_table",
    "tile_bytes",
    "tile_rows",
]

#: Features that a step of the float64 sums takes: points are padded to a multiple of it.
LANES = 16
#: Columns are padded to a multiple of this, a whole number of vector registers.
PAD_GROUPS = 16
#: With fewer groups the loops over them are too short.
LEAST_GROUPS = 64
#: Points of whose coordinates the median is taken.
ORIGIN_POINTS = 64
#: A tile of rows is as long as its scores fit into so many bytes, which stay in the cache.
TILE_BYTES = 2**21
LEAST_ROWS, MOST_ROWS = 64, 1024

_LARGEST_BITS = np.int32(np.iinfo(np.int32).max)
_SMALLEST_BITS = np.int32(np.iinfo(np.int32).min)
_SIGN_SHIFT = np.int32(31)
_ONE, _NONE = np.int32(1), np.int32(0)
_UNIT = 2.0**-24
#: What float64 sums may be wrong by, in bounds for float32.
_UNIT_OF_UNIT = 2.0**-28
#: Lengths from which on products could leave the range of float32; such rows are compared with every point.
_LONGEST = 1e15
#: More than what numbers below the range of float32 lose, for each feature: of products, and of lengths.
_SMALLEST = 2.0**-120
_SHORTEST = 2.0**-62


class ProductTable(NamedTuple):
    """Points (p, d), prepared for `nearest_by_products`.

    Attributes
    ----------
    origin : (d,) float32
        Subtracted from rows and points.
    columns : (d, P) float32
        Points less the origin, and zeros, as columns; P = t g.
    half : (t, g) float32
        Half of their squared lengths, infinite for padding. Column j stands at (j // g, j % g).
    longest : float
        Length of the longest, at least.
    points : (p, s, LANES) float64
        The points themselves, padded with zeros.
    """

    origin: NDArray[np.float32]
    columns: NDArray[np.float32]
    half: NDArray[np.float32]
    longest: float
    points: NDArray[np.float64]


def product_table(points: NDArray[np.floating], n_neighbors: int) -> ProductTable:
    """Prepare points (p, d), in the order in which ties are resolved, for the search of so many neighbours.

    Notes
    -----
    d P + p d numbers of 4 and 8 bytes.
    """
    n_points, n_features = points.shape
    n_groups = _group_count(n_points, n_neighbors)
    n_columns = -(-n_points // n_groups) * n_groups
    exact = points.astype(np.float64)
    columns = np.zeros((n_features, n_columns), np.float32)
    half = np.full(n_columns, np.inf, np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        origin = _origin(exact)
        apart = exact - origin if origin.any() else exact
        columns[:, :n_points] = apart.T
        sqlengths = np.einsum("ij,ij->i", apart, apart)
        half[:n_points] = 0.5 * sqlengths
    padded = np.zeros((n_points, -(-n_features // LANES), LANES))
    padded.reshape(n_points, -1)[:, :n_features] = exact
    longest = float(np.sqrt(sqlengths.max(initial=0.0))) * (1 + _UNIT)
    return ProductTable(origin, columns, half.reshape(-1, n_groups), longest, padded)


def _origin(points: NDArray[np.float64]) -> NDArray[np.float32]:
    """A place amid the points (p, d), 0 where that is hardly farther from them.

    A median, so an outlier does not take it away from the others, whose bounds would widen.
    """
    few = points[:: -(-len(points) // ORIGIN_POINTS)]
    middle = np.partition(few, (len(few) - 1) // 2, axis=0)[(len(few) - 1) // 2].astype(np.float32)
    spread = np.median(np.einsum("ij,ij->i", few - middle, few - middle))
    away = np.einsum("i,i", middle, middle, dtype=np.float64)
    return middle if spread < away < np.inf else np.zeros_like(middle)


def _group_count(n_points: int, n_neighbors: int) -> int:
    """Groups of columns, of whose smallest scores the K-th smallest is found first.

    At least K; near the number that makes the look at the groups and that at the columns of K of them equally long; and
    such that little padding is multiplied.
    """
    likely = max(LEAST_GROUPS, int(np.sqrt(1.5 * n_neighbors * n_points)))
    least = -(-min(max(n_neighbors, likely * 2 // 3), n_points) // PAD_GROUPS)
    numbers = range(least, max(least, 2 * likely // PAD_GROUPS) + 1)
    return PAD_GROUPS * min(numbers, key=lambda number: -(-n_points // (PAD_GROUPS * number)) * number)


def tile_rows(n_columns: int) -> int:
    """Rows of a tile whose products with so many columns stay in the cache."""
    return min(MOST_ROWS, max(LEAST_ROWS, TILE_BYTES // (4 * n_columns)))


def tile_bytes(n_points: int, n_features: int) -> int:
    """Scratch memory of `nearest_by_products`: the scores of a tile, and its rows less the origin."""
    n_columns = 2 * n_points + PAD_GROUPS
    return tile_rows(n_points) * (4 * n_columns + 12 * n_features + 16) + 24 * n_columns


def nearest_by_products(
    rows: NDArray[np.floating], table: ProductTable, n_neighbors: int, *, distances: bool = True
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The K nearest of all points of a table for each row.

    Parameters
    ----------
    rows : (n, d) float, finite
    table : ProductTable
        Made for so many neighbours.
    n_neighbors : int
        K, at most p.
    distances : bool
        Without them a row whose nearest is certain takes no float64 differences.

    Returns
    -------
    indices : (n, K) int32
        By their squared distance, summed up in float64, and of equally near ones by their position.
    distances : (n, K) float32
        Euclidean, ascending; (0, K) if not wanted.

    Notes
    -----
    2 p d operations a row at the speed of a float32 matrix product, and d for each candidate: K and a few where points
    differ by more than the bound, about d 2**-23 of the squared spread of all points. Where they do not, more are
    compared, in the worst case all. Scratch memory: `tile_bytes`.
    """
    n_rows, n_features = rows.shape
    n_columns = table.columns.shape[1]
    size = tile_rows(n_columns)
    products = np.empty((min(size, n_rows), n_columns), np.float32)
    indices = np.empty((n_rows, n_neighbors), np.int32)
    found = np.empty((n_rows if distances else 0, n_neighbors), np.float32)
    origin = table.origin.astype(rows.dtype)
    apart = bool(origin.any())
    unit = (n_features + 4) * _UNIT
    rounding = 1.01 * unit / (1 - unit) if unit < 0.5 else np.inf
    for start in range(0, n_rows, size):
        tile = rows[start : start + size]
        with np.errstate(over="ignore", invalid="ignore"):
            centred = (tile - origin if apart else tile).astype(np.float32, copy=False)
            scores = _multiply(centred, table.columns, products[: len(tile)])
            lengths = np.sqrt(np.einsum("ij,ij->i", centred, centred))
        _nearest_of_products(
            np.ascontiguousarray(tile),
            lengths,
            scores.reshape(len(tile), *table.half.shape),
            table.half,
            table.longest,
            table.points,
            rounding,
            indices[start : start + size],
            found[start : start + size],
        )
    return indices, found


def _multiply(rows: NDArray[np.float32], columns: NDArray[np.float32], out: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.matmul(rows, columns, out=out)


@jit
def _next_larger(keys, value):
    """The smallest of some int32 above a value."""
    larger = _LARGEST_BITS
    for g in range(keys.shape[0]):
        key = keys[g] if keys[g] > value else _LARGEST_BITS
        larger = min(larger, key)
    return larger


@jit
def kth_smallest(keys, k):
    """The k-th smallest of some int32, by looks at all of them, which vectorise; of fewer the largest int32."""
    smallest = _SMALLEST_BITS
    for _ in range(k):
        smallest = _next_larger(keys, smallest)
    n_below = _NONE
    for g in range(keys.shape[0]):
        n_below = np.int32(n_below + (_ONE if keys[g] < smallest else _NONE))
    if n_below < k:
        return smallest
    smallest = _SMALLEST_BITS  # some are equal: they count
    n_below = _NONE
    while n_below < k:
        smallest = _next_larger(keys, smallest)
        n_below = _NONE
        for g in range(keys.shape[0]):
            n_below = np.int32(n_below + (_ONE if keys[g] <= smallest else _NONE))
    return smallest


@jit
def _largest_score(smallest, length, longest, rounding):
    """The largest score that a float32 product may give one of the K nearest.

    Parameters
    ----------
    smallest : float
        The computed scores of K points are at most this.
    length, longest : float
        At least the length a of the row, and that of the longest point.
    rounding : float
        A score of a point of length b is wrong by at most rounding a b + 2**-22 b^2.

    Notes
    -----
    Points with a score up to s are at most a + sqrt(a^2 + 2 s) from the origin, so an outlier among the points does not
    widen the bound of rows that are not near it.
    """
    sqlength = ((1 + rounding) * length) * ((1 + rounding) * length)
    reach = (1 + 2 * rounding) * ((1 + rounding) * length + np.sqrt(max(0.0, sqlength + 2.001 * abs(smallest))))
    reach = min(reach, longest)
    true = smallest + rounding * length * reach + 4 * _UNIT * reach * reach
    reach = (1 + rounding) * (length + np.sqrt(max(0.0, sqlength + 2.001 * abs(true))))
    reach = min(reach, longest)
    # Float64 sums of squared distances have a rounding of their own.
    own = _UNIT_OF_UNIT * rounding * (length + reach) * (length + reach)
    return true + rounding * length * reach + 4 * _UNIT * reach * reach + own


@jit
def _sqdist(row, points, j, sums):
    """Squared distance of a padded row (s, w) to point j of (p, s, w), in float64; every sum has one fixed order."""
    width = sums.shape[0]
    for lane in range(width):
        difference = row[0, lane] - points[j, 0, lane]
        sums[lane] = difference * difference
    for s in range(1, row.shape[0]):
        for lane in range(width):
            difference = row[s, lane] - points[j, s, lane]
            sums[lane] += difference * difference
    width //= 2
    while width >= 8:
        for lane in range(width):
            sums[lane] += sums[lane + width]
        width //= 2
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))


@jit
def _nearest_of_products(rows, lengths, products, half, longest, points, rounding, indices, distances):
    """`nearest_by_products` for a tile whose products (n, t, g) are there."""
    n_rows, n_features = rows.shape
    n_steps, n_groups = half.shape
    n_points = points.shape[0]
    n_neighbors = indices.shape[1]
    minima = np.empty(n_groups, np.float32)
    bits = minima.view(np.int32)
    keys = np.empty(n_groups, np.int32)
    groups = np.empty(n_groups + 1, np.uint64)
    candidates = np.empty(n_steps * n_groups + 1, np.uint64)
    row = np.zeros(points.shape[1:])
    flat = row.reshape(-1)
    sums = np.empty(points.shape[2])
    sqdist = np.empty(n_steps * n_groups)
    nearest = np.empty(n_neighbors)
    names = np.empty(n_neighbors, np.uint64)
    last = np.empty(1, np.int32)
    last_score = last.view(np.float32)
    for r in range(n_rows):
        for g in range(n_groups):
            minima[g] = half[0, g] - products[r, 0, g]
        for t in range(1, n_steps):
            for g in range(n_groups):
                score = half[t, g] - products[r, t, g]
                minima[g] = score if score < minima[g] else minima[g]
        # The bits of floats, those of negative ones turned, sort like their values.
        for g in range(n_groups):
            keys[g] = bits[g] ^ ((bits[g] >> _SIGN_SHIFT) & _LARGEST_BITS)
        smallest = kth_smallest(keys, n_neighbors)
        last[0] = smallest ^ ((smallest >> _SIGN_SHIFT) & _LARGEST_BITS)
        length = np.float64(lengths[r]) * (1 + rounding) + n_features * _SHORTEST
        bound = np.inf
        if length < _LONGEST and longest < _LONGEST and np.isfinite(last_score[0]):
            bound = _largest_score(np.float64(last_score[0]), length, longest, rounding)
            bound += n_features * _SMALLEST * (1 + length + longest)
            bound += 2 * _UNIT * abs(bound)
        n_candidates = np.uint64(0)
        if bound < _LONGEST * _LONGEST:
            limit = np.float32(bound)
            n_taken = np.uint64(0)
            for g in range(n_groups):
                groups[n_taken] = g
                n_taken += np.uint64(1) if minima[g] <= limit else np.uint64(0)
            for q in range(n_taken):
                g = groups[q]
                for t in range(n_steps):
                    candidates[n_candidates] = np.uint64(t) * np.uint64(n_groups) + g
                    inside = half[t, g] - products[r, t, g] <= limit
                    n_candidates += np.uint64(1) if inside else np.uint64(0)
        else:
            for j in range(n_points):
                candidates[n_candidates] = j
                n_candidates += np.uint64(1)
        if n_candidates == 1 and distances.shape[0] == 0:
            indices[r, 0] = candidates[np.uint64(0)]
            continue
        for f in range(n_features):
            flat[f] = np.float64(rows[r, f])
        for q in range(n_neighbors):
            nearest[q] = np.inf
            names[q] = np.uint64(n_points)
        for c in range(n_candidates):
            sqdist[c] = _sqdist(row, points, candidates[c], sums)
        for c in range(n_candidates):
            name = candidates[c]
            value = sqdist[c]
            if value > nearest[n_neighbors - 1]:
                continue
            for q in range(n_neighbors):
                if value < nearest[q] or (value == nearest[q] and name < names[q]):
                    value, nearest[q] = nearest[q], value
                    name, names[q] = names[q], name
        for q in range(n_neighbors):
            indices[r, q] = names[q]
            if distances.shape[0]:
                distances[r, q] = np.float32(np.sqrt(nearest[q]))


@jit
def nearer_points(rows, points, first, second):
    """The nearer of two points (n,) for each row, by the same differences as `nearest_by_products`.

    Parameters
    ----------
    rows : (n, d) float
    points : (p, s, LANES) float64
        As in a `ProductTable`.
    first, second : (n,) int32
        Positions of two points; of equally near ones the smaller is taken.
    """
    n_rows, n_features = rows.shape
    row = np.zeros(points.shape[1:])
    flat = row.reshape(-1)
    sums = np.empty(points.shape[2])
    nearer = np.empty(n_rows, np.int32)
    for r in range(n_rows):
        for f in range(n_features):
            flat[f] = np.float64(rows[r, f])
        one = _sqdist(row, points, np.uint64(first[r]), sums)
        other = _sqdist(row, points, np.uint64(second[r]), sums)
        smaller = min(first[r], second[r])
        nearer[r] = smaller if one == other else (first[r] if one < other else second[r])
    return nearer
