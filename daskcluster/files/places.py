"""Where things are: what stands under a path, and whether writing there would harm something else.

An output must not be, hold or lie inside an input, a named store or another output, however the paths are spelled;
and it is never put inside an array, a saved model or a named store.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import zarr

from ..typing import PathInput
from .objects import ObjectPath, Place
from .record_last import is_unfinished
from .urls import is_url, protocol_of, url_of

__all__ = ["KEY_FILE", "check_apart", "check_outside", "expand", "is_complete", "kind_of", "place_at", "place_of"]

#: Name of the file that makes a folder a named store.
KEY_FILE = "daskcluster.json"

#: What `kind_of` may find -> what it is called in messages.
NAMES = {
    "array": "a Zarr array",
    "model": "a saved model",
    "group": "a Zarr group",
    "storage": "the storage of a fit",
    "file": "a file",
    "folder": "a folder that is no Zarr store",
    "broken": "a Zarr store that cannot be read",
}


def expand(path: str | os.PathLike[str]) -> str:
    """A path as the file system takes it: without ``file://``, and with the home folder for ``~``; other URLs as is.

    Raises
    ------
    TypeError, ValueError
        If it is no path, or an empty one.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"expected a path, got {path!r:.100}{_advice_for(path)}")
    name = os.fspath(path)
    if not name:
        raise ValueError("expected a path, got ''")
    if "://" not in name:
        return os.path.expanduser(name)
    url = urlsplit(name)
    if url.scheme not in ("file", "local"):
        return name
    return unquote(url.path if url.netloc == "localhost" else url.netloc + url.path)


def _advice_for(store: object) -> str:
    """What to do with a store or session that was given in the place of an output."""
    package = type(store).__module__.partition(".")[0]
    if package == "icechunk":
        return "; what is written in an Icechunk session counts when it is committed: store the array there yourself"
    return "; give its path or URL" if package == "zarr" else ""


def place_at(path: PathInput) -> Place:
    """The absolute path that is meant, of a file system or of an object store; ``~`` is the home folder."""
    name = expand(path)
    return ObjectPath(name) if is_url(name) else Path(os.path.abspath(name))


def place_of(source: Any) -> str | None:
    """Where an input is stored: a path or URL, or None for what is in memory, or does not tell.

    Paths, Zarr arrays and groups, memory maps, HDF5 datasets and xarray objects tell.
    """
    if isinstance(source, str | os.PathLike):
        return os.fspath(source) or None
    if isinstance(source, zarr.Array | zarr.Group):
        root = getattr(source.store, "root", None)  # of a folder
        if isinstance(root, Path):
            return os.path.join(root, source.path)
        url = url_of(source.store)
        return str(source.store_path) if url is None else f"{url}/{source.path}".rstrip("/")
    for owner, name in ((source, "filename"), (getattr(source, "file", None), "filename")):
        found = getattr(owner, name, None)
        if isinstance(found, str | os.PathLike):
            return os.fspath(found)
    encoding = getattr(source, "encoding", None)
    found = encoding.get("source") if isinstance(encoding, Mapping) else None
    return found if isinstance(found, str) else None


# -- what stands there ------------------------------------------------------------------------------------------------


def kind_of(path: Place) -> str | None:
    """What stands under a path: a key of `NAMES`; "empty" for a folder of nothing, None for nothing at all.

    In an object store what is left of an output that did not become complete is nothing, too.
    """
    if isinstance(path, ObjectPath):
        names = [child.name for child in path.iterdir()]
        if not names:
            return "file" if path.is_file() else None
        return _kind_by_records(path) or (None if is_unfinished(path, names) else "folder")
    if not os.path.lexists(path):
        return None
    if not path.is_dir():
        return "file"
    return _kind_by_records(path) or ("folder" if any(path.iterdir()) else "empty")


def is_complete(path: Place) -> bool:
    """Whether an output stands under a path: in an object store its document, asked for by its name."""
    return (path / "zarr.json").is_file() if isinstance(path, ObjectPath) else path.exists()


