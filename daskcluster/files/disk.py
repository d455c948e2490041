"""A full disk, said so that one can act on it."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from ..errors import DiskFullError, is_disk_full

__all__ = ["disk_full", "free_bytes", "size_of"]


def disk_full(error: BaseException, path: Path, needed: str, advice: str) -> DiskFullError | None:
    """The error that says which path needs how much, and what is free there; None when `error` is of another kind.

    Parameters
    ----------
    error : BaseException
        What a write raised.
    path : Path
        What could not be written.
    needed : str
        Such as "8,000,000 bytes" or "more than 4,096 bytes".
    advice : str
        What to do, after "make room there, or".
    """
    if not is_disk_full(error) or isinstance(error, DiskFullError):
        return None
    code = error.errno if isinstance(error, OSError) and error.errno is not None else errno.ENOSPC
    quota = code != errno.ENOSPC
    free = free_bytes(path)
    known = "an unknown number is" if free is None else f"{free:,} are"
    return DiskFullError(
        code,
        f"{'the disk quota is used up' if quota else 'the disk is full'} at {str(path)!r}: {needed} are needed, "
        f"{known} free{' on the disk' if quota else ''}; make room there, or {advice}",
    )


def free_bytes(path: Path) -> int | None:
    """Bytes that are free where a path is, or is to be; None where the file system does not tell."""
    for folder in (path, *path.parents):
        if folder.is_dir():
            try:
                return shutil.disk_usage(folder).free
            except OSError:
                return None
    return None


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    files = [path] if path.is_file() else path.rglob("*")
    total = 0
    for file in files:
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:  # gone meanwhile
            continue
    return total
