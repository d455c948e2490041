"""One BLAS thread inside tasks and small problems."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]

_lock = threading.Lock()
_depth = 0
_before: list[int] = []


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
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _set_threads(_before)
