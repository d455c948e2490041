"""Incidence -> weighted k-means on its rows b(x)/w: spectral ensemble clustering (SEC).

Theorem 1 of sec_2015: the normalized cut of the co-association matrix S = B B^T is the weighted k-means of the rows b/w
with the weights w = S 1. Neither S nor B is formed: a row is its m labels, and its distance to a centre is a sum of m
entries of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.incidence import (
    PAD_CLUSTERS,
    assign_labels,
    count_together,
    exchange_labels,
    label_weights,
    lloyd_labels,
    plus_plus_labels,
    sqdist_labels,
)
from ..pipeline.farthest import farthest_rows, join_farthest, merge_farthest
from ..runtime.execution import add_parts, tiles
from ..runtime.passes import mapped, reduced
from ..runtime.threads import one_blas_thread
from .incidence import LabelBook

__all__ = [
    "LEAST_SHARE",
    "IncidenceCenters",
    "Means",
    "NearestCenter",
    "centers_of",
    "exchange_sample",
    "lloyd_incidence",
    "lloyd_sample",
    "objective_of",
    "partition_centers",
    "partition_objective",
    "start_rows",
]

#: A row whose weighted distance to a centre is below this share of its length is at it, but for rounding.
LEAST_SHARE = 1e-9


@dataclass(frozen=True)
class IncidenceCenters:
    """Result of weighted k-means on the rows of the incidence matrix.

    Attributes
    ----------
    centers : (k', c) float64
        Of the clusters that have rows, in the order of their first row.
    objective : float
        sum_x w |b/w - m|^2 over the labels that are there; sec_2015, eq. (2) and Theorem 5.
    history : (n_iter,) float64
        The objective in every pass; the last one is that of `centers`.
    """

    centers: NDArray[np.float64]
    objective: float
    history: NDArray[np.float64]


class NearestCenter:
    """Block of codes -> label of each row, that of its nearest centre; a picklable callable.

    Parameters
    ----------
    book : LabelBook
    centers : (k, c) float64
    """

    def __init__(self, book: LabelBook, centers: NDArray[np.float64]) -> None:
        self.offsets, self.sizes = book.offsets, book.sizes
        self.n_clusters = len(centers)
        padding = -len(centers) % PAD_CLUSTERS
        self.inner = np.ascontiguousarray(np.pad(centers.T, ((0, 1), (0, padding))))  # (c + 1, k')
        blocks = [slice(*self.offsets[i : i + 2]) for i in range(book.n_base_clusterings)]
        self.norms = np.array([(self.inner[block] ** 2).sum(axis=0) for block in blocks])  # (m, k')
        self.norms[:, self.n_clusters :] = np.inf
        self.every_norm = self.norms.sum(axis=0)

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """Label a block."""
        return assign_labels(codes, self.offsets, self.sizes, self.inner, self.norms, self.every_norm)

    def distances(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Distances of the rows b/w of a block to the centres (n, k), over the labels that are there; NaN for none."""
        sqdist = sqdist_labels(
            codes, self.offsets, self.sizes, self.inner, self.norms, self.every_norm, self.n_clusters
        )
        return np.sqrt(sqdist)

    def farthest(self, codes: NDArray[Any], n_wanted: int) -> dict[str, Any]:
        """Rows of a block with the largest w |b/w - m|^2 to their centre, see `farthest_rows`."""
        parts = []
        for tile in tiles(len(codes)):
            rows = codes[tile]
            weights = label_weights(rows, self.offsets, self.sizes)
            labelled = np.flatnonzero(weights > 0)
            rows, weights = rows[labelled], weights[labelled]
            scores = weights * self.distances(rows).min(axis=1, initial=np.inf) ** 2
            scores[scores <= LEAST_SHARE * (rows >= 0).sum(axis=1) / weights] = 0.0
            parts.append(farthest_rows(scores, rows, n_wanted))
        return merge_farthest(parts, n_wanted)

    def add(self, codes: NDArray[Any], found: dict[str, Any]) -> None:
        """Add a block's rows to the sums of a Lloyd pass, in row order."""
        first = np.full(self.inner.shape[1], len(codes), np.int64)
        found["constant"] += lloyd_labels(
            codes,
            self.offsets,
            self.sizes,
            self.inner,
            self.norms,
            self.every_norm,
            found["counts"],
            found["masses"],
            first,
        )
        new = (found["first"] < 0) & (first < len(codes))
        found["first"][new] = found["rows"] + first[new]
        found["rows"] += len(codes)

    def empty(self) -> dict[str, Any]:
        """Sums of a pass over no rows."""
        n_padded = self.inner.shape[1]
        return {
            "rows": 0,
            "counts": np.zeros((len(self.inner) - 1, n_padded), np.int64),
            "masses": np.zeros((len(self.norms), n_padded)),
            "first": np.full(n_padded, -1, np.int64),
            "constant": 0.0,
        }

    def objective(self, found: dict[str, Any]) -> float:
        """The objective of these centres and the partition that they made, from the sums of the pass."""
        k = self.n_clusters
        inner = float((found["counts"][:, :k] * self.inner[:-1, :k]).sum())
        outer = float((found["masses"][:, :k] * self.norms[:, :k]).sum())
        return found["constant"] - 2.0 * inner + outer


@dataclass(frozen=True)
class Means:
    """What Lloyd's iteration asks of a kind of k-means on the rows of the incidence matrix; here of `NearestCenter`'s.

    Attributes
    ----------
    book : LabelBook
    """

    book: LabelBook

    def nearest(self, centers: NDArray[np.float64]) -> Any:
        """Block of codes -> nearest of these centres (k, c), with the methods of `NearestCenter`."""
        return NearestCenter(self.book, centers)

    def centers(self, counts: NDArray[np.int64], masses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Centres (k, c) from the sums of a pass."""
        return centers_of(counts, masses, self.book)

    def of_partition(self, codes: NDArray[Any], labels: NDArray[np.int32], n_clusters: int) -> NDArray[np.float64]:
        """Centres (k, c) of a partition in memory."""
        return partition_centers(codes, self.book, labels, n_clusters)


def centers_of(counts: NDArray[np.int64], masses: NDArray[np.float64], book: LabelBook) -> NDArray[np.float64]:
    """Centres (k, c) of a partition: m_kj = n_kj / w_k, w_k over the rows that the base clustering labels; Theorem 5.

    A block without such rows is zero.
    """
    every = np.repeat(masses, np.diff(book.offsets), axis=0)  # (c, k)
    return np.ascontiguousarray(np.divide(counts, every, out=np.zeros(counts.shape), where=every > 0).T)


def objective_of(counts: NDArray[np.int64], masses: NDArray[np.float64], constant: float, book: LabelBook) -> float:
    """The objective of a partition with its own centres, constant - sum n_kj^2 / w_ki; sec_2015, eq. (4), (8)."""
    return constant - float((counts * centers_of(counts, masses, book).T).sum())


def start_rows(codes: NDArray[Any], book: LabelBook, n_clusters: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Centres (k', c) at rows chosen by greedy k-means++; fewer when there are fewer distinct rows."""
    uniforms = rng.random((n_clusters, 2 + int(np.log(n_clusters))))
    chosen = plus_plus_labels(codes, book.offsets, book.sizes, uniforms)
    labels = np.full(len(codes), -1, np.int32)
    labels[chosen] = np.arange(len(chosen))
    return partition_centers(codes, book, labels, len(chosen))


def partition_centers(
    codes: NDArray[Any], book: LabelBook, labels: NDArray[np.int32], n_clusters: int
) -> NDArray[np.float64]:
    """Centres (k, c) of a partition in memory; rows with negative labels do not count."""
    counts = np.zeros((book.n_base_clusters, n_clusters), np.int64)
    masses = np.zeros((book.n_base_clusterings, n_clusters))
    count_together(codes, book.offsets, book.sizes, labels, counts, masses)
    return centers_of(counts, masses, book)


def partition_objective(codes: NDArray[Any], book: LabelBook, labels: NDArray[np.int32], n_clusters: int) -> float:
    """The objective of a partition in memory, with its own centres; sec_2015, eq. (2)."""
    counts = np.zeros((book.n_base_clusters, n_clusters), np.int64)
    masses = np.zeros((book.n_base_clusterings, n_clusters))
    constant = count_together(codes, book.offsets, book.sizes, labels, counts, masses)
    return objective_of(counts, masses, constant, book)


def lloyd_sample(
    codes: NDArray[Any],
    book: LabelBook,
    centers: NDArray[np.float64],
    *,
    max_iter: int,
    tol: float = 0.0,
    means: Means | None = None,
) -> IncidenceCenters:
    """Lloyd's iteration on rows in memory, until nothing changes or a pass gains a share of no more than `tol`."""
    with one_blas_thread():

        def one_pass(nearest: NearestCenter) -> dict[str, Any]:
            found = nearest.empty()
            nearest.add(codes, found)
            return found

        def farthest(nearest: NearestCenter, n_wanted: int) -> NDArray[Any]:
            return join_farthest([nearest.farthest(codes, n_wanted)], n_wanted)

        return _lloyd(one_pass, farthest, means or Means(book), centers, len(centers), max_iter, tol)


def exchange_sample(
    codes: NDArray[Any], book: LabelBook, centers: NDArray[np.float64], *, max_iter: int
) -> IncidenceCenters:
    """Exchanges of single rows in memory, from the partition of centres (k, c) on, until nothing moves; then Lloyd.

    The objective is no higher than with Lloyd's iteration alone, and lower where that has come to rest too early.
    """
    with one_blas_thread():
        labels = NearestCenter(book, centers)(codes)
        counts = np.zeros((book.n_base_clusters, len(centers)), np.int64)
        masses = np.zeros((book.n_base_clusterings, len(centers)))
        count_together(codes, book.offsets, book.sizes, labels, counts, masses)
        for _ in range(max_iter):
            if exchange_labels(codes, book.offsets, book.sizes, labels, counts, masses) == 0:
                break
    return lloyd_sample(codes, book, centers_of(counts, masses, book), max_iter=max_iter)


def lloyd_incidence(
    codes: da.Array,
    book: LabelBook,
    centers: NDArray[np.float64],
    *,
    max_iter: int,
    tol: float,
    n_clusters: int = 0,
    means: Means | None = None,
) -> IncidenceCenters:
    """Lloyd's iteration over all rows, one pass each; sec_2015, Theorems 1, 5 and 6.

    Parameters
    ----------
    codes : dask array (n, m) int
    book : LabelBook
    centers : (k, c) float64
        Where it starts.
    max_iter : int
        Passes at most; some more where an empty cluster is moved in the last one.
    tol : float
        Stop when a pass lowers the objective by no more than this share of it.
    n_clusters : int
        Clusters wanted; those that `centers` lacks begin empty.
    means : Means, optional
        Another kind of k-means.

    Returns
    -------
    IncidenceCenters
        The centres by which the last pass assigned, so that a final assignment gives the same labels.

    Notes
    -----
    m k additions a row and pass. A task holds its block of codes and a partial result of 8 k (c + m) bytes, and reads
    tables of as many. Counts are whole numbers; the other sums are combined in block order.

    Empty clusters are moved to the rows that are farthest from their centres by weight, as in `lloyd_over_blocks`.
    """

    def one_pass(nearest: NearestCenter) -> dict[str, Any]:
        return dict(reduced(partial(_pass_block, nearest=nearest), add_parts, codes, name="dc-lloyd"))

    def farthest(nearest: NearestCenter, n_wanted: int) -> NDArray[Any]:
        task = partial(_farthest_block, nearest=nearest, n_wanted=n_wanted)
        return join_farthest(mapped(task, codes, name="dc-far"), n_wanted)

    return _lloyd(one_pass, farthest, means or Means(book), centers, max(n_clusters, len(centers)), max_iter, tol)


def _lloyd(
    one_pass: Callable[[NearestCenter], dict[str, Any]],
    farthest: Callable[[NearestCenter, int], NDArray[Any]],
    means: Means,
    centers: NDArray[np.float64],
    n_clusters: int,
    max_iter: int,
    tol: float,
) -> IncidenceCenters:
    history: list[float] = []
    previous = None
    refilled = np.inf  # the objective when empty clusters were moved last; -inf when none can be moved any more
    while True:
        nearest = means.nearest(centers)
        found = one_pass(nearest)
        history.append(nearest.objective(found))
        k = len(centers)
        counts, masses = found["counts"][:, :k], found["masses"][:, :k]
        with_rows = found["first"][:k] >= 0
        n_empty = n_clusters - int(with_rows.sum())
        if n_empty and history[-1] < refilled and len(history) < max_iter + n_clusters:
            kept = means.centers(counts, masses)[with_rows]
            rows = farthest(means.nearest(kept), n_empty)
            if len(rows):
                refilled, previous = history[-1], None
                places = means.of_partition(rows, np.arange(len(rows), dtype=np.int32), len(rows))
                centers = np.concatenate([kept, places])
                continue
            refilled = -np.inf
        # The same counts and masses are the same centres: nothing will change any more.
        settled = previous is not None and all(
            np.array_equal(a, b) for a, b in zip(previous, (counts, masses), strict=True)
        )
        slow = len(history) > 1 and history[-2] - history[-1] <= tol * abs(history[-1])
        if len(history) >= max_iter or settled or (tol > 0 and slow):
            taken = np.flatnonzero(with_rows)
            order = taken[np.argsort(found["first"][taken], kind="stable")]
            return IncidenceCenters(centers[order], history[-1], np.array(history))
        previous = counts, masses
        centers = np.where(with_rows[:, None], means.centers(counts, masses), centers)


def _farthest_block(block: NDArray[Any], number: int, nearest: NearestCenter, n_wanted: int) -> dict[str, Any]:
    return nearest.farthest(block, n_wanted)


def _pass_block(block: NDArray[Any], nearest: NearestCenter) -> dict[str, Any]:
    found = nearest.empty()
    for tile in tiles(len(block)):
        nearest.add(block[tile], found)
    return found
