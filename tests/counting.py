"""What a fit does, as dask's local schedulers see it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dask.callbacks import Callback
from dask.utils import key_split

__all__ = ["Interrupted", "count_tasks", "interrupt_after"]


class Interrupted(Exception):
    """Raised between two tasks."""


@contextmanager
def count_tasks() -> Iterator[Counter[str]]:
    """Tasks that run meanwhile, by their names."""
    counts: Counter[str] = Counter()

    def count(key: Any, *more: Any) -> None:
        counts[key_split(key)] += 1

    with Callback(posttask=count):
        yield counts


@contextmanager
def interrupt_after(n_tasks: int) -> Iterator[None]:
    """Raise `Interrupted` when so many tasks have run, over all computations."""
    left = n_tasks

    def count(*more: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Interrupted

    with Callback(posttask=count):
        yield
