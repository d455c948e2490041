"""Every check on user input that needs no pass over the data."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from inspect import isfunction, ismethod
from numbers import Integral, Number, Real
from typing import Any

import dask
import dask.array as da
import numpy as np
from scipy.sparse import issparse

__all__ = [
    "POINTS",
    "check_columns",
    "check_dense",
    "check_flag",
    "check_in_memory",
    "check_integer",
    "check_kind",
    "check_n_features",
    "check_option",
    "check_real",
    "check_seed",
    "check_table",
    "most_clusters",
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


#: Parameters that are the most clusters which an estimator can tell apart: each has one of these points at least.
POINTS = ("n_representatives", "n_landmarks")


def most_clusters(estimator: Any) -> int | None:
    """The most clusters that an estimator's own parameters allow; None where they set no limit."""
    given = [getattr(estimator, name, None) for name in POINTS]
    return min((number for number in given if number is not None), default=None)


def check_kind(name: str, value: Any, wanted: str = "an array (rows, features)") -> None:
    """Reject what is no array, and holds none under one name only: it is said how to get at it.

    Raises
    ------
    TypeError
        Naming what was expected and what came.
    """
    advice = _advice_for(value)
    if advice is not None:
        raise TypeError(f"{name} must be {wanted}, got {_kind_name(value)}{advice and f': {advice}'}")


def _advice_for(value: Any) -> str | None:
    """What to give instead of something that is no array; "" where nothing is to be said, None for what may be one."""
    cls = type(value)
    package, kind = cls.__module__.partition(".")[0], cls.__name__
    if (package, kind) == ("distributed", "Future"):
        return "make an array of it with dask.array.from_delayed(value, shape, dtype), or take value.result()"
    if package == "xarray" and isinstance(getattr(value, "data", None), da.Array):
        return None
    if package == "xarray" and kind in ("Dataset", "DataTree"):
        return "take one of its variables, as with ds['name']"
    if package == "h5py" and kind in ("File", "Group"):
        return "take one of its datasets, as with file['name']"
    if (package == "zarr" and kind.endswith("Store")) or package == "icechunk":
        store = "session.store" if kind.endswith("Session") else "store"
        return f"open an array of it, as with zarr.open_array({store}, path='X', mode='r')"
    if dask.is_dask_collection(value) and not isinstance(value, da.Array) and not hasattr(cls, "to_dask_array"):
        if kind.startswith("Delayed"):
            return "make an array of it with dask.array.from_delayed(value, shape, dtype)"
        return "make a dask array or dataframe of it"
    if value is None or isinstance(value, bytes | bytearray | type | Number):
        return ""
    if isinstance(value, Set):
        return "it has no order of rows"
    if isinstance(value, Iterator):
        return "make a list of it"
    return "" if isfunction(value) or ismethod(value) else None


def _kind_name(value: Any) -> str:
    """How a message names a thing that is no array."""
    if value is None or isinstance(value, Number):
        return repr(value)
    name = type(value).__name__
    if isinstance(value, Iterator):
        return f"a {name}, which can be read once only"
    if isinstance(value, bytes | bytearray):
        return f"{name} {_shown(value)}"
    name = "Delayed" if name.startswith("Delayed") else name
    return f"a dask {name}" if dask.is_dask_collection(value) else f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"


def check_in_memory(X: Any) -> Any:
    """Reject rows in memory that are no table of real numbers; return them, as an array where they are a list.

    Dataframes stay what they are, for the names of their columns. Nothing that has a shape and a NumPy dtype is read.

    Raises
    ------
    TypeError, ValueError
        Naming what was expected and what came.
    """
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        check_columns(X)
        return X
    if not isinstance(getattr(X, "dtype", None), np.dtype):
        try:
            array = np.asarray(X)
        except ValueError as error:  # lists of different lengths
            raise ValueError(
                f"X must be an array (rows, features), got {_shown(X)}: its rows differ in length"
            ) from error
        if array.ndim == 0:
            raise TypeError(f"X must be an array (rows, features), got {_kind_name(X)}")
        X = array if not isinstance(X, np.ndarray) and not hasattr(X, "iloc") else X
    elif isinstance(X, np.matrix):
        return X  # scikit-learn refuses it
    if X.dtype.kind == "O":
        X = _numbers_of(X)
    check_table(X.shape, X.dtype)
    return X


