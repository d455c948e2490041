"""Zarr groups that others made, and what is written into them: the same format, named dimensions, one more entry.

An array that is created in a folder which is a Zarr group belongs to it. Readers look for it there: in the group's
format, in the consolidated metadata where the group has them, and xarray by the names of its dimensions.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from .objects import ObjectPath, Place

__all__ = ["format_at", "list_in_groups", "name_axes"]

#: Under this attribute arrays of format 2 name their dimensions, a convention of xarray's.
DIMENSIONS = "_ARRAY_DIMENSIONS"


def format_at(path: Place) -> Literal[2, 3]:
    """The Zarr format of what is created under a path: that of the group there, 3 where there is none."""
    group = path.parent
    return 2 if (group / ".zgroup").is_file() and not (group / "zarr.json").is_file() else 3


def name_axes(path: Place, final: Place) -> None:
    """Name the dimensions of an array, not yet under its final name, where the arrays of its group have names.

    An axis that is as long as the rows of another array has the name of those: of the array with the most axes, so of
    a table before a coordinate. An axis of another length gets a name of its own, since xarray opens no group in which
    an array has none.
    """
    group, zarr_format = path.parent, format_at(path)
    about = _read(path / _METADATA[zarr_format])
    if "shape" not in about or not (group / _GROUP[zarr_format]).is_file() or _names_of(path, zarr_format):
        return
    others = [child for child in _children(group) if not child.name.startswith(".") and child != final]
    named = [found for child in others if (found := _names_of(child, zarr_format))]
    if not named:
        return
    rows: dict[int, str] = {}
    for axes in sorted(named, key=len):
        rows[axes[0][1]] = axes[0][0]
    names = [f"{final.name}_dim_{axis}" for axis in range(len(about["shape"]))]
    if names:
        names[0] = rows.get(about["shape"][0], names[0])
    if zarr_format == 3:
        _replace(path / "zarr.json", about | {"dimension_names": names})
    else:
        _replace(path / ".zattrs", _read(path / ".zattrs") | {DIMENSIONS: names})


_METADATA = {2: ".zarray", 3: "zarr.json"}
_GROUP = {2: ".zgroup", 3: "zarr.json"}


def _names_of(array: Place, zarr_format: int) -> list[tuple[str, int]]:
    """Name and length of every axis of an array; nothing where they have no names, or it is no array."""
    about = _read(array / _METADATA[zarr_format])
    names, shape = about.get("dimension_names"), about.get("shape")
    if zarr_format == 2:
        names = _read(array / ".zattrs").get(DIMENSIONS)
    if not names or not shape or len(names) != len(shape) or not all(isinstance(name, str) for name in names):
        return []
    return list(zip(names, shape, strict=True))


def list_in_groups(path: Place) -> None:
    """List a node that is complete in the consolidated metadata of all groups around it that have some.

    Only its entries are touched: what else a group says of itself and of others stays as it is.
    """
    for group in path.parents:
        if _is_there(group / "zarr.json"):
            about = _read(group / "zarr.json")
            listed = about.get("consolidated_metadata")
            if isinstance(listed, dict) and isinstance(listed.get("metadata"), dict):
                _list_nodes(listed["metadata"], group, path, {"zarr.json": ""})
                _replace(group / "zarr.json", about)
        elif _is_there(group / ".zgroup"):
            about = _read(group / ".zmetadata")
            if isinstance(about.get("metadata"), dict):
                names = {name: f"/{name}" for name in (".zarray", ".zgroup", ".zattrs")}
                _list_nodes(about["metadata"], group, path, names)
                _replace(group / ".zmetadata", about)
        else:
            return


def _is_there(file: Place) -> bool:
    """Whether there is a file that this process may see."""
    try:
        return file.is_file()
    except PermissionError:
        return False


def _list_nodes(listed: dict[str, Any], group: Place, path: Place, names: Mapping[str, str]) -> None:
    """Replace the entries of a node and of all inside it; `names` are those of metadata files, and how keys end."""
    own = path.relative_to(group).as_posix()
    for key in [key for key in listed if key == own or key.startswith(f"{own}/")]:
        del listed[key]
    for node in _nodes(path):
        for name, end in names.items():
            if (node / name).is_file():
                listed[node.relative_to(group).as_posix() + end] = _read(node / name)


def _nodes(path: Place) -> Iterator[Place]:
    """A node and those inside it; chunks are not looked at."""
    yield path
    if _read(path / "zarr.json").get("node_type") == "group" or (path / ".zgroup").is_file():
        for child in _children(path):
            if child.is_dir() and not child.name.startswith("."):
                yield from _nodes(child)


def _children(folder: Place) -> list[Place]:
    found: list[Place] = [*folder.iterdir()]
    return sorted(found, key=str)


def _read(path: Place) -> dict[str, Any]:
    """An object of a JSON file; an empty one where there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _replace(path: Place, content: Mapping[str, Any]) -> None:
    """Write a JSON file in one step: who reads meanwhile sees the old one or the new one."""
    if isinstance(path, ObjectPath):
        path.write_bytes(json.dumps(content, indent=2).encode())
        return
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        temporary.write_text(json.dumps(content, indent=2), encoding="utf-8")
        with contextlib.suppress(OSError):  # a new file has none
            os.chmod(temporary, path.stat().st_mode)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
