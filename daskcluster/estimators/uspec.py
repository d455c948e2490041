"""USPEC: stages 0 to 5; predict repeats 2 to 5 on new rows."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import dask
import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.neighbors import WIDE_FEATURES
from ..kernels.rows import compute_dtype
from ..pipeline.affinity import distance_sum, gaussian_affinity, gaussian_edges, mean_distance
from ..pipeline.cut import LiftedRows, TransferCut, embed_block, transfer_cut
from ..pipeline.discretize import assign_block, assign_labels, discretize, warn_fewer
from ..pipeline.kmeans import sample_size
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
from ..runtime.execution import FAN_IN, TILE_ROWS
from ..runtime.forecast import Plan, StagePlan, make_plan, tree_tasks
from ..runtime.progress import Progress
from ..runtime.seeding import stream
from ..typing import ArrayInput, PathInput, Seed
from ..validation import check_integer, check_option
from .base import RowClusterer

__all__ = ["USPEC"]

METRICS = ("euclidean", "cosine")
#: Lloyd passes over all rows that a forecast assumes; 2 to 6 are usual.
LIKELY_ITER = 6


class USPEC(RowClusterer):
    """Ultra-scalable spectral clustering, out of core.

    Each row is linked to its K nearest of p representatives, and the bipartite graph between rows and representatives
    is cut by the first k eigenvectors of a (p, p) problem. Two passes over the input, then passes over K edges a row;
    memory does not grow with the number of rows.

    Parameters
    ----------
    n_clusters : int
        k.
    n_representatives : int
        p; fewer are used when there are fewer distinct rows.
    n_neighbors : int
        K, representatives to which a row is linked; at most p are used.
    selection : {"hybrid", "random", "kmeans"}
        How representatives are chosen: cluster centres of ``candidate_factor * p`` random rows; random rows; cluster
        centres of all rows.
    neighbors : {"approximate", "exact"}
        How the K nearest are found: from coarse to fine, or by comparing with every representative.
    candidate_factor : int
        p' / p of the hybrid selection.
    neighbor_factor : int
        K' / K of the approximate search; enlarged when a check on sampled rows finds too low a recall.
    metric : {"euclidean", "cosine"}
        With "cosine" rows count by their direction, and the distance is 1 - cos.
    n_init : int
        k-means++ starts of the discretisation.
    max_iter : int
        Lloyd passes of the discretisation, at most.
    missing : {"raise", "label"}
        Rows with NaN or infinity: an error that names the first one, or the label -1, and the others are clustered as
        if such rows were absent.
    random_state : int, numpy RandomState or Generator, or None
    storage : path, optional
        Named store for the products of the stages: a run that was killed continues there, and a finished one is not
        computed again. A store made with other data or parameters is refused. None holds products in memory, or, where
        they are large, in a scratch store.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input, which is no part of a pickled or copied model. Clusters
        are numbered by their first row.
    n_clusters_ : int
        Clusters found: k, or fewer (with a `FewerClustersWarning`) when there are too few distinct rows.
    representatives_ : (p, d) float64
        In the units of the input; at unit length for "cosine".
    bandwidth_ : float
        sigma, the mean distance of rows to their K nearest representatives.
    eigenvalues_ : (q,) float64
        The first eigenvalues of the normalized cut, ascending from 0.
    cluster_centers_ : (n_clusters_, q) float64
        Centres in the embedding.
    neighborhood_size_ : int
        K' that was used; p - 1 means that the search was exact.
    n_iter_ : int
        Lloyd passes over all rows.
    n_features_in_ : int

    Raises
    ------
    ValueError
        In `fit`, before any heavy work: if a parameter or the input is not acceptable.

    Notes
    -----
    U-SPEC of Huang, Wang, Wu, Lai, Kwoh, TKDE 2019 (uspec_usenc_2019), section 3.1. Departures, each described where
    it is made: the neighbourhood size is checked and enlarged if need be (`choose_neighborhood`); rows of the
    embedding are scaled to unit length, as the authors' program does and the paper does not say; the discretisation
    starts on a sample (`discretize`); representatives without edges are dropped (`transfer_cut`).
    Labels are bit-equal for any chunking, scheduler, number of workers and BLAS threads.

    Examples
    --------
    >>> import daskcluster as dc
    >>> X, y = dc.datasets.make_concentric_circles(5000, chunks=1000, random_state=0)
    >>> model = dc.USPEC(n_clusters=3, n_representatives=200, random_state=0).fit(X)
    >>> round(dc.metrics.normalized_mutual_info(y, model.labels_), 2)
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
        n_representatives: int = 1000,
        n_neighbors: int = 5,
        selection: str = "hybrid",
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

    def fit(self, X: ArrayInput, y: Any = None) -> Self:
        """Cluster the rows.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        boundary = self._boundary()
        rows = self._open(X, reset=True)
        self._check_n_clusters(rows)
        seed = boundary.seed
        with Progress(self.verbose) as progress:
            with progress.stage("check and sample"):
                found = self._scan(rows, seed, fingerprint=boundary.named)
                self._check_n_valid(found.n_valid)
                boundary.open(found.fingerprint)
            with progress.stage("representatives"):
                made = boundary.small("representatives", lambda: self._represent(rows, found, seed))
                representatives = made["representatives"]
                index, size = self._search(found, representatives, seed)
                n_neighbors = min(self.n_neighbors, len(representatives))
            with progress.stage("nearest representatives"):
                lazy = nearest_representatives(rows, index, n_neighbors)
                nearest, sums = boundary.rows("nearest", lazy, distance_sum)
                bandwidth = mean_distance(sums)
                graph = gaussian_affinity(nearest, bandwidth, len(representatives))
            with progress.stage("transfer cut"):
                cut = TransferCut(**boundary.small("cut", lambda: vars(transfer_cut(graph, self.n_clusters))))
                points = LiftedRows(graph.edges_of, cut.vectors)
            with progress.stage("discretize"):
                made = boundary.small("centers", lambda: self._discretize(found, index, nearest, points, seed))
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

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_representatives", self.n_representatives, 1)
        check_integer("n_neighbors", self.n_neighbors, 1)
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

    def _scan(self, rows: Rows, seed: int, *, fingerprint: bool) -> RowScan:
        return scan(
            rows,
            self._sample_sizes()[0],
            stream(seed, "sample"),
            unit_length=self.metric == "cosine",
            fingerprint=fingerprint,
        )

    def _represent(self, rows: Rows, found: RowScan, seed: int) -> dict[str, Any]:
        representatives = choose_representatives(
            rows,
            found,
            self.n_representatives,
            n_candidates=self._sample_sizes()[1],
            selection=self.selection,
            max_iter=self.max_iter,
            seed=seed,
        )
        return {"representatives": representatives}

    def _search(
        self, found: RowScan, representatives: NDArray[np.float64], seed: int
    ) -> tuple[RepresentativeIndex, int]:
        return choose_neighborhood(
            representatives,
            found.form,
            found.sample,
            min(self.n_neighbors, len(representatives)),
            neighbors=self.neighbors,
            neighbor_factor=self.neighbor_factor,
            seed=seed,
        )

    def _discretize(
        self, found: RowScan, index: RepresentativeIndex, nearest: da.Array, points: LiftedRows, seed: int
    ) -> dict[str, Any]:
        sample, _ = points(nearest_block(found.sample, index, nearest.shape[1] // 2))
        centers = discretize(
            nearest, points, sample, self.n_clusters, n_init=self.n_init, max_iter=self.max_iter, seed=seed
        )
        return {"centers": centers.centers, "n_iter": centers.n_iter}

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
        """Forecast `fit`: passes, tasks, bytes and peak memory, before anything runs.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
            Not read; unknown chunk lengths are counted.

        Returns
        -------
        Plan
            Print it, or take ``to_dict()``. Figures are upper bounds for the passes that it states; the number of
            Lloyd passes is not known before, `LIKELY_ITER` are assumed. Peak memory is that of the fit, without what
            the caller holds, such as a NumPy array.
        """
        self._check_parameters()
        rows = check_rows(X, self.missing)
        self._check_n_clusters(rows)
        n, d, blocks = rows.n_samples, rows.n_features, rows.blocks.numblocks[0]
        block, tile = min(rows.block_rows, n), min(TILE_ROWS, n)
        p, k = min(self.n_representatives, n), self.n_clusters
        n_neighbors = min(self.n_neighbors, p)
        drawn, candidates = (min(size, n) for size in self._sample_sizes())
        raw, number = rows.blocks.dtype.itemsize, compute_dtype(rows.blocks.dtype).itemsize
        input_bytes, edge_bytes = n * d * raw, 8 * n_neighbors * n
        per_pass, reads = tree_tasks(blocks), len(rows.blocks.__dask_graph__())
        neighborhood = min(p, 4 * self.neighbor_factor * n_neighbors + 1)  # it may be doubled twice
        index_bytes = 3 * p * d * 8 + p * neighborhood * (8 + min(d, WIDE_FEATURES) * number)
        raw_block, edge_block = block * d * raw, block * 8 * n_neighbors
        prepared = tile * (2 * d * number + 24 * n_neighbors)
        lifted = tile * (20 * n_neighbors + 8 * k + 16)
        full = self.max_iter if self.selection == "kmeans" else 0
        select = max(candidates * (d * (raw + 3 * number) + 8) + 24 * p * d, full and raw_block + prepared + 24 * p * d)
        passes = LIKELY_ITER
        stages = [
            StagePlan("check and sample", 1, blocks + reads, input_bytes, 0, 2 * raw_block + block * d * number),
            StagePlan("representatives", full, full * (per_pass + reads), full * input_bytes, 0, select),
            StagePlan(
                "nearest representatives",
                1,
                blocks + reads,
                input_bytes,
                edge_bytes,
                2 * raw_block + edge_block + prepared,
            ),
            StagePlan(
                "transfer cut", 1, blocks + per_pass, edge_bytes, 0, edge_block + lifted + 8 * p * p * (FAN_IN + 1)
            ),
            StagePlan(
                "discretize",
                passes,
                passes * (blocks + per_pass),
                passes * edge_bytes,
                0,
                max(edge_block + lifted, drawn * (8 * k + 60)),
            ),
            StagePlan("labels", 1, 2 * blocks, edge_bytes, 4 * n, edge_block + 8 * block + lifted),
        ]
        small = index_bytes + drawn * d * raw + 24 * p * p
        return make_plan(
            type(self).__name__,
            rows,
            self.storage,
            stages,
            held_bytes=edge_bytes + 4 * n,
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
    """Stages 2 to 5 on a raw block: labels, or without `centers` the embedding."""
    edges = nearest_block(block, index, n_neighbors)
    return embed_block(edges, points) if centers is None else assign_block(edges, points, centers)
