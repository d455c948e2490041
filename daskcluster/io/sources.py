"""What rows are read from, one class a form: each says how long and of which type it is, and reads some rows.

A source travels to the tasks of other processes without the rows, finds them there by its name, and says so where it
does not. What is read comes back as it is stored; nothing is read as something else in silence.
"""

from __future__ import annotations

import importlib
import mmap
import os
from collections.abc import Iterator
from itertools import product
from typing import Any, Protocol

import numpy as np
import zarr
from numpy.typing import NDArray

from ..errors import MissingChunksError, UnreadableChunkError
from ..files.bounded import bounded
from ..files.chunks import are_there, chunk_key, describe_store, file_mark, fill_value, stored_unit
from ..files.urls import is_url, unreachable
from ..runtime.visibility import Seen, marks_differ, process_name, unseen

__all__ = ["FileRows", "Hdf5Rows", "MemoryRows", "Stored", "ZarrRows", "file_rows", "hdf5_rows"]


class Stored(Protocol):
    """Rows that are read when a task needs them."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers, as they are stored."""

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """Lengths of what is decoded in one piece, None where any rows are read by themselves."""

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read the rows from start to stop."""


def _tried(array: Any, index: Any) -> tuple[NDArray[Any], Exception | None]:
    """What is read, or why it cannot be: to be said in words, because not every exception travels between processes."""
    try:
        return np.asarray(array[index]), None
    except MemoryError:
        raise
    except Exception as error:
        return np.empty(0), error


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


class MemoryRows:
    """Rows in this process's memory: views of them."""

    chunks = None

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array
        self.shape, self.dtype = array.shape, array.dtype

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """View the rows from start to stop."""
        return np.asarray(self.array[start:stop])


# -- Zarr --------------------------------------------------------------------------------------------------------------


