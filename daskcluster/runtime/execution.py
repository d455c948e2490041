"""The only place where the library computes: on the scheduler that is active, under one BLAS thread."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..errors import ClusterLostError, WorkersKilledError
from . import clients, compiling, forking, progress  # noqa: F401  # two have a part in every process that computes
from .clients import active_client, gather
from .groups import FAN_IN, blocks_a_task, grouped
from .limits import promised_now
from .pieces import as_column, once, one_a_row
from .released import released_on_failure
from .threads import one_blas_thread

__all__ = [
    "FAN_IN",
    "active_client",
    "add_parts",
    "apply_by_tiles",
    "beside",
    "compute",
    "compute_each",
    "map_rows",
    "map_to_objects",
    "objects_of",
    "persist",
    "reduce_blocks",
    "runs_in_process",
    "tiles",
]

logger = logging.getLogger("daskcluster")

#: Rows of a block that a task works on together: what lies between stays in the cache, and needs no fresh memory.
TILE_ROWS = 2**13


def runs_in_process() -> bool:
    """Whether tasks run in this process, so that they see its memory."""
    client = active_client()
    if client is not None:
        return bool(getattr(client.cluster, "processes", True) is False)
    get = dask.base.get_scheduler()
    return get is None or "multiprocessing" not in getattr(get, "__module__", "")


def compute(*collections: Any) -> tuple[Any, ...]:
    """``dask.compute`` on the active scheduler, reporting to the current stage."""
    return _run(dask.compute, collections)


def compute_each(tasks: Sequence[Any], done: Callable[[int, Any], None]) -> None:
    """Compute delayed values, and hand over each as soon as it is there, in this thread: its place, and the value.

    On a cluster a value is released by the workers when it was handed over, so one that dies takes nothing along but
    what it was at.
    """
    client = active_client()
    places = {task.key: place for place, task in enumerate(tasks)}
    if client is None:
        seen = set[int]()

        def see(key: Any, value: Any, *state: Any) -> None:
            if key in places:
                seen.add(places[key])
                done(places[key], value)

        with one_blas_thread(), progress.watch_local(see) as watched:
            values = dask.compute(*tasks, **watched)
        for place, value in enumerate(values):
            if place not in seen:  # by a scheduler that calls nobody back
                done(place, value)
        return
    with _cluster_work(client):
        from distributed import as_completed
        from distributed.client import futures_of

        futures = futures_of(dask.persist(*tasks))
        clients.hold_futures(futures)
        arriving = as_completed(futures, loop=client.loop)
        with progress.watch_each(len(futures)) as advance:
            del futures
            for batch in arriving.batches():
                for future, value in zip(batch, client.gather(batch), strict=True):
                    done(places[future.key], value)
                    future.release()
                    advance()


def persist(*collections: Any) -> tuple[Any, ...]:
    """``dask.persist`` on the active scheduler, reporting to the current stage; returns when the work is done."""
    return _run(dask.persist, collections)


def _run(action: Callable[..., tuple[Any, ...]], collections: tuple[Any, ...]) -> tuple[Any, ...]:
    client = active_client()
    if client is None:
        with one_blas_thread(), progress.watch_local() as watched:
            return action(*collections, **watched)
    return _run_on_cluster(client, action, collections)


def _run_on_cluster(
    client: Any, action: Callable[..., tuple[Any, ...]], collections: tuple[Any, ...]
) -> tuple[Any, ...]:
    from distributed import wait

    with _cluster_work(client):
        persisted = dask.persist(*collections)
        clients.hold_futures(persisted)
        # `wait` takes the current client, and not the one that dask computes with.
        with client.as_current(), progress.watch_distributed(client, persisted):
            wait(persisted)
        return persisted if action is dask.persist else gather(client, persisted)


@contextlib.contextmanager
def _cluster_work(client: Any) -> Iterator[None]:
    """What surrounds work on a cluster."""
    from distributed import KilledWorker

    with one_blas_thread(), clients.large_graphs, clients.outside_the_pool(), released_on_failure():
        try:
            if not client.nthreads():
                logger.warning("waiting for workers: the scheduler %s has none yet", client.scheduler.address)
            with clients.telling_of_pauses(client):
                yield
        except KilledWorker as error:
            raise WorkersKilledError(clients.killed_message(progress.stage_name(), promised_now())) from error
        except clients.losses() as error:
            raise ClusterLostError(clients.lost_message(client, progress.stage_name(), error)) from error


def tiles(n_rows: int) -> Iterator[slice]:
    """Cut a block into pieces of `TILE_ROWS` rows."""
    for start in range(0, n_rows, TILE_ROWS):
        yield slice(start, min(start + TILE_ROWS, n_rows))


def apply_by_tiles(
    function: Callable[..., Any], block: Any, shape: tuple[int, ...], dtype: Any, **kwargs: Any
) -> NDArray[Any]:
    """Apply a row-wise function to a block (rows, ...) piece by piece -> (rows, *shape)."""
    if len(block) <= TILE_ROWS:
        return np.asarray(function(block, **kwargs), dtype)
    out = np.empty((len(block), *shape), dtype)
    for tile in tiles(len(block)):
        out[tile] = function(block[tile], **kwargs)
    return out


class _Task:
    """A function as a task: one BLAS thread."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *arguments: Any, **kwargs: Any) -> Any:
        with one_blas_thread():
            return self.function(*arguments, **kwargs)

    def __dask_tokenize__(self) -> Any:
        from dask.base import normalize_token

        return ("daskcluster-task", normalize_token(self.function))


