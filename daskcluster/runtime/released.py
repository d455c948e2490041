"""What a fit that fails gives back at once: futures on a cluster and scratch folders."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from types import TracebackType
from typing import Protocol

__all__ = ["hold", "released_on_failure"]


class Releasable(Protocol):
    """Something that holds memory, disk or tasks."""

    def release(self) -> None:
        """Let go of it. Nobody needs it any more."""


#: What ends with the work that is going on in this context, by its identity: equal futures are not one future.
_held: ContextVar[weakref.WeakValueDictionary[int, Releasable] | None] = ContextVar("daskcluster_held", default=None)


def hold(things: Iterable[Releasable]) -> None:
    """Note what the work that is going on holds, for `released_on_failure`."""
    own = _held.get()
    if own is not None:
        own.update({id(thing): thing for thing in things})


@contextlib.contextmanager
def released_on_failure() -> Iterator[None]:
    """Release what is held for the work inside when that ends by an exception.

    Else tasks would run on, and folders stay, for as long as the exception is kept with its frames and what is in
    them; IPython keeps the last one. What is held for work that succeeds is part of what this is done for.
    """
    outer, own = _held.get(), weakref.WeakValueDictionary[int, Releasable]()
    token = _held.set(own)
    try:
        yield
    except BaseException as error:
        _clear_frames(error.__traceback__)
        for thing in list(own.values()):
            thing.release()
        raise
    finally:
        _held.reset(token)
    if outer is not None:
        outer.update(own)


def _clear_frames(traceback: TracebackType | None) -> None:
    """Drop the variables of the frames of dask that an exception went through: they hold futures, too."""
    while traceback is not None:
        name = str(traceback.tb_frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] in ("dask", "distributed"):
            with contextlib.suppress(RuntimeError):  # it runs still
                traceback.tb_frame.clear()
        traceback = traceback.tb_next
