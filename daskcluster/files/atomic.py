"""Outputs that appear under their names only when they are complete.

A run that dies must not leave something that looks like a result, so every output grows where nobody takes it for one,
and appears when it is complete (`atomic_path`). On a file system it grows under a hidden name beside its own, and is
renamed. In an object store, which has no rename, it grows in its place without the metadata that make an array of it,
and these are written last (`record_last.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from ..errors import is_disk_full
from ..typing import PathInput
from .disk import disk_full, size_of
from .groups import list_in_groups, name_axes
from .objects import ObjectPath, Place
from .places import NAMES, kind_of, place_at
from .record_last import record_last
from .removal import remove

__all__ = ["OutputKind", "atomic_path", "check_output", "growing_path", "remove"]

#: What an output is going to be.
OutputKind = Literal["array", "group", "model", "file"]

# A partial output of another machine counts as abandoned when nothing in it changed for so long. (On this
# machine the process is looked up.)
ABANDONED_SECONDS = 3600.0

# Partial outputs that this process is writing now.
_active: set[Path] = set()


def check_output(path: PathInput, *, overwrite: bool = False, kind: OutputKind | None = None) -> Place:
    """Refuse an output that could not be written in the end, before any work is done for it.

    Parameters
    ----------
    path : str or os.PathLike
        The output to be.
    overwrite : bool
        Whether an existing Zarr array, Zarr group, file or empty folder may be replaced. Other folders never
        are.
    kind : {"array", "group", "model", "file"}, optional
        What the output is going to be. Only the same kind, or an empty folder, is replaced then: an array never takes
        the place of a group or a saved model, and a model never that of an array.

    Returns
    -------
    Path or ObjectPath
        The absolute path.

    Raises
    ------
    FileExistsError
        If the path exists and may not be replaced.
    NotADirectoryError, PermissionError
        If it cannot be created where it is.
    """
    final = place_at(path)
    standing = kind_of(final)
    if standing is not None:
        _check_replaceable(os.fspath(path), standing, kind)
        if not overwrite:
            raise FileExistsError(f"{os.fspath(path)!r} exists; pass overwrite=True to replace it")
    if isinstance(final, ObjectPath):
        final.check_bucket()
        return final
    parent = final.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise NotADirectoryError(f"cannot create {os.fspath(path)!r}: {str(parent)!r} is not a folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PermissionError(f"cannot create {os.fspath(path)!r}: {str(parent)!r} is not writable")
    return final


def _check_replaceable(shown: str, standing: str, kind: OutputKind | None) -> None:
    """Refuse what is never replaced, whatever the caller says: so no message leads to its loss."""
    if standing in ("folder", "storage"):
        raise FileExistsError(f"{shown!r} exists and is {NAMES[standing]}; it is not replaced, give another path")
    if kind is not None and standing not in (kind, "empty"):
        raise FileExistsError(
            f"{shown!r} exists and is {NAMES[standing]}; only {NAMES[kind]} is replaced there, give another path"
        )


@contextlib.contextmanager
def atomic_path(
    path: PathInput, *, overwrite: bool = False, kind: OutputKind | None = None, needed_bytes: int | None = None
) -> Iterator[Any]:
    """Write a file, an array or a group that appears under its name only when it is complete.

    Parameters
    ----------
    path : str or os.PathLike
        The final path; missing parent folders are made.
    overwrite : bool
        Replace what exists there, as in `check_output`. The old one stays until the new one is complete.
    kind : {"array", "group", "model", "file"}, optional
        As in `check_output`.
    needed_bytes : int, optional
        Size of what is written, at most, for the message about a full disk.

    Yields
    ------
    Path or Unfinished
        Where to create the file, the array (`create_array`) or the group (`create_group`), which does not exist yet: a
        hidden sibling, ``.NAME.partial-...``; under a URL, an `Unfinished`. It becomes `path` when the block ends, and
        is removed when the block raises.

    Raises
    ------
    FileExistsError
        Before the block runs, or after it when another process made `path` meanwhile.
    DiskFullError
        If the block fails because the disk or a quota is full; the message tells what is needed and free.

    Notes
    -----
    A killed process leaves only the hidden sibling, which the next `atomic_path` of the same target removes
    unless its process still runs (or, on another machine, wrote within the last hour). Killed in the instant
    between the two renames of an overwrite, the old output is put back by the next call. Under a URL it leaves objects
    without metadata, which nobody reads, and which the next call removes; an array that is replaced is the old one up
    to one request and the new one from then on, and a model is none for the few requests between them.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with atomic_path(f"{folder}/note.txt") as temporary:
    ...     _ = temporary.write_text("complete")
    ...     print(os.path.exists(f"{folder}/note.txt"))
    False
    >>> print(Path(f"{folder}/note.txt").read_text())
    complete
    """
    final = place_at(path)
    if isinstance(final, ObjectPath):
        way = record_last(final, lambda: check_output(path, overwrite=overwrite, kind=kind), file=kind == "file")
    else:
        way = _renamed(path, final, overwrite, kind, needed_bytes)
    with way as growing:
        yield growing


@contextlib.contextmanager
def _renamed(
    path: PathInput, final: Path, overwrite: bool, kind: OutputKind | None, needed_bytes: int | None
) -> Iterator[Path]:
    """Write an output on a file system; see `atomic_path`."""
    _recover(final)
    check_output(path, overwrite=overwrite, kind=kind)
    temporary = _hidden_sibling(final, "partial")
    _active.add(temporary)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        if not os.path.lexists(temporary):
            raise FileNotFoundError(f"nothing was written for {os.fspath(path)!r}")
        name_axes(temporary, final)
        check_output(path, overwrite=overwrite, kind=kind)
        _publish(temporary, final)
        list_in_groups(final)
    except BaseException as error:
        written = size_of(temporary) if is_disk_full(error) else 0
        remove(temporary)
        # Tasks that were running when the block was interrupted may write once more; at exit they have ended.
        atexit.register(remove, temporary)
        needed = f"more than {written:,} bytes" if needed_bytes is None else f"{needed_bytes:,} bytes"
        full = disk_full(error, final, needed, "give another path")
        if full is not None:
            raise full from error
        raise
    finally:
        _active.discard(temporary)


@contextlib.contextmanager
def growing_path(path: PathInput, growing: Place, needed_bytes: int) -> Iterator[Place]:
    """Write a group that appears under its name only when it is complete.

    As `atomic_path`, for what one writer at a time continues after a failure: what has grown is not removed.

    Yields
    ------
    Path or ObjectPath
        Where it grows: `growing`, beside `path`; in an object store `path` itself, whose group is none as long as its
        document is not there. Write that last.
    """
    final = place_at(path)
    if isinstance(final, ObjectPath):
        yield final
        return
    assert isinstance(growing, Path)
    _recover(final)
    check_output(path)
    try:
        yield growing
        check_output(path)
        _publish(growing, final)
    except BaseException as error:
        full = disk_full(error, final, f"{needed_bytes:,} bytes", "give another path")
        if full is not None:
            raise full from error
        raise


def _publish(temporary: Path, final: Path) -> None:
    """Rename a complete output to its final name; what stands there is moved aside first and removed last."""
    if not os.path.lexists(final):
        os.rename(temporary, final)
        return
    replaced = _hidden_sibling(final, "replaced")
    os.rename(final, replaced)
    try:
        os.rename(temporary, final)
    except BaseException:
        os.rename(replaced, final)
        raise
    remove(replaced)


def _hidden_sibling(final: Path, kind: str) -> Path:
    host = re.sub(r"[^A-Za-z0-9]", "", socket.gethostname()) or "host"
    return final.with_name(f".{final.name}.{kind}-{host}-{os.getpid()}-{uuid.uuid4().hex[:8]}")


def _recover(final: Path) -> None:
    """Clean up after killed runs with the same target."""
    if not final.parent.is_dir():
        return
    pattern = re.compile(rf"\.{re.escape(final.name)}\.(partial|replaced)-([A-Za-z0-9]+)-(\d+)-[0-9a-f]{{8}}")
    for sibling in sorted(final.parent.iterdir()):
        match = pattern.fullmatch(sibling.name)
        if match is None or _in_use(sibling, match[2], int(match[3])):
            continue
        if match[1] == "replaced" and not os.path.lexists(final):
            os.rename(sibling, final)
        else:
            remove(sibling)


def _in_use(sibling: Path, host: str, pid: int) -> bool:
    """Tell whether the process that made a hidden sibling may still be writing it."""
    here = host == re.sub(r"[^A-Za-z0-9]", "", socket.gethostname())
    if here and pid == os.getpid():
        return sibling in _active
    if here and os.name == "posix":
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
    # A store's writers create files in its upper two levels of folders, which changes the folders' times.
    try:
        folders = [sibling, *(child for child in sibling.glob("*") if child.is_dir())]
        latest = max(folder.stat().st_mtime for folder in folders)
    except FileNotFoundError:
        return False
    return time.time() - latest < ABANDONED_SECONDS
