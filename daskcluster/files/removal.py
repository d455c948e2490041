"""Remove folders that tasks may be writing into."""

from __future__ import annotations

import atexit
import contextlib
import shutil
import uuid
from pathlib import Path

__all__ = ["remove"]


def remove(path: Path, under: Path | None = None) -> None:
    """Remove a file or a folder; a folder is moved first, so that nothing appears in it any more under its name.

    Parameters
    ----------
    path : Path
        What does not exist is left alone.
    under : Path, optional
        A name beside it, for the time that the removal takes, by which others would know it for what it is; a hidden
        one by default.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    with contextlib.suppress(OSError):
        path = path.rename(under or path.with_name(f".{path.name}.removed-{uuid.uuid4().hex[:8]}"))
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():  # a network file system keeps files that are open; at exit they are closed
        atexit.register(shutil.rmtree, path, ignore_errors=True)
