"""What Lloyd's iteration does with points and centres, dense or `SparseRows`: one name for both forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from .lloyd import closest_sqdist, plus_plus_rows, sqdist_to_centers, weighted_sqdist
from .sparse_rows import (
    SparseRows,
    closest_sparse,
    is_sparse,
    sparse_distinct,
    sparse_plus_plus,
    sparse_sqdist,
    unit_rows,
)

__all__ = [
    "are_apart",
    "distinct_points",
    "empty_sums",
    "in_other_rows",
    "like_points",
    "lower_closest",
    "mean_variance",
    "moved_centers",
    "packed_points",
    "sparse_sums",
    "sqdist_moved",
    "sqdist_to_all",
    "sqdist_to_own",
    "stacked",
    "start_rows",
    "unpacked_points",
]

#: Dense NDArray (n, q) or SparseRows.
Points = Any


def stacked(parts: Sequence[Any]) -> Any:
    """Rows of several pieces, one below the other."""
    return SparseRows.stack(parts) if is_sparse(parts[0]) else np.concatenate(parts)


def like_points(centers: Any, points: Any) -> Any:
    """Centres in the form of the points, and float64."""
    if is_sparse(points) == is_sparse(centers):
        return centers.astype(np.float64) if is_sparse(centers) else np.ascontiguousarray(centers, np.float64)
    return SparseRows.of(centers, np.float64) if is_sparse(points) else centers.toarray().astype(np.float64)


def mean_variance(points: Any) -> float:
    """Mean over the columns of the variance of points (n, q)."""
    if not is_sparse(points):
        return float(np.var(points, axis=0, dtype=np.float64).mean())
    n, q = points.shape
    means = np.bincount(points.indices, points.data, minlength=q) / n
    squares = float(np.cumsum(np.append(0.0, points.data * points.data))[-1])
    return max(0.0, (squares / n - float(np.cumsum(means * means)[-1])) / q)


def empty_sums(centers: Any) -> Any:
    """Sums of a pass in which no row was."""
    if not is_sparse(centers):
        return np.zeros_like(centers)
    return SparseRows(np.empty(0), np.empty(0, np.int32), np.zeros(len(centers) + 1, np.int64), centers.n_features)


def sparse_sums(
    points: SparseRows, labels: NDArray[np.int32], weights: NDArray[np.float64], n_clusters: int
) -> SparseRows:
    """Weighted sums (k, q) of the points of each cluster, in row order."""
    rows = np.flatnonzero(labels >= 0)
    mass = weights[rows] if len(weights) else np.ones(len(rows))
    order = np.argsort(labels[rows], kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(labels[rows], minlength=n_clusters))])
    member = csr_array((mass[order], rows[order], indptr), shape=(n_clusters, len(points)))
    return SparseRows.of(member @ points.matrix)


def moved_centers(centers: Any, sums: Any, masses: NDArray[np.float64], unit_length: bool) -> Any:
    """Means of the clusters, if wanted at unit length; one without weight, or direction, stays where it is.

    `sums` are of differences to the centres, or, sparse, of the points themselves.
    """
    if is_sparse(centers):
        with_rows = masses > 0
        factors = np.where(with_rows, masses, 1.0)
        means = sums.with_data(sums.data / np.repeat(factors, np.diff(sums.indptr)))
        moved = means if with_rows.all() else in_other_rows(means, ~with_rows, centers)
        if not unit_length:
            return moved
        directed = moved.any(axis=1)
        return unit_rows(moved if directed.all() else in_other_rows(moved, ~directed, centers))
    masses = masses[:, None]
    moved = centers + np.divide(sums, masses, out=np.zeros_like(centers), where=masses > 0)
    if unit_length:
        norms = np.sqrt(np.einsum("ij,ij->i", moved, moved))[:, None]
        np.divide(moved, norms, out=moved, where=norms > 0)
        in_other_rows(moved, norms[:, 0] == 0, centers)
    return moved


def in_other_rows(points: Any, where: NDArray[np.bool_], others: Any) -> Any:
    """The points, with the rows of others where that is wanted; dense ones are changed in place."""
    if is_sparse(points):
        places = np.arange(len(points))
        places[where] += len(points)
        return SparseRows.stack([points, others])[places]
    points[where] = others[where]
    return points


def sqdist_moved(moved: Any, centers: Any) -> float:
    """Sum of the squared distances that centres have moved."""
    if is_sparse(centers):
        difference = (moved.matrix - centers.matrix).data
        return float(np.cumsum(np.append(0.0, difference * difference))[-1])
    return float(((moved - centers) ** 2).sum())


def packed_points(name: str, points: Any) -> dict[str, Any]:
    """Points as arrays and numbers, for a product of a fit."""
    if not is_sparse(points):
        return {name: points}
    parts = {"data": points.data, "indices": points.indices, "indptr": points.indptr, "columns": points.n_features}
    return {f"{name}-{part}": value for part, value in parts.items()}


def unpacked_points(name: str, arrays: dict[str, Any]) -> Any:
    """The points of which `packed_points` made these."""
    if name in arrays:
        return np.asarray(arrays[name])
    return SparseRows(*(arrays[f"{name}-{part}"] for part in ("data", "indices", "indptr", "columns")))


# -- distances ---------------------------------------------------------------------------------------------------------


def lower_closest(points: Any, centers: Any, number: int, closest: NDArray[np.float64]) -> None:
    """Lower `closest` (n,) to the squared distances of points to one more centre, in place."""
    if is_sparse(points):
        closest_sparse(points, centers, number, closest)
    else:
        closest_sqdist(points, centers[number], closest)


def start_rows(points: Any, weights: NDArray[np.float64], uniforms: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows at which clusters start, by greedy k-means++; see `plus_plus_rows`."""
    return (sparse_plus_plus if is_sparse(points) else plus_plus_rows)(points, weights, uniforms)


