"""Every check on user input that needs no pass over the data."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = [
    "check_dense",
    "check_flag",
    "check_integer",
    "check_n_features",
    "check_option",
    "check_real",
    "check_seed",
    "check_table",
]


def check_integer(name: str, value: Any, minimum: int) -> int:
    """An integer of at least `minimum`.

    Raises
    ------
    TypeError
        If `value` is no integer.
    ValueError
        If it is too small.
    """
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer >= {minimum}, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value}")
    return int(value)


def check_real(name: str, value: Any, minimum: float) -> float:
    """A finite number of at least `minimum`; raises as `check_integer`."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a number >= {minimum}, got {value!r}")
    if not (np.isfinite(float(value)) and float(value) >= minimum):
        raise ValueError(f"{name} must be a number >= {minimum}, got {value}")
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    """True or False; raises TypeError."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_option(name: str, value: Any, options: Collection[str]) -> str:
    """One of the named options; raises ValueError."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return value


def check_seed(name: str, value: Any) -> None:
    """Accept None, an integer >= 0, a numpy RandomState or Generator; raises as `check_integer`."""
    if value is None or isinstance(value, np.random.RandomState | np.random.Generator):
        return
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_):
        raise TypeError(
            f"{name} must be None, an integer >= 0, or a numpy RandomState or Generator, got {value!r}",
        )
    check_integer(name, value, 0)


def check_dense(X: Any, *, fill: str = "NaN") -> None:
    """Reject sparse and masked arrays, alone or as chunks of a dask array.

    Parameters
    ----------
    X : array
    fill : {"NaN", "-1"}
        What stands for no value there.

    Raises
    ------
    TypeError
        If `X` is sparse.
    ValueError
        If `X` is masked: what is under the mask would be taken for numbers.
    """
    content = getattr(X, "_meta", X)
    if hasattr(content, "todense"):
        raise TypeError(f"X must be dense, got sparse data ({type(content).__name__}); convert it, as with X.todense()")
    if isinstance(content, np.ma.MaskedArray):
        advice = ", and pass missing='label'" if fill == "NaN" else ""
        raise ValueError(
            f"X must not be a masked array: fill it with {fill}, as with numpy.ma.filled or "
            f"dask.array.ma.filled{advice}"
        )


def check_table(shape: tuple[Any, ...], dtype: np.dtype[Any]) -> None:
    """Reject an input that is not a table of real numbers with at least one row and one column.

    Raises
    ------
    ValueError
        Naming what was expected and what came.
    """
    if len(shape) != 2:
        raise ValueError(
            f"X: Expected 2D array (rows, features), got {len(shape)}D array instead, shape {shape}. "
            "Reshape your data, for instance with X.reshape(-1, 1) for a single feature"
        )
    if dtype.kind == "c":
        raise ValueError(f"X must hold real numbers. Complex data not supported, got dtype {dtype}")
    if dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got dtype {dtype}")
    n_samples, n_features = shape
    if n_samples == 0:
        raise ValueError(f"X: Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    if n_features == 0:
        raise ValueError(f"X: Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


def check_n_features(estimator: Any, n_features: int) -> None:
    """Reject new rows with another number of features than in `fit`; raises ValueError."""
    if n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(estimator).__name__} "
            f"is expecting {estimator.n_features_in_} features as input"
        )
