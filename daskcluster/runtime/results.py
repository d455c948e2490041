"""What a fit on a distributed cluster says of every row, held so that touching it reads no input again."""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import dask.array as da
import numpy as np
from dask.core import flatten
from dask.delayed import Delayed
from numpy.typing import NDArray

from .blocks import check_blocks
from .clients import active_client, large_graphs
from .execution import map_to_objects, objects_of, persist
from .pieces import task_name
from .products import budget_bytes

__all__ = ["Results"]


class Results:
    """Holds the outputs of one fit that have an entry a row.

    Parameters
    ----------
    inner : bool
        Whether the fit is a step of another one, which takes its outputs over at once: they stay with the workers.

    Notes
    -----
    Outputs are held by this process while all of them together fit into the budget. They outlive the client, and no
    worker that dies takes any of them along. Larger ones are held by the workers, which spill to their disks. The
    scheduler knows how each block was made, and has it made again when its worker dies; without the client the fitted
    model makes them anew from the rows.
    """

    def __init__(self, inner: bool) -> None:
        self._left = 0 if inner else budget_bytes()

    def keep(self, name: str, array: da.Array, again: Callable[[], da.Array] | None) -> da.Array:
        """Compute an output now and hold it.

        Parameters
        ----------
        name : str
        array : dask array (n, ...)
        again : callable, optional
            Gives the same in the same blocks, as the fitted model makes it from the rows.

        Returns
        -------
        dask array
            Lazy, in the same blocks.
        """
        array = check_blocks(f"the output {name!r}", array)
        if array.nbytes <= self._left:
            self._left -= array.nbytes
            # Block by block: joined, they would be needed twice at a time.
            boxes = objects_of(map_to_objects(_as_it_is, array, name=task_name(name)))
            name = f"dc-{name}-{uuid.uuid4().hex}"
            keys = _keys_of(array, name)
            return _lazy(_Graph(keys, dict(zip(keys, (box["block"] for box in boxes), strict=True))), name, array)
        held = persist(array)[0]
        if again is None:
            return held
        made = again().astype(array.dtype)
        return _lazy(_Graph(_keys_of(array, made.name), made.__dask_graph__(), held), made.name, array)


def _as_it_is(block: NDArray[Any], number: int) -> dict[str, Any]:
    return {"block": block}


def _keys_of(array: da.Array, name: str) -> list[Any]:
    return [(name, *key[1:]) for key in flatten(array.__dask_keys__())]


def _lazy(graph: Mapping[Any, Any], name: str, like: da.Array) -> da.Array:
    return da.Array(graph, name, like.chunks, dtype=like.dtype, meta=np.empty((0,) * like.ndim, like.dtype))


class _Graph(Mapping[Any, Any]):
    """The task graph of a held output: one for the cluster that holds it, another one elsewhere.

    A graph that goes to a cluster is pickled; then the blocks are futures there, so that the scheduler knows who needs
    them, and no block travels twice. Local schedulers find the blocks themselves, or the tasks that make them.

    Parameters
    ----------
    keys : list
        Of the blocks.
    tasks : mapping
        Key -> block or task: what a local scheduler is given.
    held : dask array, optional
        Persisted: the blocks where a cluster made and holds them. Without it `tasks` are blocks of this process, which
        are sent to the cluster that first asks for them, once.
    """

    def __init__(self, keys: list[Any], tasks: Mapping[Any, Any], held: da.Array | None = None) -> None:
        self._keys = keys
        self._tasks = tasks
        self._futures: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        self._sends = held is None
        if held is not None:
            self._futures[active_client()] = _futures_in(held)

    def __getitem__(self, key: Any) -> Any:
        return self._tasks[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def __reduce__(self) -> Any:
        client = active_client()
        futures = None if client is None else self._on(client)
        return dict, (dict(self._tasks) if futures is None else dict(zip(self._keys, futures, strict=True)),)

    def _on(self, client: Any) -> list[Any] | None:
        """The blocks on a cluster, sent there if they were not or are lost; None if it shall make them itself."""
        futures = self._futures.get(client)
        if futures is not None and not any(future.status in ("cancelled", "lost", "error") for future in futures):
            return futures
        if not self._sends:
            return None
        with large_graphs:
            self._futures[client] = client.compute(
                [Delayed(key, {key: self._tasks[key]}) for key in self._keys], optimize_graph=False
            )
        return self._futures[client]


def _futures_in(array: da.Array) -> list[Any]:
    graph = array.__dask_graph__()
    return [graph[key] for key in flatten(array.__dask_keys__())]
