"""The one door for user data: opened, checked, counted, and cut into canonical row blocks.

Rows, labels, weights and constraints all come in here, and each form of input is known here and nowhere else:

==============================  ==========================================================================
NumPy array, what becomes one   rows in this process's memory; blocks are views, cut when a task runs
memory map                      read block by block from its file, by workers too
dask array, dask dataframe      lazy; unknown chunk lengths are counted once, every chunk is held to its shape
zarr.Array, path or URL of one  read block by block, straight into canonical blocks where chunks allow that
HDF5 dataset                    the same
path of another file            as `tables.py` opens it: parquet, npy, HDF5
SciPy or pydata sparse rows,    `SparseRows` a block, for estimators whose kernels take them: `sparse.py`
dask arrays of them; a path of
a csr_matrix of AnnData, or one
that a backed object has
xarray object over dask         its dask array
==============================  ==========================================================================

What is declared as no data is NaN behind this door, and scale and offset are applied (`nodata.py`). Missing chunks are
counted (`missing.py`). Labels and weights beside the rows are columns (`columns.py`). The sources that tasks read from
are in `sources.py`, their lazy pieces in `reading.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import Any

import dask.array as da
import numpy as np
import zarr
from numpy.typing import NDArray

from ..files.arrays import CHUNK_BYTES, open_rows
from ..files.nodes import describe_sparse
from ..kernels.rows import compute_dtype
from ..runtime.forecast import Sizes
from ..runtime.pieces import recut
from ..runtime.visibility import check_shareable
from ..validation import check_columns, check_dense, check_in_memory, check_kind, check_table
from .containers import refuse_container
from .frames import frame_row_bytes
from .missing import check_chunks
from .nodata import Declared, declared
from .reading import Reading, cut, cut_memory, known_rows, reading_of_chunks, reading_of_store
from .sources import FileRows, Hdf5Rows, Stored, ZarrRows, file_rows, hdf5_rows
from .sparse import (
    CsrGroup,
    Entries,
    group_behind,
    is_sparse_input,
    known_sparse_rows,
    open_csr_group,
    read_sparse_rows,
    sparse_array,
    sparse_row_bytes,
)
from .tables import open_table

__all__ = [
    "GivenChunks",
    "Rows",
    "Source",
    "block_rows",
    "as_array",
    "check_rows",
    "cut_rows",
    "follow_input",
    "in_natural_pieces",
    "is_chunked",
    "open_dask",
    "open_named",
    "open_pieces",
    "open_source",
    "sizes_of",
]

#: A canonical block holds so many bytes of computing dtype at most, and so many rows at most and at least.
BLOCK_BYTES = 8 * 2**20
MOST_BLOCK_ROWS = 2**17
LEAST_BLOCK_ROWS = 2**8


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
    array : NumPy, dask or zarr array, rows of a file, or what NumPy makes an array of
    chunked : bool
        Whether the user's input was chunked, so that outputs are to be lazy.
    named : dataframe or None
        An empty dataframe with the names of the columns, where they have names.
    declared : Declared, optional
        How its numbers become values, where they are not the values.
    name : str
        The argument, for messages.
    absent : str
        How a message says what is stored where a value is NaN.
    beside_bytes : int
        Memory of what lies beside the rows in this process: the index of an xarray object.
    sparse : bool
        Whether the rows are sparse: SciPy's CSR, a dask array of sparse chunks, or a CsrGroup.
    made_of_bytes : int
        Bytes of a row of the dataframe that the rows are made of; 0 where they are made of none.
    """

    array: Any
    chunked: bool
    named: Any = None
    declared: Declared | None = None
    name: str = "X"
    absent: str = "NaN"
    beside_bytes: int = 0
    sparse: bool = False
    made_of_bytes: int = 0

    @property
    def in_memory(self) -> bool:
        """Whether the rows are in this process's memory, and are used where they are."""
        return not isinstance(self.array, da.Array | zarr.Array | FileRows | Hdf5Rows | CsrGroup)

    def stored(self) -> Stored | None:
        """What tasks read from; None for rows in memory and for dask arrays.

        Raises
        ------
        ValueError
            If the processes of the active scheduler cannot read it; MissingChunksError, see `check_chunks`.
        """
        if isinstance(self.array, zarr.Array):
            check_shareable(self.name, self.array)
            nodata = () if self.declared is None else self.declared.nodata
            return ZarrRows(self.array, check_chunks(self.name, self.array, nodata))
        return self.array if isinstance(self.array, FileRows | Hdf5Rows) else None

    def decoded(self, lazy: da.Array) -> da.Array:
        """Lazy values of lazy numbers."""
        if self.declared is None:
            return lazy
        dtype = self.declared.dtype(lazy.dtype)
        meta = np.empty((0,) * lazy.ndim, dtype)
        return lazy.map_blocks(self.declared, token="dc-decode", dtype=dtype, meta=meta)


