"""Distinct rows of labels -> clusters by the courses of random walks over them (PTGP)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import squareform

from ..kernels.incidence import label_edges
from ..kernels.lloyd import assign_rows
from ..pipeline.cut import cut_small_graph, pack_matrix
from ..pipeline.kmeans import center_starts
from ..pipeline.lloyd import best_of_starts
from ..runtime.forecast import Cost, Sizes
from ..runtime.seeding import stream
from ..runtime.stages import Run, Stage
from ..runtime.threads import one_blas_thread
from ..validation import check_integer
from .distinct import Distinct, check_distinct_size
from .incidence import LabelBook
from .linkage import Likeness
from .meta_clusters import propagated

__all__ = ["Trajectories", "default_steps", "elite_links", "row_weights_by_trajectories"]

#: Matrices (u, u) float32 at the peak of the random walk.
N_MATRICES = 8


def default_steps(n_distinct: int) -> int:
    """Elite neighbors and steps where none are given: half the root of the number of distinct rows."""
    return max(1, int(np.sqrt(n_distinct) / 2))


def elite_links(likeness: NDArray[np.float32], counts: NDArray[np.int64], n_neighbors: int) -> NDArray[np.float32]:
    """Links of a random walk over distinct rows (u, u): the way to a row counts by its likeness and its weight.

    Parameters
    ----------
    likeness : (u, u) float32
        Symmetric, 0 on the diagonal. Overwritten.
    counts : (u,) int64
    n_neighbors : int
        A link stays if one of the two rows is among the most similar of the other; of equally similar ones all.
    """
    u = len(likeness)
    place = max(0, u - n_neighbors)
    least = np.partition(likeness, place, axis=1)[:, place]
    kept = likeness >= least[:, None]
    likeness[~(kept | kept.T)] = 0.0
    likeness *= counts.astype(np.float32)
    return likeness


def row_weights_by_trajectories(
    similarities: NDArray[np.float32], distinct: Distinct, book: LabelBook
) -> NDArray[np.float64]:
    """Edges (u, c) of distinct rows and base clusters: the mean similarity to the distinct rows of a base cluster."""
    edges = label_edges(distinct.codes, book.offsets).astype(np.intp)
    members = np.zeros((len(edges), book.n_base_clusters + 1), np.float32)
    np.put_along_axis(members, edges, 1.0, axis=1)  # -1 is the last column
    members = members[:, :-1]
    members /= members.sum(axis=0)
    with one_blas_thread():
        return (similarities @ members).astype(np.float64)


@dataclass(frozen=True)
class Trajectories(Stage):
    """Cut the bipartite graph of distinct rows and base clusters whose edges are weighed by random walks.

    Attributes
    ----------
    n_clusters : int
    n_neighbors, n_steps : int or None
    n_init, max_iter : int
    max_distinct : int
        Distinct rows at most, for the forecast.
    """

    title = "probability trajectories"
    n_clusters: int
    n_neighbors: int | None
    n_steps: int | None
    n_init: int
    max_iter: int
    max_distinct: int

    def check(self) -> None:
        """Refuse counts below 1."""
        for name in ("n_neighbors", "n_steps"):
            value = getattr(self, name)
            if value is not None:
                check_integer(name, value, 1)
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)

    def __call__(self, run: Run, distinct: Distinct, likeness: Likeness) -> NDArray[np.int32]:
        """Cluster of each distinct row (u,), numbered by their first rows."""
        return np.asarray(
            run.products.small("walks", lambda: {"labels": self._find(distinct, likeness, run.seed)})["labels"]
        )

    def _find(self, distinct: Distinct, likeness: Likeness, seed: int) -> NDArray[np.int32]:
        u = len(distinct.counts)
        check_distinct_size("PTGP", u, self._bytes(u, likeness.book.n_base_clusters))
        pairs = likeness.of_rows(distinct.codes).astype(np.float32)
        links = squareform(pairs, checks=False) if u > 1 else np.zeros((1, 1), np.float32)
        links = elite_links(links, distinct.counts, self.n_neighbors or default_steps(u))
        similarities = propagated(links, self.n_steps or default_steps(u))
        weights = row_weights_by_trajectories(similarities, distinct, likeness.book)  # (u, c)
        return self._cut(weights, seed)

    def _cut(self, weights: NDArray[np.float64], seed: int) -> NDArray[np.int32]:
        """Transfer cut of the graph, and k-means on its rows at unit length."""
        with one_blas_thread():
            small = (weights / weights.sum(axis=1, keepdims=True)).T @ weights  # (c, c)
        cut = cut_small_graph(pack_matrix(np.triu((small + small.T) / 2)), self.n_clusters)
        with one_blas_thread():
            points = weights @ cut.vectors
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        np.divide(points, lengths, out=points, where=lengths > 0)
        # Rows whose base clusters are specks, which the cut leaves out, have no place: theirs is the shortest centre.
        placed = points[lengths[:, 0] > 0]
        starts = (center_starts(placed, self.n_clusters, stream(seed, "trajectories", i)) for i in range(self.n_init))
        best, _ = best_of_starts(placed, starts, max_iter=self.max_iter)
        with one_blas_thread():
            labels = assign_rows(points, best.centers)
        _, first, names = np.unique(labels, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first)).astype(np.int32)[names]

    def _bytes(self, n_distinct: int, n_base_clusters: int) -> int:
        c = n_base_clusters
        return 4 * N_MATRICES * n_distinct**2 + 8 * (3 * n_distinct * c + 5 * c**2)

    def cost(self, sizes: Sizes) -> Cost:
        """No pass: matrices of u by u numbers, and some 3 log2(t) products of them."""
        u = min(sizes.n_samples, self.max_distinct)
        return Cost(eager_bytes=self._bytes(u, sizes.n_right), small_bytes=8 * u + 16 * sizes.n_right * self.n_clusters)

    @property
    def kept(self) -> tuple[str, ...]:
        """The clusters of the distinct rows."""
        return ("walks",)
