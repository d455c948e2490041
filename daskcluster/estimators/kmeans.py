"""KMeans: weighted, out of core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..errors import warn_user
from ..io.columns import check_column
from ..io.inputs import Rows
from ..kernels.points import like_points, sqdist_to_all
from ..kernels.sparse_rows import is_sparse
from ..pipeline.directions import fill_undirected, row_points
from ..pipeline.discretize import assign_labels, warn_fewer
from ..pipeline.kmeans import INITS, Given, LloydPasses, Starts, sample_size
from ..pipeline.lloyd import nearest_centers
from ..pipeline.outputs import Label
from ..pipeline.rows import PreparedRows, RowForm, scatter_rows
from ..pipeline.scan import Scan
from ..runtime.execution import compute
from ..runtime.stages import StageList
from ..typing import ArrayInput, PathInput, Seed
from .base import RowClusterer

__all__ = ["KMeans"]


@dataclass(frozen=True)
class KMeansStages(StageList):
    """The stages of k-means."""

    scan: Scan
    starts: Starts
    lloyd: LloydPasses
    label: Label


class KMeans(RowClusterer):
    """Weighted k-means, out of core.

    Starts are made and compared on a sample, then Lloyd's iteration goes over all rows, one pass each.

    Parameters
    ----------
    n_clusters : int
        k.
    init : {"k-means++", "k-means||", "random"}, (k, d) array or callable
        Starts: greedy k-means++ or distinct random rows, both on a sample; k-means|| by passes over all rows; given
        centres; or a function of sampled rows, `n_clusters` and `random_state` that gives centres, as scikit-learn has
        it for all rows. With `storage` a function is refused: two of them cannot be told apart.
    n_init : int or "auto"
        Starts; the one with the lowest inertia on the sample goes on. "auto" is 1, and 10 for ``init="random"``. Given
        centres, or a function's, are one start; a `RuntimeWarning` says so of an array and more starts. One start in a
        hundred leaves two distant clusters with one centre, as in scikit-learn; three found all in 400 of 400 fits.
    max_iter : int
        Lloyd passes over all rows, at most.
    tol : float
        Stop when the centres move by less: squared and summed, relative to the mean variance of the features. With 0
        when they stay, but for rounding.
    metric : {"euclidean", "cosine"}
        With "cosine" rows count by their direction, centres have unit length, and the distance is 1 - cos. Rows of
        zeros have no direction: they count nowhere, and get the label 0.
    missing : {"raise", "label"}
        Rows with NaN or infinity: an error that names the first one, or the label -1.
    random_state : int, numpy RandomState or Generator, or None
    storage : path or URL, optional
        Named store: a killed run continues there. See `USPEC`.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    cluster_centers_ : (n_clusters_, d) float64, or float32 for float32 rows
        In the order of their first row; at unit length for "cosine". Sums and distances are taken in float64 all the
        same, and rows are assigned by centres that are not rounded.
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input, which is no part of a pickled or copied model.
    inertia_ : float
        Weighted sum of squared distances to the nearest centre, or of 1 - cos.
    n_clusters_ : int
        k, or fewer (with a `FewerClustersWarning`) when there are fewer distinct rows with weight.
    n_iter_ : int
        Lloyd passes over all rows.
    n_features_in_ : int

    Notes
    -----
    Lloyd 1982; with "cosine" the spherical k-means of Dhillon and Modha 2001. Starts by Arthur and Vassilvitskii 2007
    or Bahmani et al. 2012. Unlike in scikit-learn the centres are those by which the last pass assigned, so `labels_`,
    `inertia_` and `predict` agree to the last bit. The sample has at least 16,384 rows; with weights it is drawn with
    probability in proportion to them.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> model = dc.KMeans(n_clusters=2, random_state=0).fit(X, sample_weight=[1, 3, 1, 1])
    >>> model.cluster_centers_
    array([[ 0.75],
           [10.5 ]])
    """

    _takes_sparse = True
    _fitted_names = ("cluster_centers_", "inertia_", "n_clusters_", "n_iter_", "_shift", "_scale")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | Literal["auto"] = 1,
        max_iter: int = 100,
        tol: float = 1e-4,
        metric: str = "euclidean",
        missing: str = "raise",
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.metric = metric
        self.missing = missing
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def fit(self, X: ArrayInput, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the rows.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, sparse rows, (n, d)
        y : ignored
        sample_weight : (n,) array, optional
            NumPy or dask; finite, >= 0, not all 0.

        Returns
        -------
        self
        """
        with self._run(X, sample_weight=sample_weight) as run:
            s = self._stages()
            given = self._given_centers(run.rows)
            weights = None
            if sample_weight is not None:
                weights = check_column("sample_weight", sample_weight, run.rows).astype(np.float64)
            found = run(s.scan, weights, sample_weight)
            starts = run(s.starts, found, weights, given)
            made = run(s.lloyd, found, starts, weights)
            centers = found.form.restore(made.centers)
            self._centers = centers.toarray() if is_sparse(centers) else centers
            self.cluster_centers_ = self._centers.astype(float_dtype(run.rows.blocks.dtype))
            self.inertia_ = float(in_units(made.inertia, found.form))
            self.n_clusters_ = len(made.centers)
            self.n_iter_ = made.n_iter
            self._shift, self._scale = found.form.shift, found.form.scale
            lazy = assign_labels(run.rows.blocks, **self._assignment)
            self.labels_ = run(s.label, {"labels": lazy}, self._again(run.rows))["labels"]
        if self.n_clusters_ < self.n_clusters:
            warn_fewer(self, self.n_clusters_, self.n_clusters)
        return self

    def fit_predict(self, X: ArrayInput, y: Any = None, sample_weight: Any = None) -> Any:
        """Cluster the rows and return `labels_`; see `fit`."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def _stages(self) -> KMeansStages:
        init = self.init if isinstance(self.init, str) else "given"
        return KMeansStages(
            Scan(self.n_clusters, sample_size(self.n_clusters), self.metric),
            Starts(self.n_clusters, init, self._n_starts, self.max_iter, self.tol),
            LloydPasses(self.n_clusters, self.max_iter, self.tol),
            Label(task_row_bytes=8 * self.n_clusters, over_input=True),
        )

    @property
    def _n_starts(self) -> Any:
        if not isinstance(self.n_init, str):
            return self.n_init
        if self.n_init != "auto":
            raise TypeError(f"n_init must be an integer >= 1, got {self.n_init!r}; 'auto' is the only word")
        return 10 if isinstance(self.init, str) and self.init == "random" else 1

    def _product_parameters(self) -> dict[str, Any]:
        found = super()._product_parameters()
        if self.metric == "euclidean":
            del found["metric"]  # as the stores of earlier versions have it
        return found

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if callable(self.init) and self.storage is not None:
            raise ValueError("init must not be a function with storage=: which one made the store cannot be told")

    def _given_centers(self, rows: Rows) -> Given | None:
        """Centres that the user gives, or the function of sampled rows and a seed that does."""
        if isinstance(self.init, str):
            return None
        if not callable(self.init):
            if self._n_starts > 1:
                warn_user(  # scikit-learn's words, which filters of warnings know
                    "Explicit initial center position passed: performing only one init in KMeans instead of "
                    f"n_init={self.n_init}",
                    RuntimeWarning,
                )
            return self._checked_centers(self.init, rows.n_features)

        def called(sample: NDArray[Any], seed: int) -> NDArray[np.float64]:
            rng = np.random.RandomState(seed % 2**32)
            return self._checked_centers(self.init(sample, self.n_clusters, random_state=rng), rows.n_features)

        return called

    def _checked_centers(self, given: Any, n_features: int) -> NDArray[np.float64]:
        expected = (self.n_clusters, n_features)
        try:
            centers = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            centers = np.empty(0)
        if centers.shape != expected or not np.isfinite(centers).all():
            raise ValueError(
                f"init must be one of {', '.join(map(repr, INITS))}, a finite array of shape {expected}, or a function "
                f"that gives one, got {' '.join(repr(given).split()):.100}"
            )
        if self.metric == "cosine" and not centers.any(axis=1).all():
            row = int(np.argmin(centers.any(axis=1)))
            raise ValueError(
                f"init must have no row of zeros with metric='cosine', which has no direction; row {row} is"
            )
        return centers

    @property
    def _form(self) -> RowForm:
        return RowForm(self._shift, self._scale, self.metric == "cosine", not self._shift.any())

    @property
    def _assignment(self) -> dict[str, Any]:
        return {"points": row_points(self._form), "centers": self._form.prepare_points(self._exact_centers)}

    @property
    def _exact_centers(self) -> NDArray[np.float64]:
        """The centres by which the fit assigned; those that are shown where someone has put others in their place."""
        shown, exact = self.cluster_centers_, getattr(self, "_centers", None)  # earlier models have no others
        return exact if exact is not None and np.array_equal(exact.astype(shown.dtype), shown) else shown

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _block_function(self, what: str, dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
        if what == "labels":
            return nearest_centers(**self._assignment).labels, {}
        return (least_block if what == "least" else distance_block), self._assignment

    def _output(self, what: str, dtype: np.dtype[Any]) -> tuple[int | None, Any]:
        if what == "least":
            return None, np.float64
        if what == "points":
            return self._n_features_out, float_dtype(dtype, self.cluster_centers_.dtype)
        return super()._output(what, dtype)

    def score(self, X: ArrayInput, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of rows, new or old: the larger the nearer they are to the centres.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, sparse rows, (n, d)
        y : ignored
        sample_weight : (n,) array, optional

        Returns
        -------
        float
            Computed at once, in one pass; missing rows count nothing, nor do rows of zeros with "cosine".

        Raises
        ------
        ValueError
            As in `predict`, and for weights as in `fit`.
        """
        check_is_fitted(self, "n_clusters_")
        rows = self._open(X, reset=False)
        least = self._map(rows, "least")
        if sample_weight is not None:
            least = least * check_column("sample_weight", sample_weight, rows).astype(np.float64)
        return -float(compute(da.nansum(least))[0])

    def transform(self, X: ArrayInput) -> Any:
        """Distances to the cluster centres.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, sparse rows, (n, d)

        Returns
        -------
        (n, n_clusters_) float64, or float32 where rows and centres are
            Euclidean, or 1 - cos, which is 1 for rows of zeros; NumPy for NumPy, a lazy dask array for chunked input;
            NaN for missing rows.
        """
        return super().transform(X)


