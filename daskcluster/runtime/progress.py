"""Progress by named stages: bars in a terminal and in a notebook, a plain log line per stage otherwise."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from dask.callbacks import Callback

from .threads import Shared

__all__ = ["Progress", "inside_stage", "stage_name", "watch_distributed", "watch_local"]

logger = logging.getLogger("daskcluster")

_current: ContextVar[_Stage | None]


class _Stage:
    """One running stage: tasks done and total, drawn by an optional rich bar."""

    def __init__(self, name: str, bars: Any | None) -> None:
        self.name = name
        self.bars = bars
        self.bar = bars.add_task(name, total=None) if bars is not None else None
        self.done = 0
        self.total = 0
        self.lock = threading.Lock()

    def add(self, n_tasks: int) -> None:
        """Announce tasks."""
        with self.lock:
            self.total += n_tasks
            self._draw()

    def advance(self, n_tasks: int = 1) -> None:
        """Report finished tasks."""
        with self.lock:
            self.done += n_tasks
            self._draw()

    def show(self, done: int, total: int) -> None:
        """Report both numbers at once."""
        with self.lock:
            self.done, self.total = done, max(total, 1)
            self._draw()

    def _draw(self) -> None:
        if self.bars is not None:
            self.bars.update(self.bar, completed=self.done, total=self.total)


_current = ContextVar("daskcluster_stage", default=None)

if hasattr(os, "register_at_fork"):
    # The bars of the parent's stage are drawn by a thread that a forked child does not have.
    os.register_at_fork(after_in_child=lambda: _current.set(None))


class Progress:
    """Reports the stages of one fit.

    Parameters
    ----------
    verbose : bool
        Draw bars on stderr where that is a terminal or a notebook, else write a line per stage. Without it a line per
        stage goes to the logger ``daskcluster`` at level INFO, where an application can pick it up.
    """

    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose
        self._bars: Any | None = None

    def __enter__(self) -> Progress:
        if self.verbose:
            self._bars = _make_bars()
            if self._bars is not None:
                self._bars.start()
            else:
                _lines.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bars is not None:
            self._bars.stop()
        elif self.verbose:
            _lines.__exit__()

    def detail(self, text: str) -> None:
        """Show something beside the name of the running stage."""
        stage = _current.get()
        if stage is not None and stage.bars is not None:
            stage.bars.update(stage.bar, description=f"{stage.name}: {text}")

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Name the work inside. Stages of a fit inside another fit's stage are told at level DEBUG."""
        level = logging.INFO if _current.get() is None else logging.DEBUG
        stage = _Stage(name, self._bars)
        token = _current.set(stage)
        start = time.perf_counter()
        try:
            yield
        finally:
            _current.reset(token)
            stage.add(max(1, stage.done) - stage.total)
            stage.advance(stage.total - stage.done)
        logger.log(level, "%s: %.2f s", name, time.perf_counter() - start)


@contextmanager
def _log_lines() -> Iterator[None]:
    """Write what is logged at level INFO to stderr."""
    handler, level = logging.StreamHandler(sys.stderr), logger.level
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


#: One handler for all fits at a time, whose lines it would write twice else.
_lines = Shared(_log_lines)


def _make_bars() -> Any | None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        return None
    return Progress(
        TextColumn("{task.description:<24}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    )


def inside_stage() -> bool:
    """Whether a stage is running in this context: a fit that begins now is a step of another one."""
    return _current.get() is not None


def stage_name() -> str | None:
    """Name of the stage that is running in this context."""
    stage = _current.get()
    return None if stage is None else stage.name


class _CountTasks(Callback):
    def __init__(self, stage: _Stage) -> None:
        super().__init__(start_state=self._begin, posttask=self._end)
        self._stage = stage

    def _begin(self, dsk: Any, state: dict[str, Any]) -> None:
        self._stage.add(len(state["ready"]) + len(state["waiting"]))

    def _end(self, *arguments: Any) -> None:
        self._stage.advance()


def watch_local() -> dict[str, Any]:
    """Arguments of ``dask.compute`` that have tasks of a local scheduler counted for the current stage.

    Not a context, which would count the tasks of other threads as well. What the user watches with goes on.
    """
    stage = _current.get()
    if stage is None or stage.bars is None:
        return {}
    return {"callbacks": [*Callback.active, _CountTasks(stage)._callback]}


@contextmanager
def watch_distributed(client: Any, collections: Any) -> Iterator[None]:
    """Context in which tasks of a distributed scheduler are counted for the current stage."""
    stage = _current.get()
    if stage is None or stage.bars is None:
        yield
        return
    watched = stage
    from distributed.client import futures_of
    from distributed.diagnostics.progressbar import ProgressBar

    class Watch(ProgressBar):
        def _draw_bar(self, remaining: int, all: int, **kwargs: Any) -> None:
            watched.show(all - remaining, all)

        def _draw_stop(self, **kwargs: Any) -> None:
            pass

    keys = {future.key for future in futures_of(collections)}
    watch = Watch(keys, scheduler=client.scheduler.address)
    client.loop.add_callback(watch.listen)
    try:
        yield
    except BaseException:
        client.loop.add_callback(watch.__del__)  # it would wait for tasks that never end
        raise
