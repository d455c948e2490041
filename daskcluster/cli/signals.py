"""What ends a command from outside: a queue at walltime, a terminal that closes, Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["Ended", "ending_signals"]


class Ended(KeyboardInterrupt):
    """A signal that ends the command; everything cleans up as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.name = signal.Signals(number).name
        self.exit_code = 128 + number


@contextlib.contextmanager
def ending_signals() -> Iterator[None]:
    """Have SIGTERM and SIGHUP raise `Ended` in the work inside; a signal that is ignored (nohup) stays so.

    The first counts: others that follow, as queues send them to each process of a job, do not disturb the cleaning.
    """
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # Python gives signals to that thread only
    replaced = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def end(number: int, frame: FrameType | None) -> None:
        for other in replaced:
            signal.signal(other, signal.SIG_IGN)
        raise Ended(number)

    for number in replaced:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in replaced:
            if signal.getsignal(number) is end:  # not while the process ends
                signal.signal(number, signal.SIG_DFL)
