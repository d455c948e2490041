"""Lloyd's iteration: in memory for small problems, and by passes over all row blocks.

A cluster that loses all its rows is moved to the row that is farthest from its centre, so that fewer clusters than were
asked for are left only where there are fewer distinct rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.lloyd import CenterSearch, accumulate_rows, reassign_rows
from ..kernels.points import (
    empty_sums,
    in_other_rows,
    like_points,
    mean_variance,
    moved_centers,
    sparse_sums,
    sqdist_moved,
    sqdist_to_own,
)
from ..kernels.sparse_rows import SparseRows, is_sparse
from ..runtime.execution import (
    add_parts,
    beside,
    persist,
    runs_in_process,
    tiles,
)
from ..runtime.passes import reduced
from ..runtime.pieces import once
from ..runtime.threads import one_blas_thread
from .farthest import (
    NO_WEIGHTS,
    Points,
    Refilling,
    farthest_block,
    farthest_in_memory,
    farthest_over_blocks,
    join_farthest,
    weights_of,
)
from .rows import scatter_rows

__all__ = [
    "Centers",
    "NearestCenters",
    "best_of_starts",
    "lloyd_block",
    "lloyd_in_memory",
    "lloyd_over_block",
    "lloyd_over_blocks",
    "lloyd_passes",
    "nearest_centers",
]

#: Points in memory are assigned beside each other from so many multiplications on, so many rows at a time.
LEAST_SPREAD = 2**30
SPREAD_ROWS = 1024


@dataclass(frozen=True)
class NearestCenters:
    """Held block -> labels of its rows, by the nearest of some centres (k, q).

    Points that have a method `nearest_centers` know a way of their own, with the same two methods.
    """

    points: Points
    centers: NDArray[np.float64]

    def __reduce__(self) -> Any:
        """Without the search, which is larger than what it is made of."""
        return type(self), (self.points, self.centers)

    @cached_property
    def search(self) -> CenterSearch:
        """The search, prepared for all blocks of a process."""
        return CenterSearch(self.centers)

    @cached_property
    def sparse_search(self) -> CenterSearch:
        """The same for sparse rows."""
        centers: Any = self.centers
        sparse: Any = centers if is_sparse(centers) else SparseRows.of(centers)
        return CenterSearch(sparse)

    def labels(self, block: NDArray[Any]) -> NDArray[np.int32]:
        """Labels of every row (n,), -1 for rows that do not take part."""
        _, rows, labels = self.assign(block)
        return scatter_rows(labels, rows, len(block), -1)

    def assign(self, block: NDArray[Any]) -> tuple[NDArray[np.floating], NDArray[np.intp] | None, NDArray[np.int32]]:
        """Points of the rows that take part, their numbers, and their labels."""
        values, rows = self.points(block)
        return values, rows, (self.sparse_search if is_sparse(values) else self.search)(values)


def nearest_centers(points: Points, centers: NDArray[np.float64]) -> Any:
    """`NearestCenters`, or the points' own way."""
    own = getattr(points, "nearest_centers", None)
    return NearestCenters(points, centers) if own is None else own(centers)


@dataclass(frozen=True)
class Centers:
    """Result of a k-means run.

    Attributes
    ----------
    centers : (k', q) float64
        Centres of the clusters that have rows, in the order of their first row.
    inertia : float
        Weighted sum of squared distances to them.
    n_iter : int
        Lloyd passes.
    """

    centers: NDArray[np.float64]
    inertia: float
    n_iter: int


