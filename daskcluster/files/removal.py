"""Remove folders that tasks may be writing into."""

from __future__ import annotations

import atexit
import os
import shutil
import uuid
from pathlib import Path

from .objects import ObjectPath, Place

__all__ = ["remove", "remove_all_now", "remove_at_exit"]

#: What goes when the program ends, if it is still there then.
_at_exit: set[Path] = set()


def remove(path: Place, under: Path | None = None) -> None:
    """Remove a file or a folder; a folder is moved first, so that nothing appears in it any more under its name.

    In an object store the document of the whole goes first, by its name, and then what is listed.

    A removal that does not come to its end is ended when the program ends: one that is interrupted (Ctrl-C is often
    pressed twice), or that finds files open where a network file system keeps these.

    Parameters
    ----------
    path : Path or ObjectPath
        What does not exist is left alone.
    under : Path, optional
        A name beside it, for the time that the removal takes, by which others would know it for what it is; a hidden
        one by default.
    """
    if isinstance(path, ObjectPath):
        (path / "zarr.json").unlink(missing_ok=True)
        path.remove()
        path.unlink(missing_ok=True)
        return
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    moved = under or path.with_name(f".{path.name}.removed-{uuid.uuid4().hex[:8]}")
    remove_at_exit(moved)  # before the first step: an interrupt may come after any
    try:
        path.rename(moved)
    except OSError:  # removed where it stands, under a name that others may use again: not at exit
        _at_exit.discard(moved)
        moved = path
    shutil.rmtree(moved, ignore_errors=True)
    if not moved.exists():
        _at_exit.difference_update((path, moved))


def remove_at_exit(path: Path) -> None:
    """Remove a folder when this process ends, and not when one ends that was forked from it.

    Its name must be one that nobody gives to anything else.
    """
    _at_exit.add(path)


def remove_all_now() -> None:
    """Remove what would go when the program ends."""
    for path in list(_at_exit):
        shutil.rmtree(path, ignore_errors=True)


# Registered before any other of this package, so it runs after them, and when threads and workers have ended.
atexit.register(remove_all_now)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_at_exit.clear)
