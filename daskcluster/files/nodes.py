"""What stands under a path or URL: a Zarr array, a group, something else; opened, or described in one line."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import zarr

from ..typing import PathInput
from .objects import ObjectPath
from .places import expand
from .urls import is_url, reaching, store_options

__all__ = [
    "CSR",
    "describe_group",
    "describe_sparse",
    "found_at_url",
    "has_zarr_metadata",
    "is_nothing",
    "no_node",
    "open_node",
    "zip_of",
]

#: Files that a Zarr array or group has.
METADATA = ("zarr.json", ".zarray", ".zgroup")

#: How AnnData marks groups that are sparse matrices.
SPARSE = ("csr_matrix", "csc_matrix")
#: The arrays of one.
CSR = ("data", "indices", "indptr")


def has_zarr_metadata(path: Path) -> bool:
    """Tell whether a folder is a Zarr array or group, readable or not."""
    return any((path / name).is_file() for name in METADATA)


def open_node(path: PathInput) -> zarr.Array[Any] | zarr.Group:
    """Open the array or group under a path or URL for reading; in a zip file, too.

    Raises
    ------
    OSError, ValueError, KeyError, ImportError
        If there is none; `no_node` says what is there.
    """
    name = expand(path)
    archive, inside = zip_of(name)
    if archive is None:
        if is_url(name):
            with reaching(name):
                return zarr.open(name, mode="r", storage_options=store_options(name) or None)
        # An absolute path holds in worker processes that were started elsewhere.
        return zarr.open(os.path.abspath(name), mode="r")
    store = zarr.storage.ZipStore(os.path.abspath(archive), mode="r")  # tasks open it by this path
    try:
        return zarr.open(store, mode="r", path=inside)
    except zipfile.BadZipFile as error:
        raise ValueError(str(error)) from error


def zip_of(name: str) -> tuple[str | None, str]:
    """Split a path at the zip file in it: "x.zarr.zip/X" -> "x.zarr.zip", "X"; None where there is no such file."""
    if "://" in name:
        return None, ""
    path = Path(name)
    for part in (path, *path.parents):
        if part.suffix.lower() == ".zip" and part.is_file():
            return str(part), "" if part == path else path.relative_to(part).as_posix()
    return None, ""


# -- saying what is there --------------------------------------------------------------------------------------


def no_node(path: PathInput, error: Exception) -> Exception:
    """Return the exception that tells what stands under a path that is no Zarr node."""
    name = expand(path)
    if "://" in name:
        return _no_node_at_url(name, error)
    archive, inside = zip_of(name)
    if archive is not None:
        return _no_node_in_zip(name, archive, inside, error)
    here = Path(name)
    if here.is_dir():
        if has_zarr_metadata(here):
            return ValueError(f"{name!r} has Zarr metadata that cannot be read: {_one_line(error)}")
        inside = next((child.name for child in sorted(here.iterdir()) if has_zarr_metadata(child)), "")
        hint = f"; {str(here / inside)!r} has some" if inside else ""
        return ValueError(f"{name!r} is a folder, not a Zarr array: it has no Zarr metadata{hint}")
    if here.exists():
        advice = _FILES.get(
            here.suffix.lower(), "it may be .parquet, .npy or .h5 too, and `daskcluster convert` reads .npz and .csv"
        )
        return ValueError(f"{name!r} is a file, not a Zarr array; {advice}")
    return FileNotFoundError(f"no Zarr array at {name!r}: nothing exists there")


# How files of other kinds are read.
_FILES = (
    dict.fromkeys((".grib", ".grib2"), "open it with xarray and chunks={}, and give that or a variable")
    | dict.fromkeys((".tif", ".tiff", ".vrt"), "open it with rioxarray and chunks=True, and give that")
    | dict.fromkeys(
        (".csv", ".tsv", ".txt"), "every pass would parse its text again: store it with `daskcluster convert`"
    )
    | {".npz": "it has to be unpacked as a whole: store its array with `daskcluster convert`"}
)


def _no_node_at_url(name: str, error: Exception) -> Exception:
    if isinstance(error, ImportError | PermissionError | ConnectionError):
        return error  # says where, and why
    if is_nothing(error):
        return ValueError(f"no Zarr array at {name!r}: {found_at_url(name)}")
    return ValueError(f"no Zarr array at {name!r}: {_one_line(error)}")


def is_nothing(error: Exception) -> bool:
    """Whether zarr says that it found nothing at all."""
    return "No group found in store" in str(error)


def found_at_url(name: str) -> str:
    """What is found where no Zarr metadata are."""
    if "::" in name:
        return "nothing is found there"
    here = ObjectPath(name)
    try:
        if here.is_file():
            return "it is an object, not an array"
        inside = next((child.name for child in here.iterdir() if (child / "zarr.json").is_file()), None)
        if inside is not None:
            return f"it has no Zarr metadata; '{here.url}/{inside}' has some"
        if here.is_dir():
            return "objects are there, and no Zarr metadata: no array, or one that is not complete"
        bucket = here.parents[-1] if here.parents else here
        return "nothing is found there" if bucket.is_dir() else f"nothing is found there, nor in '{bucket.url}'"
    except (OSError, ValueError):  # that is all one may look at
        return "nothing is found there"


def _no_node_in_zip(name: str, archive: str, inside: str, error: Exception) -> Exception:
    try:
        with zipfile.ZipFile(archive) as content:
            names = content.namelist()
    except (OSError, zipfile.BadZipFile) as broken:
        return ValueError(f"{archive!r} is not a zip file that can be read: {_one_line(broken)}")
    folders = sorted({str(PurePosixPath(file).parent) for file in names if PurePosixPath(file).name in METADATA})
    if not folders:
        return ValueError(f"{archive!r} is a zip file without a Zarr array")
    if inside in folders or (not inside and "." in folders):
        return ValueError(f"{name!r} has Zarr metadata that cannot be read: {_one_line(error)}")
    found = ", ".join(repr(f"{archive}/{folder}") if folder != "." else repr(archive) for folder in folders[:4])
    return FileNotFoundError(f"no Zarr array at {name!r}; the zip file has Zarr metadata at {found}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def describe_group(name: str, group: zarr.Group, n_axes: int = 2) -> str:
    """Say that a path is a group, and which arrays it holds; those of numbers with so many axes first."""
    ours = group.attrs.get("daskcluster")
    if isinstance(ours, Mapping) and ours.get("kind") == "model":
        return f"{name!r} is a saved model ({ours.get('class')}), not a Zarr array; open it with load_model"
    name = name.removeprefix("file://")
    if group.attrs.get("encoding-type") in SPARSE:
        return describe_sparse(name, group.attrs["encoding-type"])
    arrays = _arrays_in(group)
    if not arrays:
        return f"{name!r} is an empty Zarr group, not a Zarr array"
    arrays.sort(key=lambda found: (_rank(found[1], n_axes), -found[1].size, found[0]))
    listed = ", ".join(f"{key} {array.shape}" for key, array in arrays[:8])
    if len(arrays) > 8:
        listed += f" and {len(arrays) - 8} more"
    said = f"{name!r} is a Zarr group, not an array; it holds {listed}"
    best = arrays[0][1]
    if best.dtype.kind not in "biuf":
        return f"{said}: none of numbers"
    advice = f"Name one of them, such as {name.rstrip('/') + '/' + arrays[0][0]!r}"
    return f"{said}. {advice}"


def describe_sparse(name: str, kind: Any) -> str:
    """Say that a group is a sparse matrix, and what takes one."""
    return (
        f"{name!r} is a sparse matrix of AnnData ({kind}), not an array: as csr_matrix it is rows for KMeans, USPEC, "
        "USENC and FastCSC; else store it dense, or name a dense table beside it, such as one of obsm"
    )


def _arrays_in(group: zarr.Group) -> list[tuple[str, zarr.Array[Any]]]:
    """All arrays below a group by their paths, but for the parts of sparse matrices."""
    members = list(group.members(max_depth=None))
    sparse = [
        f"{key}/" for key, node in members if isinstance(node, zarr.Group) and node.attrs.get("encoding-type") in SPARSE
    ]
    return [
        (key, node)
        for key, node in members
        if isinstance(node, zarr.Array) and not key.startswith(tuple(sparse)) and not _is_hidden(key)
    ]


def _is_hidden(key: str) -> bool:
    """Whether a path is that of an output which is not complete."""
    return any(part.startswith(".") for part in key.split("/"))


def _rank(array: zarr.Array[Any], n_axes: int) -> int:
    """How unlike an array is to the one that is looked for: numbers with so many axes, 0; other than numbers, last."""
    if array.dtype.kind not in "biuf":
        return 9
    return 0 if array.ndim == n_axes else 1 + (array.ndim < n_axes)