class _Assignments:
    """Labels of points in memory by one set of centres after the other.

    Parameters
    ----------
    points : (n, q)
    spread : bool
        Beside each other on the active scheduler, where there is much to do.
    """

    def __init__(self, points: NDArray[np.floating], spread: bool) -> None:
        self.points, self.spread = points, spread
        self._centers: NDArray[np.float64] | None = None
        self._labels: list[NDArray[np.int32]] | None = None
        self._parts: Any = None

    def __call__(self, centers: NDArray[np.float64]) -> NDArray[np.int32]:
        """Labels by centres (k, q)."""
        moved = None
        if is_sparse(centers):
            self._labels = None  # rows are compared with all centres
        elif self._centers is not None and self._centers.shape == centers.shape:
            moved = (self._centers.view(np.uint64) != centers.view(np.uint64)).any(axis=1)  # their bytes decide ties
        else:
            self._labels = None
        self._labels, self._centers = self._assign(CenterSearch(centers), moved), centers
        return np.concatenate(self._labels)

    def _assign(self, search: CenterSearch, moved: NDArray[np.bool_] | None) -> list[NDArray[np.int32]]:
        if not self.spread or search.table is None or self.points.size * len(search.centers) < LEAST_SPREAD:
            parts, before = [self.points], None if self._labels is None else [np.concatenate(self._labels)]
            return [_assign_part(parts[0], None if before is None else before[0], search, moved)]
        if self._parts is None:
            starts = range(0, len(self.points), SPREAD_ROWS)
            self._parts = [once(self.points[s : s + SPREAD_ROWS], "points") for s in starts]
            if not runs_in_process():
                self._parts = persist(*self._parts)  # they travel once
        labels = [None] * len(self._parts) if self._labels is None else self._labels
        return beside(
            _assign_part, "dc-candidates", list(zip(self._parts, labels, strict=True)), search=search, moved=moved
        )


def _assign_part(
    points: NDArray[np.floating],
    previous: NDArray[np.int32] | None,
    search: CenterSearch,
    moved: NDArray[np.bool_] | None,
) -> NDArray[np.int32]:
    if previous is None or moved is None:
        return search(points)
    return reassign_rows(points, search, previous, moved)


def _sums_of(
    points: NDArray[np.floating],
    labels: NDArray[np.int32],
    weights: NDArray[np.float64],
    centers: NDArray[np.float64],
) -> dict[str, Any]:
    """The sums of a Lloyd pass over labelled points in memory."""
    found = _empty_pass(centers)
    _add_rows(found, points, labels, None, len(points), weights, centers)
    return found


def _empty_pass(centers: NDArray[np.float64]) -> dict[str, Any]:
    n_clusters = len(centers)
    return {
        "rows": 0,
        "sums": empty_sums(centers),
        "masses": np.zeros(n_clusters),
        "first": np.full(n_clusters, -1, np.int64),
        "inertia": 0.0,
    }


def _add_rows(
    found: dict[str, Any],
    points: Any,
    labels: NDArray[np.int32],
    rows: NDArray[np.intp] | None,
    n_rows: int,
    weights: NDArray[np.float64],
    centers: NDArray[np.float64],
) -> None:
    """Add labelled points to the sums of a pass, in row order; `rows` are their numbers among `n_rows` rows."""
    first = np.full(len(centers), len(points), np.int64)
    if is_sparse(points):
        found["inertia"] += float(np.cumsum(np.append(0.0, sqdist_to_own(points, weights, labels, centers)))[-1])
        found["sums"] = found["sums"] + sparse_sums(points, labels, weights, len(centers))
        found["masses"] += np.bincount(labels, weights if len(weights) else None, minlength=len(centers))
        np.minimum.at(first, labels, np.arange(len(points)))
    else:
        found["inertia"] += accumulate_rows(points, weights, labels, centers, found["sums"], found["masses"], first)
    new = (found["first"] < 0) & (first < len(points))
    found["first"][new] = found["rows"] + (first[new] if rows is None else rows[first[new]])
    found["rows"] += n_rows


def _moved(centers: NDArray[np.float64], found: dict[str, Any], unit_length: bool) -> NDArray[np.float64]:
    """Means of the clusters, if wanted at unit length; one without weight stays where it is."""
    return moved_centers(centers, found["sums"], found["masses"], unit_length)


def _unchanged(labels: NDArray[np.int32], previous: NDArray[np.int32], n_clusters: int) -> NDArray[np.bool_]:
    """Clusters (k,) that have the same rows by two labelings."""
    unchanged, differ = np.ones(n_clusters, bool), labels != previous
    unchanged[labels[differ]] = False
    unchanged[previous[differ]] = False
    return unchanged


def _ordered(centers: NDArray[np.float64], found: dict[str, Any], n_iter: int) -> Centers:
    """Canonical order: clusters by their first row, those without rows dropped."""
    return Centers(centers[_order(found)], float(found["inertia"]), n_iter)