def map_rows(
    function: Callable[..., Any],
    blocks: da.Array,
    *,
    name: str,
    columns: int | None,
    dtype: Any,
    numbered: bool = False,
    **kwargs: Any,
) -> da.Array:
    """Apply a row-wise function to every row block: (rows, ...) -> (rows, columns), or (rows,) when `columns` is None.

    Parameters
    ----------
    name : str
        Prefix of the task names, as a dashboard shows it.
    numbered : bool
        Give the function whole blocks, and the block's number as `number`; else it gets tiles of blocks.
    **kwargs
        Handed to the function; a ``dask.delayed`` value travels once, not with every task.
    """
    task: Any = partial(_numbered, _Task(function))
    if not numbered:
        task = _Task(partial(_tiled, function, () if columns is None else (columns,), np.dtype(dtype)))
        if columns is None and blocks.ndim == 2:
            return one_a_row(task, blocks, name=name, dtype=dtype, **kwargs)
    if columns is None:
        shape: dict[str, Any] = {"drop_axis": 1} if blocks.ndim == 2 else {}
        meta = np.empty((0,), dtype)
    else:
        shape = {"chunks": (blocks.chunks[0], (columns,))}
        meta = np.empty((0, 0), dtype)
    return blocks.map_blocks(task, token=name, dtype=dtype, meta=meta, **shape, **kwargs)


def _tiled(function: Callable[..., Any], shape: tuple[int, ...], dtype: Any, block: Any, **kwargs: Any) -> Any:
    return apply_by_tiles(function, block, shape, dtype, **kwargs)


def _numbered(function: Callable[..., Any], block: Any, block_id: tuple[int, ...] = (0,), **kwargs: Any) -> Any:
    return function(block, number=block_id[0], **kwargs)


def map_to_objects(
    function: Callable[..., dict[str, Any]],
    blocks: da.Array,
    *,
    name: str,
    weights: da.Array | None = None,
    numbered: bool = True,
    **kwargs: Any,
) -> da.Array:
    """Apply a block function that returns a small dict: -> object array of one box a block, see `objects_of`.

    It has the axes of the blocks: with one less, dask would run a second task a block. The function takes the block's
    number as `number`, unless it is not `numbered`, and the block's `weights` (rows, 1) when these are given.
    """
    others = [] if weights is None else [as_column(weights)]
    return da.map_blocks(
        partial(_boxed, _Task(function), numbered),
        blocks,
        *others,
        token=name,
        dtype=object,
        meta=np.empty((0,) * blocks.ndim, object),
        chunks=((1,) * blocks.numblocks[0], (1,))[: blocks.ndim],
        **kwargs,
    )


def objects_of(boxes: da.Array) -> list[Any]:
    """Compute what `map_to_objects` gives, in tasks of several blocks where there are very many."""
    several = grouped(boxes, blocks_a_task(boxes.numblocks[0]))
    return list(compute(boxes if several is None else several.objects())[0].ravel())