def sqdist_to_own(
    points: Any, weights: NDArray[np.float64], labels: NDArray[np.int32], centers: Any
) -> NDArray[np.float64]:
    """Weight times squared distance (n,) of each point to its centre."""
    if not is_sparse(points):
        return weighted_sqdist(points, weights, labels, centers)
    sqdist = sparse_sqdist(points, centers, labels[:, None])[:, 0]
    return weights * sqdist if len(weights) else sqdist


def sqdist_to_all(points: Any, centers: Any) -> NDArray[np.float64]:
    """Squared distances (n, k) of points to all centres."""
    if not is_sparse(points):
        return sqdist_to_centers(points, centers)
    sqdist = np.full((len(centers), len(points)), np.inf)
    for number, closest in enumerate(sqdist):
        closest_sparse(points, centers, number, closest)
    return sqdist.T


def distinct_points(points: Any) -> NDArray[np.intp]:
    """Numbers of the points (n, q) that differ from every one before them, ascending."""
    if is_sparse(points):
        return sparse_distinct(points)
    # Rows as strings of bytes: many times faster than np.unique(axis=0). Adding 0 makes -0.0 equal to 0.0.
    rows = np.ascontiguousarray(points + points.dtype.type(0))
    _, first = np.unique(rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel(), return_index=True)
    return np.sort(first)


def are_apart(points: Any, centers: Any, labels: NDArray[np.int32], units: int) -> NDArray[np.bool_]:
    """Whether points (n,) are farther from their centres than so many units in their own last place."""
    unit = units * np.finfo(points.dtype).eps
    if is_sparse(points):
        sqdist = sparse_sqdist(points, centers, labels[:, None])[:, 0]
        return sqdist > unit * (points.sqlengths + centers.sqlengths[labels])  # what is left when the sums cancel
    away = np.abs(points - centers[labels]).max(axis=1, initial=0)
    return away > unit * np.abs(points).max(axis=1, initial=0)
