"""Where the products of stages are held: in memory, in a scratch store, or in a named store that a run resumes from."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..files import Place, check_apart, check_outside, place_at, place_of, remove
from ..files.disk import disk_full
from ..typing import PathInput, Seed
from .blocks import check_blocks
from .execution import active_client, compute, map_to_objects, persist, runs_in_process
from .held import Held, as_dask, create_rows, fill, in_pieces
from .pieces import task_name
from .scratch import ScratchFolder
from .seeding import root_seed
from .standing import resumption
from .store import INNER, NamedStore, Product, RowProduct

__all__ = ["Products", "budget_bytes"]

FORMAT = 1

#: The folder that the next fit takes as its named store, see `Products.inner`.
_inner: ContextVar[list[Place]] = ContextVar("daskcluster_inner_store", default=[])  # noqa: B039  # never filled


def budget_bytes() -> int:
    """Bytes that one fit may hold in memory: dask's setting ``daskcluster.memory-budget``, else 128 MiB."""
    return int(dask.utils.parse_bytes(dask.config.get("daskcluster.memory-budget", "128 MiB")))


class Products:
    """Holds what stages produce.

    Parameters
    ----------
    storage : path, optional
        Folder or URL of the named store. None holds the products in memory up to `budget_bytes`, else in a scratch
        store under dask's ``temporary-directory`` that goes when the last array over it goes. On a distributed cluster
        they are held by the workers, which spill to their own disks.
    method, parameters : str, dict
        What decides the products besides the data.
    random_state : int, RandomState, Generator or None
        Gives the root seed, `seed`; None takes that of the named store if it has products.
    inputs : mapping of str, optional
        What the fit is given, by argument: the named store must be apart from what is stored of it.

    Raises
    ------
    StorageMismatchError
        If the named store holds products of another method or other parameters.
    StorageBusyError
        If another fit is writing to the named store.
    DamagedStoreError
        If the key of the named store is damaged; damaged products are made again.
    TypeError
        If `storage` is no path.
    ValueError
        If `storage` is something else than a store made here, or an empty or new folder; or if it is, holds or lies
        inside an input.
    FileExistsError
        If it lies inside an array, a saved model or another named store.

    Notes
    -----
    What a named store is, says `store.py`. `close` gives it free for other fits.
    """

    def __init__(
        self,
        storage: PathInput | None,
        method: str,
        parameters: dict[str, Any],
        random_state: Seed,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        if storage is not None and not (isinstance(storage, str | os.PathLike) and os.fspath(storage)):
            raise TypeError(f"storage must be a path or None, got {storage!r}")
        if storage is not None:
            check_apart(
                {"storage": os.fspath(storage)}, {name: place_of(given) for name, given in (inputs or {}).items()}
            )
            check_outside(place_at(storage), os.fspath(storage))
        waiting = _inner.get()
        if storage is None and waiting:
            self._store: NamedStore | None = NamedStore(waiting.pop(), inner=True)
        else:
            self._store = None if storage is None else NamedStore(storage)
        self._scratch: ScratchFolder | None = None
        stored = None if self._store is None else self._store.stored
        self.seed = root_seed(random_state) if stored is None or random_state is not None else int(stored["seed"])
        #: The stages of the fit, and what each keeps: noted beside the key, no part of it.
        self.stages: list[dict[str, Any]] = []
        self.key = {"format": FORMAT, "method": method, "parameters": _as_json(parameters), "seed": self.seed}
        if self._store is not None:
            self._store.check_free()
            self._store.check(self.key)
        #: What is there of an earlier run, in words; empty where nothing is.
        self.resumes = "" if stored is None or self._store is None else resumption(self._store.folder)

    @property
    def named(self) -> bool:
        """Whether the products go to a named store."""
        return self._store is not None

    @property
    def hashes(self) -> bool:
        """Whether the input is to be hashed, for `open`; that of a fit inside another one is known to be the same."""
        return self._store is not None and not self._store.inner

    @contextmanager
    def inner(self, name: str) -> Iterator[None]:
        """Let the first fit inside, which names no storage, use a named store inside this one while that lasts."""
        if self._store is None:
            yield
            return
        folder = self._store.folder / f".{name}{INNER}"
        token = _inner.set([folder])
        try:
            yield
        finally:
            _inner.reset(token)
        remove(folder)

    @property
    def held_folder(self) -> Place | None:
        """The folder of the named store while this fit holds it."""
        return None if self._store is None else self._store.held_folder

    def open(self, fingerprint: str) -> None:
        """Bind the named store to the input's fingerprint, and hold it for this fit.

        Raises
        ------
        StorageMismatchError
            If the store was made from other data.
        StorageBusyError
            If another fit holds it.
        """
        self.key["input"] = fingerprint
        if self._store is not None:
            self._store.open(self.key, {"stages": self.stages})

    def close(self) -> None:
        """Give the named store free; the fit has ended."""
        if self._store is not None:
            self._store.close()

    def small(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """A product of small arrays and numbers: from the named store if it is there, else made and kept there."""
        if self._store is None:
            return make()
        kept = self._store.small(name)
        return self._store.keep_small(name, make) if kept is None else kept

    @contextmanager
    def making(self, name: str, *, stays: bool = False) -> Iterator[None]:
        """Keep in the named store what the passes inside find, until they have ended well; see `parts.py`.

        For products that are made together; `small` does so by itself. It `stays` where what is found is no product,
        and is needed by each run.
        """
        with nullcontext() if self._store is None else self._store.making(name, stays=stays):
            yield

    @contextmanager
    def scanning(self, identify: Callable[[], str | None]) -> Iterator[None]:
        """Keep in the named store what the first passes over an input find, where something tells it without reading.

        Before `open`, whose fingerprint they make. `identify` gives the input's identity, and is called where that is
        needed: it looks at every file.
        """
        if self._store is None:
            yield
            return
        with self._store.scanning(identify, self.key, {"stages": self.stages}):
            yield

    def path(self, name: str) -> Place:
        """Where a product of the named store is, or is to be."""
        if self._store is None:
            raise ValueError("there is no named store")
        return self._store.folder / name

    def discard(self, name: str) -> None:
        """Remove a product of the named store, if it has it or a part of it."""
        if self._store is not None:
            self._store.discard(name)

    def sweep(self, *stems: str) -> None:
        """Remove what a killed run left beside products whose names begin so, which are all there."""
        if self._store is None:
            return
        for path in self._store.folder.glob(".*"):
            if path.name.lstrip(".").startswith(stems):
                remove(path)

    def scaffolding(self, name: str, array: da.Array, summarize: Callable[..., dict[str, Any]] | None) -> RowProduct:
        """Rows that later products are made from, and nothing else: `discard` them when those are kept.

        Without a named store they go with the array over them. Their name begins with a dot.
        """
        return (Products(None, name, {}, 0) if self._store is None else self).rows(name, array, summarize)

    def kept(self, name: str, read: Callable[[Place], Product]) -> Product | None:
        """What `read` makes of a product's path, if the named store has one that is not damaged."""
        return None if self._store is None else self._store.kept(name, read)

    def kept_small(self, name: str) -> dict[str, Any] | None:
        """A product of small arrays and numbers, if the named store has it."""
        return None if self._store is None else self._store.small(name)

    def kept_rows(self, name: str, like: da.Array) -> da.Array | None:
        """A product with one entry a row, if the named store has it; in the blocks of `like`."""
        found = None if self._store is None else self._store.rows(name, like)
        return None if found is None else found[0]

    def rows(self, name: str, array: da.Array, summarize: Callable[..., dict[str, Any]] | None = None) -> RowProduct:
        """A product with one entry a row, computed now and held.

        Parameters
        ----------
        name : str
        array : dask array (n, ...)
            Lazy; chunked by rows into equal blocks but the last.
        summarize : callable, optional
            Block -> small dict, computed in the same tasks.

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
        if self._store is not None:
            return self._store.rows(name, array) or self._store.keep_rows(name, array, summarize)
        # What follows a product that did not fit goes the same way, so that memory stays the same for any n.
        fits = self._scratch is None and array.nbytes <= budget_bytes()
        if fits and active_client() is None and runs_in_process():
            # One array that the tasks fill: with persisted blocks dask would run a second task a block and pass.
            held = Held(np.empty(array.shape, array.dtype), None)
            return as_dask(held, array), fill(held, array, name, summarize)
        if fits or active_client() is not None:
            array = check_blocks(f"the product {name!r}", array)
            if (pieces := in_pieces(array, name, summarize)) is not None:
                return pieces
            if summarize is None:
                return persist(array)[0], []
            summaries = map_to_objects(partial(_summary, summarize=summarize), array, name=task_name(f"{name}-sum"))
            persisted, summaries = persist(array, summaries)
            return persisted, list(compute(summaries)[0].ravel())
        if self._scratch is None:
            self._scratch = ScratchFolder()
        return _write_scratch(self._scratch, name, array, summarize)


def _summary(block: NDArray[Any], number: int, summarize: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    return summarize(block)


def _write_scratch(
    owner: ScratchFolder, name: str, array: da.Array, summarize: Callable[..., dict[str, Any]] | None
) -> RowProduct:
    path = owner.path / name
    try:
        stored = create_rows(path / "rows", array)
        summaries = fill(Held(stored, None), array, name, summarize)
    except OSError as error:
        remove(path)
        full = disk_full(
            error,
            owner.path,
            f"{array.nbytes:,} bytes",
            "name a folder on another disk with dask's setting temporary-directory (DASK_TEMPORARY_DIRECTORY)",
        )
        if full is None:
            raise
        raise full from error
    return as_dask(Held(stored, owner), array), summaries


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
