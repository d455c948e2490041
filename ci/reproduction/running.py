"""Run the draws that are missing, several at a time.

What is shared out between processes is a column of an experiment with all its systems and draws: base clusterings that
several systems need are made once, and figures that read the same draws do not make them twice.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from ci.reproduction.data import is_absent
from ci.reproduction.records import Record, Records
from ci.reproduction.values import Experiment, Paper, Table, set_of
from ci.reproduction.worker import Stopped, Worker

__all__ = ["Job", "Order", "jobs_of", "run_jobs"]


@dataclass(frozen=True)
class Job:
    """Draws of one column: how many of each system, in the order of the tables."""

    paper: str
    experiment: Experiment
    column: str
    draws: Mapping[str, int]


@dataclass(frozen=True)
class Order:
    """What holds for all draws of a run."""

    results: Path
    paper_sizes: bool = False
    retry: bool = False
    until: float = float("inf")  # of time.monotonic(): no draw begins later
    over: threading.Event = field(default_factory=threading.Event)  # set: begin no more, and keep no failure


def jobs_of(
    paper: Paper,
    tables: Sequence[Table],
    draws: Callable[[Table, str, str], int],
    sets: Sequence[str] = (),
    systems: Sequence[str] = (),
) -> list[Job]:
    """Jobs of some tables of a paper, without absent sets.

    Parameters
    ----------
    paper : Paper
    tables : sequence of Table
    draws : callable
        Table, system, column -> draws of that cell.
    sets, systems : sequence of str
        These only, if some are named.
    """
    found: dict[tuple[str, str], dict[str, int]] = {}
    experiments = {table.experiment.name: table.experiment for table in tables}
    for table in tables:
        for column in table.columns:
            if is_absent(set_of(column)) or (sets and set_of(column) not in sets):
                continue
            wanted = found.setdefault((table.experiment.name, column), {})
            wanted.update({one: draws(table, one, column) for one in table.systems if not systems or one in systems})
    return [Job(paper.name, experiments[name], column, wanted) for (name, column), wanted in found.items()]


def run_jobs(jobs: Sequence[Job], order: Order, workers: Sequence[Worker]) -> None:
    """Run the draws of jobs that are missing, a job on each worker at a time, all systems of a draw one by one."""
    places = dict.fromkeys((job.paper, job.experiment.name) for job in jobs)
    records = {place: Records(order.results, *place) for place in places}
    idle: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def run(job: Job) -> None:
        worker = idle.get()
        try:
            _run(job, records[job.paper, job.experiment.name], order, worker)
        except BaseException:
            order.over.set()
            raise
        finally:
            idle.put(worker)

    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            left = {pool.submit(run, job) for job in jobs}
            while left:  # with a time: a signal that comes just before a wait does not end it
                done, left = wait(left, timeout=1, return_when=FIRST_EXCEPTION)
                for one in done:
                    one.result()
        except BaseException:  # an error or a signal: what runs is ended, else the pool would wait for it
            order.over.set()
            for worker in workers:
                worker.stop()
            raise


def _run(job: Job, records: Records, order: Order, worker: Worker) -> None:
    for number in range(max(job.draws.values(), default=0)):
        for system, wanted in job.draws.items():
            known = [r for r in records.of(system, job.column, order.paper_sizes) if r.draw <= number]
            if number >= wanted or any(r.draw == number and not r.failed for r in known):
                continue
            if any(_fails_again(r, job.experiment) for r in known) and not order.retry:
                continue  # a system that failed at one draw would fail, as slowly, at the next
            if order.over.is_set() or time.monotonic() > order.until:
                return
            record = _draw(job, system, number, order, worker)
            if record.failed and order.over.is_set():
                return
            records.add(record)


def _fails_again(record: Record, experiment: Experiment) -> bool:
    """Whether a draw failed, and had no less time and memory than it would have now."""
    had = (record.seconds or experiment.seconds, record.gigabytes or experiment.gigabytes)
    return bool(record.failed) and had[0] >= experiment.seconds and had[1] >= experiment.gigabytes


def _draw(job: Job, system: str, number: int, order: Order, worker: Worker) -> Record:
    start = time.perf_counter()
    try:
        metrics = worker.run(job.paper, job.experiment, system, job.column, number, order.paper_sizes)
        record, said = Record(system, job.column, number, order.paper_sizes, metrics), ""
    except Stopped as stopped:
        limits = job.experiment.seconds, job.experiment.gigabytes
        record = Record(system, job.column, number, order.paper_sizes, {}, str(stopped), *limits)
        said = f": {stopped}"
    if not (record.failed and order.over.is_set()):
        elapsed = time.perf_counter() - start
        print(
            f"{job.paper} {job.experiment.name}: {job.column}, {system}, draw {number}, {elapsed:.1f} s{said}",
            file=sys.stderr,
        )
    return record
