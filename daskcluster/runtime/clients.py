"""Work on a distributed cluster: which client does it, and how it is left when a stage ends or a task waits."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import dask
from dask.base import is_dask_collection

from ..errors import ClusterLostError
from .released import hold
from .threads import Shared

__all__ = [
    "active_client",
    "gather",
    "hold_futures",
    "killed_message",
    "losses",
    "lost_message",
    "large_graphs",
    "of_one_client",
    "outside_the_pool",
    "telling_of_pauses",
    "warm_cluster",
]

logger = logging.getLogger("daskcluster")

#: Seconds between two looks at a cluster that is waited for.
LOOK_SECONDS = 30.0


#: The client with which the fit of this context began.
_begun_with: ContextVar[Any] = ContextVar("daskcluster_client", default=None)


def active_client() -> Any | None:
    """The distributed client whose scheduler dask would use now, or None for a local scheduler.

    Raises
    ------
    ClusterLostError
        If the fit that runs in this context began on a client that is closed by now: dask would go on with the threads
        of this process.
    """
    begun_with = _begun_with.get()
    if begun_with is not None and begun_with.status == "closed":
        raise ClusterLostError(lost_message(begun_with, None))
    if "distributed" not in sys.modules:
        return None
    from distributed import Client

    get = dask.base.get_scheduler()
    owner = getattr(get, "__self__", None)
    return owner if isinstance(owner, Client) else None


@contextlib.contextmanager
def of_one_client() -> Iterator[None]:
    """Context of a fit: what it begins on a cluster does not go on in this process."""
    token = _begun_with.set(active_client())
    try:
        yield
    finally:
        _begun_with.reset(token)


def warm_cluster() -> None:
    """Have the processes of the active cluster import the package while the caller goes on."""
    client = active_client()
    if client is not None:
        from .warming import warm

        warm(client)


#: No warning about large graphs: NumPy input travels inside them, the caller chose that, and it is documented.
large_graphs = Shared(lambda: dask.config.set({"distributed.admin.large-graph-warning-threshold": "1024 PiB"}))


@contextlib.contextmanager
def outside_the_pool() -> Iterator[None]:
    """Inside a worker's task give the thread back while waiting: fits in all of them would wait for each other."""
    from distributed import get_worker, rejoin, secede

    try:
        get_worker()
        secede()
    except (ValueError, KeyError, AttributeError):
        # No worker; or a thread that left its pool before, by `secede` or `worker_client`; or one that was never in it.
        yield
        return
    try:
        yield
    finally:
        rejoin()


def hold_futures(collections: Any) -> None:
    """Note the futures of persisted collections, which a failure releases."""
    from distributed.client import futures_of

    hold(futures_of(collections))


def gather(client: Any, persisted: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of persisted collections, put together here: `dask.compute` would run one more task for that."""
    from distributed.client import futures_of

    collections = [each for each in persisted if is_dask_collection(each)]
    futures = {future.key: future for future in futures_of(collections)}
    found = client.gather(_for_keys([each.__dask_keys__() for each in collections], futures))
    values = []
    for part, collection in zip(found, collections, strict=True):
        finalize, arguments = collection.__dask_postcompute__()
        values.append(finalize(part, *arguments))
    # What is no collection is its own value, as `dask.compute` has it.
    computed = iter(values)
    return tuple(next(computed) if is_dask_collection(each) else each for each in persisted)


def _for_keys(keys: Any, futures: dict[Any, Any]) -> Any:
    return [_for_keys(key, futures) for key in keys] if isinstance(keys, list) else futures[keys]


@contextlib.contextmanager
def telling_of_pauses(client: Any) -> Iterator[None]:
    """Context in which a warning is logged when all workers stay paused for a whole interval: nothing begins."""
    ended = threading.Event()

    def look() -> None:
        paused = 0
        while not ended.wait(LOOK_SECONDS):
            try:
                paused = paused + 1 if _all_paused(client) else 0
            except Exception:  # what is wrong with the cluster is told where it is waited for
                return
            if paused == 2:
                logger.warning(
                    "all workers have paused: their memory is nearly full and they begin no task, so the fit may stand "
                    "still; end it and give the workers more memory or fewer threads (plan says how much)"
                )

    threading.Thread(target=look, name="daskcluster-pauses", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _all_paused(client: Any) -> bool:
    """Whether there are workers and none of them takes tasks."""
    states = {worker["status"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()}
    return states == {"paused"}


def killed_message(stage: str | None, promised: str | None) -> str:
    """What a user is told of workers that died over one task."""
    where = "" if stage is None else f" in stage {stage!r}"
    plan = "plan(X) says what a worker needs, storage= keeps finished work" if promised is None else promised
    return (
        f"a worker process died, and others with the same task{where}, most often for lack of memory: give the workers "
        f"more memory or fewer threads, or store X in smaller chunks; {plan}"
    )


def losses() -> tuple[type[Exception], ...]:
    """What dask raises when the scheduler is gone, or what it kept for a client."""
    from concurrent.futures import CancelledError

    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError

    return CancelledError, CommClosedError, ClosedClientError


def lost_message(client: Any, stage: str | None, error: Exception | None = None) -> str:
    """What a user is told whose fit lost its scheduler, or what workers held for it; `error` is one of `losses`."""
    from concurrent.futures import CancelledError

    where = "" if stage is None else f" in stage {stage!r}"
    what = f"the connection to the scheduler {client.scheduler.address if client.scheduler else ''} was lost"
    then = "make a client of a scheduler that runs"
    # The client may learn of it later than who waits for it.
    cancelled = isinstance(error, CancelledError) and "scheduler-connection-lost" not in str(error)
    if cancelled and client.status == "running":
        what = "what the workers held for the fit was cancelled, or lost with a worker that had the only copy"
        then = "fit again"
    return f"{what}{where}: {then}; with storage= the same call goes on from the finished work"
