"""Columns beside the rows: labels and weights, in any form that rows may have, cut as they are."""

from __future__ import annotations

from numbers import Real
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..runtime.pieces import one_a_row, recut
from ..validation import check_kind
from .inputs import Rows, as_array, in_natural_pieces, is_chunked, open_named
from .reading import cut_memory, known_rows
from .sources import FileRows
from .tables import open_table

__all__ = ["check_column", "cut_column", "open_column"]


def open_column(name: str, values: Any) -> NDArray[Any] | da.Array:
    """Labels or weights beside the rows, whatever form they have, as one array (n,) of known length.

    A table of one column is one. What a mask hides is -1, or NaN among floats: unknown.
    """
    if (table := open_table(values)) is not None and isinstance(table.array, np.ndarray):
        values = table.array
    source = open_named(values, name, label=True, n_axes=1)
    if isinstance(source.array, da.Array):
        column: Any = source.array
        if isinstance(column._meta, np.ma.MaskedArray):
            filled = _fill_masked(np.ma.empty(0, column.dtype))
            column = column.map_blocks(_fill_masked, token="dc-fill", dtype=filled.dtype, meta=filled)
        if column.ndim in (1, 2):
            column = source.decoded(known_rows(name, column))
    elif np.ma.isMaskedArray(source.array):
        column = _fill_masked(source.array)
    elif source.in_memory or isinstance(source.array, FileRows):
        column = as_array(name, values, "have one entry a row, shape (n,)")
    else:
        column = in_natural_pieces(source)
    if column.ndim == 2 and column.shape[1] == 1:
        is_array = isinstance(column, np.ndarray)
        column = column[:, 0] if is_array else one_a_row(_flat, column, name="column", dtype=column.dtype)
    if column.ndim != 1:
        raise ValueError(f"{name} must have one entry a row, shape (n,), got shape {column.shape}")
    return column


def _flat(block: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(block)[:, 0]


def _fill_masked(values: Any) -> NDArray[Any]:
    """A masked array with -1 or NaN where it is masked; integers in a dtype that has a -1."""
    kind = values.dtype.kind
    if kind == "f":
        return np.asarray(np.ma.filled(values, np.nan))
    if kind in "bu":
        values = values.astype(np.int64)
    return np.asarray(np.ma.filled(values, -1)) if kind in "biu" else np.asarray(values)


def check_column(name: str, values: Any, rows: Rows) -> da.Array:
    """Something with one real number a row as a dask array (n,) in the rows' blocks; the numbers are not looked at.

    Parameters
    ----------
    name : str
        The argument, for messages.
    values : as `open_column` takes it, or one number for all rows
    rows : Rows

    Raises
    ------
    ValueError
        If the length or the dtype does not fit.
    """
    if not isinstance(values, Real):
        check_kind(name, values, "an array with one entry a row, shape (n,), or a number")
    if not is_chunked(values) and not hasattr(values, "shape"):
        values = as_array(name, values, "have one entry a row, shape (n,)")
    if getattr(values, "shape", None) == () and not is_chunked(values):
        values = np.full(rows.n_samples, values)
    if isinstance(values, np.ndarray | da.Array) and values.ndim != 1:
        raise ValueError(f"{name}.shape must be ({rows.n_samples},), got {values.shape}")
    column = open_column(name, values)
    if column.shape != (rows.n_samples,):
        raise ValueError(f"{name}.shape must be ({rows.n_samples},), got {column.shape}")
    if column.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {column.dtype}")
    return cut_column(column, rows)


def cut_column(column: NDArray[Any] | da.Array, rows: Rows) -> da.Array:
    """A column (n,) in the blocks of the rows."""
    if isinstance(column, np.ndarray):
        return cut_memory("a column", column, rows.block_rows)
    return recut(column, (rows.blocks.chunks[0],))
