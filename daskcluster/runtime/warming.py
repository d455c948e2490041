"""Scheduler and fresh workers import the package all at once, when a fit begins, and not each with its first task."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any
from weakref import WeakKeyDictionary

from distributed.utils import offload

from ..preload import import_rooms

__all__ = ["WARMING_TEXT", "is_warming", "warm"]

logger = logging.getLogger("daskcluster")

#: What is said.
WARMING_TEXT = "scheduler and workers import the package"
#: What takes less is not worth a word.
LEAST_SECONDS = 1.0

#: What takes more is not told of any longer: a worker does not answer.
MOST_SECONDS = 30.0

#: When the processes of a client's cluster began to import, by ``time.monotonic``; None when they have done so.
_clients: WeakKeyDictionary[Any, float | None] = WeakKeyDictionary()


def warm(client: Any) -> None:
    """Have the processes of a cluster import the package, once, while the caller goes on.

    Workers that come later import it with their first task. In their event loops, as then: two threads that import the
    same are no help.
    """
    if client not in _clients:
        _clients[client] = time.monotonic()
        client.loop.add_callback(_warm, client)


def is_warming(client: Any) -> bool:
    """Whether they still do."""
    start = _clients.get(client)
    return start is not None and time.monotonic() - start < MOST_SECONDS


async def _warm(client: Any) -> None:
    start = time.monotonic()
    try:
        calls = client.run(import_rooms, on_error="ignore"), client.run_on_scheduler(_import_aside)
        failed = [each for each in await asyncio.gather(*calls, return_exceptions=True) if isinstance(each, Exception)]
        for error in failed:  # it costs time, and nothing else: what is wrong shows in the first task
            logger.debug("processes of the cluster are not warmed: %s", error)
    finally:
        _clients[client] = None
    seconds = time.monotonic() - start
    if seconds >= LEAST_SECONDS and not failed:
        logger.info("%s: %.1f s; --preload daskcluster.preload does it when they start", WARMING_TEXT, seconds)


async def _import_aside() -> None:
    """Import in the thread in which a scheduler reads the task graphs."""
    await offload(import_rooms)
