"""Work on a distributed cluster: which client does it, and how it is left when a stage ends or a task waits."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import dask
from dask.base import is_dask_collection

from .released import hold
from .threads import Shared

__all__ = ["active_client", "gather", "hold_futures", "large_graphs", "outside_the_pool"]


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
