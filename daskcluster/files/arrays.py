"""Open Zarr arrays for reading, and create empty ones."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numcodecs
import numpy as np
import zarr
from numpy.typing import DTypeLike
from zarr.codecs import BloscCodec
from zarr.storage import LocalStore

from ..typing import PathInput
from .groups import format_at
from .nodes import describe_group, no_node, open_node
from .objects import ObjectPath, Place
from .places import place_at
from .record_last import Unfinished

__all__ = ["CHUNK_BYTES", "choose_chunk_rows", "create_array", "create_group", "open_rows", "zarr_place"]

#: Bounds of a chunk that this package chooses itself. Rows are a power of two, so a chunk is at least half of
#: one bound. The bound on rows keeps enough chunks for all cores where rows are short.
CHUNK_BYTES = 32 * 2**20
CHUNK_ROWS = 2**20


# -- reading -------------------------------------------------------------------------------------------------


def open_rows(source: zarr.Array[Any] | zarr.Group | PathInput, *, n_axes: int = 2, sparse: bool = False) -> Any:
    """Open a Zarr array for reading.

    Parameters
    ----------
    source : zarr.Array or str or os.PathLike
        An open array; or a path or URL that zarr accepts, or the path of a zip file of a store.
        An array inside a group is named by its path: ``"store.zarr/X"``, ``"store.zarr.zip/X"``. "~" is the home
        folder.
    n_axes : int
        Axes of the array that is looked for; where the path is a group, the message names such an array first.
    sparse : bool
        Give a group that is a matrix by compressed rows as it is.

    Returns
    -------
    zarr.Array, or zarr.Group of a sparse matrix
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
        if sparse and _is_csr(source):
            return source
        raise ValueError(describe_group(str(source.store_path), source, n_axes))
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"expected a zarr.Array or the path of one, got {type(source).__name__}")
    name = os.fspath(source)
    try:
        node = open_node(name)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise no_node(name, error) from error
    if isinstance(node, zarr.Group) and not (sparse and _is_csr(node)):
        raise ValueError(describe_group(name, node, n_axes))
    return node


def _is_csr(group: zarr.Group) -> bool:
    return group.attrs.get("encoding-type") == "csr_matrix"


def _with_absolute_path(array: zarr.Array[Any]) -> zarr.Array[Any]:
    """The same array, opened anew under its absolute path when it was opened under a relative one."""
    store = array.store
    if not isinstance(store, LocalStore) or store.root.is_absolute():
        return array
    absolute = LocalStore(store.root.absolute(), read_only=True)
    return zarr.open_array(absolute, path=array.path, mode="r", zarr_format=array.metadata.zarr_format)


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
    path: PathInput | Unfinished,
    shape: Sequence[int],
    dtype: DTypeLike,
    *,
    chunks: int | Sequence[int] | None = None,
    shards: int | Sequence[int] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> zarr.Array[Any]:
    """Create an empty Zarr array of numbers.

    In a Zarr group it has the group's format, elsewhere format 3.

    Parameters
    ----------
    path : str, os.PathLike or Unfinished
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

    Raises
    ------
    ValueError
        If the dtype is not a number's, chunks or shards do not fit, or shards are wanted in a group of format 2.
    """
    dtype = np.dtype(dtype)
    if dtype.kind not in "biuf":
        raise ValueError(f"dtype: expected booleans, integers or floating numbers, got {dtype}")
    lengths = tuple(int(length) for length in shape)
    chunk_lengths, shard_lengths = _storage_grid(lengths, dtype, chunks, shards)
    place = path if isinstance(path, Unfinished) else place_at(path)
    zarr_format = format_at(place)
    if zarr_format == 2 and shard_lengths is not None:
        raise ValueError(f"shards: {str(place.parent)!r} is a group of Zarr format 2, which has none")
    # Byte shuffling serves both kinds of array stored here: features and labels. On normal float32 features it is as
    # small as zarr's default (zstd alone) and is read faster; labels take 40 % less.
    compressor: Any = BloscCodec(cname="zstd", clevel=1, shuffle="shuffle")
    if zarr_format == 2:
        compressor = numcodecs.Blosc(cname="zstd", clevel=1, shuffle=numcodecs.Blosc.SHUFFLE)
    return zarr.create_array(
        zarr_place(place),
        shape=lengths,
        dtype=dtype,
        chunks=chunk_lengths,
        shards=shard_lengths,
        zarr_format=zarr_format,
        compressors=compressor,
        # xarray takes the fill value of format 2 for "missing", and 0 is a label.
        fill_value=0 if zarr_format == 3 else None,
        # Chunks of zeros are written too, so that one that is not there has been lost.
        config={"write_empty_chunks": True},
        attributes=_as_json(attributes or {}),
        chunk_key_encoding=place.chunk_keys(len(lengths), zarr_format) if isinstance(place, Unfinished) else None,
    )


def create_group(path: PathInput | Unfinished, attributes: Mapping[str, Any] | None = None) -> zarr.Group:
    """Create an empty Zarr group of format 3, as `create_array` does an array; its document is written once."""
    place = path if isinstance(path, Unfinished) else place_at(path)
    return zarr.create_group(zarr_place(place), attributes=_as_json(attributes or {}))


def zarr_place(place: Place) -> Any:
    """A place as zarr takes it."""
    if isinstance(place, Unfinished):
        return place.store_path()
    return place.store() if isinstance(place, ObjectPath) else str(place)


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
    elif isinstance(value, str) or not all(isinstance(length, int | np.integer) for length in value):
        raise TypeError(f"{argument}: expected one integer, or one for every axis, got {value!r}")
    else:
        lengths = tuple(int(length) for length in value)
    if len(lengths) != len(shape) or min(lengths, default=1) < 1:
        raise ValueError(f"{argument}: expected {len(shape)} positive lengths for an array {shape}, got {value!r}")
    return lengths


def _as_json(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of attributes made of plain JSON values; refuse what JSON cannot hold, NaN included."""
    if not isinstance(attributes, Mapping):
        raise TypeError(f"attributes: expected a mapping, got {attributes!r:.100}")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(attributes), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"attributes: expected JSON values: {error}") from error
    return plain
