"""What belongs to the process, used by many of its threads: one BLAS thread inside tasks, and other such settings."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["Shared", "one_blas_thread"]

_lock = threading.Lock()
_depth = 0
_before: list[int] = []
#: Forks between the first process and this one: who entered before a fork does not leave in the child.
_forks = 0


class Shared:
    """A context that the threads of a process share: the first to enter makes it, and the last to leave ends it.

    Of two threads that set what belongs to the process, and each put back what it found, one would put back what the
    other had set.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._users = 0
        self._open: AbstractContextManager[Any] | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._open is None:
                self._open = self._make()
                self._open.__enter__()
            self._users += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._open is not None:
                self._open.__exit__(None, None, None)
                self._open = None


@cache
def _libraries() -> tuple[Any, ...]:
    import scipy.linalg  # noqa: F401  # a BLAS that is loaded later would escape the limit

    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(numbers: list[int]) -> None:
    for library, n_threads in zip(_libraries(), numbers, strict=True):
        # threadpoolctl >= 3.8 obeys only the thread that was the first to set a number, and ignores the others; here
        # the last to leave restores what the first to enter set.
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(n_threads)
        release(force=True)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any caller in this process is inside.

    Notes
    -----
    The limit belongs to the process, not to the thread, so concurrent tasks share it: the first to enter sets it and
    the last to leave restores what was there. dask gives the parallelism; more threads below it oversubscribe the
    cores, and another number of threads gives other last digits.
    """
    global _depth, _before
    with _lock:
        if _depth == 0:
            _before = [library.get_num_threads() for library in _libraries()]
            _set_threads([1] * len(_before))
        _depth += 1
        forks = _forks
    try:
        yield
    finally:
        with _lock:
            if forks == _forks:
                _depth -= 1
                if _depth == 0:
                    _set_threads(_before)


def _in_child() -> None:
    """Nobody is inside in a forked child: the parent's other threads are not there."""
    global _depth, _forks
    _forks += 1
    if _depth:
        _set_threads(_before)
    _depth = 0
    _lock.release()


if hasattr(os, "register_at_fork"):
    # A fork waits until the numbers of threads, of which the child gets a copy, are consistent.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_in_child)
