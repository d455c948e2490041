"""Store dask arrays as Zarr arrays, aligned to their chunks and atomically.

Tasks that write parts of one Zarr chunk at the same time lose rows without an error, so `write_array` gives each
stored chunk (each shard, when sharded) to exactly one task.

Nothing here names a scheduler; tasks run in threads, in processes and on a cluster that shares the file system, and
each process proves that it sees the folder before it writes there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import dask.array as da
import numpy as np
import zarr
from numpy.typing import NDArray

from ..files.arrays import CHUNK_BYTES, choose_chunk_rows, create_array, open_rows
from ..files.atomic import atomic_path
from ..files.places import check_outside, place_at
from ..runtime.blocks import as_declared, check_blocks
from ..runtime.execution import compute
from ..runtime.pieces import recut
from ..runtime.visibility import Seen
from ..typing import PathInput

__all__ = ["write_array"]

#: Chunks of a dask array that are smaller are joined when it is stored.
LEAST_CHUNK_BYTES = 4 * 2**20


def write_array(
    array: da.Array,
    path: PathInput,
    *,
    chunks: int | Sequence[int] | None = None,
    shards: int | Sequence[int] | None = None,
    overwrite: bool = False,
    attributes: Mapping[str, Any] | None = None,
) -> zarr.Array[Any]:
    """Compute a dask array and store it as a Zarr array, aligned and atomically.

    Parameters
    ----------
    array : da.Array of one or two dimensions
        Any chunking, empty chunks included; the lengths must be known.
    path : str or os.PathLike
        Where: a path on a file system that all workers see, or a URL that they reach. See `atomic_path`.
    chunks, shards : int or sequence of int, optional
        As in `create_array`. By default the chunks of `array` where they are regular and neither tiny nor
        huge (many are stored as one below 4 MiB), else whole rows of 16 to 32 MiB. Where only the rows of a shard are
        said, they are rounded up to whole chunks.
    overwrite : bool
        Replace an existing array, and nothing else: no group, and no saved model. The old one stays until the new one
        is complete, so `array` may read from it.
    attributes : mapping, optional
        JSON values stored with the array.

    Returns
    -------
    zarr.Array
        The stored array, opened read-only.

    Raises
    ------
    FileExistsError
        If `path` exists and `overwrite` is false, or is no array, or lies inside an array, a saved model or the storage
        of a fit; nothing has been computed then.
    DiskFullError
        If the disk is full; nothing of the output is left.
    ValueError
        If the lengths of the chunks are unknown, or the array is not made of numbers.

    Notes
    -----
    One pass, on the active dask scheduler. One task writes one whole stored chunk (shard), so it holds one of
    them and the chunks of `array` that overlap it. Where chunks of `array` end elsewhere, their parts are
    sent to the task that needs them; all-to-all shuffles are never used.
    """
    array = check_blocks("the array to store", _check_writable(array))
    if chunks is None:
        chunks = _natural_chunk_rows(array)
        if isinstance(shards, int):
            chunks, shards = _sharded(array, chunks, shards)
    check_outside(place_at(path), os.fspath(path))
    with atomic_path(path, overwrite=overwrite, kind="array", needed_bytes=array.nbytes) as temporary:
        target = create_array(temporary, array.shape, array.dtype, chunks=chunks, shards=shards, attributes=attributes)
        if array.size:
            unit = target.shards or target.chunks
            aligned = recut(array, da.core.normalize_chunks(unit, array.shape, dtype=array.dtype))
            stored = aligned.map_blocks(
                _write_block,
                target=Seen(target),
                unit=unit,
                lengths=array.shape,
                token="dc-write",
                chunks=tuple((1,) * n for n in aligned.numblocks),
                dtype=np.int64,
                meta=np.empty((0,) * array.ndim, dtype=np.int64),
            )
            (counts,) = compute(stored)
            if int(counts.sum()) != array.size:
                raise RuntimeError(f"stored {int(counts.sum())} of {array.size} values in {os.fspath(path)!r}")
    return open_rows(path)


def _write_block(
    block: NDArray[Any], target: Seen, unit: tuple[int, ...], lengths: tuple[int, ...], block_id: tuple[int, ...]
) -> NDArray[np.int64]:
    """Write one block, which is one whole stored chunk or shard, and return how many values it had."""
    region = tuple(
        slice(index * length, min((index + 1) * length, size))
        for index, length, size in zip(block_id, unit, lengths, strict=True)
    )
    shape = tuple(part.stop - part.start for part in region)
    # The folder has a random name that the caller's process has just made: another one that finds it there sees the
    # same file system.
    target.prove()
    target.array[region] = as_declared(f"chunk {block_id} of what is stored", block, shape, target.array.dtype)
    return np.full((1,) * len(shape), np.prod(shape), dtype=np.int64)


def _check_writable(array: da.Array) -> da.Array:
    if not isinstance(array, da.Array):
        raise TypeError(f"array: expected a dask array, got {type(array).__name__}")
    if array.ndim not in (1, 2):
        raise ValueError(f"array: expected one or two dimensions, got {array.ndim}")
    if any(np.isnan(size) for size in array.shape):
        raise ValueError("array: expected known chunk lengths; call array.compute_chunk_sizes() first")
    return array


def _sharded(array: da.Array, chunk_rows: int | None, shard_rows: int) -> tuple[int, int]:
    """Rows of a chunk and of a shard, which holds whole chunks: at least as many as are wanted."""
    if shard_rows < 1:
        raise ValueError(f"shards: expected a positive number of rows, got {shard_rows}")
    row_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    chunk_rows = min(chunk_rows or choose_chunk_rows(row_bytes), shard_rows)
    return chunk_rows, -(-shard_rows // chunk_rows) * chunk_rows


def _natural_chunk_rows(array: da.Array) -> int | None:
    """Return rows of a stored chunk that keeps the chunks of `array` whole, or None where these do not serve.

    Whole multiples of the array's own chunks are written without splitting any of them.
    """
    sizes = [size for size in array.chunks[0] if size]
    regular = len(set(sizes[:-1])) <= 1 and bool(sizes) and sizes[-1] <= sizes[0]
    row_bytes = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    if not regular or not 0 < sizes[0] * row_bytes <= 2 * CHUNK_BYTES:
        return None
    several: int = -(-LEAST_CHUNK_BYTES // (sizes[0] * row_bytes))
    return int(sizes[0]) * several
