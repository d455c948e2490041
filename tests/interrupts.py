"""Interrupt a fit at a known point."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["interrupted_after"]


class _Interrupt(logging.Handler):
    def __init__(self, when: Callable[[str], bool]) -> None:
        super().__init__(logging.DEBUG)
        self.when = when

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == "%s: %.2f s" and self.when(str(record.args[0] if isinstance(record.args, tuple) else "")):
            raise KeyboardInterrupt


@contextmanager
def interrupted_after(when: Callable[[str], bool]) -> Iterator[None]:
    """Raise KeyboardInterrupt, as Ctrl-C does, when a stage has ended and a function of its title says so."""
    logger, handler = logging.getLogger("daskcluster"), _Interrupt(when)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
