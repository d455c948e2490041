"""Whether stored input may have changed since an earlier run: told by its files' sizes and times, without reading them.

==============================  ==========================================================================
Zarr array in a folder, or      its metadata; size, times and number of the file of every chunk or shard
HDF5 dataset, parquet files     the same of the file, and which part of it
dask array                      where all that it is made from are such Zarr arrays: these, and dask's names
                                of what is done with them
NumPy columns beside the rows   their content
==============================  ==========================================================================

Nothing tells it of rows in memory, dataframes, stores that are no folder, and graphs with other sources: what reads
them is done anew in each run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from numbers import Real
from typing import Any

import dask.array as da
import numpy as np
import zarr

from ..files.chunks import chunk_key, local_folder, stored_unit
from .graphs import source_layers
from .inputs import Source
from .sources import FileRows, Hdf5Rows, ZarrRows
from .sparse import CsrGroup
from .tables import ParquetRows

__all__ = ["identity_of"]

#: A file may change within one tick of its file system's clock and keep its times.
_TICK_NS = 20_000_000
#: Layers that this package puts over what it reads, and that follow from what is read alone; their names do not.
_OWN_LAYERS = re.compile(r"dc-(source|read|decode)-[0-9a-f]{32}")
#: Layers of dask's own operations, whose names follow from all that they are given; a user's function has the same name
#: when its code, or what it reads, is another.
_NAMED_BY_CONTENT = re.compile(
    r"(original-)?(array|astype|concatenate|from-zarr|getitem|rechunk-merge|rechunk-split)-[0-9a-f]{32}"
)


class _Unknown(Exception):
    """Nothing tells whether some input changed."""


def identity_of(*given: Any) -> str | None:
    """A text that is another one when some of the input may have changed; None where nothing tells.

    Parameters
    ----------
    *given : Source, NumPy column, dask array, number or None
        The rows as they were opened, and what is given beside them.
    """
    try:
        marks = [_mark(each) for each in given]
    except (_Unknown, OSError):
        return None
    return hashlib.blake2b(json.dumps(marks).encode(), digest_size=16).hexdigest()


def _mark(value: Any) -> Any:
    if isinstance(value, Source):
        if value.in_memory:
            raise _Unknown
        return [repr(value.declared), _mark(value.array)]
    if value is None or isinstance(value, Real):
        return repr(value)
    if isinstance(value, ZarrRows):
        value = value.array
    if isinstance(value, zarr.Array):
        return _mark_of_zarr(value)
    if isinstance(value, CsrGroup):
        return ["csr", list(value.shape), [_mark(part) for part in value.parts]]
    if isinstance(value, FileRows):
        raise _Unknown  # who writes through a map changes no time before the system writes its pages
    if isinstance(value, Hdf5Rows):
        return ["hdf5", value.name, list(value.shape), value.dtype.str, _mark_of_files([value.path])]
    if isinstance(value, ParquetRows):
        return ["parquet", value.head.names, value.paths, list(value.shape), _mark_of_files(value.paths)]
    if isinstance(value, da.Array):
        return _mark_of_graph(value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        content = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
        return ["content", list(value.shape), value.dtype.str, content]
    raise _Unknown


def _mark_of_zarr(array: zarr.Array[Any]) -> Any:
    folder = local_folder(array)
    if folder is None:
        raise _Unknown
    grid = tuple(-(-size // length) for size, length in zip(array.shape, stored_unit(array), strict=True))
    files = [os.path.join(folder, chunk_key(array, place)) for place in np.ndindex(grid)]
    metadata = json.dumps(array.metadata.to_dict(), sort_keys=True, default=str)
    return ["zarr", metadata, _mark_of_files(files)]


def _mark_of_files(files: list[str]) -> str:
    """Sizes, times and numbers of files; of one that is not there, that it is not."""
    digest, newest = hashlib.blake2b(digest_size=16), 0
    for file in files:
        try:
            status = os.stat(file)
        except FileNotFoundError:
            digest.update(b"-")
            continue
        changed = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        digest.update(repr(changed).encode())
        newest = max(newest, status.st_mtime_ns, status.st_ctime_ns)
    age = time.time_ns() - newest
    if age < 0:
        raise _Unknown  # of a clock that is ahead of this one
    if age < _TICK_NS:
        time.sleep((_TICK_NS - age) / 1e9)
    return digest.hexdigest()


def _mark_of_graph(array: da.Array) -> Any:
    sources = source_layers(array)
    if sources is None:
        raise _Unknown
    names = [name for name in array.__dask_graph__().layers if not _OWN_LAYERS.fullmatch(name)]
    if not all(_NAMED_BY_CONTENT.fullmatch(name) for name in names):
        raise _Unknown
    chunks = [[repr(length) for length in axis] for axis in array.chunks]
    return ["dask", array.dtype.str, chunks, sorted(names), [_mark(source) for source in sources]]
