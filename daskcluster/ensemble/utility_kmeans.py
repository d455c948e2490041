"""Incidence -> k-means on its rows by the distance that belongs to a consensus utility (KCC).

Wu, Liu, Xiong, Cao, Chen, TKDE 2015: where the utility of a consensus is a sum of convex functions of the shares m_kij
of its clusters k in the base clusters j of base clustering i, the best consensus is that of k-means with a distance
that follows from the function. All rows count alike. Such a distance of a row is a sum of m entries of a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.incidence import count_together
from ..kernels.label_sums import least_sums, lloyd_sums, sum_labels
from ..pipeline.farthest import farthest_rows
from ..runtime.execution import beside, tiles
from ..runtime.seeding import stream
from ..validation import check_option, check_real
from .incidence import Coded, LabelBook
from .sec import EXCHANGED, START_TOL, SECPasses, SECStarts, start_size
from .weighted_kmeans import LEAST_SHARE, IncidenceCenters, Means, NearestCenter, lloyd_sample, start_rows

__all__ = ["UTILITIES", "NearestShares", "UtilityMeans", "UtilityPasses", "UtilityStarts", "utility_objective"]

#: Of the shares of a cluster so much is spread evenly, for the entropy: a base cluster that it lacks is far, not
#: infinitely far.
SPREAD = 1e-6


def _categorical(shares: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    """|x - m|^2."""
    return 1.0 - 2.0 * shares + (shares**2).sum(axis=1, keepdims=True)


def _entropy(shares: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    """Kullback-Leibler divergence of x from m, in bits."""
    even = np.where(shares.any(axis=1, keepdims=True), SPREAD, 1.0)  # a cluster of no such rows: all is possible
    return -np.log2((1.0 - even) * shares + even / shares.shape[1])


def _cosine(shares: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    """1 - cos(x, m)."""
    return _norm(shares, 2.0)


def _norm(shares: NDArray[np.float64], p: float) -> NDArray[np.float64]:
    """1 - sum_j x_j (m_j / |m|_p)^(p - 1)."""
    largest = shares.max(axis=1, keepdims=True)
    scaled = np.divide(shares, largest, out=np.zeros_like(shares), where=largest > 0)  # no power vanishes
    lengths = np.maximum((scaled**p).sum(axis=1, keepdims=True), 1.0) ** (1.0 / p)
    return 1.0 - (scaled / lengths) ** (p - 1.0)


#: Utility -> shares (k, K_i) of the clusters in the base clusters of one base clustering, p -> distances (k, K_i) of
#: the rows there.
UTILITIES: dict[str, Callable[[NDArray[np.float64], float], NDArray[np.float64]]] = {
    "entropy": _entropy,
    "categorical": _categorical,
    "cosine": _cosine,
    "lp": _norm,
}


@dataclass(frozen=True)
class UtilityMeans(Means):
    """Clusters as their shares in the base clusters, and the distance of a utility.

    Attributes
    ----------
    utility : str
        Of `UTILITIES`.
    p : float
        Of the norm, for "lp".
    """

    utility: str
    p: float

    def nearest(self, centers: NDArray[np.float64]) -> NearestShares:
        """Block of codes -> nearest of these clusters (k, c)."""
        return NearestShares(self, centers)

    def centers(self, counts: NDArray[np.int64], masses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Shares m_kij (k, c) of a partition's clusters: of the rows that base clustering i labels."""
        return shares_of(counts, self.book)

    def of_partition(self, codes: NDArray[Any], labels: NDArray[np.int32], n_clusters: int) -> NDArray[np.float64]:
        """Shares of a partition in memory."""
        counts = np.zeros((self.book.n_base_clusters, n_clusters), np.int64)
        masses = np.zeros((self.book.n_base_clusterings, n_clusters))
        count_together(codes, self.book.offsets, self.book.sizes, labels, counts, masses)
        return shares_of(counts, self.book)

    def table(self, centers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Distance that each base cluster adds to a row's distance to each cluster (c, k)."""
        distance, bounds = UTILITIES[self.utility], self.book.offsets
        blocks = [centers[:, start:stop] for start, stop in pairwise(bounds) if stop > start]
        return np.ascontiguousarray(np.concatenate([distance(block, self.p).T for block in blocks]))


def shares_of(counts: NDArray[np.int64], book: LabelBook) -> NDArray[np.float64]:
    """Shares (k, c) from the rows (c, k) of each base cluster in each cluster; zeros where there are no such rows."""
    bounds = book.offsets
    sums = np.array([counts[start:stop].sum(axis=0) for start, stop in pairwise(bounds)])
    every = np.repeat(sums, np.diff(bounds), axis=0)  # (c, k)
    return np.ascontiguousarray(np.divide(counts, every, out=np.zeros(counts.shape), where=every > 0).T)


def utility_objective(counts: NDArray[np.int64], means: UtilityMeans) -> float:
    """Sum of the distances of a partition's rows to its own clusters, from their `counts` (c, k)."""
    shares = shares_of(counts, means.book)
    if means.utility == "entropy":
        return -float((counts * np.log2(np.where(counts > 0, shares.T, 1.0))).sum())
    return float((counts * means.table(shares)).sum())


class NearestShares:
    """Block of codes -> label of each row, that of its nearest cluster; a picklable callable.

    Parameters
    ----------
    means : UtilityMeans
    centers : (k, c) float64
    """

    def __init__(self, means: UtilityMeans, centers: NDArray[np.float64]) -> None:
        self.offsets, self.table = means.book.offsets, means.table(centers)

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """Label a block; -1 for rows without labels."""
        return least_sums(codes, self.offsets, self.table)

    def distances(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Distances of the rows of a block (n, k), over the labels that are there; NaN for none."""
        return sum_labels(codes, self.offsets, self.table)

    def farthest(self, codes: NDArray[Any], n_wanted: int) -> dict[str, Any]:
        """Rows of a block that are farthest from their cluster, see `farthest_rows`."""
        parts = []
        for tile in tiles(len(codes)):
            rows = codes[tile]
            rows = rows[(rows >= 0).any(axis=1)]
            scores = self.distances(rows).min(axis=1, initial=np.inf)
            scores[scores <= self._least(rows)] = 0.0
            parts.append(farthest_rows(scores, rows, n_wanted))
        scores, found = (np.concatenate([part[key] for part in parts]) for key in ("scores", "rows"))
        return farthest_rows(scores, found, n_wanted)

    def _least(self, rows: NDArray[Any]) -> NDArray[np.float64]:
        """The distance up to which a row is at its cluster: what it is in a cluster of its like, but for rounding."""
        return (rows >= 0).sum(axis=1) * (LEAST_SHARE - np.log2(1.0 - SPREAD))

    def add(self, codes: NDArray[Any], found: dict[str, Any]) -> None:
        """Add a block's rows to the sums of a Lloyd pass, in row order."""
        first = np.full(self.table.shape[1], len(codes), np.int64)
        lloyd_sums(codes, self.offsets, self.table, found["counts"], first)
        new = (found["first"] < 0) & (first < len(codes))
        found["first"][new] = found["rows"] + first[new]
        found["rows"] += len(codes)

    def empty(self) -> dict[str, Any]:
        """Sums of a pass over no rows."""
        k = self.table.shape[1]
        return {
            "rows": 0,
            "counts": np.zeros(self.table.shape, np.int64),
            "masses": np.zeros((len(self.offsets) - 1, k)),
            "first": np.full(k, -1, np.int64),
        }

    def objective(self, found: dict[str, Any]) -> float:
        """Sum of the rows' distances, from the sums of the pass."""
        return float((found["counts"] * self.table).sum())


@dataclass(frozen=True)
class UtilityStarts(SECStarts):
    """Where the passes start: the best of k-means++ and the bipartite cut on a sample, by the distance of the utility.

    Attributes
    ----------
    n_clusters, max_iter, n_init : int
    n_components : None
    utility : str
    p : float
    """

    utility: str
    p: float

    def check(self) -> None:
        """Refuse counts below 1, an unknown utility, and a norm that is none or the sum."""
        super().check()
        check_option("utility", self.utility, list(UTILITIES))
        check_real("p", self.p, 1.0)
        if self.p == 1:
            raise ValueError("p must be above 1, got 1")

    def _find(self, coded: Coded, seed: int) -> dict[str, Any]:
        k, book = self.n_clusters, coded.book
        sample = coded.draw(start_size(k, coded.n_labelled), stream(seed, "consensus sample"))
        starts: list[tuple[int, NDArray[np.int32] | None]] = [(number, None) for number in range(self.n_init)]
        starts += [(self.n_init + number, cut) for number, cut in enumerate(self._cut_partitions(sample, book, seed))]
        shared = {"sample": sample, "means": UtilityMeans(book, self.utility, self.p), "max_iter": self.max_iter}
        runs = beside(run_start, "dc-start", starts, n_clusters=k, seed=seed, **shared)
        best = sorted(runs, key=attrgetter("objective"))[:EXCHANGED]
        rested = beside(run_to_rest, "dc-rest", [(run,) for run in best], **shared)
        return {"centers": min(rested, key=attrgetter("objective")).centers}


def run_start(
    number: int,
    cut: NDArray[np.int32] | None,
    sample: NDArray[Any],
    means: UtilityMeans,
    n_clusters: int,
    seed: int,
    max_iter: int,
) -> IncidenceCenters:
    """Lloyd's iteration on a sample of codes from the k-means++ start of this number, or else from a partition.

    k-means++ takes the squared Euclidean distance; its rows become clusters before any other distance is used, for a
    single row is infinitely far from most others by the entropy.
    """
    if cut is None:
        alike = replace(means.book, sizes=np.ones_like(means.book.sizes))  # all rows count alike
        rows = start_rows(sample, alike, n_clusters, stream(seed, "starts", number))
        cut = NearestCenter(alike, rows)(sample)
    centers = means.of_partition(sample, cut, int(cut.max()) + 1)
    return lloyd_sample(sample, means.book, centers, max_iter=max_iter, tol=START_TOL, means=means)


def run_to_rest(run: IncidenceCenters, sample: NDArray[Any], means: UtilityMeans, max_iter: int) -> IncidenceCenters:
    """Lloyd's iteration on a sample from where a run has ended, until nothing changes."""
    return lloyd_sample(sample, means.book, run.centers, max_iter=max_iter, means=means)


@dataclass(frozen=True)
class UtilityPasses(SECPasses):
    """Lloyd passes over all rows by the distance of a utility.

    Attributes
    ----------
    n_clusters, max_iter : int
    n_components : None
    tol : float
    utility : str
    p : float
    """

    utility: str
    p: float

    def _means(self, book: LabelBook) -> Means:
        return UtilityMeans(book, self.utility, self.p)
