"""Paths of objects: what of `pathlib.Path` this package uses, for stores that have neither folders nor renames.

A `Place` is one or the other, and who reads, lists, writes or removes small files needs not know which.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from zarr.core.sync import sync
from zarr.storage import FsspecStore

from .urls import open_store, reaching

__all__ = ["ObjectPath", "Place", "replace_text"]


class ObjectPath:
    """A key, or the beginning of keys, in an object store.

    Parameters
    ----------
    url : str
    store : FsspecStore, optional
        That of the URL, when it is open.

    Notes
    -----
    What a listing says may be old: nothing here keeps one, and `is_file` asks for the object itself. An object appears
    whole when it is written, and takes the place of another one at once.
    """

    def __init__(self, url: str, store: FsspecStore | None = None) -> None:
        self.url = url.rstrip("/")
        store = store or open_store(self.url)
        self._fs: Any = store.fs
        self.key = store.path.rstrip("/")

    # -- names --------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The last part."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> ObjectPath:
        """What it lies in; itself for a bucket."""
        return self.parents[0] if self.parents else self

    @property
    def parents(self) -> list[ObjectPath]:
        """What it lies in, the nearest first, a bucket last."""
        found, steps = [], len(PurePosixPath(self.key.strip("/")).parts) - 1
        url, key = self.url, self.key
        for _ in range(steps):
            url, key = url.rpartition("/")[0], key.rpartition("/")[0]
            found.append(self._at(url, key))
        return found

    def __truediv__(self, part: str) -> ObjectPath:
        return self._at(f"{self.url}/{part}", f"{self.key}/{part}")

    def with_name(self, name: str) -> ObjectPath:
        """Another one beside it."""
        return self.parent / name

    def relative_to(self, other: Place) -> PurePosixPath:
        """The rest of the key, behind that of one of its parents."""
        if not isinstance(other, ObjectPath):
            raise ValueError(f"{self.url!r} does not lie in {str(other)!r}")
        return PurePosixPath(self.key).relative_to(other.key)

    def _at(self, url: str, key: str) -> ObjectPath:
        path = object.__new__(ObjectPath)
        path.url, path._fs, path.key = url, self._fs, key
        return path

    def __str__(self) -> str:
        return self.url

    __fspath__ = __str__

    def __repr__(self) -> str:
        return f"ObjectPath({self.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and (self.key, self._fs) == (other.key, other._fs)

    def __hash__(self) -> int:
        return hash(self.key)

    # -- what is there ------------------------------------------------------------------------------------------------

    def is_file(self) -> bool:
        """Whether there is an object of this name."""
        return self._found(lambda: self._fs._info(self.key)).get("type") == "file"

    def is_dir(self) -> bool:
        """Whether there are objects whose names begin so."""
        return next(self.iterdir(), None) is not None

    def exists(self) -> bool:
        """Whether there is one or the other."""
        return self.is_file() or self.is_dir()

    def iterdir(self) -> Iterator[ObjectPath]:
        """What lies directly in it, by name; nothing when it is not there."""
        listed = self._found(lambda: self._fs._ls(self.key, detail=False), [])
        names = sorted({entry.rstrip("/").rpartition("/")[2] for entry in listed if self._lies_in(entry)})
        yield from (self / name for name in names)

    def glob(self, pattern: str) -> Iterator[ObjectPath]:
        """What lies directly in it and has such a name."""
        return (child for child in self.iterdir() if fnmatchcase(child.name, pattern))

    def mkdir(self, **options: bool) -> None:
        """Nothing is made: there are no folders; raises FileNotFoundError where the bucket is missing."""
        self.check_bucket()

    def names_inside(self) -> list[str]:
        """Names, behind its own, of all objects in it."""
        listed = self._found(lambda: self._fs._find(self.key), [])
        return sorted(entry[len(self.key) + 1 :] for entry in listed if self._lies_in(entry))

    def _lies_in(self, entry: str) -> bool:
        return entry.startswith(f"{self.key}/") and len(entry) > len(self.key) + 1

    def modified(self) -> float:
        """When it was written, in seconds, by the store's clock; raises FileNotFoundError."""
        with reaching(self.url):
            self._forget()
            about = sync(self._fs._info(self.key))
        found = next(
            about[name] for name in ("LastModified", "last_modified", "mtime", "updated", "created") if name in about
        )
        when = datetime.fromisoformat(found) if isinstance(found, str) else found
        return float(when.timestamp() if isinstance(when, datetime) else when)

    def check_bucket(self) -> None:
        """Raise FileNotFoundError where the bucket is missing; not every service tells before something is written."""
        bucket = self.parents[-1] if self.parents else self
        if not {"s3", "gs"} & {self._fs.protocol, *self._fs.protocol}:
            return
        try:
            with reaching(self.url):
                self._forget()
                sync(self._fs._info(bucket.key))
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{self.url!r} cannot be created: there is no bucket {bucket.url!r}") from error
        except PermissionError:  # to look at it; what is written will tell
            return

    # -- contents -----------------------------------------------------------------------------------------------------

    def read_bytes(self, start: int | None = None, stop: int | None = None) -> bytes:
        """Read the object, or some bytes of it; raises FileNotFoundError."""
        with reaching(self.url):
            return bytes(sync(self._fs._cat_file(self.key, start=start, end=stop)))

    @staticmethod
    def read_each(objects: list[ObjectPath]) -> list[bytes | None]:
        """Read several objects of one store, all together; None for one that is not there."""

        async def read(each: ObjectPath) -> bytes | None:
            try:
                return bytes(await each._fs._cat_file(each.key))
            except FileNotFoundError:
                return None

        async def read_all() -> list[bytes | None]:
            return list(await asyncio.gather(*map(read, objects)))

        with reaching(objects[0].url):
            return sync(read_all())

    def read_text(self, encoding: str = "utf-8") -> str:
        """Read the object as text."""
        return self.read_bytes().decode(encoding)

    def write_bytes(self, content: bytes) -> int:
        """Write the object, whole; what was there is replaced."""
        with reaching(self.url):
            sync(self._fs._pipe_file(self.key, content))
        return len(content)

    def create(self, content: bytes) -> bool:
        """Write the object if none is there: False, and nothing is changed, if one is.

        One request where the file system has conditional writes (S3, Google, memory). Elsewhere, where it takes no
        condition, it is looked up first.
        """
        with reaching(self.url):
            try:
                sync(self._fs._pipe_file(self.key, content, mode="create"))
            except FileExistsError:
                return False
            except TypeError:  # a file system that knows no modes
                if self.is_file():
                    return False
                sync(self._fs._pipe_file(self.key, content))
        return True

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the object."""
        try:
            with reaching(self.url):
                sync(self._fs._rm_file(self.key))
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove(self, names: list[str] | None = None) -> None:
        """Remove objects in it, by their names behind its own; all of them by default."""
        names = self.names_inside() if names is None else names
        if names:
            with reaching(self.url):
                sync(self._fs._rm([f"{self.key}/{name}" for name in names]))
            self._forget()

    def store(self, *, read_only: bool = False) -> FsspecStore:
        """The objects in it as a store of zarr's."""
        return FsspecStore(self._fs, path=self.key, read_only=read_only)

    def _found(self, ask: Callable[[], Any], nothing: Any = None) -> Any:
        """What the store answers; `nothing`, by default no description, where there is nothing."""
        try:
            with reaching(self.url):
                self._forget()
                return sync(ask())
        except FileNotFoundError:
            return {} if nothing is None else nothing

    def _forget(self) -> None:
        """Drop the listings that the file system keeps: other processes write, too."""
        self._fs.invalidate_cache()


#: A file or folder of this machine's file systems, or what is stored under a URL.
Place: TypeAlias = Path | ObjectPath


def replace_text(file: Place, text: str) -> None:
    """Write a file in one step: who reads meanwhile sees the old one or the new one."""
    if isinstance(file, ObjectPath):
        file.write_bytes(text.encode())
        return
    temporary = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
