"""Says that kernels are being compiled, here or by the workers of a cluster: the first use on a machine is slower."""

from __future__ import annotations

import contextlib
import socket
import sys
import time

from ..hooks import ON_COMPILING

__all__ = ["COMPILING_SECONDS", "COMPILING_TEXT", "TOPIC", "is_compiling"]

#: What is said.
COMPILING_TEXT = "compiling kernels (first use on this machine)"
#: A kernel takes so long at most; the next one is noted anew.
COMPILING_SECONDS = 10.0
#: Topic of the events by which workers tell a scheduler.
TOPIC = "daskcluster-compiling"

_last = -COMPILING_SECONDS


def is_compiling() -> bool:
    """Whether this process began to compile a kernel a moment ago."""
    return time.monotonic() - _last < COMPILING_SECONDS


def _note() -> None:
    global _last
    _last = time.monotonic()
    if "distributed.worker" in sys.modules:
        from distributed import get_worker

        with contextlib.suppress(Exception):  # this is no task of a worker, or the worker is ending
            get_worker().log_event(TOPIC, socket.gethostname())


ON_COMPILING.append(_note)
