"""Outputs in object stores: chunks first, and the records that make an array of them last.

There is no rename of many objects, so an output grows in its own place. Its metadata documents stand under other names
(``zarr.json.partial-...``) meanwhile: who looks there finds no array, or the old one that is replaced. Where an old one
stands, the chunks of the new one have keys of the other kind that Zarr has (``c/3/0`` and ``c.3.0``), so none is
overwritten, and the one request that replaces the document replaces the array.
"""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from zarr.abc.store import ByteRequest, Store
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import StorePath, WrapperStore

from .groups import list_in_groups, name_axes
from .locks import LOCK_FILE
from .object_locks import ObjectLock
from .objects import ObjectPath

__all__ = ["Unfinished", "is_unfinished", "record_last"]

#: Metadata documents of both formats, in the order in which they are published.
RECORDS = (".zattrs", ".zgroup", ".zarray", "zarr.json")
_HELD = re.compile(rf"(.*/)?({'|'.join(map(re.escape, RECORDS))})\.partial-([0-9a-f]+)")


class Unfinished(ObjectPath):
    """Where an output grows: like its final place, but that its metadata documents have other names."""

    token: str
    root: ObjectPath

    @classmethod
    def at(cls, root: ObjectPath) -> Unfinished:
        """A new one for a final place."""
        path = object.__new__(cls)
        path.url, path._fs, path.key = root.url, root._fs, root.key
        path.token, path.root = uuid.uuid4().hex, root
        return path

    def __truediv__(self, part: str) -> ObjectPath:
        if part in RECORDS:
            return self._at(f"{self.url}/{part}", f"{self.key}/{part}.partial-{self.token}")
        child = object.__new__(Unfinished)
        child.url, child._fs, child.key = f"{self.url}/{part}", self._fs, f"{self.key}/{part}"
        child.token, child.root = self.token, self.root
        return child

    def store_path(self) -> StorePath:
        """Where zarr creates what is to stand here."""
        inside = self.key[len(self.root.key) :].lstrip("/")
        return StorePath(_Held(self.root.store(), self.token), inside)

    def chunk_keys(self, n_axes: int, zarr_format: Literal[2, 3]) -> dict[str, Any]:
        """How chunks of an array that is created here are named: as none of one that stands here is.

        Where all names are alike, as those of one axis in format 2, what stands there goes now.
        """
        own = {"name": "default" if zarr_format == 3 else "v2", "separator": "/" if zarr_format == 3 else "."}
        standing = _encoding(_document(self._at(self.url, self.key), zarr_format))
        if standing != own:
            return own
        if n_axes < (1 if zarr_format == 3 else 2):
            _unpublish(self.root)
        return own | {"separator": "." if own["separator"] == "/" else "/"}


