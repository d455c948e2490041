"""The one door for user data: opened, checked, counted, and cut into canonical row blocks.

Rows, labels, weights and constraints all come in here, and each form of input is known here and nowhere else:

==============================  ==========================================================================
NumPy array, what becomes one   rows in this process's memory; blocks are views, cut when a task runs
dask array, dask dataframe      lazy; unknown chunk lengths are counted once
zarr.Array, path or URL of one  read block by block, straight into canonical blocks where chunks allow that
xarray object over dask         its dask array
==============================  ==========================================================================
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from os import PathLike
from typing import Any

import dask
import dask.array as da
import numpy as np
import zarr
from numpy.typing import NDArray

from ..files.arrays import CHUNK_BYTES, open_rows
from ..kernels.rows import compute_dtype
from ..runtime.execution import compute, map_to_objects, runs_in_process
from ..runtime.forecast import Sizes
from ..typing import PathInput
from ..validation import check_dense, check_table

__all__ = [
    "Reading",
    "Rows",
    "Source",
    "block_rows",
    "check_column",
    "as_array",
    "check_rows",
    "cut_column",
    "cut_rows",
    "is_chunked",
    "open_column",
    "open_dask",
    "open_source",
    "sizes_of",
]

logger = logging.getLogger("daskcluster")

#: A canonical block holds so many bytes of computing dtype at most, and so many rows at most and at least.
BLOCK_BYTES = 8 * 2**20
MOST_BLOCK_ROWS = 2**17
LEAST_BLOCK_ROWS = 2**8
#: Chunks that zarr decodes beside each other for one read (its setting ``async.concurrency``).
DECODED_AT_ONCE = 10


def block_rows(n_features: int, dtype: np.dtype[Any]) -> int:
    """Rows of a canonical block: a power of two that depends on the number of features and the dtype only."""
    rows = BLOCK_BYTES // (n_features * compute_dtype(dtype).itemsize)
    return int(min(max(2 ** (max(rows, 1).bit_length() - 1), LEAST_BLOCK_ROWS), MOST_BLOCK_ROWS))


# -- what came in -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """Input as it was opened, before it is cut into blocks.

    Attributes
    ----------
    array : NumPy, dask or zarr array, or what NumPy makes an array of
    chunked : bool
        Whether the user's input was chunked, so that outputs are to be lazy.
    named : dataframe or None
        An empty dataframe with the names of the columns, where they have names.
    """

    array: Any
    chunked: bool
    named: Any = None


def is_chunked(X: Any) -> bool:
    """Whether `X` is chunked input: dask array or dataframe, zarr.Array, a path, or an xarray object over dask."""
    return (
        isinstance(X, str | PathLike | da.Array | zarr.Array | zarr.Group)
        or hasattr(X, "to_dask_array")
        or (_is_xarray(X) and isinstance(getattr(X, "data", None), da.Array))
    )


def _is_xarray(X: Any) -> bool:
    return type(X).__module__.startswith("xarray")


def open_source(X: Any, fill: str = "NaN") -> Source:
    """Open user input, whatever form it has; nothing is read.

    Parameters
    ----------
    X : NumPy array, dask array or dataframe, zarr.Array, a path to one, xarray object, or what NumPy converts
    fill : {"NaN", "-1"}
        What stands for no value there, for messages.

    Raises
    ------
    TypeError
        If it is sparse.
    ValueError
        If it is masked, or the path holds something else than an array.
    FileNotFoundError
        If `X` is a path without an array.
    """
    chunked, named = is_chunked(X), None
    if isinstance(X, str | PathLike | zarr.Group):
        X = open_rows(X)  # says that a group is no array
    if hasattr(X, "to_dask_array"):
        named = X._meta if X.ndim == 2 else None
        X = X.to_dask_array()
    if _is_xarray(X):
        X = X.data
    check_dense(X, fill=fill)
    return Source(X, chunked, named)


def open_dask(source: zarr.Array[Any] | PathInput) -> da.Array:
    """Open a Zarr array as a lazy dask array whose chunks are whole stored chunks.

    Parameters
    ----------
    source : zarr.Array or str or os.PathLike
        As in `open_rows`.

    Returns
    -------
    da.Array
        Small stored chunks are read several at a time, up to about 32 MiB, because each read of a Zarr chunk
        has a fixed cost; no stored chunk is read by two tasks.
    """
    array = open_rows(source)
    if array.ndim == 0:
        raise ValueError(f"expected an array with rows, got a scalar array in {array.store_path}")
    unit = array.shards or array.chunks
    row_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    several = max(1, CHUNK_BYTES // max(1, unit[0] * row_bytes))
    return _cut_source(array, min(max(1, array.shape[0]), unit[0] * several))


# -- canonical row blocks ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """Memory that input takes on its way into row blocks, for the forecast.

    Attributes
    ----------
    memory_bytes : int
        Rows that are in this process's memory.
    unit_bytes : int
        What one task reads where that is more than a block, and stays until its blocks are used; else 0.
    buffer_bytes : int
        Chunks that are decoded for one read.
    n_units : int
        Such reads.
    """

    memory_bytes: int = 0
    unit_bytes: int = 0
    buffer_bytes: int = 0
    n_units: int = 1

    def peak_bytes(self, threads: int) -> int:
        """Bytes at a time with so many tasks beside each other: one more unit waits until all of it is used."""
        waiting = min(threads + 1, self.n_units) * self.unit_bytes
        return waiting + min(threads, self.n_units) * self.buffer_bytes


@dataclass(frozen=True)
class Rows:
    """The input as canonical row blocks.

    Attributes
    ----------
    blocks : dask array (n, d)
        Raw values; every block but the last has `block_rows` rows.
    missing : {"raise", "label"}
        What rows with NaN or infinity get.
    chunked : bool
        Whether the user's input was chunked, so that outputs are to be lazy.
    sized_as : dtype, optional
        The dtype that decides the size of the blocks, when it is not their own.
    reading : Reading
    """

    blocks: da.Array
    missing: str
    chunked: bool
    sized_as: np.dtype[Any] | None = None
    reading: Reading = Reading()

    @property
    def n_samples(self) -> int:
        """Number of rows, missing ones included."""
        return int(self.blocks.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.blocks.shape[1])

    @property
    def block_rows(self) -> int:
        """Rows of a full block."""
        return block_rows(self.n_features, self.blocks.dtype if self.sized_as is None else self.sized_as)


def sizes_of(rows: Rows) -> Sizes:
    """The lengths from which costs of stages are made."""
    dtype = rows.blocks.dtype
    return Sizes(
        n_samples=rows.n_samples,
        n_features=rows.n_features,
        n_blocks=rows.blocks.numblocks[0],
        block_rows=min(rows.block_rows, rows.n_samples),
        raw_bytes=dtype.itemsize,
        number_bytes=compute_dtype(dtype).itemsize,
        read_tasks=len(rows.blocks.__dask_graph__()),
        in_memory=not rows.chunked,
    )


def check_rows(X: Any, missing: str = "raise", sized_as: np.dtype[Any] | None = None) -> Rows:
    """Bring the input into canonical row blocks; rejects what has the wrong shape or type before any pass.

    Parameters
    ----------
    X : as `open_source` takes it, (n, d)
    missing : {"raise", "label"}
    sized_as : dtype, optional
        Decides the size of the blocks instead of the input's own dtype.

    Raises
    ------
    ValueError
        If `X` is not a table of real numbers with at least one row and one feature, or its store cannot be read by
        the processes of the active scheduler.
    TypeError, FileNotFoundError
        As `open_source`.
    """
    return cut_rows(open_source(X, "NaN" if sized_as is None else "-1"), missing, sized_as)


def cut_rows(source: Source, missing: str = "raise", sized_as: np.dtype[Any] | None = None) -> Rows:
    """Cut opened input into canonical row blocks; see `check_rows`.

    Notes
    -----
    Lazy, except that the lengths of unknown chunks are counted by one computation, which is logged. The size of the
    blocks depends on d and the dtype only (`block_rows`), so every sum over blocks is the same for any chunking.
    """
    X = source.array
    if isinstance(X, da.Array):
        check_table(X.shape, X.dtype)  # before rows are counted
        X = _count_rows(X)
    elif not isinstance(X, zarr.Array):
        X = np.asarray(X)
    check_table(X.shape, X.dtype)
    size = block_rows(X.shape[1], X.dtype if sized_as is None else sized_as)
    if isinstance(X, da.Array):
        array, reading = X, _reading_of_chunks(X, size)
    elif isinstance(X, zarr.Array):
        array, reading = _read_zarr(X, size)
    else:
        array, reading = _read_memory(X, size), Reading(memory_bytes=X.nbytes)
    canonical = (size, X.shape[1])
    if array.chunks != da.core.normalize_chunks(canonical, X.shape, dtype=X.dtype):
        array = array.rechunk(canonical, method="tasks")  # never "p2p", which stalls where workers come and go
    return Rows(array, missing, source.chunked, sized_as, reading)


def _count_rows(X: da.Array) -> da.Array:
    """The same array with known chunk lengths."""
    if X.ndim != 2 or not any(np.isnan(length) for axis in X.chunks for length in axis):
        return X
    n_columns = X.shape[1]
    if np.isnan(n_columns):
        raise ValueError(f"X must have a known number of features, got chunks {X.chunks}")
    first = X.blocks[:, 0] if X.numblocks[1] > 1 else X
    lengths = [found["rows"] for found in compute(map_to_objects(_length, first, name="dc-count"))[0]]
    logger.info("counted the rows of %d chunks of unknown length: %d rows", len(lengths), sum(lengths))
    return X.map_blocks(_same, dtype=X.dtype, meta=np.empty((0, 0), X.dtype), chunks=(tuple(lengths), X.chunks[1]))


def _length(block: NDArray[Any], number: int) -> dict[str, Any]:
    return {"rows": len(block)}


def _same(block: NDArray[Any]) -> NDArray[Any]:
    return block


def _read_memory(array: NDArray[Any], size: int) -> da.Array:
    """Blocks of an array in memory: views of it where tasks run in this process, else parts that travel to them."""
    if runs_in_process():
        return _cut_source(array, size)
    # Without a name dask would hash the whole array.
    return da.from_array(array, chunks=(size, *array.shape[1:]), name=False)


def _read_zarr(array: zarr.Array[Any], size: int) -> tuple[da.Array, Reading]:
    """Lazy reads of a store: straight into canonical blocks, or whole chunks first when those are much larger.

    Shards are read by the chunks inside them.
    """
    if isinstance(array.store, zarr.storage.MemoryStore) and not runs_in_process():
        raise ValueError(
            "X lives in a zarr MemoryStore, which the worker processes of the active scheduler cannot read; "
            "save it to a folder and pass the path"
        )
    n_samples, n_features = array.shape
    stored_rows, stored_columns = array.chunks
    rows = size if stored_rows <= 2 * size else stored_rows
    aligned = rows % stored_rows == 0 or stored_rows % rows == 0
    touched = max(1, rows // stored_rows + (0 if aligned else 2)) * -(-n_features // stored_columns)
    decoded = min(touched, DECODED_AT_ONCE) * stored_rows * stored_columns * array.dtype.itemsize
    reading = Reading(
        unit_bytes=0 if rows == size else min(rows, n_samples) * n_features * array.dtype.itemsize,
        # As it is stored, and decoded.
        buffer_bytes=2 * decoded,
        n_units=-(-n_samples // rows),
    )
    return _cut_source(array, rows), reading


def _reading_of_chunks(array: da.Array, size: int) -> Reading:
    """Chunks of a dask array that are larger than blocks stay until all their blocks are used; made by two copies."""
    longest = max(array.chunks[0])
    if longest <= size and array.numblocks[1] == 1:
        return Reading()
    unit_bytes = int(longest) * array.shape[1] * array.dtype.itemsize
    return Reading(unit_bytes=unit_bytes, buffer_bytes=unit_bytes, n_units=array.numblocks[0])


def _cut_source(array: Any, rows: int) -> da.Array:
    """Lazy pieces of so many rows of something that is indexed: a zarr array, an array in memory.

    ``da.from_array`` would copy an array in memory, and name tasks as nobody knows them.
    """
    # The content may change under the same path, so the name of the tasks must not outlive this call.
    token = uuid.uuid4().hex
    shape = array.shape
    chunks = da.core.normalize_chunks((rows, *(max(1, size) for size in shape[1:])), shape, dtype=array.dtype)
    source = dask.delayed(array, name=f"dc-source-{token}", traverse=False)
    return da.map_blocks(
        _read_piece,
        source=source,
        rows=rows,
        n_rows=shape[0],
        name=f"dc-read-{token}",
        chunks=chunks,
        dtype=array.dtype,
        meta=np.empty((0,) * len(shape), array.dtype),
    )


def _read_piece(source: Any, rows: int, n_rows: int, block_id: tuple[int, ...]) -> NDArray[Any]:
    start = block_id[0] * rows
    return np.asarray(source[start : min(start + rows, n_rows)])


# -- columns beside the rows ------------------------------------------------------------------------------------------


def open_column(name: str, values: Any) -> NDArray[Any] | da.Array:
    """Labels or weights beside the rows, whatever form they have, as one array (n,) of known length.

    A table of one column is one. What a mask hides is -1, or NaN among floats: unknown.
    """
    if hasattr(values, "to_dask_array"):
        values = values.to_dask_array()
    elif is_chunked(values) and not isinstance(values, da.Array):
        values = open_dask(values)
    if isinstance(values, da.Array):
        if isinstance(values._meta, np.ma.MaskedArray):
            filled = _fill_masked(np.ma.empty(0, values.dtype))
            values = values.map_blocks(_fill_masked, dtype=filled.dtype, meta=filled)
    elif np.ma.isMaskedArray(values):
        values = _fill_masked(values)
    else:
        values = as_array(name, values, "have one entry a row, shape (n,)")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must have one entry a row, shape (n,), got shape {values.shape}")
    if isinstance(values, da.Array) and np.isnan(values.shape[0]):
        values = _count_rows(values[:, None])[:, 0]
    return values


def _fill_masked(values: Any) -> NDArray[Any]:
    """A masked array with -1 or NaN where it is masked; integers in a dtype that has a -1."""
    kind = values.dtype.kind
    if kind == "f":
        return np.asarray(np.ma.filled(values, np.nan))
    if kind in "bu":
        values = values.astype(np.int64)
    return np.asarray(np.ma.filled(values, -1)) if kind in "biu" else np.asarray(values)


def as_array(name: str, values: Any, wanted: str) -> NDArray[Any]:
    """A NumPy array of what may be lists, or an error that names the argument."""
    try:
        return np.asarray(values)
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"{name} must {wanted}, got {values!r:.100}: {error}") from error


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
    if not is_chunked(values):
        values = as_array(name, values, "have one entry a row, shape (n,)")
        values = np.full(rows.n_samples, values) if values.ndim == 0 else values
    shape = getattr(values, "shape", None)
    column = values if isinstance(shape, tuple) and len(shape) != 1 else open_column(name, values)
    if column.shape != (rows.n_samples,):
        raise ValueError(f"{name}.shape must be ({rows.n_samples},), got {column.shape}")
    if column.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got dtype {column.dtype}")
    return cut_column(column, rows)


def cut_column(column: NDArray[Any] | da.Array, rows: Rows) -> da.Array:
    """A column (n,) in the blocks of the rows."""
    if isinstance(column, np.ndarray):
        return _read_memory(column, rows.block_rows)
    return column.rechunk((rows.blocks.chunks[0],), method="tasks")
