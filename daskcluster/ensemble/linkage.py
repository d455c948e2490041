"""Distinct rows of labels -> clusters by linkage: evidence accumulation, with weights of base clusters or without."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.linkage import AVERAGE, COMPLETE, SINGLE, agglomerate, connected_triples, row_likeness
from ..runtime.forecast import Cost, Sizes
from ..runtime.stages import Run, Stage
from ..validation import check_option, check_real
from .bipartite import check_pairs_size
from .distinct import Distinct, check_distinct_size
from .incidence import Coded, LabelBook
from .meta_clusters import jaccard
from .overlaps import overlap_bytes, overlaps, overlaps_cost

__all__ = ["LINKAGES", "ConnectedTriples", "Likeness", "Linkage", "pairs_bytes"]

#: Linkage -> how clusters are compared.
LINKAGES = {"average": AVERAGE, "complete": COMPLETE, "single": SINGLE}


@dataclass(frozen=True)
class Likeness:
    """What two rows are alike by one base clustering.

    Attributes
    ----------
    book : LabelBook
    weights : (c,) float64
        In the same base cluster.
    unlike : (sum of K_i**2,) float64
        In different ones, base clustering by base clustering; empty for 0.
    """

    book: LabelBook
    weights: NDArray[np.float64]
    unlike: NDArray[np.float64]

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the numbers of each base clustering start in `unlike`."""
        return block_starts(self.book)

    @property
    def mean(self) -> float:
        """What two rows are alike on average, in the mean over the base clusterings."""
        means = []
        for number, (start, stop) in enumerate(pairwise(self.book.offsets)):
            sizes = self.book.sizes[start:stop].astype(np.float64)
            if len(sizes):
                shares = sizes / sizes.sum()
                means.append(float(shares @ self.of_shares(number, shares[:, None])[:, 0]))
        return float(np.mean(means))

    def of_rows(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Likeness of distinct rows, condensed; see `row_likeness`."""
        return np.asarray(row_likeness(codes, self.book.offsets, self.weights, self.unlike, self.starts, self.mean))

    def of_shares(self, number: int, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean likeness of a row in each base cluster, see `cluster_likeness`."""
        start, stop = self.book.offsets[number : number + 2]
        like = self.weights[start:stop, None] * shares
        if not len(self.unlike):
            return like
        begin, width = self.starts[number], stop - start
        block = self.unlike[begin : begin + width**2].reshape(width, width)
        return np.asarray(like + block @ shares)


def block_starts(book: LabelBook) -> NDArray[np.int64]:
    """Where the K_i**2 numbers of each base clustering start (m,)."""
    sizes = np.diff(book.offsets) ** 2
    return np.asarray(np.cumsum(sizes) - sizes)


@dataclass(frozen=True)
class ConnectedTriples(Stage):
    """Likeness of clusters of one base clustering by the base clusters that both share rows with.

    Attributes
    ----------
    decay : float
    """

    title = "connected triples"
    decay: float

    def check(self) -> None:
        """Refuse a factor outside [0, 1]."""
        check_real("decay", self.decay, 0.0)
        if self.decay > 1:
            raise ValueError(f"decay must be at most 1, got {self.decay}")

    def __call__(self, run: Run, coded: Coded) -> NDArray[np.float64]:
        """Likeness (sum of K_i**2,), see `Likeness`."""
        return np.asarray(run.products.small("triples", lambda: {"triples": self._find(coded)})["triples"])

    def _find(self, coded: Coded) -> NDArray[np.float64]:
        book = coded.book
        c = book.n_base_clusters
        check_pairs_size("the connected triples", c, overlap_bytes(c, coded.codes.numblocks[0], n_matrices=5))
        links = jaccard(overlaps(coded.codes, book), book)
        np.fill_diagonal(links, 0.0)
        starts = block_starts(book)
        triples = np.empty(int((np.diff(book.offsets) ** 2).sum()))
        connected_triples(links, book.offsets, starts, triples)
        most = triples.max(initial=0.0)
        return np.asarray(triples * (self.decay / most if most > 0 else 0.0))

    def cost(self, sizes: Sizes) -> Cost:
        """One pass; then a few matrices of c**2 numbers."""
        return overlaps_cost(sizes, n_matrices=5)

    @property
    def kept(self) -> tuple[str, ...]:
        """The likeness of clusters."""
        return ("triples",)


def pairs_bytes(n_distinct: int) -> int:
    """Bytes of one number for each pair of distinct rows."""
    return 4 * n_distinct**2


@dataclass(frozen=True)
class Linkage(Stage):
    """Agglomerate the distinct rows, each with the weight of its rows.

    Attributes
    ----------
    n_clusters : int
    linkage : str
        Of `LINKAGES`.
    max_distinct : int
        Distinct rows at most, for the forecast.
    """

    title = "linkage"
    n_clusters: int
    linkage: str
    max_distinct: int

    def check(self) -> None:
        """Refuse an unknown linkage."""
        check_option("linkage", self.linkage, list(LINKAGES))

    def __call__(self, run: Run, distinct: Distinct, likeness: Likeness) -> NDArray[np.int32]:
        """Cluster of each distinct row (u,), numbered by their first rows."""
        return np.asarray(run.products.small("linkage", lambda: {"labels": self._find(distinct, likeness)})["labels"])

    def _find(self, distinct: Distinct, likeness: Likeness) -> NDArray[np.int32]:
        u = len(distinct.counts)
        check_distinct_size("EAC", u, pairs_bytes(u))
        pairs = likeness.of_rows(distinct.codes)
        kind = LINKAGES[self.linkage]
        return np.asarray(agglomerate(pairs, distinct.counts.astype(np.float64), min(self.n_clusters, u), kind))

    def cost(self, sizes: Sizes) -> Cost:
        """No pass: a number for each pair of distinct rows."""
        u = min(sizes.n_samples, self.max_distinct)
        return Cost(eager_bytes=pairs_bytes(u) + 64 * u, small_bytes=8 * u + 16 * sizes.n_right * self.n_clusters)

    @property
    def kept(self) -> tuple[str, ...]:
        """The clusters of the distinct rows."""
        return ("linkage",)
