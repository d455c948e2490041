"""Dask dataframes on their way in: the lengths of their partitions, and the memory that making one takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

from ..runtime.execution import compute

__all__ = ["Frame", "open_frame"]

#: Bytes of a Python object, besides the place that points to it.
_OBJECT_BYTES = 56


@dataclass(frozen=True)
class Frame:
    """What a dask array does not tell of the dataframe that it was.

    Attributes
    ----------
    row_bytes : int
        Bytes of a row as the dataframe has it, its index included.
    lengths : callable
        Counts the rows of each partition. Only the index is asked for: of parquet no column is read.
    """

    row_bytes: int
    lengths: Callable[[], tuple[int, ...]]


def open_frame(X: Any) -> tuple[da.Array, Any, Frame]:
    """A dask dataframe or series as a lazy array, an empty dataframe with its names, and what else is known of it."""
    dtypes = [*(X._meta.dtypes if X.ndim == 2 else [X._meta.dtype]), X._meta.index.dtype]
    row_bytes = sum(_bytes_of(dtype) for dtype in dtypes)
    frame = Frame(row_bytes, lambda: tuple(map(int, compute(X.index.map_partitions(len))[0])))
    return X.to_dask_array(), X._meta if X.ndim == 2 else None, frame


def _bytes_of(dtype: Any) -> int:
    return int(getattr(dtype, "itemsize", 8)) + (_OBJECT_BYTES if dtype == np.dtype(object) else 0)
