"""Chunks that are not in the store of an input: counted and said before any work, or refused."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
import zarr
from numpy.typing import NDArray

from ..errors import MissingChunksError, MissingChunksWarning, warn_user
from ..files.chunks import absent_chunks, absent_parts, describe_store, fill_value
from ..validation import check_option

__all__ = ["MISSING_CHUNKS", "check_chunks"]

#: The setting, and what it may be.
SETTING = "daskcluster.missing-chunks"
MISSING_CHUNKS = ("warn", "refuse")


def check_chunks(name: str, array: zarr.Array[Any], nodata: tuple[Any, ...] = ()) -> NDArray[np.bool_] | None:
    """Count the chunks that are not in the store of an input, without reading any.

    Parameters
    ----------
    name : str
        The argument, for messages.
    array : zarr.Array
    nodata : tuple of numbers
        That stand for no value there, besides NaN.

    Returns
    -------
    bool array over the grid of stored units, or None when the store cannot tell: see `absent_chunks`.

    Raises
    ------
    MissingChunksError
        If chunks are missing and dask's setting ``daskcluster.missing-chunks`` is "refuse"; or if it is, and the store
        cannot tell.

    Warns
    -----
    MissingChunksWarning
        Once, if chunks are missing and the setting is "warn", the default.
    """
    refuses = check_option(SETTING, dask.config.get(SETTING, "warn"), MISSING_CHUNKS) == "refuse"
    absent = absent_chunks(array)
    if absent is None:
        if refuses:
            raise MissingChunksError(
                f"{name}: {describe_store(array)!r} cannot list its chunks, and {SETTING} is 'refuse'"
            )
        return None
    parts = absent_parts(array, absent)
    if parts.any():
        what = _describe(name, array, parts, nodata)
        if refuses:
            raise MissingChunksError(f"{what} {SETTING} is 'refuse'; write them, or set it to 'warn'")
        warn_user(
            f"{what} Zarr leaves out chunks that hold nothing but the fill value, so this may be as it was written; if "
            f"it was not, the store is incomplete. {SETTING}='refuse' (command line: --strict) refuses such a store.",
            MissingChunksWarning,
        )
    return absent


def _describe(name: str, array: zarr.Array[Any], parts: NDArray[np.bool_], nodata: tuple[Any, ...]) -> str:
    """Say how many chunks are missing, and what stands for their rows."""
    exact = parts.shape == tuple(-(-size // length) for size, length in zip(array.shape, array.chunks, strict=True))
    kind, length = ("chunks", array.chunks[0]) if exact else ("shards", (array.shards or array.chunks)[0])
    layers = np.flatnonzero(parts.reshape(len(parts), -1).any(axis=1))
    n_rows = int(np.minimum((layers + 1) * length, array.shape[0]).sum() - (layers * length).sum())
    first = int(layers[0]) * length
    fill = fill_value(array)
    means = ", which means no value" if fill != fill or any(fill == number for number in nodata) else ""
    return (
        f"{name}: {int(parts.sum()):,} of {parts.size:,} {kind} are not in {describe_store(array)!r}, the first at row "
        f"{first}; {n_rows:,} rows are read there as the fill value {fill}{means}."
    )
