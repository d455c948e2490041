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
_limiter: Any = None


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  # a BLAS that is loaded later would escape the limit

    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while any caller in this process is inside.

    Notes
    -----
    The limit belongs to the process, not to the thread, so concurrent tasks share it: the first to enter sets it and
    the last to leave restores what was there. dask gives the parallelism; more threads below it oversubscribe the
    cores, and another number of threads gives other last digits.
    """
    global _depth, _limiter
    with _lock:
        if _depth == 0:
            _limiter = _controller().limit(limits=1)
            _limiter.__enter__()
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _limiter.__exit__(None, None, None)
                _limiter = None
