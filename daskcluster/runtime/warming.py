"""Scheduler and fresh workers import the package all at once, when a fit begins, and not each with its first task."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any
from weakref import WeakKeyDictionary

from distributed import WorkerPlugin
from distributed.utils import offload

from ..preload import import_rooms

__all__ = ["WARMING_TEXT", "Imports", "is_warming", "warm"]

logger = logging.getLogger("daskcluster")

#: What is said.
WARMING_TEXT = "scheduler and workers import the package"
#: What takes less is not worth a word.
LEAST_SECONDS = 1.0

#: Whether the processes of a client's cluster are still importing.
_clients: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


class Imports(WorkerPlugin):
    """Has workers import the package, those that come later too.

    In their event loops, as when they read their first task: two threads that import the same are no help.
    """

    name = "daskcluster-imports"
    idempotent = True

    def setup(self, worker: Any) -> None:
        """Import; Dask calls this."""
        import_rooms()


def warm(client: Any) -> None:
    """Have the processes of a cluster import the package, once, while the caller goes on."""
    if client not in _clients:
        _clients[client] = True
        client.loop.add_callback(_warm, client)


def is_warming(client: Any) -> bool:
    """Whether they still do."""
    return _clients.get(client, False)


async def _warm(client: Any) -> None:
    start = time.perf_counter()
    try:
        await asyncio.gather(client.register_plugin(Imports()), client.run_on_scheduler(_import_aside))
    except Exception as error:  # it costs time, and nothing else: what is wrong shows in the first task
        logger.debug("the processes of the cluster are not warmed: %s", error)
        return
    finally:
        _clients[client] = False
    seconds = time.perf_counter() - start
    if seconds >= LEAST_SECONDS:
        logger.info("%s: %.1f s; --preload daskcluster.preload does it when they start", WARMING_TEXT, seconds)


async def _import_aside() -> None:
    """Import in the thread in which a scheduler reads the task graphs."""
    await offload(import_rooms)
