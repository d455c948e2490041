"""One writer of a folder at a time, among all processes of all machines that see it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import StorageBusyError
from .objects import ObjectPath, Place

__all__ = [
    "LOCK_FILE",
    "FolderLock",
    "busy",
    "check_free",
    "holder",
    "holder_text",
    "lives",
    "own_identity",
    "silent_seconds",
]

#: Name of the file that says who writes to a folder.
LOCK_FILE = ".daskcluster.lock"

#: A holder shows that it lives this often, and counts as gone after so long without; only where its process cannot be
#: looked up, on another machine.
HEARTBEAT_SECONDS = 15.0
GONE_SECONDS = 180.0


class FolderLock:
    """Holds a folder for this process, from construction to `release`.

    Parameters
    ----------
    folder : Path
        Exists.
    what : str
        What it is, for messages: "storage".

    Raises
    ------
    StorageBusyError
        If somebody else holds it: the message says who, and since when.

    Notes
    -----
    The lock is a file that is created with ``O_CREAT | O_EXCL``, which is atomic on shared file systems too. It names
    machine, process and time, and its own time is renewed while it is held. A lock of a process that is gone is taken
    over: at once on the same machine, after `GONE_SECONDS` without a sign of life on another one. Where the folder
    cannot be written there is no lock, and nothing that one could spoil. It is released, too, when the object goes.
    """

    def __init__(self, folder: Path, what: str) -> None:
        self._file = folder / LOCK_FILE
        self._token = uuid.uuid4().hex
        self._ended = threading.Event()
        content = json.dumps(
            {**own_identity(), "since": datetime.now(UTC).isoformat(timespec="seconds"), "token": self._token}
        )
        self._held = _create(self._file, content)
        while self._held is False:
            _take_over(self._file, what)
            self._held = _create(self._file, content)
        self._finalizer = weakref.finalize(self, _release, self._file, self._token, self._ended, os.getpid())
        if self._held:
            threading.Thread(target=_beat, args=(self._file, self._ended), name="daskcluster-lock", daemon=True).start()

    def release(self) -> None:
        """Give the folder free; once more does nothing."""
        self._finalizer()


def check_free(folder: Place, what: str) -> None:
    """Raise StorageBusyError if somebody holds a folder; nothing is written."""
    found = holder(folder)
    if found is not None:
        raise busy(str(folder), found, what)


def holder(folder: Place) -> dict[str, Any] | None:
    """What the lock of a folder says of who holds it; None where nobody does."""
    file = folder / LOCK_FILE
    if not file.is_file():
        return None
    found = _read(file)
    return found if found is not None and lives(found, lambda: silent_seconds(file)) else None


# -- the file ----------------------------------------------------------------------------------------------------------


def _create(file: Path, content: str) -> bool | None:
    """Make the file: True; False when it exists; None where this process may not write."""
    try:
        descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return None
        raise
    with os.fdopen(descriptor, "w", encoding="utf-8") as target:
        target.write(content)
    return True


def _read(file: Place) -> dict[str, Any] | None:
    """What a lock says; {} when it says nothing that can be read, None when it is gone."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return {}  # being written, or damaged
    return found if isinstance(found, dict) else {}


def _take_over(file: Path, what: str) -> None:
    """Remove a lock whose holder is gone; raise StorageBusyError when it is not."""
    found = _read(file)
    if found is None:
        return
    if lives(found, lambda: silent_seconds(file)):
        raise busy(str(file.parent), found, what)
    aside = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
    try:
        os.rename(file, aside)
    except FileNotFoundError:
        return  # another process was faster
    taken = _read(aside)
    if taken != found:  # it was, and this is its lock
        with contextlib.suppress(OSError):
            os.link(aside, file)
        aside.unlink(missing_ok=True)
        raise busy(str(file.parent), taken or {}, what)
    aside.unlink(missing_ok=True)


def _release(file: Path, token: str, ended: threading.Event, holder: int) -> None:
    if os.getpid() != holder:
        return  # a forked child ends
    ended.set()
    found = _read(file)
    if found is not None and found.get("token") == token:
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


def _beat(file: Path, ended: threading.Event) -> None:
    """Renew the time of the file until the lock is released."""
    while not ended.wait(HEARTBEAT_SECONDS):
        with contextlib.suppress(OSError):
            os.utime(file)


# -- who holds it ------------------------------------------------------------------------------------------------------


def own_identity() -> dict[str, Any]:
    """Name this process as the holder of a lock."""
    return {"host": socket.gethostname(), "machine": _machine(), "pid": os.getpid(), "born": _birth(os.getpid())}


def _machine() -> str | None:
    """What tells in which world a process number counts: the run of the machine, and the container."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _status(pid: int) -> list[str]:
    """The state of a process, and what Linux says after it; empty elsewhere."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def _birth(pid: int) -> str | None:
    """When a process started, in ticks of this machine: its number may be given anew."""
    status = _status(pid)
    return status[19] if len(status) > 19 else None


def lives(found: dict[str, Any], silent_seconds: Callable[[], float]) -> bool:
    """Whether the holder of a lock may still be there."""
    same_host = found.get("host") == socket.gethostname()
    if same_host and found.get("machine") == _machine() and os.name == "posix":
        pid = found.get("pid")
        return isinstance(pid, int) and pid > 0 and _runs(pid) and found.get("born") in (None, _birth(pid))
    if same_host and _booted_anew(found):
        return False
    return silent_seconds() < GONE_SECONDS


def _booted_anew(found: dict[str, Any]) -> bool:
    """Whether a lock is of an earlier run of this machine."""
    here, there = _machine(), found.get("machine")
    return isinstance(here, str) and isinstance(there, str) and here.split()[0] != there.split()[0]


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return _status(pid)[:1] not in (["Z"], ["X"])  # dead, and not yet noticed by its parent


def silent_seconds(file: Place) -> float:
    """Seconds since the last sign of life, by the clock of the store: those of two machines may differ."""
    if isinstance(file, ObjectPath):
        return _unwritten_seconds(file)
    probe = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
    try:
        last = file.stat().st_mtime
    except OSError:
        return float("inf")
    try:
        probe.touch()
        now = probe.stat().st_mtime
    except OSError:
        now = time.time()
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return now - last


def _unwritten_seconds(file: ObjectPath) -> float:
    """Seconds since an object was written, by the store's clock."""
    probe = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
    try:
        last = file.modified()
        probe.write_bytes(b"")
        return probe.modified() - last
    except FileNotFoundError:
        return float("inf")
    except (OSError, StopIteration):  # a store that does not tell: be patient
        return 0.0
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)


def holder_text(found: Mapping[str, Any]) -> str:
    """Say who a holder is."""
    who = "another process"
    if found.get("pid") is not None:
        who = f"process {found['pid']} on {found.get('host')}"
        if found.get("pid") == os.getpid() and found.get("host") == socket.gethostname():
            who = f"this process ({found['pid']} on {found.get('host')})"
    return who + (f", since {found['since']}" if found.get("since") else "")


def busy(place: str, found: Mapping[str, Any], what: str) -> StorageBusyError:
    """The error that says who holds a place."""
    return StorageBusyError(
        f"{what} {place!r} is in use by {holder_text(found)}; wait until that fit has ended, or give another "
        f"{what}. A fit that was killed on another machine counts as ended after {GONE_SECONDS:.0f} seconds"
    )
