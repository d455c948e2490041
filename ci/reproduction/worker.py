"""Draws in a process of their own, with a limit of time and of memory.

One process serves many draws, so that base clusterings which several systems share are made once. It is replaced when a
draw was stopped. The time is that of the processor, all threads together: a process that waits for its turn, or that
somebody has stopped for a while, is not late.
"""

from __future__ import annotations

import importlib
import multiprocessing
import resource
import signal
import threading
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import dask
import numpy as np
from dask.system import CPU_COUNT
from threadpoolctl import threadpool_limits

from ci.reproduction.values import Experiment, Paper

__all__ = ["Stopped", "Worker", "load_paper"]


class Stopped(Exception):
    """A draw gave no labels; the message says why."""


def load_paper(name: str) -> Paper:
    """The value `PAPER` of a module of `ci.reproduction.papers`."""
    paper: Paper = importlib.import_module(f"ci.reproduction.papers.{name}").PAPER
    return paper


def find_experiment(paper: str, name: str) -> Experiment:
    """An experiment by name: functions are not sent between processes, names are."""
    return next(table.experiment for table in load_paper(paper).tables if table.experiment.name == name)


def _warm() -> None:
    """Load or compile the kernels, so that no draw is charged for it."""
    import daskcluster as dc

    rows = np.random.default_rng(0).random((3000, 2))
    base = np.asarray(dc.USENC(3, n_base_clusterings=3, n_representatives=200, random_state=0).fit(rows).base_labels_)
    for n_components in (None, 2):
        dc.SEC(3, n_components=n_components, random_state=0).fit(base)


def _limit(seconds: float) -> None:
    """End this process by SIGPROF once it has used so much more of the processor; never with 0."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _serve(pipe: Connection, threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what a terminal sends to all is for the process that keeps the draws
    _warm()
    dask.config.set(num_workers=threads)
    threadpool_limits(threads)  # of BLAS and OpenMP, which _warm has loaded
    while True:
        try:
            paper, name, seconds, gigabytes, *cell = pipe.recv()
        except EOFError:  # nobody asks any more
            return
        experiment = find_experiment(paper, name)
        # Anonymous memory only: files that are mapped, such as the libraries, do not count.
        memory = int(gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (memory, resource.getrlimit(resource.RLIMIT_DATA)[1]))
        answer: tuple[str, Any]
        _limit(seconds)
        try:
            answer = "metrics", _metrics(experiment, *cell)
        except MemoryError:
            answer = "failed", f"out of memory ({gigabytes:g} GB)"
        except Exception as error:  # a system that fails is a result, the others go on
            answer = "failed", f"{type(error).__name__}: {error}".splitlines()[0]
        _limit(0)
        pipe.send(answer)


def _metrics(experiment: Experiment, *cell: Any) -> dict[str, float]:
    """What a draw gives, and its CPU seconds with all that it was the first to need."""
    start = time.process_time()
    metrics = {key: float(value) for key, value in experiment.draw(*cell).items()}
    return metrics | {"cost": time.process_time() - start}


class Worker:
    """A process that runs draws, one at a time, on so many threads."""

    def __init__(self, threads: int = CPU_COUNT) -> None:
        self.threads = threads
        self._process: Any = None
        self._lock = threading.Lock()  # a process starts, or is not to start any more
        self._stopped = False
        self._pipe: Connection | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def stop(self) -> None:
        """End what is running, from another thread, and begin nothing more: a draw raises `Stopped`."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        with self._lock:
            if self._stopped:
                raise Stopped("the run was stopped")
            pipe, other = context.Pipe()
            process = context.Process(target=_serve, args=(other, self.threads), daemon=True)
            process.start()
            self._process, self._pipe = process, pipe
        other.close()
        return pipe

    def _end(self) -> None:
        with self._lock:
            process, self._process, self._pipe = self._process, None, None
        if process is not None:
            process.kill()
            process.join()

    def _died(self) -> bool:
        """Whether the process, which is gone, died of the limit of time."""
        self._process.join()
        late: bool = self._process.exitcode == -signal.SIGPROF
        self._end()
        return late

    def run(
        self, paper: str, experiment: Experiment, system: str, column: str, number: int, paper_sizes: bool
    ) -> Mapping[str, float]:
        """Metrics of one draw.

        Raises
        ------
        Stopped
            If it took too long or too much memory, or failed.
        """
        limits = experiment.seconds, experiment.gigabytes
        pipe = self._start() if self._pipe is None else self._pipe
        try:
            pipe.send((paper, experiment.name, *limits, system, column, number, paper_sizes))
            kind, found = pipe.recv()
        except (EOFError, ConnectionError):  # by where it was when it died: reading, or not yet
            if self._died():
                raise Stopped(f"time limit ({experiment.seconds:g} s)") from None
            raise Stopped(f"the process died; the memory limit is {experiment.gigabytes:g} GB") from None
        if kind == "failed":
            raise Stopped(found)
        metrics: Mapping[str, float] = found
        return metrics
