"""Zarr arrays that a dask array was made from: found in its graph, where they can be found."""

from __future__ import annotations

from typing import Any

import dask.array as da
import zarr

__all__ = ["stores_of"]

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


def _inside(value: Any) -> zarr.Array[Any] | None:
    value = getattr(value, "value", value)  # of dask's node of a graph
    for _ in range(_DEPTH):
        if value is None or isinstance(value, zarr.Array):
            return value
        value = getattr(value, "array", getattr(value, "_array", None))
    return None
