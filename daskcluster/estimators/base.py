"""What every estimator shares: input, stages, plan, output, saving, pickling."""

from __future__ import annotations

import contextlib
import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from types import MethodType
from typing import Any, TypeVar

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ..errors import NotEnoughMemoryError
from ..io.inputs import Rows, Source, cut_rows, open_source, sizes_of
from ..io.models import save_model
from ..io.sparse import is_sparse_input
from ..kernels.sparse_rows import SparseRows, is_sparse
from ..pipeline.outputs import hand_out
from ..pipeline.rows import check_finite_block
from ..registry import register
from ..report import html_outcome, write_report
from ..runtime.execution import apply_by_tiles, map_rows
from ..runtime.forecast import Cost, Plan, Sizes, make_plan
from ..runtime.limits import checks_memory
from ..runtime.products import Products
from ..runtime.progress import inside_stage
from ..runtime.stages import Run, Stage
from ..typing import ArrayInput, PathInput
from ..validation import check_integer, check_n_features, check_option, check_seed
from .callbacks import CallbackSupport, stage_teller, take_callbacks
from .frames import give_lazy_frames
from .grids import TAKE_ROWS, TRANSFORM, is_lazy, take_grids

__all__ = ["MISSING", "Clusterer", "RowClusterer", "where_it_predicts"]

logger = logging.getLogger("daskcluster")

MISSING = ("raise", "label")

#: Any sparse format may come in, and is taken by compressed rows; wide and long ones need 64-bit places.
SPARSE: dict[str, Any] = {"accept_sparse": "csr", "accept_large_sparse": True}

#: Parameters that do not decide the products of a fit; the seed is compared by itself.
_NOT_PRODUCTS = ("random_state", "storage", "verbose")

#: Parameters of which a smaller number takes less memory, and the least that is advised.
_SIZES = {"n_landmarks", "n_representatives"}
_LEAST_SIZE = 50


