"""Projected rows -> weighted k-means on them, by matrix products: Algorithm 2 of fast_csc_and_secrp_2017.

A pass is a product of tiles of rows and the centres in float32. It decides the labels; the sums that make the next
centres are whole numbers, so they are the same for any order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.lloyd import byte_order, sqdist_to_centers
from ..kernels.projection import add_projected, lower_to_rows, nearest_of_products
from ..pipeline.farthest import farthest_points, join_farthest, merge_farthest, weights_of
from ..pipeline.lloyd import Centers, lloyd_passes
from ..pipeline.rows import scatter_rows
from ..runtime.execution import add_parts, tiles
from ..runtime.passes import mapped, reduced
from ..runtime.threads import one_blas_thread
from .projection import ProjectedRows

__all__ = [
    "NearestProjected",
    "lloyd_projected",
    "lloyd_projected_sample",
    "partition_in_projection",
    "projected_starts",
]

#: Rows of one matrix product, always: with fewer rows the BLAS may add up in another order.
PRODUCT_ROWS = 2048
#: Whole numbers below this are exact in float32.
FLOAT32_WHOLE = 2**24


class NearestProjected:
    """Block of codes -> label of each row, that of its nearest centre; a picklable callable.

    Parameters
    ----------
    points : ProjectedRows
    centers : (k, rd) float64
    """

    def __init__(self, points: ProjectedRows, centers: NDArray[np.float64]) -> None:
        self.points, self.centers = points, centers
        # Of equally near centres the first one wins; it is the same one however the clusters are numbered.
        self.order = byte_order(centers)
        self.rows = np.ascontiguousarray(centers[self.order], np.float32)
        self.half_sqnorms = 0.5 * (self.rows * self.rows).sum(axis=1)

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """Label a block, -1 for rows without labels."""
        return self.assign(self.points(codes), self.points.weights(codes))

    def assign(self, projected: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[np.int32]:
        """Label projected rows, -1 for those with weight 0."""
        labels = self._places(projected, weights)
        return np.where(labels >= 0, self.order[labels], np.int32(-1))

    def _places(self, projected: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[np.int32]:
        """Labels as places in the order of the centres here."""
        labels = np.empty(len(projected), np.int32)
        lengths = (weights / self.points.unit).astype(np.float32)
        tile = np.zeros((PRODUCT_ROWS, projected.shape[1]), np.float32)
        products = np.empty((len(self.rows), PRODUCT_ROWS), np.float32)
        for start in range(0, len(projected), PRODUCT_ROWS):
            part = slice(start, min(start + PRODUCT_ROWS, len(projected)))
            n_rows = part.stop - start
            tile[:n_rows] = projected[part]
            np.matmul(self.rows, tile.T, out=products)
            nearest_of_products(products, lengths[part], self.half_sqnorms, labels[part])
        return labels

    def distances(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Distances of the rows b/w of a block to the centres (n, k), in the projection; NaN for those without one."""
        weights = self.points.weights(codes)
        there = np.flatnonzero(weights > 0)
        points = self.points.points(self.points(codes[there]), weights[there])
        distances = np.sqrt(sqdist_to_centers(points, self.centers)) / self.points.mean_weight
        return scatter_rows(distances, there, len(codes), np.nan)

    def add(self, projected: NDArray[Any], weights: NDArray[np.float64], found: dict[str, Any]) -> None:
        """Add projected rows to the sums of a pass, in row order."""
        labels = self._places(projected, weights)
        sums, masses, first, constant = sums_of(projected, weights, labels, len(self.centers))
        found["constant"] += constant
        found["sums"][self.order] += sums
        found["masses"][self.order] += masses
        new = (found["first"][self.order] < 0) & (first < len(projected))
        found["first"][self.order[new]] = found["rows"] + first[new]
        found["rows"] += len(projected)

    def empty(self) -> dict[str, Any]:
        """Sums of a pass over no rows."""
        n_clusters = len(self.centers)
        return {
            "rows": 0,
            "sums": np.zeros(self.centers.shape, np.int64),
            "masses": np.zeros(n_clusters),
            "first": np.full(n_clusters, -1, np.int64),
            "constant": 0.0,
        }

    def farthest(self, projected: NDArray[Any], weights: NDArray[np.float64], n_wanted: int) -> dict[str, Any]:
        """Points of a tile with the largest weighted distance to their centre, see `farthest_points`."""
        there = np.flatnonzero(weights > 0)
        points = self.points.points(projected[there], weights[there])
        return farthest_points(points, weights[there] / self.points.mean_weight, self.centers, n_wanted)

    def inertia(self, found: dict[str, Any]) -> float:
        """The objective of these centres and the partition that they made, sum (w / unit) |p - m|^2."""
        lengths = float(found["constant"]) * self.points.mean_weight / self.points.n_strips
        inner = float((found["sums"] * self.centers).sum()) / float(np.sqrt(self.points.n_strips))
        outer = float(found["masses"] @ (self.centers**2).sum(axis=1)) / self.points.mean_weight
        return lengths - 2.0 * inner + outer


