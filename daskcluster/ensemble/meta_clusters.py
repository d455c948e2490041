"""Base clusters -> meta-clusters of them by random walks over their similarities (ECPCS-MC), and the rows' votes.

All but two passes over the codes is eager work on matrices of c by c numbers, c the number of base clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.label_sums import least_sums, lloyd_sums, sum_labels
from ..linalg import largest_eigenpairs
from ..pipeline.kmeans import center_starts
from ..pipeline.lloyd import best_of_starts
from ..pipeline.parts import LEAST_LINK, parts_of, without_specks
from ..runtime.execution import FAN_IN, add_parts
from ..runtime.forecast import Cost, Sizes
from ..runtime.passes import reduced
from ..runtime.seeding import stream
from ..runtime.stages import Run, Stage
from ..runtime.threads import one_blas_thread
from ..validation import check_integer
from .bipartite import check_pairs_size
from .incidence import Coded, LabelBook
from .overlaps import overlap_bytes, overlaps, overlaps_cost, shared_rows

__all__ = ["MetaClusters", "Votes", "Voting", "jaccard", "meta_clusters", "propagated"]

#: Matrices (c, c) float64 at the peak of the random walk and of the cut.
N_MATRICES = 8


@dataclass(frozen=True)
class MetaClusters(Stage):
    """Clusters of base clusters.

    Attributes
    ----------
    n_clusters, n_steps, n_init, max_iter : int
    """

    title = "meta-clusters"
    n_clusters: int
    n_steps: int
    n_init: int
    max_iter: int

    def check(self) -> None:
        """Refuse counts below 1."""
        check_integer("n_steps", self.n_steps, 1)
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)

    def __call__(self, run: Run, coded: Coded) -> NDArray[np.int32]:
        """Meta-cluster of each base cluster (c,)."""
        return np.asarray(run.products.small("meta", lambda: {"meta": self._find(coded, run.seed)})["meta"])

    def _find(self, coded: Coded, seed: int) -> NDArray[np.int32]:
        c = coded.book.n_base_clusters
        check_pairs_size("ECPCS", c, overlap_bytes(c, coded.codes.numblocks[0], N_MATRICES))
        similarities = propagated(jaccard(overlaps(coded.codes, coded.book), coded.book), self.n_steps)
        return meta_clusters(similarities, self.n_clusters, n_init=self.n_init, max_iter=self.max_iter, seed=seed)

    def cost(self, sizes: Sizes) -> Cost:
        """One pass; then the matrices."""
        return overlaps_cost(sizes, N_MATRICES)

    @property
    def kept(self) -> tuple[str, ...]:
        """The meta-clusters."""
        return ("meta",)


def jaccard(counts: NDArray[np.float64], book: LabelBook) -> NDArray[np.float64]:
    """Jaccard similarity of base clusters (c, c): the rows that two share over those that either has.

    With missing labels only rows that both base clusterings label count, for both numbers.
    """
    # Of base cluster i the rows that the base clustering of j labels.
    sizes = np.repeat(shared_rows(counts, book), np.diff(book.offsets), axis=1)
    either = sizes + sizes.T - counts
    return np.divide(counts, either, out=np.zeros_like(counts), where=either > 0)


def propagated(similarities: NDArray[Any], n_steps: int) -> NDArray[Any]:
    """Cosines (c, c) of the trajectories of random walks that start at the vertices.

    Parameters
    ----------
    similarities : (c, c) float64 or float32
        Links of a vertex a row; the diagonal is not read. Overwritten.
    n_steps : int
        t. A trajectory is the distributions after 1 to t steps, one after the other.

    Notes
    -----
    With P the transition probabilities the products of all trajectories are G_t = sum_s P^s (P^s)^T, s from 1 to t; by
    G_2t = G_t + P^t G_t (P^t)^T and G_(t+1) = P (I + G_t) P^T they take some 3 products of matrices for each binary
    digit of t. A vertex without links is at a cosine of 1 with itself and 0 with all others.
    """
    np.fill_diagonal(similarities, 0.0)
    degrees = similarities.sum(axis=1, keepdims=True)
    step = np.divide(similarities, degrees, out=similarities, where=degrees > 0)
    with one_blas_thread():
        first = step @ step.T
        products, walk = first, step
        digits = f"{n_steps:b}"[1:]
        for place, digit in enumerate(digits, 1):
            products = products + walk @ products @ walk.T
            if digit == "1":
                products = first + step @ products @ step.T
            if place < len(digits):
                walk = walk @ walk
                walk = walk @ step if digit == "1" else walk
    lengths = np.sqrt(np.diag(products))[:, None]
    np.divide(products, lengths, out=products, where=lengths > 0)
    np.divide(products, lengths.T, out=products, where=lengths.T > 0)
    np.fill_diagonal(products, 1.0)
    return products


def meta_clusters(
    similarities: NDArray[np.float64], n_clusters: int, *, n_init: int, max_iter: int, seed: int
) -> NDArray[np.int32]:
    """Normalized cut of base clusters by their similarities (c, c): the meta-cluster of each (c,) int32.

    Parts of the graph that are next to nothing are left out while there are too many, as in `transfer_cut`; they join
    the meta-cluster of the most base clusters.
    """
    degrees = similarities.sum(axis=1)
    roots = np.sqrt(degrees)
    symmetric = similarities / roots[:, None] / roots
    large = np.flatnonzero(without_specks(parts_of(symmetric > LEAST_LINK), degrees, n_clusters))
    _, vectors = largest_eigenpairs(symmetric[np.ix_(large, large)], min(n_clusters, len(large)))
    points = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    starts = (center_starts(points, n_clusters, stream(seed, "meta-clusters", number)) for number in range(n_init))
    _, labels = best_of_starts(points, starts, max_iter=max_iter)
    meta = np.full(len(similarities), np.bincount(labels).argmax(), np.int32)
    meta[large] = labels
    return meta


class Votes:
    """Block of codes -> the meta-cluster that has the largest share of its base clusters at a row; picklable.

    Parameters
    ----------
    book : LabelBook
    meta : (c,) int32
        Meta-cluster of each base cluster.
    taken : (k',) int
        Meta-clusters that can win a row, label 0 first; None for all.

    Notes
    -----
    Of equal shares the meta-cluster with the smallest number wins, however labels are numbered.
    """

    def __init__(self, book: LabelBook, meta: NDArray[np.int32], taken: NDArray[np.int64] | None = None) -> None:
        n_meta = int(meta.max()) + 1
        self.offsets = book.offsets
        self.taken = np.arange(n_meta) if taken is None else taken
        sizes = np.bincount(meta, minlength=n_meta)
        table = np.zeros((book.n_base_clusters, n_meta))
        table[np.arange(len(meta)), meta] = -1.0 / sizes[meta]  # the largest share is the smallest sum
        order = np.sort(self.taken)
        self.table = np.ascontiguousarray(table[:, order])
        self.names = np.argsort(self.taken).astype(np.int32)

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """Label a block; -1 for rows without labels."""
        columns = least_sums(codes, self.offsets, self.table)
        return np.where(columns >= 0, self.names[columns], np.int32(-1))

    def shares(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Shares (n, k') of the rows of a block, one column a label; NaN for rows without labels."""
        return 0.0 - sum_labels(codes, self.offsets, self.table)[:, np.argsort(self.names)]


@dataclass(frozen=True)
class Voting(Stage):
    """Which meta-clusters win rows, and which row each wins first.

    Attributes
    ----------
    n_clusters : int
    """

    title = "voting"
    n_clusters: int

    def __call__(self, run: Run, coded: Coded, meta: NDArray[np.int32]) -> NDArray[np.int64]:
        """Meta-clusters that win a row, in the order of their first one (k',)."""
        made = run.products.small("votes", lambda: {"taken": _taken(coded, Votes(coded.book, meta))})
        return np.asarray(made["taken"])

    def cost(self, sizes: Sizes) -> Cost:
        """One pass."""
        sums = 8 * sizes.n_right * self.n_clusters
        return sizes.over_held((FAN_IN + 2) * sums, small_bytes=4 * sums)

    @property
    def kept(self) -> tuple[str, ...]:
        """The meta-clusters that win a row."""
        return ("votes",)


def _taken(coded: Coded, votes: Votes) -> NDArray[np.int64]:
    codes: da.Array = coded.codes
    found = reduced(partial(_vote_block, votes=votes), add_parts, codes, name="dc-vote")
    first = found["first"]
    taken = np.flatnonzero(first >= 0)
    return taken[np.argsort(first[taken], kind="stable")]


def _vote_block(block: NDArray[Any], votes: Votes) -> dict[str, Any]:
    first = np.full(votes.table.shape[1], len(block), np.int64)
    lloyd_sums(block, votes.offsets, votes.table, np.zeros(votes.table.shape, np.int64), first)
    return {"rows": len(block), "first": np.where(first < len(block), first, -1)}
