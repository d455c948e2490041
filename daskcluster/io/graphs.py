"""What the task graph of a dask array tells: the Zarr arrays that it was made from, and what a chunk takes to make."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from itertools import product
from typing import Any

import dask.array as da
import numpy as np
import zarr
from dask.highlevelgraph import MaterializedLayer

__all__ = ["bytes_behind", "bytes_inside", "cached_bytes", "source_layers", "stores_of"]

#: Wrappers that xarray puts around a stored array are followed so deep.
_DEPTH = 10


def stores_of(array: da.Array) -> list[zarr.Array[Any]]:
    """The Zarr arrays from which the tasks of a dask array read.

    Those of ``dask.array.from_zarr``, ``from_array`` and ``xarray.open_zarr``, which keep one in a layer of its own.
    One that a user's function opens is not found.
    """
    layers = getattr(array.__dask_graph__(), "layers", {})
    values = [value for layer in layers.values() if len(layer) == 1 for value in layer.values()]
    found = [_inside(value) for value in values]
    return list({id(each): each for each in found if each is not None}.values())


def source_layers(array: da.Array) -> list[Any] | None:
    """What all tasks of a dask array are made from: Zarr arrays, and what this package reads from.

    It stands in the layers that depend on no other. None where something else stands there, such as a function, which
    may read anything.
    """
    graph = array.__dask_graph__()
    found = []
    for name, before in getattr(graph, "dependencies", {}).items():
        if before:
            continue
        layer = graph.layers[name]
        values = list(layer.values()) if len(layer) == 1 else []
        value = getattr(values[0], "value", values[0]) if values else None
        source = value if hasattr(value, "read") and hasattr(value, "shape") else _inside(values[0]) if values else None
        if source is None:
            return None
        found.append(source)
    return found or None


def _inside(value: Any, is_sought: Callable[[Any], bool] = lambda value: isinstance(value, zarr.Array)) -> Any:
    """What stands inside the wrappers of an array, if it is what is sought."""
    value = getattr(value, "value", value)  # of dask's node of a graph
    for _ in range(_DEPTH):
        if value is None or is_sought(value):
            return value
        value = getattr(value, "array", getattr(value, "_array", None))
    return None


def bytes_behind(array: da.Array) -> int:
    """Bytes of the source chunks that have to be there together for the longest row chunk of an array (n, d).

    Where a raster is stacked into pixels, that is a whole strip of it: its chunks do not follow the pixels.

    Notes
    -----
    Sources are the tasks that depend on no other; all of them together are taken to be as large as the array, which
    holds for what is cut, moved and stacked, but not for sums over more than the rows.
    """
    longest = max(range(array.numblocks[0]), key=lambda number: array.chunks[0][number])
    keys = {(array.name, longest, *rest) for rest in product(*map(range, array.numblocks[1:]))}
    graph = array.__dask_graph__()
    needed = graph.cull(keys)
    # What stands in a layer by itself is an array in a store or in memory, which is not loaded as a whole.
    single = {name for name, layer in graph.layers.items() if len(layer) == 1 and name != array.name}
    sources = [key for key, before in needed.get_all_dependencies().items() if before <= single and key not in single]
    layers = {_layer_of(key) for key in sources} & set(graph.layers)
    total = sum(len(graph.layers[name]) for name in layers)
    return len(sources) * array.nbytes // total if total else 0


def bytes_inside(array: da.Array) -> int:
    """Bytes of arrays and dataframes inside the graph itself, where ``from_array`` and ``from_pandas`` put them."""
    layers = getattr(array.__dask_graph__(), "layers", {}).values()
    values = (value for layer in layers if isinstance(layer, MaterializedLayer) for value in layer.values())
    return sum(_bytes_of(getattr(value, "value", value)) for value in values)


def _bytes_of(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return 0 if isinstance(value, np.memmap) else int(value.nbytes)
    usage = getattr(value, "memory_usage", None)
    return int(np.sum(usage(index=True))) if callable(usage) and hasattr(value, "index") else 0


def cached_bytes(array: da.Array) -> int:
    """Bytes that each process keeps of files that its tasks read through GDAL, whose cache grows up to its limit."""
    layers = getattr(array.__dask_graph__(), "layers", {})
    values = [value for layer in layers.values() if len(layer) == 1 for value in layer.values()]
    found = [each for each in (_inside(value, _is_of_rasterio) for value in values) if each is not None]
    if not found:
        return 0
    rasterio = importlib.import_module("rasterio")
    with rasterio.Env():
        limit = rasterio.env.get_gdal_config("GDAL_CACHEMAX")
    whole = sum(math.prod(each.shape) * np.dtype(each.dtype).itemsize for each in found)
    return min(whole, int(limit))


def _is_of_rasterio(value: Any) -> bool:
    return type(value).__name__ == "RasterioArrayWrapper"


def _layer_of(key: Any) -> str:
    return str(key[0] if isinstance(key, tuple) else key)
