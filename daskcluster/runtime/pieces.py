"""Lazy arrays and values whose tasks bear our names: all that a dashboard shows of a fit begins with ``dc-``.

dask's own operations call their tasks getitem, rechunk-merge, concatenate, ndarray or NoneType, which tell nobody what
runs. These do the same for the few forms that are needed here: arrays chunked by rows.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import Alias, Task, TaskRef
from numpy.typing import NDArray

__all__ = [
    "array_pieces",
    "as_column",
    "column_range",
    "once",
    "one_a_row",
    "read_pieces",
    "recut",
    "side_by_side",
    "task_name",
]


def task_name(name: str) -> str:
    """The prefix ``dc-name`` of task names: letters and hyphens, since a dashboard ends it at other characters."""
    return "dc-" + re.sub("[^A-Za-z]+", "-", name.removeprefix("dc-")).strip("-")


def once(value: Any, name: str, *, pure: bool = False) -> Any:
    """A value that travels once to each worker, and not with every task; `pure` names equal values equally."""
    token = tokenize(value) if pure else uuid.uuid4().hex
    return dask.delayed(value, name=f"{task_name(name)}-{token}", traverse=False)


def array_pieces(array: NDArray[Any], chunks: Any, name: str) -> da.Array:
    """An array in memory as a lazy one, whose parts travel inside the graph; without hashing its content."""
    return da.from_array(array, chunks=chunks, name=f"{task_name(name)}-{uuid.uuid4().hex}")


def read_pieces(
    read: Callable[..., Any], source: Any, chunks: Any, dtype: Any, *, name: str, meta: Any = None, **kwargs: Any
) -> da.Array:
    """A lazy array whose blocks are ``read(source=source, block_id=..., **kwargs)``; the source travels once.

    `meta` is a block without rows, where they are no NumPy arrays.

    The content may change under the same source, so no name outlives this call.
    """
    return da.map_blocks(
        read,
        source=once(source, "source"),
        name=f"{task_name(name)}-{uuid.uuid4().hex}",
        chunks=chunks,
        dtype=dtype,
        meta=np.empty((0,) * len(chunks), dtype) if meta is None else meta,
        **kwargs,
    )


# -- columns -----------------------------------------------------------------------------------------------------------


def as_column(values: da.Array) -> da.Array:
    """(n,) -> (n, 1)."""
    return values.map_blocks(
        _column_of,
        token="dc-column",
        dtype=values.dtype,
        meta=np.empty((0, 0), values.dtype),
        new_axis=1,
        chunks=(values.chunks[0], (1,)),
    )


def _column_of(block: NDArray[Any]) -> NDArray[Any]:
    return block[:, None]


def one_a_row(function: Callable[..., Any], *arrays: da.Array, name: str, dtype: Any, **kwargs: Any) -> da.Array:
    """Apply a function to row blocks (rows, c) of whole rows, whose values have one entry a row: -> (n,).

    ``map_blocks(drop_axis=1)`` would join the one block of each row of blocks, and dask does not put the tasks of such
    a layer and of its neighbours together.
    """
    axes = [axis for number, array in enumerate(arrays) for axis in (array, ("rows", f"columns-{number}"))]
    whole = partial(_of_single_blocks, function, len(arrays))
    meta = np.empty(0, dtype)
    return da.blockwise(whole, ("rows",), *axes, token=task_name(name), dtype=dtype, meta=meta, **kwargs)


def _of_single_blocks(function: Callable[..., Any], n_arrays: int, *blocks: list[Any], **kwargs: Any) -> Any:
    return function(*(block[0] for block in blocks[:n_arrays]), *blocks[n_arrays:], **kwargs)


def column_range(array: da.Array, start: int, stop: int) -> da.Array:
    """Columns ``start:stop`` of an array (n, c) whose blocks are whole rows."""
    return array.map_blocks(
        _columns_of,
        start=start,
        stop=stop,
        token="dc-columns",
        dtype=array.dtype,
        meta=np.empty((0, 0), array.dtype),
        chunks=(array.chunks[0], (stop - start,)),
    )


def _columns_of(block: NDArray[Any], start: int, stop: int) -> NDArray[Any]:
    return block[:, start:stop]


def side_by_side(arrays: Sequence[da.Array], name: str) -> da.Array:
    """Arrays (n,) or (n, c) in the same row chunks -> (n, sum of c), whole rows a block, of a dtype for all."""
    dtype = np.result_type(*(array.dtype for array in arrays))
    whole = [
        as_column(array) if array.ndim == 1 else recut(array, (array.chunks[0], (array.shape[1],))) for array in arrays
    ]
    return da.map_blocks(
        _joined_columns,
        *whole,
        as_dtype=dtype,
        token=task_name(name),
        dtype=dtype,
        meta=np.empty((0, 0), dtype),
        chunks=(arrays[0].chunks[0], (sum(array.shape[1] for array in whole),)),
    )


def _joined_columns(*blocks: NDArray[Any], as_dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.asarray(block) for block in blocks], axis=1, dtype=as_dtype)


# -- other chunks ------------------------------------------------------------------------------------------------------


def recut(array: da.Array, chunks: tuple[tuple[int, ...], ...]) -> da.Array:
    """The same array in other chunks; for chunks that move between neighbours only.

    A block that lies inside a chunk is cut from it in its own task. Parts of several chunks are cut where these are,
    and only the parts travel. It is dask's ``rechunk(method="tasks")`` in one step; "p2p" stalls where workers come
    and go.
    """
    if array.chunks == chunks:
        return array
    token = tokenize(array.name, chunks)
    name, part_name = f"dc-cut-{token}", f"dc-part-{token}"
    axes = [_overlaps(old, new) for old, new in zip(array.chunks, chunks, strict=True)]
    graph: dict[Any, Any] = {}
    for place in product(*(range(len(new)) for new in chunks)):
        key = (name, *place)
        pieces = list(product(*(axis[number] for axis, number in zip(axes, place, strict=True))))
        if len(pieces) == 1:
            numbers, inside, _ = zip(*pieces[0], strict=True)
            source = (array.name, *numbers)
            graph[key] = Alias(key, source) if _is_whole(inside) else _cut(key, source, inside)
            continue
        references, targets = [], []
        for piece in pieces:
            numbers, inside, target = zip(*piece, strict=True)
            source = (array.name, *numbers)
            if not _is_whole(inside):
                part = (part_name, *place, *numbers)
                graph[part] = _cut(part, source, inside)
                source = part
            references.append(TaskRef(source))
            targets.append(target)
        shape = tuple(new[number] for new, number in zip(chunks, place, strict=True))
        graph[key] = Task(key, _join, shape, targets, *references)
    made = HighLevelGraph.from_collections(name, graph, dependencies=[array])
    return da.Array(made, name, chunks, dtype=array.dtype, meta=array._meta)


def _overlaps(old: tuple[int, ...], new: tuple[int, ...]) -> list[list[tuple[int, slice | None, slice]]]:
    """For each new chunk the old ones that it takes from: number, which part (None for all), and where that goes."""
    ends = np.cumsum(old)
    found, start = [], 0
    for length in new:
        stop = start + length
        pieces: list[tuple[int, slice | None, slice]] = []
        number = min(int(np.searchsorted(ends, start, side="right")), len(old) - 1)
        at = start
        while at < stop:
            begin, end = int(ends[number]) - old[number], min(stop, int(ends[number]))
            if end > at:
                whole = at == begin and end == int(ends[number])
                pieces.append(
                    (number, None if whole else slice(at - begin, end - begin), slice(at - start, end - start))
                )
                at = end
            number += 1
        found.append(pieces or [(number, slice(0, 0), slice(0, 0))])
        start = stop
    return found


def _is_whole(inside: Sequence[slice | None]) -> bool:
    return all(part is None for part in inside)


def _cut(key: Any, source: Any, inside: Sequence[slice | None]) -> Task:
    return Task(key, _part_of, TaskRef(source), tuple(slice(None) if part is None else part for part in inside))


def _part_of(block: NDArray[Any], inside: tuple[slice, ...]) -> NDArray[Any]:
    return block[inside]


def _join(shape: tuple[int, ...], targets: list[tuple[slice, ...]], *pieces: NDArray[Any]) -> NDArray[Any]:
    stack = getattr(pieces[0], "stack", None)
    if stack is not None:  # sparse rows, whose pieces stand one below the other
        return stack(pieces)
    joined = np.empty(shape, np.result_type(*pieces))
    for target, piece in zip(targets, pieces, strict=True):
        joined[target] = piece
    return joined
