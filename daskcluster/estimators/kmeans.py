"""KMeans: weighted, out of core."""

from __future__ import annotations

from typing import Any, Self

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.lloyd import sqdist_to_centers
from ..kernels.rows import compute_dtype
from ..pipeline.discretize import assign_block, assign_labels, warn_fewer
from ..pipeline.kmeans import (
    PARALLEL_ROUNDS,
    Centers,
    center_starts,
    lloyd_in_memory,
    lloyd_over_blocks,
    parallel_starts,
    sample_size,
)
from ..pipeline.representatives import PreparedRows
from ..pipeline.rows import RowForm, Rows, RowScan, check_rows, check_weights, scan
from ..runtime.execution import TILE_ROWS
from ..runtime.forecast import Plan, StagePlan, make_plan, tree_tasks
from ..runtime.progress import Progress
from ..runtime.seeding import stream
from ..typing import ArrayInput, PathInput, Seed
from ..validation import check_integer, check_option, check_real
from .base import RowClusterer

__all__ = ["KMeans"]

INITS = ("k-means++", "k-means||", "random")
#: Centres that move by less, relative to the variance, move by rounding only.
LEAST_TOL = 1e-24


class KMeans(RowClusterer):
    """Weighted k-means, out of core.

    Starts are made and compared on a sample, then Lloyd's iteration goes over all rows, one pass each.

    Parameters
    ----------
    n_clusters : int
        k.
    init : {"k-means++", "k-means||", "random"} or (k, d) array
        Starts: greedy k-means++ or distinct random rows, both on a sample; k-means|| by passes over all rows; or given
        centres.
    n_init : int
        Starts; the one with the lowest inertia on the sample goes on. Given centres are one start.
    max_iter : int
        Lloyd passes over all rows, at most.
    tol : float
        Stop when the centres move by less: squared and summed, relative to the mean variance of the features. With 0
        when they stay, but for rounding.
    missing : {"raise", "label"}
        Rows with NaN or infinity: an error that names the first one, or the label -1.
    random_state : int, numpy RandomState or Generator, or None
    storage : path, optional
        Named store: a killed run continues there. See `USPEC`.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    cluster_centers_ : (n_clusters_, d) float64
        In the order of their first row.
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input, which is no part of a pickled or copied model.
    inertia_ : float
        Weighted sum of squared distances to the nearest centre.
    n_clusters_ : int
        k, or fewer (with a `FewerClustersWarning`) when there are fewer distinct rows with weight.
    n_iter_ : int
        Lloyd passes over all rows.
    n_features_in_ : int

    Notes
    -----
    Lloyd 1982; starts by Arthur and Vassilvitskii 2007 or Bahmani et al. 2012. Unlike in scikit-learn the centres are
    those by which the last pass assigned, so `labels_`, `inertia_` and `predict` agree to the last bit. The sample has
    at least 16,384 rows; with weights it is drawn with probability in proportion to them.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> model = dc.KMeans(n_clusters=2, random_state=0).fit(X, sample_weight=[1, 3, 1, 1])
    >>> model.cluster_centers_
    array([[ 0.75],
           [10.5 ]])
    """

    _fitted_names = ("cluster_centers_", "inertia_", "n_clusters_", "n_iter_", "_shift", "_scale")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-4,
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
        self.missing = missing
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def fit(self, X: ArrayInput, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the rows.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
        y : ignored
        sample_weight : (n,) array, optional
            NumPy or dask; finite, >= 0, not all 0.

        Returns
        -------
        self
        """
        self._check_parameters()
        boundary = self._boundary()
        rows = self._open(X, reset=True)
        self._check_n_clusters(rows)
        given = self._given_centers(rows)
        weights = check_weights(sample_weight, rows)
        seed = boundary.seed
        with Progress(self.verbose) as progress:
            with progress.stage("check and sample"):
                found = scan(
                    rows,
                    sample_size(self.n_clusters),
                    stream(seed, "sample"),
                    weights=weights,
                    fingerprint=boundary.named,
                )
                self._check_n_valid(found.n_valid)
                boundary.open(found.fingerprint)
            points = PreparedRows(found.form)
            with progress.stage("starts"):
                starts = boundary.small(
                    "starts", lambda: {"starts": self._starts(rows, found, points, given, weights, seed)}
                )["starts"]
            with progress.stage("Lloyd passes"):
                made = boundary.small("centers", lambda: vars(self._lloyd(rows, found, points, starts, weights)))
            with progress.stage("labels"):
                centers = made["centers"]
                self.cluster_centers_ = found.form.restore(centers)
                self.inertia_ = float(made["inertia"]) / found.form.scale / found.form.scale
                self.n_clusters_ = len(centers)
                self.n_iter_ = int(made["n_iter"])
                self._shift, self._scale = found.form.shift, found.form.scale
                points, prepared = PreparedRows(self._form), self._form.prepare_points(self.cluster_centers_)
                self.labels_ = self._keep_labels(assign_labels(rows.blocks, points, prepared), rows, boundary)
        if self.n_clusters_ < self.n_clusters:
            warn_fewer(self, self.n_clusters_, self.n_clusters)
        return self

    def fit_predict(self, X: ArrayInput, y: Any = None, sample_weight: Any = None) -> Any:
        """Cluster the rows and return `labels_`; see `fit`."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.init, str):
            check_option("init", self.init, INITS)
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)
        check_real("tol", self.tol, 0.0)

    def _given_centers(self, rows: Rows) -> NDArray[np.float64] | None:
        if isinstance(self.init, str):
            return None
        expected = (self.n_clusters, rows.n_features)
        try:
            given = np.asarray(self.init, dtype=np.float64)
        except (TypeError, ValueError):
            given = np.empty(0)
        if given.shape != expected or not np.isfinite(given).all():
            raise ValueError(
                f"init must be one of {', '.join(map(repr, INITS))} or a finite array of shape {expected}, "
                f"got {self.init!r}"
            )
        return given

    def _starts(
        self,
        rows: Rows,
        found: RowScan,
        points: PreparedRows,
        given: NDArray[np.float64] | None,
        weights: da.Array | None,
        seed: int,
    ) -> NDArray[np.float64]:
        if given is not None:
            return found.form.prepare_points(given)
        sample = found.form.prepare(found.sample)
        best: Centers | None = None
        for number in range(self.n_init):
            rng = stream(seed, "starts", number)
            if self.init == "k-means||":
                first = center_starts(sample, 1, rng, found.sample_weights)
                starts = parallel_starts(rows.blocks, points, first, self.n_clusters, seed + number, weights)
            else:
                starts = center_starts(sample, self.n_clusters, rng, found.sample_weights, self.init)
            result, _ = lloyd_in_memory(sample, starts, found.sample_weights, max_iter=self.max_iter, tol=self.tol)
            if best is None or result.inertia < best.inertia:
                best = result
        assert best is not None
        return best.centers

    def _lloyd(
        self,
        rows: Rows,
        found: RowScan,
        points: PreparedRows,
        starts: NDArray[np.float64],
        weights: da.Array | None,
    ) -> Centers:
        sample = found.form.prepare(found.sample)
        limit = max(self.tol, LEAST_TOL) * float(np.var(sample, axis=0, dtype=np.float64).mean())
        return lloyd_over_blocks(rows.blocks, points, starts, weights, max_iter=self.max_iter, limit=limit)

    @property
    def _form(self) -> RowForm:
        return RowForm(self._shift, self._scale, False)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _block_function(self, what: str, dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
        arguments = {
            "points": PreparedRows(self._form),
            "centers": self._form.prepare_points(self.cluster_centers_),
        }
        return (assign_block, arguments) if what == "labels" else (distance_block, arguments)

    def transform(self, X: ArrayInput) -> Any:
        """Distances to the cluster centres.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)

        Returns
        -------
        (n, n_clusters_) float64
            Euclidean; NumPy for NumPy, a lazy dask array for chunked input; NaN for missing rows.
        """
        return super().transform(X)

    def plan(self, X: ArrayInput) -> Plan:
        """Forecast `fit`: passes, tasks, bytes and peak memory, before anything runs.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
            Not read; unknown chunk lengths are counted.

        Returns
        -------
        Plan
            `max_iter` Lloyd passes are assumed; few runs need so many.
        """
        self._check_parameters()
        rows = check_rows(X, self.missing)
        self._check_n_clusters(rows)
        n, d, blocks = rows.n_samples, rows.n_features, rows.blocks.numblocks[0]
        block, k = min(rows.block_rows, n), self.n_clusters
        drawn = min(sample_size(k), n)
        raw, number = rows.blocks.dtype.itemsize, compute_dtype(rows.blocks.dtype).itemsize
        input_bytes, tile = n * d * raw, min(TILE_ROWS, n)
        read_tasks, per_pass = len(rows.blocks.__dask_graph__()), tree_tasks(blocks)
        rounds = self.n_init * (PARALLEL_ROUNDS + 1) if isinstance(self.init, str) and self.init == "k-means||" else 0
        task = block * (2 * d * raw + 12) + tile * (2 * d * number + 20) + 8 * k * (d + 4)
        stages = [
            StagePlan("check and sample", 1, blocks + read_tasks, input_bytes, 0, task + drawn * d * raw),
            StagePlan(
                "starts",
                rounds,
                rounds * (per_pass + read_tasks),
                rounds * input_bytes,
                0,
                drawn * (d * (raw + 2 * number) + 40) + rounds * task,
            ),
            StagePlan(
                "Lloyd passes",
                self.max_iter,
                self.max_iter * (per_pass + read_tasks),
                self.max_iter * input_bytes,
                0,
                task,
            ),
            StagePlan("labels", 1, 2 * blocks + read_tasks, input_bytes, 4 * n, task),
        ]
        return make_plan(
            type(self).__name__,
            rows,
            self.storage,
            stages,
            held_bytes=4 * n,
            input_passes=2 + rounds + self.max_iter,
            small_bytes=drawn * d * raw,
        )


def distance_block(block: NDArray[Any], points: PreparedRows, centers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean distances of every row of a raw block to the centres, in the units of the input."""
    values, rows = points(block)
    distances = np.sqrt(sqdist_to_centers(values, centers)) / points.form.scale
    if rows is None:
        return distances
    every = np.full((len(block), len(centers)), np.nan)
    every[rows] = distances
    return every