def sums_of(
    projected: NDArray[Any], weights: NDArray[np.float64], labels: NDArray[np.int32], n_clusters: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64], float]:
    """Sums of the projected rows of each cluster (k, rd) and of their weights (k,), the first row (k,), sum |z|^2 / w.

    All but the last are whole numbers; the first row of a cluster that has none is the number of all.
    """
    sums, masses = np.zeros((n_clusters, projected.shape[1]), np.int64), np.zeros(n_clusters)
    first = np.full(n_clusters, len(projected), np.int64)
    constant = 0.0
    for tile in tiles(len(projected)):
        small = np.zeros(sums.shape, np.int32)  # the sums of a tile are far below 2^31
        begin = np.full(n_clusters, len(projected) - tile.start, np.int64)
        constant += add_projected(projected[tile], weights[tile], labels[tile], small, masses, begin)
        sums += small
        np.minimum(first, tile.start + begin, out=first)
    return sums, masses, first, constant


def partition_in_projection(
    projected: NDArray[Any],
    weights: NDArray[np.float64],
    points: ProjectedRows,
    labels: NDArray[np.int32],
    n_clusters: int,
) -> NDArray[np.float64]:
    """Centres (k, rd) of a partition of rows in memory; a cluster without rows is at 0."""
    sums, masses, _, _ = sums_of(projected, weights, labels, n_clusters)
    return moved_centers(points, np.zeros(sums.shape), {"sums": sums, "masses": masses})


def moved_centers(points: ProjectedRows, centers: NDArray[np.float64], found: dict[str, Any]) -> NDArray[np.float64]:
    """Means of the clusters by weight, from whole numbers; one without rows stays where it is."""
    masses = found["masses"][:, None]
    return np.divide(found["sums"] * points.unit, masses, out=centers.copy(), where=masses > 0)


def projected_starts(
    projected: NDArray[Any], points: ProjectedRows, weights: NDArray[np.float64], n_clusters: int, rng: Any
) -> NDArray[np.float64]:
    """Centres (k', rd) at rows in memory chosen by greedy k-means++; fewer when there are fewer distinct rows.

    Notes
    -----
    As `pipeline.kmeans.center_starts`; the rows of a step's trials are compared with all rows by one matrix product,
    of whole numbers.
    """
    uniforms = rng.random((n_clusters, 2 + int(np.log(n_clusters))))
    exact = points.n_strips * points.book.n_base_clusterings**2 < FLOAT32_WHOLE  # more than any product of two rows
    rows: NDArray[np.floating] = projected.astype(np.float32 if exact else np.float64)
    sqnorms = (rows * rows).sum(axis=1, dtype=np.float64)
    closest = np.full(len(rows), np.inf)
    chosen: list[int] = []
    with one_blas_thread():
        for step in range(n_clusters):
            cumulative = np.cumsum(closest if chosen else weights)
            if cumulative[-1] <= 0:
                break
            drawn = uniforms[step] if chosen else uniforms[step, :1]
            # Never a row at a chosen place: where the sums do not rise the first one is found.
            trials = np.searchsorted(cumulative, drawn * cumulative[-1], side="right")
            trials = np.searchsorted(cumulative, cumulative[np.minimum(trials, len(rows) - 1)])
            lowered = np.empty((len(trials), len(rows)))
            lower_to_rows(rows[trials] @ rows.T, sqnorms, weights, trials, closest, lowered)
            best = int(lowered.sum(axis=1).argmin())
            chosen.append(int(trials[best]))
            closest = lowered[best]
    return points.points(projected[chosen], weights[chosen])


