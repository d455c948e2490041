"""Rows that are held: a dask array over one array in memory or in a store, filled and read block by block."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.storage import FsspecStore, LocalStore

from ..errors import MissingChunksError
from ..files import ObjectPath, Place, zarr_place
from ..files.chunks import are_there, describe_store
from ..files.digests import block_digest
from ..files.urls import url_of
from .blocks import as_declared
from .execution import compute, compute_each, map_to_objects, objects_of, persist
from .groups import grouped, held_blocks
from .pieces import array_pieces, read_pieces, task_name
from .scratch import ScratchFolder
from .visibility import Seen

__all__ = [
    "Held",
    "as_dask",
    "create_rows",
    "damaged_blocks",
    "fill",
    "fill_blocks",
    "in_pieces",
    "remove_half_written",
]

#: In the name of a file that is going to be a block.
HALF_WRITTEN = ".growing-"

#: What a block says of itself when it is computed: (block, number) -> small dict.
Summarize = Callable[..., dict[str, Any]]


class Held:
    """A product as dask reads and writes it: keeps the scratch folder in this process, is a plain array elsewhere.

    Whole chunks of a store made here, which has no codec, are the bytes of their files or objects: they are written
    straight to these, an object in one request, and read as maps of files, without the copies and the thread hops of
    zarr's general way, which took a quarter of a fit's time. Everything else goes through zarr.
    """

    def __init__(self, array: Any, owner: ScratchFolder | None) -> None:
        self.array = array
        self.owner = owner
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim
        self._seen = Seen(array)
        self._token = uuid.uuid4().hex

    def __getitem__(self, index: Any) -> NDArray[Any]:
        if self.owner is not None and self.owner.removed:
            raise FileNotFoundError(f"{str(self.owner.path)!r} was removed when its fit failed; fit again")
        rows = index[0] if isinstance(index, tuple) else index
        file = self._chunk_file(rows)
        if isinstance(self.array, zarr.Array):
            self._seen.prove()
            if not isinstance(file, ObjectPath):  # reading that tells
                self._check_whole(rows)
        if file is None:
            return np.asarray(self.array[index])
        block = self._read(file, (rows.stop - rows.start, *self.shape[1:]))
        return np.asarray(block[(slice(None), *index[1:])] if isinstance(index, tuple) else block)

    def _read(self, file: Place, shape: tuple[int, ...]) -> NDArray[Any]:
        """Rows from the beginning of a chunk."""
        if isinstance(file, Path):
            return np.memmap(file, self.dtype, "r", shape=shape)
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            raise self._missing(repr(file.url)) from None
        if len(content) != self._chunk_bytes:
            raise self._missing(f"all of {file.url!r}")
        return np.frombuffer(content, self.dtype, math.prod(shape)).reshape(shape)

    @property
    def _chunk_bytes(self) -> int:
        return int(self.array.chunks[0]) * self.dtype.itemsize * math.prod(self.shape[1:])

    def _missing(self, what: str) -> MissingChunksError:
        return MissingChunksError(
            f"{what} is not there, which a fit wrote there; remove this product, and fit again: it is made again"
        )

    def _check_whole(self, rows: Any) -> None:
        """Refuse rows of which a chunk is not there: every chunk of a product has been written."""
        size = self.array.chunks[0]
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.shape[0])
            numbers: Any = range(start // size, -(-stop // size))
        else:
            numbers = np.unique(np.arange(self.shape[0])[rows] // size)
        places = [(int(number),) + (0,) * (self.ndim - 1) for number in numbers]
        for place, there in zip(places, are_there(self.array, places), strict=True):
            if not there:
                raise self._missing(f"block {place[0]} of {describe_store(self.array)!r}")

    def __setitem__(self, rows: slice, block: NDArray[Any]) -> None:
        if isinstance(self.array, zarr.Array):
            self._seen.prove()
        file = self._chunk_file(rows)
        if file is None:
            self.array[rows] = block
            return
        if isinstance(file, ObjectPath):  # appears whole
            content = np.ascontiguousarray(block, self.dtype).tobytes()
            file.write_bytes(content.ljust(self._chunk_bytes, b"\0"))
            return
        self._make_folder(file.parent)
        # Renamed when it is whole: a worker that a killed fit left may write a block that is being read already.
        growing = file.with_name(f"{file.name}{HALF_WRITTEN}{uuid.uuid4().hex}")
        with open(growing, "wb") as target:
            # Not `tofile`, whose error does not say that the disk is full.
            target.write(np.ascontiguousarray(block, self.dtype).reshape(-1).view(np.uint8).data)
            # A stored chunk is whole; what stands behind the last row is never read.
            target.truncate(self._chunk_bytes)
        growing.replace(file)

    def _make_folder(self, folder: Path) -> None:
        """Make the folder of a chunk. That of the array is there, or was removed when the fit ended: it stays so."""
        root = Path(self.array.store.root) / self.array.path
        for parent in reversed([folder, *folder.parents]):
            if root in parent.parents:
                parent.mkdir(exist_ok=True)

    def _chunk_file(self, rows: Any) -> Place | None:
        """What has the chunk that the rows begin and do not exceed; None for other rows, and for NumPy arrays."""
        if not isinstance(self.array, zarr.Array):
            return None
        store = self.array.store
        root: Place | None = None
        if isinstance(store, LocalStore):
            root = Path(store.root)
        elif isinstance(store, FsspecStore):
            root = ObjectPath(str(url_of(store)), store)
        if root is None:
            return None
        if not (isinstance(rows, slice) and isinstance(rows.start, int) and isinstance(rows.stop, int)):
            return None
        size = self.array.chunks[0]
        last = min(rows.start + size, self.shape[0])
        if rows.step not in (None, 1) or rows.start % size or not rows.start < rows.stop <= last:
            return None
        chunk = self.array.metadata.encode_chunk_key((rows.start // size,) + (0,) * (self.ndim - 1))
        return (root / self.array.path if self.array.path else root) / chunk

    def __reduce__(self) -> Any:
        return Held, (self.array, None)

    def __dask_tokenize__(self) -> Any:
        return ("daskcluster-held", self._token)  # without hashing the content


def as_dask(held: Held, like: da.Array) -> da.Array:
    """A dask array over what is held, in the blocks of another one."""
    return read_pieces(_held_block, held, like.chunks, held.dtype, name="held", size=like.chunksize[0])


def _held_block(source: Held, size: int, block_id: tuple[int, ...]) -> NDArray[Any]:
    return source[block_id[0] * size : min((block_id[0] + 1) * size, source.shape[0])]


def create_rows(place: Place, array: da.Array) -> zarr.Array[Any]:
    """An empty stored array for the rows of a product; its chunks are the row blocks."""
    # Written once and read a few times from the page cache: a codec would cost more than it saves.
    return zarr.create_array(
        zarr_place(place),
        shape=array.shape,
        dtype=array.dtype,
        chunks=array.chunksize,
        compressors=None,
        filters=None,
    )


def fill(target: Held, array: da.Array, name: str, summarize: Summarize | None) -> list[dict[str, Any]]:
    """Compute an array into a target of its shape, block by block; the summaries of the blocks, in their order."""
    writer = partial(_write_block, target=target, size=array.chunksize[0], name=name, summarize=summarize)
    return [block["summary"] for block in objects_of(map_to_objects(writer, array, name=task_name(name)))]


def fill_blocks(
    target: Held,
    array: da.Array,
    name: str,
    summarize: Summarize | None,
    numbers: list[int],
    done: Callable[[int, dict[str, Any]], None],
) -> None:
    """Compute some blocks of an array into a target; `done` gets each one's number, and its summary and digest."""
    writer = partial(_write_block, target=target, size=array.chunksize[0], name=name, summarize=summarize, digest=True)
    tasks = map_to_objects(writer, array, name=task_name(name)).to_delayed().ravel()
    compute_each([tasks[number] for number in numbers], lambda place, box: done(numbers[place], box.item()))


