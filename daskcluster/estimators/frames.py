"""`set_output`: transformed rows as a frame, which for chunked rows is a lazy one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import dask.array as da
from sklearn import get_config

from ..io.inputs import is_chunked

__all__ = ["give_lazy_frames"]


def give_lazy_frames(cls: type[Any]) -> None:
    """Let the transforming methods of a class give a dask dataframe where scikit-learn would fill one in memory.

    scikit-learn wraps these methods while a class is made, and its wrapper turns any array into a frame of the kind
    that `set_output` names, so a lazy one would be computed as a whole. For chunked rows this goes past the wrapper.
    """
    for name in ("transform", "fit_transform"):
        method = getattr(cls, name)
        if not hasattr(method, "gives_lazy_frames"):
            setattr(cls, name, _past_wrapper(method))


def _past_wrapper(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def transform(self: Any, X: Any, *arguments: Any, **given: Any) -> Any:
        if not is_chunked(X):
            return method(self, X, *arguments, **given)
        kind = _output_kind(self)
        points = method.__wrapped__(self, X, *arguments, **given)  # type: ignore[attr-defined]
        return _as_frame(points, X, self) if kind == "pandas" and isinstance(points, da.Array) else points

    transform.gives_lazy_frames = True  # type: ignore[attr-defined]
    return transform


def _output_kind(estimator: Any) -> str:
    """What `set_output` or scikit-learn's configuration asks for; refuses, before any work, what is not lazy."""
    own = getattr(estimator, "_sklearn_output_config", {})
    kind = str(own.get("transform", get_config()["transform_output"]))
    if kind not in ("default", "pandas"):
        raise ValueError(
            f"set_output(transform={kind!r}) has no lazy form for chunked rows: "
            "take 'pandas', which gives a dask dataframe, or 'default', which gives a dask array"
        )
    return kind


def _as_frame(points: da.Array, X: Any, estimator: Any) -> Any:
    """A dask dataframe of the points, with the index of `X` where `X` is one."""
    import dask.dataframe as dd

    index = X.index if hasattr(X, "to_dask_array") and hasattr(X, "columns") else None
    return dd.from_dask_array(points, columns=list(estimator.get_feature_names_out()), index=index)
