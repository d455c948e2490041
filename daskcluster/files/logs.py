"""Logs: bytes that are added one after the other, to a file or, where nothing is appended, to numbered objects."""

from __future__ import annotations

import io
import os
import uuid
from bisect import bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, TypeAlias

from .objects import ObjectPath, Place
from .removal import remove

__all__ = ["Log", "log_at"]

#: Takes what is whole of some bytes: (file, where its first byte is in the log, its bytes) -> bytes taken.
Accept: TypeAlias = Callable[[BinaryIO, int, int], int]

#: Objects that are read together, at most.
_AT_ONCE = 16


class FileLog:
    """A log in a file, which is made with the first bytes, and its folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._end = 0

    def load(self, accept: Accept) -> None:
        """Show what is there; what is not accepted counts as never written."""
        try:
            file = open(self._path, "rb")  # noqa: SIM115
        except (FileNotFoundError, NotADirectoryError):
            return
        with file:
            self._end = accept(file, 0, os.fstat(file.fileno()).st_size)

    def read(self, place: int, length: int) -> bytes:
        """Some bytes."""
        with open(self._path, "rb") as file:
            file.seek(place)
            return file.read(length)

    def add(self, content: bytes) -> int:
        """Write behind all that was accepted; where that is."""
        self._path.parent.mkdir(exist_ok=True)
        place = self._end
        with open(self._path, "r+b" if self._path.exists() else "wb") as file:
            file.truncate(place)
            file.seek(place)
            file.write(content)
        self._end += len(content)
        return place

    def replace(self, contents: Iterable[bytes]) -> list[int]:
        """Write the log anew, in one step; where each content is."""
        new = self._path.with_name(f"{self._path.name}.new")
        places, end = [], 0
        with open(new, "wb") as file:
            for content in contents:
                file.write(content)
                places.append(end)
                end += len(content)
        os.replace(new, self._path)
        self._end = end
        return places

    def clear(self) -> None:
        """Remove it."""
        self._end = 0
        if self._path.exists():  # where nothing may be written there is nothing to remove
            remove(self._path)


class ObjectLog:
    """A log in an object store: each addition is an object under a prefix, ``00000001`` and so on, one request each.

    An object begins with its own token and that of the one before it. So it counts only behind that very one: what an
    interrupted removal left, or stands behind a lost object, is no part of the log. Objects are asked for by their
    numbers, from that in ``start`` on: no listing is believed.
    """

    #: A token, the one before, and a line's end.
    _HEAD = 2 * 32 + 1

    def __init__(self, path: ObjectPath) -> None:
        self._path = path
        self._begin()

    def _begin(self, first: int = 1) -> None:
        self._first = self._next = first
        self._token = "0" * 32
        #: Where the contents of the objects begin in the log, from the first on; their end.
        self._starts: list[int] = []
        self._end = 0
        #: What was accepted of a damaged object, which the next addition replaces.
        self._kept = b""

    def _object(self, number: int) -> ObjectPath:
        return self._path / f"{number:08d}"

    def load(self, accept: Accept) -> None:
        """Show what is there; what is not accepted counts as never written."""
        try:
            self._begin(int((self._path / "start").read_bytes()))
        except (FileNotFoundError, ValueError):
            self._begin()
        n_read = 1
        while True:
            objects = [self._object(self._next + k) for k in range(n_read)]
            for content in self._path.read_each(objects):
                if content is None or not self._take(content, accept):
                    return
            n_read = min(2 * n_read, _AT_ONCE)

    def _take(self, content: bytes, accept: Accept) -> bool:
        """Accept the next object; whether it is whole."""
        head, body = content[: self._HEAD], content[self._HEAD :]
        if len(head) < self._HEAD or head[-1:] != b"\n":
            return False
        token, before = head[:32].decode("latin-1"), head[32:64].decode("latin-1")
        if self._starts and before != self._token:
            return False
        length = accept(io.BytesIO(body), self._end, len(body))
        if length < len(body):
            self._kept = body[:length]
            return False
        self._added(token, length)
        return True

    def _added(self, token: str, length: int) -> None:
        self._starts.append(self._end)
        self._token, self._end, self._next = token, self._end + length, self._next + 1

    def read(self, place: int, length: int) -> bytes:
        """Some bytes, of one addition."""
        which = bisect_right(self._starts, place) - 1
        if self._kept and place >= self._end:
            which, start = len(self._starts), self._end
        else:
            start = self._starts[which]
        offset = self._HEAD + place - start
        return self._object(self._first + which).read_bytes(offset, offset + length)

    def add(self, content: bytes) -> int:
        """Write behind all that was accepted; where that is."""
        kept, token = self._kept, uuid.uuid4().hex
        self._object(self._next).write_bytes(f"{token}{self._token}\n".encode() + kept + content)
        self._kept = b""
        self._added(token, len(kept) + len(content))
        return self._starts[-1] + len(kept)

    def replace(self, contents: Iterable[bytes]) -> list[int]:
        """Write the log anew; where each content is. The request that moves its start is the step."""
        new = list(contents)
        old = range(self._first, self._next + 1)
        first = self._next + 1  # behind one that is damaged
        self._begin(first)
        self.add(b"".join(new))
        (self._path / "start").write_bytes(str(first).encode())
        self._path.remove([self._object(number).name for number in old])
        return [sum(map(len, new[:k])) for k in range(len(new))]

    def clear(self) -> None:
        """Remove it: its first object first, so that no other counts."""
        self._object(self._first).unlink(missing_ok=True)
        self._path.remove([name for name in self._path.names_inside() if name != "start"])
        (self._path / "start").unlink(missing_ok=True)
        self._begin()


Log: TypeAlias = FileLog | ObjectLog


def log_at(path: Place) -> Log:
    """The log under a path."""
    return ObjectLog(path) if isinstance(path, ObjectPath) else FileLog(path)
