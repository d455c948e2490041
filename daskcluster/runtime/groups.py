"""Tasks of several row blocks: where there are many blocks, a scheduler has an eighth of the tasks to move.

The arithmetic stays that of single blocks, in the same tree of sums: only which task does it changes. A task makes the
blocks one after the other, so it needs no more memory than before: the results of `FAN_IN` blocks, which a reduction
brings together in one task anyway. A sum over its blocks is all that leaves it.

What a pass does travels once to each worker, as the symbolic layer of the task graph that would make all of its tasks;
a task is that and two numbers. So neither the graph nor the client's work grows with the number of blocks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.blockwise import Blockwise, optimize_blockwise
from dask.highlevelgraph import HighLevelGraph, Layer, MaterializedLayer
from dask.task_spec import Task, TaskRef

from .clients import active_client
from .limits import threads_per_worker
from .pieces import once

__all__ = ["FAN_IN", "Grouped", "PickedBlocks", "blocks_a_task", "grouped", "held_blocks"]

#: Partial results that one task of a tree reduction combines; and blocks of a task where it has several.
FAN_IN = 8
#: Fewer blocks are a task each.
LEAST_BLOCKS = 512
#: Fewer than those, but not than these, are where workers of a cluster have them: a task costs milliseconds there.
LEAST_BLOCKS_ON_WORKERS = 64
#: Then the threads share them evenly: the longest wait for the last one, as a share of the pass; and more tasks a
#: thread than so many, for a scheduler spreads only those, and puts others where what they share is.
UNEVEN, SPREAD = 1 / 8, 2
#: Tasks of each thread that are left of very many blocks. Threads may end a pass unevenly, but a scheduler that hands
#: out eight times the tasks is slower from some 10 threads on.
TASKS_A_THREAD = 1
#: Threads of a cluster whose workers have not come yet.
LIKELY_THREADS = 64
#: Rows that workers hold for later passes are no longer pieces than that: one may travel, or be read back from a disk.
HELD_BYTES = 64 * 2**20


def blocks_a_task(n_blocks: int) -> int:
    """Row blocks that a task of a pass works on: 1, or `FAN_IN` of many."""
    if n_blocks < min(LEAST_BLOCKS, LEAST_BLOCKS_ON_WORKERS):
        return 1
    client = active_client()
    if client is None and n_blocks < LEAST_BLOCKS:
        return 1
    threads = threads_per_worker() if client is None else sum(client.nthreads().values()) or LIKELY_THREADS
    if n_blocks >= LEAST_BLOCKS:
        return FAN_IN if n_blocks >= FAN_IN * TASKS_A_THREAD * threads else 1
    tasks = -(-n_blocks // FAN_IN)
    longest = FAN_IN * -(-tasks // threads)
    return FAN_IN if tasks > SPREAD * threads and longest * threads <= (1 + UNEVEN) * n_blocks else 1


def held_blocks(n_blocks: int, block_bytes: int) -> int:
    """Blocks, of so many bytes, of which workers hold the rows as one piece."""
    if active_client() is None or FAN_IN * block_bytes > HELD_BYTES:
        return 1
    return blocks_a_task(n_blocks)


def grouped(array: da.Array, size: int) -> Grouped | None:
    """The row blocks of an array, so many a task; None where that is 1, or tasks of others make what they need.

    Each block must be made by itself from what is shared, as rows are that are read from a store; or from rows that
    workers hold in pieces of `size` blocks.
    """
    graph = array.__dask_graph__()
    if size == 1 or not isinstance(graph, HighLevelGraph):
        return None
    n_blocks = array.numblocks[0]
    graph = optimize_blockwise(graph, keys=[(array.name,) + (0,) * array.ndim])
    made, held = dict[str, Blockwise](), dict[str, PickedBlocks]()
    waiting = [array.name]
    while waiting:
        name = waiting.pop()
        layer = graph.layers[name]
        if isinstance(layer, PickedBlocks) and layer.size == size:
            held[name] = layer
        elif isinstance(layer, Blockwise) and _by_blocks(layer, n_blocks):
            made[name] = layer
            waiting.extend(source for source, index in layer.indices if index is not None)
            waiting = [source for source in waiting if source not in layer.io_deps and source not in made]
        else:
            return None
    return Grouped(array, size, graph, made, held)


def _by_blocks(layer: Blockwise, n_blocks: int) -> bool:
    """Whether a layer makes each row block from those of the same number."""
    if any(each.produces_keys for each in layer.io_deps.values()):
        return False
    lengths = [layer.numblocks[source] for source, index in layer.indices if index is not None]
    first = {index[0] for source, index in layer.indices if index}
    return first <= {layer.output_indices[0]} and all(
        length[0] == n_blocks and set(length[1:]) <= {1} for length in lengths
    )


class PickedBlocks(Layer):
    """The layer of a task graph that takes row blocks out of pieces of several blocks.

    Parameters
    ----------
    name : str
    pieces : str
        Name of the array whose chunks are the pieces: lists of dicts with a `block`.
    n_blocks, size : int
        Blocks, and those of a piece.
    ndim : int
        Axes of a block.
    """

    def __init__(self, name: str, pieces: str, n_blocks: int, size: int, ndim: int) -> None:
        super().__init__()
        self.name, self.pieces, self.n_blocks, self.size = name, pieces, n_blocks, size
        self._rest = (0,) * (ndim - 1)

    def piece(self, number: int) -> Any:
        """Key of the piece that has a block."""
        return (self.pieces, number // self.size)

    def is_materialized(self) -> bool:
        """Tasks are made when somebody asks for them."""
        return False

    @property
    def has_legacy_tasks(self) -> bool:
        """None of its tasks is a tuple."""
        return False

    def get_output_keys(self) -> set[Any]:
        """Keys of all blocks."""
        return set(self)

    def cull(self, keys: set[Any], all_hlg_keys: Any) -> tuple[Layer, dict[Any, set[Any]]]:
        """The tasks of those of the keys that are blocks, and the pieces that these need."""
        tasks = {key: self[key] for key in keys if key in self}
        return MaterializedLayer(tasks), {key: {self.piece(key[1])} for key in tasks}

    def __contains__(self, key: Any) -> bool:
        return isinstance(key, tuple) and key[0] == self.name and key[2:] == self._rest

    def __getitem__(self, key: Any) -> Task:
        if key not in self:
            raise KeyError(key)
        return Task(key, _picked, TaskRef(self.piece(key[1])), key[1] % self.size)

    def __iter__(self) -> Iterator[Any]:
        return ((self.name, number, *self._rest) for number in range(self.n_blocks))

    def __len__(self) -> int:
        return self.n_blocks


def _picked(piece: list[dict[str, Any]], place: int) -> Any:
    return piece[place]["block"]


@dataclass(frozen=True)
class _Recipe:
    """How a block of an array is made: by layers of tasks, from keys that are shared by all, and from held rows."""

    name: str
    axes: int
    layers: Mapping[str, Blockwise]
    shared: tuple[Any, ...]
    held: tuple[PickedBlocks, ...]

    def blocks(self, start: int, stop: int, *values: Any) -> Iterator[Any]:
        """Blocks by their numbers, one after the other; `values` are those of `shared`, and a piece of each `held`."""
        found = dict(zip(self.shared, values, strict=False))
        pieces = {each.name: (each, values[len(found) + place]) for place, each in enumerate(self.held)}
        tasks: dict[Any, Any] = {}
        for name, layer in self.layers.items():
            rest = (0,) * (len(layer.output_indices) - 1)
            tasks.update(layer.cull({(name, number, *rest) for number in range(start, stop)}, ())[0])

        def made(key: Any) -> Any:
            if key in found:
                return found[key]
            if key[0] in pieces:
                layer, piece = pieces[key[0]]
                return _picked(piece, key[1] % layer.size)
            task = tasks[key]
            return task({need: made(need) for need in task.dependencies})

        for number in range(start, stop):
            yield made((self.name, number) + (0,) * (self.axes - 1))


class Grouped:
    """What the blocks of an array are made into by tasks of several.

    Parameters
    ----------
    array : dask array
        Boxes of objects, one a block, see `map_to_objects`.
    size : int
    graph : HighLevelGraph
    made : dict
        The layers of it that make a block.
    held : dict
        Those that it is made from.
    """

    def __init__(
        self,
        array: da.Array,
        size: int,
        graph: HighLevelGraph,
        made: dict[str, Blockwise],
        held: dict[str, PickedBlocks],
    ) -> None:
        self.n_blocks, self.size = array.numblocks[0], size
        self._name = array.name.rpartition("-")[0]
        self._held = tuple(held.values())
        sources = [source for layer in made.values() for source, _ in layer.indices]
        shared = tuple(dict.fromkeys(source.key for source in sources if isinstance(source, TaskRef)))
        self._recipe = once(_Recipe(array.name, array.ndim, made, shared, self._held), "recipe")
        self._values = [TaskRef(key) for key in (self._recipe.key, *shared)]
        needs = {name for layer in made for name in graph.dependencies[layer]} - made.keys() - held.keys()
        needs.update(each.pieces for each in self._held)
        self._behind = _shared_graph(graph, needs, self._recipe)
        self._needs = needs | {self._recipe.key}

    def objects(self) -> da.Array:
        """The values of boxes: (n_blocks,) objects, so many a chunk."""
        name = f"{self._name}-{uuid.uuid4().hex}"
        return self._array(name, {(name, place): self._task((name, place), _objects, place) for place in self._places})

    def pieces_and(self, entry: str) -> tuple[da.Array, da.Array]:
        """The values of boxes, which are dicts, as lists, to be persisted; and (n_blocks,) objects, one entry of each.

        The first is a dask array in its keys only: `picked` gives one over them.
        """
        # A name of their own: a scheduler that takes these for tasks of the pass believes that those are as short, and
        # lets a worker idle while another has one waiting.
        name, entries = (f"{name}-{uuid.uuid4().hex}" for name in (self._name, f"{self._name}-entry"))
        pieces = self._array(name, {(name, place): self._task((name, place), _list, place) for place in self._places})
        layer = {
            (entries, place): Task((entries, place), _entries, entry, TaskRef((name, place))) for place in self._places
        }
        graph = HighLevelGraph.from_collections(entries, layer, dependencies=[pieces])
        return pieces, da.Array(graph, entries, pieces.chunks, dtype=object, meta=np.empty((0,), object))

    def picked(self, pieces: da.Array, like: da.Array) -> da.Array:
        """The blocks of persisted pieces, as an array like that from which they were made."""
        name = f"dc-block-{uuid.uuid4().hex}"
        layer = PickedBlocks(name, pieces.name, self.n_blocks, self.size, like.ndim)
        graph = HighLevelGraph.from_collections(name, layer, dependencies=[pieces])
        return da.Array(graph, name, like.chunks, dtype=like.dtype, meta=np.empty((0,) * like.ndim, like.dtype))

    def sums(
        self, combine: Callable[[list[Any]], Any], level: int, places: list[int], *, whole: bool = False
    ) -> tuple[list[Any], str, Any]:
        """Nodes of a tree over the values of boxes, which are combined `FAN_IN` at a time, in block order.

        The key of one that is the `whole` is that of an array without axes.

        Returns
        -------
        keys : list
            Of the nodes `places` of a level, 1 or more; the `n_blocks` are those of level 0.
        layer : str
        graph : HighLevelGraph
            In whose `layer` they are.
        """
        token = uuid.uuid4().hex
        name, above = f"{self._name}-{token}", f"{self._name}-sum-{token}"
        layer: dict[Any, Task] = {}

        def node(level: int, place: int, key: Any = None) -> Any:
            if level == 1:
                key = key or (name, place)
                layer[key] = self._task(key, _sum, place, combine)
                return key
            key = key or (above, level, place)
            last = -(-self.n_blocks // FAN_IN ** (level - 1))
            parts = [node(level - 1, each) for each in range(place * FAN_IN, min((place + 1) * FAN_IN, last))]
            layer[key] = Task(key, _combined, combine, *map(TaskRef, parts))
            return key

        keys = [node(level, place, (above,) if whole else None) for place in places]
        return keys, above, self._graph(above, layer)

    def total(self, combine: Callable[[list[Any]], Any]) -> da.Array:
        """The root of that tree: 0-d."""
        level, length = 0, self.n_blocks
        while length > 1:
            level, length = level + 1, -(-length // FAN_IN)
        _, name, graph = self.sums(combine, level, [0], whole=True)
        return da.Array(graph, name, (), dtype=object, meta=np.empty((), object))

    @property
    def _places(self) -> range:
        return range(-(-self.n_blocks // self.size))

    def _task(self, key: Any, function: Callable[..., Any], place: int, *more: Any) -> Task:
        start = place * self.size
        stop = min(start + self.size, self.n_blocks)
        recipe, *shared = self._values
        pieces = [TaskRef(each.piece(start)) for each in self._held]
        return Task(key, function, *more, recipe, start, stop, *shared, *pieces)

    def _graph(self, name: str, layer: dict[Any, Task]) -> HighLevelGraph:
        layers, dependencies = dict(self._behind.layers), dict(self._behind.dependencies)
        layers[name], dependencies[name] = MaterializedLayer(layer), set(self._needs)
        return HighLevelGraph(layers, dependencies)

    def _array(self, name: str, layer: dict[Any, Task]) -> da.Array:
        lengths = [min(self.size, self.n_blocks - place * self.size) for place in self._places]
        return da.Array(self._graph(name, layer), name, (tuple(lengths),), dtype=object, meta=np.empty((0,), object))


def _shared_graph(graph: HighLevelGraph, names: set[str], recipe: Any) -> HighLevelGraph:
    """What some layers of a graph are made from, and the recipe."""
    recipes = recipe.__dask_graph__()
    layers, dependencies = dict(recipes.layers), dict(recipes.dependencies)
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in layers:
            layers[name], dependencies[name] = graph.layers[name], graph.dependencies[name]
            waiting.extend(dependencies[name])
    return HighLevelGraph(layers, dependencies)


def _objects(recipe: _Recipe, *numbers_and_values: Any) -> Any:
    return _as_objects(_list(recipe, *numbers_and_values))


def _entries(entry: str, piece: list[dict[str, Any]]) -> Any:
    return _as_objects([values[entry] for values in piece])


def _as_objects(values: list[Any]) -> Any:
    objects = np.empty(len(values), object)
    objects[:] = values
    return objects


def _list(recipe: _Recipe, *numbers_and_values: Any) -> list[Any]:
    return [box.item() for box in recipe.blocks(*numbers_and_values)]


def _sum(combine: Callable[[list[Any]], Any], recipe: _Recipe, *numbers_and_values: Any) -> Any:
    return combine(_list(recipe, *numbers_and_values))


def _combined(combine: Callable[[list[Any]], Any], *parts: Any) -> Any:
    return combine(list(parts))
