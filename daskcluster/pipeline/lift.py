"""Stages 4 and 5 on blocks: edges -> embedding (n, q), and labels by the nearest centre there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.cut import LABEL_COLUMNS, label_lifted, lift_rows
from ..kernels.lloyd import byte_order
from ..kernels.neighbors import PAD_COLUMNS
from ..runtime.threads import one_blas_thread
from .bipartite import EdgesOf
from .lloyd import NearestCenters
from .rows import scatter_rows

__all__ = ["LiftedLabels", "LiftedRows", "LinkedRows", "embed_block", "sure_centers", "table_bytes"]


#: From so many centres on their products with the vectors are faster than distances.
MANY_CENTERS = 20
#: Float32 sums of a handful of terms are within this share of the largest one, with room.
ROUNDING = 1e-5


def table_bytes(n_right: int, n_centers: int) -> int:
    """Bytes of the products of right vertices and so many centres, made in float64, and of the vectors beside them."""
    return 24 * n_right * n_centers if n_centers >= MANY_CENTERS else 0


class LiftedRows:
    """Held block -> embedding of its rows with edges, and their numbers; a picklable callable.

    Parameters
    ----------
    edges_of : callable
    vectors : (p, q) float64
    """

    def __init__(self, edges_of: EdgesOf, vectors: NDArray[np.float64]) -> None:
        self.edges_of = edges_of
        self.n_components = vectors.shape[1]
        padding = -self.n_components % PAD_COLUMNS
        self.vectors = np.pad(vectors.astype(np.float32), ((0, 0), (0, padding)))
        self.linked: NDArray[np.bool_] = np.asarray(vectors.any(axis=1))

    def __call__(self, block: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.intp] | None]:
        """Embed a block."""
        indices, weights, rows = self.linked_edges(block)
        return self.lift(indices, weights), rows

    def lift(self, indices: NDArray[np.int32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """Embedding of rows with edges."""
        return np.asarray(lift_rows(indices, weights, self.vectors, self.linked, self.n_components))

    def linked_edges(self, block: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.float32], Any]:
        """Right vertices and affinities of the rows with edges, and their numbers, None for all rows."""
        indices, weights = self.edges_of(block)
        if indices.min(initial=0) >= 0:  # the usual case, in a fraction of the time
            return indices, weights, None
        there = (indices >= 0).any(axis=1)
        if there.all():
            return indices, weights, None
        rows = np.flatnonzero(there)
        return indices[rows], weights[rows], rows


class LinkedRows(LiftedRows):
    """The same of rows with few edges, a handful of representatives: so many centres are found by products."""

    def nearest_centers(self, centers: NDArray[np.float64]) -> Any:
        """Block -> nearest of these centres (k, q)."""
        return LiftedLabels(self, [centers]) if len(centers) >= MANY_CENTERS else NearestCenters(self, centers)

    def right_points(self, block: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """The right vertices to which rows of a block are linked: places in the embedding (p', q), and masses (p',).

        A row that has one edge lies there. The mass is the sum over the rows of an edge's share of the row.
        """
        indices, weights, _ = self.linked_edges(block)
        there = (indices >= 0) & self.linked[indices]
        shares = np.where(there, weights, np.float32(0)).astype(np.float64)
        sums = shares.sum(axis=1, keepdims=True)
        np.divide(shares, sums, out=shares, where=sums > 0)
        masses = np.bincount(indices[there], shares[there], minlength=len(self.vectors)).astype(np.float64)
        found = np.flatnonzero(masses > 0)
        vectors = self.vectors[found, : self.n_components].astype(np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        return vectors.astype(np.float32), masses[found]

    def first(self, n_components: int) -> LinkedRows:
        """The embedding by the first columns only."""
        return type(self)(self.edges_of, self.vectors[:, :n_components].astype(np.float64))


class LiftedLabels:
    """Held block -> labels of its rows, the nearest centres in their embedding; a picklable callable.

    Parameters
    ----------
    points : LinkedRows
    centers : sequence of (k_j, q_j) float64
        Of each clustering, by the first q_j columns of the embedding.
    dtype : dtype
        Of the labels.

    Notes
    -----
    The labels of a clustering do not depend on those beside it. 4 p bytes a centre; a product of (p, q) with (q, k) for
    each clustering, when the first block comes.
    """

    def __init__(self, points: LinkedRows, centers: Sequence[NDArray[np.float64]], dtype: Any = np.int32) -> None:
        self.points, self.centers, self.dtype = points, list(centers), np.dtype(dtype)
        self._many = [j for j, own in enumerate(self.centers) if len(own) >= MANY_CENTERS]
        self._few: list[tuple[int, NearestCenters]] = []
        self._tables: Any = None

    def __reduce__(self) -> Any:
        """Without the tables, which are larger than what they are made of."""
        return type(self), (self.points, self.centers, self.dtype)

    def __call__(self, block: NDArray[Any]) -> NDArray[Any]:
        """Labels of every row (n, m) in m clusterings, -1 for rows without edges."""
        if self._tables is None:
            self._tables = self._made()
        labels = np.empty((len(block), len(self.centers)), self.dtype)
        for j, nearest in self._few:
            labels[:, j] = nearest.labels(block)
        if self._many:
            labels[:, self._many] = self._by_products(block)
        return labels

    def _by_products(self, block: NDArray[Any]) -> NDArray[Any]:
        indices, weights, rows = self.points.linked_edges(block)
        return scatter_rows(self._label(indices, weights), rows, len(block), -1)

    def _label(self, indices: NDArray[np.int32], weights: NDArray[np.float32]) -> NDArray[Any]:
        """Labels of rows with edges in the clusterings of many centres."""
        if self._tables is None:
            self._tables = self._made()
        labels = np.empty((len(indices), len(self._many)), self.dtype)
        label_lifted(indices, weights, self.points.vectors, self.points.linked, *self._tables, labels)
        return labels

    def labels(self, block: NDArray[Any]) -> NDArray[Any]:
        """Labels of every row (n,) in the one clustering."""
        return np.ascontiguousarray(self(block)[:, 0])

    def assign(self, block: NDArray[Any]) -> tuple[NDArray[np.floating], NDArray[np.intp] | None, NDArray[np.int32]]:
        """Embedding of the rows with edges, their numbers, and their labels in the one clustering."""
        indices, weights, rows = self.points.linked_edges(block)
        return self.points.lift(indices, weights), rows, self._label(indices, weights)[:, 0].astype(np.int32)

    def _made(self) -> tuple[Any, ...]:
        """What `label_lifted` reads beside the edges; and the clusterings of few centres get their own way."""
        self._few = [
            (j, NearestCenters(self.points.first(own.shape[1]), own))
            for j, own in enumerate(self.centers)
            if j not in self._many
        ]
        many = [self.centers[j] for j in self._many]
        numbers = np.array([len(centers) for centers in many], np.int64)
        starts = np.concatenate([[0], np.cumsum(-(-numbers // LABEL_COLUMNS) * LABEL_COLUMNS)]).astype(np.int64)
        products = np.zeros((len(self.points.vectors), starts[-1]), np.float32)
        half = np.full(starts[-1], np.inf, np.float32)
        names = np.zeros(starts[-1], np.int32)
        for start, centers in zip(starts[:-1], many, strict=True):
            place = slice(start, start + len(centers))
            order = byte_order(centers)  # so that ties do not depend on how clusters are numbered
            names[place] = order
            products[:, place], half[place] = self._one(centers[order])
        widths = np.array([centers.shape[1] for centers in many], np.int64)
        sure = np.empty((len(products), len(many)), np.int32)
        for j, centers in enumerate(many):
            place = slice(starts[j], starts[j] + len(centers))
            lengths = np.linalg.norm(self.points.vectors[:, : widths[j]].astype(np.float64), axis=1)
            found = sure_centers(products[:, place], half[place], lengths)
            sure[:, j] = np.where(found >= 0, names[place][found], -1)
        return products, half, widths, starts.astype(np.uint64), names, sure

    def _one(self, centers: NDArray[np.float64]) -> tuple[Any, Any]:
        """Products with the centres, less their mean, which all of them share; and what makes scores positive.

        With o the mean of the centres, abs(h - c)**2 / 2 is c c / 2 - h (c - o) but for what does not depend on c; and
        h (c - o) is at most abs(c - o) for h of unit length.
        """
        apart = centers - centers.mean(axis=0)
        with one_blas_thread():
            products = self.points.vectors[:, : centers.shape[1]].astype(np.float64) @ apart.T
        half = 0.5 * np.einsum("ij,ij->i", centers, centers)
        farthest = np.sqrt(np.einsum("ij,ij->i", apart, apart).max())
        return products, half - half.min() + 1.001 * farthest


def sure_centers(
    products: NDArray[np.floating], half: NDArray[np.floating], lengths: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Of each right vertex the centre that is nearest to a row all of whose vertices have it here; -1 for none.

    Parameters
    ----------
    products : (p, k)
        Of the vertices' vectors and the centres, less the same number for all centres of a vertex if any.
    half : (k,)
        Half of the squared lengths of the centres, up to a constant.
    lengths : (p,) float64
        Of the vectors.

    Returns
    -------
    (p,) int

    Notes
    -----
    A row is a mean h of vectors y, so abs(h) is at most the mean of abs(y). By the smallest abs(h) half - h c, the
    centre a is nearer than b when y a - y b > abs(y) max(half_a - half_b, 0) for each y; with something to spare, so
    that the rounding of float32 sums does not matter.
    """
    every = np.arange(len(products))
    best = (lengths[:, None] * half - products).argmin(axis=1)
    ahead = products[every, best][:, None] - products
    needed = lengths[:, None] * np.maximum(half[best][:, None] - half, 0)
    spare = ROUNDING * (np.abs(products).max(axis=1) + lengths * np.abs(half).max())
    certain = ahead > needed + spare[:, None]
    certain[every, best] = True
    return np.where(certain.all(axis=1) & (lengths > 0), best, -1)


def embed_block(block: NDArray[Any], points: LiftedRows) -> NDArray[np.float32]:
    """Embedding of every row of a held block; NaN for rows without edges."""
    return scatter_rows(*points(block), len(block), np.nan)
