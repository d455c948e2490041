"""Which chunks of a Zarr array are in its store: asked of the store, without reading them.

Zarr allows a chunk to be missing and reads the fill value there, so a lost file looks like data.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore, MemoryStore

from .urls import reaching, url_of

__all__ = [
    "absent_chunks",
    "absent_parts",
    "are_there",
    "chunk_key",
    "content_mark",
    "describe_store",
    "file_mark",
    "fill_value",
    "local_file",
    "local_folder",
    "stored_unit",
]

Place: TypeAlias = tuple[int, ...]
#: In the index of a shard: this chunk is not there.
_NOTHING = 2**64 - 1
#: Bytes at each end of a file or object that tell its content from another one's.
_MARK_BYTES = 4096
#: Questions to a store that are under way together; each is a small request.
_AT_ONCE = 64


def stored_unit(array: zarr.Array[Any]) -> tuple[int, ...]:
    """Lengths of what is one file or object: a shard, or a chunk."""
    return tuple(max(1, length) for length in array.shards or array.chunks)


def fill_value(array: zarr.Array[Any]) -> Any:
    """What missing chunks are read as."""
    return array.dtype.type(0) if array.fill_value is None else array.fill_value


def chunk_key(array: zarr.Array[Any], place: Place) -> str:
    """Name of a stored unit inside the array, such as ``c/3/0``."""
    return array.metadata.encode_chunk_key(place)


def describe_store(array: zarr.Array[Any]) -> str:
    """Where an array is, as a user would write it."""
    url = url_of(array.store)
    if url is None and " object at 0x" in str(array.store):  # a class that does not say what it holds
        url = type(array.store).__name__
    return local_file(array, "") or (str(array.store_path) if url is None else f"{url}/{array.path}".rstrip("/"))


def local_file(array: zarr.Array[Any], key: str) -> str | None:
    """Path of something in the array's folder; None where its store is no folder."""
    store = array.store
    if not isinstance(store, LocalStore):
        return None
    return os.path.join(store.root, *filter(None, (array.path, key)))


def local_folder(array: zarr.Array[Any]) -> str | None:
    """Folder of an array on a file system, also where it was opened through fsspec as dask does; else None."""
    folder = local_file(array, "")
    if folder is not None or not isinstance(array.store, FsspecStore):
        return folder
    files = getattr(array.store.fs, "sync_fs", array.store.fs)
    protocol = getattr(files, "protocol", ())
    if "file" not in ((protocol,) if isinstance(protocol, str) else tuple(protocol)):
        return None
    return os.path.join("/", array.store.path, *filter(None, (array.path,)))


def are_there(array: zarr.Array[Any], places: Sequence[Place]) -> list[bool]:
    """Whether the store has the units at these places; what is empty, as a full disk leaves it, holds none."""
    keys = [chunk_key(array, place) for place in places]
    if isinstance(array.store, LocalStore):  # faster without zarr's threads
        return [_file_size(str(local_file(array, key))) > 0 for key in keys]
    return _ask(array, (partial(_begins, array, key) for key in keys))


def _may_be_there(array: zarr.Array[Any], places: Sequence[Place]) -> list[bool]:
    keys = (chunk_key(array, place) for place in places)
    return _ask(array, (partial(_is_not_missing, array, key) for key in keys))


async def _is_not_missing(array: zarr.Array[Any], key: str) -> bool:
    try:
        return await _begins(array, key)
    except PermissionError:
        return True


def _file_size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


async def _begins(array: zarr.Array[Any], key: str) -> bool:
    """Whether a unit has a first byte. Nothing less is asked for: what tells a size may look into a listing."""
    first = await _part(array, key, RangeByteRequest(0, 1))
    return first is not None and len(first) > 0


