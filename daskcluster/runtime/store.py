"""The named store: a folder of products, from which a run resumes.

A folder with one JSON file, the key, and one Zarr group a product. A product is written under a hidden name and renamed
when it is complete (`files.atomic_path`), so at any moment every visible product is whole, whatever killed the run.
Every product carries a digest of its content, one a block where it has a row block, which are compared before a later
run believes it: a damaged product is put away, with a warning, and made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import dask.array as da
import numpy as np
import zarr

from ..errors import DamagedStoreError, StorageMismatchError, warn_user
from ..files import atomic_path, kind_of, local_path, remove
from ..files.digests import Damage, check_digest, check_numbers, describe_content, json_digest, read_arrays, reading
from ..files.locks import LOCK_FILE, FolderLock, check_free
from ..files.places import KEY_FILE
from ..typing import PathInput
from .held import Held, Summarize, as_dask, create_rows, damaged_blocks, fill

__all__ = ["NamedStore", "describe_product", "read_key"]

#: Entries of a key.
_KEY_NAMES = {"format", "method", "parameters", "seed", "input", "stages"}

#: Held rows, and a small dict a block.
RowProduct = tuple[da.Array, list[dict[str, Any]]]

Product = TypeVar("Product")


class NamedStore:
    """A named store, bound to what decides its products.

    Parameters
    ----------
    storage : path
        Nothing is made there before `open`.

    Raises
    ------
    ValueError
        If it is something else than a store made here, or an empty or new folder.
    DamagedStoreError
        If its key is damaged.
    """

    def __init__(self, storage: PathInput) -> None:
        self.folder = local_path(storage)
        self._lock: FolderLock | None = None
        #: The key that was found, or None.
        self.stored = read_key(self.folder)

    # -- the key -------------------------------------------------------------------------------------------------------

    def check(self, key: dict[str, Any]) -> None:
        """Refuse a store of another method, parameters or seed."""
        if self.stored is None:
            return
        for name, given in key.items():
            found = self.stored.get(name)
            if isinstance(given, dict) and isinstance(found, dict):
                differ = sorted(k for k in given.keys() | found.keys() if given.get(k) != found.get(k))
                what = ", ".join(f"{k}={found.get(k)!r} there and {given.get(k)!r} here" for k in differ)
            else:
                differ = [name] if given != found else []
                what = f"{found!r} there and {given!r} here"
            if differ:
                raise StorageMismatchError(
                    f"storage {str(self.folder)!r} was made with other {name} ({what}); "
                    "give the same ones, another storage, or remove the folder"
                )

    def check_free(self) -> None:
        """Refuse a store that another fit is writing to; `open` does so again, and takes hold of it."""
        check_free(self.folder, "storage")

    def open(self, key: dict[str, Any], more: dict[str, Any]) -> None:
        """Take hold of the store, and bind it to a key that has the input's fingerprint; `more` is noted beside it.

        Raises
        ------
        StorageMismatchError
            If the store was made from other data.
        StorageBusyError
            If another fit holds it.
        """
        if self._lock is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = FolderLock(self.folder, "storage")
        self.stored = read_key(self.folder)  # another fit may have made it since
        if self.stored is None:
            with atomic_path(self.folder / KEY_FILE, kind="file") as temporary:
                content = json.loads(json.dumps({**key, **more}))
                content["digest"] = json_digest(content)
                temporary.write_text(json.dumps(content, indent=1, sort_keys=True))
            return
        self.check({name: value for name, value in key.items() if name != "input"})
        if self.stored.get("input") != key["input"]:
            raise StorageMismatchError(
                f"storage {str(self.folder)!r} was made from other data; give the same data, another storage, "
                "or remove the folder"
            )

    @property
    def held_folder(self) -> Path | None:
        """The folder, while this fit holds it."""
        return None if self._lock is None else self.folder

    def close(self) -> None:
        """Give the store free."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # -- products ------------------------------------------------------------------------------------------------------

    def kept(self, name: str, read: Callable[[Path], Product]) -> Product | None:
        """What `read` finds under a product's path; None where it is not there, or damaged: then it is put away.

        `read` raises `DamagedStoreError` or `Damage`.
        """
        path = self.folder / name
        if not path.exists():
            return None
        try:
            return read(path)
        except Damage as damage:
            what = f"product {name!r} of storage {str(self.folder)!r} is damaged: {damage}"
        except DamagedStoreError as error:
            what = f"a product of storage {str(self.folder)!r} cannot be used: {error}"
        if kind_of(path) == "file" or (kind_of(path) == "array" and not any(path.glob("*/zarr.json"))):
            raise DamagedStoreError(
                f"storage {str(self.folder)!r} has something under {name!r} that no fit made; move it elsewhere, "
                "and give the same command again"
            )
        warn_user(f"{what}; it is made again")
        remove(path)
        return None

    def small(self, name: str) -> dict[str, Any] | None:
        """A product of small arrays and numbers."""
        return self.kept(name, _read_small)

    def keep_small(self, name: str, product: dict[str, Any]) -> dict[str, Any]:
        """Keep one; returned as it is read again."""
        path = self.folder / name
        arrays = {key: value for key, value in product.items() if isinstance(value, np.ndarray)}
        values = json.loads(json.dumps({key: value for key, value in product.items() if key not in arrays}))
        needed = sum(array.nbytes for array in arrays.values())
        with atomic_path(path, needed_bytes=needed) as temporary:
            group = zarr.open_group(temporary, mode="w")
            for key, array in arrays.items():
                group.create_array(key, data=array)
            content = {"values": values, "arrays": describe_content(arrays)}
            group.attrs.update({**content, "digest": json_digest(content)})
        return _read_small(path)

    def rows(self, name: str, like: da.Array) -> RowProduct | None:
        """A product with one entry a row, in the blocks of another array; every block is compared with its digest."""
        return self.kept(name, lambda path: _read_rows(path, like, check=True))

    def keep_rows(self, name: str, array: da.Array, summarize: Summarize | None) -> RowProduct:
        """Compute and keep one."""
        path = self.folder / name
        with atomic_path(path, needed_bytes=array.nbytes) as temporary:
            group = zarr.open_group(temporary, mode="w")
            stored = create_rows(group, array)
            summaries, digests = fill(Held(stored, None), array, name, summarize, digests=True)
            content = {"summaries": json.loads(json.dumps(summaries)), "blocks": digests, "rows": _form(stored)}
            group.attrs.update({**content, "digest": json_digest(content)})
        return _read_rows(path, array, check=False)