def _order(found: dict[str, Any]) -> NDArray[np.intp]:
    """Numbers of the clusters that have rows, by their first row."""
    taken = np.flatnonzero(found["first"] >= 0)
    return taken[np.argsort(found["first"][taken], kind="stable")]


def lloyd_in_memory(
    points: NDArray[np.floating],
    centers: NDArray[np.float64],
    weights: NDArray[np.float64] = NO_WEIGHTS,
    *,
    max_iter: int = 100,
    tol: float = 0.0,
    unit_length: bool = False,
    refill: bool = True,
    spread: bool = False,
) -> tuple[Centers, NDArray[np.int32]]:
    """Lloyd's iteration on a small problem.

    Parameters
    ----------
    points : (n, q)
    centers : (k, q) float64
        Where it starts.
    weights : (n,) or (0,) for weights of 1
    max_iter : int
        Passes; some more where an empty cluster is moved in the last one.
    tol : float
        Stop when the centres move by less, squared and summed, relative to the mean variance of the columns; with 0,
        when no label changes.
    unit_length : bool
        Bring the centres to unit length after each pass (k-means of directions).
    refill : bool
        Move empty clusters, see `lloyd_over_blocks`; else they stay where they are.
    spread : bool
        Assign the points beside each other on the active scheduler, where there is much to do. Not inside its tasks.

    Returns
    -------
    centers : Centers
    labels : (n,) int32
        Nearest of these centres.
    """
    with one_blas_thread():
        previous, comparable = None, True
        limit = tol * mean_variance(points) if tol > 0 else 0.0
        refilling = Refilling(refill, len(centers), max_iter, partial(farthest_in_memory, points, weights))
        assign = _Assignments(points if is_sparse(points) else np.ascontiguousarray(points), spread)
        centers = like_points(centers, points)
        labels = assign(centers)
        found = _sums_of(points, labels, weights, centers)
        n_iter = 1
        while True:
            moved = _moved(centers, found, unit_length)
            if previous is not None and comparable:
                stays = _unchanged(labels, previous, len(centers))
                moved = in_other_rows(moved, stays, centers)  # and not somewhere else by rounding
            refilled = refilling(moved, found, n_iter)
            if refilled is None:
                shift = sqdist_moved(moved, centers)
                settled = previous is not None and np.array_equal(labels, previous)
                if n_iter >= max_iter or shift <= limit or settled:
                    break
            comparable = refilled is None
            centers, previous = moved if refilled is None else refilled, labels
            labels = assign(centers)
            found = _sums_of(points, labels, weights, centers)
            n_iter += 1
        result, names = _ordered(centers, found, n_iter), np.empty(len(centers), np.int32)
        names[_order(found)] = np.arange(len(result.centers))
        return result, names[labels]


def best_of_starts(
    points: NDArray[np.floating],
    starts: Iterable[NDArray[np.float64]],
    weights: NDArray[np.float64] = NO_WEIGHTS,
    **options: Any,
) -> tuple[Centers, NDArray[np.int32]]:
    """`lloyd_in_memory` from several starts; the result with the lowest inertia, the first of equal ones."""
    runs = (lloyd_in_memory(points, start, weights, **options) for start in starts)
    return min(runs, key=lambda run: run[0].inertia)


