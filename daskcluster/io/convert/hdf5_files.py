"""Read one dataset of an HDF5 file; h5ad and NetCDF 4 files are such files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...files.nodes import describe_sparse
from ..nodata import declared
from .arrow import require
from .rows import Request, Rows, block_rows, column_positions

__all__ = ["SUFFIXES", "hdf5_at", "only_table", "opened_hdf5", "read_hdf5"]

SUFFIXES = (".h5", ".hdf5", ".hdf", ".h5ad", ".nc", ".nc4")


def hdf5_at(path: Path) -> tuple[Path, str] | None:
    """Split a path at the file in it: "x.h5/obsm/X" -> "x.h5", "obsm/X"; None where there is no such file."""
    for part in (path, *path.parents):
        if part.suffix.lower() in SUFFIXES and part.is_file():
            return part, "" if part == path else path.relative_to(part).as_posix()
    return None


@contextmanager
def opened_hdf5(file: Path) -> Iterator[Any]:
    """Open a file for reading; refuse in one line what is none."""
    h5py = require("h5py", "HDF5 and NetCDF files")
    try:
        opened = h5py.File(file, "r")
    except OSError as error:
        with open(file, "rb") as raw:
            classic = raw.read(3) == b"CDF"
        if classic:
            raise ValueError(
                f"{str(file)!r} is a NetCDF 3 file; open it with xarray and chunks={{}}, and give a variable"
            ) from error
        raise ValueError(f"{str(file)!r} is not an HDF5 file that can be read: {error}") from error
    with opened:
        yield opened


def only_table(opened: Any, file: Path, name: str) -> Any:
    """The dataset of a name, or without one the only table of numbers.

    Raises
    ------
    FileNotFoundError
        If there is none of that name.
    ValueError
        If a group has the name, or the choice is not clear; the message lists the tables.
    """
    if name and name not in opened:
        raise FileNotFoundError(f"no dataset {name!r} in {str(file)!r}; {_listed(_tables(opened), file)}")
    node = opened[name] if name else opened
    if hasattr(node, "shape") and hasattr(node, "dtype"):
        return node
    found = _tables(node)
    if len(found) == 1 and not name:
        return found[0]
    place = str(file / name)
    if _is_sparse(node):
        raise ValueError(describe_sparse(place, node.attrs["encoding-type"]))
    what = "is a group, not an array" if name else "is an HDF5 file"
    raise ValueError(f"{place!r} {what}; {_listed(found, file)}")


def _tables(group: Any) -> list[Any]:
    """The datasets with rows and columns of numbers, wherever they are in a group."""
    found: list[Any] = []

    def look(_: str, node: Any) -> None:
        if len(getattr(node, "shape", None) or ()) == 2 and node.dtype.kind in "biuf":
            found.append(node)

    group.visititems(look)
    return found


def _is_sparse(node: Any) -> bool:
    return str(node.attrs.get("encoding-type", "")).endswith(("csr_matrix", "csc_matrix"))


def _listed(tables: list[Any], file: Path) -> str:
    if not tables:
        raster = (
            "; open a raster with xarray and chunks={}, and give that" if file.suffix.lower() in (".nc", ".nc4") else ""
        )
        return f"it has no dense table of numbers{raster}"
    shown = ", ".join(f"{str(file) + table.name!r} {table.shape}" for table in tables[:6])
    return f"give one of {shown}" + (f" and {len(tables) - 6} more" if len(tables) > 6 else "")


def read_hdf5(path: Path, request: Request) -> Rows:
    """Read a dataset in blocks; what it declares as no data becomes NaN, and scale and offset are applied."""
    place = hdf5_at(path)
    if place is None:
        raise ValueError(f"{path.name!r} is not an HDF5 file by its name, which ends in {', '.join(SUFFIXES)}")
    file, name = place
    opened = request.resources.enter_context(opened_hdf5(file))
    dataset = only_table(opened, file, name)
    shape, dtype = tuple(dataset.shape), dataset.dtype
    if dtype.kind not in "biuf" or dtype.itemsize > 8 or len(shape) not in (1, 2) or 0 in shape:
        raise ValueError(f"{str(path)!r} must hold rows of numbers, got shape {shape} and dtype {dtype}")
    found = declared("source", dtype, dict(dataset.attrs), {})
    value_dtype = np.dtype(np.uint8) if dtype.kind == "b" else dtype if found is None else found.dtype(dtype)
    positions = None
    if request.columns is not None:
        if len(shape) == 1:
            raise ValueError("columns: the array has one dimension")
        positions = column_positions(request.columns, shape[1], None)
    row_bytes = dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64))
    step = block_rows(row_bytes)
    if dataset.chunks is not None:  # what is decoded in one piece is read in one
        step = max(1, step // dataset.chunks[0]) * dataset.chunks[0]

    def blocks() -> Iterator[NDArray[Any]]:
        for start in range(0, shape[0], step):
            block = dataset[start : start + step]
            block = block if found is None else found(block)
            yield block if positions is None else block[:, positions]

    row_shape = shape[1:] if positions is None else (len(positions),)
    wanted = value_dtype.newbyteorder("=") if request.dtype is None else request.dtype
    return Rows(row_shape, wanted, blocks(), shape[0])
