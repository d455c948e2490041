"""Sparse rows on their way in: SciPy's and pydata's, in memory and as chunks of dask arrays, and groups in files.

Behind the door a block of them is `SparseRows`, by compressed rows. A block is brought into that form when it is used;
rows in memory are not copied for it. Nothing is made dense.
"""

from __future__ import annotations

import copyreg
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import dask.array as da
import numpy as np
import zarr
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import DataNode
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from ..errors import UnreadableChunkError
from ..files.nodes import CSR, SPARSE, describe_sparse
from ..files.records import keep_kind
from ..kernels.sparse_rows import SparseRows
from ..runtime.blocks import check_blocks
from ..runtime.execution import map_to_objects, objects_of, runs_in_process
from ..runtime.pieces import read_pieces
from ..runtime.visibility import check_shareable
from .missing import check_chunks
from .reading import Reading, logger
from .sources import Stored, ZarrRows, hdf5_rows

__all__ = [
    "CsrGroup",
    "Entries",
    "group_behind",
    "is_csr",
    "is_sparse_input",
    "known_sparse_rows",
    "open_csr_group",
    "read_sparse_rows",
    "sparse_array",
    "sparse_row_bytes",
]


@da.core.concatenate_lookup.register(SparseRows)  # type: ignore[untyped-decorator]
def _joined(blocks: list[SparseRows], axis: int = 0) -> SparseRows:
    """Blocks one below the other; dask joins the single block of each row of blocks, too."""
    return SparseRows.stack(blocks) if axis == 0 else blocks[0]


def _plain(rows: SparseRows) -> list[Any]:
    return [rows.data, rows.indices, rows.indptr, rows.n_features]


def _rebuilt(*parts: Any) -> SparseRows:
    """Unpickle rows by this module: a process that gets them knows by it how dask joins their blocks."""
    return SparseRows(*parts)


copyreg.pickle(SparseRows, lambda rows: (_rebuilt, tuple(_plain(rows))))
keep_kind("sparse", SparseRows, _plain, lambda parts: SparseRows(*parts))

#: Columns are numbered by 32 bits.
MOST_FEATURES = 2**31 - 1
#: Places of rows in a stored matrix are read so many at a time where all are looked at.
PLACES_AT_ONCE = 2**22


# -- what is sparse ----------------------------------------------------------------------------------------------------


def _is_sparse_array(X: Any) -> bool:
    return issparse(X) or isinstance(X, SparseRows) or type(X).__module__.partition(".")[0] == "sparse"


def is_sparse_input(X: Any) -> bool:
    """Whether `X` is sparse: a matrix in memory, or a dask array that says so of its chunks."""
    return _is_sparse_array(X._meta if isinstance(X, da.Array) else X)


def sparse_array(name: str, X: Any) -> Any:
    """Sparse input in the form in which it is used: a dask array as it is, a matrix in memory by compressed rows.

    Raises
    ------
    ValueError
        If what is not stored is not 0, or there are too many columns.
    """
    if not isinstance(X, da.Array) and X.ndim == 2:
        X = _by_rows(name, X)
    if len(X.shape) == 2 and X.shape[1] > MOST_FEATURES:
        raise ValueError(f"{name} must have at most {MOST_FEATURES} columns where it is sparse, got {X.shape[1]}")
    return X


def _by_rows(name: str, X: Any) -> Any:
    if not issparse(X):
        if getattr(X, "fill_value", 0) != 0:
            raise ValueError(f"{name} must be 0 where nothing is stored, got fill_value={X.fill_value}")
        X = X.to_scipy_sparse()
    return X if X.format == "csr" else X.tocsr()


# -- rows in memory ----------------------------------------------------------------------------------------------------


