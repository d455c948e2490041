"""Whether the process that works sees what the caller's process sees.

A pickled Zarr array carries its metadata: where its folder is not mounted, it reads the fill value and nothing fails.
So every process asks the file system itself, before it reads or writes there for the first time.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

import cloudpickle
import zarr
from zarr.core.sync import sync
from zarr.storage import MemoryStore

from ..errors import UnseenStoreError
from ..files.chunks import content_mark, describe_store
from ..files.urls import is_url
from .execution import runs_in_process

__all__ = ["Seen", "check_shareable", "marks_differ", "process_name", "unseen"]


def process_name() -> str:
    """The process that runs this, as messages name it."""
    if "distributed" in sys.modules:
        from distributed import get_worker

        try:
            return f"worker {get_worker().address}"
        except ValueError:
            pass
    return f"process {os.getpid()} on {socket.gethostname()}"


def unseen(where: str, why: object) -> UnseenStoreError:
    """The error that names the process and what it does not see."""
    return UnseenStoreError(
        f"{process_name()} does not see {where!r} as the process that opened it does ({why}); "
        + ("give every worker access to it" if is_url(where) else "give a path on a file system that all workers share")
    )


class Seen:
    """A Zarr array that proves in each process, before its first use, that it is the one that was opened.

    A process that gets it by pickle, or as a worker that joins late, proves it anew.

    Parameters
    ----------
    array : zarr.Array
    content : bool
        Whether the content has to be the same too, as far as `content_mark` tells: of what is read only.
    mark : tuple, optional
        That of the process that opened the array; taken when it is pickled.
    """

    def __init__(
        self, array: zarr.Array[Any], content: bool = False, mark: tuple[str | None, ...] | None = None
    ) -> None:
        self.array = array
        self._content = content
        self._mark = mark
        self._proved = False

    def prove(self) -> None:
        """Open the array anew, and compare; raises UnseenStoreError, which names the process and the store."""
        if self._proved:
            return
        why = self._differs()
        if why is not None:  # raised here, without what led to it: not every exception travels between processes
            raise unseen(describe_store(self.array), why)
        self._proved = True

    def _differs(self) -> str | None:
        """What is there instead; None if it is the array."""
        array = self.array
        try:
            found = sync(zarr.AsyncArray.open(array.store_path, zarr_format=array.metadata.zarr_format))
        except Exception as error:
            return f"nothing to open there: {type(error).__name__}"
        if _form(found) != _form(array):
            return f"another array is there, {_form(found)} and not {_form(array)}"
        if self._mark is not None and marks_differ(self._mark, content_mark(array)):
            return "an array with other content is there"
        return None

    def __reduce__(self) -> Any:
        if self._content and self._mark is None:
            self._mark = content_mark(self.array)
        return Seen, (self.array, self._content, self._mark)


def marks_differ(one: tuple[str | None, ...], other: tuple[str | None, ...]) -> bool:
    """Whether some content is there in both places and is not the same; what is missing is told elsewhere."""
    return any(a != b for a, b in zip(one, other, strict=True) if a is not None and b is not None)


def _form(array: Any) -> tuple[Any, ...]:
    return tuple(array.shape), str(array.dtype.newbyteorder("=")), tuple(array.chunks), array.shards


def check_shareable(name: str, array: zarr.Array[Any]) -> None:
    """Refuse an array that other processes do not get, where they work; raises ValueError."""
    if runs_in_process():
        return
    if _in_memory(array.store):
        kind = "MemoryStore" if isinstance(array.store, MemoryStore) else "store in memory"
        raise ValueError(
            f"{name} lives in a zarr {kind}, which the worker processes of the active scheduler cannot read; "
            "save it to a folder and pass the path"
        )
    try:
        cloudpickle.dumps(array.store)  # as distributed does
    except Exception as error:  # such as a writable session of Icechunk, which has to be forked
        why = " ".join(str(error).split())[:120]
        raise ValueError(
            f"{name} lives in a {type(array.store).__name__} that does not travel to the worker processes of the "
            f"active scheduler ({why}); open it for reading only"
        ) from error


def _in_memory(store: Any) -> bool:
    inner = getattr(store, "_store", None)  # of a store that wraps another
    protocol = getattr(getattr(store, "fs", None), "protocol", ())
    protocols = (protocol,) if isinstance(protocol, str) else tuple(protocol)
    return isinstance(store, MemoryStore) or "memory" in protocols or (inner is not None and _in_memory(inner))
