"""Errors and warnings that users may want to catch."""

from __future__ import annotations

import errno
import sys
import warnings

__all__ = [
    "DamagedStoreError",
    "DiskFullError",
    "FewerClustersWarning",
    "MissingChunksError",
    "MissingChunksWarning",
    "StorageBusyError",
    "StorageMismatchError",
    "UnreadableChunkError",
    "UnseenStoreError",
    "is_disk_full",
    "warn_user",
]


class FewerClustersWarning(UserWarning):
    """Fewer clusters were found than asked for: too few distinct rows or representatives."""


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


def is_disk_full(error: BaseException) -> bool:
    """Whether an error says that a disk or a quota is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package and scikit-learn that led here: the user's, who can act on it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _package_of(frame.f_globals) in ("daskcluster", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package_of(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
