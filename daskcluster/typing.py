"""Types that recur in signatures."""

from __future__ import annotations

from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "ArrayInput", "PathInput", "Seed"]

Array: TypeAlias = NDArray[Any]
#: NumPy array, dask array, zarr.Array, a path to one, or what scikit-learn converts.
ArrayInput: TypeAlias = Any
PathInput: TypeAlias = str | PathLike[str]
Seed: TypeAlias = int | np.random.RandomState | np.random.Generator | None
