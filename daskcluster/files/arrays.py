"""Open Zarr arrays for reading, and create empty ones."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import DTypeLike
from zarr.codecs import BloscCodec
from zarr.storage import LocalStore

from ..typing import PathInput

__all__ = ["CHUNK_BYTES", "choose_chunk_rows", "create_array", "has_zarr_metadata", "open_rows"]

#: Bounds of a chunk that this package chooses itself. Rows are a power of two, so a chunk is at least half of
#: one bound. The bound on rows keeps enough chunks for all cores where rows are short.
CHUNK_BYTES = 32 * 2**20
CHUNK_ROWS = 2**20


# -- reading -------------------------------------------------------------------------------------------------


def open_rows(source: zarr.Array[Any] | zarr.Group | PathInput) -> zarr.Array[Any]:
    """Open a Zarr array for reading.

    Parameters
    ----------
    source : zarr.Array or str or os.PathLike
        An open array, or a path or URL that zarr accepts. An array inside a group is named by its path:
        ``"store.zarr/X"``.

    Returns
    -------
    zarr.Array
        Read-only when it was opened here. Its path is absolute: processes that work may have been started in another
        folder.

    Raises
    ------
    TypeError
        If `source` is neither an array nor a path.
    FileNotFoundError
        If nothing exists under the path.
    ValueError
        If the path holds something else: a group (the message lists its arrays), a saved model, a folder or a
        file.
    """
    if isinstance(source, zarr.Array):
        return _with_absolute_path(source)
    if isinstance(source, zarr.Group):
        raise ValueError(_describe_group(str(source.store_path), source))
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"expected a zarr.Array or the path of one, got {type(source).__name__}")
    name = os.fspath(source)
    try:
        node = zarr.open(name if "::" in name or "://" in name else os.path.abspath(name), mode="r")
    except (OSError, ValueError, KeyError) as error:
        raise _nothing_to_open(name, error) from error
    if isinstance(node, zarr.Group):
        raise ValueError(_describe_group(name, node))
    assert isinstance(node, zarr.Array)
    return node


def _with_absolute_path(array: zarr.Array[Any]) -> zarr.Array[Any]:
    """The same array, opened anew under its absolute path when it was opened under a relative one."""
    store = array.store
    if not isinstance(store, LocalStore) or store.root.is_absolute():
        return array
    absolute = LocalStore(store.root.absolute(), read_only=True)
    return zarr.open_array(absolute, path=array.path, mode="r", zarr_format=array.metadata.zarr_format)


def _nothing_to_open(name: str, error: Exception) -> Exception:
    """Return the exception that tells what stands under a path that is no Zarr node."""
    if "://" in name:
        return ValueError(f"no Zarr array at {name!r}: {error}")
    path = Path(name)
    if path.is_dir():
        if has_zarr_metadata(path):
            return ValueError(f"{name!r} has Zarr metadata that cannot be read: {error}")
        return ValueError(f"{name!r} is a folder, not a Zarr array: it has no Zarr metadata")
    if path.exists():
        return ValueError(
            f"{name!r} is a file, not a Zarr array; `daskcluster convert` reads .npy, .npz, .csv and .parquet"
        )
    return FileNotFoundError(f"no Zarr array at {name!r}: nothing exists there")


def _describe_group(name: str, group: zarr.Group) -> str:
    """Say that a path is a group, and which arrays it holds."""
    ours = group.attrs.get("daskcluster")
    if isinstance(ours, Mapping) and ours.get("kind") == "model":
        return f"{name!r} is a saved model ({ours.get('class')}), not a Zarr array; open it with load_model"
    arrays = [(key, node.shape) for key, node in group.members(max_depth=None) if isinstance(node, zarr.Array)]
    if not arrays:
        return f"{name!r} is an empty Zarr group, not a Zarr array"
    arrays.sort()
    listed = ", ".join(f"{key} {shape}" for key, shape in arrays[:8])
    if len(arrays) > 8:
        listed += f" and {len(arrays) - 8} more"
    example = f"{name.rstrip('/')}/{arrays[0][0]}"
    return f"{name!r} is a Zarr group, not an array; it holds {listed}. Name one of them, such as {example!r}"


def has_zarr_metadata(path: Path) -> bool:
    """Tell whether a folder is a Zarr array or group, readable or not."""
    return any((path / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup"))


# -- creating ------------------------------------------------------------------------------------------------


def choose_chunk_rows(row_bytes: int, n_rows: int | None = None) -> int:
    """Choose how many rows a stored chunk has: a power of two that takes 16 to 32 MiB, or 2**20 short rows.

    Parameters
    ----------
    row_bytes : int
        Size of one row; larger than 32 MiB gives single rows.
    n_rows : int, optional
        Rows of the array; a chunk never has more.

    Returns
    -------
    int
        At least 1.
    """
    rows = min(max(1, CHUNK_BYTES // max(1, row_bytes)), CHUNK_ROWS)
    rows = 1 << (rows.bit_length() - 1)
    return rows if n_rows is None else max(1, min(rows, n_rows))


def create_array(
    path: PathInput,
    shape: Sequence[int],
    dtype: DTypeLike,
    *,
    chunks: int | Sequence[int] | None = None,
    shards: int | Sequence[int] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> zarr.Array[Any]:
    """Create an empty Zarr array (format 3) of numbers.

    Parameters
    ----------
    path : str or os.PathLike
        Where; nothing may exist there. To appear complete or not at all, create it inside `atomic_path`.
    shape : sequence of int
        Lengths, rows first; a length may be 0.
    dtype : dtype-like
        A boolean, integer or floating type.
    chunks : int or sequence of int, optional
        Rows of a chunk, or its length on every axis. By default whole rows, 16 to 32 MiB
        (`choose_chunk_rows`).
    shards : int or sequence of int, optional
        Rows of a shard, or its length on every axis: a multiple of `chunks`, which must be given then. A
        shard is one file of many chunks, for file systems that suffer from many small files. By default a
        file is a chunk.
    attributes : mapping, optional
        JSON values stored with the array.

    Returns
    -------
    zarr.Array
        Writable, filled with zeros.
    """
    dtype = np.dtype(dtype)
    if dtype.kind not in "biuf":
        raise ValueError(f"dtype: expected booleans, integers or floating numbers, got {dtype}")
    lengths = tuple(int(length) for length in shape)
    chunk_lengths, shard_lengths = _storage_grid(lengths, dtype, chunks, shards)
    return zarr.create_array(
        os.fspath(path),
        shape=lengths,
        dtype=dtype,
        chunks=chunk_lengths,
        shards=shard_lengths,
        # Byte shuffling serves both kinds of array stored here: features and labels. On normal float32
        # features it is as small as zarr's default (zstd alone) and is read faster; labels take 40 % less.
        compressors=BloscCodec(cname="zstd", clevel=1, shuffle="shuffle"),
        fill_value=0,
        # Chunks of zeros are written too, so that one that is not there has been lost.
        config={"write_empty_chunks": True},
        attributes=_as_json(attributes or {}),
    )


def _storage_grid(
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    chunks: int | Sequence[int] | None,
    shards: int | Sequence[int] | None,
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return the lengths of chunks and shards on every axis, cut to the array where they are longer."""
    if not shape:
        return (), None
    if chunks is None:
        if shards is not None:
            raise ValueError("shards: name the chunks inside a shard too, with chunks=")
        row_bytes = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
        chunks = choose_chunk_rows(row_bytes)
    wanted = _lengths("chunks", chunks, shape)
    chunk_lengths = tuple(min(length, max(1, size)) for length, size in zip(wanted, shape, strict=True))
    if shards is None:
        return chunk_lengths, None
    shard_lengths = _lengths("shards", shards, shape)
    for shard, chunk in zip(shard_lengths, wanted, strict=True):
        if shard % chunk:
            raise ValueError(f"shards: expected multiples of the chunks {wanted}, got {shard_lengths}")
    # A shard longer than the array is cut to the last chunk that the array touches.
    return chunk_lengths, tuple(
        min(shard, -(-max(1, size) // chunk) * chunk)
        for shard, chunk, size in zip(shard_lengths, chunk_lengths, shape, strict=True)
    )


def _lengths(argument: str, value: int | Sequence[int], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return one length for each axis; a single number counts rows and takes the other axes whole."""
    if isinstance(value, int | np.integer):
        lengths = (int(value), *(max(1, size) for size in shape[1:]))
    else:
        lengths = tuple(int(length) for length in value)
    if len(lengths) != len(shape) or min(lengths, default=1) < 1:
        raise ValueError(f"{argument}: expected {len(shape)} positive lengths for an array {shape}, got {value!r}")
    return lengths


def _as_json(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of attributes made of plain JSON values; refuse what JSON cannot hold, NaN included."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(attributes), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"attributes: expected JSON values: {error}") from error
    return plain
