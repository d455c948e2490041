"""Lazy pieces of what is stored or lies in memory, and the memory that reading them takes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..runtime.blocks import as_declared, check_blocks
from ..runtime.execution import map_to_objects, objects_of, runs_in_process
from ..runtime.pieces import array_pieces, read_pieces
from ..runtime.visibility import Seen, check_shareable
from .graphs import bytes_behind, bytes_inside, cached_bytes, stores_of
from .missing import check_chunks
from .sources import FileRows, MemoryRows, Stored

__all__ = ["Reading", "cut", "cut_memory", "known_rows", "reading_of_chunks", "reading_of_store"]

logger = logging.getLogger("daskcluster")

#: Chunks that zarr decodes beside each other for one read (its setting ``async.concurrency``).
DECODED_AT_ONCE = 10
#: Copies of a dataframe's partition that may be there while it is made: of a parquet file what Arrow decodes, its
#: table, the dataframe made of it, and two selections of columns. What is given back stays with Arrow for a while.
FRAME_COPIES = 5


@dataclass(frozen=True)
class Reading:
    """Memory that input takes on its way into row blocks, for the forecast.

    Attributes
    ----------
    memory_bytes : int
        Rows that are in this process's memory; those inside a graph are found by `known`.
    unit_bytes : int
        What one task reads where that is more than a block, and stays until its blocks are used; else 0.
    buffer_bytes : int
        Chunks that are decoded for one read.
    n_units : int
        Such reads.
    cached_bytes : int
        What a process keeps of files beside that.
    made_of : dask array, optional
        Its graph tells what a chunk is made from; only looked at for a forecast.
    row_bytes : callable, optional
        Bytes of a row of its chunks, where they are sparse: counted for a forecast.
    """

    memory_bytes: int = 0
    unit_bytes: int = 0
    buffer_bytes: int = 0
    n_units: int = 1
    cached_bytes: int = 0
    made_of: da.Array | None = None
    row_bytes: Callable[[], int] | None = None

    def known(self) -> Reading:
        """The same without the graph, which has been looked at."""
        if self.made_of is None:
            return self
        if self.row_bytes is not None:
            unit_bytes = self.row_bytes() * int(max(self.made_of.chunks[0]))
            return replace(self, unit_bytes=unit_bytes, buffer_bytes=unit_bytes, made_of=None)
        behind = bytes_behind(self.made_of)
        more = behind if behind > _longest_bytes(self.made_of) else 0
        return replace(
            self,
            memory_bytes=self.memory_bytes + bytes_inside(self.made_of),
            unit_bytes=max(self.unit_bytes, more),
            cached_bytes=cached_bytes(self.made_of),
            made_of=None,
        )

    def peak_bytes(self, threads: int) -> int:
        """Bytes at a time with so many tasks beside each other: one more unit waits until all of it is used."""
        known = self.known()
        units, buffers = min(threads + 1, self.n_units), min(threads, self.n_units)
        return units * known.unit_bytes + buffers * known.buffer_bytes + known.cached_bytes


def cut(name: str, stored: Stored, rows: int) -> da.Array:
    """Lazy pieces of so many rows.

    Parameters
    ----------
    name : str
        The argument, for messages.
    stored : Stored
    rows : int

    Notes
    -----
    ``da.from_array`` would copy an array in memory, and name tasks as nobody knows them.
    """
    shape = stored.shape
    chunks = da.core.normalize_chunks((rows, *(max(1, size) for size in shape[1:])), shape, dtype=stored.dtype)
    return read_pieces(_read_piece, stored, chunks, stored.dtype, name="read", argument=name, rows=rows)


def _read_piece(source: Stored, argument: str, rows: int, block_id: tuple[int, ...]) -> NDArray[Any]:
    start = block_id[0] * rows
    stop = min(start + rows, source.shape[0])
    what = f"what was read of {argument}, rows {start} to {stop - 1},"
    return as_declared(what, source.read(start, stop), (stop - start, *source.shape[1:]), source.dtype)


def cut_memory(name: str, array: NDArray[Any], rows: int) -> da.Array:
    """Blocks of an array in memory: views of it where tasks run in this process, else parts that travel to them."""
    if runs_in_process():
        return cut(name, MemoryRows(array), rows)
    return array_pieces(array, (rows, *array.shape[1:]), "memory")


def reading_of_store(stored: Stored, size: int) -> tuple[int, Reading]:
    """Rows that one task reads for blocks of `size` rows, and what that takes.

    Straight into canonical blocks, or whole chunks first when those are much larger. Shards are read by the chunks
    inside them.
    """
    n_samples, n_features = stored.shape
    row_bytes = n_features * stored.dtype.itemsize
    if stored.chunks is None:
        span = stored.strides[0] if isinstance(stored, FileRows) else row_bytes
        return size, Reading(buffer_bytes=size * max(0, span - row_bytes), n_units=-(-n_samples // size))
    stored_rows, stored_columns = stored.chunks
    rows = size if stored_rows <= 2 * size else stored_rows
    aligned = rows % stored_rows == 0 or stored_rows % rows == 0
    touched = max(1, rows // stored_rows + (0 if aligned else 2)) * -(-n_features // stored_columns)
    decoded = min(touched, DECODED_AT_ONCE) * stored_rows * stored_columns * stored.dtype.itemsize
    return rows, Reading(
        unit_bytes=0 if rows == size else min(rows, n_samples) * row_bytes,
        # As it is stored, and decoded.
        buffer_bytes=2 * decoded,
        n_units=-(-n_samples // rows),
    )


def reading_of_chunks(
    array: da.Array, size: int, row_bytes: Callable[[], int] | None = None, frame_row_bytes: int = 0
) -> Reading:
    """Chunks of a dask array that are larger than blocks stay until all their blocks are used; made by two copies.

    Those of a dataframe are made by more, see `FRAME_COPIES`.
    """
    made = FRAME_COPIES * frame_row_bytes * int(max(array.chunks[0]))
    reading = Reading(n_units=array.numblocks[0], made_of=array, row_bytes=row_bytes, buffer_bytes=made)
    if row_bytes is not None:
        return reading
    if max(array.chunks[0]) <= size and array.numblocks[1] == 1:
        return reading
    unit_bytes = _longest_bytes(array)
    return replace(reading, unit_bytes=unit_bytes, buffer_bytes=max(made, unit_bytes))


def _longest_bytes(array: da.Array) -> int:
    """Bytes of the longest row chunk of an array (n, d)."""
    return int(max(array.chunks[0])) * array.shape[1] * array.dtype.itemsize


def known_rows(name: str, array: da.Array) -> da.Array:
    """The same array with known chunk lengths, counted where they are not, to which its tasks hold every block.

    Of stores from which it was made chunks are counted, and its tasks prove that they see them.
    """
    stores = stores_of(array)
    for store in stores:
        check_shareable(name, store)
        check_chunks(name, store)
    seen = tuple(Seen(store, content=True) for store in stores)
    if not any(np.isnan(length) for axis in array.chunks for length in axis):
        return check_blocks(name, array, seen=seen)
    if array.ndim > 1 and np.isnan(array.shape[1]):
        raise ValueError(f"{name} must have a known number of features, got chunks {array.chunks}")
    first = array.blocks[:, 0] if array.ndim > 1 and array.numblocks[1] > 1 else array
    lengths = tuple(found["rows"] for found in objects_of(map_to_objects(_length, first, name="dc-count")))
    logger.info("counted the rows of %d chunks of unknown length: %d rows", len(lengths), sum(lengths))
    return check_blocks(name, array, (lengths, *array.chunks[1:]), seen)


def _length(block: NDArray[Any], number: int) -> dict[str, Any]:
    return {"rows": len(block)}