def _kind_by_records(path: Place) -> str | None:
    """What a folder is by the files that say so, each asked for by its name; None where there are none."""
    if (path / KEY_FILE).is_file():
        return "storage"
    for name, kind in ((".zarray", "array"), (".zgroup", "group")):
        if (path / name).is_file():
            return kind
    return _kind_of_node(path / "zarr.json") if (path / "zarr.json").is_file() else None


def _kind_of_node(file: Place) -> str:
    try:
        node = json.loads(file.read_bytes())
        kind = node["node_type"]
        ours = node.get("attributes", {}).get("daskcluster")
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return "broken"
    if kind == "group" and isinstance(ours, dict) and ours.get("kind") == "model":
        return "model"
    return kind if kind in ("array", "group") else "broken"


def _kind_of_parent(path: Place) -> str | None:
    """As `_kind_by_records`; who may write into a part of a bucket only need not be able to look above it."""
    try:
        return _kind_by_records(path)
    except PermissionError:
        if isinstance(path, ObjectPath):
            return None
        raise


def check_outside(path: Place, shown: str) -> None:
    """Refuse an output inside an array, a saved model or a named store; `shown` is how the user spelled it.

    Raises
    ------
    FileExistsError
    """
    spelled: set[Place] = {path} if isinstance(path, ObjectPath) else {path, Path(os.path.realpath(path))}
    for each in spelled:
        for parent in each.parents:
            root = isinstance(parent, Path) and parent == Path(parent.anchor)
            kind = None if root else _kind_of_parent(parent)
            if kind in ("array", "model", "storage"):
                raise FileExistsError(
                    f"{shown!r} lies inside {NAMES[kind]}, {str(parent)!r}, which would be damaged; "
                    "give a path outside of it"
                )


# -- two places -------------------------------------------------------------------------------------------------------


def check_apart(outputs: Mapping[str, str | None], others: Mapping[str, str | None]) -> None:
    """Refuse an output that is, holds or lies inside another output, or one of some other things.

    Parameters
    ----------
    outputs, others : mapping of str
        What it is called (``"--labels"``, ``"the input"``) -> path or URL, or None for none. The others, which
        are read or belong to somebody else, may lie in each other.

    Raises
    ------
    ValueError

    Notes
    -----
    Compared are real paths, with links followed, and the links themselves; and the files' own numbers, which tell on a
    file system that ignores case, or is mounted twice.
    """
    taken = [(name, path, _Place(path)) for name, path in others.items() if path]
    for name, path in outputs.items():
        if not path:
            continue
        own = _Place(path)
        for other, other_path, place in taken:
            how = own.relation(place)
            if how is not None:
                shown = "" if other_path == path else f" ({other_path!r})"
                raise ValueError(f"{name} {path!r} {how} {other}{shown}; give another path")
        taken.append((name, path, own))


#: Protocols of this machine's file system.
_LOCAL = ("file", "local")


class _Place:
    """A path or URL in all forms in which it is compared."""

    def __init__(self, path: str) -> None:
        name = expand(path)
        if is_url(name):
            name = name.rpartition("::")[2]  # of a chain, where its bytes are
            scheme, found, rest = name.partition("://")
            name = name if not found else rest if scheme in _LOCAL else ""
        if not name:
            self.spelled = {(protocol_of(scheme), *(part for part in rest.split("/") if part))}
            self.number, self.above = None, set[tuple[int, int]]()
            return
        absolute = Path(os.path.abspath(name))
        real, link = Path(os.path.realpath(absolute)), Path(os.path.realpath(absolute.parent)) / absolute.name
        self.spelled = {real.parts, link.parts}
        self.number = _number(real)
        self.above = {number for parent in (*real.parents, *link.parents) if (number := _number(parent)) is not None}

    def relation(self, other: _Place) -> str | None:
        """How this one stands to another: "is", "lies inside" or "holds"; None when they are apart."""
        if self.spelled & other.spelled or (self.number is not None and self.number == other.number):
            return "is"
        if self._lies_in(other):
            return "lies inside"
        return "holds" if other._lies_in(self) else None

    def _lies_in(self, other: _Place) -> bool:
        if other.number is not None and other.number in self.above:
            return True
        return any(own[: len(outer)] == outer for own in self.spelled for outer in other.spelled)


def _number(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if status.st_ino else None
