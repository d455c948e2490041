"""Progress by named stages: how many blocks are done, and what time is left, for whoever watches a fit."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from dask.callbacks import Callback

from .compiling import COMPILING_TEXT, is_compiling
from .counting import ClusterWork, CountedWork, LocalWork, Work
from .displays import Display, choose_display, duration_text
from .groups import FAN_IN, LEAST_BLOCKS, LEAST_BLOCKS_ON_WORKERS

__all__ = [
    "Progress",
    "StageState",
    "inside_stage",
    "stage_name",
    "watch_distributed",
    "watch_each",
    "watch_local",
]

logger = logging.getLogger("daskcluster")

#: Seconds between two looks.
TICK_SECONDS = 1.0
#: No time that is left is told of a computation that runs for less.
LEAST_SECONDS = 2.0


@dataclass(frozen=True)
class StageState:
    """How far a stage is.

    Attributes
    ----------
    name : str
    number : int
        The how manieth stage of the fit, from 1.
    seconds : float
        Since it began.
    done, total : int
        Blocks of its present computation; 0 of 0 while they are not known.
    passes : int
        Computations before that one.
    left : float or None
        Seconds that the present computation will take yet, where that can be told.
    block_bytes : int
        Of the input's rows in a block; 0 where `total` counts something else.
    detail : str
    ended : bool
    stopped : bool
        Whether an error, or the user, ended it.
    compiling : bool
        Whether kernels are being compiled, which is what takes the time.
    """

    name: str
    number: int
    seconds: float
    done: int = 0
    total: int = 0
    passes: int = 0
    left: float | None = None
    block_bytes: int = 0
    detail: str = ""
    ended: bool = False
    stopped: bool = False
    compiling: bool = False

    @property
    def fraction(self) -> float:
        """Of the present computation."""
        return 1.0 if self.ended else self.done / self.total if self.total else 0.0

    def text(self) -> str:
        """Say it: "412 of 1,530 blocks, 2.1 of 7.8 GiB, 27 %, about 12 min left"."""
        if self.ended:
            return f"{self.seconds:.2f} s"
        if self.stopped:
            parts = [f"stopped after {self.seconds:.2f} s"]
        else:
            parts = [COMPILING_TEXT] * self.compiling + [self.detail] * bool(self.detail)
        if self.total:
            parts.append(f"{self.done:,} of {self.total:,} block{'s' * (self.total != 1)}")
            if self.block_bytes:
                unit, name = (2**30, "GiB") if self.total * self.block_bytes >= 2**30 else (2**20, "MiB")
                done, total = (blocks * self.block_bytes / unit for blocks in (self.done, self.total))
                parts.append(f"{done:.1f} of {total:.1f} {name}")
            parts.append(f"{self.fraction:.0%}".replace("%", " %"))
        if self.left is not None:
            parts.append(f"{duration_text(self.left)} left" + (" in this pass" if self.passes else ""))
        return ", ".join(parts) or f"since {self.seconds:.0f} s"


class _Stage:
    """One running stage: the computations that it runs now, and what it has run."""

    def __init__(self, name: str, number: int, blocks: tuple[int, int], watched: bool) -> None:
        self.name, self.number, self.blocks, self.watched = name, number, blocks, watched
        self.detail = ""
        self.ended = self.stopped = False
        self._started = time.monotonic()
        self._works: list[Work] = []
        self._passes = 0
        self._last = (0, 0)
        self._several = LEAST_BLOCKS  # from so many blocks on a task has several
        self._lock = threading.Lock()

    @contextmanager
    def computing(self, work: Work) -> Iterator[None]:
        """Watch a computation while it runs."""
        self._several = LEAST_BLOCKS_ON_WORKERS if isinstance(work, ClusterWork) else LEAST_BLOCKS
        with self._lock:
            self._works.append(work)
        whole = False
        try:
            yield
            whole = True
        finally:
            with self._lock:
                self._works.remove(work)
                self._passes += 1
                self._last = (work.total if whole else work.done, work.total)

    def state(self) -> StageState:
        """How far it is."""
        with self._lock:
            works, passes, (done, total) = list(self._works), self._passes, self._last
        for work in works:
            work.poll()
        left = None
        if works:
            done, total = sum(work.done for work in works), sum(work.total for work in works)
            spent = time.monotonic() - min(work.started for work in works)
            left = spent * (total - done) / done if done and spent >= LEAST_SECONDS else None
        n_blocks, block_bytes = self.blocks
        if n_blocks >= self._several and total == -(-n_blocks // FAN_IN):
            done, total = min(done * FAN_IN, n_blocks), n_blocks
        return StageState(
            self.name,
            self.number,
            time.monotonic() - self._started,
            done,
            total,
            passes,
            None if self.ended or self.stopped else left,
            block_bytes if total == n_blocks else 0,
            self.detail or next((work.note for work in works if work.note), ""),
            self.ended,
            self.stopped,
            is_compiling() or any(work.compiling for work in works),
        )


_current: ContextVar[_Stage | None] = ContextVar("daskcluster_stage", default=None)

if hasattr(os, "register_at_fork"):
    # The parent's stage is watched by a thread that a forked child does not have.
    os.register_at_fork(after_in_child=lambda: _current.set(None))


class Progress:
    """Reports the stages of one fit.

    Parameters
    ----------
    verbose : bool
        Draw bars on stderr where that is a terminal, show a table in a notebook, else write a line per stage, and one a
        minute while it lasts. Without it these lines go to the logger ``daskcluster`` at level INFO, where an
        application can pick them up.
    listener : callable, optional
        Gets the `StageState` about once a second.
    blocks : pair of int
        Row blocks of the input and bytes of one, which are told as bytes where a computation has as many blocks.
    """

    def __init__(
        self,
        verbose: bool,
        listener: Callable[[StageState], None] | None = None,
        blocks: tuple[int, int] = (0, 0),
    ) -> None:
        self._verbose, self._listener, self._blocks = verbose, listener, blocks
        self._display: Display | None = None
        self._stage: _Stage | None = None
        self._number = 0
        self._told = False
        self._ended = threading.Event()
        self._showing = threading.Lock()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        # What runs inside a stage of another fit is a part of that.
        if self._verbose or _current.get() is None:
            self._display = choose_display(self._verbose)
        if self._display is not None:
            self._display.start()
        if self._watches:
            self._thread = threading.Thread(target=self._tick, name="daskcluster-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=2 * TICK_SECONDS)  # no longer: it may wait for a scheduler that is gone
        if self._display is not None:
            self._display.stop()

    @property
    def _watches(self) -> bool:
        return self._display is not None or self._listener is not None

    def _tick(self) -> None:
        while not self._ended.wait(TICK_SECONDS):
            stage = self._stage
            if stage is not None:
                self._show(stage)

    def _show(self, stage: _Stage) -> None:
        """Show a stage to all who watch; no failure to show one ends a fit."""
        state = stage.state()
        with self._showing:
            if (stage.ended, stage.stopped) != (state.ended, state.stopped):
                return  # it ended meanwhile, which has been shown, or will be
            if state.compiling and not self._told and not state.ended:
                self._told = True
                logger.info("%s; the next fits load them", COMPILING_TEXT)
            if self._display is not None:
                try:
                    self._display.update(state)
                except Exception as error:
                    logger.debug("the progress cannot be shown: %s", error)
            if self._listener is not None:
                with contextlib.suppress(OSError):
                    self._listener(state)

    def say(self, text: str) -> None:
        """Tell something about the fit; of one inside another fit's stage at level DEBUG."""
        inner = _current.get() is not None
        logger.log(logging.DEBUG if inner else logging.INFO, text)
        if self._display is not None and not inner:
            self._display.say(text)

    def detail(self, text: str) -> None:
        """Show something beside the name of the running stage."""
        stage = _current.get()
        if stage is not None:
            stage.detail = text

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Name the work inside. Stages of a fit inside another fit's stage are told at level DEBUG."""
        outer, start = _current.get(), time.perf_counter()
        if outer is not None and not self._watches:
            yield  # it advances the stage that it is part of
        else:
            with self._running(name):
                yield
        level = logging.INFO if outer is None else logging.DEBUG
        logger.log(level, "%s: %.2f s", name, time.perf_counter() - start)

    @contextmanager
    def _running(self, name: str) -> Iterator[None]:
        self._number += 1
        stage = self._stage = _Stage(name, self._number, self._blocks, self._watches)
        token = _current.set(stage)
        if stage.watched:
            self._show(stage)
        try:
            yield
            stage.ended = True
        finally:
            stage.stopped = not stage.ended
            _current.reset(token)
            self._stage = None
            if stage.watched:
                self._show(stage)


