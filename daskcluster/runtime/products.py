"""Where the products of stages are held: in memory, in a scratch store, or in a named store that a run resumes from."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.storage import LocalStore

from ..errors import StorageMismatchError
from ..files import atomic_path, local_path
from ..typing import PathInput, Seed
from .execution import active_client, compute, map_to_objects, persist, runs_in_process
from .seeding import root_seed

__all__ = ["Products", "budget_bytes"]

FORMAT = 1
_KEY_FILE = "daskcluster.json"


def budget_bytes() -> int:
    """Bytes that one fit may hold in memory: dask's setting ``daskcluster.memory-budget``, else 128 MiB."""
    return int(dask.utils.parse_bytes(dask.config.get("daskcluster.memory-budget", "128 MiB")))


class Products:
    """Holds what stages produce.

    Parameters
    ----------
    storage : path, optional
        Folder of the named store. None holds the products in memory up to `budget_bytes`, else in a scratch store under
        dask's ``temporary-directory`` that goes when the last array over it goes. On a distributed cluster they are
        held by the workers, which spill to their own disks.
    method, parameters : str, dict
        What decides the products besides the data.
    random_state : int, RandomState, Generator or None
        Gives the root seed, `seed`; None takes that of the named store if it has products.

    Raises
    ------
    StorageMismatchError
        If the named store holds products of another method or other parameters.
    TypeError
        If `storage` is no path.
    ValueError
        If `storage` is something else than a store made here, or an empty or new folder.

    Notes
    -----
    A named store is a folder with one JSON file, the key, and one Zarr group a product. A product is written under a
    hidden name and renamed when it is complete (`files.atomic_path`), so at any moment every visible product is
    whole, whatever killed the run.
    """

    def __init__(self, storage: PathInput | None, method: str, parameters: dict[str, Any], random_state: Seed) -> None:
        if storage is not None and not (isinstance(storage, str | os.PathLike) and os.fspath(storage)):
            raise TypeError(f"storage must be a path or None, got {storage!r}")
        self.folder = None if storage is None else local_path(storage)
        self._scratch: _ScratchFolder | None = None
        stored = None if self.folder is None else _read_key(self.folder)
        self.seed = root_seed(random_state) if stored is None or random_state is not None else int(stored["seed"])
        #: The stages of the fit, and what each keeps: noted beside the key, no part of it.
        self.stages: list[dict[str, Any]] = []
        self.key = {"format": FORMAT, "method": method, "parameters": _as_json(parameters), "seed": self.seed}
        if stored is not None:
            self._check_key(stored)

    @property
    def named(self) -> bool:
        """Whether the products go to a named store."""
        return self.folder is not None

    def _check_key(self, stored: dict[str, Any]) -> None:
        for name in self.key:
            given, found = self.key[name], stored.get(name)
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

    def open(self, fingerprint: str) -> None:
        """Bind the named store to the input's fingerprint.

        Raises
        ------
        StorageMismatchError
            If the store was made from other data.
        """
        if self.folder is None:
            return
        self.key["input"] = fingerprint
        stored = _read_key(self.folder)
        if stored is not None and stored.get("input") != fingerprint:
            raise StorageMismatchError(
                f"storage {str(self.folder)!r} was made from other data; give the same data, another storage, "
                "or remove the folder"
            )
        if stored is None:
            with atomic_path(self.folder / _KEY_FILE) as temporary:
                temporary.write_text(json.dumps({**self.key, "stages": self.stages}, indent=1, sort_keys=True))

    def small(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """A product of small arrays and numbers: from the named store if it is there, else made and kept there."""
        if self.folder is None:
            return make()
        path = self.folder / name
        if not path.exists():
            product = make()
            with atomic_path(path) as temporary:
                group = zarr.open_group(temporary, mode="w")
                scalars = {}
                for key, value in product.items():
                    if isinstance(value, np.ndarray):
                        group.create_array(key, data=value)
                    else:
                        scalars[key] = value
                group.attrs["values"] = scalars
        group = zarr.open_group(path, mode="r")
        attributes: dict[str, Any] = group.attrs.asdict()
        return {**attributes["values"], **{key: np.asarray(array[...]) for key, array in group.arrays()}}

    def path(self, name: str) -> Path:
        """Where a product of the named store is, or is to be."""
        if self.folder is None:
            raise ValueError("there is no named store")
        return self.folder / name

    def has(self, name: str) -> bool:
        """Whether the named store has a product."""
        return self.folder is not None and (self.folder / name).exists()

    def rows(
        self, name: str, array: da.Array, summarize: Callable[..., dict[str, Any]] | None = None
    ) -> tuple[da.Array, list[dict[str, Any]]]:
        """A product with one entry a row, computed now and held.

        Parameters
        ----------
        name : str
        array : dask array (n, ...)
            Lazy; chunked by rows into equal blocks but the last.
        summarize : callable, optional
            (block, number) -> small dict, computed in the same tasks.

        Returns
        -------
        held : dask array
            Equal to `array`, read from where it is held.
        summaries : list of dict
            One a block, in block order.

        Notes
        -----
        A task that writes holds its block and nothing else; chunks of the store are the row blocks, so no two tasks
        write the same chunk.
        """
        task = partial(_summary, summarize=summarize)
        if self.folder is not None:
            path = self.folder / name
            if not path.exists():
                with atomic_path(path) as temporary:
                    self._write(temporary, array, task)
            return _open_rows(path, array)
        # What follows a product that did not fit goes the same way, so that memory stays the same for any n.
        fits = self._scratch is None and array.nbytes <= budget_bytes()
        if fits and active_client() is None and runs_in_process():
            # One array that the tasks fill: with persisted blocks dask would run a second task a block and pass.
            held = _Held(np.empty(array.shape, array.dtype), None)
            return _as_dask(held, array), _fill(held, array, task, name)
        if fits or active_client() is not None:
            summaries = map_to_objects(task, array, name=f"dc-{name}-sum")
            if summarize is None:
                return persist(array)[0], []
            persisted, summaries = persist(array, summaries)
            return persisted, list(compute(summaries)[0])
        owner = self._scratch_folder()
        self._write(owner.path / name, array, task)
        return _open_rows(owner.path / name, array, owner)

    def _write(self, path: Path, array: da.Array, task: Callable[..., dict[str, Any]]) -> None:
        group = zarr.open_group(path, mode="w")
        # Written once and read a few times from the page cache: a codec would cost more than it saves.
        target = group.create_array(
            "rows",
            shape=array.shape,
            dtype=array.dtype,
            chunks=array.chunksize,
            compressors=None,
            filters=None,
        )
        group.attrs["summaries"] = _fill(_Held(target, None), array, task, path.name)

    def _scratch_folder(self) -> _ScratchFolder:
        if self._scratch is None:
            self._scratch = _ScratchFolder()
        return self._scratch


class _ScratchFolder:
    """A folder under dask's ``temporary-directory`` that lives as long as this object."""

    def __init__(self) -> None:
        where = dask.config.get("temporary-directory", None)
        if where is not None:
            os.makedirs(where, exist_ok=True)
        self.path = Path(tempfile.mkdtemp(prefix="daskcluster-", dir=where))
        weakref.finalize(self, shutil.rmtree, str(self.path), ignore_errors=True)


class _Held:
    """A product as dask reads and writes it: keeps the scratch folder in this process, is a plain array elsewhere.

    Whole chunks of a store made here, which has no codec, are their files' bytes: they are written straight to these
    and read as maps of these, without the copies and the thread hops of zarr's general way, which took a quarter of a
    fit's time. Everything else goes through zarr.
    """

    def __init__(self, array: Any, owner: _ScratchFolder | None) -> None:
        self.array = array
        self.owner = owner
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim
        self._token = uuid.uuid4().hex

    def __getitem__(self, index: Any) -> NDArray[Any]:
        rows = index[0] if isinstance(index, tuple) else index
        file = self._chunk_file(rows)
        if file is None or not file.is_file():
            return np.asarray(self.array[index])
        block = np.memmap(file, self.dtype, "r", shape=(rows.stop - rows.start, *self.shape[1:]))
        return np.asarray(block[(slice(None), *index[1:])] if isinstance(index, tuple) else block)

    def __setitem__(self, rows: slice, block: NDArray[Any]) -> None:
        file = self._chunk_file(rows)
        if file is None:
            self.array[rows] = block
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "wb") as target:
            np.ascontiguousarray(block, self.dtype).tofile(target)
            # A stored chunk is whole; what stands behind the last row is never read.
            target.truncate(self.array.chunks[0] * self.dtype.itemsize * math.prod(self.shape[1:]))

    def _chunk_file(self, rows: Any) -> Path | None:
        """The file of the chunk that the rows begin and do not exceed; None for other rows, and for NumPy arrays."""
        if not isinstance(self.array, zarr.Array) or not isinstance(self.array.store, LocalStore):
            return None
        if not (isinstance(rows, slice) and isinstance(rows.start, int) and isinstance(rows.stop, int)):
            return None
        size = self.array.chunks[0]
        last = min(rows.start + size, self.shape[0])
        if rows.step not in (None, 1) or rows.start % size or not rows.start < rows.stop <= last:
            return None
        chunk = self.array.metadata.encode_chunk_key((rows.start // size,) + (0,) * (self.ndim - 1))
        return Path(self.array.store.root) / self.array.path / chunk

    def __reduce__(self) -> Any:
        return _Held, (self.array, None)

    def __dask_tokenize__(self) -> Any:
        return ("daskcluster-held", self._token)  # without hashing the content


def _open_rows(
    path: Path, like: da.Array, owner: _ScratchFolder | None = None
) -> tuple[da.Array, list[dict[str, Any]]]:
    group = zarr.open_group(path, mode="r")
    attributes: dict[str, Any] = group.attrs.asdict()
    return _as_dask(_Held(group["rows"], owner), like), attributes["summaries"]


def _as_dask(held: _Held, like: da.Array) -> da.Array:
    return da.from_array(held, chunks=like.chunks, name=f"dc-held-{uuid.uuid4().hex}", asarray=False)


def _fill(target: Any, array: da.Array, task: Callable[..., dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Compute an array into a target of its shape, block by block; the summaries of its blocks."""
    writer = partial(_write_block, target=target, size=array.chunksize[0], task=task)
    return list(compute(map_to_objects(writer, array, name=f"dc-{name}"))[0])


def _summary(block: NDArray[Any], number: int, summarize: Callable[..., dict[str, Any]] | None) -> dict[str, Any]:
    return {} if summarize is None else summarize(block)


def _write_block(
    block: NDArray[Any], number: int, target: Any, size: int, task: Callable[..., dict[str, Any]]
) -> dict[str, Any]:
    target[number * size : number * size + len(block)] = block
    return task(block, number=number)


def _read_key(folder: Path) -> dict[str, Any] | None:
    """The key of a named store; None for a folder that is new or empty."""
    file = folder / _KEY_FILE
    if file.is_file():
        try:
            key = json.loads(file.read_text())
        except ValueError as error:
            raise ValueError(f"storage {str(folder)!r}: its {_KEY_FILE} cannot be read: {error}") from error
        return dict(key)
    if folder.exists() and (not folder.is_dir() or any(not _is_leftover(item) for item in folder.iterdir())):
        raise ValueError(f"storage must be a store made by daskcluster, or an empty or new folder, got {str(folder)!r}")
    return None


def _as_json(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters as they come back from JSON."""
    return dict(json.loads(json.dumps({key: _plain(value) for key, value in parameters.items()})))


def _plain(value: Any) -> Any:
    """A value as JSON takes it, equal for equal values only: no text of an object, which its class may shorten.

    An estimator is its class and its parameters, an array its dtype, shape and a hash of its content, and an object of
    an unknown kind dask's token of it.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        content = hashlib.blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
        return f"{value.dtype} array {value.shape} {content}"
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "get_params") and not isinstance(value, type):
        return {"class": type(value).__qualname__, "parameters": _plain(value.get_params(deep=False))}
    return f"{type(value).__qualname__} {dask.base.tokenize(value)}"


def _is_leftover(path: Path) -> bool:
    return path.name.startswith(f".{_KEY_FILE}.partial")
