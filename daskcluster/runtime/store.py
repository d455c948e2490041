"""The named store: a folder of products, or a prefix in an object store, from which a run resumes.

A folder with one JSON file, the key, and one Zarr group a product. A product is written under a hidden name and renamed
when it is complete, so at any moment every visible product is whole, whatever killed the run. Every product carries a
digest of its content, one a block where it has a row block, which are compared before a later run believes it: a
damaged product is put away, with a warning, and made again.

What is not complete grows under names that do not change, so that the next run goes on with it:

==================  ==================================================================================================
``.NAME.growing``   rows of a product: its row blocks that are there; in an object store, which has no rename, they
                    are under ``NAME``, which is no product before the document of its group is written, last
``.NAME.parts``     records: which row blocks are finished, each with its digest and written after it; or what the
                    passes found that a small product is made from (`parts.py`)
``.scan-ID.parts``  what the first passes over the input found, as long as this is the same, see `scanning`
==================  ==================================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import dask.array as da
import numpy as np
import zarr

from ..errors import DamagedStoreError, StorageMismatchError, warn_user
from ..files import (
    ObjectPath,
    Place,
    atomic_path,
    create_group,
    growing_path,
    is_complete,
    kind_of,
    place_at,
    remove,
    zarr_place,
)
from ..files.digests import Damage, check_digest, check_numbers, describe_content, json_digest, read_arrays, reading
from ..files.locks import LOCK_FILE, FolderLock, check_free
from ..files.object_locks import ObjectLock, hold
from ..files.places import KEY_FILE
from ..files.records import Records
from ..files.urls import unreachable_in
from ..typing import PathInput
from .held import Held, Summarize, as_dask, create_rows, damaged_blocks, fill_blocks, remove_half_written
from .parts import Parts, recorded

__all__ = ["GROWING", "INNER", "PARTS", "SCAN", "NamedStore", "read_key"]

#: Entries of a key.
_KEY_NAMES = {"format", "method", "parameters", "seed", "input", "stages"}

#: Ends of the names of what grows; the scan's begins so.
GROWING, PARTS, SCAN, INNER = ".growing", ".parts", ".scan-", ".inner"

#: Held rows, and a small dict a block.
RowProduct = tuple[da.Array, list[dict[str, Any]]]

Product = TypeVar("Product")


class NamedStore:
    """A named store, bound to what decides its products.

    Parameters
    ----------
    storage : path
        Nothing is made there before `open`.
    inner : bool
        Whether it lies inside another one, which belongs to the same input: what its passes found is always believed.

    Raises
    ------
    ValueError
        If it is something else than a store made here, or an empty or new folder.
    DamagedStoreError
        If its key is damaged.
    """

    def __init__(self, storage: PathInput, inner: bool = False) -> None:
        self.folder = place_at(storage)
        self.inner = inner
        self._lock: FolderLock | ObjectLock | None = None
        self._scan: Parts | None = None
        #: The key that was found, or None.
        self.stored = read_key(self.folder)

    @property
    def bound(self) -> bool:
        """Whether the store belongs to some input; else nothing of it is there but what its first scan has found."""
        return self.stored is not None and self.stored.get("input") is not None

    # -- the key -------------------------------------------------------------------------------------------------------

    def check(self, key: dict[str, Any]) -> None:
        """Refuse a store of another method, parameters or seed."""
        if self.stored is None or not self.bound:
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
        self._hold()
        if not self.bound:
            self._write_key({**key, **more})
        else:
            self.check({name: value for name, value in key.items() if name != "input"})
            if self.stored is not None and self.stored["input"] != key["input"]:
                self._forget_scan()
                raise StorageMismatchError(
                    f"storage {str(self.folder)!r} was made from other data; give the same data, another storage, "
                    "or remove the folder"
                )
        own = None if self._scan is None else self._scan.path
        for other in self.folder.glob(f"{SCAN}*{PARTS}"):
            if other != own and own is not None:
                remove(other)

    def _hold(self) -> None:
        if self._lock is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = hold(self.folder, "storage")
        self.stored = read_key(self.folder)  # another fit may have made it since

    def _write_key(self, key: dict[str, Any]) -> None:
        content = json.loads(json.dumps(key))
        content["digest"] = json_digest(content)
        with atomic_path(self.folder / KEY_FILE, kind="file", overwrite=True) as temporary:
            temporary.write_text(json.dumps(content, indent=1, sort_keys=True))
        self.stored = read_key(self.folder)

    @contextmanager
    def scanning(self, identify: Callable[[], str | None], key: dict[str, Any], more: dict[str, Any]) -> Iterator[None]:
        """Keep what the passes inside find, before the store is bound to the input that they read.

        Parameters
        ----------
        identify : callable
            Gives what tells the input from one with other content, without reading it: a later run with the same one
            believes what is there. None where nothing tells, and nothing is kept.
        key, more : dict
            As for `open`; they do not bind a store that has no input yet.
        """
        identity = "inner" if self.inner else identify()
        if identity is None:
            yield
            return
        self._hold()
        if not self.bound:
            self._write_key({**key, **more, "input": None})
        self._scan = Parts(self.folder / f"{SCAN}{identity}{PARTS}")
        try:
            with recorded(self._scan):
                yield
        except ValueError:  # what the input is refused for, and not what interrupts
            self._forget_scan()
            raise
        self._scan.save_long()

    def _forget_scan(self) -> None:
        if self._scan is not None:
            self._scan.clear()
        if self._lock is not None and not self.bound:
            for other in self.folder.glob(f"{SCAN}*"):
                remove(other)
            (self.folder / KEY_FILE).unlink(missing_ok=True)
            self.stored = None

    @property
    def held_folder(self) -> Place | None:
        """The folder, while this fit holds it."""
        return None if self._lock is None else self.folder

    def close(self) -> None:
        """Give the store free."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    # -- products ------------------------------------------------------------------------------------------------------

    def kept(self, name: str, read: Callable[[Place], Product]) -> Product | None:
        """What `read` finds under a product's path; None where it is not there, or damaged: then it is put away.

        `read` raises `DamagedStoreError` or `Damage`.
        """
        path = self.folder / name
        if not is_complete(path):
            return None
        try:
            product = read(path)
            if self.parts_file(name).exists():  # of a run that was killed when it was just complete
                with suppress(OSError):
                    remove(self.parts_file(name))
            return product
        except Damage as damage:
            _check_reached(path, damage)
            what = f"product {name!r} of storage {str(self.folder)!r} is damaged: {damage}"
        except DamagedStoreError as error:
            _check_reached(path, error)
            what = f"a product of storage {str(self.folder)!r} cannot be used: {error}"
        if kind_of(path) == "file" or (kind_of(path) == "array" and not _holds_nodes(path)):
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

    def keep_small(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Make and keep one; returned as it is read again."""
        path = self.folder / name
        with self.making(name):
            product = make()
            arrays = {key: value for key, value in product.items() if isinstance(value, np.ndarray)}
            values = json.loads(json.dumps({key: value for key, value in product.items() if key not in arrays}))
            needed = sum(array.nbytes for array in arrays.values())
            content = {"values": values, "arrays": describe_content(arrays)}
            remove(path)  # chunks of a damaged one, where a kill ended its removal
            with atomic_path(path, needed_bytes=needed) as temporary:
                group = create_group(temporary, {**content, "digest": json_digest(content)})
                for key, array in arrays.items():
                    group.create_array(key, data=array)
        return _read_small(path)

    def parts_file(self, name: str) -> Place:
        """Where the records are of a product that grows."""
        return self.folder / f".{name}{PARTS}"

    @contextmanager
    def making(self, name: str, *, stays: bool = False) -> Iterator[None]:
        """Keep what the passes inside find until they have ended well: by then, what they are for is kept.

        What `stays` serves each run as long as the store is there.
        """
        parts = Parts(self.parts_file(name))
        with recorded(parts):
            yield
        if stays:
            parts.save_long()
        else:
            parts.clear()

    def rows(self, name: str, like: da.Array) -> RowProduct | None:
        """A product with one entry a row, in the blocks of another array; every block is compared with its digest."""
        return self.kept(name, lambda path: _read_rows(path, like, check=True))

    def keep_rows(self, name: str, array: da.Array, summarize: Summarize | None) -> RowProduct:
        """Compute and keep one, but for the blocks that an earlier run has finished."""
        path = self.folder / name
        with growing_path(path, self.folder / f".{name}{GROWING}", array.nbytes) as growing:
            records = Records(self.parts_file(name))
            stored, finished = _grown(growing, records, array, name)
            missing = [number for number in range(array.numblocks[0]) if number not in finished]

            def done(number: int, found: dict[str, Any]) -> None:
                finished[number] = found
                records.put({str(number): found})

            if missing:
                fill_blocks(Held(stored, None), array, name, summarize, missing, done)
            blocks = [finished[number] for number in range(array.numblocks[0])]
            content = {
                "summaries": json.loads(json.dumps([block["summary"] for block in blocks])),
                "blocks": [block["digest"] for block in blocks],
                "rows": _form(stored),
            }
            (growing / "zarr.json").unlink(missing_ok=True)  # of a run that was killed before it was renamed
            create_group(growing, {**content, "digest": json_digest(content)})
        records.clear()
        return _read_rows(path, array, check=False)

    def discard(self, name: str) -> None:
        """Remove a product, and what there is of one that grows."""
        for path in (self.folder / name, self.folder / f".{name}{GROWING}", self.parts_file(name)):
            remove(path)


def _grown(
    growing: Place, records: Records, like: da.Array, name: str
) -> tuple[zarr.Array[Any], dict[int, dict[str, Any]]]:
    """Rows that grow, and what is known of the blocks that are finished; empty ones where those are of another form."""
    form = {"shape": list(like.shape), "dtype": like.dtype.str, "chunks": list(like.chunksize)}
    if "rows" in records and records.get("rows") == form:
        try:
            with reading("its rows"):
                stored = zarr.open_array(zarr_place(growing / "rows"), mode="r+")
                if _form(stored) != form:
                    raise Damage("they have another form")
        except Damage as damage:
            _check_reached(growing, damage)
        else:
            return stored, _finished(growing, Held(stored, None), records, name)
    remove(growing)
    records.clear()
    stored = create_rows(growing / "rows", like)
    records.put({"rows": form})
    return stored, {}


def _finished(growing: Place, held: Held, records: Records, name: str) -> dict[int, dict[str, Any]]:
    """What the records say of blocks which are as they were written."""
    remove_half_written(growing)
    found = {int(key): records.get(key) for key in records if key != "rows"}
    bad = damaged_blocks(held, name, {number: block["digest"] for number, block in found.items()})
    if bad:
        warn_user(
            f"{len(bad)} of {len(found)} finished row blocks of the product {name!r} of storage "
            f"{str(growing.parent)!r} are not what was stored, first {bad[0]}; they are made again"
        )
    return {number: block for number, block in found.items() if number not in bad}


def _check_reached(path: Place, error: Exception) -> None:
    """Raise what says that a URL was not reached, if that is what looks like damage: nothing is removed for it."""
    said = unreachable_in(str(path), error) if isinstance(path, ObjectPath) else None
    if said is not None:
        raise said from error


def _holds_nodes(path: Place) -> bool:
    children: Iterator[Place] = path.iterdir()
    return any((child / "zarr.json").is_file() for child in children)


def _form(array: zarr.Array[Any]) -> dict[str, Any]:
    return {"shape": list(array.shape), "dtype": array.dtype.str, "chunks": list(array.chunks)}


def _read_small(path: Place) -> dict[str, Any]:
    with reading("its description"):
        group = zarr.open_group(zarr_place(path), mode="r")
        content: dict[str, Any] = group.attrs.asdict()
        values = dict(content["values"])
        declared = content["arrays"] if check_digest(content, "its description", since="arrays") else None
    return {**values, **read_arrays(group, declared)}


def _read_rows(path: Place, like: da.Array, *, check: bool) -> RowProduct:
    with reading("its description"):
        group = zarr.open_group(zarr_place(path), mode="r")
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
            bad = damaged_blocks(held, path.name, dict(enumerate(content["blocks"])) if has_digest else None)
        if bad:
            raise Damage(f"{len(bad)} of its {like.numblocks[0]} row blocks are not what was stored, first {bad[0]}")
    return as_dask(held, like), summaries


# -- the key -----------------------------------------------------------------------------------------------------------


def read_key(folder: Place) -> dict[str, Any] | None:
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


def _is_leftover(path: Place) -> bool:
    return path.name.startswith((f".{KEY_FILE}.partial", LOCK_FILE))
