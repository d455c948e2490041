"""A preload of nannies: their workers are forked from a process that has the package, and no threads.

One that dies is back at once, where a new interpreter would import for some seconds.
"""

from __future__ import annotations

from typing import Any

from distributed.utils import get_mp_context

__all__ = ["dask_setup"]


def dask_setup(nanny: Any) -> None:
    """Choose what the process has from which a nanny's workers are forked."""
    get_mp_context().set_forkserver_preload(["distributed.worker", "daskcluster.estimators"])
