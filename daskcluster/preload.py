"""A preload of Dask workers: ``dask worker ... --preload daskcluster.preload``.

A worker imports the package and loads the compiled kernels that are kept on its machine while it starts, and not when
the first fit has sent its first tasks.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

__all__ = ["dask_setup"]

_ROOMS = ("kernels", "runtime", "pipeline", "constraints", "ensemble", "estimators")


def dask_setup(worker: Any) -> None:
    """Make a worker ready; Dask calls this when it starts."""
    from .kernels.jit import load_kept

    for room in _ROOMS:
        package = importlib.import_module(f"daskcluster.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    load_kept()
