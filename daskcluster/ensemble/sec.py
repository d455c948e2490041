"""Base clusterings -> spectral ensemble clustering: its starts on a sample, then Lloyd passes over all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pipeline.cut import transfer_cut
from ..pipeline.kmeans import center_starts, sample_size
from ..pipeline.lift import LiftedRows
from ..pipeline.lloyd import lloyd_in_memory
from ..runtime.execution import FAN_IN, beside, map_rows
from ..runtime.forecast import Cost, Sizes
from ..runtime.limits import memory_limit
from ..runtime.pieces import array_pieces
from ..runtime.seeding import stream
from ..runtime.stages import Run, Stage
from ..validation import check_integer, check_real
from .bipartite import SMALL_BYTES, cut_bytes
from .incidence import Coded, LabelBook, incidence_graph, row_weights
from .projected_kmeans import PRODUCT_ROWS, lloyd_projected
from .projected_starts import find_projected_start
from .projection import ProjectedRows, integers_of
from .weighted_kmeans import (
    IncidenceCenters,
    Means,
    exchange_sample,
    lloyd_incidence,
    lloyd_sample,
    partition_centers,
    start_rows,
)

__all__ = ["EXCHANGED", "START_TOL", "SECPasses", "SECStarts", "mean_weight", "start_size"]

#: Partitions of the bipartite cut among the starts.
CUT_STARTS = 5
#: Starts that go through exchanges of single rows.
EXCHANGED = 5
#: Which starts these are is plain before they have come to rest: when a pass gains no more than this share.
START_TOL = 1e-3
#: Passes over all rows that a forecast assumes.
LIKELY_ITER = 10


def mean_weight(coded: Coded) -> float:
    """Mean of the rows' weights, the row sums of the co-association matrix."""
    return float((coded.book.sizes.astype(np.float64) ** 2).sum()) / coded.n_labelled


@dataclass(frozen=True)
class SECStarts(Stage):
    """Where the passes start: the best of k-means++ and the bipartite cut on a sample; of k-means++ in a projection.

    Attributes
    ----------
    n_clusters : int
    n_components : int or None
        Of the random projections.
    max_iter, n_init : int
    """

    title = "starts"
    n_clusters: int
    n_components: int | None
    max_iter: int
    n_init: int

    def check(self) -> None:
        """Refuse counts below 1."""
        if self.n_components is not None:
            check_integer("n_components", self.n_components, 1)
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)

    def __call__(self, run: Run, coded: Coded) -> tuple[NDArray[np.float64], int]:
        """Centres (k', c) or (k', rd), and the number of the projection in which they are."""
        best = run.products.small("starts", lambda: self._find(coded, run.seed))
        return np.asarray(best["centers"]), int(best.get("number", 0))

    def _find(self, coded: Coded, seed: int) -> dict[str, Any]:
        k, book = self.n_clusters, coded.book
        sample = coded.draw(start_size(k, coded.n_labelled), stream(seed, "consensus sample"))
        if self.n_components is not None:
            return find_projected_start(
                sample, book, k, self.n_components, self.n_init, self.max_iter, seed, mean_weight(coded)
            )
        shared = {"sample": sample, "book": book, "n_clusters": k, "seed": seed, "max_iter": self.max_iter}
        cuts = self._cut_partitions(sample, book, seed)
        starts: list[tuple[int, NDArray[np.int32] | None]] = [(number, None) for number in range(self.n_init)]
        starts += [(self.n_init + number, cut) for number, cut in enumerate(cuts)]
        runs = beside(run_start, "dc-start", starts, **shared)
        best = sorted(runs, key=attrgetter("objective"))[:EXCHANGED]
        better = beside(run_exchanges, "dc-exchanges", [(run,) for run in best], **shared)
        return {"centers": min(better, key=attrgetter("objective")).centers}

    def _cut_partitions(self, sample: NDArray[Any], book: LabelBook, seed: int) -> list[NDArray[np.int32]]:
        """Bipartite cuts of the sample, as labels; none where the cut would not fit into memory."""
        need = cut_bytes(book.n_base_clusters, 1)
        if need > SMALL_BYTES and need > memory_limit() // 4:
            return []
        graph = incidence_graph(array_pieces(sample, sample.shape, "sample"), book)
        cut = transfer_cut(graph, self.n_clusters)
        points, _ = LiftedRows(graph.edges_of, cut.vectors)(sample)
        rngs = [stream(seed, "cut starts", number) for number in range(CUT_STARTS)]
        starts = [center_starts(points, self.n_clusters, rng) for rng in rngs]
        return [lloyd_in_memory(points, start, max_iter=self.max_iter)[1] for start in starts]

    def cost(self, sizes: Sizes) -> Cost:
        """One pass for the sample; then starts run beside each other on it, without projection after its cut."""
        drawn, k = start_size(self.n_clusters, sizes.n_samples), self.n_clusters
        if self.n_components is None:
            width, cut = k + 8, cut_bytes(sizes.n_right, 1) // 2
            row = sizes.held_bytes + 8 * width + 40
        else:  # at most three projections of the sample, or the k-means++ of a part of it
            width, cut = self.n_components + k, 0
            row = sizes.held_bytes + 3 * self.n_components * integers_of(sizes.n_edges).itemsize + 8 * width + 64
        tables = 8 * sizes.n_right * 3 * (width + 8)
        return sizes.over_held(drawn * row + tables, eager_bytes=cut + drawn * sizes.held_bytes * 2)

    @property
    def kept(self) -> tuple[str, ...]:
        """The starts."""
        return ("starts",)


