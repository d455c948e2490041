"""Rows to which empty clusters are moved: the farthest from their centres, in memory and over all row blocks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.lloyd import assign_rows
from ..kernels.points import are_apart, distinct_points, sqdist_to_own, stacked
from ..runtime.execution import tiles
from ..runtime.passes import mapped

__all__ = [
    "NO_WEIGHTS",
    "Points",
    "Refilling",
    "farthest_block",
    "farthest_in_memory",
    "farthest_over_blocks",
    "farthest_points",
    "farthest_rows",
    "join_farthest",
    "merge_farthest",
    "weights_of",
]

NO_WEIGHTS = np.empty(0)
#: A row that is nearer to its centre than so many units in its own last place is at it, but for rounding.
LEAST_UNITS = 8

#: Held block -> (points (n', q), number of the rows in the block (n',) or None when all rows take part).
Points = Callable[[NDArray[Any]], tuple[NDArray[np.floating], NDArray[np.intp] | None]]


class Refilling:
    """Moves empty clusters to far rows, as long as that lowers the inertia; a part of one run of Lloyd's iteration.

    Parameters
    ----------
    wanted : bool
        Whether to move any.
    n_clusters : int
        Clusters wanted.
    max_iter : int
        After as many passes, and one more a cluster, none is moved any more.
    farthest : callable
        Centres, number of rows -> the farthest rows that differ, (m, q) and m at most this number.
    """

    def __init__(
        self,
        wanted: bool,
        n_clusters: int,
        max_iter: int,
        farthest: Callable[[NDArray[np.float64], int], NDArray[np.floating]],
    ) -> None:
        self.n_clusters, self.farthest = n_clusters, farthest
        self.most_iter = max_iter + n_clusters
        self.inertia = np.inf if wanted else -np.inf

    def __call__(self, moved: NDArray[np.float64], found: dict[str, Any], n_iter: int) -> NDArray[np.float64] | None:
        """The moved centres (k', q) with empty clusters at far rows; None where none can be moved."""
        with_rows = found["masses"] > 0
        n_empty = self.n_clusters - int(with_rows.sum())
        if n_empty == 0 or not with_rows.any() or found["inertia"] >= self.inertia or n_iter >= self.most_iter:
            return None
        rows = self.farthest(moved[with_rows], n_empty)
        if len(rows) == 0:
            self.inertia = -np.inf  # every row is at a centre
            return None
        self.inertia = found["inertia"]
        return stacked([moved[with_rows], rows.astype(np.float64)])


def farthest_rows(scores: NDArray[np.float64], rows: NDArray[Any], n_wanted: int) -> dict[str, Any]:
    """Those of some rows (n, ...) that have the largest scores above 0, the first of equal ones; equal rows count once.

    Joining what blocks have found, in their order, and choosing again gives what all rows together give.
    """
    able = np.flatnonzero(scores > 0)
    order = able[np.argsort(-scores[able], kind="stable")]
    chosen = order[distinct_points(rows[order])[:n_wanted]] if len(order) else order
    # In the order of the rows, so that equal scores of several blocks stay in it.
    chosen = np.sort(chosen)
    return {"scores": scores[chosen], "rows": rows[chosen]}


def merge_farthest(parts: list[dict[str, Any]], n_wanted: int) -> dict[str, Any]:
    """The farthest of the rows that parts of the rows have found, in their order."""
    scores, rows = (stacked([part[key] for part in parts]) for key in ("scores", "rows"))
    return farthest_rows(scores, rows, n_wanted)


def join_farthest(parts: list[dict[str, Any]], n_wanted: int) -> NDArray[Any]:
    """The farthest of the rows that blocks have found, from the farthest on."""
    best = merge_farthest(parts, n_wanted)
    return best["rows"][np.argsort(-best["scores"], kind="stable")]


def farthest_points(
    points: NDArray[np.floating], weights: NDArray[np.float64], centers: NDArray[np.float64], n_wanted: int
) -> dict[str, Any]:
    """Rows (n', q) with the largest weight * sqdist to the nearest centre, see `farthest_rows`; none that is at one."""
    labels = assign_rows(points, centers)
    scores = sqdist_to_own(points, weights, labels, centers)
    scores[~are_apart(points, centers, labels, LEAST_UNITS)] = 0.0
    return farthest_rows(scores, points, n_wanted)


def farthest_in_memory(
    points: NDArray[np.floating], weights: NDArray[np.float64], centers: NDArray[np.float64], n_wanted: int
) -> NDArray[np.floating]:
    """The farthest points, from the farthest on."""
    return join_farthest([farthest_points(points, weights, centers, n_wanted)], n_wanted)


def farthest_over_blocks(
    held: da.Array, points: Points, weights: da.Array | None, centers: NDArray[np.float64], n_wanted: int
) -> NDArray[np.floating]:
    """The same of the rows of all blocks."""
    task = partial(farthest_block, points=points, centers=centers, n_wanted=n_wanted)
    return join_farthest(mapped(task, held, name="dc-far", weights=weights), n_wanted)


def farthest_block(
    block: NDArray[Any],
    number: int,
    points: Points,
    centers: NDArray[np.float64],
    n_wanted: int,
    weights: NDArray[np.float64] | None = None,
) -> dict[str, Any]:
    """The farthest points of a held block."""
    parts = []
    for tile in tiles(len(block)):
        values, rows = points(block[tile])
        weighted = NO_WEIGHTS if weights is None else weights_of(weights[tile], rows)
        parts.append(farthest_points(values, weighted, centers, n_wanted))
    return merge_farthest(parts, n_wanted)


def weights_of(weights: NDArray[np.float64], rows: NDArray[np.intp] | None) -> NDArray[np.float64]:
    """Weights of a block's points, from those of its rows (n,) or (n, 1)."""
    column = weights[:, 0] if weights.ndim == 2 else weights
    return np.ascontiguousarray(column if rows is None else column[rows], np.float64)