def content_mark(array: zarr.Array[Any]) -> tuple[str | None, ...]:
    """Digests of the ends of the first and the last stored unit, by which a copy with other content is told.

    A few kilobytes are read. None stands for a unit that is not there.
    """
    grid = [-(-size // length) for size, length in zip(array.shape, stored_unit(array), strict=True)]
    if 0 in grid:
        return ()
    keys = [chunk_key(array, place) for place in ((0,) * len(grid), tuple(count - 1 for count in grid))]
    if isinstance(array.store, LocalStore):
        return tuple(file_mark(str(local_file(array, key))) for key in keys)
    parts = [RangeByteRequest(0, _MARK_BYTES), SuffixByteRequest(_MARK_BYTES)]
    ends = _ask(array, (partial(_part, array, key, part) for key in keys for part in parts))
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return tuple(None if None in pair else _mark(*(end.to_bytes() for end in pair)) for pair in pairs)


def file_mark(path: str) -> str | None:
    """Digest of both ends of a file; None where it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            first = file.read(_MARK_BYTES)
            file.seek(max(0, os.fstat(file.fileno()).st_size - _MARK_BYTES))
            return _mark(first, file.read(_MARK_BYTES))
    except OSError:
        return None


def _mark(first: bytes, last: bytes) -> str:
    return hashlib.blake2b(first + last, digest_size=16).hexdigest()


def absent_chunks(array: zarr.Array[Any]) -> NDArray[np.bool_] | None:
    """Which units are not in the store.

    Returns
    -------
    bool array over the grid of units, or None when the store cannot tell.

    Notes
    -----
    Listings of object stores may be old, and not everybody who may read may list. So a unit that is not listed is asked
    for by its name before it counts as absent; one that is listed and not there shows when it is read. Where services
    answer "denied" they do not tell whether it is there: reading it will.
    """
    grid = tuple(-(-size // length) for size, length in zip(array.shape, stored_unit(array), strict=True))
    places = list(np.ndindex(grid))
    if isinstance(array.store, LocalStore):  # looking each file up is faster than walking the folders
        found = [os.path.isfile(str(local_file(array, chunk_key(array, place)))) for place in places]
        return ~np.array(found, bool).reshape(grid)
    if not array.store.supports_listing:
        return None
    keys = _listed(array)
    there = np.array([f"{array.path}/{chunk_key(array, place)}".lstrip("/") in keys for place in places], bool)
    unlisted = np.flatnonzero(~there)
    if len(unlisted) and not isinstance(array.store, MemoryStore):
        there[unlisted] = _may_be_there(array, [places[number] for number in unlisted])
    return ~there.reshape(grid)


def absent_parts(array: zarr.Array[Any], absent: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which chunks are missing, those inside shards that are there included.

    Parameters
    ----------
    array : zarr.Array
    absent : bool array
        As `absent_chunks` gives it.

    Returns
    -------
    bool array over the grid of chunks; `absent` itself when the array has no shards, or shards of a rare kind whose
    index only zarr reads.
    """
    codec = _plain_sharding(array)
    if codec is None:
        return absent
    inner: tuple[int, ...] = tuple(s // c for s, c in zip(stored_unit(array), array.chunks, strict=True))
    missing: Any = absent
    for axis, count in enumerate(inner):
        missing = missing.repeat(count, axis)
    size = 16 * int(np.prod(inner)) + 4  # (offset, length) of each chunk, and a checksum
    at_start = codec.index_location.value == "start"
    part = RangeByteRequest(0, size) if at_start else SuffixByteRequest(size)
    places = [tuple(map(int, place)) for place in np.argwhere(~absent)]

    raws = _ask(array, (partial(_part, array, chunk_key(array, place), part) for place in places))
    for place, raw in zip(places, raws, strict=True):
        content = b"" if raw is None else raw.to_bytes()
        if len(content) < size:
            continue  # cut off: reading it will say so
        index: Any = np.frombuffer(content[:size], "<u8", count=2 * int(np.prod(inner))).reshape(*inner, 2)
        region = tuple(slice(k * count, (k + 1) * count) for k, count in zip(place, inner, strict=True))
        missing[region] = (index == _NOTHING).all(axis=-1)
    lengths = (-(-size // length) for size, length in zip(array.shape, array.chunks, strict=True))
    return missing[tuple(slice(length) for length in lengths)]  # a last shard has places behind the array's end


def _plain_sharding(array: zarr.Array[Any]) -> ShardingCodec | None:
    """The sharding of an array whose index is written as zarr does it by default."""
    codecs: tuple[Any, ...] = getattr(array.metadata, "codecs", ())
    if len(codecs) != 1 or not isinstance(codecs[0], ShardingCodec):
        return None
    written = [codec.to_dict() for codec in codecs[0].index_codecs]
    return codecs[0] if written == [BytesCodec(endian="little").to_dict(), Crc32cCodec().to_dict()] else None


async def _part(array: zarr.Array[Any], key: str, part: Any) -> Any:
    """Some bytes of a unit, fewer where it is shorter; None where it is not there."""
    place, prototype = array.store_path / key, default_buffer_prototype()
    try:
        return await place.get(prototype, byte_range=part)
    except Exception as error:
        if "range" not in str(error).lower():
            raise
    whole = await place.get(prototype)  # some stores refuse a range that ends behind the last byte
    if whole is None or isinstance(part, SuffixByteRequest):
        return whole if whole is None else whole[max(0, len(whole) - part.suffix) :]
    return whole[part.start : part.end]


def _listed(array: zarr.Array[Any]) -> set[str]:
    """Keys that the store lists for an array; none where it does not list."""
    prefix = f"{array.path}/" if array.path else ""
    forget = getattr(getattr(array.store, "fs", None), "invalidate_cache", None)
    if forget is not None:
        forget()  # other processes write, too

    async def listed() -> set[str]:
        return {key async for key in array.store.list_prefix(prefix)}

    try:
        with reaching(describe_store(array)):
            return sync(listed())
    except (PermissionError, FileNotFoundError):  # only a listing: each unit is asked for
        return set()


def _ask(array: zarr.Array[Any], questions: Iterator[Any]) -> list[Any]:
    """Answers of an array's store to questions without arguments, many of them together, in their order."""

    async def answers() -> list[Any]:
        limit = asyncio.Semaphore(_AT_ONCE)

        async def answer(question: Any) -> Any:
            async with limit:
                return await question()

        return list(await asyncio.gather(*(answer(question) for question in questions)))

    with reaching(describe_store(array)):
        return sync(answers())
