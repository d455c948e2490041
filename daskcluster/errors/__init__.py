"""Errors and warnings that users may want to catch."""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .convergence import FewerClustersWarning

__all__ = [
    "ClusterLostError",
    "DamagedStoreError",
    "DiskFullError",
    "FewerClustersWarning",
    "MissingChunksError",
    "MissingChunksWarning",
    "NotEnoughMemoryError",
    "StorageBusyError",
    "StorageMismatchError",
    "UnreadableChunkError",
    "UnseenStoreError",
    "WorkersKilledError",
    "collected_warnings",
    "is_disk_full",
    "warn_user",
]

#: Where the warnings of the work that is going on are put, instead of being shown.
_collected: ContextVar[list[warnings.WarningMessage] | None] = ContextVar("daskcluster_warnings", default=None)


def __getattr__(name: str) -> Any:
    # scikit-learn takes more than a second to import, which processes that only work do without.
    if name == "FewerClustersWarning":
        from .convergence import FewerClustersWarning

        return FewerClustersWarning
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class MissingChunksWarning(UserWarning):
    """Chunks of an input are not in its store; they are read as the fill value."""


class MissingChunksError(ValueError):
    """Chunks that must be there are not in their store: nothing stands for what was never read."""


class UnreadableChunkError(OSError, ValueError):
    """A stored chunk is there and cannot be read: it is damaged, cut off, or its file system fails."""


class UnseenStoreError(OSError, ValueError):
    """A process that works does not see a store that this one sees."""


class StorageMismatchError(ValueError):
    """A named store holds the products of other data, parameters or another method."""


class DamagedStoreError(ValueError):
    """A saved model, or a product of a named store, is not what was written: the message says what is damaged."""


class StorageBusyError(RuntimeError):
    """Another fit is writing to the same named store."""


class DiskFullError(OSError):
    """A disk, or a quota, is full: `errno` is ENOSPC or EDQUOT; the message names the path, and what it needs."""

    def __str__(self) -> str:
        """The message, without the number of the error."""
        return str(self.strerror)


class NotEnoughMemoryError(MemoryError):
    """A fit needs more memory than its workers, or this process, may use: the message says what to change."""


class ClusterLostError(RuntimeError):
    """The scheduler of a cluster is gone, or what its workers held for the fit is: nothing of it can end."""


class WorkersKilledError(RuntimeError):
    """Worker processes died while they worked on one task, most often for lack of memory."""


def is_disk_full(error: BaseException) -> bool:
    """Whether an error says that a disk or a quota is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package and scikit-learn that led here: the user's, who can act on it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _package_of(frame.f_globals) in ("daskcluster", "sklearn"):
        level, frame = level + 1, frame.f_back
    collected = _collected.get()
    if collected is None:
        warnings.warn(message, category, stacklevel=level)
    else:
        place = frame.f_code.co_filename, frame.f_lineno
        collected.append(warnings.WarningMessage(category(message), category, *place))


def _package_of(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]


@contextmanager
def collected_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect the warnings of the work inside, and of no other: those of this package, and what others would show.

    Notes
    -----
    Not by `warnings.catch_warnings`, which belongs to the process: of two threads that work at the same time one would
    put back what the other had set, and no warning would be shown from then on.
    """
    found: list[warnings.WarningMessage] = []
    token = _collected.set(found)
    if not isinstance(warnings.showwarning, _Collector):
        warnings.showwarning = _Collector(warnings.showwarning)  # type: ignore[assignment]
    # A change of the filters has Python show again what it would show once a place.
    warnings.simplefilter("default", _OfNobody, append=True)
    try:
        yield found
    finally:
        _collected.reset(token)


class _OfNobody(Warning):
    """Is never given."""


class _Collector:
    """Stands for `warnings.showwarning`: collects where that is asked for, and hands on the others."""

    def __init__(self, show: Callable[..., None]) -> None:
        self._show = show

    def __call__(self, message: Warning, category: type[Warning], *place: object, **more: object) -> None:
        collected = _collected.get()
        if collected is None:
            self._show(message, category, *place, **more)
        else:
            collected.append(warnings.WarningMessage(message, category, *place, **more))  # type: ignore[arg-type]
