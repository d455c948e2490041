"""Passes over row blocks whose results are small: of each block by itself, or reduced to one.

Where a named store keeps the product that they are made for, it keeps what they find as well (`parts.py`), and what an
earlier run found is not found again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import Task, TaskRef

from .execution import FAN_IN, active_client, compute, compute_each, map_to_objects, objects_of, reduce_blocks
from .groups import Grouped, blocks_a_task, grouped
from .parts import PartialSums, Parts, current_parts, token_of, unit_name

__all__ = ["mapped", "reduced"]

#: Partial sums of one computation.
_AT_ONCE = 32


def mapped(
    function: Callable[..., dict[str, Any]],
    blocks: da.Array,
    *,
    name: str,
    weights: da.Array | None = None,
    **kwargs: Any,
) -> list[dict[str, Any]]:
    """The small dicts that a function makes of the blocks, in block order; see `map_to_objects`."""
    lazy = map_to_objects(function, blocks, name=name, weights=weights, **kwargs)
    parts = current_parts()
    if parts is None:
        return objects_of(lazy)
    n_blocks = blocks.numblocks[0]
    record = parts.begin(name, n_blocks, token_of((function, kwargs)))
    found = dict(record.found)
    missing = [number for number in range(n_blocks) if unit_name(0, number) not in found]

    def done(place: int, box: Any) -> None:
        unit = unit_name(0, missing[place])
        found[unit] = box.item()
        record.add(unit, found[unit])

    if missing:
        tasks = lazy.to_delayed().ravel()
        compute_each([tasks[number] for number in missing], done)
    return [found[unit_name(0, number)] for number in range(n_blocks)]


def reduced(
    function: Callable[..., Any],
    combine: Callable[[list[Any]], Any],
    blocks: da.Array,
    *,
    name: str,
    weights: da.Array | None = None,
) -> Any:
    """What the blocks are reduced to; see `reduce_blocks`, whose tree this one has."""
    parts = current_parts()
    if parts is None:
        return compute(reduce_blocks(function, combine, blocks, name=name, weights=weights))[0]
    return _recorded(parts, function, combine, blocks, name, weights)


def _recorded(
    parts: Parts, function: Callable[..., Any], combine: Any, blocks: da.Array, name: str, weights: da.Array | None
) -> Any:
    n_blocks = blocks.numblocks[0]
    sums = PartialSums(combine, FAN_IN, n_blocks, parts.begin(name, n_blocks, token_of((function, combine))))
    level = _unit_level(n_blocks)
    missing = [place for place in range(sums.lengths[level]) if not sums.has(level, place)]
    if not missing:
        return sums.result
    lazy = map_to_objects(function, blocks, name=name, weights=weights, numbered=False)
    sums_of = _sums_of(lazy, combine, level, f"{name}-sum")
    # Workers let go of a sum when it has come; a local scheduler keeps all of a computation.
    at_once = _AT_ONCE if active_client() is None else len(missing)
    for start in range(0, len(missing), at_once):
        places = missing[start : start + at_once]
        compute_each(sums_of(places), partial(_add, sums, level, places))
    return sums.result


def _add(sums: PartialSums, level: int, places: list[int], which: int, value: Any) -> None:
    sums.add(level, places[which], _unboxed(value))


def _unit_level(n_blocks: int) -> int:
    """Level of the nodes that are kept: single blocks of few, sums of `FAN_IN` of many, of its square of very many."""
    return next((level for level in (0, 1) if n_blocks <= FAN_IN ** (2 * level + 1)), 2)


def _sums_of(lazy: da.Array, combine: Any, level: int, name: str) -> Callable[[list[int]], list[Any]]:
    """What makes the lazy nodes of a level of a tree over boxed results; all of them share one graph."""
    several = None if level == 0 else grouped(lazy, blocks_a_task(lazy.numblocks[0]))
    if several is not None:
        return partial(_nodes_of, several, combine, level)
    boxes = list(lazy.to_delayed().ravel())
    if level == 0:
        return lambda places: [boxes[place] for place in places]
    task = partial(_combined, combine)

    def made(places: list[int]) -> list[Any]:
        layer: dict[str, Task] = {}

        def node(level: int, place: int) -> Any:
            if level == 0:
                return boxes[place].key
            last = -(-len(boxes) // FAN_IN ** (level - 1))
            parts = [node(level - 1, k) for k in range(place * FAN_IN, min((place + 1) * FAN_IN, last))]
            key = f"{name}-{uuid.uuid4().hex}"
            layer[key] = Task(key, task, *map(TaskRef, parts))
            return key

        keys = [node(level, place) for place in places]
        whole = f"{name}-{uuid.uuid4().hex}"
        graph = HighLevelGraph.from_collections(whole, layer, dependencies=[boxes[0]])
        return [Delayed(key, graph, layer=whole) for key in keys]

    return made


def _nodes_of(several: Grouped, combine: Any, level: int, places: list[int]) -> list[Any]:
    keys, layer, graph = several.sums(combine, level, places)
    return [Delayed(key, graph, layer=layer) for key in keys]


def _combined(combine: Callable[[list[Any]], Any], *parts: Any) -> Any:
    return combine([_unboxed(part) for part in parts])


def _unboxed(value: Any) -> Any:
    """A result, which is boxed where it is one block's."""
    return value.item() if isinstance(value, np.ndarray) else value
