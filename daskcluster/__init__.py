"""Nonlinear clusters in arrays that do not fit in memory, on dask and Zarr.

The names are imported when first used, so that ``import daskcluster`` and the command line start at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import datasets, metrics, plotting
    from .constraints import Constraints
    from .errors import (
        ClusterLostError,
        DamagedStoreError,
        DiskFullError,
        FewerClustersWarning,
        MissingChunksError,
        MissingChunksWarning,
        NotEnoughMemoryError,
        StorageBusyError,
        StorageMismatchError,
        UnreadableChunkError,
        UnseenStoreError,
        WorkersKilledError,
    )
    from .estimators import (
        CSPML,
        EAC,
        ECPCS,
        ISEC,
        KCC,
        PTGP,
        SEC,
        USENC,
        USPEC,
        BipartiteCut,
        Ensemble,
        FastCSC,
        FastCSPML,
        KMeans,
        select_n_clusters,
    )
    from .io import load_model

__version__ = "0.2.0"

__all__ = [
    "BipartiteCut",
    "EAC",
    "Ensemble",
    "ECPCS",
    "KCC",
    "ISEC",
    "PTGP",
    "USENC",
    "SEC",
    "CSPML",
    "ClusterLostError",
    "Constraints",
    "FastCSC",
    "FastCSPML",
    "DamagedStoreError",
    "DiskFullError",
    "FewerClustersWarning",
    "KMeans",
    "MissingChunksError",
    "MissingChunksWarning",
    "NotEnoughMemoryError",
    "StorageBusyError",
    "StorageMismatchError",
    "USPEC",
    "UnreadableChunkError",
    "UnseenStoreError",
    "WorkersKilledError",
    "datasets",
    "load_model",
    "metrics",
    "plotting",
    "select_n_clusters",
]

_WHERE = {
    "BipartiteCut": "estimators",
    "EAC": "estimators",
    "Ensemble": "estimators",
    "ECPCS": "estimators",
    "KCC": "estimators",
    "ISEC": "estimators",
    "PTGP": "estimators",
    "USENC": "estimators",
    "SEC": "estimators",
    "CSPML": "estimators",
    "Constraints": "constraints",
    "FastCSC": "estimators",
    "FastCSPML": "estimators",
    "ClusterLostError": "errors",
    "DamagedStoreError": "errors",
    "DiskFullError": "errors",
    "FewerClustersWarning": "errors",
    "MissingChunksError": "errors",
    "MissingChunksWarning": "errors",
    "NotEnoughMemoryError": "errors",
    "StorageBusyError": "errors",
    "StorageMismatchError": "errors",
    "UnreadableChunkError": "errors",
    "UnseenStoreError": "errors",
    "WorkersKilledError": "errors",
    "KMeans": "estimators",
    "USPEC": "estimators",
    "load_model": "io",
    "select_n_clusters": "estimators",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    if name in __all__:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