def _numbers_of(X: Any) -> Any:
    """Objects that are numbers as float64."""
    if len(X.shape) != 2:
        return X
    try:
        return np.asarray(X).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"X must hold real numbers, got objects of which not all are numbers: {error}") from error


def _shown(value: Any) -> str:
    text = " ".join(repr(value)[:200].split())
    return text if len(text) <= 60 else f"{text[:60]}..."


def check_columns(frame: Any) -> None:
    """Reject a dataframe, pandas' or dask's, with a column that is not numeric, is sparse, or has the name of another.

    Raises
    ------
    TypeError, ValueError
        Naming the column.
    """
    seen = set()
    for name, kind in zip(frame.columns, frame.dtypes, strict=True):
        text = str(kind).lower()
        if text.startswith("sparse"):
            raise TypeError(
                f"X must not be a frame of sparse columns, got column {name!r}; give X.sparse.to_coo() to an estimator "
                "that takes sparse rows, or X.sparse.to_dense()"
            )
        if not text.startswith(_NUMERIC):
            raise ValueError(
                f"X must hold real numbers, got column {name!r} of dtype {kind}; choose others, as with X[['a', 'b']]"
            )
        if name in seen:
            raise ValueError(f"X must have columns of different names, got {name!r} twice")
        seen.add(name)


# What dtypes of dataframes begin with that may hold numbers. Of objects and categories only a pass over them tells.
_NUMERIC = ("bool", "int", "uint", "float", "double", "decimal", "object", "category")


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
    if issparse(content) or type(content).__module__.partition(".")[0] in ("sparse", "cupyx"):
        to_dense = "todense" if type(content).__module__.startswith("sparse") else "toarray"
        how = f"X.{to_dense}()" if content is X else f"X.map_blocks(lambda block: block.{to_dense}())"
        raise TypeError(f"X must be dense, got sparse data ({type(content).__name__}); convert it, as with {how}")
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
    if dtype.names is not None:
        raise ValueError(
            f"X must be an array (rows, features) of real numbers, got records with the fields "
            f"{', '.join(dtype.names)}; convert it, as with numpy.lib.recfunctions.structured_to_unstructured(X)"
        )
    if len(shape) != 2:
        kind = f"{len(shape)}D array" if shape else "scalar array"
        raise ValueError(
            f"X: Expected 2D array (rows, features), got {kind} instead, shape {_shape_text(shape)}. "
            f"{_reshape_advice(shape)}"
        )
    if dtype.kind == "c":
        raise ValueError(f"X must hold real numbers. Complex data not supported, got dtype {dtype}")
    if dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got dtype {dtype}{_NUMBERS_FROM.get(dtype.kind, '')}")
    n_samples, n_features = shape
    if n_samples == 0:
        raise ValueError(f"X: Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")
    if n_features == 0:
        raise ValueError(f"X: Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")


# How values of other kinds become numbers.
_NUMBERS_FROM = dict.fromkeys("mM", "; convert it to numbers, as with X.astype('int64')") | dict.fromkeys(
    "SU", "; bytes/strings are not read as numbers, X.astype(float) does that"
)


def _shape_text(shape: tuple[Any, ...]) -> str:
    """A shape in a message; what no one has counted is "?"."""
    return str(tuple("?" if length != length else int(length) for length in shape)).replace("'?'", "?")


def _reshape_advice(shape: tuple[Any, ...]) -> str:
    """How an array that is no table becomes one."""
    if len(shape) <= 1:
        return "Reshape your data, as with X.reshape(-1, 1) for a single feature or X.reshape(1, -1) for a single row"
    first, last = _shape_text(shape[:1])[1:-2], _shape_text(shape[-1:])[1:-2]
    if len(shape) == 3:
        return (
            "Reshape your data: of a raster (band, y, x) every pixel is a row, (y*x, band), as X.reshape("
            f"{first}, -1).T gives it; of one (y, x, band) X.reshape(-1, {last}) does"
        )
    return f"Reshape your data: the last axis as features, all others as rows, is X.reshape(-1, {last})"


def check_n_features(estimator: Any, shape: tuple[Any, ...]) -> None:
    """Reject new rows (n, d) with another number of features than in `fit`; raises ValueError."""
    if shape[1] != estimator.n_features_in_:
        hint = "; is X transposed?" if shape[0] == estimator.n_features_in_ else ""
        raise ValueError(
            f"X has {shape[1]} features, but {type(estimator).__name__} "
            f"is expecting {estimator.n_features_in_} features as input{hint}"
        )