def _boxed(
    function: Callable[..., Any],
    numbered: bool,
    block: Any,
    weights: Any = None,
    block_id: tuple[int, ...] = (0,),
    **kwargs: Any,
) -> Any:
    if weights is not None:
        kwargs["weights"] = weights
    if numbered:
        kwargs["number"] = block_id[0]
    box = np.empty((1,) * block.ndim, object)
    box.flat[0] = function(block, **kwargs)
    return box


def reduce_blocks(
    function: Callable[..., Any],
    combine: Callable[[list[Any]], Any],
    blocks: da.Array,
    *,
    name: str,
    weights: da.Array | None = None,
) -> da.Array:
    """Reduce row blocks by a tree of fixed shape: chunk results are combined in block order, `FAN_IN` at a time.

    Parameters
    ----------
    function : callable
        block -> partial result, a dict; called with `weights` (rows, 1) as well when these are given.
    combine : callable
        List of partial results in block order -> partial result.

    Returns
    -------
    0-d dask array whose value is the combined dict.

    Notes
    -----
    At most ``FAN_IN`` partial results of each level of one branch are needed at a time. Of very many blocks one task
    makes and combines those of a node of the lowest level.
    """
    if (size := blocks_a_task(blocks.numblocks[0])) > 1:
        several = grouped(map_to_objects(function, blocks, name=name, weights=weights, numbered=False), size)
        if several is not None:
            return several.total(combine)
    chunk: Any = partial(_reduce_chunk, _Task(function))
    if weights is not None:
        # dask's reduction would bring the weights to the shape of the blocks, in tasks of its own.
        blocks = map_to_objects(partial(_weighed, function=function), blocks, name=name, weights=weights)
        chunk = _passed
    return da.reduction(
        blocks,
        chunk=chunk,
        combine=partial(_reduce_combine, combine),
        aggregate=partial(_reduce_combine, combine),
        axis=tuple(range(blocks.ndim)),
        concatenate=False,
        split_every={axis: FAN_IN if axis == 0 else 2 for axis in range(blocks.ndim)},
        name=name,
        dtype=object,
        meta=np.empty((), object),
    )


def add_parts(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Add partial results of blocks, in block order: the combining step of `reduce_blocks` for sums.

    Every entry is a sum, but for ``first``: the numbers of first rows, -1 for none, which count from the part's own
    first row on; ``rows`` has the length of each part.
    """
    total = {key: np.copy(value) if isinstance(value, np.ndarray) else value for key, value in parts[0].items()}
    for part in parts[1:]:
        if "first" in total:
            new = (total["first"] < 0) & (part["first"] >= 0)
            total["first"][new] = part["first"][new] + total["rows"]
        for key in total.keys() - {"first"}:
            total[key] = total[key] + part[key]
    return total


def beside(function: Callable[..., Any], name: str, arguments: Sequence[tuple[Any, ...]], **shared: Any) -> list[Any]:
    """Call a function for each tuple of arguments, as tasks beside each other; `shared` arguments travel once."""
    task = dask.delayed(_Task(function), pure=False)
    small = {key: value for key, value in shared.items() if value is None or isinstance(value, int | float | str)}
    others = {key: once(value, key) for key, value in shared.items() if key not in small}
    calls = [task(*each, **small, **others, dask_key_name=f"{name}-{uuid.uuid4().hex}") for each in arguments]
    return list(compute(*calls))


def _reduce_chunk(function: Callable[..., Any], block: Any, *, axis: Any, keepdims: Any) -> Any:
    if block.size == 0:
        return block  # dask tries an empty block to learn the type
    return function(block)


def _weighed(block: Any, number: int, weights: Any, function: Callable[..., Any]) -> Any:
    return function(block, weights=weights)


def _passed(block: Any, *, axis: Any, keepdims: Any) -> Any:
    return block.item() if block.size else block


def _reduce_combine(combine: Callable[[list[Any]], Any], partials: Any, axis: Any, keepdims: Any) -> Any:
    return combine(list(_flatten(partials)))


def _flatten(nested: Any) -> Any:
    if isinstance(nested, list):
        for item in nested:
            yield from _flatten(item)
    else:
        yield nested
