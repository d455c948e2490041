"""FastCSC, CSPML, FastCSPML: spectral clustering with must-links and cannot-links."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self, cast

import dask
import dask.array as da
import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..constraints.constraints import Constraints, RowConstraints
from ..constraints.laplacian import check_n_classes, constrained_cut, project_constraints
from ..constraints.layers import (
    FORMED_ROWS,
    TILE_ROWS,
    Layer,
    affinity_layer,
    constraint_layers,
    embed_rows,
    multilayer_embedding,
    sample_layers,
    unit_rows,
)
from ..errors import StorageMismatchError, warn_user
from ..io.models import save_model
from ..kernels.neighbors import WIDE_FEATURES
from ..kernels.rows import compute_dtype, finite_rows
from ..linalg import largest_eigenpairs
from ..pipeline.affinity import distance_sum, gaussian_affinity, gaussian_edges, mean_distance
from ..pipeline.bipartite import BipartiteGraph
from ..pipeline.cut import LiftedRows, TransferCut, embed_block
from ..pipeline.discretize import assign_block, assign_labels, discretize, warn_fewer
from ..pipeline.kmeans import Centers, center_starts, lloyd_in_memory, lloyd_over_blocks, sample_size
from ..pipeline.neighbors import (
    NEIGHBORS,
    RepresentativeIndex,
    choose_neighborhood,
    index_representatives,
    nearest_block,
    nearest_representatives,
)
from ..pipeline.representatives import SELECTIONS, choose_representatives, n_candidates
from ..pipeline.rows import RowForm, Rows, RowScan, check_rows, scan
from ..runtime.boundary import Boundary
from ..runtime.execution import FAN_IN, compute, map_to_objects
from ..runtime.forecast import Plan, StagePlan, make_plan, tree_tasks
from ..runtime.progress import Progress
from ..runtime.seeding import draw_ranks, root_seed, stream
from ..runtime.threads import one_blas_thread
from ..typing import ArrayInput, PathInput, Seed
from ..validation import check_integer, check_option, check_real, check_seed
from .base import MISSING, RowClusterer

__all__ = ["CSPML", "FastCSC", "FastCSPML", "constrained_spectral_clustering", "spectral_learning"]

logger = logging.getLogger("daskcluster")

METRICS = ("euclidean", "cosine")
#: Which rows of a block are there; None for all.
Present = Callable[[NDArray[Any]], NDArray[np.bool_] | None]
#: Lloyd passes over the sampled rows that a forecast assumes; 2 to 8 are usual.
LIKELY_ITER = 8
#: Rows that CSPML takes at most: 8 n**2 bytes are 1.2 GB.
MOST_ROWS = 12_000
#: What makes the Laplacian of CSP definite.
CSP_RIDGE = 1e-10


class FastCSC(RowClusterer):
    """Fast constrained spectral clustering, out of core.

    Each row is linked to its r nearest of p landmarks; must-links and cannot-links enter the (p, p) generalized
    eigenproblem of that graph. Partial labels cost one pass over r edges a row, however many they are.

    Parameters
    ----------
    n_clusters : int
        k.
    n_representatives : int
        p, landmarks; fewer are used when there are fewer distinct rows.
    n_neighbors : int
        r, landmarks to which a row is linked; at most p are used.
    alpha : float
        Trust in the must-links against the data's own graph, >= 0.
    sample_rate : float
        Share of the rows on which the k-means passes run, in (0, 1]; at least 16,384 rows and 256 a cluster, or all.
        1.0 is the paper's CCS-L, less its CCS-LS.
    selection : {"random", "hybrid", "kmeans"}
        How landmarks are chosen: random rows, as in the paper; cluster centres of ``candidate_factor * p`` random rows;
        cluster centres of all rows.
    neighbors : {"approximate", "exact"}
        How the r nearest are found; see `USPEC`.
    candidate_factor : int
        p' / p of the hybrid selection.
    neighbor_factor : int
        K' / r of the approximate search.
    metric : {"euclidean", "cosine"}
        With "cosine" rows count by their direction, and the distance is 1 - cos.
    n_init : int
        k-means++ starts of the discretisation.
    max_iter : int
        Lloyd passes of the discretisation, at most.
    missing : {"raise", "label"}
        Rows with NaN or infinity: an error that names the first one, or the label -1; constraints on them do not count.
    random_state : int, numpy RandomState or Generator, or None
    storage : path, optional
        Named store for the products of the stages; see `USPEC`. Other constraints count as other data.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input. Clusters are numbered by their first row.
    n_clusters_ : int
        Clusters found: k, or fewer (with a `FewerClustersWarning`).
    representatives_ : (p, d) float64
        Landmarks, in the units of the input; at unit length for "cosine".
    bandwidth_ : float
        sigma, the mean distance of rows to their r nearest landmarks.
    eigenvalues_ : (q,) float64
        The first nontrivial generalized eigenvalues, ascending: cost of the cut against the cannot-links it serves.
    cluster_centers_ : (n_clusters_, q) float64
        Centres in the embedding.
    neighborhood_size_ : int
        K' that was used; p - 1 means that the search was exact.
    n_iter_ : int
        Lloyd passes over the sampled rows.
    n_features_in_ : int

    Raises
    ------
    ValueError
        In `fit`, before any heavy work: if a parameter, the input or the constraints are not acceptable.

    Notes
    -----
    Algorithm 1 of Liu, Ye, Wei, Hu, 2017 (fast_csc_and_secrp_2017). Departures, each described where it is made: the
    demand graph beside the cannot-links, and the deflation of the trivial eigenvector (`constrained_cut`); bandwidth
    sigma of eq. (4), which the paper leaves open, is the mean distance, as in LSC; the approximate search of the
    nearest landmarks; starts on a sample. Without constraints the method is landmark-based spectral clustering (LSC)
    on the first k nontrivial eigenvectors.

    Constraints are soft: contradictions are weighed up, and `Constraints.satisfaction` tells what a result keeps.
    Labels may be fewer or more than k, and of any names; they do not decide the clusters' numbers. `predict` labels new
    rows by their features alone. Labels are bit-equal for any chunking, scheduler, number of workers and BLAS threads.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> X, y = dc.datasets.make_two_bananas(5000, chunks=1000, random_state=0)
    >>> known = np.full(5000, -1)
    >>> known[::100] = y[::100]
    >>> model = dc.FastCSC(n_clusters=2, n_representatives=200, random_state=0).fit(X, known)
    >>> dc.Constraints.from_labels(known).satisfaction(model.labels_).cannot_link
    1.0
    """

    _points_dtype = np.float32
    _fitted_names = (
        "representatives_",
        "bandwidth_",
        "eigenvalues_",
        "cluster_centers_",
        "n_clusters_",
        "n_iter_",
        "neighborhood_size_",
        "_vectors",
        "_shift",
        "_scale",
        "_seed",
    )

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_representatives: int = 500,
        n_neighbors: int = 3,
        alpha: float = 5.0,
        sample_rate: float = 0.1,
        selection: str = "random",
        neighbors: str = "approximate",
        candidate_factor: int = 10,
        neighbor_factor: int = 10,
        metric: str = "euclidean",
        n_init: int = 3,
        max_iter: int = 100,
        missing: str = "raise",
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_representatives = n_representatives
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.sample_rate = sample_rate
        self.selection = selection
        self.neighbors = neighbors
        self.candidate_factor = candidate_factor
        self.neighbor_factor = neighbor_factor
        self.metric = metric
        self.n_init = n_init
        self.max_iter = max_iter
        self.missing = missing
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def fit(self, X: ArrayInput, y: Any = None, *, constraints: Constraints | None = None) -> Self:
        """Cluster the rows.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
        y : (n,) NumPy array, dask array, zarr.Array or path, optional
            Partial labels, -1, NaN or masked for unknown; the same as ``constraints=Constraints.from_labels(y)``.
        constraints : Constraints, optional
            Instead of `y`. Without both the method is the unconstrained one.

        Returns
        -------
        self
        """
        self._check_parameters()
        boundary = self._boundary()
        rows = self._open(X, reset=True)
        self._check_n_clusters(rows)
        given = given_constraints(y, constraints)
        seed = boundary.seed
        with Progress(self.verbose) as progress:
            with progress.stage("check and sample"):
                known = given.on_rows(rows, fingerprint=boundary.named)
                check_n_classes(known.n_classes, min(self.n_representatives, rows.n_samples))
                say_empty(self, known, y is not None or constraints is not None)
                drawn, candidates = self._sample_sizes()
                found = scan(
                    rows,
                    drawn,
                    stream(seed, "sample"),
                    unit_length=self.metric == "cosine",
                    fingerprint=boundary.named,
                )
                self._check_n_valid(found.n_valid)
                open_store(boundary, found, known)
            with progress.stage("landmarks"):
                make = partial(self._represent, rows, found, candidates, seed)
                representatives = boundary.small("representatives", make)["representatives"]
                n_neighbors = min(self.n_neighbors, len(representatives))
                index, size = choose_neighborhood(
                    representatives,
                    found.form,
                    found.sample,
                    n_neighbors,
                    neighbors=self.neighbors,
                    neighbor_factor=self.neighbor_factor,
                    seed=seed,
                )
            with progress.stage("nearest landmarks"):
                lazy = nearest_representatives(rows, index, n_neighbors)
                nearest, sums = boundary.rows("nearest", lazy, distance_sum)
                bandwidth = mean_distance(sums)
                graph = gaussian_affinity(nearest, bandwidth, len(representatives))
            with progress.stage("constrained cut"):
                known = present_constraints(self, known, nearest, linked_rows, found, boundary)
                cut = TransferCut(**boundary.small("cut", lambda: vars(self._cut(graph, known))))
                points = LiftedRows(graph.edges_of, cut.vectors)
            with progress.stage("discretize"):
                made = boundary.small(
                    "centers", lambda: vars(self._discretize(found, index, nearest, points, boundary, seed))
                )
            with progress.stage("labels"):
                self.representatives_ = representatives
                self.neighborhood_size_ = size
                self.bandwidth_ = bandwidth / found.form.scale
                self.eigenvalues_ = cut.eigenvalues
                self.cluster_centers_ = made["centers"]
                self.n_clusters_ = len(made["centers"])
                self.n_iter_ = int(made["n_iter"])
                self._vectors, self._seed = cut.vectors, seed
                self._shift, self._scale = found.form.shift, found.form.scale
                self.labels_ = self._keep_labels(assign_labels(nearest, points, made["centers"]), rows, boundary)
        if self.n_clusters_ < self.n_clusters:
            warn_fewer(self, self.n_clusters_, self.n_clusters)
        return self

    def fit_predict(self, X: ArrayInput, y: Any = None, *, constraints: Constraints | None = None) -> Any:
        """Cluster the rows and return `labels_`; see `fit`."""
        return self.fit(X, y, constraints=constraints).labels_

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_representatives", self.n_representatives, 1)
        check_integer("n_neighbors", self.n_neighbors, 1)
        check_real("alpha", self.alpha, 0.0)
        if not 0 < check_real("sample_rate", self.sample_rate, 0.0) <= 1:
            raise ValueError(f"sample_rate must be above 0 and at most 1, got {self.sample_rate}")
        check_option("selection", self.selection, SELECTIONS)
        check_option("neighbors", self.neighbors, NEIGHBORS)
        check_integer("candidate_factor", self.candidate_factor, 1)
        check_integer("neighbor_factor", self.neighbor_factor, 1)
        check_option("metric", self.metric, METRICS)
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)

    def _sample_sizes(self) -> tuple[int, int]:
        """Rows drawn in the first pass, and how many of them are candidates."""
        candidates = n_candidates(self.selection, self.n_representatives, self.candidate_factor)
        return max(candidates, sample_size(self.n_clusters)), candidates

    def _represent(self, rows: Rows, found: RowScan, candidates: int, seed: int) -> dict[str, Any]:
        representatives = choose_representatives(
            rows,
            found,
            self.n_representatives,
            n_candidates=candidates,
            selection=self.selection,
            max_iter=self.max_iter,
            seed=seed,
        )
        return {"representatives": representatives}

    def _cut(self, graph: BipartiteGraph, known: RowConstraints) -> TransferCut:
        """Steps 2 and 3."""
        return constrained_cut(project_constraints(graph, known), self.n_clusters, self.alpha)

    def _discretize(
        self,
        found: RowScan,
        index: RepresentativeIndex,
        nearest: da.Array,
        points: LiftedRows,
        boundary: Boundary,
        seed: int,
    ) -> Centers:
        """Steps 6 and 7: k-means on sampled rows, then one pass over all for the clusters' order."""
        starts, _ = points(nearest_block(found.sample, index, nearest.shape[1] // 2))
        rate = max(self.sample_rate, sample_size(self.n_clusters) / nearest.shape[0])
        sampled = nearest if rate >= 1 else boundary.rows("sampled", sample_blocks(nearest, rate, seed))[0]
        found_centers = discretize(
            sampled, points, starts, self.n_clusters, n_init=self.n_init, max_iter=self.max_iter, seed=seed
        )
        if rate >= 1:
            return found_centers
        ordered = lloyd_over_blocks(nearest, points, found_centers.centers, max_iter=1, limit=0.0, name="dc-order")
        return Centers(ordered.centers, ordered.inertia, found_centers.n_iter)

    @property
    def _n_features_out(self) -> int:
        return int(self._vectors.shape[1])

    def _block_function(self, what: str, dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
        n_neighbors = min(self.n_neighbors, len(self.representatives_))
        index = index_representatives(
            self.representatives_,
            RowForm(self._shift, self._scale, self.metric == "cosine"),
            dtype,
            n_neighbors,
            neighborhood=self.neighborhood_size_,
            seed=self._seed,
        )
        edges_of = partial(gaussian_edges, bandwidth=self.bandwidth_ * self._scale)
        return new_rows_block, {
            "index": dask.delayed(index, pure=True, traverse=False),
            "n_neighbors": n_neighbors,
            "points": LiftedRows(edges_of, self._vectors),
            "centers": self.cluster_centers_ if what == "labels" else None,
        }

    def transform(self, X: ArrayInput) -> Any:
        """Embed rows: the space in which they are clustered.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)

        Returns
        -------
        (n, q) float32
            Rows of unit length, q eigenvectors (`eigenvalues_`); NumPy for NumPy, a lazy dask array for chunked input;
            NaN for missing rows.
        """
        return super().transform(X)

    def plan(self, X: ArrayInput) -> Plan:
        """Forecast `fit` with partial labels: passes, tasks, bytes and peak memory, before anything runs.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
            Not read; unknown chunk lengths are counted.

        Returns
        -------
        Plan
            Print it, or take ``to_dict()``. As many classes as clusters are assumed, and `LIKELY_ITER` Lloyd passes.
        """
        self._check_parameters()
        rows = check_rows(X, self.missing)
        self._check_n_clusters(rows)
        n, d, blocks = rows.n_samples, rows.n_features, rows.blocks.numblocks[0]
        block = min(rows.block_rows, n)
        p, k = min(self.n_representatives, n), self.n_clusters
        n_neighbors = min(self.n_neighbors, p)
        drawn, candidates = (min(size, n) for size in self._sample_sizes())
        raw, number = rows.blocks.dtype.itemsize, compute_dtype(rows.blocks.dtype).itemsize
        input_bytes, edge_bytes = n * d * raw, 8 * n_neighbors * n
        row_bytes = d * (raw + 2 * number)  # a raw row, its prepared form, and a copy on the way
        edge_task = block * (16 * n_neighbors + 8 * k + 4)
        neighborhood = min(p, self.neighbor_factor * n_neighbors + 1)
        index_bytes = 2 * p * d * 8 + p * neighborhood * (4 + min(d, WIDE_FEATURES) * number)
        per_pass, read_tasks = tree_tasks(blocks), len(rows.blocks.__dask_graph__())
        full = self.max_iter if self.selection == "kmeans" else 0
        rate = min(1.0, max(self.sample_rate, sample_size(k) / n))
        sampled_bytes = 0 if rate >= 1 else int(np.ceil(rate * edge_bytes)) + 8 * n_neighbors * blocks
        part_bytes = 24 * p * p + 8 * k * p  # projected sums of one task
        stages = [
            StagePlan(
                "check and sample", 1, 3 * blocks + read_tasks, input_bytes, 0, block * row_bytes + drawn * d * raw
            ),
            StagePlan(
                "landmarks",
                full,
                full * (per_pass + read_tasks),
                full * input_bytes,
                0,
                max(drawn * d * (raw + 3 * number) + 16 * candidates, full and block * row_bytes + 24 * p * d),
            ),
            StagePlan(
                "nearest landmarks",
                1,
                2 * blocks + read_tasks,
                input_bytes,
                edge_bytes,
                block * (row_bytes + 24 * n_neighbors + 16) + index_bytes,
            ),
            StagePlan(
                "constrained cut",
                2,
                2 * per_pass + 6 * blocks,
                edge_bytes + 20 * n,
                4 * n,
                max(block * (24 * n_neighbors + 24) + (FAN_IN + 1) * part_bytes, 64 * p * p),
            ),
            StagePlan(
                "discretize",
                LIKELY_ITER + 2,
                (LIKELY_ITER + 2) * 2 * per_pass,
                2 * edge_bytes + LIKELY_ITER * (sampled_bytes or edge_bytes),
                sampled_bytes,
                max(edge_task, drawn * 8 * (k + 5)),
            ),
            StagePlan("labels", 1, 2 * blocks, edge_bytes, 4 * n, edge_task),
        ]
        small = index_bytes + drawn * d * raw + FAN_IN * part_bytes
        return make_plan(
            type(self).__name__,
            rows,
            self.storage,
            stages,
            held_bytes=edge_bytes + sampled_bytes + 8 * n,
            input_passes=2 + full,
            small_bytes=small,
        )


def new_rows_block(
    block: NDArray[Any],
    index: RepresentativeIndex,
    n_neighbors: int,
    points: LiftedRows,
    centers: NDArray[np.float64] | None,
) -> NDArray[Any]:
    """Steps 1, 4, 5 and 7 on a raw block: labels, or without `centers` the embedding."""
    edges = nearest_block(block, index, n_neighbors)
    return embed_block(edges, points) if centers is None else assign_block(edges, points, centers)


def sample_blocks(held: da.Array, rate: float, seed: int) -> da.Array:
    """Sample the rows of each block at random, in row order: lazy, every full block gives equally many.

    Notes
    -----
    Departure from step 6, which draws n s rows of all: s of each block, so that memory does not grow with n.
    """
    sizes = tuple(int(np.ceil(rate * size)) for size in held.chunks[0])
    return held.map_blocks(
        _sample_block,
        token="dc-sampled",
        rate=rate,
        seed=seed,
        dtype=held.dtype,
        meta=np.empty((0, 0), held.dtype),
        chunks=(sizes, held.chunks[1]),
    )


def _sample_block(block: NDArray[Any], rate: float, seed: int, block_id: tuple[int, ...] = (0,)) -> NDArray[Any]:
    size = int(np.ceil(rate * len(block)))
    return np.asarray(block)[draw_ranks(stream(seed, "sampled", block_id[0]), len(block), size)]


def given_constraints(y: Any, constraints: Constraints | None) -> Constraints:
    """The constraints of a `fit`, from one of its two arguments.

    Raises
    ------
    TypeError, ValueError
        If both are given, or `constraints` is something else.
    """
    if constraints is not None and not isinstance(constraints, Constraints):
        raise TypeError(
            f"constraints must be made by Constraints.from_labels or from_pairs, got a {type(constraints).__name__}"
        )
    if isinstance(y, Constraints):
        raise TypeError("y must be partial labels, got Constraints: give them by name, fit(X, constraints=...)")
    if y is not None:
        if constraints is not None:
            raise ValueError("y and constraints are two forms of the same knowledge: give one of them")
        return Constraints.from_labels(y)
    return Constraints.from_pairs() if constraints is None else constraints


def say_empty(estimator: Any, known: RowConstraints, given: bool) -> None:
    """Say that a fit is unconstrained: a warning when constraints were given, else a line of the log."""
    if known.empty:
        message = f"{type(estimator).__name__}: no constraints; the result is that of the unconstrained method"
        if given:
            warn_user(message)
        else:
            logger.info(message)


def open_store(boundary: Boundary, found: RowScan, known: RowConstraints) -> None:
    """Bind a named store to the rows and the constraints.

    Raises
    ------
    StorageMismatchError
        If it was made from others.
    """
    try:
        boundary.open(f"{found.fingerprint}-{known.fingerprint}")
    except StorageMismatchError as error:
        raise StorageMismatchError(f"{error} (the data are X, and y or constraints)") from None


def present_constraints(
    estimator: Any,
    known: RowConstraints,
    blocks: da.Array,
    present: Present,
    found: RowScan,
    boundary: Boundary,
) -> RowConstraints:
    """Constraints without those on missing rows; classes are held, for several passes read them.

    Parameters
    ----------
    estimator : estimator
        Warns when nothing is left.
    known : RowConstraints
    blocks : dask array (n, ...)
        Something that tells which rows are missing.
    present : callable
        Tells it of a block.
    found : RowScan
    boundary : Boundary
    """
    if known.empty:
        return known
    some_missing = found.n_valid < blocks.shape[0]
    if known.codes is not None:
        codes = known.codes
        if some_missing:
            codes = da.map_blocks(
                _codes_of_present,
                codes[:, None],
                blocks,
                present=present,
                token="dc-classes",
                dtype=np.int32,
                meta=np.empty(0, np.int32),
                drop_axis=1,
            )
        codes, counts = boundary.rows("classes", codes, _count_labelled)
        any_left = any(count["labelled"] for count in counts)
        left = replace(known, codes=codes, n_classes=known.n_classes if any_left else 0)
    elif some_missing:
        rows = valid_rows(blocks, present, found)
        left = replace(known, must_link=known.must_link.among(rows), cannot_link=known.cannot_link.among(rows))
    else:
        return known
    say_empty(estimator, left, given=True)
    return left


# -- constraints as layers --------------------------------------------------------------------------------------------


class LayerClusterer(ClusterMixin, BaseEstimator):
    """Base of CSPML and FastCSPML: what they share with other estimators of rows, but for labels of new rows.

    A row's place in the embedding depends on its constraints, so neither predicts.
    """

    _fitted_names: tuple[str, ...] = ()
    _fill: str = "NaN"
    n_clusters: int
    alpha: float
    gamma: float
    n_init: int
    max_iter: int
    missing: str
    random_state: Any
    storage: Any
    verbose: bool
    n_features_in_: int

    def fit(self, X: ArrayInput, y: Any = None, *, constraints: Constraints | None = None) -> Self:
        """Cluster the rows.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
        y : (n,) NumPy array, dask array, zarr.Array or path, optional
            Partial labels, -1, NaN or masked for unknown; the same as ``constraints=Constraints.from_labels(y)``.
        constraints : Constraints, optional
            Instead of `y`.

        Returns
        -------
        self
        """
        self._check_parameters()
        boundary = RowClusterer._boundary(cast(Any, self))
        rows = RowClusterer._open(cast(Any, self), X, reset=True)
        self._check_size(rows)
        given = given_constraints(y, constraints)
        seed = boundary.seed
        with Progress(self.verbose) as progress:
            with progress.stage("check and sample"):
                known = given.on_rows(rows, fingerprint=boundary.named)
                say_empty(self, known, y is not None or constraints is not None)
                size = self._n_sampled(rows)
                found = scan(rows, size, stream(seed, "sample"), fingerprint=boundary.named)
                RowClusterer._check_n_valid(cast(Any, self), found.n_valid)
                open_store(boundary, found, known)
                known = present_constraints(self, known, rows.blocks, finite_rows, found, boundary)
            with progress.stage("embedding"):
                lazy = self._embed(rows, found, known, boundary, seed)
                embedding, _ = boundary.rows("embedding", lazy)
            with progress.stage("discretize"):
                centers = boundary.small("centers", lambda: vars(self._discretize(embedding, seed)))
            with progress.stage("labels"):
                self.cluster_centers_ = centers["centers"]
                self.n_clusters_ = len(centers["centers"])
                self.n_iter_ = int(centers["n_iter"])
                labels = assign_labels(embedding, present_rows, self.cluster_centers_)
                self.labels_ = RowClusterer._hand_out(cast(Any, self), boundary.rows("labels", labels)[0], rows)
        if self.n_clusters_ < self.n_clusters:
            warn_fewer(self, self.n_clusters_, self.n_clusters)
        return self

    def fit_predict(self, X: ArrayInput, y: Any = None, *, constraints: Constraints | None = None) -> Any:
        """Cluster the rows and return `labels_`; see `fit`."""
        return self.fit(X, y, constraints=constraints).labels_

    @abstractmethod
    def _embed(self, rows: Rows, found: RowScan, known: RowConstraints, boundary: Boundary, seed: int) -> da.Array:
        """Embedding of the rows (n, k) float32, NaN for missing ones; sets the attributes that belong to it."""

    @abstractmethod
    def _n_sampled(self, rows: Rows) -> int:
        """Rows drawn in the first pass."""

    def _rows(self, X: ArrayInput) -> Rows:
        return check_rows(X, self.missing)

    def _check_size(self, rows: Rows) -> None:
        RowClusterer._check_n_clusters(cast(Any, self), rows)

    def _check_parameters(self) -> None:
        check_integer("n_clusters", self.n_clusters, 1)
        check_real("alpha", self.alpha, 0.0)
        if check_real("gamma", self.gamma, 0.0) == 0:
            raise ValueError("gamma must be above 0, got 0")
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)
        check_option("missing", self.missing, MISSING)
        check_seed("random_state", self.random_state)

    def _discretize(self, embedding: da.Array, seed: int) -> Centers:
        drawn = draw_ranks(stream(seed, "starts"), embedding.shape[0], sample_size(self.n_clusters))
        parts = compute(
            map_to_objects(_take_rows, embedding, name="dc-sample", drawn=drawn, size=embedding.chunksize[0])
        )[0]
        sample, _ = present_rows(np.concatenate([part["rows"] for part in parts]))
        return discretize(
            embedding, present_rows, sample, self.n_clusters, n_init=self.n_init, max_iter=self.max_iter, seed=seed
        )

    def save(self, path: PathInput, overwrite: bool = False) -> None:
        """Save the fitted attributes as a Zarr group; see `USPEC.save`. Labels are no part of it."""
        check_is_fitted(self, "n_clusters_")
        save_model(self, path, overwrite)

    def __getstate__(self) -> dict[str, Any]:
        """The state without lazy `labels_`."""
        state = super().__getstate__()
        return {key: value for key, value in state.items() if not (key[-1] == "_" and isinstance(value, da.Array))}

    def __sklearn_tags__(self) -> Tags:
        """scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "label"
        return tags


class CSPML(LayerClusterer):
    """Constrained spectral clustering on a multi-layer graph, exact, for rows that fit in memory.

    The layers are the Gaussian affinities of all pairs of rows, the must-links, and all pairs but the cannot-links. The
    embedding is near to the spectral subspaces of all layers at once.

    Parameters
    ----------
    n_clusters : int
        k.
    alpha : float
        Weight of the layers' subspaces against the layers themselves, >= 0.
    gamma : float
        Affinities are exp(-gamma sqdist), in the units of `X`: scale the features to suit it.
    n_init : int
        k-means++ starts of the discretisation.
    max_iter : int
        Lloyd passes of the discretisation, at most.
    missing : {"raise", "label"}
        Rows with NaN or infinity: an error that names the first one, or the label -1; constraints on them do not count.
    random_state : int, numpy RandomState or Generator, or None
    storage : path, optional
        Named store; see `USPEC`.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input. Clusters are numbered by their first row.
    n_clusters_ : int
        Clusters found: k, or fewer (with a `FewerClustersWarning`).
    eigenvalues_ : (k,) float64
        Of the modified adjacency, descending.
    cluster_centers_ : (n_clusters_, k) float64
        Centres in the embedding.
    n_iter_ : int
        Lloyd passes.
    n_features_in_ : int

    Raises
    ------
    ValueError
        In `fit`: if a parameter, the input or the constraints are not acceptable, or there are more than 12,000 rows;
        `FastCSPML` serves those.

    Notes
    -----
    CSP-ML, Algorithm 3 of Trokicic, Todorovic, 2019 (csp_ml_and_fast_csp_ml_2019). 8 n**2 bytes for the affinities;
    layers 2 and 3 are applied as sparse or low-rank matrices. What the paper leaves open: rows without must-links are
    zero in layer 2 and have no say in its subspace; diagonals are zero; a layer's subspace has the eigenvectors of
    positive eigenvalues only. alpha is not given in the paper: with large values a far outlier pair of the affinity
    graph, whose eigenvalue is 1, wins over the constraints. See `multilayer_embedding`.

    Examples
    --------
    >>> import daskcluster as dc
    >>> X, y = dc.datasets.make_two_bananas(300, chunks=300, random_state=0)
    >>> known = dc.Constraints.from_labels([label if i % 10 == 0 else -1 for i, label in enumerate(y.compute())])
    >>> labels = dc.CSPML(n_clusters=2, gamma=50.0, random_state=0).fit_predict(X, constraints=known)
    >>> round(dc.metrics.rand_index(y, labels), 2)
    1.0
    """

    _fitted_names = ("cluster_centers_", "eigenvalues_", "n_clusters_", "n_iter_")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        alpha: float = 0.1,
        gamma: float = 0.5,
        n_init: int = 10,
        max_iter: int = 100,
        missing: str = "raise",
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.gamma = gamma
        self.n_init = n_init
        self.max_iter = max_iter
        self.missing = missing
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _n_sampled(self, rows: Rows) -> int:
        return rows.n_samples

    def _check_size(self, rows: Rows) -> None:
        super()._check_size(rows)
        if rows.n_samples > MOST_ROWS:
            raise ValueError(
                f"CSPML compares all pairs of rows, and takes at most {MOST_ROWS} rows, got {rows.n_samples}; "
                "use FastCSPML"
            )

    def _embed(self, rows: Rows, found: RowScan, known: RowConstraints, boundary: Boundary, seed: int) -> da.Array:
        valid = valid_rows(rows.blocks, finite_rows, found)

        def make() -> dict[str, Any]:
            inside = on_valid_rows(known, valid, rows.n_samples)
            scaled = self.gamma / found.form.scale / found.form.scale
            prepared = found.form.prepare_points(found.sample)
            layers: list[Layer] = [affinity_layer(prepared, scaled), *constraint_layers(inside, len(valid))]
            linked = [layer for layer in layers if (layer.degrees > 0).any()]
            if not linked:  # one row
                return {"vectors": np.zeros((len(valid), 1)), "values": np.zeros(1)}
            vectors, values = multilayer_embedding(linked, self.n_clusters, self.alpha, seed)
            return {"vectors": vectors, "values": values}

        made = boundary.small("eigenvectors", make)
        self.eigenvalues_ = made["values"]
        embedding = np.full((rows.n_samples, made["vectors"].shape[1]), np.nan, np.float32)
        embedding[valid] = made["vectors"]
        return da.from_array(embedding, chunks=(rows.blocks.chunks[0], (embedding.shape[1],)), name=False)

    def plan(self, X: ArrayInput) -> Plan:
        """Forecast `fit`: passes, tasks, bytes and peak memory, before anything runs.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
            Not read; unknown chunk lengths are counted.

        Returns
        -------
        Plan
        """
        self._check_parameters()
        rows = check_rows(X, self.missing)
        self._check_size(rows)
        n, d, k, blocks = rows.n_samples, rows.n_features, self.n_clusters, rows.blocks.numblocks[0]
        read_tasks, input_bytes = len(rows.blocks.__dask_graph__()), rows.n_samples * rows.n_features * 8
        matrices = 8 * n * n * (5 if n <= FORMED_ROWS else 2) + 8 * n * (k + 8) * 40
        stages = [
            StagePlan("check and sample", 1, 5 * blocks + read_tasks, input_bytes, 4 * n, 3 * input_bytes),
            StagePlan("embedding", 0, blocks, 0, 4 * k * n, matrices + 2 * input_bytes),
            StagePlan("discretize", LIKELY_ITER, LIKELY_ITER * 2 * tree_tasks(blocks), 4 * k * n, 0, 16 * k * n),
            StagePlan("labels", 1, 2 * blocks, 4 * k * n, 4 * n, 16 * k * n),
        ]
        return make_plan(
            type(self).__name__,
            rows,
            self.storage,
            stages,
            held_bytes=4 * n * (k + 2),
            input_passes=1,
            small_bytes=8 * n * d,
        )


class FastCSPML(LayerClusterer):
    """Constrained spectral clustering on a multi-layer graph by Nystroem's method, out of core.

    The layers of `CSPML` are known through l sampled columns, common to all of them. Two passes over the rows; memory
    grows with n only by the k numbers of a row's embedding, which are held like the products of other estimators.

    Parameters
    ----------
    n_clusters : int
        k.
    n_landmarks : int
        l, sampled columns; with l >= n the result is that of `CSPML`.
    alpha : float
        Weight of the layers' subspaces against the layers themselves, >= 0.
    gamma : float
        Affinities are exp(-gamma sqdist), in the units of `X`: scale the features to suit it.
    n_init : int
        k-means++ starts of the discretisation.
    max_iter : int
        Lloyd passes of the discretisation, at most.
    missing : {"raise", "label"}
        Rows with NaN or infinity: an error that names the first one, or the label -1; constraints on them do not count.
    random_state : int, numpy RandomState or Generator, or None
    storage : path, optional
        Named store for the products of the stages; see `USPEC`.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input. Clusters are numbered by their first row.
    n_clusters_ : int
        Clusters found: k, or fewer (with a `FewerClustersWarning`).
    landmarks_ : (l, d) float64
        Rows whose columns were sampled.
    eigenvalues_ : (q,) float64
        Approximate ones of the modified adjacency, descending.
    cluster_centers_ : (n_clusters_, q) float64
        Centres in the embedding.
    n_iter_ : int
        Lloyd passes.
    n_features_in_ : int

    Raises
    ------
    ValueError
        In `fit`, before any heavy work: if a parameter, the input or the constraints are not acceptable.

    Notes
    -----
    FAST-CSP-ML, Algorithm 4 of Trokicic, Todorovic, 2019 (csp_ml_and_fast_csp_ml_2019); `sample_layers` has the
    formulas and the departures. Cost is O(n l (d + k)), however many labelled rows there are. Only constraints with a
    sampled row take part: labels give them in plenty, random pairs of a large data set hardly any; `fit` warns if there
    are none. The rows are sampled uniformly, as Theorem 2 asks, and not by their constraints.
    Labels are bit-equal for any chunking, scheduler, number of workers and BLAS threads.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> X, y = dc.datasets.make_two_bananas(5000, chunks=1000, random_state=0)
    >>> known = np.where(np.arange(5000) % 10 == 0, y, -1)
    >>> labels = dc.FastCSPML(n_clusters=2, n_landmarks=300, gamma=50.0, random_state=0).fit_predict(X, known)
    >>> float(dc.metrics.rand_index(y, labels)) > 0.8
    True
    """

    _fitted_names = ("landmarks_", "cluster_centers_", "eigenvalues_", "n_clusters_", "n_iter_")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_landmarks: int = 100,
        alpha: float = 0.1,
        gamma: float = 0.5,
        n_init: int = 10,
        max_iter: int = 100,
        missing: str = "raise",
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_landmarks = n_landmarks
        self.alpha = alpha
        self.gamma = gamma
        self.n_init = n_init
        self.max_iter = max_iter
        self.missing = missing
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_landmarks", self.n_landmarks, 1)

    def _n_sampled(self, rows: Rows) -> int:
        return self.n_landmarks

    def _embed(self, rows: Rows, found: RowScan, known: RowConstraints, boundary: Boundary, seed: int) -> da.Array:
        ranks = draw_ranks(stream(seed, "sample"), found.n_valid, self.n_landmarks)
        sampled = valid_rows(rows.blocks, finite_rows, found, ranks)
        layers, values = sample_layers(
            rows, found.form, found.sample, sampled, found.n_valid, known, self.gamma, self.n_clusters, self.alpha
        )
        if not known.empty and not layers.n_constrained:
            warn_user(
                f"{type(self).__name__}: 0 of {len(sampled)} sampled rows are constrained; the result is that of the "
                "unconstrained method. Raise n_landmarks, label more rows, or use FastCSC"
            )
        self.landmarks_ = found.sample.astype(np.float64)
        self.eigenvalues_ = values
        return embed_rows(rows, layers, known)

    def plan(self, X: ArrayInput) -> Plan:
        """Forecast `fit` with partial labels: passes, tasks, bytes and peak memory, before anything runs.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
            Not read; unknown chunk lengths are counted.

        Returns
        -------
        Plan
        """
        self._check_parameters()
        rows = check_rows(X, self.missing)
        self._check_size(rows)
        n, d, k, blocks = rows.n_samples, rows.n_features, self.n_clusters, rows.blocks.numblocks[0]
        block, sampled = min(rows.block_rows, n), min(self.n_landmarks, n)
        raw = rows.blocks.dtype.itemsize
        read_tasks, input_bytes, per_pass = len(rows.blocks.__dask_graph__()), n * d * raw, tree_tasks(blocks)
        tile = min(TILE_ROWS, block) * (8 * sampled * 8 + 3 * 8 * d)
        stages = [
            StagePlan("check and sample", 1, 5 * blocks + read_tasks, input_bytes, 4 * n, block * d * (raw + 8)),
            StagePlan(
                "embedding",
                2,
                2 * (per_pass + read_tasks) + 6 * blocks,
                2 * (input_bytes + 8 * n),
                4 * k * n,
                max(block * (d * raw + 4 * k + 16) + tile, 8 * sampled * sampled * 12),
            ),
            StagePlan(
                "discretize",
                LIKELY_ITER,
                LIKELY_ITER * 2 * per_pass,
                LIKELY_ITER * 4 * k * n,
                0,
                max(block * 16 * k, min(n, sample_size(k)) * 8 * (k + 5)),
            ),
            StagePlan("labels", 1, 2 * blocks, 4 * k * n, 4 * n, block * 16 * k),
        ]
        return make_plan(
            type(self).__name__,
            rows,
            self.storage,
            stages,
            held_bytes=4 * n * (k + 2),
            input_passes=3,
            small_bytes=8 * sampled * (d + 3 * k + 12 * sampled),
        )


def present_rows(block: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.intp] | None]:
    """Rows of an embedding that are there, and their numbers."""
    missing = np.isnan(block[:, 0])
    if not missing.any():
        return np.asarray(block), None
    rows = np.flatnonzero(~missing)
    return np.asarray(block)[rows], rows


def _take_rows(block: NDArray[Any], number: int, drawn: NDArray[np.int64], size: int) -> dict[str, Any]:
    low, high = np.searchsorted(drawn, [number * size, number * size + len(block)])
    return {"rows": np.asarray(block)[drawn[low:high] - number * size]}


def valid_rows(
    blocks: da.Array, present: Present, found: RowScan, ranks: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Numbers of the rows that take part; of those with these ranks among them."""
    if found.n_valid == blocks.shape[0]:
        return np.arange(blocks.shape[0]) if ranks is None else ranks
    numbered = map_to_objects(_present_numbers, blocks, name="dc-present", present=present, size=blocks.chunksize[0])
    rows: NDArray[np.int64] = np.concatenate([part["rows"] for part in compute(numbered)[0]])
    return rows if ranks is None else rows[ranks]


def _present_numbers(block: NDArray[Any], number: int, present: Present, size: int) -> dict[str, Any]:
    there = present(block)
    return {"rows": number * size + (np.arange(len(block)) if there is None else np.flatnonzero(there))}


def linked_rows(edges: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Rows that are there, by their packed edges."""
    return edges[:, 0] >= 0


def _codes_of_present(codes: NDArray[np.int32], block: NDArray[Any], present: Present) -> NDArray[np.int32]:
    there = present(block)
    return codes[:, 0] if there is None else np.where(there, codes[:, 0], np.int32(-1))


def _count_labelled(codes: NDArray[np.int32]) -> dict[str, Any]:
    return {"labelled": int((codes >= 0).sum())}


def on_valid_rows(known: RowConstraints, valid: NDArray[np.int64], n_rows: int) -> RowConstraints:
    """Constraints in memory, by the numbers of the rows among the valid ones."""
    codes, confidences = compute(known.codes, known.confidences)
    if len(valid) == n_rows:
        return replace(known, codes=codes, confidences=confidences)
    return replace(
        known,
        codes=None if codes is None else codes[valid],
        confidences=None if confidences is None else confidences[valid],
        must_link=known.must_link.renumbered(valid),
        cannot_link=known.cannot_link.renumbered(valid),
    )


# -- the paper's competitors ------------------------------------------------------------------------------------------


def spectral_learning(
    affinity: NDArray[np.float64], constraints: Constraints, n_clusters: int, *, random_state: Seed = None
) -> NDArray[np.int32]:
    """Spectral learning of Kamvar, Klein, Manning, IJCAI 2003, in memory; hard constraints only.

    Parameters
    ----------
    affinity : (n, n) float64
        Symmetric, not negative.
    constraints : Constraints
        Weights are not looked at. A pair of both kinds counts as a cannot-link.
    n_clusters : int
    random_state : int, RandomState, Generator or None

    Returns
    -------
    (n,) int32

    Raises
    ------
    ValueError
        If `affinity` is something else, or the constraints are for another number of rows.

    Notes
    -----
    As csp_ml_and_fast_csp_ml_2019 describes it in section 3: W is 1 at must-links and 0 at cannot-links; the rows of
    the largest k eigenvectors of (W + d_max I - D) / d_max, at unit length as Kamvar et al. say, are clustered by
    k-means. O(n**3).
    """
    check_integer("n_clusters", n_clusters, 1)
    W = _checked_affinity(affinity, constraints)
    n = len(W)
    Q = constraints.to_sparse(n).todense()
    W[Q > 0] = 1.0
    cannot = constraints.cannot_link
    if constraints.labels is not None:
        W[Q < 0] = 0.0
    else:
        W[cannot[:, 0], cannot[:, 1]] = W[cannot[:, 1], cannot[:, 0]] = 0.0
    degrees = W.sum(axis=1)
    largest = max(float(degrees.max()), np.finfo(np.float64).tiny)
    transition = (W + np.diag(largest - degrees)) / largest
    _, vectors = largest_eigenpairs(transition, min(n_clusters, n))
    return _cluster_in_memory(unit_rows(vectors), n_clusters, random_state)


def constrained_spectral_clustering(
    affinity: NDArray[np.float64],
    constraints: Constraints,
    n_clusters: int,
    *,
    beta: float | None = None,
    random_state: Seed = None,
) -> NDArray[np.int32]:
    """CSP of Wang, Qian, Davidson, DMKD 2014, in memory: eq. (7) and (8) of csp_ml_and_fast_csp_ml_2019.

    Parameters
    ----------
    affinity : (n, n) float64
        Symmetric, not negative.
    constraints : Constraints
        Soft ones count by their weights.
    n_clusters : int
    beta : float, optional
        Threshold of eq. (8), below the largest eigenvalue of the normalized Q times the volume. By default half of
        the (k - 1)-th largest, so that k - 1 eigenvectors are feasible.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    (n,) int32

    Raises
    ------
    ValueError
        If `affinity` is something else, the constraints are for another number of rows, or no eigenvector is feasible:
        `beta` is too large, or there are no constraints.

    Notes
    -----
    L v = lambda (Q - beta / vol I) v with Q normalized like L. L is positive semidefinite, so the eigenvectors of
    positive lambda are those of (Q - beta / vol I) v = mu (L + tiny I) v with mu = 1 / lambda > 0: a symmetric-definite
    problem, O(n**3). Of these the k - 1 with the smallest v^T L v, at v^T v = vol, are divided by the roots of the
    degrees, and their rows clustered by k-means. The trivial vector D^1/2 1 is left out. Rows are scaled to unit length
    before k-means, which the text does not say: without it the published figures are out of reach (Rand indices on
    Glass 0.49 against 0.65 at 75 labels).
    """
    check_integer("n_clusters", n_clusters, 1)
    W = _checked_affinity(affinity, constraints)
    n = len(W)
    degrees = W.sum(axis=1)
    roots = np.where(degrees > 0, 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0)), 0.0)
    L = np.diag((degrees > 0).astype(np.float64)) - roots[:, None] * W * roots
    Q = roots[:, None] * np.asarray(constraints.to_sparse(n).todense(), np.float64) * roots
    volume = float(degrees.sum())
    wanted = max(1, n_clusters - 1)
    if beta is None:
        beta = 0.5 * volume * float(largest_eigenpairs(Q.copy(), min(wanted, n))[0][-1])
    right = L + CSP_RIDGE * np.eye(n)
    with one_blas_thread():
        mu, vectors = scipy.linalg.eigh(Q - beta / volume * np.eye(n), right)
    feasible = np.flatnonzero(mu > 0)
    vectors = vectors[:, feasible]
    vectors = vectors / np.linalg.norm(vectors, axis=0) * np.sqrt(volume)
    trivial = np.sqrt(np.maximum(degrees, 0.0) / max(volume, np.finfo(np.float64).tiny))
    vectors = vectors[:, np.abs(trivial @ vectors) < (1 - 1e-6) * np.sqrt(volume)]
    if not vectors.shape[1]:
        raise ValueError(f"no eigenvector is feasible at beta={beta:g}: it is too large, or there are no constraints")
    costs = np.einsum("ij,ij->j", vectors, L @ vectors)
    chosen = vectors[:, np.argsort(costs, kind="stable")[:wanted]]
    return _cluster_in_memory(unit_rows(roots[:, None] * chosen), n_clusters, random_state)


def _checked_affinity(affinity: Any, constraints: Constraints) -> NDArray[np.float64]:
    """A copy of an affinity matrix, checked against what it has to be and against the constraints."""
    W = np.array(affinity, np.float64)
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ValueError(f"affinity must be a square matrix (n, n), got shape {W.shape}")
    bad = ~(np.isfinite(W) & (W >= 0))
    if bad.any():
        i, j = np.unravel_index(np.argmax(bad), W.shape)
        raise ValueError(f"affinity must be finite and not negative, got {W[i, j]} at row {i}, column {j}")
    if not np.allclose(W, W.T):
        raise ValueError("affinity must be symmetric")
    constraints.check_n_rows(len(W), "affinity")
    return W


def _cluster_in_memory(points: NDArray[np.float64], n_clusters: int, random_state: Seed) -> NDArray[np.int32]:
    seed = root_seed(random_state)
    best: tuple[Centers, NDArray[np.int32]] | None = None
    for number in range(10):
        starts = center_starts(points, n_clusters, stream(seed, "discretize", number))
        found = lloyd_in_memory(points, starts)
        if best is None or found[0].inertia < best[0].inertia:
            best = found
    assert best is not None
    return best[1]
