"""What the readers share that parse with Arrow."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from numpy.typing import NDArray

__all__ = ["require", "values_of"]


def require(module: str, what: str) -> ModuleType:
    """Import an optional package."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"reading {what} needs {package}, which is not installed: pip install 'daskcluster[convert]'"
        ) from error


def values_of(column: Any) -> NDArray[Any]:
    """Return the numbers of an Arrow array, NaN where they are missing."""
    kind = str(column.type)
    if kind.startswith("decimal") or kind == "bool" or column.null_count:
        column = column.cast("uint8" if kind == "bool" and not column.null_count else "float64")
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values
