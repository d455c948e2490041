"""A plan compared with the memory that there is: what fits, what does not, and what to change then."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from .limits import Room

__all__ = ["Demand", "Verdict", "Work", "advice", "judge", "refusal", "size_text"]


class Reads(Protocol):
    """What input takes on its way into blocks."""

    def peak_bytes(self, threads: int) -> int:
        """Bytes at a time with so many tasks beside each other."""
        ...


@dataclass(frozen=True)
class Work:
    """What one stage takes beside what stays.

    Attributes
    ----------
    title : str
    task_bytes, eager_bytes : int
        See `Cost`; what is computed in one piece is, on a cluster, the client's.
    reads : bool
        Whether it reads the input.
    """

    title: str
    task_bytes: int
    eager_bytes: int
    reads: bool

    def bytes(self, threads: int, reading: Reads) -> int:
        """With so many tasks beside each other."""
        return threads * self.task_bytes + self.eager_bytes + (reading.peak_bytes(threads) if self.reads else 0)


@dataclass(frozen=True)
class Demand:
    """What a process that works needs, with as many threads as it has.

    Attributes
    ----------
    fixed_bytes : int
        Interpreter and libraries, small arrays, rows that are in its memory.
    held_bytes : int
        Its part of the products that workers hold, which they spill to their disks.
    works : tuple of Work
    reading : Reads
    row_bytes : int
        Bytes of a row of the input.
    """

    fixed_bytes: int
    held_bytes: int
    works: tuple[Work, ...]
    reading: Reads
    row_bytes: int

    def largest(self, threads: int) -> Work:
        """The stage that takes most."""
        return max(self.works, key=lambda work: work.bytes(threads, self.reading))

    def working_bytes(self, threads: int) -> int:
        """What cannot be spilled."""
        return self.fixed_bytes + self.largest(threads).bytes(threads, self.reading)

    def least_limit(self, room: Room) -> int:
        """The memory limit below which a process would pause, or die."""
        held = self.held_bytes if room.spill >= room.pause else 0
        return int((self.working_bytes(room.threads) + held) / room.pause)

    def good_limit(self, room: Room) -> int:
        """The memory limit with which nothing is spilled."""
        return int((self.working_bytes(room.threads) + self.held_bytes) / room.spill)


@dataclass(frozen=True)
class Verdict:
    """A demand compared with the process that has least for it.

    Attributes
    ----------
    room : Room
        That process.
    least_bytes : int
        The limit below which it would pause or die.
    good_bytes : int
        The limit from which on nothing is spilled.
    stage : str
        The stage that takes most.
    """

    room: Room
    least_bytes: int
    good_bytes: int
    stage: str

    @property
    def fits(self) -> bool:
        """Whether it can end."""
        return not self.room.limit_bytes or self.least_bytes <= self.room.limit_bytes

    @property
    def spills(self) -> bool:
        """Whether workers may write to their disks on the way."""
        return self.fits and 0 < self.room.limit_bytes < self.good_bytes

    @property
    def word(self) -> str:
        """The outcome."""
        return "refused" if not self.fits else "may spill" if self.spills else "fits"

    @property
    def who(self) -> str:
        """The process, in words."""
        return (
            f"a worker of {_threads(self.room.threads)}"
            if self.room.n_workers
            else f"{_threads(self.room.threads)} here"
        )

    def __str__(self) -> str:
        if self.room.n_workers:
            need = f"needs {size_text(self.least_bytes)} {self.who}"
            if self.good_bytes > self.least_bytes:
                need += f", {size_text(self.good_bytes)} so that nothing spills"
            has = (
                f"workers have {size_text(self.room.limit_bytes)}" if self.room.limit_bytes else "workers have no limit"
            )
        else:
            need = f"needs {size_text(self.least_bytes)} with {self.who}"
            has = (
                f"{size_text(self.room.limit_bytes)} are there"
                if self.room.limit_bytes
                else "how much is there is not known"
            )
        return f"{need}; {has}: {self.word}"


def judge(demand: Demand, rooms: Iterable[Room]) -> Verdict | None:
    """Compare with the room that has least for it; None for a cluster without workers."""
    verdicts = [
        Verdict(
            room,
            demand.least_limit(room),
            demand.good_limit(room),
            demand.largest(room.threads).title,
        )
        for room in rooms
    ]
    return min(
        verdicts, key=lambda each: (each.fits, (each.room.limit_bytes or math.inf) / each.good_bytes), default=None
    )


def refusal(method: str, verdict: Verdict, changes: Sequence[str]) -> str:
    """What a user is told whose fit does not fit."""
    has = (
        f"the workers have {size_text(verdict.room.limit_bytes)}"
        if verdict.room.n_workers
        else (f"this process may use {size_text(verdict.room.limit_bytes)}")
    )
    return (
        f"{method} of X needs a memory limit of {size_text(verdict.least_bytes)} for {verdict.who} in stage "
        f"{verdict.stage!r}, and {has}: {'; or '.join(changes)}. The plan is an upper bound: dask's setting "
        "daskcluster.check-memory=False runs it all the same"
    )


def advice(demand: Demand, room: Room, smaller: Callable[[], str | None]) -> list[str]:
    """What would make it fit, each with its number.

    Parameters
    ----------
    demand : Demand
    room : Room
        The one that has too little.
    smaller : callable
        Gives the parameter of the estimator that makes it fit, in words, or None.
    """
    changes = []
    fewer = [n for n in range(room.threads - 1, 0, -1) if _fits(demand, replace(room, threads=n))]
    if fewer:
        how = "start workers of" if room.n_workers else "set dask's num_workers, the threads, to"
        changes.append(f"{how} at most {_threads(fewer[0]) if room.n_workers else fewer[0]}")
    rows = _rows_of_a_chunk(demand, room)
    if rows:
        changes.append(f"store X in chunks of at most {rows:,} rows")
    parameter = smaller()
    if parameter:
        changes.append(parameter)
    keeps = room.n_workers and demand.held_bytes and room.spill >= room.pause  # what is held counts
    if keeps and _fits(replace(demand, held_bytes=0), room):
        workers = -(-demand.held_bytes * room.n_workers // max(1, _left(demand, room)))
        changes += ["name a storage=", f"start {workers} workers or more"]
    more = f"give {'workers' if room.n_workers else 'it'} {size_text(demand.least_limit(room))}"
    return [*changes, f"{more} of memory" if room.n_workers else f"{more}"]


def _fits(demand: Demand, room: Room) -> bool:
    return demand.least_limit(room) <= room.limit_bytes


def _left(demand: Demand, room: Room) -> int:
    return int(room.limit_bytes * room.pause) - demand.working_bytes(room.threads)


class _Nothing:
    """Chunks no larger than blocks."""

    def peak_bytes(self, threads: int) -> int:
        return 0


def _rows_of_a_chunk(demand: Demand, room: Room) -> int:
    """Rows of chunks of X with which it fits, where its chunks are what takes too much; else 0."""
    free = _left(replace(demand, reading=_Nothing()), room)
    if demand.reading.peak_bytes(room.threads) == 0 or free <= 0:
        return 0
    copies = 3 * room.threads + 1  # as `Reading` counts them: as stored, decoded, in use; and one that waits
    return free // (copies * demand.row_bytes)


def size_text(n_bytes: int) -> str:
    """A size, rounded up: a limit as large as is said is enough."""
    if n_bytes < 2**30:
        return f"{-(-n_bytes // 2**20)} MiB"
    return f"{math.ceil(100 * n_bytes / 2**30) / 100:.2f} GiB"


def _threads(number: int) -> str:
    return f"{number} thread{'s' * (number > 1)}"
