"""A command that a signal ends is gone some seconds later, whatever it is at: a queue kills it soon after.

Its work is given up at once, but what runs in threads cannot be: Python waits for it before a process ends. A block of
many rows takes seconds, an eigenproblem a minute, and workers that start need as long as they need. After that Python
takes down all modules, which are many, one by one.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .signals import ending_numbers

__all__ = ["at_deadline", "ended_in_time"]

#: A command has so many seconds to end by itself; then it has a second more for what must be kept, and is ended.
DEADLINE_SECONDS = 3.0
LAST_SECONDS = 1.0

#: Whether signals of this process are watched: a fork would tell of its own.
_watching = False
#: Those that were there before a fork.
_masks = list[Any]()


#: What is done before.
_actions: list[Callable[[], object]] = []


def at_deadline(action: Callable[[], object]) -> None:
    """Have something done before a process is ended by force, in a thread of its own, while all others run still."""
    _actions.append(action)


@contextlib.contextmanager
def ended_in_time(tell: Callable[[int], object]) -> Iterator[None]:
    """End this process by force some seconds after SIGTERM or SIGHUP, unless it has ended by then.

    Also when Python cannot handle the signal yet, since the main thread is in a long call, or has it wait. With the
    process go those that it has started; what is finished is written before, and what is unfinished is removed, as far
    as that goes in a second. Ended so, a process loses no more than a killed one.

    Parameters
    ----------
    tell : callable
        Is given the signal's number when the process is ended by force.

    Notes
    -----
    Of signals that `ending_signals` takes, which is entered inside. POSIX only.
    """
    global _watching
    numbers = ending_numbers()
    if os.name != "posix" or not numbers:
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    came = list[int]()
    leave = partial(_leave, came)
    atexit.register(leave)  # before what is imported from now on registers anything, so it runs after that
    threading.Thread(target=_watch, args=(reading, numbers, came, tell), name="daskcluster-ending", daemon=True).start()
    _watching = True
    try:
        yield
    finally:
        ended = any(signal.getsignal(number) is signal.SIG_IGN for number in numbers)  # as `ending_signals` leaves them
        if not ended:  # else the watch goes on till the end of the process
            _watching = False
            signal.set_wakeup_fd(before)
            os.close(writing)
            atexit.unregister(leave)


def _leave(came: list[int]) -> None:
    """End this process when all that is registered for its end is done."""
    if came:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(128 + came[0])


def _watch(reading: int, numbers: list[int], came: list[int], tell: Callable[[int], object]) -> None:
    """Wait for a signal, and then for the end of the process; returns when nobody can write any more."""
    while found := os.read(reading, 64):
        came += [number for number in found if number in numbers]
        if came:
            threading.Event().wait(DEADLINE_SECONDS)
            if not _watching:  # it was handled, and the program goes on
                break
            _end(came[0], tell)
    os.close(reading)


def _end(number: int, tell: Callable[[int], object]) -> None:
    try:
        for child in multiprocessing.active_children():
            with contextlib.suppress(OSError, ValueError):  # it has ended meanwhile
                child.kill()
        end = time.monotonic() + LAST_SECONDS
        actions = [threading.Thread(target=action, daemon=True) for action in (*_actions, lambda: tell(number))]
        for action in actions:
            action.start()
        for action in actions:  # a file system may hang
            action.join(max(0.0, end - time.monotonic()))
    finally:
        os._exit(128 + number)


def _before_fork() -> None:
    """Have signals wait that come to the child before it is known for one."""
    if _watching:
        _masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING))


def _in_parent() -> None:
    if _masks:
        signal.pthread_sigmask(signal.SIG_SETMASK, _masks.pop())


def _in_child() -> None:
    """A forked child has this process's pipe: what it is sent is no signal to this one."""
    global _watching
    if _watching:
        _watching = False
        signal.set_wakeup_fd(-1)
    _in_parent()


if os.name == "posix":
    _ENDING = {signal.SIGTERM, signal.SIGHUP}
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