class _MatrixRows:
    """Rows of a matrix in this process's memory."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.shape, self.dtype = matrix.shape, matrix.dtype

    def read(self, start: int, stop: int) -> SparseRows:
        """Bring the rows from start to stop into the one form."""
        first, last = int(self.matrix.indptr[start]), int(self.matrix.indptr[stop])
        indptr = self.matrix.indptr[start : stop + 1] - first
        inside = slice(first, last)
        part = (self.matrix.data[inside], self.matrix.indices[inside], indptr)
        return SparseRows.of(csr_array(part, shape=(stop - start, self.shape[1]), copy=False))


@dataclass(frozen=True)
class Entries:
    """How many numbers of a row are stored, at most in the mean of a block.

    Attributes
    ----------
    find : callable
        Counts them; called when someone asks for it.
    """

    find: Callable[[], float]

    @cached_property
    def in_a_row(self) -> int:
        """Rounded up."""
        return int(np.ceil(self.find()))


def sparse_row_bytes(entries: Entries, dtype: np.dtype[Any]) -> int:
    """Bytes of a raw row of so many numbers, with their columns."""
    return entries.in_a_row * (dtype.itemsize + 4) + 8


def _densest(indptr: NDArray[Any], size: int) -> float:
    """Largest mean number of entries a row among blocks of `size` rows."""
    borders = np.append(np.arange(0, len(indptr) - 1, size), len(indptr) - 1)
    return float((np.diff(indptr[borders]) / np.diff(borders)).max(initial=0))


# -- groups of a store -------------------------------------------------------------------------------------------------


class CsrGroup:
    """Rows of a matrix by compressed rows in a Zarr store or HDF5 file, as AnnData writes it: data, indices, indptr.

    Parameters
    ----------
    data, indices, indptr : ZarrRows or Hdf5Rows
    shape : pair of int
    name : str
        For messages.
    """

    def __init__(self, data: Stored, indices: Stored, indptr: Stored, shape: tuple[int, int], name: str) -> None:
        self.data, self.indices, self.indptr = data, indices, indptr
        self.shape, self.dtype, self.name = shape, data.dtype, name

    @property
    def parts(self) -> tuple[Stored, Stored, Stored]:
        """What is stored."""
        return self.data, self.indices, self.indptr

    def read(self, start: int, stop: int) -> SparseRows:
        """Read the rows from start to stop; raises as `ZarrRows.read`."""
        indptr = self.indptr.read(start, stop + 1).astype(np.int64)
        first, last = int(indptr[0]), int(indptr[-1])
        good = first >= 0 and last <= self.data.shape[0] and (np.diff(indptr) >= 0).all()
        data, indices = (part.read(first, last) if good else part.read(0, 0) for part in (self.data, self.indices))
        if not good or (len(indices) and not 0 <= indices.min() <= indices.max() < self.shape[1]):
            raise UnreadableChunkError(
                f"rows {start} to {stop - 1} of {self.name!r} cannot be read: their places or columns are outside of "
                "the matrix; write it again, or take it from a copy"
            )
        return SparseRows.of(csr_array((data, indices, indptr - first), shape=(stop - start, self.shape[1])))

    def densest(self, size: int) -> float:
        """Largest mean number of entries a row among blocks of `size` rows."""
        step, n = max(size, PLACES_AT_ONCE // size * size), self.shape[0]
        pieces = (self.indptr.read(start, min(start + step, n) + 1) for start in range(0, n, step))
        return max(_densest(piece, size) for piece in pieces)

    def __reduce__(self) -> Any:
        return CsrGroup, (*self.parts, self.shape, self.name)


def group_behind(X: Any) -> Any:
    """The group of a matrix that was opened and not read, as ``adata.X`` of a backed object; None for anything else."""
    package = type(X).__module__.partition(".")[0]
    if package == "h5py":
        return X if is_sparse_group(X) else None
    return getattr(X, "group", None) if package == "anndata" and hasattr(X, "to_memory") else None


def is_sparse_group(group: Any) -> bool:
    """Whether a group says that it is a sparse matrix."""
    return getattr(group, "attrs", {}).get("encoding-type") in SPARSE and hasattr(group, "keys")


def is_csr(group: Any) -> bool:
    """Whether a group says that it is a matrix by compressed rows."""
    return is_sparse_group(group) and group.attrs["encoding-type"] == SPARSE[0]


def open_csr_group(name: str, group: Any) -> CsrGroup:
    """Open a matrix in a Zarr store or an HDF5 file.

    Raises
    ------
    ValueError
        If it is by compressed columns, or its arrays are not what one needs.
    """
    where = str(group.store_path) if isinstance(group, zarr.Group) else f"{group.file.filename}{group.name}"
    if not is_csr(group):
        raise ValueError(describe_sparse(where, group.attrs["encoding-type"]))
    given: Any = group.attrs.get("shape", ())
    shape = tuple(int(length) for length in given)
    arrays: list[Any] = [group.get(part) for part in CSR]
    if len(shape) != 2 or not all(getattr(array, "ndim", None) == 1 for array in arrays):
        raise ValueError(f"{name}: {where!r} must have the attribute shape and the arrays {', '.join(CSR)}")
    lengths = [array.shape[0] for array in arrays]
    if lengths[0] != lengths[1] or lengths[2] != shape[0] + 1:
        raise ValueError(f"{name}: {where!r} is a damaged matrix: shape {shape}, and arrays of {lengths} numbers")
    data, indices, indptr = (_stored_part(name, array) for array in arrays)
    return CsrGroup(data, indices, indptr, shape, where)


def _stored_part(name: str, array: Any) -> Stored:
    if not isinstance(array, zarr.Array):
        return cast(Stored, hdf5_rows(array))
    check_shareable(name, array)
    return ZarrRows(array, check_chunks(name, array))


# -- into blocks -------------------------------------------------------------------------------------------------------


def _meta(dtype: Any) -> SparseRows:
    return SparseRows(np.empty(0, dtype), np.empty(0), np.zeros(1), 0)


def read_sparse_rows(name: str, array: Any, size: int) -> tuple[da.Array, Reading, Entries]:
    """Lazy pieces of rows in memory, or of a stored matrix; the memory this takes; and how many numbers they have.

    Parameters
    ----------
    name : str
        The argument, for messages.
    array : SciPy CSR or CsrGroup
    size : int
        Rows of a block.
    """
    rows = size
    if isinstance(array, CsrGroup):
        source: Any = array
        entries, (chunk, *_) = Entries(lambda: array.densest(size)), array.data.chunks or (1,)
        mean = array.data.shape[0] / array.shape[0]
        rows = size * max(1, int(chunk // max(1.0, size * mean)))
        unit = int(min(rows, array.shape[0]) * mean * (array.dtype.itemsize + 12))
        buffers = 4 * chunk * (array.dtype.itemsize + array.indices.dtype.itemsize)
        n_units = -(-array.shape[0] // rows)
        reading = Reading(unit_bytes=unit if rows > size else 0, buffer_bytes=int(buffers), n_units=n_units)
    else:
        source, entries = _MatrixRows(array), Entries(lambda: _densest(array.indptr, size))
        reading = Reading(memory_bytes=array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)
        if not runs_in_process():
            return _sent_pieces(source, size), reading, entries
    chunks = da.core.normalize_chunks((rows, max(1, array.shape[1])), array.shape, dtype=array.dtype)
    meta = _meta(array.dtype)
    lazy = read_pieces(_read_piece, source, chunks, array.dtype, name="read", rows=rows, meta=meta)
    return lazy, reading, entries


def _read_piece(source: Any, rows: int, block_id: tuple[int, ...]) -> SparseRows:
    start = block_id[0] * rows
    rows_read: SparseRows = source.read(start, min(start + rows, source.shape[0]))
    return rows_read


def _sent_pieces(source: _MatrixRows, size: int) -> da.Array:
    """Pieces that travel to other processes inside the graph."""
    name, n = f"dc-memory-{uuid.uuid4().hex}", source.shape[0]
    chunks = da.core.normalize_chunks((size, max(1, source.shape[1])), source.shape, dtype=source.dtype)
    keys = [(name, number, 0) for number in range(len(chunks[0]))]
    graph = {key: DataNode(key, source.read(i * size, min((i + 1) * size, n))) for i, key in enumerate(keys)}
    return da.Array(HighLevelGraph.from_collections(name, graph), name, chunks, meta=_meta(source.dtype))


def known_sparse_rows(name: str, array: da.Array) -> tuple[da.Array, Entries]:
    """A dask array of sparse chunks as one of `SparseRows` of known lengths; and how many numbers they have.

    Lengths that are not known are counted, the numbers with them; else the numbers are when someone asks.
    """
    if array.numblocks[1] > 1:
        raise ValueError(
            f"{name} must have whole rows in each chunk where it is sparse, got {array.numblocks[1]} chunks a row; "
            "make the columns one chunk"
        )
    if np.isnan(array.shape[1]):
        raise ValueError(f"{name} must have a known number of features, got chunks {array.chunks}")
    if not any(np.isnan(length) for length in array.chunks[0]):
        declared = array.chunks[0]
        return _declared(name, array, array.chunks), Entries(lambda: _densest_chunk(_counted(array), declared))
    found = _counted(array)
    lengths = tuple(part["rows"] for part in found)
    logger.info("counted the rows of %d chunks of unknown length: %d rows", len(lengths), sum(lengths))
    return _declared(name, array, (lengths, array.chunks[1])), Entries(lambda: _densest_chunk(found, lengths))


def _declared(name: str, array: da.Array, chunks: Any) -> da.Array:
    return check_blocks(name, array, chunks, convert=_as_rows, meta=_meta(array.dtype))


def _counted(array: da.Array) -> list[dict[str, Any]]:
    """Rows and numbers of each chunk, by one pass over them."""
    return objects_of(map_to_objects(_count, array, name="dc-count"))


def _count(block: Any, number: int) -> dict[str, Any]:
    return {"rows": block.shape[0], "entries": block.n_entries if isinstance(block, SparseRows) else block.nnz}


def _densest_chunk(found: list[dict[str, Any]], lengths: tuple[int, ...]) -> float:
    return max((part["entries"] / length for part, length in zip(found, lengths, strict=True) if length), default=0.0)


def _as_rows(what: str, block: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> SparseRows:
    """A chunk in the one form, of the declared type; as `as_declared` for dense ones."""
    if not _is_sparse_array(block):
        raise ValueError(f"{what} is dense ({type(block).__name__}); it was declared as a sparse array of {dtype}")
    if tuple(block.shape) != tuple(shape):
        raise ValueError(f"{what} has shape {tuple(block.shape)}, and was declared with shape {shape}")
    if not np.can_cast(block.dtype, dtype, "safe"):
        raise ValueError(f"{what} has dtype {block.dtype}, and was declared with dtype {dtype}")
    return block.astype(dtype) if isinstance(block, SparseRows) else SparseRows.of(_by_rows(what, block), dtype)
