"""How good a partition is by its own objective, without classes to compare with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..runtime.pieces import once
from ..typing import Array, ArrayInput
from .contingency import Opened, align_rows, check_labels, open_input, reduce_rows

__all__ = ["inertia", "normalized_cut_value"]

#: A block of rows takes at most so many bytes in float64, and at most so many rows.
BLOCK_BYTES = 8 * 2**20
MOST_BLOCK_ROWS = 2**17


def inertia(X: ArrayInput, labels: ArrayInput, centers: ArrayInput) -> float:
    """Sum of the squared distances of the rows to the centers of their clusters, the objective of k-means.

    Parameters
    ----------
    X : array-like (n, d), dask array, zarr.Array, or path of a Zarr array
        Real numbers.
    labels : array-like (n,), dask array, zarr.Array, or path of a Zarr array
        Whole numbers: row i belongs to ``centers[labels[i]]``. Rows with label -1 belong to no cluster and
        add nothing; they may hold NaN.
    centers : array-like (k, d)
        Finite.

    Returns
    -------
    float
        0 for empty input.

    Raises
    ------
    ValueError
        If shapes do not fit each other, a label is below -1 or at least k, or a row that has a label holds
        NaN, infinity or values whose squares exceed float64.
    FileNotFoundError
        If there is nothing under a path.

    Notes
    -----
    One pass, on the active dask scheduler for chunked input. Rows are taken in blocks whose length depends
    on d only, distances are differences in float64, and the sums of the blocks are added exactly; so the
    result is the same number for any chunking, scheduler and kind of array. A task needs about three times 8
    MiB beside its chunks.

    Examples
    --------
    >>> inertia([[0.0], [2.0], [9.0]], [0, 0, -1], [[1.0]])
    2.0
    """
    points = np.asarray(centers, np.float64)
    if points.ndim != 2:
        raise ValueError(f"centers must have 2 dimensions, clusters by features, got shape {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError("centers holds NaN or infinity")
    rows = open_input("X", X, n_axes=2)
    if rows.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got dtype {rows.dtype}")
    if rows.shape[1] != points.shape[1]:
        raise ValueError(f"X has {rows.shape[1]} features, but centers has {points.shape[1]}")
    named = ("X", rows), ("labels", open_input("labels", labels, n_axes=1))
    sums = _block_sums(*named, points)
    total = math.fsum(sums)
    if not math.isfinite(total):
        raise ValueError("X holds NaN, infinity or too large values in rows that have a label")
    return total


def _block_sums(X: tuple[str, Opened], labels: tuple[str, Opened], centers: NDArray[np.float64]) -> list[float]:
    """Sum of squared distances of every canonical block, in block order."""
    size = _block_rows(centers.shape[1])
    rows, row_labels = X[1], labels[1]
    if isinstance(rows, np.ndarray) and isinstance(row_labels, np.ndarray) and len(rows) == len(row_labels):
        steps = [slice(start, start + size) for start in range(0, len(rows), size)]
        return [_inertia_chunk(rows[step], row_labels[step], centers) for step in steps]
    blocks, block_labels = align_rows(X, labels, rows=size)
    sums: list[float] = reduce_rows(
        _inertia_part,
        _join,
        blocks,
        block_labels,
        name="dc-inertia",
        centers=once(centers, "centers"),
    )
    return sums


def _block_rows(n_features: int) -> int:
    rows = max(1, BLOCK_BYTES // (8 * max(1, n_features)))
    return int(min(2 ** (rows.bit_length() - 1), MOST_BLOCK_ROWS))


def _inertia_part(block: Array, labels: Array, centers: NDArray[np.float64]) -> list[float]:
    return [_inertia_chunk(block, labels, centers)]


def _inertia_chunk(block: Array, labels: Array, centers: NDArray[np.float64]) -> float:
    labels = check_labels("labels", labels)
    if labels.dtype.kind not in "biuf":
        raise ValueError(f"labels must hold whole numbers, got dtype {labels.dtype}")
    wrong = (labels < -1) | (labels >= len(centers))
    if wrong.any():
        raise ValueError(
            f"labels must be from -1 to {len(centers) - 1} for {len(centers)} centers, got {labels[wrong][0]}"
        )
    labels = labels.astype(np.intp)
    labeled = labels >= 0
    if not labeled.all():
        block, labels = block[labeled], labels[labeled]
    # Memory order decides the order of summation, so it is fixed here.
    difference = np.array(block, np.float64, order="C")  # (n, d)
    difference -= centers[labels]
    with np.errstate(over="ignore", invalid="ignore"):
        np.multiply(difference, difference, out=difference)
        return float(difference.sum())


def _join(parts: list[list[float]]) -> list[float]:
    return [value for part in parts for value in part]


def normalized_cut_value(affinity: Any, labels: ArrayInput) -> float:
    """Cut a small graph by a partition and return the normalized cut, which spectral clustering minimizes.

    Parameters
    ----------
    affinity : array-like (n, n) or scipy sparse matrix
        Symmetric, finite, non-negative edge weights.
    labels : array-like (n,)
        As in `contingency_matrix`; -1 is an ordinary label.

    Returns
    -------
    float
        From 0 (no edge between clusters) to the number of clusters. A cluster whose rows have no edges at
        all cuts nothing and adds 0.

    Raises
    ------
    ValueError
        If `affinity` is not such a matrix or `labels` does not fit it.

    Notes
    -----
    Sum over clusters of cut(A, V without A) / vol(A), where the cut counts every edge between A and the rest
    once and vol(A) is the sum of the degrees: NCut in section 2 of csp_ml_and_fast_csp_ml_2019. In memory;
    O(edges).

    Examples
    --------
    >>> normalized_cut_value([[0, 1, 0], [1, 0, 1], [0, 1, 0]], [0, 0, 1])
    1.3333333333333333
    """
    if hasattr(affinity, "to_scipy_sparse"):  # pydata sparse
        affinity = affinity.to_scipy_sparse()
    weights: Any = affinity.tocsr() if scipy.sparse.issparse(affinity) else np.asarray(affinity)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1]:
        raise ValueError(f"affinity must be a square matrix, got shape {weights.shape}")
    values: Array = weights.data if scipy.sparse.issparse(weights) else weights
    if values.dtype.kind not in "biuf" or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError(f"affinity must hold finite, non-negative numbers (dtype {values.dtype})")
    weights = weights.astype(np.float64)
    gap = float(abs(weights - weights.T).max()) if weights.shape[0] else 0.0
    if gap > 1e-6 * float(values.max(initial=0)):
        raise ValueError(f"affinity must be symmetric, but two opposite entries differ by {gap:.3g}")
    named = check_labels("labels", np.asarray(open_input("labels", labels, n_axes=1)))
    if len(named) != weights.shape[0]:
        raise ValueError(f"affinity has {weights.shape[0]} rows, but labels has {len(named)}")
    distinct, codes = np.unique(named, return_inverse=True)
    shape = len(named), len(distinct)
    members = scipy.sparse.csr_array((np.ones(shape[0]), codes, np.arange(shape[0] + 1)), shape=shape)  # (n, k)
    between = members.T @ (weights @ members)  # (k, k): weight of the edges from cluster to cluster
    between = between.toarray() if scipy.sparse.issparse(between) else np.asarray(between)
    volumes = between.sum(axis=1)
    cuts = volumes - np.diagonal(between)
    return math.fsum((cuts[volumes > 0] / volumes[volumes > 0]).tolist())