class _Held(WrapperStore[Store]):
    """A store in which metadata documents are written and found under names that end in ``.partial-TOKEN``.

    Chunks are written only while such a document of the whole is there: a task that is late, after its run was given
    up, writes nothing into what another run makes.
    """

    def __init__(self, store: Store, token: str) -> None:
        super().__init__(store)
        self.token = token

    def _with_store(self, store: Store) -> _Held:
        return _Held(store, self.token)

    def _key(self, key: str) -> str:
        return f"{key}.partial-{self.token}" if key.rpartition("/")[2] in RECORDS else key

    async def _goes_on(self) -> bool:
        for name in reversed(RECORDS):
            if await self.exists(name):
                return True
        return False

    async def get(self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None) -> Buffer | None:
        return await self._store.get(self._key(key), prototype, byte_range)

    async def exists(self, key: str) -> bool:
        return await self._store.exists(self._key(key))

    async def set(self, key: str, value: Buffer) -> None:
        if self._key(key) == key and not await self._goes_on():
            raise FileNotFoundError(f"{self._store}: the output was given up, and {key!r} is not written")
        await self._store.set(self._key(key), value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        await self._store.set_if_not_exists(self._key(key), value)

    async def delete(self, key: str) -> None:
        await self._store.delete(self._key(key))

    async def _set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        await self._store._set_many([(self._key(key), value) for key, value in values])

    async def _get_many(self, requests: Any) -> Any:
        for key, prototype, byte_range in requests:
            yield key, await self.get(key, prototype, byte_range)


def is_unfinished(place: ObjectPath, names: Iterable[str]) -> bool:
    """Whether a place without documents has nothing but an output that is not complete.

    `names` are those of all that lies directly in it.
    """
    begun = any(name.startswith(LOCK_FILE) or _HELD.fullmatch(name) for name in names)
    return begun and not _complete_inside(place.names_inside())


def _complete_inside(names: Iterable[str]) -> set[str]:
    """Folders of what is complete inside a place that is not: documents of the output itself are there twice."""
    names = set(names)
    own = {(match[1] or "") + match[2] for name in names if (match := _HELD.fullmatch(name))}
    documents = {name for name in names if name.rpartition("/")[2] in RECORDS}
    return {f"{name.rpartition('/')[0]}/" for name in documents - own}


@contextlib.contextmanager
def record_last(final: ObjectPath, check: Callable[[], object], *, file: bool = False) -> Iterator[Any]:
    """Write an output in an object store; see `atomic_path`, which chooses this way.

    Parameters
    ----------
    final : ObjectPath
    check : callable
        Raises when what stands there may not be replaced.
    file : bool
        Whether it is one file: it is written on this machine, and put there in one request.

    Yields
    ------
    Unfinished, or Path
    """
    if file:
        check()
        with tempfile.TemporaryDirectory(prefix="daskcluster-") as folder:
            local = Path(folder) / final.name
            yield local
            check()
            final.write_bytes(local.read_bytes())
        return
    check()
    lock = ObjectLock(final, "output")
    try:
        _sweep(final)  # what a killed run left
        growing = Unfinished.at(final)
        try:
            yield growing
            name_axes(growing, final)
            check()
            _publish(growing, final)
            list_in_groups(final)
        finally:
            _sweep(final)
    finally:
        lock.release()


def _publish(growing: Unfinished, final: ObjectPath) -> None:
    """Give the documents their names: the innermost first, that of the whole last."""
    held = [match for name in final.names_inside() if (match := _HELD.fullmatch(name)) and match[3] == growing.token]
    if not held:
        raise FileNotFoundError(f"nothing was written for {final.url!r}")
    held.sort(key=lambda match: (-(match[1] or "").count("/"), RECORDS.index(match[2])))
    whole = [match for match in held if match[1] is None]
    if len(held) > 1:  # not to be replaced at once: the old one goes first
        _unpublish(final)
    for match in held:
        name = (match[1] or "") + match[2]
        (final / name).write_bytes((final / match[0]).read_bytes())
    replaced = [name for name in RECORDS if name not in {match[2] for match in whole}]
    final.remove([name for name in replaced if (final / name).is_file()])


def _unpublish(final: ObjectPath) -> None:
    """Remove the documents of the whole, so that nothing of it is found any more."""
    final.remove([name for name in reversed(RECORDS) if (final / name).is_file()])


def _sweep(final: ObjectPath) -> None:
    """Remove all objects that do not belong to what stands in a place: documents first, so that no chunks follow."""
    names = [name for name in final.names_inside() if not name.startswith(LOCK_FILE)]
    documents = {name for name in names if name.rpartition("/")[2] in (*RECORDS, ".zmetadata")}
    if not documents & set(RECORDS):  # nothing stands there
        others = tuple(_complete_inside(names))
        names = [name for name in names if not name.startswith(others)]
        documents = set()
    patterns = [pattern for name in documents if (pattern := _chunk_pattern(final, name)) is not None]
    chunks = re.compile("|".join(patterns)) if patterns else None
    stray = [name for name in names if name not in documents and not (chunks and chunks.fullmatch(name))]
    held = [name for name in stray if _HELD.fullmatch(name)]
    final.remove(held)
    final.remove([name for name in stray if name not in held])


def _chunk_pattern(final: ObjectPath, document: str) -> str | None:
    """What chunks of the array are called of which this is the document; None of a group."""
    folder, _, name = document.rpartition("/")
    encoding = _encoding(_json(final / document)) if name in (".zarray", "zarr.json") else None
    if encoding is None:
        return None
    prefix, separator = re.escape(f"{folder}/" if folder else ""), re.escape(encoding["separator"])
    return prefix + (rf"c(?:{separator}\d+)*" if encoding["name"] == "default" else rf"\d+(?:{separator}\d+)*")


def _encoding(document: dict[str, Any]) -> dict[str, str] | None:
    """How an array names its chunks; None where the document is of none."""
    if "chunks" in document:
        return {"name": "v2", "separator": document.get("dimension_separator", ".")}
    encoding = document.get("chunk_key_encoding")
    if not isinstance(encoding, dict):
        return None
    name = encoding.get("name", "default")
    separator = encoding.get("configuration", {}).get("separator", "/" if name == "default" else ".")
    return {"name": name, "separator": separator}


def _document(place: ObjectPath, zarr_format: Literal[2, 3]) -> dict[str, Any]:
    return _json(place / ("zarr.json" if zarr_format == 3 else ".zarray"))


def _json(file: ObjectPath) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