def float_dtype(*dtypes: np.dtype[Any]) -> np.dtype[Any]:
    """float32 if all of them are, else float64."""
    return np.dtype(np.float32 if all(dtype == np.float32 for dtype in dtypes) else np.float64)


def distance_block(block: NDArray[Any], points: PreparedRows, centers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distances of every row of a raw block to the centres, in the units of the input."""
    values, rows = points(block)
    squared, unit = sqdist_to_all(values, like_points(centers, values)), points.form.unit_length
    distances = in_units(squared, points.form) if unit else np.sqrt(squared) / points.form.scale
    distances = scatter_rows(distances, rows, len(block), np.nan)
    return fill_undirected(distances, block, 1.0) if unit else distances


def least_block(block: NDArray[Any], points: PreparedRows, centers: NDArray[np.float64]) -> NDArray[np.float64]:
    """What every row of a raw block adds to the inertia."""
    values, rows = points(block)
    squared = sqdist_to_all(values, like_points(centers, values)).min(axis=1)
    return scatter_rows(in_units(squared, points.form), rows, len(block), np.nan)


def in_units(squared: Any, form: RowForm) -> Any:
    """Squared distances between prepared rows in the units of the input; half of them is 1 - cos at unit length."""
    return squared / 2 if form.unit_length else squared / form.scale / form.scale
