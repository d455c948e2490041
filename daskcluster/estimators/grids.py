"""Objects that hold rows: xarray's, whose answers lie on their grid, and AnnData's, of which one array is meant."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import dask.array as da
import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ..io.containers import array_of_obsm
from ..io.rasters import GridRows, grid_rows

__all__ = ["TAKE_ROWS", "TRANSFORM", "is_lazy", "take_grids"]

TAKE_ROWS = ("fit", "fit_predict", "plan", "predict", "score")
TRANSFORM = ("fit_transform", "transform")


def take_grids(cls: type[Any], names: Iterable[str]) -> None:
    """Let the methods of a class take a DataArray or Dataset, with the keywords `sample_dims` and `feature_dim`.

    In one place for all estimators: the methods themselves get rows, and do not know of grids.
    """
    for name in names:
        method = cls.__dict__.get(name)
        if callable(method) and not hasattr(method, "takes_grids"):
            setattr(cls, name, _with_grids(method))


def _with_grids(method: Callable[..., Any]) -> Callable[..., Any]:
    name = method.__name__

    @functools.wraps(method)
    def on_grids(
        self: Any,
        X: Any,
        *arguments: Any,
        sample_dims: Any = None,
        feature_dim: Any = None,
        obsm: Any = None,
        **given: Any,
    ) -> Any:
        X = X if obsm is None else array_of_obsm(X, obsm)
        found = grid_rows(X, sample_dims, feature_dim, label=self._fill == "-1")
        if found is None:
            return method(self, X, *arguments, **given)
        grid = found.grid
        arguments = tuple(grid.column("y", value) if _is_grid(value) else value for value in arguments)
        given = {key: grid.column(key, value) if _is_grid(value) else value for key, value in given.items()}
        fits = name.startswith("fit")
        if not (fits or name == "plan"):
            check_is_fitted(self, "n_clusters_")
            _check_names(self, found)
        result = method(self, found.rows, *arguments, **given)
        if fits:
            _name_features(self, found)
            self.labels_ = grid.labels(self.labels_, self.n_clusters_, self.missing)
            if hasattr(self, "agreement_"):
                self.agreement_ = grid.numbers(self.agreement_, "agreement")
        return self.labels_ if name == "fit_predict" else _on_grid(self, name, result, found)

    on_grids.takes_grids = True  # type: ignore[attr-defined]
    on_grids.__doc__ = _with_keywords(method.__doc__)
    return on_grids


#: Not in signatures: scikit-learn would take the keywords for metadata that a pipeline routes.
_DOCUMENTED = """sample_dims : str or sequence of str, optional
    Of an xarray DataArray or Dataset, in the place of rows: the dimensions of the samples, such as
    ``("y", "x")``, in the order in which rows run through them. Results lie on their grid.
feature_dim : str, optional
    Of a DataArray: the dimension of the features. One of the two is enough; without both, a dimension named
    "band", "channel", "feature" or "variable" is taken.
obsm : str, optional
    Of an AnnData object, in the place of rows: the name of an array in its ``obsm``, such as "X_pca".
"""


def _with_keywords(text: str | None) -> str | None:
    """A docstring with the keywords at the end of its parameters."""
    if text is None:
        return None
    lines = inspect.cleandoc(text).split("\n")
    if "Parameters" not in lines:
        return text
    begin = lines.index("Parameters") + 2
    heads = (place for place in range(begin, len(lines)) if set(lines[place]) == {"-"})
    end = next(heads, len(lines) + 2) - 1  # the next section's name
    while end > begin and not lines[min(end, len(lines)) - 1].strip():
        end -= 1
    return "\n".join([*lines[:end], _DOCUMENTED.rstrip("\n"), *lines[end:]])


def is_lazy(value: Any) -> bool:
    """Whether something is a dask array, or one on a grid."""
    return isinstance(value.data if _is_grid(value) else value, da.Array)


def _is_grid(value: Any) -> bool:
    return type(value).__module__.startswith("xarray") and hasattr(value, "dims")


def _on_grid(estimator: Any, name: str, result: Any, found: GridRows) -> Any:
    if not isinstance(result, np.ndarray | da.Array):  # the estimator itself, a plan, a frame
        return result
    if name == "predict":
        return found.grid.labels(result, estimator.n_clusters_, estimator.missing)
    return found.grid.points(result, estimator.get_feature_names_out()) if result.ndim == 2 else result


def _check_names(estimator: Any, found: GridRows) -> None:
    """Names and order of the features are those of the fit, in scikit-learn's words; rows in memory carry them."""
    fitted = tuple(getattr(estimator, "feature_names_in_", ()))
    if found.names is not None and found.names != fitted and sorted(found.names) == sorted(fitted):
        raise ValueError(
            "The feature names should match those that were passed during fit. Feature names must be in the same order "
            f"as they were in fit: {', '.join(fitted)}; with names = list(model.feature_names_in_) that is ds[names] "
            "of a Dataset, or da.sel(band=names)"
        )
    if found.names is not None and isinstance(found.rows, da.Array):
        validate_data(estimator, found.named(), reset=False, skip_check_array=True)


def _name_features(estimator: Any, found: GridRows) -> None:
    if found.names is not None:
        validate_data(estimator, found.named(), reset=True, skip_check_array=True)
