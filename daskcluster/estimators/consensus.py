"""BipartiteCut, SEC, ISEC: base clusterings (n, m) -> their consensus (n,)."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, Self

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags

from ..ensemble.generation import beside
from ..ensemble.incidence import (
    LabelBook,
    LabelCoder,
    LabelScan,
    LabelsOf,
    agreement_block,
    agreement_shares,
    check_base_clusterings,
    check_label_block,
    code_labels,
    draw_labelled,
    incidence_edges,
    incidence_graph,
    row_weights,
    scan_labels,
)
from ..ensemble.lowrank import (
    co_association,
    low_rank_bytes,
    low_rank_representation,
    mean_by_cluster,
    spectral_rows,
    unit_rows,
)
from ..ensemble.projection import ProjectedRows, projection_matrix, strips_of
from ..ensemble.spectral import (
    IncidenceCenters,
    NearestCenter,
    exchange_sample,
    lloyd_incidence,
    lloyd_sample,
    objective_of,
    partition_centers,
    partition_objective,
    start_rows,
)
from ..errors import FewerClustersWarning, warn_user
from ..kernels.lloyd import sqdist_to_centers
from ..pipeline.cut import LiftedRows, TransferCut, embed_block, transfer_cut
from ..pipeline.discretize import assign_block, discretize
from ..pipeline.kmeans import Centers, center_starts, lloyd_in_memory, lloyd_over_blocks, sample_size
from ..pipeline.rows import Rows
from ..runtime.boundary import Boundary
from ..runtime.execution import compute, map_rows
from ..runtime.forecast import Plan, StagePlan, make_plan, memory_limit, tree_tasks
from ..runtime.progress import Progress
from ..runtime.seeding import stream
from ..typing import ArrayInput, PathInput, Seed
from ..validation import check_integer, check_option, check_real
from .base import RowClusterer, where_it_predicts

__all__ = ["ISEC", "SEC", "BipartiteCut", "Consensus"]

#: What `ISEC` partitions.
PARTITIONS = ("H", "Z")

#: Base clusters of an ensemble that a forecast assumes for each base clustering; they are known after a pass.
LIKELY_CLUSTERS = 40
#: So many bytes are there; for more the memory is looked at.
SMALL_BYTES = 2**29
#: Partitions of the bipartite cut among the starts of `SEC`.
CUT_STARTS = 5
#: Starts of `SEC` that go through exchanges of single rows.
EXCHANGED = 5
#: Which starts these are is plain before they have come to rest: when a pass gains no more than this share.
START_TOL = 1e-3
#: Passes over all rows that a forecast assumes.
LIKELY_ITER = 10


class Consensus(RowClusterer):
    """Base of the consensus clusterers: what they share besides their one method.

    The input are base clusterings (n, m), any whole numbers >= 0, -1 for no label. A subclass gives `_solve`, which
    sets the attributes of the model, and `_labels_of`.
    """

    # The attributes of the model that every consensus has.
    _book_names = ("base_cluster_sizes_", "n_clusters_", "_values", "_offsets", "_shares")
    missing = "label"
    _fill = "-1"
    verbose: bool

    def fit(self, X: ArrayInput, y: Any = None) -> Self:
        """Find the consensus.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)
            A base clustering a column: whole numbers >= 0 of any kind and with gaps, -1 for no label.
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        boundary = self._boundary()
        rows = self._open(X, reset=True)
        self._check_n_clusters(rows)
        with Progress(self.verbose) as progress:
            with progress.stage("base clusters"):
                found = scan_labels(rows, fingerprint=boundary.named)
                if found.n_labelled == 0:
                    raise ValueError("X has no row with a label: every label is -1")
                boundary.open(found.fingerprint)
            labels, agreement = self._fit_labels(rows, found, boundary, progress)
            with progress.stage("labels"):
                self.labels_ = self._keep("labels", labels, rows, boundary)
                self.agreement_ = self._keep("agreement", agreement, rows, boundary)
        n_without = rows.n_samples - found.n_labelled
        if n_without:
            warn_user(f"{n_without} rows have no label in any base clustering; they get the label -1")
        self._warn()
        return self

    def _fit_labels(
        self, rows: Rows, found: LabelScan, boundary: Boundary, progress: Progress
    ) -> tuple[da.Array, da.Array]:
        """Fit the model on scanned base clusterings; their labels and agreement, lazy."""
        if self.n_clusters > found.n_labelled:
            raise ValueError(
                f"n_clusters must be at most the number of rows with a label, got n_clusters={self.n_clusters} "
                f"and {found.n_labelled} such rows"
            )
        self._check_size(found.n_labelled)
        book = found.book
        with progress.stage("base clusters"):
            codes, _ = boundary.rows("codes", code_labels(rows, book))
        self._solve(codes, found, boundary, progress)
        self.base_cluster_sizes_ = book.sizes
        self._values, self._offsets = book.values, book.offsets
        labels_of = self._labels_of()
        with progress.stage("agreement"):
            sums = boundary.small("sums", lambda: agreement_shares(codes, book, labels_of, self.n_clusters_))
            self._shares = sums["counts"] / np.maximum(book.sizes, 1)[:, None]
            self._finish(sums, book)
        labels = map_rows(labels_of, codes, name="dc-assign", columns=None, dtype=np.int32)
        agreement = map_rows(
            agreement_block,
            codes,
            name="dc-agree",
            columns=None,
            dtype=np.float32,
            labels_of=labels_of,
            offsets=book.offsets,
            shares=self._shares,
        )
        return labels, agreement

    def _check_size(self, n_labelled: int) -> None:
        """Refuse more rows than fit into memory, where a method has such a limit."""

    @abstractmethod
    def _solve(self, codes: da.Array, found: LabelScan, boundary: Boundary, progress: Progress) -> None:
        """Set the fitted attributes; the consensus of coded base clusterings."""

    def _finish(self, sums: dict[str, Any], book: LabelBook) -> None:
        """Set what follows from the sums of the final partition."""

    @abstractmethod
    def _labels_of(self) -> LabelsOf:
        """Function of a block of codes that gives its labels, from the fitted attributes."""

    def _points_of(self) -> Any:
        """Function of a block of codes that gives the points of `transform`, from the fitted attributes."""
        raise NotImplementedError

    @property
    def _book(self) -> LabelBook:
        return LabelBook(self._values, self._offsets, self.base_cluster_sizes_)

    def _warn(self) -> None:
        """Say what the fitted model is short of."""
        if self.n_clusters_ < self.n_clusters:
            warn_user(
                f"{type(self).__name__} found {self.n_clusters_} clusters, not n_clusters={self.n_clusters}: "
                "the base clusterings do not tell more apart",
                FewerClustersWarning,
            )

    def _rows(self, X: ArrayInput) -> Rows:
        return check_base_clusterings(X)

    def _block_check(self) -> Any:
        return check_label_block

    def _output(self, what: str) -> tuple[int | None, Any]:
        return (None, np.float32) if what == "agreement" else super()._output(what)

    def _block_function(self, what: str, dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
        arguments: dict[str, Any] = {"coder": LabelCoder(self._book)}
        if what == "points":
            return coded_block, {**arguments, "outcome": self._points_of()}
        labels_of = self._labels_of()
        if what == "labels":
            return coded_block, {**arguments, "outcome": labels_of}
        agreement = partial(agreement_block, labels_of=labels_of, offsets=self._offsets, shares=self._shares)
        return coded_block, {**arguments, "outcome": agreement}

    def predict(self, X: ArrayInput) -> Any:
        """Label rows by their base clusterings, new or old.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)
            The same m base clusterings; a label that `fit` has not seen counts as missing.

        Returns
        -------
        labels : (n,) int32
            NumPy for NumPy, a lazy dask array for chunked input; -1 for rows without a known label. For the rows of
            `fit` equal to `labels_`.

        Raises
        ------
        ValueError
            If a label is no whole number >= -1 (its place is named), or there is another number of base clusterings.
        """
        return super().predict(X)

    def transform(self, X: ArrayInput) -> Any:
        """Bring rows into the space in which they are clustered; the class says what it is."""
        return super().transform(X)

    def _small_bytes(self, n_base_clusters: int) -> tuple[int, int]:
        """Peak of a task, and of what lives through the fit, for c base clusters: what the forecast adds."""
        k = self.n_clusters
        return 8 * n_base_clusters * (k + 8), 8 * n_base_clusters * 3 * (k + 8)

    def _stages(self, rows: Rows, n_base_clusters: int) -> list[StagePlan]:
        """Stages between the codes and the labels, for `plan`."""
        raise NotImplementedError

    def plan(self, X: ArrayInput) -> Plan:
        """Forecast `fit`: passes, tasks, bytes and peak memory, before anything runs.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)
            Not read; unknown chunk lengths are counted.

        Returns
        -------
        Plan
            The number of base clusters is not known before the labels are read: `LIKELY_CLUSTERS` a base clustering
            are assumed.
        """
        self._check_parameters()
        rows = self._rows(X)
        self._check_n_clusters(rows)
        n, m, blocks = rows.n_samples, rows.n_features, rows.blocks.numblocks[0]
        block = min(rows.block_rows, n)
        c = LIKELY_CLUSTERS * m
        raw = rows.blocks.dtype.itemsize
        read_tasks = len(rows.blocks.__dask_graph__())
        task, small = self._small_bytes(c)
        stages = [
            StagePlan(
                "base clusters",
                2,
                3 * blocks + tree_tasks(blocks) + 2 * read_tasks,
                2 * n * m * raw,
                n * m,
                block * m * (raw + 9) + task,
            ),
            *self._stages(rows, c),
            StagePlan("agreement", 1, 2 * tree_tasks(blocks), n * m, 0, block * (m + 4) + task),
            StagePlan("labels", 1, 4 * blocks, 2 * n * m, 8 * n, block * (m + 12) + task),
        ]
        return make_plan(
            type(self).__name__, rows, self.storage, stages, held_bytes=n * (m + 8), input_passes=2, small_bytes=small
        )

    def __sklearn_tags__(self) -> Tags:
        """scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.input_tags.categorical = True
        return tags


def coded_block(block: NDArray[Any], coder: LabelCoder, outcome: Any) -> NDArray[Any]:
    """Apply a function of codes to a block of labels."""
    return outcome(coder(block))


def check_cut_size(n_base_clusters: int, n_blocks: int) -> None:
    """Refuse a transfer cut whose small graph does not fit; 8 c**2 bytes a matrix.

    Raises
    ------
    MemoryError
        Naming the bytes.
    """
    need = cut_bytes(n_base_clusters, n_blocks)
    if need > SMALL_BYTES and need > memory_limit() // 2:
        raise MemoryError(
            f"the bipartite cut of {n_base_clusters} base clusters needs {need / 2**30:.1f} GiB, more than half of the "
            f"memory ({memory_limit() / 2**30:.1f} GiB): use fewer or coarser base clusterings, or SEC"
        )


def cut_bytes(n_base_clusters: int, n_blocks: int) -> int:
    """Peak of the small graphs of a transfer cut: partial results, their sum, and the eigenproblem."""
    return 8 * n_base_clusters**2 * (min(n_blocks, 10) + 4)


class BipartiteCut(Consensus):
    """Consensus by the transfer cut of the bipartite graph of rows and base clusters.

    Each row is linked to the base clusters that hold it, and the graph is cut by the first k eigenvectors of a (c, c)
    problem, as in `USPEC`. The consensus of U-SENC.

    Parameters
    ----------
    n_clusters : int
        k.
    n_init : int
        k-means++ starts of the discretisation.
    max_iter : int
        Lloyd passes of the discretisation, at most.
    random_state : int, numpy RandomState or Generator, or None
    storage : path, optional
        Named store for the products of the stages: a killed run continues there. See `USPEC`.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input. Clusters are numbered by their first row; -1 for rows
        without labels.
    agreement_ : (n,) float32
        For each row the mean, over the base clusterings that label it, of the share of its base cluster that lies in
        its consensus cluster: 1 where all base clusters of the row belong to one cluster. NaN for rows without labels.
    n_clusters_ : int
        k, or fewer (with a `FewerClustersWarning`) when the base clusterings do not tell more apart.
    eigenvalues_ : (q,) float64
        The first eigenvalues of the normalized cut, ascending from 0.
    cluster_centers_ : (n_clusters_, q) float64
        Centres in the embedding.
    base_cluster_sizes_ : (c,) int64
        Rows of each base cluster, those of the first base clustering first.
    n_iter_ : int
        Lloyd passes over all rows.
    n_features_in_ : int
        m.

    Raises
    ------
    ValueError
        In `fit`: if a parameter is not acceptable, or a label is no whole number >= -1 (its place is named).
    MemoryError
        If the (c, c) problem does not fit into memory.

    Notes
    -----
    Section 3.2.2 of uspec_usenc_2019, eq. (16) to (19), then the cut of section 3.1.3. A missing label is a missing
    edge. Departures are those of the stages: `transfer_cut`, `discretize`. Labels are bit-equal for any chunking, dtype
    of the labels, scheduler, number of workers and BLAS threads.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> base = np.array([[0, 5, 7], [0, 5, 7], [0, 5, -1], [3, 8, 7], [3, 8, 2], [3, 8, 2]])
    >>> model = dc.BipartiteCut(n_clusters=2, random_state=0).fit(base)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.agreement_.round(2)
    array([0.89, 0.89, 1.  , 0.78, 1.  , 1.  ], dtype=float32)
    """

    _points_dtype = np.float32
    _fitted_names = (*Consensus._book_names, "eigenvalues_", "cluster_centers_", "n_iter_", "_vectors")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_init: int = 10,
        max_iter: int = 100,
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)

    def _solve(self, codes: da.Array, found: LabelScan, boundary: Boundary, progress: Progress) -> None:
        graph = incidence_graph(codes, found.book)
        with progress.stage("transfer cut"):
            check_cut_size(graph.n_right, codes.numblocks[0])
            cut = TransferCut(**boundary.small("consensus-cut", lambda: vars(transfer_cut(graph, self.n_clusters))))
            points = LiftedRows(graph.edges_of, cut.vectors)
        with progress.stage("discretize"):
            made = boundary.small("consensus", lambda: self._discretize(codes, found, points, boundary.seed))
        self.eigenvalues_ = cut.eigenvalues
        self.cluster_centers_ = made["centers"]
        self.n_clusters_ = len(made["centers"])
        self.n_iter_ = int(made["n_iter"])
        self._vectors = cut.vectors

    def _discretize(self, codes: da.Array, found: LabelScan, points: LiftedRows, seed: int) -> dict[str, Any]:
        rng = stream(seed, "consensus sample")
        sample, _ = points(draw_labelled(codes, found.labelled, sample_size(self.n_clusters), rng))
        centers = discretize(
            codes, points, sample, self.n_clusters, n_init=self.n_init, max_iter=self.max_iter, seed=seed
        )
        return {"centers": centers.centers, "n_iter": centers.n_iter}

    @property
    def _lifted(self) -> LiftedRows:
        return LiftedRows(partial(incidence_edges, offsets=self._offsets), self._vectors)

    def _labels_of(self) -> LabelsOf:
        return partial(assign_block, points=self._lifted, centers=self.cluster_centers_)

    def _points_of(self) -> Any:
        return partial(embed_block, points=self._lifted)

    @property
    def _n_features_out(self) -> int:
        return int(self._vectors.shape[1])

    def transform(self, X: ArrayInput) -> Any:
        """Embed rows by their base clusterings.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)

        Returns
        -------
        (n, q) float32
            Rows of unit length, q eigenvectors (`eigenvalues_`); NaN for rows without labels.
        """
        return super().transform(X)

    def _stages(self, rows: Rows, n_base_clusters: int) -> list[StagePlan]:
        n, m, blocks = rows.n_samples, rows.n_features, rows.blocks.numblocks[0]
        block, k, per_pass = min(rows.block_rows, n), self.n_clusters, tree_tasks(blocks)
        drawn = min(sample_size(k), n)
        return [
            StagePlan("transfer cut", 1, 2 * per_pass, n * m, 0, cut_bytes(n_base_clusters, blocks) // 2),
            StagePlan(
                "discretize",
                LIKELY_ITER,
                LIKELY_ITER * 2 * per_pass,
                LIKELY_ITER * n * m,
                0,
                max(block * m + 2**13 * (9 * m + 8 * k), drawn * (m + 8 * (k + 5))),
            ),
        ]


def start_size(n_clusters: int, n_labelled: int) -> int:
    """Rows of the sample on which `SEC` chooses its start: all of them up to twice as many as a sample has."""
    drawn = sample_size(n_clusters)
    return n_labelled if n_labelled <= 2 * drawn else drawn


class SEC(Consensus):
    """Spectral ensemble clustering: the co-association matrix's normalized cut as weighted k-means.

    Rows count with the weights w, the row sums of the co-association matrix, and lie at b/w, b the binary row of the
    incidence matrix. A row's distance to a centre is a sum over its m labels: no matrix of n rows is formed. Missing
    labels add nothing, to a distance or to a centre.

    Parameters
    ----------
    n_clusters : int
        k.
    n_components : int, optional
        rd: cluster a sparse random projection of the rows on so many components instead (SECRP).
    n_init : int
        k-means++ starts; five partitions of the bipartite cut are added. They are compared on a sample of 16,384
        rows, 512 k if that is more (on all rows when there are no more than twice as many); the best five are improved
        there by exchanges of single rows, and the one with the lowest objective goes on. With `n_components` every
        start has a random projection of its own, and the one whose partition of the sample has the lowest objective
        without projection goes on.
    max_iter : int
        Lloyd passes over all rows, at most.
    tol : float
        Stop when a pass lowers the objective by no more than this share of it; with 0, when nothing changes.
    random_state : int, numpy RandomState or Generator, or None
    storage : path, optional
        Named store for the products of the stages: a killed run continues there. See `USPEC`.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input. Clusters are numbered by their first row; -1 for rows
        without labels.
    agreement_ : (n,) float32
        As in `BipartiteCut`.
    n_clusters_ : int
        k, or fewer (with a `FewerClustersWarning`) when the base clusterings do not tell more apart.
    objective_ : float
        ``sum_x w |b/w - m|^2`` of the partition and its own centres, over the labels that are there; for SECRP too.
    history_ : (n_iter_,) float64
        The objective of every pass, with the centres that it started from; it never rises. For SECRP its last value
        only, in the projection.
    cluster_centers_ : (n_clusters_, c) or (n_clusters_, rd) float64
        Centres m_k: of base cluster j, the rows in both over the weights of the cluster's rows.
    base_cluster_sizes_ : (c,) int64
        Rows of each base cluster, those of the first base clustering first.
    n_iter_ : int
        Lloyd passes over all rows.
    n_features_in_ : int
        m.

    Raises
    ------
    ValueError
        In `fit`: if a parameter is not acceptable, or a label is no whole number >= -1 (its place is named).

    Notes
    -----
    Liu, Liu, Wu, Tao, Fu, KDD 2015 (sec_2015): Theorem 1, Theorem 5 for missing labels. SECRP: Algorithm 2 of
    fast_csc_and_secrp_2017, with the projection of its eq. (10). Departures: the starts, see `n_init`; a cluster that
    loses all its rows keeps its centre; with missing labels a projected row has zeros there, and they count; of
    several projections the one that serves best is kept.
    A Lloyd pass costs m k additions a row, SECRP's m rd + rd k operations: with tables instead of a dense B the
    projection is the faster one for few components and many clusters only, and it costs quality.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> base = np.array([[0, 5, 7], [0, 5, 7], [0, 5, -1], [3, 8, 7], [3, 8, 2], [3, 8, 2]])
    >>> dc.SEC(n_clusters=2, random_state=0).fit_predict(base)
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """

    _fitted_names = (
        *Consensus._book_names,
        "objective_",
        "history_",
        "cluster_centers_",
        "n_iter_",
        "_matrix",
        "_mean_weight",
    )

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        n_init: int = 20,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_components is not None:
            check_integer("n_components", self.n_components, 1)
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)
        check_real("tol", self.tol, 0.0)

    def _solve(self, codes: da.Array, found: LabelScan, boundary: Boundary, progress: Progress) -> None:
        book, seed = found.book, boundary.seed
        self._mean_weight = float((book.sizes.astype(np.float64) ** 2).sum()) / found.n_labelled
        self._matrix = np.empty((0, 0), np.float32)
        with progress.stage("starts"):
            best = boundary.small("starts", lambda: self._starts(codes, found, seed))
            starts = best["centers"]
        if self.n_components is not None:
            self._matrix = projection_of(book, self.n_components, seed, int(best["number"]))
        with progress.stage("Lloyd passes"):
            lloyd = self._lloyd if self.n_components is None else self._lloyd_projected
            made = boundary.small("consensus", lambda: lloyd(codes, found, starts))
        self.cluster_centers_ = made["centers"]
        self.n_clusters_ = len(made["centers"])
        self.history_ = np.atleast_1d(made["history"])
        self.n_iter_ = int(made["n_iter"])

    def _starts(self, codes: da.Array, found: LabelScan, seed: int) -> dict[str, Any]:
        """Centres on a sample: the best of k-means++ and the bipartite cut; and the number of the projection."""
        k, book = self.n_clusters, found.book
        sample = draw_labelled(codes, found.labelled, start_size(k, found.n_labelled), stream(seed, "consensus sample"))
        cuts = self._cut_partitions(sample, book, seed)
        starts: list[tuple[int, NDArray[np.int32] | None]] = [(number, None) for number in range(self.n_init)]
        starts += [(self.n_init + number, cut) for number, cut in enumerate(cuts)]
        shared = {"sample": sample, "book": book, "n_clusters": k, "seed": seed, "max_iter": self.max_iter}
        if self.n_components is not None:
            weights = compute(row_weights(da.from_array(sample, name=False), book, self._mean_weight))[0]
            shared |= {"weights": weights, "mean_weight": self._mean_weight, "n_components": self.n_components}
            return min(beside(run_projected, "dc-start", starts, **shared), key=itemgetter("objective"))
        runs = beside(run_start, "dc-start", starts, **shared)
        best = sorted(runs, key=attrgetter("objective"))[:EXCHANGED]
        better = beside(run_exchanges, "dc-exchange", [(run,) for run in best], **shared)
        return {"centers": min(better, key=attrgetter("objective")).centers}

    def _cut_partitions(self, sample: NDArray[Any], book: LabelBook, seed: int) -> list[NDArray[np.int32]]:
        """Bipartite cuts of the sample, as labels; none where the cut would not fit into memory."""
        need = cut_bytes(book.n_base_clusters, 1)
        if need > SMALL_BYTES and need > memory_limit() // 4:
            return []
        graph = incidence_graph(da.from_array(sample, chunks=sample.shape, name=False), book)
        cut = transfer_cut(graph, self.n_clusters)
        points, _ = LiftedRows(graph.edges_of, cut.vectors)(sample)
        rngs = [stream(seed, "cut starts", number) for number in range(CUT_STARTS)]
        starts = [center_starts(points, self.n_clusters, rng) for rng in rngs]
        return [lloyd_in_memory(points, start, max_iter=self.max_iter)[1] for start in starts]

    def _lloyd(self, codes: da.Array, found: LabelScan, starts: NDArray[np.float64]) -> dict[str, Any]:
        run = lloyd_incidence(codes, found.book, starts, max_iter=self.max_iter, tol=self.tol)
        return {"centers": run.centers, "history": run.history, "n_iter": len(run.history)}

    def _lloyd_projected(self, codes: da.Array, found: LabelScan, starts: NDArray[np.float64]) -> dict[str, Any]:
        book = found.book
        weights = row_weights(codes, book, self._mean_weight)
        spread = float((starts**2).sum(axis=1).mean())
        run = lloyd_over_blocks(
            codes, self._projected(book), starts, weights, max_iter=self.max_iter, limit=self.tol * spread
        )
        return {"centers": run.centers, "history": np.array([run.inertia / self._mean_weight]), "n_iter": run.n_iter}

    def _finish(self, sums: dict[str, Any], book: LabelBook) -> None:
        self.objective_ = objective_of(sums["counts"], sums["masses"], float(sums["constant"]), book)

    def _projected(self, book: LabelBook) -> ProjectedRows:
        return ProjectedRows(book, self._matrix, self._mean_weight)

    def _labels_of(self) -> LabelsOf:
        if self.n_components is None:
            return NearestCenter(self._book, self.cluster_centers_)
        return partial(assign_block, points=self._projected(self._book), centers=self.cluster_centers_)

    def _points_of(self) -> Any:
        if self.n_components is None:
            return NearestCenter(self._book, self.cluster_centers_).distances
        return partial(projected_distances, points=self._projected(self._book), centers=self.cluster_centers_)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def transform(self, X: ArrayInput) -> Any:
        """Distances to the cluster centres.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)

        Returns
        -------
        (n, n_clusters_) float64
            ``|b/w - m_k|`` over the labels that are there, in the projection with `n_components`; NaN for rows without.
        """
        return super().transform(X)

    def _stages(self, rows: Rows, n_base_clusters: int) -> list[StagePlan]:
        n, m, blocks = rows.n_samples, rows.n_features, rows.blocks.numblocks[0]
        block, k, per_pass = min(rows.block_rows, n), self.n_clusters, tree_tasks(blocks)
        drawn, width = start_size(k, n), k + 8
        if self.n_components is not None:
            width = self.n_components
        task, _ = self._small_bytes(n_base_clusters)
        cut = cut_bytes(n_base_clusters, 1)
        return [
            StagePlan("starts", 1, 2 * per_pass, n * m, 0, max(cut // 2, drawn * (m + 8 * width + 40) + 3 * task)),
            StagePlan(
                "Lloyd passes",
                LIKELY_ITER,
                LIKELY_ITER * 2 * per_pass,
                LIKELY_ITER * n * m,
                0,
                block * m + 2**13 * 12 * width + 2 * task,
            ),
        ]


def projection_of(book: LabelBook, n_components: int, seed: int, number: int) -> NDArray[np.float32]:
    """The random projection (c, rd) of this number."""
    return projection_matrix(book.n_base_clusters, strips_of(n_components), stream(seed, "projection", number))


def run_projected(
    number: int,
    cut: NDArray[np.int32] | None,
    sample: NDArray[Any],
    book: LabelBook,
    n_clusters: int,
    seed: int,
    max_iter: int,
    weights: NDArray[np.float64],
    mean_weight: float,
    n_components: int,
) -> dict[str, Any]:
    """As `run_start`, in the projection of this number; its centres there, and the objective without projection."""
    points, _ = ProjectedRows(book, projection_of(book, n_components, seed, number), mean_weight)(sample)
    if cut is None:
        starts = center_starts(points, n_clusters, stream(seed, "starts", number), weights)
    else:
        starts = np.zeros((int(cut.max()) + 1, points.shape[1]))
        np.add.at(starts, cut, points * weights[:, None])
        starts /= np.bincount(cut, weights)[:, None]
    run, labels = lloyd_in_memory(points, starts, weights, max_iter=max_iter)
    objective = partition_objective(sample, book, labels, len(run.centers))
    return {"objective": objective, "number": number, "centers": run.centers}


def run_start(
    number: int,
    cut: NDArray[np.int32] | None,
    sample: NDArray[Any],
    book: LabelBook,
    n_clusters: int,
    seed: int,
    max_iter: int,
) -> IncidenceCenters:
    """Lloyd's iteration on a sample of codes from the k-means++ start of this number, or else from a partition."""
    if cut is None:
        centers = start_rows(sample, book, n_clusters, stream(seed, "starts", number))
    else:
        centers = partition_centers(sample, book, cut, int(cut.max()) + 1)
    return lloyd_sample(sample, book, centers, max_iter=max_iter, tol=START_TOL)