def _form(array: zarr.Array[Any]) -> dict[str, Any]:
    return {"shape": list(array.shape), "dtype": array.dtype.str, "chunks": list(array.chunks)}


def _read_small(path: Path) -> dict[str, Any]:
    with reading("its description"):
        group = zarr.open_group(path, mode="r")
        content: dict[str, Any] = group.attrs.asdict()
        values = dict(content["values"])
        declared = content["arrays"] if check_digest(content, "its description", since="arrays") else None
    return {**values, **read_arrays(group, declared)}


def _read_rows(path: Path, like: da.Array, *, check: bool) -> RowProduct:
    with reading("its description"):
        group = zarr.open_group(path, mode="r")
        content: dict[str, Any] = group.attrs.asdict()
        has_digest = check_digest(content, "its description", since="blocks")
        summaries = list(content["summaries"])
        stored = group["rows"]
        if not isinstance(stored, zarr.Array):
            raise Damage("its rows are no array")
        check_numbers("its array 'rows'", stored)
        form = _form(stored)
    wanted = {"shape": list(like.shape), "chunks": list(like.chunksize)}
    if any(form[key] != wanted[key] for key in wanted) or len(summaries) != like.numblocks[0]:
        raise Damage(f"it has shape {form['shape']} in chunks {form['chunks']}, and {len(summaries)} summaries")
    if has_digest and form != content["rows"]:
        raise Damage("the form of its rows is not what was stored")
    held = Held(stored, None)
    if check:
        with reading("its rows"):
            bad = damaged_blocks(held, path.name, content["blocks"] if has_digest else None)
        if bad:
            raise Damage(f"{len(bad)} of its {like.numblocks[0]} row blocks are not what was stored, first {bad[0]}")
    return as_dask(held, like), summaries


def describe_product(path: Path) -> dict[str, dict[str, Any]] | None:
    """Shape, dtype and chunks of the arrays of a product by name, as JSON; None where its description is damaged."""
    try:
        with reading("its description"):
            group = zarr.open_group(path, mode="r")
            if not group.attrs.get("daskcluster"):  # a model has its own digest
                check_digest(group.attrs.asdict(), "its description")
            return {
                name: {"shape": list(array.shape), "dtype": str(array.dtype), "chunks": list(array.chunks)}
                for name, array in sorted(group.arrays())
            }
    except Damage:
        return None


# -- the key -----------------------------------------------------------------------------------------------------------


def read_key(folder: Path) -> dict[str, Any] | None:
    """The key of a named store; None for a folder that is new or empty."""
    file = folder / KEY_FILE
    if file.is_file():
        try:
            with reading(f"its {KEY_FILE}"):
                key = dict(json.loads(file.read_text(encoding="utf-8")))
                if not check_digest(key, f"its {KEY_FILE}") and not key.keys() <= _KEY_NAMES:
                    raise Damage(f"its {KEY_FILE} has other entries than a key has")
                int(key["seed"]), str(key["method"]), dict(key["parameters"])
        except Damage as damage:
            raise DamagedStoreError(
                f"storage {str(folder)!r} is damaged: {damage}; what its products belong to is not known any more: "
                "remove the folder, or give another storage"
            ) from damage
        return {name: value for name, value in key.items() if name != "digest"}
    if folder.exists() and (not folder.is_dir() or any(not _is_leftover(item) for item in folder.iterdir())):
        raise ValueError(f"storage must be a store made by daskcluster, or an empty or new folder, got {str(folder)!r}")
    return None


def _is_leftover(path: Path) -> bool:
    return path.name.startswith((f".{KEY_FILE}.partial", LOCK_FILE))