@dataclass(frozen=True)
class SECPasses(Stage):
    """Lloyd passes over all rows, without or in a projection.

    Attributes
    ----------
    n_clusters : int
    n_components : int or None
    max_iter : int
    tol : float
    """

    title = "Lloyd passes"
    n_clusters: int
    n_components: int | None
    max_iter: int
    tol: float

    def check(self) -> None:
        """Refuse a negative tolerance."""
        check_real("tol", self.tol, 0.0)

    def __call__(
        self, run: Run, coded: Coded, starts: NDArray[np.float64], matrix: NDArray[np.float32]
    ) -> dict[str, Any]:
        """``centers``, ``history`` and ``n_iter``; `matrix` is the projection (c, rd)."""
        if self.n_components is None:
            return run.products.small("consensus", lambda: self._find(coded, starts))
        return run.products.small("consensus", lambda: self._find_projected(run, coded, starts, matrix))

    def _find(self, coded: Coded, starts: NDArray[np.float64]) -> dict[str, Any]:
        options: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "n_clusters": self.n_clusters}
        options["means"] = self._means(coded.book)
        found = lloyd_incidence(coded.codes, coded.book, starts, **options)
        return {"centers": found.centers, "history": found.history, "n_iter": len(found.history)}

    def _means(self, book: LabelBook) -> Means:
        """The kind of k-means."""
        return Means(book)

    def _find_projected(
        self, run: Run, coded: Coded, starts: NDArray[np.float64], matrix: NDArray[np.float32]
    ) -> dict[str, Any]:
        unit = mean_weight(coded)
        points = ProjectedRows(coded.book, matrix, unit)
        lazy = map_rows(points, coded.codes, name="dc-project", columns=points.n_components, dtype=points.dtype)
        projected, _ = run.products.rows("projected", lazy)
        weights, _ = run.products.rows("weights", row_weights(coded.codes, coded.book))
        limit = self.tol * float((starts**2).sum(axis=1).mean())
        options: dict[str, Any] = {"max_iter": self.max_iter, "limit": limit, "n_clusters": self.n_clusters}
        found = lloyd_projected(projected, weights, points, starts, **options)
        return {"centers": found.centers, "history": np.array([found.inertia / unit]), "n_iter": found.n_iter}

    def cost(self, sizes: Sizes) -> Cost:
        """`LIKELY_ITER` passes over the codes; a task has sums of c k numbers, and combines some of them.

        With a projection, two over the codes and these over the projected rows, with sums of rd k numbers.
        """
        if self.n_components is not None:
            return self._projected_cost(sizes, self.n_components)
        width = self.n_clusters + 8
        tables = 8 * sizes.n_right * (width + 8)
        task = sizes.block_rows * 16 + sizes.tile_rows * 12 * width + (FAN_IN + 2) * tables
        return sizes.over_held(task, times=LIKELY_ITER, small_bytes=3 * tables)

    def _projected_cost(self, sizes: Sizes, n_components: int) -> Cost:
        row = n_components * integers_of(sizes.n_edges).itemsize
        matrix = 6 * sizes.n_right * n_components
        held = (sizes.n_samples * row, 8 * sizes.n_samples)
        made = sizes.over_held(
            sizes.block_rows * (row + 8), times=2, held=held, written_bytes=sum(held), small_bytes=matrix
        )
        sums = 8 * self.n_clusters * (2 * n_components + 4)
        tile = sizes.tile_rows * (16 * n_components + 24) + 4 * PRODUCT_ROWS * (n_components + self.n_clusters)
        passes = replace(sizes, held_bytes=row + 8).over_held(tile + (FAN_IN + 2) * sums, times=LIKELY_ITER)
        return made + passes

    @property
    def kept(self) -> tuple[str, ...]:
        """Centres and history; for SECRP the projected rows and their weights too."""
        return ("consensus",) if self.n_components is None else ("projected", "weights", "consensus")


def start_size(n_clusters: int, n_labelled: int) -> int:
    """Rows of the sample on which the starts are chosen: all of them up to twice as many as a sample has."""
    drawn = sample_size(n_clusters)
    return n_labelled if n_labelled <= 2 * drawn else drawn


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
