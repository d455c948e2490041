"""Base clusters -> rows that two of them share, and how far each is borne out by the other base clusterings.

One pass over the codes; what follows has matrices of c by c numbers, c the number of base clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.pairs import count_pairs
from ..pipeline.cut import add_packed, pack_matrix, sum_packed
from ..runtime.execution import FAN_IN
from ..runtime.forecast import Cost, Sizes
from ..runtime.passes import reduced
from ..runtime.stages import Run, Stage
from ..validation import check_real
from .bipartite import check_pairs_size
from .incidence import Coded, LabelBook

__all__ = [
    "WEIGHTS",
    "LocalWeights",
    "cluster_entropies",
    "local_weights",
    "overlap_bytes",
    "overlaps",
    "overlaps_cost",
    "shared_rows",
]

#: How the edges of the bipartite cut are weighted.
WEIGHTS = ("none", "local")
#: Weights below this share of the largest are raised to it: a row whose labels all have such ones stays in the graph.
LEAST_WEIGHT = 1e-12


@dataclass(frozen=True)
class LocalWeights(Stage):
    """How far each base cluster is borne out by the other base clusterings, as a weight.

    Attributes
    ----------
    theta : float
    """

    title = "local weights"
    theta: float

    def check(self) -> None:
        """Refuse a theta that is not above 0."""
        check_real("theta", self.theta, 0.0)
        if self.theta == 0:
            raise ValueError("theta must be above 0, got 0")

    def __call__(self, run: Run, coded: Coded) -> NDArray[np.float64]:
        """Weights (c,), the largest 1."""
        return np.asarray(run.products.small("weights", lambda: {"weights": self._find(coded)})["weights"])

    def _find(self, coded: Coded) -> NDArray[np.float64]:
        c = coded.book.n_base_clusters
        check_pairs_size("the local weights", c, overlap_bytes(c, coded.codes.numblocks[0], n_matrices=4))
        return local_weights(overlaps(coded.codes, coded.book), coded.book, self.theta)

    def cost(self, sizes: Sizes) -> Cost:
        """One pass; then a few matrices of c**2 numbers."""
        return overlaps_cost(sizes, n_matrices=4)

    @property
    def kept(self) -> tuple[str, ...]:
        """The weights."""
        return ("weights",)


def overlaps_cost(sizes: Sizes, n_matrices: int) -> Cost:
    """Cost of `overlaps`, and of so many matrices of c**2 numbers after it."""
    matrix = 8 * sizes.n_right**2
    task = sizes.tile_rows * 16 + (min(sizes.n_blocks, FAN_IN) + 1) * matrix
    return sizes.over_held(task, eager_bytes=n_matrices * matrix, small_bytes=16 * sizes.n_right)


def overlap_bytes(n_base_clusters: int, n_blocks: int, n_matrices: int) -> int:
    """Peak of `overlaps` or of so many matrices of c**2 numbers after it."""
    return 8 * n_base_clusters**2 * max(min(n_blocks, FAN_IN) + 1, n_matrices)


def overlaps(codes: da.Array, book: LabelBook) -> NDArray[np.float64]:
    """Rows that two base clusters share, N = B^T B, (c, c) whole numbers; on the diagonal the rows of each.

    m (m + 1) / 2 additions a row, in one pass.
    """
    task = partial(_count_block, book=book)
    counts = sum_packed([reduced(task, add_packed, codes, name="dc-overlaps")])
    counts += np.triu(counts, 1).T
    return counts


def _count_block(block: NDArray[Any], book: LabelBook) -> dict[str, Any]:
    counts = np.zeros((book.n_base_clusters, book.n_base_clusters))
    count_pairs(block, book.offsets, counts)
    return pack_matrix(counts)


def shared_rows(counts: NDArray[np.float64], book: LabelBook) -> NDArray[np.float64]:
    """Rows of each base cluster that each base clustering labels, (c, m); without missing labels its size."""
    pairs = zip(book.offsets[:-1], book.offsets[1:], strict=True)
    return np.stack([counts[:, start:stop].sum(axis=1) for start, stop in pairs], axis=1)


def cluster_entropies(counts: NDArray[np.float64], book: LabelBook) -> NDArray[np.float64]:
    """Mean entropy (c,) of each base cluster in the base clusterings, in bits.

    Parameters
    ----------
    counts : (c, c) float64
        Of `overlaps`.
    book : LabelBook

    Notes
    -----
    The entropy of base cluster i in a base clustering is - sum_j P_ij log2 P_ij over its base clusters j, P_ij the
    share of the rows of i that lie in j; in its own it is 0. With missing labels P_ij is a share of those rows of i
    that the base clustering labels, and the mean goes over the base clusterings that label any.
    """
    n_shared = shared_rows(counts, book)
    every = np.repeat(n_shared, np.diff(book.offsets), axis=1)  # (c, c)
    shares = np.divide(counts, every, out=np.ones_like(counts), where=counts > 0)  # 1 has no part in the entropy
    entropies = -(shares * np.log2(shares)).sum(axis=1)
    return entropies / (n_shared > 0).sum(axis=1)


def local_weights(counts: NDArray[np.float64], book: LabelBook, theta: float) -> NDArray[np.float64]:
    """The ensemble-driven cluster index exp(-E_i / (theta m)) of each base cluster (c,), over the largest of them.

    E_i / m is the mean of `cluster_entropies`; a common factor of all weights changes no cut.
    """
    entropies = cluster_entropies(counts, book)
    return np.maximum(np.exp(-(entropies - entropies.min()) / theta), LEAST_WEIGHT)
