"""What ends a process from outside: a queue at walltime, a terminal that closes, Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

__all__ = ["delayed_signals", "ending_numbers", "ending_signals"]


@contextlib.contextmanager
def ending_signals(exception: Callable[[int], BaseException], *, last: bool = False) -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise an exception in the work inside, so that it cleans up as after Ctrl-C.

    The first counts: others that follow, as queues send them to each process of a job, do not disturb the cleaning. A
    signal that is ignored (nohup), or for which the program has a handler, keeps that.

    Parameters
    ----------
    exception : callable
        The signal's number -> what is raised.
    last : bool
        Whether nothing comes after this work but the end of the process, which is not disturbed either.
    """
    replaced = ending_numbers()

    def end(number: int, frame: FrameType | None) -> None:
        for other in replaced:
            signal.signal(other, signal.SIG_IGN)
        raise exception(number)

    for number in replaced:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in replaced:
            if signal.getsignal(number) is end or not last:
                signal.signal(number, signal.SIG_DFL)


def ending_numbers() -> list[int]:
    """Those of SIGTERM and SIGHUP of which this process would die; none where another thread than the main one asks."""
    return [number for number in _numbers("SIGTERM", "SIGHUP") if signal.getsignal(number) is signal.SIG_DFL]


@contextlib.contextmanager
def delayed_signals() -> Iterator[None]:
    """Have signals that end this process wait for the end of the work inside; processes that it starts never see them.

    A terminal and a queue send them to all processes of a job: this one ends those that it has started, in good order.
    They inherit the mask of signals. Here, other threads take what one masks, so that handlers wait as well.
    """
    numbers = _numbers("SIGINT", "SIGTERM", "SIGHUP")
    came: list[int] = []
    # None: a handler that was not set from Python, which cannot be set again.
    handlers = {number: signal.getsignal(number) for number in numbers}
    waiting: dict[int, Any] = {number: old for number, old in handlers.items() if callable(old)}
    for number in waiting:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        with _masked(numbers):
            yield
    finally:
        for number, old in waiting.items():
            signal.signal(number, old)
        for number in came[:1]:
            signal.raise_signal(number)


@contextlib.contextmanager
def _masked(numbers: list[int]) -> Iterator[None]:
    """Mask signals for this thread, and for the threads and processes that it starts."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    resource_tracker.ensure_running()  # started later, with the first process, it would clear the mask
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)  # it cleared a part of it
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _numbers(*names: str) -> list[int]:
    """Those of these signals that there are here; none outside of the main thread, to which Python gives signals."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [getattr(signal, name) for name in names if hasattr(signal, name)]
