"""What every estimator shares: input, output, saving, pickling."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable
from types import MethodType
from typing import Any, TypeVar

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ..io.models import save_model
from ..pipeline.rows import Rows, check_finite_block, check_rows, is_chunked
from ..runtime.boundary import Boundary, budget_bytes
from ..runtime.execution import active_client, apply_by_tiles, compute, map_rows, persist
from ..typing import ArrayInput, PathInput
from ..validation import check_dense, check_integer, check_n_features, check_option, check_seed

__all__ = ["MISSING", "RowClusterer", "on_client", "where_it_predicts"]

MISSING = ("raise", "label")

#: Parameters that do not decide the products of a fit; the seed is compared by itself.
_NOT_PRODUCTS = ("random_state", "storage", "verbose")


class RowClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Base of the estimators whose input are rows (n, d), and which label new rows.

    A subclass names the attributes that make its model in `_fitted_names`, and gives `_block_functions`.
    """

    _fitted_names: tuple[str, ...] = ()
    #: Whether the fitted model makes the labels of `fit` anew from the rows.
    _predicts: bool = True
    _points_dtype: Any = np.float64
    #: What stands for no value in the input, see `check_dense`.
    _fill: str = "NaN"
    n_clusters: int
    missing: str
    random_state: Any
    storage: Any
    n_features_in_: int

    def _check_parameters(self) -> None:
        """Check the parameters, before the input is looked at; a subclass adds its own."""
        check_integer("n_clusters", self.n_clusters, 1)
        check_option("missing", self.missing, MISSING)
        check_seed("random_state", self.random_state)

    def _rows(self, X: ArrayInput) -> Rows:
        """Bring checked input into row blocks."""
        return check_rows(X, self.missing)

    def _block_check(self) -> Callable[[NDArray[Any], int], None] | None:
        """Function of a raw block of new rows, and its first row's number, that refuses bad values by their place."""
        return check_finite_block if self.missing == "raise" else None

    def _open(self, X: ArrayInput, *, reset: bool) -> Rows:
        """Check the input and bring it into row blocks; `reset` in `fit`."""
        check_option("missing", self.missing, MISSING)
        if not is_chunked(X):
            check_dense(X, fill=self._fill)
            X = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
            rows = self._rows(X)
            check = None if reset else self._block_check()
            if check is not None:  # here, because tasks find some bad value and not the first
                for start in range(0, len(X), rows.block_rows):
                    check(X[start : start + rows.block_rows], start)
            return rows
        if not reset and isinstance(X, da.Array) and X.ndim == 2:
            check_n_features(self, X.shape[1])  # before rows of unknown chunks are counted
        rows = self._rows(X)
        if hasattr(X, "to_dask_array"):  # a dask dataframe: its columns have names
            validate_data(self, X._meta, reset=reset, skip_check_array=True)
        elif reset:
            self.n_features_in_ = rows.n_features
            with contextlib.suppress(AttributeError):
                del self.feature_names_in_  # of an earlier fit on a dataframe
        else:
            check_n_features(self, rows.n_features)
        return rows

    def _check_n_clusters(self, rows: Rows) -> None:
        if self.n_clusters > rows.n_samples:
            raise ValueError(
                f"n_clusters must be at most the number of rows, got n_clusters={self.n_clusters} "
                f"and n_samples={rows.n_samples}"
            )

    def _hand_out(self, array: da.Array, rows: Rows) -> Any:
        """NumPy for NumPy, lazy for chunked input."""
        return array if rows.chunked else compute(array)[0]

    def _boundary(self, **instead: Any) -> Boundary:
        """The boundary of a fit; `instead` are parameters as they take part, where this is not as they were given."""
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in _NOT_PRODUCTS}
        return Boundary(self.storage, type(self).__name__, parameters | instead, self.random_state)

    def _check_n_valid(self, n_valid: int) -> None:
        if self.n_clusters > n_valid:
            raise ValueError(
                f"n_clusters must be at most the number of rows without NaN or infinity, got "
                f"n_clusters={self.n_clusters} and {n_valid} such rows"
            )

    def _keep_labels(self, labels: da.Array, rows: Rows, boundary: Boundary) -> Any:
        """`labels_`, see `_keep`."""
        return self._keep("labels", labels, rows, boundary)

    def _keep(self, what: str, array: da.Array, rows: Rows, boundary: Boundary) -> Any:
        """An output of `fit`: NumPy; or the held array; or, on a cluster without a named store, the model's own one."""
        if boundary.named:
            return self._hand_out(boundary.rows(what, array)[0], rows)
        if not rows.chunked:
            return self._hand_out(array, rows)
        if active_client() is None:
            return boundary.rows(what, array)[0]
        return self._map(rows, what) if self._predicts else on_client(array)

    def _map(self, rows: Rows, what: str) -> da.Array:
        """Lazy output for the rows: "labels" (n,) int32, -1 for missing rows, or "points" (n, q), NaN for these."""
        function, arguments = self._block_function(what, rows.blocks.dtype)
        columns, dtype = self._output(what)
        return map_rows(
            checked_block,
            rows.blocks,
            name="dc-transform" if what == "points" else "dc-predict",
            columns=columns,
            dtype=dtype,
            numbered=True,
            inner=function,
            shape=() if columns is None else (columns,),
            out_dtype=dtype,
            check=self._block_check(),
            size=rows.block_rows,
            **arguments,
        )

    def _output(self, what: str) -> tuple[int | None, Any]:
        """Columns (None for one number a row) and dtype of an output."""
        return (None, np.int32) if what == "labels" else (self._n_features_out, self._points_dtype)

    @abstractmethod
    def _block_function(self, what: str, dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
        """Function of a raw block that gives labels or points, and its other arguments."""

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """Columns of `transform`."""

    def predict(self, X: ArrayInput) -> Any:
        """Label rows, new or old.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)

        Returns
        -------
        labels : (n,) int32
            NumPy for NumPy, a lazy dask array for chunked input; -1 for rows with NaN or infinity when
            ``missing="label"``. For the rows of `fit` equal to `labels_`.

        Raises
        ------
        ValueError
            If the number of features is another one than in `fit`, or a value is NaN or infinite and
            ``missing="raise"``; for chunked input this shows when the labels are computed.
        """
        check_is_fitted(self, "n_clusters_")  # a failed fit leaves n_features_in_
        rows = self._open(X, reset=False)
        return self._hand_out(self._map(rows, "labels"), rows)

    def transform(self, X: ArrayInput) -> Any:
        """Bring rows into the space in which they are clustered.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)

        Returns
        -------
        (n, q) float64
            NumPy for NumPy, a lazy dask array for chunked input; NaN for missing rows. The class says what it is.
        """
        check_is_fitted(self, "n_clusters_")  # a failed fit leaves n_features_in_
        rows = self._open(X, reset=False)
        return self._hand_out(self._map(rows, "points"), rows)

    def save(self, path: PathInput, overwrite: bool = False) -> None:
        """Save the model as a Zarr group of plain arrays and JSON; `daskcluster.load_model` reads it.

        Parameters
        ----------
        path : path
            Appears only when complete.
        overwrite : bool
            Replace an existing one.

        Raises
        ------
        FileExistsError
            If `path` exists and `overwrite` is false.
        """
        check_is_fitted(self, "n_clusters_")  # a failed fit leaves n_features_in_
        save_model(self, path, overwrite)

    def __getstate__(self) -> dict[str, Any]:
        """The state without lazy `labels_`: a pickled model is as large as its small arrays."""
        state = super().__getstate__()
        return {key: value for key, value in state.items() if not (key[-1] == "_" and isinstance(value, da.Array))}

    def __sklearn_tags__(self) -> Tags:
        """scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "label"
        tags.transformer_tags.preserves_dtype = []
        return tags


def on_client(array: da.Array) -> da.Array:
    """Hold an array in this process, where it fits into the budget; a larger one stays with the workers.

    For what no model makes anew, since what the workers hold goes with them.
    """
    if array.nbytes > budget_bytes():
        return persist(array)[0]
    return da.from_array(compute(array)[0], chunks=array.chunks, name=False)


def checked_block(
    block: Any,
    number: int,
    inner: Any,
    shape: tuple[int, ...],
    out_dtype: Any,
    check: Callable[[NDArray[Any], int], None] | None,
    size: int,
    **arguments: Any,
) -> Any:
    """Apply a row-wise function by tiles to a block of `size` rows, or fewer; first refuse bad values."""
    block = np.asarray(block)
    if check is not None:
        check(block, number * size)
    return apply_by_tiles(inner, block, shape, out_dtype, **arguments)


Clusterer = TypeVar("Clusterer", bound=type[Any])


def where_it_predicts(cls: Clusterer) -> Clusterer:
    """Decorate a class of which not every model labels new rows: where it does not, it has no method for that.

    `hasattr` is false then, as of scikit-learn's `available_if`, and the AttributeError is that of the class's
    `_check_predicts`, which says why. A decorator of the class, since scikit-learn wraps the methods while it is made.
    """
    for name in ("predict", "transform", "fit_transform"):
        setattr(cls, name, _WherePredicts(getattr(cls, name)))
    return cls


class _WherePredicts:
    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self.method
        instance._check_predicts()
        return MethodType(self.method, instance)
