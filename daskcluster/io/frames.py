"""Dask dataframes on their way in: the memory that making a partition takes."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["frame_row_bytes"]

#: Bytes of a Python object, besides the place that points to it.
_OBJECT_BYTES = 56


def frame_row_bytes(X: Any) -> int:
    """Bytes of a row as a dask dataframe or series has it, its index included."""
    dtypes = [*(X._meta.dtypes if X.ndim == 2 else [X._meta.dtype]), X._meta.index.dtype]
    return sum(_bytes_of(dtype) for dtype in dtypes)


def _bytes_of(dtype: Any) -> int:
    return int(getattr(dtype, "itemsize", 8)) + (_OBJECT_BYTES if dtype == np.dtype(object) else 0)
