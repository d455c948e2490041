"""Stage 0: raw rows -> the numbers that all stages compute with, and which rows take part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.rows import finite_rows, prepare_rows, scan_sparse
from ..kernels.sparse_rows import is_sparse

__all__ = ["PreparedRows", "RowForm", "bad_value", "check_finite_block", "scatter_rows"]


@dataclass(frozen=True)
class RowForm:
    """How raw rows become the numbers that all stages compute with; part of the model.

    Attributes
    ----------
    shift : (d,) float64
    scale : float
    unit_length : bool
    sparse : bool
        Whether sparse rows stay sparse, as those of the fit were; without a shift then.
    """

    shift: NDArray[np.float64]
    scale: float
    unit_length: bool
    sparse: bool = False

    def prepare(self, block: Any) -> Any:
        """Form of finite rows (n, d) for computing: dense, or `SparseRows`."""
        return prepare_rows(block, self.shift, self.scale, self.unit_length, self.sparse)

    def prepare_points(self, points: Any) -> Any:
        """The same form of representatives or centres (p, d), in float64."""
        points = points.astype(np.float64) if is_sparse(points) else np.asarray(points, np.float64)
        prepared = prepare_rows(points, self.shift, self.scale, self.unit_length, self.sparse)
        return prepared.astype(np.float64, copy=False)

    def restore(self, points: Any) -> Any:
        """Points (p, d) in the units of the input."""
        if is_sparse(points):
            return points if self.unit_length else points.with_data(points.data / self.scale)
        restored: NDArray[np.float64] = points.astype(np.float64)
        return restored if self.unit_length else restored / self.scale + self.shift


class PreparedRows:
    """Raw block -> its rows that take part, in the form for computing, and their numbers; a picklable callable.

    Parameters
    ----------
    form : RowForm
    """

    def __init__(self, form: RowForm) -> None:
        self.form = form

    def __call__(self, block: NDArray[Any]) -> tuple[NDArray[np.floating], NDArray[np.intp] | None]:
        """Prepare a block."""
        finite = finite_rows(block)
        if finite is None:
            return self.form.prepare(block), None
        return self.form.prepare(block[finite]), np.flatnonzero(finite)


def scatter_rows(values: NDArray[Any], rows: NDArray[np.intp] | None, n_rows: int, absent: Any) -> NDArray[Any]:
    """Results for some rows of a block -> for all of its `n_rows`, `absent` for the others; `rows` None means all."""
    if rows is None:
        return values
    every = np.full((n_rows, *values.shape[1:]), absent, values.dtype)
    every[rows] = values
    return every


def bad_value(value: float, row: int, column: int, absent: str) -> ValueError:
    """The error that names a value which is NaN or infinite; `absent` is how NaN is stored, see `Rows`."""
    name = "NaN" if np.isnan(value) else "infinity (inf)"
    stored = f" (stored as {absent})" if np.isnan(value) and absent != "NaN" else ""
    return ValueError(
        f"X contains {name} at row {row}, column {column}{stored}; pass missing='label' to give such rows the label -1"
    )


def check_finite_block(block: Any, first_row: int, absent: str) -> None:
    """Raise the error that names the first value of a block that is NaN or infinite."""
    finite = finite_rows(block)
    if finite is not None:
        if is_sparse(block):
            _, row, column, _ = scan_sparse(block)
            raise bad_value(float(block[row : row + 1].toarray()[0, column]), first_row + row, column, absent)
        row = int(np.argmin(finite))
        column = int(np.argmin(np.isfinite(block[row])))
        raise bad_value(float(block[row, column]), first_row + row, column, absent)