class ZarrRows:
    """Rows of a Zarr array.

    Parameters
    ----------
    array : zarr.Array
    absent : bool array over the grid of stored units, or None
        Those that were not there when the array was opened; None when the store cannot tell.
    seen : Seen, optional
        Of the process that opened the array.
    """

    def __init__(self, array: zarr.Array[Any], absent: NDArray[np.bool_] | None, seen: Seen | None = None) -> None:
        self.array = array
        self.absent = absent
        self.shape, self.dtype, self.chunks = array.shape, array.dtype, array.chunks
        self._bounded = bounded(array)
        self._seen = seen or Seen(array, content=True)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read the rows from start to stop.

        Raises
        ------
        UnseenStoreError
            If this process does not see the store.
        UnreadableChunkError
            If a chunk is damaged.
        MissingChunksError
            If a chunk is not there that was there when the array was opened.
        """
        self._seen.prove()
        block, error = _tried(self._bounded, slice(start, stop))
        if error is not None:
            raise self._unreadable(start, stop, error)
        self._check_presence(block, start)
        return block

    def _check_presence(self, block: NDArray[Any], start: int) -> None:
        """Ask the store for the chunks that begin with the fill value: what is not there is read as that."""
        if self.absent is None or not block.size:
            return
        unit, last = stored_unit(self.array), start + len(block) - 1
        numbers = [np.arange(start // unit[0], last // unit[0] + 1)]
        numbers += [np.arange(-(-size // length)) for size, length in zip(self.shape[1:], unit[1:], strict=True)]
        firsts = [np.maximum(numbers[0] * unit[0] - start, 0)]
        firsts += [places * length for places, length in zip(numbers[1:], unit[1:], strict=True)]
        corners = block[np.ix_(*firsts)]
        fill = fill_value(self.array)
        blank = corners == fill if fill == fill else corners != corners  # NaN is not equal to itself
        blank &= ~self.absent[np.ix_(*numbers)]
        if not blank.any():
            return
        offset = np.array([places[0] for places in numbers])
        places = [tuple(map(int, place + offset)) for place in np.argwhere(blank)]
        try:
            found = are_there(self.array, places)
        except OSError as error:
            raise self._unreadable(start, start + len(block), error) from error
        gone = [place for place, there in zip(places, found, strict=True) if not there]
        if gone:
            raise MissingChunksError(
                f"{process_name()} does not find {self._name(gone[0])}, or finds it empty, which was there when "
                f"{self._where!r} was opened; give a path on a file system that all workers share, and leave it "
                "unchanged while it is read"
            )

    def _unreadable(self, start: int, stop: int, error: Exception) -> UnreadableChunkError:
        """The error that names the damaged chunks among those of some rows, or says that the store is not reached."""
        lost = unreachable(self._where, error) if is_url(self._where) else None
        if lost is not None:
            return UnreadableChunkError(
                f"{process_name()} does not read rows {start} to {stop - 1}: {lost}; nothing stands for them, give "
                "the same work again when the store answers"
            )
        unit = stored_unit(self.array)
        grid = [range(start // unit[0], (stop - 1) // unit[0] + 1)]
        grid += [range(-(-size // length)) for size, length in zip(self.shape[1:], unit[1:], strict=True)]
        why = _said(error)
        broken = [place for place in product(*grid) if not self._lacks(place) and self._fails(place)]
        names = ", ".join(self._name(place) for place in broken[:3]) or f"some chunk of rows {start} to {stop - 1}"
        more = f" and {len(broken) - 3} more" if len(broken) > 3 else ""
        return UnreadableChunkError(
            f"{self._where!r} cannot be read: {names}{more} is damaged ({why}); "
            "write it again, or take the array from a copy"
        )

    def _lacks(self, place: tuple[int, ...]) -> bool:
        return self.absent is not None and bool(self.absent[place])

    def _fails(self, place: tuple[int, ...]) -> bool:
        if not are_there(self.array, [place])[0]:
            return True
        unit = stored_unit(self.array)
        region = tuple(slice(k * length, (k + 1) * length) for k, length in zip(place, unit, strict=True))
        return _tried(self.array, region)[1] is not None

    def _name(self, place: tuple[int, ...]) -> str:
        length = stored_unit(self.array)[0]
        first, behind = place[0] * length, min((place[0] + 1) * length, self.shape[0])
        return f"chunk {chunk_key(self.array, place)!r} (rows {first} to {behind - 1})"

    @property
    def _where(self) -> str:
        return describe_store(self.array)

    def __reduce__(self) -> Any:
        return ZarrRows, (self.array, self.absent, self._seen)


# -- files of plain numbers --------------------------------------------------------------------------------------------


class FileRows:
    """Rows of a memory map, read from its file: pages of a map stay in memory, and travel to other processes whole.

    Parameters
    ----------
    path : str
    offset : int
        Bytes before the first number.
    shape, strides, dtype
        Of the map, or of a view of it; strides are not negative.
    file_bytes : int
        Length of the file.
    mark : str, optional
        `file_mark` of the process that has the map; taken when it is pickled.
    """

    chunks = None

    def __init__(
        self,
        path: str,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
        file_bytes: int,
        mark: str | None = None,
    ) -> None:
        self.path, self.offset, self.file_bytes, self.mark = path, offset, file_bytes, mark
        self.shape, self.strides, self.dtype = shape, strides, dtype
        self._proved = False

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read the rows from start to stop; raises UnseenStoreError, UnreadableChunkError."""
        self._prove()
        shape = (stop - start, *self.shape[1:])
        offset = self.offset + start * self.strides[0]
        with open(self.path, "rb", buffering=0) as file:
            if len(shape) == 2 and self.strides[1] > self.strides[0]:  # column after column
                block = np.empty(shape, self.dtype, order="F")
                for column in range(shape[1]):
                    place = offset + column * self.strides[1]
                    block[:, column] = self._part(file, place, shape[:1], self.strides[:1])
                return block
            return self._part(file, offset, shape, self.strides)

    def _part(self, file: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> NDArray[Any]:
        span = self.dtype.itemsize + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
        content = np.empty(span, np.uint8)
        file.seek(offset)
        view, done = content.data, 0
        while done < span:
            count = file.readinto(view[done:])
            if not count:
                raise UnreadableChunkError(f"{self.path!r} ends before byte {offset + span}: it is cut off")
            done += count
        return np.ndarray(shape, self.dtype, content, 0, strides)

    def _prove(self) -> None:
        if self._proved:
            return
        try:
            found = os.stat(self.path).st_size
        except OSError as error:
            raise unseen(self.path, error) from error
        if found != self.file_bytes:
            raise unseen(self.path, f"it has {found} bytes there and not {self.file_bytes}")
        if marks_differ((self.mark,), (file_mark(self.path),)):
            raise unseen(self.path, "a file with other content is there")
        self._proved = True

    def __reduce__(self) -> Any:
        mark = self.mark or file_mark(self.path)
        return FileRows, (self.path, self.offset, self.shape, self.strides, self.dtype, self.file_bytes, mark)


def file_rows(array: NDArray[Any]) -> FileRows | None:
    """A memory map, or a view of one, as rows of its file; None for any other array.

    None too for a map that this process may have changed by itself (mode "c"), and for one in reversed order.
    """
    owners = list(_owners(array))
    found = next((owner for owner in owners if isinstance(owner, np.memmap)), None)
    if found is None or not owners or not isinstance(owners[-1], mmap.mmap):
        return None
    path: Any = found.filename
    plain = 1 <= array.ndim <= 2 and array.size and min(array.strides) >= 0 and not array.dtype.hasobject
    if path is None or found.mode == "c" or not plain or not os.path.isfile(path):
        return None
    if found.mode != "r":
        found.flush()
    begin = np.frombuffer(owners[-1], np.uint8).__array_interface__["data"][0]
    skipped = found.offset - found.offset % mmap.ALLOCATIONGRANULARITY  # maps begin at whole pages
    offset = array.__array_interface__["data"][0] - begin + skipped
    path = os.path.abspath(path)
    return FileRows(path, offset, array.shape, array.strides, array.dtype, os.stat(path).st_size)


def _owners(array: Any) -> Iterator[Any]:
    """The array, what it is a view of, and so on."""
    while array is not None:
        yield array
        array = array.base if isinstance(array, np.ndarray) else None


# -- HDF5 --------------------------------------------------------------------------------------------------------------


class Hdf5Rows:
    """Rows of an HDF5 dataset: through the open one in this process, by the file's name in others.

    Parameters
    ----------
    module : str
        The package that opens such files.
    path, name : str
        The file, and the dataset in it.
    shape, dtype, chunks
        Of the dataset.
    dataset : optional
        The open one.
    """

    def __init__(
        self,
        module: str,
        path: str,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        chunks: tuple[int, ...] | None,
        dataset: Any = None,
    ) -> None:
        self.module, self.path, self.name = module, path, name
        self.shape, self.dtype, self.chunks = shape, dtype, chunks
        self._dataset = dataset

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read the rows from start to stop; raises UnseenStoreError, UnreadableChunkError."""
        if self._dataset:  # false when its file has been closed
            return self._rows(self._dataset, start, stop)
        try:
            file = importlib.import_module(self.module).File(self.path, "r")
        except OSError as error:
            raise unseen(self.path, error) from error
        with file:
            if self.name not in file:
                raise unseen(f"{self.path}:{self.name}", "there is no such dataset")
            return self._rows(file[self.name], start, stop)

    def _rows(self, dataset: Any, start: int, stop: int) -> NDArray[Any]:
        block, error = _tried(dataset, slice(start, stop))
        if error is not None:
            raise UnreadableChunkError(
                f"rows {start} to {stop - 1} of {self.path}:{self.name} cannot be read: {_said(error)}"
            )
        return block

    def __reduce__(self) -> Any:
        return Hdf5Rows, (self.module, self.path, self.name, self.shape, self.dtype, self.chunks)


def hdf5_rows(X: Any) -> Hdf5Rows | None:
    """An HDF5 dataset (of h5py, or what behaves like it) as rows; None for anything else."""
    path: Any = getattr(getattr(X, "file", None), "filename", None)
    parts = (path, getattr(X, "name", None), getattr(X, "shape", None), getattr(X, "dtype", None))
    if isinstance(X, np.ndarray) or any(part is None for part in parts) or not hasattr(X, "chunks"):
        return None
    module = type(X).__module__.partition(".")[0]
    path = os.path.abspath(os.fsdecode(path))
    return Hdf5Rows(module, path, X.name, tuple(X.shape), np.dtype(X.dtype), X.chunks, X)
