"""Work on a distributed cluster: which client does it, and how it is left when a stage ends or a task waits."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator
from typing import Any

import dask

from .released import hold
from .threads import Shared

__all__ = ["active_client", "hold_futures", "killed_message", "large_graphs", "outside_the_pool", "wait_for"]

logger = logging.getLogger("daskcluster")

#: Seconds between two looks at a cluster that is waited for.
LOOK_SECONDS = 30.0


def active_client() -> Any | None:
    """The distributed client whose scheduler dask would use now, or None for a local scheduler."""
    if "distributed" not in sys.modules:
        return None
    from distributed import Client

    get = dask.base.get_scheduler()
    owner = getattr(get, "__self__", None)
    return owner if isinstance(owner, Client) else None


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


def wait_for(client: Any, collections: Any) -> None:
    """Wait until persisted collections are there, or have failed; say so when all workers have paused meanwhile."""
    from distributed import wait

    paused = 0
    while True:
        try:
            wait(collections, timeout=LOOK_SECONDS)
            return
        except TimeoutError:
            paused = paused + 1 if _all_paused(client) else 0
        if paused == 2:  # for a whole interval, in which nothing began
            logger.warning(
                "all workers have paused: their memory is nearly full and they begin no task, so the fit may stand "
                "still; end it and give the workers more memory or fewer threads (plan says how much)"
            )


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