def inside_stage() -> bool:
    """Whether a stage is running in this context: a fit that begins now is a step of another one."""
    return _current.get() is not None


def stage_name() -> str | None:
    """Name of the stage that is running in this context."""
    stage = _current.get()
    return None if stage is None else stage.name


def _watched() -> _Stage | None:
    stage = _current.get()
    return stage if stage is not None and stage.watched else None


@contextmanager
def watch_local(see: Callable[..., None] | None = None) -> Iterator[dict[str, Any]]:
    """Context with the arguments of ``dask.compute`` that have blocks of a local scheduler counted for the stage.

    `see` is called with each key and value.

    Arguments, since a callback that is active would count the tasks of other threads as well. What the user watches
    with goes on.
    """
    stage = _watched()
    seen = [] if see is None else [Callback(posttask=see)._callback]
    if stage is None:
        yield {"callbacks": [*Callback.active, *seen]} if seen else {}
        return
    work = LocalWork()
    with stage.computing(work):
        yield {"callbacks": [*Callback.active, work.callback, *seen]}


@contextmanager
def watch_each(number: int) -> Iterator[Callable[[], None]]:
    """Context in which so many blocks are counted for the current stage: what it gives tells that one has ended."""
    stage = _watched()
    work = CountedWork(number)
    with contextlib.nullcontext() if stage is None else stage.computing(work):
        yield work.advance


@contextmanager
def watch_distributed(client: Any, collections: Any) -> Iterator[None]:
    """Context in which blocks of a distributed scheduler are counted for the current stage."""
    stage = _watched()
    if stage is None:
        yield
        return
    from distributed.client import futures_of

    with stage.computing(ClusterWork(client, (future.key for future in futures_of(collections)))):
        yield