def is_chunked(X: Any) -> bool:
    """Whether `X` is chunked input: dask array or dataframe, zarr.Array, a path, an HDF5 dataset, xarray over dask."""
    return (
        isinstance(X, str | PathLike | da.Array | zarr.Array | zarr.Group)
        or hasattr(X, "to_dask_array")
        or hdf5_rows(X) is not None
        or group_behind(X) is not None
        or (_is_xarray(X) and isinstance(getattr(X, "data", None), da.Array))
    )


def _is_xarray(X: Any) -> bool:
    return type(X).__module__.startswith("xarray")


def open_source(X: Any, fill: str = "NaN", *, sparse: bool = False) -> Source:
    """Open user input, whatever form it has; nothing is read.

    Parameters
    ----------
    X : NumPy array, memory map, dask array or dataframe, zarr.Array, a path to one, HDF5 dataset, xarray object
        Or what NumPy converts.
    fill : {"NaN", "-1"}
        What stands for no value there.
    sparse : bool
        Take sparse rows.

    Raises
    ------
    TypeError
        If it is sparse and such rows are not taken, or holds several arrays.
    ValueError
        If it is masked, the path holds something else than an array, or its attributes say what is not understood.
    FileNotFoundError
        If `X` is a path without an array.
    """
    if sparse and is_sparse_input(X):
        source = Source(sparse_array("X", X), isinstance(X, da.Array), sparse=True)
    else:
        source = open_named(X, "X", label=fill == "-1", sparse=sparse)
    if source.sparse:
        if source.in_memory:
            check_table(source.array.shape, source.array.dtype)
        return source
    check_dense(source.array, fill=fill)
    if source.named is not None:
        check_columns(source.named)
    return replace(source, array=check_in_memory(source.array)) if source.in_memory else source


