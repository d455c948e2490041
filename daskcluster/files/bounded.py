"""How many requests are under way to object stores from this process."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import zarr
from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore, MemoryStore, StorePath, WrapperStore, ZipStore

__all__ = ["REQUESTS_AT_ONCE", "bounded"]

#: Reads of one process that are under way together. Every thread that works lets zarr ask for several chunks at once
#: (its setting ``async.concurrency``), so a node of 64 threads would have 640; services answer that with "slow down".
REQUESTS_AT_ONCE = 32


def bounded(array: zarr.Array[Any]) -> zarr.Array[Any]:
    """The same array, whose reads wait for each other where its store is not of this machine.

    zarr's own setting is not touched: it belongs to the user, and to the whole process.
    """
    if isinstance(array.store, LocalStore | MemoryStore | ZipStore):
        return array
    place = StorePath(_Bounded(array.store), array.path)
    return zarr.Array(zarr.AsyncArray(metadata=array.metadata, store_path=place, config=array._async_array.config))


class _Bounded(WrapperStore[Store]):
    """A store of which so many things at most are read at a time."""

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        """Read when it is this one's turn."""
        async with _turns():
            return await self._store.get(key, prototype, byte_range)


#: One for each event loop; zarr has one in a process.
_semaphores: dict[int, tuple[Any, asyncio.Semaphore]] = {}
_lock = threading.Lock()


def _turns() -> asyncio.Semaphore:
    loop = asyncio.get_running_loop()
    with _lock:
        known = _semaphores.get(id(loop))
        if known is None or known[0] is not loop:
            known = _semaphores[id(loop)] = loop, asyncio.Semaphore(REQUESTS_AT_ONCE)
    return known[1]
