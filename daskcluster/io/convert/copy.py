"""Any file, block by block, into one Zarr array."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import DTypeLike, NDArray

from ...files import (
    atomic_path,
    check_apart,
    check_output,
    check_outside,
    choose_chunk_rows,
    create_array,
    open_rows,
    place_at,
)
from ...files.nodes import describe_group, has_zarr_metadata, open_node
from ...files.places import expand
from ...typing import PathInput
from ...validation import check_flag, check_integer
from . import csv_files, parquet_files
from .csv_files import read_csv
from .hdf5_files import SUFFIXES as HDF5_SUFFIXES
from .hdf5_files import hdf5_at, read_hdf5
from .numpy_files import read_npy, read_npz
from .parquet_files import read_parquet
from .rows import Columns, Request, Rows, column_label

__all__ = ["FORMATS", "convert"]


def convert(
    source: PathInput,
    destination: PathInput,
    *,
    format: str | None = None,
    columns: Columns | None = None,
    member: str | None = None,
    header: bool | None = None,
    chunk_rows: int | None = None,
    dtype: DTypeLike | None = None,
    overwrite: bool = False,
) -> zarr.Array[Any]:
    """Store the rows of a file as a Zarr array.

    Parameters
    ----------
    source : str or os.PathLike
        A file; for parquet and csv also a folder of files, read in the order of their names, in which numbers count
        as numbers: part.10 follows part.9, as dask writes and reads them. A dataset of an HDF5 file, or a variable of
        a NetCDF 4 file, is named behind the file: ``"file.h5/name"``; the only table of a file needs no name.
    destination : str or os.PathLike
        The Zarr array to be; it appears there when it is complete.
    format : {"npy", "npz", "csv", "parquet", "hdf5"}, optional
        By default from the file's name: ``.npy``, ``.npz``, ``.csv``, ``.tsv``, ``.txt`` (these three also
        compressed: ``.csv.gz``), ``.parquet``, ``.pq``, ``.h5``, ``.hdf5``, ``.hdf``, ``.h5ad``, ``.nc``, ``.nc4``.
    columns : sequence of str or int, optional
        Which columns, in which order: names, or numbers from 0, also as strings. By default all.
    member : str, optional
        Array of an npz file. By default its only two-dimensional array, or its only array.
    header : bool, optional
        Whether the first line of a csv file names the columns. By default the first lines tell: words above
        numbers are names, and so are 0,1,2,... above numbers that are written otherwise. Where such a line may be a
        row as well it must be said.
    chunk_rows : int, optional
        Rows of a stored chunk. By default a power of two that takes 16 to 32 MiB.
    dtype : dtype-like, optional
        Type of the stored values. By default the file's own for npy and npz; float64 for csv; the smallest
        type that holds every column for parquet, a floating one where values are missing.
    overwrite : bool
        Replace an existing Zarr array, and nothing else.

    Returns
    -------
    zarr.Array
        The stored array, opened read-only: (n, d), or (n,) from a one-dimensional npy or npz array. Names of
        columns are in its attribute ``columns``.

    Raises
    ------
    FileNotFoundError, FileExistsError
        If `source` does not exist, or `destination` does; or this one is no array, or lies inside an array, a saved
        model or the storage of a fit.
    DiskFullError
        If the disk is full; nothing of the output is left.
    ImportError
        If the file needs a package of the extra ``convert`` that is not installed.
    ValueError
        If `destination` is, holds or lies inside `source`; or the file is not what its format says, has no rows, or
        holds a value or column that is not numeric (the message names it), or that `dtype` cannot hold.

    Notes
    -----
    Missing values of csv and parquet become NaN, as does what an HDF5 dataset or NetCDF variable declares as no data.
    The work runs in this process, one block after the other: reading and parsing bound it, not the processor.
    """
    path = Path(expand(source))
    if not path.exists() and hdf5_at(path) is None:
        raise FileNotFoundError(f"no file at {os.fspath(source)!r}")
    place = place_at(destination)  # refuses what is no path
    file, _ = hdf5_at(path) or (source, "")
    check_apart({"destination": os.fspath(destination)}, {"source": os.fspath(file)})
    check_outside(place, os.fspath(destination))
    check_output(destination, overwrite=overwrite, kind="array")
    wanted = None if dtype is None else _numeric_dtype(dtype)
    if chunk_rows is not None:
        check_integer("chunk_rows", chunk_rows, 1)
    if header is not None:
        check_flag("header", header)
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names or numbers, got {columns!r}")
    kind = _format_of(path) if format is None else format
    if kind not in _READERS:
        raise ValueError(f"format: expected one of {', '.join(FORMATS)}, got {format!r}")
    for argument, value, formats in (("member", member, ("npz",)), ("header", header, ("csv",))):
        if value is not None and kind not in formats:
            raise ValueError(f"{argument}: serves {', '.join(formats)} files only, and this one is {kind}")
    with ExitStack() as resources:
        rows = _READERS[kind](path, Request(columns, member, header, wanted, resources))
        _store(rows, destination, path.name, chunk_rows, wanted or rows.dtype, overwrite)
    return open_rows(destination)


_READERS: dict[str, Callable[[Path, Request], Rows]] = {
    "npy": read_npy,
    "npz": read_npz,
    "csv": read_csv,
    "parquet": read_parquet,
    "hdf5": read_hdf5,
}
FORMATS = tuple(_READERS)

_SUFFIXES = {
    "npy": "npy",
    "npz": "npz",
    "csv": "csv",
    "tsv": "csv",
    "txt": "csv",
    "parquet": "parquet",
    "pq": "parquet",
} | {suffix[1:]: "hdf5" for suffix in HDF5_SUFFIXES}


def _format_of(path: Path) -> str:
    """Return the format that a file's name says."""
    if hdf5_at(path) is not None:
        return "hdf5"
    if path.is_dir():
        if has_zarr_metadata(path):
            node = open_node(path)
            if isinstance(node, zarr.Group):
                raise ValueError(describe_group(str(path), node))
            raise ValueError(f"{str(path)!r} is a Zarr array already: fit takes it as it is")
        return _format_of_folder(path)
    suffixes = [suffix.lower().lstrip(".") for suffix in path.suffixes]
    if suffixes and suffixes[-1] in ("gz", "bz2", "zst", "lz4"):
        suffixes.pop()
        if suffixes and _SUFFIXES.get(suffixes[-1]) != "csv":
            suffixes.clear()
    if not suffixes or suffixes[-1] not in _SUFFIXES:
        raise ValueError(f"{path.name!r}: the name does not tell the format; give format= ({', '.join(FORMATS)})")
    return _SUFFIXES[suffixes[-1]]


