"""A forked child computes on its own: what it inherits from its parent's threads is made anew.

A fork copies locks and pools of threads, but not the threads. A child of a web server, of `multiprocessing` or of a
data loader would wait for ever for dask's pool of threads, or for the loop of a client.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from multiprocessing.pool import Pool, ThreadPool
from typing import Any

import dask
import dask.threaded

__all__: list[str] = []


def _in_child() -> None:
    """Forget the pools and the clients of the parent; dask makes pools when they are needed."""
    for pool in _pools_of_dask():
        atexit.unregister(pool.shutdown)  # it waits for threads that are not there
    dask.threaded.default_pool = None
    dask.threaded.pools.clear()
    dask.threaded.pools_lock = threading.Lock()
    for setting in ("pool", "scheduler"):
        given = dask.config.config.get(setting)
        if isinstance(given, Executor | Pool):
            dask.config.config[setting] = _like(given)
    _leave_cluster()


def _pools_of_dask() -> Iterator[Executor]:
    if dask.threaded.default_pool is not None:
        yield dask.threaded.default_pool
    for of_a_thread in dask.threaded.pools.values():
        yield from of_a_thread.values()


def _like(pool: Any) -> ThreadPoolExecutor | None:
    """A pool of as many threads as the one that a user gave to dask; of processes dask makes its own."""
    for kind, size in ((ThreadPoolExecutor, "_max_workers"), (ThreadPool, "_processes")):
        if isinstance(pool, kind):
            return ThreadPoolExecutor(getattr(pool, size))
    return None


def _leave_cluster() -> None:
    """Compute in this process where the parent had a client or was a worker: their loops have ended with the fork."""
    if "distributed" not in sys.modules:
        return
    from distributed import client, worker

    given = dask.config.config.get("scheduler")
    named = isinstance(getattr(given, "__self__", given), client.Client)
    if not named and client._get_global_client() is None and worker._worker_cvar.get(None) is None:
        return
    client._current_client.set(None)
    client._global_clients.clear()
    dask.config.config["scheduler"] = "threads"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