def open_named(X: Any, name: str, *, label: bool, n_axes: int = 2, sparse: bool = False) -> Source:
    """Open an argument, rows by `n_axes=2` or a column by 1; what a `label` lacks is -1. Nothing of it is checked."""
    if (group := group_behind(X)) is not None:
        if not sparse:
            raise ValueError(f"{name}: {describe_sparse(str(group.name), group.attrs['encoding-type'])}")
        return Source(open_csr_group(name, group), True, name=name, sparse=True)
    check_kind(name, X, "an array (rows, features)" if n_axes == 2 else "an array with one entry a row, shape (n,)")
    refuse_container(name, X)
    chunked, named, beside, made_of = is_chunked(X), None, 0, 0
    attributes, encoding = {}, {}
    if (table := open_table(X, sparse=sparse)) is not None:
        if isinstance(table.array, CsrGroup):
            return Source(table.array, True, name=name, sparse=True)
        X, named, attributes = table.array, table.named, dict(table.attributes or {})
    elif isinstance(X, str | PathLike | zarr.Array | zarr.Group):
        X = open_rows(X, n_axes=n_axes, sparse=sparse)  # says that a group is no array
        if isinstance(X, zarr.Group):
            return Source(open_csr_group(name, X), True, name=name, sparse=True)
        attributes = X.attrs.asdict()
    elif hasattr(X, "to_dask_array"):
        named, made_of = X._meta if X.ndim == 2 else None, frame_row_bytes(X)
        X = X.to_dask_array()
    elif _is_xarray(X):
        beside = sum(int(index.nbytes) for index in getattr(X, "indexes", {}).values())
        attributes, encoding, X = X.attrs, X.encoding, X.data
    elif (hdf5 := hdf5_rows(X)) is not None:
        attributes, X = getattr(X, "attrs", {}), hdf5
    found = declared(name, X.dtype, attributes, encoding, label=label) if attributes or encoding else None
    absent = "NaN" if found is None else found.absent(X.dtype)
    if isinstance(X, np.ndarray) and found is not None:
        X, found = found(X), None
    if isinstance(X, np.ndarray):
        X = file_rows(X) or X
    return Source(X, chunked, named, found, name, absent, beside, made_of_bytes=made_of)


def open_dask(source: Any, name: str = "X") -> da.Array:
    """Open rows as a lazy dask array; of a Zarr array its chunks are whole stored chunks.

    Parameters
    ----------
    source : str or os.PathLike, zarr.Array, or an array or dataframe
        A path as in `open_rows`, or of another file of rows. What is lazy already stays as it is, an array in memory is
        cut into views: so this can be the first step of a pipeline whose other steps open no paths, as
        ``FunctionTransformer(open_dask)``.
    name : str
        What it is, for messages.

    Returns
    -------
    da.Array
        Small stored chunks are read several at a time, up to about 32 MiB, because each read of a Zarr chunk
        has a fixed cost; no stored chunk is read by two tasks. Declared no data is NaN, scale and offset are applied.

    Warns
    -----
    MissingChunksWarning
        If chunks are missing; see `check_chunks`.
    """
    opened = open_named(source, name, label=False, n_axes=2)
    if isinstance(opened.array, da.Array):
        return opened.decoded(opened.array)
    return _in_memory_pieces(opened) if opened.in_memory else in_natural_pieces(opened)


def open_pieces(name: str, array: zarr.Array[Any], rows: int) -> da.Array:
    """A Zarr array as a lazy dask array in pieces of so many rows; see `open_dask`."""
    source = open_named(array, name, label=False, n_axes=array.ndim)
    stored = source.stored()
    assert stored is not None
    return source.decoded(cut(name, stored, rows))