def in_pieces(array: da.Array, name: str, summarize: Summarize | None) -> tuple[da.Array, list[dict[str, Any]]] | None:
    """Hold the rows of very many blocks with the workers of a cluster, several blocks a piece; None if a piece is one.

    Returns
    -------
    held : dask array
        Equal to `array`, in the same blocks.
    summaries : list of dict
        Of the blocks, in their order.
    """
    n_blocks = array.numblocks[0]
    size = held_blocks(n_blocks, array.nbytes // n_blocks)
    several = grouped(map_to_objects(partial(_kept, summarize=summarize), array, name=task_name(name)), size)
    if several is None:
        return None
    pieces, found = persist(*several.pieces_and("summary"))
    summaries = [] if summarize is None else list(compute(found)[0])
    return several.picked(pieces, array), summaries


def _kept(block: NDArray[Any], number: int, summarize: Summarize | None) -> dict[str, Any]:
    return {"block": block, "summary": {} if summarize is None else summarize(block)}


def remove_half_written(folder: Place) -> None:
    """Remove what tasks of a killed fit left of the blocks that they were writing; objects appear whole."""
    for file in () if isinstance(folder, ObjectPath) else folder.rglob(f"*{HALF_WRITTEN}*"):
        file.unlink(missing_ok=True)


def _write_block(
    block: NDArray[Any],
    number: int,
    target: Held,
    size: int,
    name: str,
    summarize: Summarize | None,
    digest: bool = False,
) -> dict[str, Any]:
    start, stop = number * size, min((number + 1) * size, target.shape[0])
    what = f"block {number} of the product {name!r}"
    block = as_declared(what, block, (stop - start, *target.shape[1:]), target.dtype)
    target[start:stop] = block
    found: dict[str, Any] = {"summary": {} if summarize is None else summarize(block)}
    if digest:  # of what was meant to be written; in the dtype in which it is
        found["digest"] = block_digest(np.ascontiguousarray(block, target.dtype))
    return found


# -- what is found again ----------------------------------------------------------------------------------------------


def damaged_blocks(held: Held, name: str, digests: Mapping[int, str] | None) -> list[int]:
    """Numbers of the blocks of a store that are not what was written; reads all of them once.

    Parameters
    ----------
    digests : mapping of int to str, or None
        Those of the blocks by their numbers: no others are looked at. None, for a store that has none, looks whether
        the files of all are there and have their lengths.
    """
    read = digests is not None
    wanted = dict.fromkeys(range(-(-held.shape[0] // held.array.chunks[0])), "") if digests is None else dict(digests)
    if not wanted:
        return []
    numbers = array_pieces(np.array(list(wanted)), 1, "numbers")
    task = task_name(f"check-{name}")
    found = objects_of(map_to_objects(_look, numbers, name=task, numbered=False, held=held, read=read))
    looks = zip(wanted, (block["found"] for block in found), strict=True)
    suspect = [number for number, look in looks if look != wanted[number]]
    # A worker that does not see the store finds damage everywhere: what this process sees itself, decides.
    return [number for number in suspect if _look_at_block(number, held, read)["found"] != wanted[number]]


def _look(number: NDArray[np.int64], held: Held, read: bool) -> dict[str, str | None]:
    return _look_at_block(int(number[0]), held, read)


def _look_at_block(number: int, held: Held, read: bool) -> dict[str, str | None]:
    """The digest of a block, or "" when it is only looked at; None where it is not there, or has another length."""
    size = held.array.chunks[0]
    rows = slice(number * size, min((number + 1) * size, held.shape[0]))
    file = held._chunk_file(rows)
    try:
        if isinstance(file, Path) and file.stat().st_size != held._chunk_bytes:
            return {"found": None}
        if read or not isinstance(file, Path):
            block = held[rows]
        return {"found": block_digest(block) if read else ""}
    except (FileNotFoundError, MissingChunksError):
        return {"found": None}