def run_exchanges(
    run: IncidenceCenters, sample: NDArray[Any], book: LabelBook, n_clusters: int, seed: int, max_iter: int
) -> IncidenceCenters:
    """Exchanges on a sample of codes from where a run of Lloyd's iteration ended."""
    return exchange_sample(sample, book, run.centers, max_iter=max_iter)


def projected_distances(
    codes: NDArray[Any], points: ProjectedRows, centers: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Euclidean distances of the projected rows of a block of codes to the centres; NaN for rows without labels."""
    values, rows = points(codes)
    distances = np.sqrt(sqdist_to_centers(values, centers)) / points.mean_weight
    if rows is None:
        return distances
    every = np.full((len(codes), len(centers)), np.nan)
    every[rows] = distances
    return every


class LabelsOfRows:
    """Block of codes -> the labels that such rows have; a picklable callable.

    Parameters
    ----------
    codes : (n, m) int
    labels : (n,) int32
        Equal rows get the label of the first of them; a row that is not there gets -1.
    """

    def __init__(self, codes: NDArray[Any], labels: NDArray[np.int32]) -> None:
        self.labels: dict[bytes, int] = {}
        for row, label in zip(codes, labels, strict=True):
            self.labels.setdefault(row.tobytes(), int(label))

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """Label a block."""
        return np.array([self.labels.get(row.tobytes(), -1) for row in codes], np.int32)


@where_it_predicts
class ISEC(Consensus):
    """Consensus by a low-rank representation of the co-association matrix, learned together with the partition.

    Robust against noise in the base clusterings, and O(n^3): exact for thousands of rows. With `n_representatives` it
    learns on so many rows, and the others follow through their base clusters.

    Parameters
    ----------
    n_clusters : int
        k.
    n_representatives : int, optional
        p: learn on p random rows, or on all where there are fewer, and label by base clusters. None learns on all, and
        has no `predict` and no `transform`.
    partition : {"H", "Z"}
        What is clustered at the end: the partition matrix H, or the spectral embedding of the representation Z.
    lambda_1, lambda_2 : float
        Weights of the rank of Z, and of the noise E.
    n_init : int
        k-means++ starts at the end.
    max_iter : int
        Rounds of the Lagrange multiplier method, and Lloyd passes, at most.
    tol : float
        Stop when the relative error ``|S - S Z - E| / |S|`` is below this.
    random_state : int, numpy RandomState or Generator, or None
    storage : path, optional
        Named store for the products of the stages: a killed run continues there. See `USPEC`.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input. Clusters are numbered by their first row; -1 for rows
        without labels.
    agreement_ : (n,) float32
        As in `BipartiteCut`.
    history_ : (n_iter_,) float64
        The relative error after every round.
    n_iter_ : int
        Rounds.
    n_clusters_ : int
        k, or fewer (with a `FewerClustersWarning`) when the base clusterings do not tell more apart.
    embedding_ : (n or p, k) float64
        What was clustered, at unit length: the rows that it learned on, in their order.
    base_cluster_sizes_ : (c,) int64
        Rows of each base cluster, those of the first base clustering first.
    n_features_in_ : int
        m.

    Raises
    ------
    ValueError
        In `fit`: if a parameter is not acceptable, or a label is no whole number >= -1 (its place is named).
    MemoryError
        In `fit`, after one pass that counts the labelled rows: if the matrices of so many need more than half of the
        memory.

    Notes
    -----
    Tong and Wu, 2020 (isec_2020), eq. (5) to (17), by augmented Lagrange multipliers. Departures, described in
    `ensemble.lowrank.low_rank_representation`: degrees from absolute values. Rows with equal labels are averaged, and
    scaled to unit length before the final k-means, which the paper does not say.

    The version with representatives is of this package: each base cluster gets the mean of the rows of H (or of Z's
    embedding) that belong to it, and each row the mean over its base clusters, at unit length, which k-means clusters.
    Base clusters without a representative do not count. Only this version labels new rows.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> base = np.array([[0, 5, 7], [0, 5, 7], [0, 5, -1], [3, 8, 7], [3, 8, 2], [3, 8, 2]])
    >>> dc.ISEC(n_clusters=2, random_state=0).fit_predict(base)
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """

    _points_dtype = np.float32
    _fitted_names = (*Consensus._book_names, "history_", "n_iter_", "embedding_", "cluster_centers_", "_vectors")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_representatives: int | None = None,
        partition: str = "H",
        lambda_1: float = 0.1,
        lambda_2: float = 0.01,
        n_init: int = 10,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_representatives = n_representatives
        self.partition = partition
        self.lambda_1 = lambda_1
        self.lambda_2 = lambda_2
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_representatives is not None:
            check_integer("n_representatives", self.n_representatives, self.n_clusters)
        check_option("partition", self.partition, PARTITIONS)
        check_real("lambda_1", self.lambda_1, 0.0)
        check_real("lambda_2", self.lambda_2, 0.0)
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)
        check_real("tol", self.tol, 0.0)

    def _check_size(self, n_labelled: int) -> None:
        p = n_labelled if self.n_representatives is None else min(self.n_representatives, n_labelled)
        need = low_rank_bytes(p)
        if need > SMALL_BYTES and need > memory_limit() // 2:
            raise MemoryError(
                f"ISEC on {p} rows needs {need / 2**30:.1f} GiB, more than half of the memory "
                f"({memory_limit() / 2**30:.1f} GiB): give n_representatives, at most "
                f"{int(p * np.sqrt(memory_limit() / 2 / need))} here"
            )

    def _warn(self) -> None:
        super()._warn()
        if self.history_[-1] >= self.tol > 0:
            warn_user(
                f"ISEC did not converge in max_iter={self.max_iter} rounds: the relative error is "
                f"{self.history_[-1]:.1e}, not below tol={self.tol:g}",
                ConvergenceWarning,
            )

    def _fit_labels(
        self, rows: Rows, found: LabelScan, boundary: Boundary, progress: Progress
    ) -> tuple[da.Array, da.Array]:
        lazy = super()._fit_labels(rows, found, boundary, progress)
        if hasattr(self, "_lookup"):
            del self._lookup
        return lazy

    def _solve(self, codes: da.Array, found: LabelScan, boundary: Boundary, progress: Progress) -> None:
        book, seed, k = found.book, boundary.seed, self.n_clusters
        p = found.n_labelled if self.n_representatives is None else self.n_representatives
        learned = draw_labelled(codes, found.labelled, p, stream(seed, "learned rows"))
        with progress.stage("low-rank representation"):
            made = boundary.small("low-rank", lambda: self._learn(learned, book))
        self.history_, self.embedding_ = np.atleast_1d(made["history"]), made["embedding"]
        self.n_iter_ = len(self.history_)
        vectors = mean_by_cluster(learned, book, self.embedding_)
        with progress.stage("discretize"):
            if self.n_representatives is not None:
                self._vectors = vectors
                points = LiftedRows(partial(incidence_edges, offsets=book.offsets), vectors)
                sample = draw_labelled(codes, found.labelled, sample_size(k), stream(seed, "consensus sample"))
                made = boundary.small("consensus", lambda: self._discretize(codes, points, points(sample)[0], seed))
                self.cluster_centers_ = made["centers"]
            else:
                self._vectors = np.empty((0, k))
                best: tuple[Centers, NDArray[np.int32]] | None = None
                for number in range(self.n_init):
                    starts = center_starts(self.embedding_, k, stream(seed, "discretize", number))
                    run = lloyd_in_memory(self.embedding_, starts, max_iter=self.max_iter)
                    if best is None or run[0].inertia < best[0].inertia:
                        best = run
                assert best is not None
                self.cluster_centers_ = best[0].centers
                self._lookup = LabelsOfRows(learned, best[1])
        self.n_clusters_ = len(self.cluster_centers_)

    def _learn(self, learned: NDArray[Any], book: LabelBook) -> dict[str, Any]:
        found = low_rank_representation(
            co_association(learned, book),
            self.n_clusters,
            lambda_1=self.lambda_1,
            lambda_2=self.lambda_2,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        rows = found.partition if self.partition == "H" else spectral_rows(found.representation, self.n_clusters)
        # Rows with equal labels are one: vectors of repeated eigenvalues may tell them apart, by rounding.
        _, same = np.unique(learned, axis=0, return_inverse=True)
        same = same.ravel()
        sums = np.zeros((int(same.max()) + 1, rows.shape[1]))
        np.add.at(sums, same, rows)
        return {"history": found.history, "embedding": unit_rows((sums / np.bincount(same)[:, None])[same])}

    def _discretize(
        self, codes: da.Array, points: LiftedRows, sample: NDArray[np.floating], seed: int
    ) -> dict[str, Any]:
        found = discretize(
            codes, points, sample, self.n_clusters, n_init=self.n_init, max_iter=self.max_iter, seed=seed
        )
        return {"centers": found.centers}

    @property
    def _predicts(self) -> bool:  # type: ignore[override]
        return len(self._vectors) > 0 if hasattr(self, "_vectors") else self.n_representatives is not None

    def _check_predicts(self) -> None:
        if not self._predicts:
            raise AttributeError("this ISEC learns on all rows and has no rule for new ones: give n_representatives")

    @property
    def _lifted(self) -> LiftedRows:
        return LiftedRows(partial(incidence_edges, offsets=self._offsets), self._vectors)

    def _labels_of(self) -> LabelsOf:
        if self._predicts:
            return partial(assign_block, points=self._lifted, centers=self.cluster_centers_)
        return self._lookup

    def _points_of(self) -> Any:
        return partial(embed_block, points=self._lifted)

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters

    def transform(self, X: ArrayInput) -> Any:
        """Embed rows by their base clusterings; with `n_representatives` only.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)

        Returns
        -------
        (n, k) float32
            Means over the row's base clusters, at unit length; NaN for rows without labels.
        """
        return super().transform(X)

    def _stages(self, rows: Rows, n_base_clusters: int) -> list[StagePlan]:
        n, m, blocks = rows.n_samples, rows.n_features, rows.blocks.numblocks[0]
        p = n if self.n_representatives is None else min(self.n_representatives, n)
        per_pass = tree_tasks(blocks)
        stages = [
            StagePlan("low-rank representation", 1, blocks, n * m, 0, low_rank_bytes(p) + 4 * p * n_base_clusters)
        ]
        if self.n_representatives is not None:
            task = min(rows.block_rows, n) * m + 2**13 * (9 * m + 8 * self.n_clusters)
            stages.append(
                StagePlan("discretize", LIKELY_ITER, LIKELY_ITER * 2 * per_pass, LIKELY_ITER * n * m, 0, task)
            )
        return stages
