"""Read npy files, and arrays in npz archives."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import dask
import numpy as np
from numpy.typing import NDArray

from .rows import Columns, Request, Rows, block_rows, column_positions

__all__ = ["read_npy", "read_npz"]


def read_npy(path: Path, request: Request) -> Rows:
    """Map an npy file block by block, so that pages already read do not count as memory of this process."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path.name!r} is not an npy file of numbers: {error}") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path.name!r} is not an npy file; is it npz?")
    shape, dtype = array.shape, array.dtype
    _check_array(path.name, shape, dtype)
    positions = _array_columns(request.columns, shape)
    step = block_rows(_row_bytes(shape, dtype))

    def blocks() -> Iterator[NDArray[Any]]:
        for start in range(0, shape[0], step):
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
            yield np.array(_take(mapped[start : start + step], positions))

    return Rows(_row_shape(shape, positions), _stored_dtype(dtype), blocks(), shape[0])


def read_npz(path: Path, request: Request) -> Rows:
    """Read one array of an npz file as its bytes come out of the archive."""
    try:
        archive = request.resources.enter_context(zipfile.ZipFile(path))
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path.name!r} is not an npz file: {error}") from error
    headers = {}
    for name in archive.namelist():
        if name.endswith(".npy"):
            with archive.open(name) as stream:
                headers[name.removesuffix(".npy")] = _npy_header(name, stream)
    member = _choose_member(path.name, headers, request.member)
    shape, fortran, dtype = headers[member]
    _check_array(f"{path.name}: {member}", shape, dtype)
    if fortran and len(shape) == 2:
        # Its rows are scattered over the whole stream: unpack it first, then map it like any npy file.
        folder = request.resources.enter_context(
            tempfile.TemporaryDirectory(dir=dask.config.get("temporary-directory", None))
        )
        return read_npy(Path(archive.extract(f"{member}.npy", folder)), request)
    positions = _array_columns(request.columns, shape)
    row_bytes = _row_bytes(shape, dtype)
    step = block_rows(row_bytes)

    def blocks() -> Iterator[NDArray[Any]]:
        with archive.open(f"{member}.npy") as stream:
            _npy_header(member, stream)
            for start in range(0, shape[0], step):
                count = min(step, shape[0] - start)
                data = stream.read(count * row_bytes)
                if len(data) < count * row_bytes:
                    raise ValueError(f"{path.name!r} ends in the middle of {member!r}")
                yield _take(np.frombuffer(data, dtype).reshape(count, *shape[1:]), positions)

    return Rows(_row_shape(shape, positions), _stored_dtype(dtype), blocks(), shape[0])


def _npy_header(name: str, stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read shape, Fortran order and dtype from the head of an npy stream."""
    try:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            header = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            header = np.lib.format.read_array_header_2_0(stream)
        else:  # (3, 0) exists for field names outside Latin-1
            raise ValueError("its array has named fields, which are not supported")
    except ValueError as error:
        raise ValueError(f"{name!r} is not an npy array: {error}") from error
    shape, fortran, dtype = header
    return shape, fortran, dtype


def _choose_member(
    name: str, headers: dict[str, tuple[tuple[int, ...], bool, np.dtype[Any]]], member: str | None
) -> str:
    listed = ", ".join(f"{key} {shape} {dtype}" for key, (shape, _, dtype) in headers.items()) or "no arrays"
    if member is not None:
        if member not in headers:
            raise ValueError(f"member: no array {member!r} in {name!r}; it holds {listed}")
        return member
    tables = [key for key, (shape, _, dtype) in headers.items() if len(shape) == 2 and dtype.kind in "biuf"]
    if len(tables) == 1:
        return tables[0]
    if len(headers) == 1:
        return next(iter(headers))
    raise ValueError(f"member: {name!r} holds {listed}; name one of them")


def _check_array(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ValueError(f"{name!r} holds {dtype}, not numbers that can be clustered")
    if len(shape) not in (1, 2):
        raise ValueError(f"{name!r} has shape {shape}; expected rows and columns")
    if 0 in shape:
        raise ValueError(f"{name!r} holds no rows: its shape is {shape}")


def _array_columns(columns: Columns | None, shape: tuple[int, ...]) -> list[int] | None:
    """Return the wanted columns of an array without column names, None for all."""
    if columns is None:
        return None
    if len(shape) == 1:
        raise ValueError("columns: the array has one dimension")
    return column_positions(columns, shape[1], None)


def _take(block: NDArray[Any], positions: list[int] | None) -> NDArray[Any]:
    return block if positions is None else block[:, positions]


def _row_shape(shape: tuple[int, ...], positions: list[int] | None) -> tuple[int, ...]:
    return shape[1:] if positions is None else (len(positions),)


def _row_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))


def _stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type under which a file's values are stored: native byte order, and 0 and 1 for booleans."""
    return np.dtype(np.uint8) if dtype.kind == "b" else dtype.newbyteorder("=")