def _in_memory_pieces(source: Source) -> da.Array:
    array = as_array(source.name, source.array, "be an array")
    if array.ndim == 0:
        raise ValueError(f"{source.name}: expected an array with rows, got a scalar array")
    return cut_memory(source.name, array, max(1, CHUNK_BYTES // max(1, array[:1].nbytes)))


def in_natural_pieces(source: Source) -> da.Array:
    """A source that is read, in pieces of whole stored chunks."""
    if len(source.array.shape) == 0:
        raise ValueError(f"{source.name}: expected an array with rows, got a scalar array")
    stored = source.stored()
    assert stored is not None
    unit = getattr(source.array, "shards", None) or stored.chunks or (1,)
    row_bytes = stored.dtype.itemsize * int(np.prod(stored.shape[1:], dtype=np.int64))
    several = max(1, CHUNK_BYTES // max(1, unit[0] * row_bytes))
    return source.decoded(cut(source.name, stored, min(max(1, stored.shape[0]), unit[0] * several)))


# -- canonical row blocks ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GivenChunks:
    """Row chunks of a dask array or dataframe, as outputs beside it are to have them.

    Attributes
    ----------
    lengths : tuple of int
        Counted, where they were unknown.
    declared : bool
        Whether outputs say these lengths. Beside a dask array of unknown lengths they do not: dask refuses to put an
        array of known and one of unknown lengths together, as in ``X[labels == 3]``.
    """

    lengths: tuple[int, ...]
    declared: bool = True


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
    given : GivenChunks, optional
        The row chunks that the user's input had, where outputs are to follow them; see `follow_input`.
    absent : str
        How a message says what is stored where a value is NaN: what the input's attributes declare as no data.
    source : Source, optional
        The input as it was opened.
    entries : Entries, optional
        How many numbers sparse rows have; None for dense ones.
    """

    blocks: da.Array
    missing: str
    chunked: bool
    sized_as: np.dtype[Any] | None = None
    reading: Reading = field(default_factory=Reading)
    given: GivenChunks | None = None
    absent: str = "NaN"
    source: Source | None = None
    entries: Entries | None = None

    @property
    def sparse(self) -> bool:
        """Whether blocks are `SparseRows`."""
        return self.entries is not None

    @property
    def row_bytes(self) -> int:
        """Bytes of a raw row."""
        if self.entries is not None:
            return sparse_row_bytes(self.entries, self.blocks.dtype)
        return int(self.n_features * self.blocks.dtype.itemsize)

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
        row_entries=None if rows.entries is None else rows.entries.in_a_row,
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
    X, given, entries = source.array, None, None
    if isinstance(X, da.Array):
        check_table(X.shape, X.dtype)  # before rows are counted
        declared_lengths = source.named is not None or not np.isnan(X.shape[0])
        if source.sparse:
            X, entries = known_sparse_rows(source.name, X)
        else:
            X = known_rows(source.name, X)
        given = GivenChunks(X.chunks[0], declared_lengths)
    elif source.in_memory and not source.sparse:
        X = np.asarray(X)
    check_table(X.shape, X.dtype)
    stored = source.stored()
    dtype = X.dtype if source.declared is None else source.declared.dtype(X.dtype)
    size = block_rows(X.shape[1], dtype if sized_as is None else sized_as)
    if stored is not None:
        rows, reading = reading_of_store(stored, size)
        array = cut(source.name, stored, rows)
    elif isinstance(X, da.Array):
        row_bytes = None if entries is None else partial(sparse_row_bytes, entries, X.dtype)
        array, reading = X, reading_of_chunks(X, size, row_bytes, source.made_of_bytes)
    elif source.sparse:
        array, reading, entries = read_sparse_rows(source.name, X, size)
    else:
        array, reading = cut_memory(source.name, X, size), Reading(memory_bytes=X.nbytes)
    array = source.decoded(array)
    reading = replace(reading, memory_bytes=reading.memory_bytes + source.beside_bytes)
    array = recut(array, da.core.normalize_chunks((size, X.shape[1]), X.shape, dtype=dtype))
    return Rows(array, missing, source.chunked, sized_as, reading, given, source.absent, source, entries)


def follow_input(array: da.Array, rows: Rows) -> da.Array:
    """An output (n, ...) in the row chunks of the input: of a dask array or dataframe its own.

    Beside a Zarr array, which has no chunks of a dask array's kind, outputs keep the canonical blocks.
    """
    if rows.given is None:
        return array
    array = recut(array, (rows.given.lengths, *array.chunks[1:]))
    if rows.given.declared:
        return array
    unknown = (np.nan,) * array.numblocks[0]
    return array.map_blocks(
        _same, token="dc-output", dtype=array.dtype, meta=array._meta, chunks=(unknown, *array.chunks[1:])
    )


def _same(block: NDArray[Any]) -> NDArray[Any]:
    return block


def as_array(name: str, values: Any, wanted: str) -> NDArray[Any]:
    """A NumPy array of what may be lists, or an error that names the argument."""
    try:
        return np.asarray(values)
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"{name} must {wanted}, got {values!r:.100}: {error}") from error
