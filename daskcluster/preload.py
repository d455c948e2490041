"""A preload of Dask's processes: ``dask worker ... --preload daskcluster.preload``, and ``dask scheduler`` as well.

They import the package, and workers load the compiled kernels that are kept on their machine, while they start, and not
when the first fit has sent its first tasks.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

__all__ = ["dask_setup", "import_rooms"]

_ROOMS = ("kernels", "runtime", "pipeline", "constraints", "ensemble")


def dask_setup(server: Any) -> None:
    """Make a worker or a scheduler ready; Dask calls this when it starts."""
    from .kernels.jit import load_kept

    import_rooms()
    if hasattr(server, "nthreads"):  # a scheduler runs no kernel
        load_kept()


def import_rooms() -> None:
    """Import what tasks are made of."""
    for room in _ROOMS:
        package = importlib.import_module(f"daskcluster.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
