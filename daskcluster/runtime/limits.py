"""The memory that the processes which work may use, and what a plan is compared with."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import dask
from dask.system import CPU_COUNT

from .clients import active_client

__all__ = [
    "Room",
    "checks_memory",
    "memory_limit",
    "peak_bytes",
    "promised",
    "promised_now",
    "rooms",
    "threads_per_worker",
]

#: What the fit that runs in this context was promised to take, in words; None if nobody compared.
_promised: ContextVar[str | None] = ContextVar("daskcluster_promised", default=None)


@dataclass(frozen=True)
class Room:
    """What one kind of process that works has.

    Attributes
    ----------
    threads : int
        Tasks that it runs at a time.
    limit_bytes : int
        Its memory; 0 without a limit.
    pause, spill : float
        Shares of the limit: beyond the first a worker takes no tasks, beyond the second it writes what it holds to its
        disk. 1 for a process that does neither.
    n_workers : int
        Workers of the cluster; 0 for this process.
    """

    threads: int
    limit_bytes: int
    pause: float = 1.0
    spill: float = 1.0
    n_workers: int = 0


def checks_memory() -> bool:
    """Whether a fit that does not fit is refused: dask's setting ``daskcluster.check-memory``, true by default."""
    return bool(dask.config.get("daskcluster.check-memory", True))


def threads_per_worker() -> int:
    """Tasks that one worker process of the active scheduler runs at a time."""
    client = active_client()
    if client is not None:
        return max(list(client.nthreads().values()) or [1])
    pool = dask.config.get("pool", None)
    return int(dask.config.get("num_workers", None) or getattr(pool, "_max_workers", None) or CPU_COUNT)


def rooms() -> list[Room]:
    """The kinds of processes that work; of a cluster without workers none."""
    client = active_client()
    if client is None:
        return [Room(threads_per_worker(), memory_limit())]
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    pause, spill = _share("pause"), _share("spill")
    kinds = {(int(worker["nthreads"]), int(worker.get("memory_limit") or 0)) for worker in workers}
    return [Room(*kind, pause, min(pause, spill), len(workers)) for kind in sorted(kinds)]


def _share(name: str) -> float:
    """A share of the limit at which workers do something; 1 if they never do."""
    return float(dask.config.get(f"distributed.worker.memory.{name}", False) or 1.0)


@contextmanager
def promised(words: str | None) -> Iterator[None]:
    """Remember what was promised for the work inside, unless a fit around it was promised something."""
    token = _promised.set(_promised.get() or words)
    try:
        yield
    finally:
        _promised.reset(token)


def promised_now() -> str | None:
    """What the fit that runs in this context was promised."""
    return _promised.get()


def peak_bytes() -> int:
    """Most memory that this process had since it began; 0 where that is not known."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@cache
def memory_limit() -> int:
    """Bytes of memory that this process may use: what the machine has, or its control group allows; 0 if unknown."""
    limits = [*_group_limits(), *_machine()]
    return min(limits, default=0)


def _machine() -> Iterator[int]:
    try:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows
        from distributed.system import MEMORY_LIMIT

        yield int(MEMORY_LIMIT)


def _group_limits(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> Iterator[int]:
    """Limits of the control groups that this process is in, version 1 and 2: its own and those around it."""
    try:
        lines = proc.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, file = root, "memory.max"
        elif "memory" in controllers.split(","):
            base, file = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        folder = base / path.lstrip("/")
        for each in [folder, *folder.parents]:
            if each == base or base in each.parents:
                yield from _limit_in(each / file)


def _limit_in(file: Path) -> Iterator[int]:
    try:
        text = file.read_text().strip()
    except OSError:
        return
    if text.isdecimal() and 0 < int(text) < 2**60:  # version 1 says "none" by a number beyond all memory
        yield int(text)