class Clusterer(CallbackSupport, ClusterMixin, BaseEstimator):
    """Base of all estimators: a fit over row blocks in stages.

    A subclass names the attributes that make its model in `_fitted_names`, gives the stages of its fit in `_stages`,
    and calls them in `fit`.
    """

    _fitted_names: tuple[str, ...] = ()
    #: What stands for no value in the input, see `check_dense`.
    _fill: str = "NaN"
    #: Whether its kernels take sparse rows.
    _takes_sparse: bool = False
    n_clusters: int
    missing: str
    random_state: Any
    storage: Any
    verbose: bool
    n_features_in_: int

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        take_callbacks(cls)
        take_grids(cls, TAKE_ROWS)
        register(cls)

    @abstractmethod
    def _stages(self) -> Iterable[Stage]:
        """The stages of a fit in their order, from the parameters; raises what their `check` raises."""

    def _check_parameters(self) -> None:
        """Check the parameters, before the input is looked at."""
        check_integer("n_clusters", self.n_clusters, 1)
        check_option("missing", self.missing, MISSING)
        check_seed("random_state", self.random_state)
        for stage in self._stages():
            stage.check()

    # -- input ---------------------------------------------------------------------------------------------------------

    def _cut(self, source: Source) -> Rows:
        """Bring opened input into row blocks."""
        return cut_rows(source, self.missing)

    def _source(self, X: ArrayInput) -> Source:
        """The input, opened; sparse rows only where the kernels take them."""
        try:
            return open_source(X, self._fill, sparse=self._takes_sparse)
        except TypeError as error:
            if self._fill == "-1" or not is_sparse_input(X):
                raise
            takers = "KMeans, USPEC, USENC, FastCSC and Ensembles of these take sparse rows"
            raise TypeError(f"{error}; {takers}, {self._whose_rows} does not") from None

    @property
    def _whose_rows(self) -> str:
        """What takes the rows, for messages."""
        return type(self).__name__

    def _open(self, X: ArrayInput, *, reset: bool) -> Rows:
        """Check the input and bring it into row blocks; `reset` in `fit`."""
        check_option("missing", self.missing, MISSING)
        source = self._source(X)
        if source.in_memory:
            if not reset and (isinstance(source.array, np.ndarray) or source.sparse):
                check_n_features(self, source.array.shape)  # scikit-learn's words, and a hint
            array = validate_data(self, source.array, reset=reset, dtype="numeric", ensure_all_finite=False, **SPARSE)
            rows = self._cut(replace(source, array=array))
            if not reset:
                self._check_values(array, rows)
            return rows
        if not reset and source.named is None and isinstance(source.array, da.Array) and source.array.ndim == 2:
            check_n_features(self, source.array.shape)  # before rows of unknown chunks are counted
        rows = self._cut(source)
        if source.named is not None:
            validate_data(self, source.named, reset=reset, skip_check_array=True)
        elif reset:
            self.n_features_in_ = rows.n_features
            with contextlib.suppress(AttributeError):
                del self.feature_names_in_  # of an earlier fit on a dataframe
        else:
            check_n_features(self, (rows.n_samples, rows.n_features))
        return rows

    def _check_values(self, array: NDArray[Any], rows: Rows) -> None:
        """Refuse bad values of new rows in memory, before any task."""

    def _check_size(self, rows: Rows) -> None:
        """Refuse fewer rows than clusters; a subclass more rows than it can take."""
        if self.n_clusters > rows.n_samples:
            hint = f"; X has {rows.n_features} columns, is it transposed?" if _is_flat(rows) else ""
            raise ValueError(
                f"n_clusters must be at most the number of rows, got n_clusters={self.n_clusters} "
                f"and n_samples={rows.n_samples}{hint}"
            )

    # -- fit and plan --------------------------------------------------------------------------------------------------

    def _run(self, X: ArrayInput, **beside: Any) -> Run:
        """Check parameters, storage and input, and begin a fit; `beside` is what else it is given, by argument."""
        self._check_parameters()
        inputs = {"X": X, **beside}
        products = Products(self.storage, type(self).__name__, self._product_parameters(), self.random_state, inputs)
        return self._begin(X, self._open(X, reset=True), products)

    def _begin(self, X: Any, rows: Rows, products: Products) -> Run:
        """Begin a fit on opened rows of `X`."""
        self._check_size(rows)
        # What is fitted inside another fit is a part of that one's plan.
        promise = None if inside_stage() or not checks_memory() else partial(self._promise, rows)
        stages = list(self._stages())
        run = Run(rows, products, stages, self.verbose, promise, stage_teller(self, X, len(stages)))
        self._record = run.record
        return run

    def _promise(self, rows: Rows) -> Plan | None:
        """The plan, compared with the memory that there is; None for a cluster without workers.

        Raises
        ------
        NotEnoughMemoryError
            If it does not fit.
        """
        plan = self._plan(rows)
        if plan.memory is None:
            return None
        if not plan.memory.fits:
            raise NotEnoughMemoryError(plan.refusal(partial(self._smaller, rows)))
        if plan.memory.spills:
            logger.warning("%s.fit %s", type(self).__name__, plan.memory)
        return plan

    def _smaller(self, rows: Rows) -> str | None:
        """A parameter with which the fit fits, if there is one."""
        for name in sorted(_SIZES & self.get_params(deep=False).keys()):
            value = getattr(self, name)
            value = rows.n_samples if value is None else value  # of all rows
            while isinstance(value, int) and value // 2 >= max(_LEAST_SIZE, 2 * self.n_clusters):
                value //= 2
                memory = clone(self).set_params(**{name: value})._plan(rows).memory
                if memory is not None and memory.fits:
                    return f"give {name}={value}"
        return None

    def _plan(self, rows: Rows) -> Plan:
        return make_plan(type(self).__name__, rows, self.storage, self._sized_stages(sizes_of(rows)))

    def _product_parameters(self) -> dict[str, Any]:
        """Parameters that decide the products of a fit, as they take part."""
        return {name: value for name, value in self.get_params(deep=False).items() if name not in _NOT_PRODUCTS}

    def _sizes(self, sizes: Sizes) -> Sizes:
        """The lengths that the costs of the stages are made of: those of the rows, and of a graph over them."""
        return sizes

    def _sized_stages(self, sizes: Sizes) -> list[tuple[Stage, Sizes]]:
        own = self._sizes(sizes)
        return [(stage, own) for stage in self._stages()]

    def _cost(self, sizes: Sizes) -> Cost:
        """Cost of a whole fit on rows of these lengths."""
        return sum((stage.cost(own) for stage, own in self._sized_stages(sizes)), Cost())

    def plan(self, X: ArrayInput) -> Plan:
        """Forecast `fit`: passes, tasks, bytes and peak memory, before anything runs.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
            Not read; unknown chunk lengths are counted.

        Returns
        -------
        Plan
            Print it, or take ``to_dict()``. It lists the stages that `fit` reports. Figures are upper bounds for the
            passes that it states; the numbers of Lloyd passes and of base clusters are not known before, likely ones
            are assumed. Peak memory includes rows that are in memory.
        """
        self._check_parameters()
        rows = self._cut(self._source(X))
        self._check_size(rows)
        return self._plan(rows)

    # -- what is left --------------------------------------------------------------------------------------------------

    def save(self, path: PathInput, overwrite: bool = False) -> None:
        """Save the model as a Zarr group of plain arrays and JSON; `daskcluster.load_model` reads it.

        Parameters
        ----------
        path : path
            Appears only when complete.
        overwrite : bool
            Replace an existing model, and nothing else.

        Raises
        ------
        FileExistsError
            If `path` exists and `overwrite` is false, or it is no model; or if it lies inside a Zarr array, another
            model or a named store.
        DiskFullError
            If the disk is full.
        """
        check_is_fitted(self, "n_clusters_")  # a failed fit leaves n_features_in_
        save_model(self, path, overwrite)

    def report(
        self,
        path: PathInput,
        X: ArrayInput | None = None,
        *,
        y: ArrayInput | None = None,
        labels: ArrayInput | None = None,
        title: str | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write one HTML page about the fitted model: clusters, pictures, stages, parameters, how to load it.

        Parameters
        ----------
        path : path
            Of the page, one file with all in it. It appears only when complete.
        X : NumPy array, dask array, zarr.Array or path, (n, d), optional
            The rows, for a picture of them; labels on a grid are drawn as a map instead.
        y : (n,), optional
            Classes of the rows, for scores and a table.
        labels : (n,), optional
            The model's labels of the rows, by default `labels_`, which a loaded model has not.
        title : str, optional
        overwrite : bool
            Replace an existing file.

        Raises
        ------
        FileExistsError
            If `path` exists and `overwrite` is false, or it is no file.
        ImportError
            If matplotlib is missing.

        Notes
        -----
        Stages and times are those of the last `fit` of this object; a loaded model has none. Lazy labels are computed,
        once for each picture of them.
        """
        check_is_fitted(self, "n_clusters_")
        write_report(path, self, X=X, y=y, labels=labels, title=title, overwrite=overwrite)

    def _repr_html_inner(self) -> str:
        """scikit-learn's diagram, and below it what a fit found."""
        shown = super()._repr_html_inner()
        return shown + html_outcome(self) if hasattr(self, "n_clusters_") else shown

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The same for notebooks, which look here first."""
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def __getstate__(self) -> dict[str, Any]:
        """The state without lazy `labels_`: a pickled model is as large as its small arrays."""
        state = dict(super().__getstate__())  # Python gives the attributes themselves, not a copy
        for passing in ("_record", "_callback_fit_ctx", "_skl_callbacks_to_teardown"):
            state.pop(passing, None)
        return {key: value for key, value in state.items() if not (key[-1] == "_" and is_lazy(value))}

    def __sklearn_tags__(self) -> Tags:
        """scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "label"
        tags.input_tags.sparse = self._takes_sparse
        return tags


def _is_flat(rows: Rows) -> bool:
    """Whether there are so few rows for so many columns that one of the two was meant to be the other."""
    return rows.n_features >= 10 * rows.n_samples


class RowClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """Base of the estimators that label new rows. A subclass gives `_block_function` and `_n_features_out` as well."""

    #: Whether the fitted model makes the labels of `fit` anew from the rows.
    _predicts: bool = True
    _points_dtype: Any = np.float64

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        give_lazy_frames(cls)
        take_grids(cls, TRANSFORM)  # past the wrappers of scikit-learn and of `frames`

    def _block_check(self, rows: Rows) -> Callable[[NDArray[Any], int], None] | None:
        """Function of a raw block of new rows, and its first row's number, that refuses bad values by their place."""
        return partial(check_finite_block, absent=rows.absent) if self.missing == "raise" else None

    def _check_values(self, array: NDArray[Any], rows: Rows) -> None:
        check = self._block_check(rows)
        if check is not None:  # here, because tasks find some bad value and not the first
            as_rows: Any = SparseRows.of
            for start in range(0, rows.n_samples, rows.block_rows):
                part = array[start : start + rows.block_rows]
                check(as_rows(part) if rows.sparse else part, start)

    def _again(self, rows: Rows) -> Callable[[str], da.Array] | None:
        """Function that gives an output of `fit` from the fitted model, or None if there is none; see `Label`."""
        return (lambda what: self._map(rows, what)) if self._predicts else None

    def _map(self, rows: Rows, what: str) -> da.Array:
        """Lazy output for the rows: "labels" (n,) int32, -1 for missing rows, or "points" (n, q), NaN for these."""
        function, arguments = self._block_function(what, rows.blocks.dtype)
        columns, dtype = self._output(what, rows.blocks.dtype)
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
            check=self._block_check(rows),
            size=rows.block_rows,
            **arguments,
        )

    def _output(self, what: str, dtype: np.dtype[Any]) -> tuple[int | None, Any]:
        """Columns (None for one number a row) and dtype of an output for rows of a dtype."""
        return (None, np.int32) if what == "labels" else (self._n_features_out, self._points_dtype)

    @abstractmethod
    def _block_function(self, what: str, dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
        """Function of a raw block that gives labels or points, and its other arguments."""

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """Columns of `transform`."""

    def _of_new_rows(self, X: ArrayInput, what: str) -> Any:
        check_is_fitted(self, "n_clusters_")  # a failed fit leaves n_features_in_
        rows = self._open(X, reset=False)
        return hand_out(self._map(rows, what), rows)

    def predict(self, X: ArrayInput) -> Any:
        """Label rows, new or old.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)

        Returns
        -------
        labels : (n,) int32
            NumPy for NumPy, a lazy dask array for chunked input; -1 for rows with NaN or infinity when
            ``missing="label"``. For the rows of `fit` equal to `labels_`. Its chunks are the row chunks of a dask array
            or dataframe, so ``X[labels == 3]`` and ``frame.assign(label=labels)`` hold: counted for a dataframe,
            unknown where those of an array are. Beside a Zarr array they are canonical blocks.

        Raises
        ------
        ValueError
            If the number of features is another one than in `fit`, or a value is NaN or infinite and
            ``missing="raise"``; for chunked input this shows when the labels are computed.
        """
        return self._of_new_rows(X, "labels")

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
        return self._of_new_rows(X, "points")

    def __sklearn_tags__(self) -> Tags:
        """scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


give_lazy_frames(RowClusterer)  # `__init_subclass__` serves its subclasses only
take_grids(RowClusterer, (*TAKE_ROWS, *TRANSFORM))
take_grids(Clusterer, TAKE_ROWS)


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
    block = block if is_sparse(block) else np.asarray(block)
    if check is not None:
        check(block, number * size)
    return apply_by_tiles(inner, block, shape, out_dtype, **arguments)


EstimatorClass = TypeVar("EstimatorClass", bound=type[Any])


def where_it_predicts(cls: EstimatorClass) -> EstimatorClass:
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
