"""Stage 0 on one block: one look at raw rows, and their form for computing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .jit import jit
from .sparse_rows import SparseRows, unit_rows

__all__ = ["compute_dtype", "finite_rows", "prepare_rows", "scan_rows", "scan_sparse"]


def compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for what it holds exactly (small integers, float16, float32), float64 for the rest."""
    exact = (
        dtype.kind == "b" or (dtype.kind in "iu" and dtype.itemsize <= 2) or (dtype.kind == "f" and dtype.itemsize <= 4)
    )
    return np.dtype(np.float32 if exact else np.float64)


@jit
def scan_rows(rows, minimum, maximum):
    """Range of the finite rows and the first value that is not finite, in one look.

    Parameters
    ----------
    rows : (n, d) float
    minimum, maximum : (d,) float64, changed in place
        Lowered and raised by the rows whose values are all finite.

    Returns
    -------
    n_finite, row, column : int
        Rows whose values are all finite; place of the first value that is not, (-1, -1) if there is none.
    """
    n_rows, n_features = rows.shape
    n_finite = 0
    bad_row = -1
    bad_column = -1
    for i in range(n_rows):
        finite = True
        for f in range(n_features):
            if not np.isfinite(rows[i, f]):
                finite = False
                if bad_row < 0:
                    bad_row = i
                    bad_column = f
                break
        if finite:
            n_finite += 1
            for f in range(n_features):
                value = np.float64(rows[i, f])
                if value < minimum[f]:
                    minimum[f] = value
                if value > maximum[f]:
                    maximum[f] = value
    return n_finite, bad_row, bad_column


def finite_rows(block: Any) -> NDArray[np.bool_] | None:
    """Mask (n,) of the rows, dense or sparse, whose values are all finite; None when all are."""
    if block.dtype.kind != "f":
        return None
    if isinstance(block, SparseRows):
        bad = ~np.isfinite(block.data)
        return np.diff(np.concatenate([[0], np.cumsum(bad)])[block.indptr]) == 0 if bad.any() else None
    with np.errstate(over="ignore", invalid="ignore"):
        # One sum tells, unless it overflows: a NaN or an infinity never leaves it.
        if np.isfinite(block.sum(dtype=np.float64 if block.dtype.itemsize <= 8 else None)):
            return None
    finite = np.isfinite(block).all(axis=1)
    return None if finite.all() else finite


def prepare_rows(
    block: Any, shift: NDArray[np.float64], scale: float, unit_length: bool = False, sparse: bool = False
) -> Any:
    """Rows in the form in which all stages compute.

    Parameters
    ----------
    block : (n, d), finite
        Dense, or `SparseRows`.
    shift : (d,) float64
        Subtracted from every row, so that no digits are spent on a common offset.
    scale : float
        Factor, a power of two, so that no square overflows; it changes no digit.
    unit_length : bool
        Divide each row by its length instead (``metric="cosine"``); a row of zeros stays.
    sparse : bool
        Keep sparse rows sparse: there is no shift. Else they become dense.

    Returns
    -------
    (n, d) float32 or float64, C order, see `compute_dtype`; at most two copies of the block are alive. Sparse rows hold
    the same numbers as float64.
    """
    if isinstance(block, SparseRows):
        if sparse:
            return _prepare_sparse(block, scale, unit_length)
        block = block.toarray()
    dtype = compute_dtype(block.dtype)
    if unit_length:
        rows = block.astype(np.float64, order="C")
        _to_unit_length(rows)
        return rows.astype(dtype, copy=False)
    rows = block.astype(dtype, order="C")
    try:
        with np.errstate(over="raise"):
            rows *= dtype.type(scale)  # first, because the difference of two numbers can overflow
    except FloatingPointError:
        # New rows too far from those of the fit for any digit: the ends of the range stand for them.
        most = np.finfo(dtype).max / scale
        rows = np.clip(block.astype(dtype, order="C"), -most, most) * dtype.type(scale)
    rows -= (shift * scale).astype(dtype)
    return rows


@jit
def _to_unit_length(rows):
    """Divide rows (n, d) of float64 by their length, in place: to the last bit as `unit_rows` does it."""
    for i in range(rows.shape[0]):
        largest = 0.0
        for f in range(rows.shape[1]):
            largest = max(largest, abs(rows[i, f]))
        if largest == 0:
            continue
        total = 0.0
        for f in range(rows.shape[1]):
            rows[i, f] /= largest
            total += rows[i, f] * rows[i, f]
        length = np.sqrt(total)
        for f in range(rows.shape[1]):
            rows[i, f] /= length


def _prepare_sparse(block: SparseRows, scale: float, unit_length: bool) -> SparseRows:
    dtype = compute_dtype(block.dtype)
    if unit_length:
        rows = unit_rows(block.astype(np.float64))
    else:
        with np.errstate(over="ignore"):
            most = np.finfo(dtype).max / dtype.type(scale)
        rows = block.with_data(np.clip(block.data.astype(dtype), -most, most) * dtype.type(scale))
    return rows.with_data(rows.data.astype(dtype).astype(np.float64))


def scan_sparse(block: Any) -> tuple[int, int, int, float]:
    """What `scan_rows` finds, of `SparseRows`: finite rows, place of the first bad value; and the largest value.

    That is the largest absolute one of the finite rows.
    """
    finite = finite_rows(block)
    if finite is None:
        return len(block), -1, -1, float(np.abs(block.data.astype(np.float64)).max(initial=0.0))
    row = int(np.argmin(finite))
    first = block[row : row + 1]
    column = int(first.indices[np.argmin(np.isfinite(first.data))])
    largest = np.abs(block[finite].data.astype(np.float64)).max(initial=0.0)
    return int(finite.sum()), row, column, float(largest)