def lloyd_over_blocks(
    held: da.Array,
    points: Points,
    centers: NDArray[np.float64],
    weights: da.Array | None = None,
    *,
    max_iter: int,
    limit: float,
    n_clusters: int = 0,
    unit_length: bool = False,
    refill: bool = True,
    name: str = "dc-lloyd",
) -> Centers:
    """Lloyd's iteration over all row blocks, one pass each.

    Parameters
    ----------
    held : dask array (n, ...)
        Row blocks from which `points` makes the points of a block.
    points : callable
    centers : (k, q) float64
    weights : dask array (n,), optional
    max_iter : int
        Passes at most; some more where an empty cluster is moved in the last one.
    limit : float
        Stop when the centres move by no more, squared and summed.
    n_clusters : int
        Clusters wanted; those that `centers` lacks, for a sample has fewer distinct rows than all, begin empty.
    unit_length : bool
        Bring the centres to unit length after each pass.
    refill : bool
        Move empty clusters; else they stay where they are, and are dropped at the end.

    Returns
    -------
    Centers
        Those by which the last pass assigned, not the ones to which they would move next: so their order, their
        inertia and which of them have rows are exact, and a final assignment gives the same labels.

    Notes
    -----
    A task holds the block, the points of a tile of `TILE_ROWS` rows, 8 q bytes each, and a partial result of
    8 k (q + 3) bytes. Partial results are summed in block order by a tree of fixed shape.

    When clusters have no rows with weight, one more pass finds the rows of the largest weight * sqdist to the nearest
    of the other centres, after their move, the first one of equally far rows; rows at the same place count once. The
    empty clusters go there, in order. Each time the inertia falls, or the moving ends.
    """

    def one_pass(centers: NDArray[np.float64]) -> dict[str, Any]:
        task = partial(lloyd_block, points=points, centers=centers, nearest=nearest_centers(points, centers))
        return dict(reduced(task, add_parts, held, name=name, weights=weights))

    return lloyd_passes(
        one_pass,
        partial(_moved, unit_length=unit_length),
        partial(farthest_over_blocks, held, points, weights),
        centers,
        max_iter=max_iter,
        limit=limit,
        n_clusters=n_clusters,
        refill=refill,
    )


def lloyd_over_block(
    block: NDArray[Any],
    points: Points,
    centers: NDArray[np.float64],
    *,
    max_iter: int,
    limit: float,
    n_clusters: int = 0,
) -> Centers:
    """`lloyd_over_blocks` of one block that is in memory, on this thread."""

    def farthest(centers: NDArray[np.float64], n_wanted: int) -> NDArray[np.floating]:
        return join_farthest([farthest_block(block, 0, points, centers, n_wanted)], n_wanted)

    with one_blas_thread():
        return lloyd_passes(
            partial(lloyd_block, block, points),
            partial(_moved, unit_length=False),
            farthest,
            centers,
            max_iter=max_iter,
            limit=limit,
            n_clusters=n_clusters,
        )


def lloyd_passes(
    one_pass: Callable[[NDArray[np.float64]], dict[str, Any]],
    move: Callable[[NDArray[np.float64], dict[str, Any]], NDArray[np.float64]],
    farthest: Callable[[NDArray[np.float64], int], NDArray[np.floating]],
    centers: NDArray[np.float64],
    *,
    max_iter: int,
    limit: float,
    n_clusters: int = 0,
    refill: bool = True,
) -> Centers:
    """Lloyd's iteration, whatever a pass and its sums are; as `lloyd_over_blocks`, which says what it does.

    Parameters
    ----------
    one_pass : callable
        Centres -> the sums of a pass, with ``masses`` (k,), ``first`` (k,) and ``inertia``.
    move : callable
        Centres and these sums -> the centres of the next pass; a cluster without weight stays where it is.
    farthest : callable
        Centres and a number -> so many of the farthest rows, or fewer.
    """
    n_iter = 0
    refilling = Refilling(refill, max(n_clusters, len(centers)), max_iter, farthest)
    while True:
        found = one_pass(centers)
        n_iter += 1
        moved = move(centers, found)
        refilled = refilling(moved, found, n_iter)
        if refilled is None and (n_iter >= max_iter or sqdist_moved(moved, centers) <= limit):
            return _ordered(centers, found, n_iter)
        centers = moved if refilled is None else refilled


def lloyd_block(
    block: NDArray[Any],
    points: Points,
    centers: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
    nearest: Any = None,
) -> dict[str, Any]:
    """The sums of a Lloyd pass over a held block; `nearest` is how its rows find these centres, for all blocks."""
    found, nearest = _empty_pass(centers), nearest_centers(points, centers) if nearest is None else nearest
    for tile in tiles(len(block)):
        values, rows, labels = nearest.assign(block[tile])
        weighted = NO_WEIGHTS if weights is None else weights_of(weights[tile], rows)
        _add_rows(found, values, labels, rows, tile.stop - tile.start, weighted, centers)
    return found
