"""One writer of what is under a URL at a time, where there is neither a file system's lock nor a rename."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import uuid
import weakref
from datetime import UTC, datetime
from typing import Any

from .locks import GONE_SECONDS, HEARTBEAT_SECONDS, LOCK_FILE, FolderLock, busy, lives, own_identity, silent_seconds
from .objects import ObjectPath, Place

__all__ = ["ObjectLock", "hold"]


def hold(place: Place, what: str) -> FolderLock | ObjectLock:
    """Hold a place for this process, until `release`; see the two classes."""
    return ObjectLock(place, what) if isinstance(place, ObjectPath) else FolderLock(place, what)


class ObjectLock:
    """Holds a place in an object store for this process, from construction to `release`.

    Parameters
    ----------
    place : ObjectPath
    what : str
        What it is, for messages: "storage", "output".

    Raises
    ------
    StorageBusyError
        If somebody else holds it: the message says who, and since when.

    Notes
    -----
    The lock is an object that is written on the condition that there is none, in one request (see `ObjectPath.create`).
    Its holder writes it anew every `HEARTBEAT_SECONDS`; one of which nothing was heard for `GONE_SECONDS`, by the clock
    of the store, counts as gone, and one whose process has ended on this machine does at once. Whoever takes it over
    first claims the right to, by another such object that names the lock it saw, so only one does.
    """

    def __init__(self, place: ObjectPath, what: str) -> None:
        self._file = place / LOCK_FILE
        self._token = uuid.uuid4().hex
        self._ended = threading.Event()
        writing = threading.RLock()
        since = datetime.now(UTC).isoformat(timespec="seconds")
        content = json.dumps({**own_identity(), "since": since, "token": self._token}).encode()
        while not self._file.create(content):
            found = _read(self._file)
            if found is not None and found.get("token") == self._token:
                break  # ours: the first answer was lost, and the request made again
            if found is not None:
                _clear(self._file, found, what)
        self._finalizer = weakref.finalize(self, _release, self._file, self._token, self._ended, writing, os.getpid())
        beat = (self._file, content, self._token, self._ended, writing)
        self._heart = threading.Thread(target=_beat, args=beat, name="daskcluster-lock", daemon=True)
        self._heart.start()

    def release(self) -> None:
        """Give the place free; once more does nothing."""
        self._finalizer()


def _read(file: ObjectPath) -> dict[str, Any] | None:
    """What a lock says; {} when it says nothing that can be read, None when it is gone."""
    try:
        found = json.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _clear(file: ObjectPath, found: dict[str, Any], what: str) -> None:
    """Remove a lock whose holder is gone; raise StorageBusyError when it is not, or somebody else removes it."""
    if lives(found, lambda: silent_seconds(file)):
        raise busy(str(file.parent), found, what)
    claim = file.with_name(f"{file.name}.{found.get('token', 'unread')}")
    if not claim.create(b"{}"):
        if silent_seconds(claim) < GONE_SECONDS:
            raise busy(str(file.parent), {}, what)
        claim.unlink(missing_ok=True)  # of a process that died in between; the next round claims
        return
    try:
        if _read(file) == found:  # and not the lock of one that was faster
            file.unlink(missing_ok=True)
    finally:
        claim.unlink(missing_ok=True)


def _release(file: ObjectPath, token: str, ended: threading.Event, writing: threading.RLock, holder: int) -> None:
    if os.getpid() != holder:
        return  # a forked child ends
    ended.set()
    with writing, contextlib.suppress(OSError):  # what is being written comes first: nothing of ours comes after
        found = _read(file)
        if found is not None and found.get("token") == token:
            file.unlink(missing_ok=True)


def _beat(file: ObjectPath, content: bytes, token: str, ended: threading.Event, writing: threading.RLock) -> None:
    """Write the lock anew until it is released, or somebody took it over."""
    while not ended.wait(HEARTBEAT_SECONDS):
        with writing, contextlib.suppress(OSError):
            if ended.is_set():
                return
            found = _read(file)
            if found is None or found.get("token") != token:
                return
            file.write_bytes(content)
