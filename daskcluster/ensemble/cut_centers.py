"""Centres of a consensus that have a small normalized cut, which is what it minimises.

k-means in the embedding ends in many minima, and its sum of squares hardly tells which of them is good: the cut itself
does. So starts are judged by their cut.

The eigenvectors minimise a relaxed normalized cut. One bad base cluster, of two clusters of the rows, may make that
smaller for the halves of a third cluster than for these two, where the normalized cut itself is far larger. A finer
clustering, by more eigenvectors, has all the pieces; joined by the cut itself they are the right clusters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.lloyd import assign_rows
from ..pipeline.kmeans import center_starts
from ..pipeline.lift import LiftedRows
from ..pipeline.lloyd import lloyd_in_memory
from ..runtime.seeding import stream
from .incidence import incidence_edges

__all__ = ["CutCenters", "cluster_means", "finer_number", "join_clusters", "normalized_cut"]

#: Finer clusterings have half as many clusters more, and no more than so many more.
MOST_MORE = 32
#: Joined clusters are taken where their normalized cut is below this share of the other one. Cuts that differ by less
#: tell nothing of the classes.
LESS = 0.75
#: Of the sampled rows so many are clustered first, and so many a finer cluster at least: enough to see such a cut.
FEW_ROWS = 2**12
ROWS_PER_FINER = 64
#: Starts on these rows for each that is asked for: they are few, and the best one only goes on.
TRIES = 4


def finer_number(n_clusters: int) -> int:
    """Clusters, and eigenvectors, of the finer clusterings from which so many clusters are joined."""
    return n_clusters + min(max(2, n_clusters // 2), MOST_MORE)


@dataclass(frozen=True)
class CutCenters:
    """Finds centres of a small normalized cut on sampled rows.

    Attributes
    ----------
    offsets : (m + 1,) int64
        Of the base clusters.
    weights : (c,) float64
        Of their edges.
    points, finer : LiftedRows
        Embeddings by as many eigenvectors as clusters, and by `finer_number`.
    eigenvalues : (q,) float64
        Of the first embedding, whose sum no normalized cut is below.
    n_clusters, n_init, max_iter, seed : int
        As in `discretize`.
    """

    offsets: NDArray[np.int64]
    weights: NDArray[np.float64]
    points: LiftedRows
    finer: LiftedRows
    eigenvalues: NDArray[np.float64]
    n_clusters: int
    n_init: int
    max_iter: int
    seed: int

    def __call__(self, drawn: NDArray[Any]) -> NDArray[np.float64]:
        """Of codes of sampled rows (s, m): centres (k, q).

        Notes
        -----
        `TRIES` starts for each of `n_init` on few of the rows; that of the smallest cut, the first of equal ones, goes
        on over all of them.
        """
        values, edges = self.points(drawn)[0], self._edges(drawn)
        step = self._step(len(values))
        some = values[::step]
        rngs = (stream(self.seed, "discretize", number) for number in range(self.n_init * TRIES))
        found = self._best(some, edges[::step], (center_starts(some, self.n_clusters, rng) for rng in rngs))
        return self.exchanged(drawn, self._best(values, edges, [found]))

    def _best(
        self, values: NDArray[np.floating], edges: NDArray[np.int32], starts: Iterable[NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Centres by Lloyd's iteration from each start, of those with the smallest cut."""
        runs = (lloyd_in_memory(values, start, max_iter=self.max_iter) for start in starts)
        return min(runs, key=lambda run: self._cut(edges, run[1]))[0].centers

    def exchanged(self, drawn: NDArray[Any], centers: NDArray[np.float64]) -> NDArray[np.float64]:
        """These centres (k, q), or those of joined finer clusters, where these are the far better cut.

        Notes
        -----
        Nothing is tried where the eigenvalues tell that no cut can be so much better.
        """
        if self.finer.n_components <= self.points.n_components or len(centers) < self.n_clusters:
            return centers
        drawn = drawn[:: self._step(len(drawn))]
        values, finer = self.points(drawn)[0], self.finer(drawn)[0]
        edges = self._edges(drawn)
        least = LESS * self._cut(edges, assign_rows(values, centers))
        if self.eigenvalues.sum() >= least:
            return centers
        for number in range(self.n_init):
            starts = center_starts(finer, self.finer.n_components, stream(self.seed, "finer clusters", number))
            _, labels = lloyd_in_memory(finer, starts, max_iter=self.max_iter)
            joined = join_clusters(self._counts(edges, labels, len(starts)), self.weights, self.n_clusters)[labels]
            found, labels = lloyd_in_memory(values, cluster_means(values, joined), max_iter=self.max_iter)
            cut = self._cut(edges, labels)
            if cut < least and len(found.centers) == self.n_clusters:
                centers, least = found.centers, cut
        return centers

    def _step(self, n_rows: int) -> int:
        """Step between the few rows among the sampled ones: `FEW_ROWS` of them, and fewer than twice as many."""
        return max(1, n_rows // max(FEW_ROWS, ROWS_PER_FINER * self.finer.n_components))

    def _edges(self, drawn: NDArray[Any]) -> NDArray[np.int32]:
        """Base clusters of the rows that have any (s, m)."""
        edges, _ = incidence_edges(drawn, self.offsets)
        return edges[(edges >= 0).any(axis=1)]

    def _cut(self, edges: NDArray[np.int32], labels: NDArray[np.int32]) -> float:
        return normalized_cut(self._counts(edges, labels, self.n_clusters), self.weights)

    def _counts(self, edges: NDArray[np.int32], labels: NDArray[np.int32], n_clusters: int) -> NDArray[np.float64]:
        """Rows of each base cluster in each cluster (c, k)."""
        there = edges >= 0
        places = edges.astype(np.int64) * n_clusters + labels[:, None]
        counts = np.bincount(places[there], minlength=len(self.weights) * n_clusters)
        return counts.reshape(-1, n_clusters).astype(np.float64)


def normalized_cut(counts: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Normalized cut of clusters, from their rows in each base cluster (c, k) and the edges' weights (c,).

    Notes
    -----
    Rows are linked by base clusters, S = B D^-1 B^T with D the degrees of these. The part of cluster a is 1 less its
    links inside over its degree: 1 - (sum_j w_j N_ja^2 / N_j) / (sum_j w_j N_ja), which is 1 less the mean agreement of
    its rows. That of a cluster without rows is 1.
    """
    inside, degrees = _links(counts, weights)
    there = degrees > 0
    return float(len(degrees) - (np.diag(inside)[there] / degrees[there]).sum())


def join_clusters(counts: NDArray[np.float64], weights: NDArray[np.float64], n_clusters: int) -> NDArray[np.int64]:
    """Join pairs of finer clusters until so many are left; each time the pair that raises the normalized cut least.

    Parameters
    ----------
    counts, weights
        As in `normalized_cut`.

    Returns
    -------
    (k',) int64
        Joined cluster of each.
    """
    links, degrees = _links(counts, weights)
    names = np.arange(len(degrees))
    while len(degrees) > n_clusters:
        own = np.diag(links) / degrees
        together = (np.diag(links)[:, None] + np.diag(links) + 2 * links) / (degrees[:, None] + degrees)
        gain = np.triu(together - own[:, None] - own, 1)
        gain[np.tril_indices(len(gain))] = -np.inf
        i, j = np.unravel_index(gain.argmax(), gain.shape)
        links[i] += links[j]
        links[:, i] += links[:, j]
        degrees[i] += degrees[j]
        links, degrees = np.delete(np.delete(links, j, 0), j, 1), np.delete(degrees, j)
        names[names == j] = i
        names[names > j] -= 1
    return names


def _links(
    counts: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Links between clusters (k, k), and their degrees (k,)."""
    sizes = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, sizes, out=np.zeros_like(counts), where=sizes > 0)
    weighted = weights[:, None] * counts
    return np.einsum("ja,jb->ab", weighted, shares), weighted.sum(axis=0)


def cluster_means(points: NDArray[np.floating], labels: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Means (k, q) of labelled points, every cluster having some."""
    sums = np.stack([np.bincount(labels, column) for column in points.T], axis=1)
    return sums / np.bincount(labels)[:, None]