def _format_of_folder(path: Path) -> str:
    """Return what the files in a folder are: parquet, unless none of them is and some are text."""
    names = [file.name.lower() for file in path.iterdir() if file.name[0] not in "._"]
    text = [name for name in names if name.endswith(csv_files.SUFFIXES)]
    if text and not any(name.endswith(parquet_files.SUFFIXES) for name in names):
        return "csv"
    return "parquet"


def _numeric_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    try:
        numeric = np.dtype(dtype)
    except TypeError as error:
        raise ValueError(f"dtype: expected a numeric type such as float32, got {dtype!r}") from error
    if numeric.kind not in "iuf" or numeric.itemsize > 8:
        raise ValueError(f"dtype: expected integers or floating numbers of at most 64 bits, got {numeric}")
    return numeric.newbyteorder("=")


def _store(
    rows: Rows,
    destination: PathInput,
    source: str,
    chunk_rows: int | None,
    dtype: np.dtype[Any],
    overwrite: bool,
) -> None:
    """Write blocks of rows, gathered into whole chunks, as one Zarr array."""
    row_bytes = dtype.itemsize * int(np.prod(rows.shape, dtype=np.int64))
    chunk = chunk_rows or choose_chunk_rows(row_bytes, rows.n_rows)
    attributes: dict[str, Any] = {"source": source}
    if rows.names is not None:
        attributes["columns"] = rows.names
    needed = None if rows.n_rows is None else rows.n_rows * row_bytes
    with atomic_path(destination, overwrite=overwrite, kind="array", needed_bytes=needed) as temporary:
        buffer = np.empty((chunk, *rows.shape), dtype=dtype)
        filled = written = 0
        target = None
        for block in rows.blocks:
            block = _cast(block, dtype, written + filled, rows.names)
            while len(block):
                taken = min(len(block), chunk - filled)
                buffer[filled : filled + taken] = block[:taken]
                filled, block = filled + taken, block[taken:]
                if filled == chunk:
                    target = _append(target, temporary, buffer, written, chunk, attributes)
                    written, filled = written + chunk, 0
        if filled:
            target = _append(target, temporary, buffer[:filled], written, chunk, attributes)
        if target is None:
            raise ValueError(f"{source!r} holds no rows")


def _append(
    target: zarr.Array[Any] | None,
    path: Any,
    block: NDArray[Any],
    start: int,
    chunk: int,
    attributes: dict[str, Any],
) -> zarr.Array[Any]:
    """Write the next chunk; the array grows with it, since a csv file does not say how long it is."""
    shape = (start + len(block), *block.shape[1:])
    if target is None:
        target = create_array(path, shape, block.dtype, chunks=chunk, attributes=attributes)
    else:
        target.resize(shape)
    target[start:] = block
    return target


def _cast(block: NDArray[Any], dtype: np.dtype[Any], start: int, names: list[str] | None) -> NDArray[Any]:
    """Convert a block; refuse values that the type cannot hold. Rounding a floating number is no loss."""
    if block.dtype == dtype:
        return block
    with np.errstate(over="ignore", invalid="ignore"):
        converted = block.astype(dtype)
        lost = np.isinf(converted) & ~np.isinf(block) if dtype.kind == "f" else converted != block
    if lost.any():
        where = tuple(int(index[0]) for index in np.nonzero(lost))
        column = "" if len(where) == 1 else f", column {column_label(where[1], names)}"
        raise ValueError(f"dtype: {dtype} cannot hold {block[where].item()!r} (row {start + where[0]}{column})")
    return converted
