"""Weighted k-means on one block: assignment to the nearest centre, the sums of a Lloyd pass, k-means++ starts.

Two forms of the assignment serve two sizes: loops over differences for few features or few centres, and a matrix
product over tiles of rows for many of both, whose rounding decides nothing, see `nearest_points`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .jit import jit, jit_fast
from .nearest_points import ProductTable, nearer_points, nearest_by_products, product_table, tile_bytes
from .sparse_rows import SparsePoints, SparseRows, sparse_byte_order

__all__ = [
    "CenterSearch",
    "accumulate_rows",
    "assign_rows",
    "byte_order",
    "closest_sqdist",
    "nearest_center",
    "plus_plus_rows",
    "reassign_rows",
    "search_bytes",
    "sqdist_to_centers",
    "weighted_sqdist",
]

#: The matrix product is used from these numbers of features and centres on, and for many features with any centres.
PRODUCT_FEATURES = 32
PRODUCT_CENTERS = 32
MANY_FEATURES = 64
#: Bytes of a number of sparse centres while they are prepared: by rows in their order, by columns, as strings of bytes.
SPARSE_SEARCH_BYTES = 96
#: Rows are compared with all centres where the shares of centres that moved, and of rows in their clusters, are more.
MOST_MOVED = 0.8
#: Rows of a tile of the loops; their columns stay in the first-level cache.
TILE = 256


@jit_fast
def nearest_center(points, centers):
    """Nearest centre of each row by differences.

    Parameters
    ----------
    points : (n, q) float
    centers : (k, q) float
        In the dtype of `points`.

    Returns
    -------
    (n,) int32
        The first one of equally near ones.

    Notes
    -----
    Tiles of rows are transposed, so that the loops vectorise over rows and need no branches. 4 q numbers a tile row.
    """
    n_rows, n_features = points.shape
    columns = np.empty((n_features, TILE), points.dtype)
    sqdist = np.empty(TILE, points.dtype)
    smallest = np.empty(TILE, points.dtype)
    nearest = np.empty(TILE, np.int32)
    labels = np.empty(n_rows, np.int32)
    for begin in range(0, n_rows, TILE):
        width = min(TILE, n_rows - begin)
        for r in range(width):
            for f in range(n_features):
                columns[f, r] = points[begin + r, f]
        for c in range(centers.shape[0]):
            x = centers[c, 0]
            for r in range(width):
                difference = columns[0, r] - x
                sqdist[r] = difference * difference
            for f in range(1, n_features):
                x = centers[c, f]
                for r in range(width):
                    difference = columns[f, r] - x
                    sqdist[r] += difference * difference
            if c == 0:
                for r in range(width):
                    smallest[r] = sqdist[r]
                    nearest[r] = 0
            else:
                for r in range(width):
                    nearer = sqdist[r] < smallest[r]
                    smallest[r] = sqdist[r] if nearer else smallest[r]
                    nearest[r] = np.int32(c) if nearer else nearest[r]
        for r in range(width):
            labels[begin + r] = nearest[r]
    return labels


def byte_order(centers: NDArray[np.floating]) -> NDArray[np.int32]:
    """Order of some rows (k, q) by their bytes: the same rows in the same order, however they stood before."""
    if isinstance(centers, SparseRows):
        return sparse_byte_order(centers)
    centers = np.ascontiguousarray(centers)
    rows = centers.view(f"V{centers.itemsize * centers.shape[1]}").ravel()
    return np.argsort(rows, kind="stable").astype(np.int32)


class CenterSearch:
    """The nearest of some centres for rows; of equally near ones the same one for any order of the centres.

    Parameters
    ----------
    centers : (k, q) float64
        Dense for dense rows, `SparseRows` for sparse ones.
    products : bool, optional
        Whether by a matrix product; by the sizes if not given.

    Notes
    -----
    Differences are taken in the dtype of the rows, or for a product in float64, where its rounding leaves a doubt.
    Memory: `search_bytes`.
    """

    def __init__(self, centers: NDArray[np.floating], products: bool | None = None) -> None:
        # The first of equally near centres wins; so that it is the same one however the clusters are numbered, the
        # centres stand in the order of their bytes here.
        self.order = byte_order(centers)
        self.sparse: SparsePoints | None = None
        self.table: ProductTable | None = None
        if isinstance(centers, SparseRows):
            self.centers: Any = centers[self.order]
            self.sparse = SparsePoints(self.centers)
            return
        self.centers = np.ascontiguousarray(centers[self.order])
        n_centers, n_features = centers.shape
        products = _by_products(n_centers, n_features) if products is None else products
        if products:
            self.table = product_table(self.centers, 1)

    def __call__(self, points: NDArray[np.floating]) -> NDArray[np.int32]:
        """Nearest centre (n,) of points (n, q), float32 or float64."""
        if self.sparse is not None:
            return self.order[self.sparse.nearest(points, 1)[:, 0]]  # type: ignore[arg-type]
        points = np.ascontiguousarray(points)
        if self.table is None:
            return self.order[nearest_center(points, self.centers.astype(points.dtype))]
        return self.order[nearest_by_products(points, self.table, 1, distances=False)[0][:, 0]]


def _by_products(n_centers: int, n_features: int) -> bool:
    return n_features >= (PRODUCT_FEATURES if n_centers >= PRODUCT_CENTERS else MANY_FEATURES)


def search_bytes(n_centers: int, n_features: int, n_entries: int | None = None) -> int:
    """Memory of a `CenterSearch` and of its use by one thread: centres in three forms, and the scores of a tile.

    `n_entries` are the numbers of sparse centres, which are sorted by their bytes and stand by rows and by columns.
    """
    if n_entries is not None:
        return SPARSE_SEARCH_BYTES * n_entries + 32 * n_features + 64 * n_centers
    tables = 8 * n_centers * n_features
    if not _by_products(n_centers, n_features):
        return tables
    return 4 * tables + tile_bytes(n_centers, n_features)


def assign_rows(points: NDArray[np.floating], centers: NDArray[np.floating]) -> NDArray[np.int32]:
    """Nearest centre of each row of a block, see `CenterSearch`.

    Parameters
    ----------
    points : (n, q) float32 or float64
    centers : (k, q) float64

    Returns
    -------
    (n,) int32
    """
    return CenterSearch(centers)(points)


def reassign_rows(
    points: NDArray[np.floating], search: CenterSearch, previous: NDArray[np.int32], moved: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """The same labels as ``search(points)`` gives, by less work after few centres moved.

    Parameters
    ----------
    points : (n, q) float32 or float64
    search : CenterSearch
    previous : (n,) int32
        Nearest centres before the move.
    moved : (k,) bool
        Centres that are not where they were.

    Notes
    -----
    A row whose centre stayed had it nearer than all others that stayed, so it is compared with those that moved.
    """
    away = moved[previous]
    if search.table is None or away.mean() + moved.mean() > MOST_MOVED:
        return search(points)
    if not moved.any():
        return previous
    points = np.ascontiguousarray(points)
    place = np.empty(len(moved), np.int32)
    place[search.order] = np.arange(len(moved), dtype=np.int32)
    others = np.sort(place[moved])
    nearest = others[CenterSearch(search.centers[others], products=True)(points)]
    labels = search.order[nearer_points(points, search.table.points, place[previous], nearest)]
    labels[away] = search(points[away])
    return labels


@jit
def accumulate_rows(points, weights, labels, centers, sums, masses, first):
    """Add a block's rows to the sums of a Lloyd pass, in row order, in float64.

    Parameters
    ----------
    points : (n, q) float
    weights : (n,) float64, or (0,) for weights of 1
    labels : (n,) int32
        Cluster of each row; a negative one is skipped.
    centers : (k, q) float64
    sums, masses : (k, q), (k,) float64, changed in place
        Weighted sum of the differences to the cluster's centre, and sum of the weights.
    first : (k,) int64, changed in place
        Smallest row number of each cluster within the block; its initial value stays for a cluster without rows.

    Returns
    -------
    float
        Weighted sum of squared distances to the assigned centres.

    Notes
    -----
    Differences are summed, not coordinates, so that centres far from the origin keep their digits.
    """
    inertia = 0.0
    for i in range(points.shape[0]):
        c = labels[i]
        if c < 0:
            continue
        weight = weights[i] if weights.shape[0] else 1.0
        sqdist = 0.0
        for f in range(points.shape[1]):
            difference = np.float64(points[i, f]) - centers[c, f]
            sqdist += difference * difference
            sums[c, f] += weight * difference
        inertia += weight * sqdist
        masses[c] += weight
        if i < first[c]:
            first[c] = i
    return inertia


@jit
def weighted_sqdist(points, weights, labels, centers):
    """Weight times squared distance (n,) float64 of each row to its centre, as `accumulate_rows` adds them up."""
    out = np.empty(points.shape[0])
    for i in range(points.shape[0]):
        total = 0.0
        for f in range(points.shape[1]):
            difference = np.float64(points[i, f]) - centers[labels[i], f]
            total += difference * difference
        out[i] = (weights[i] if weights.shape[0] else 1.0) * total
    return out


@jit_fast
def sqdist_to_centers(points, centers):
    """Squared distances of each row (n, q) to every centre (k, q) float64, by differences -> (n, k) float64."""
    out = np.empty((points.shape[0], centers.shape[0]))
    for i in range(points.shape[0]):
        for c in range(centers.shape[0]):
            total = 0.0
            for f in range(points.shape[1]):
                difference = np.float64(points[i, f]) - centers[c, f]
                total += difference * difference
            out[i, c] = total
    return out


@jit_fast
def closest_sqdist(points, center, closest):
    """Lower `closest` (n,) float64 to the squared distances to one more centre (q,), in place."""
    for i in range(points.shape[0]):
        total = 0.0
        for f in range(points.shape[1]):
            difference = np.float64(points[i, f]) - np.float64(center[f])
            total += difference * difference
        if total < closest[i]:
            closest[i] = total


@jit
def plus_plus_rows(points, weights, uniforms):
    """Greedy k-means++: rows that start the clusters.

    Parameters
    ----------
    points : (n, q) float
    weights : (n,) float64, or (0,) for weights of 1
    uniforms : (k, trials) float64 in [0, 1)
        The random numbers; of the candidates of one step that one is kept which lowers the potential most.

    Returns
    -------
    (k',) intp
        k' <= k rows; fewer when every row with weight coincides with a chosen one.

    Notes
    -----
    Arthur and Vassilvitskii, SODA 2007, with the greedy trials of scikit-learn. n * q * trials operations a step.
    """
    n_rows = points.shape[0]
    n_clusters, n_trials = uniforms.shape
    chosen = np.empty(n_clusters, np.intp)
    closest = np.full(n_rows, np.inf)
    trial = np.empty(n_rows)
    best = np.empty(n_rows)
    cumulative = np.empty(n_rows)
    for step in range(n_clusters):
        total = 0.0
        for i in range(n_rows):
            weight = weights[i] if weights.shape[0] else 1.0
            total += weight if step == 0 else weight * closest[i]
            cumulative[i] = total
        if total <= 0:
            return chosen[:step]
        best_potential = np.inf
        for t in range(1 if step == 0 else n_trials):
            row = min(np.searchsorted(cumulative, uniforms[step, t] * total, side="right"), n_rows - 1)
            while row > 0 and cumulative[row] == cumulative[row - 1]:
                row -= 1  # a row without weight or at a chosen place is never drawn
            trial[:] = closest
            closest_sqdist(points, points[row], trial)
            potential = 0.0
            for i in range(n_rows):
                potential += (weights[i] if weights.shape[0] else 1.0) * trial[i]
            if t == 0 or potential < best_potential:
                best_potential = potential
                chosen[step] = row
                best[:] = trial
        closest[:] = best
    return chosen