def lloyd_projected_sample(
    projected: NDArray[Any],
    weights: NDArray[np.float64],
    points: ProjectedRows,
    centers: NDArray[np.float64],
    *,
    max_iter: int,
    n_clusters: int = 0,
) -> Centers:
    """Lloyd's iteration on projected rows in memory, until nothing changes."""

    def one_pass(nearest: NearestProjected) -> dict[str, Any]:
        return pass_block(projected, nearest, weights)

    def farthest(nearest: NearestProjected, n_wanted: int) -> NDArray[Any]:
        return join_farthest([farthest_block(projected, 0, nearest, n_wanted, weights)], n_wanted)

    with one_blas_thread():
        return _lloyd(one_pass, farthest, points, centers, max_iter=max_iter, limit=0.0, n_clusters=n_clusters)


def lloyd_projected(
    projected: da.Array,
    weights: da.Array,
    points: ProjectedRows,
    centers: NDArray[np.float64],
    *,
    max_iter: int,
    limit: float,
    n_clusters: int,
) -> Centers:
    """Lloyd's iteration over all projected rows, one pass each.

    Parameters
    ----------
    projected : dask array (n, rd) int
        Held.
    weights : dask array (n,) float64
        w, 0 for rows that do not take part. Held too.
    points : ProjectedRows
        What made the rows.
    centers, max_iter, limit, n_clusters
        As in `pipeline.lloyd.lloyd_over_blocks`, and so is the result.

    Notes
    -----
    rd k multiplications a row and pass, in matrix products, and rd + 8 bytes read. A task holds its block, and of a
    tile 4 (rd + k) bytes a row.
    """

    def one_pass(nearest: NearestProjected) -> dict[str, Any]:
        task = partial(pass_block, nearest=nearest)
        return dict(reduced(task, add_parts, projected, name="dc-lloyd", weights=weights))

    def farthest(nearest: NearestProjected, n_wanted: int) -> NDArray[Any]:
        task = partial(farthest_block, nearest=nearest, n_wanted=n_wanted)
        return join_farthest(mapped(task, projected, name="dc-far", weights=weights), n_wanted)

    return _lloyd(one_pass, farthest, points, centers, max_iter=max_iter, limit=limit, n_clusters=n_clusters)


def _lloyd(
    one_pass: Callable[[NearestProjected], dict[str, Any]],
    farthest: Callable[[NearestProjected, int], NDArray[Any]],
    points: ProjectedRows,
    centers: NDArray[np.float64],
    **options: Any,
) -> Centers:
    def passed(centers: NDArray[np.float64]) -> dict[str, Any]:
        nearest = NearestProjected(points, centers)
        found = one_pass(nearest)
        return found | {"inertia": nearest.inertia(found)}

    def far(centers: NDArray[np.float64], n_wanted: int) -> NDArray[Any]:
        return farthest(NearestProjected(points, centers), n_wanted)

    return lloyd_passes(passed, partial(moved_centers, points), far, centers, **options)


def pass_block(block: NDArray[Any], nearest: NearestProjected, weights: NDArray[np.float64]) -> dict[str, Any]:
    """The sums of a Lloyd pass over a held block."""
    found, weights = nearest.empty(), weights_of(weights, None)
    for tile in tiles(len(block)):
        nearest.add(block[tile], weights[tile], found)
    return found


def farthest_block(
    block: NDArray[Any], number: int, nearest: NearestProjected, n_wanted: int, weights: NDArray[np.float64]
) -> dict[str, Any]:
    """The farthest points of a held block."""
    weights = weights_of(weights, None)
    parts = [nearest.farthest(block[tile], weights[tile], n_wanted) for tile in tiles(len(block))]
    return merge_farthest(parts, n_wanted)
