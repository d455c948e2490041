"""Draws in a process of their own, with a limit of time and of memory.

One process serves many draws, so that base clusterings which several systems share are made once. It is replaced when a
draw was stopped.
"""

from __future__ import annotations

import importlib
import multiprocessing
import resource
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from ci.reproduction.values import Experiment, Paper

__all__ = ["Stopped", "Worker", "load_paper"]

#: What a process that was started may take beside the limit of the draw: to import, and to compile once.
STARTING_SECONDS = 300.0


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
    dc.SEC(3, random_state=0).fit(base)


def _serve(pipe: Connection) -> None:
    _warm()
    while True:
        paper, name, system, column, number, paper_sizes = pipe.recv()
        try:
            experiment = find_experiment(paper, name)
            # Anonymous memory only: files that are mapped, such as the libraries, do not count.
            limit = int(experiment.gigabytes * 2**30)
            resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
            start = time.process_time()
            metrics = {key: float(value) for key, value in experiment.draw(system, column, number, paper_sizes).items()}
            metrics["cost"] = time.process_time() - start
            pipe.send(("metrics", metrics))
        except MemoryError:
            pipe.send(("failed", f"out of memory ({experiment.gigabytes:g} GB)"))
        except Exception as error:  # a system that fails is a result, the others go on
            pipe.send(("failed", f"{type(error).__name__}: {error}".splitlines()[0]))


class Worker:
    """A process that runs draws, one at a time."""

    def __init__(self) -> None:
        self._process: Any = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()
        return self._pipe

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._pipe = None

    def run(
        self, paper: str, experiment: Experiment, system: str, column: str, number: int, paper_sizes: bool
    ) -> Mapping[str, float]:
        """Metrics of one draw.

        Raises
        ------
        Stopped
            If it took too long or too much memory, or failed.
        """
        starting = self._pipe is None
        pipe = self._start() if self._pipe is None else self._pipe
        pipe.send((paper, experiment.name, system, column, number, paper_sizes))
        if not pipe.poll(experiment.seconds + (STARTING_SECONDS if starting else 0)):
            self._end()
            raise Stopped(f"time limit ({experiment.seconds:g} s)")
        try:
            kind, found = pipe.recv()
        except EOFError:
            self._end()
            raise Stopped(f"the process died; the memory limit is {experiment.gigabytes:g} GB") from None
        if kind == "failed":
            raise Stopped(found)
        metrics: Mapping[str, float] = found
        return metrics
