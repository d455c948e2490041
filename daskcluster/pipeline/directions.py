"""Rows that count by their direction, as ``metric="cosine"`` wants it; a row of zeros has none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .lloyd import NearestCenters
from .rows import PreparedRows, RowForm

__all__ = ["DirectedRows", "fill_undirected", "row_points"]


class DirectedRows(PreparedRows):
    """Raw block -> its rows at unit length, and their numbers; rows of zeros take no part, as missing ones do not.

    Every centre is equally far from a row of zeros, so rounding would choose one, in another way for sparse rows and
    for dense ones. Such a row moves no centre and counts nowhere; its label is 0, the first cluster.
    """

    def __call__(self, block: NDArray[Any]) -> tuple[NDArray[np.floating], NDArray[np.intp] | None]:
        """Prepare a block."""
        points, rows = super().__call__(block)
        directed = points.any(axis=1)
        if directed.all():
            return points, rows
        return points[directed], np.flatnonzero(directed) if rows is None else rows[directed]

    def nearest_centers(self, centers: NDArray[np.float64]) -> NearestCenters:
        """How rows find the nearest of these centres."""
        return _NearestDirections(self, centers)


class _NearestDirections(NearestCenters):
    """`NearestCenters` that gives rows of zeros the label 0."""

    def labels(self, block: NDArray[Any]) -> NDArray[np.int32]:
        """Labels of every row (n,), -1 for those that are missing."""
        return fill_undirected(super().labels(block), block, 0)


def fill_undirected(values: NDArray[Any], block: Any, value: float) -> NDArray[Any]:
    """Put a value in its place for every row of zeros of a raw block; `values` (n, ...) are NaN or -1 there."""
    first = values.reshape(len(values), -1)[:, 0]
    lacking = np.flatnonzero((first < 0) | (first != first))
    if len(lacking):
        undirected = lacking[~block[lacking].any(axis=1)]  # NaN is not 0
        if len(undirected):
            values = values.copy()
            values[undirected] = value
    return values


def row_points(form: RowForm) -> PreparedRows:
    """Raw block -> the points that k-means takes of it."""
    return DirectedRows(form) if form.unit_length else PreparedRows(form)
