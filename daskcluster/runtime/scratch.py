"""Scratch folders: they go with what is held in them, with the process, or, where that was killed, with the next one.

A folder is named after its machine and its process, and holds a file that the process keeps locked. The lock of one
that was killed is free, so the next that makes a scratch folder knows what is left over, and removes it.
"""

from __future__ import annotations

import os
import re
import socket
import tempfile
import uuid
import weakref
from pathlib import Path
from typing import IO, Any

import dask

from ..files import remove, remove_all_now, remove_at_exit
from .deadline import at_deadline
from .released import hold

try:
    import fcntl
except ImportError:  # Windows: nobody tells what is left over
    fcntl = None  # type: ignore[assignment]

__all__ = ["ScratchFolder"]

_LOCK = ".lock"
#: Ends the name of a folder that is being removed.
_REMOVED = ".removed"

at_deadline(remove_all_now)


class ScratchFolder:
    """A folder under dask's ``temporary-directory`` that lives as long as this object, or until a fit fails.

    Attributes
    ----------
    path : Path

    Notes
    -----
    It is moved away before it is removed: tasks that run still and write into it find nothing under its name, and
    make no folders that are not there (`products`).
    """

    def __init__(self) -> None:
        where = dask.config.get("temporary-directory", None)
        parent = Path(tempfile.gettempdir() if where is None else where)
        parent.mkdir(parents=True, exist_ok=True)
        _collect(parent)
        self.path = Path(tempfile.mkdtemp(prefix=f"daskcluster-{_host()}-{os.getpid()}-", dir=parent)).absolute()
        remove_at_exit(self.path)  # if an interrupt comes between what ends it and the removal
        lock = _locked(self.path)
        self._finalizer = weakref.finalize(self, _remove, self.path, lock, os.getpid())
        hold([self])

    @property
    def removed(self) -> bool:
        """Whether nothing is in it any more."""
        return not self._finalizer.alive

    def release(self) -> None:
        """Remove it now."""
        self._finalizer()


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9]", "", socket.gethostname()) or "host"


def _locked(folder: Path) -> IO[Any] | None:
    """A locked file in a folder, which appears there when it is locked; None where files cannot be locked."""
    hidden = folder / f"{_LOCK}-{uuid.uuid4().hex}"
    lock = open(hidden, "wb")  # noqa: SIM115  # open as long as the folder lives
    try:
        if fcntl is None:
            raise OSError("no locks")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        hidden.unlink()
        return None
    hidden.rename(folder / _LOCK)
    return lock


def _remove(path: Path, lock: IO[Any] | None, pid: int) -> None:
    if lock is not None:
        lock.close()
    if os.getpid() == pid:  # a forked child removes nothing of its parent's
        _remove_tree(path)


def _remove_tree(path: Path) -> None:
    remove(path, path.with_name(f"{path.name}{_REMOVED}"))


def _collect(parent: Path) -> None:
    """Remove scratch folders of processes of this machine that were killed."""
    for folder in parent.glob(f"daskcluster-{_host()}-*-*"):
        if _is_left_over(folder):
            _remove_tree(folder)


def _is_left_over(folder: Path) -> bool:
    if folder.name.endswith(_REMOVED):
        return True
    try:
        with open(folder / _LOCK, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except FileNotFoundError:
        return _is_dead(folder.name.split("-")[2])  # files cannot be locked here, or are not yet
    except OSError:
        return False


def _is_dead(pid: str) -> bool:
    """Whether no process has a number; those of another container are not seen, where locks tell."""
    if os.name != "posix" or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False
