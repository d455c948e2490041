"""Consensus -> how far the base clusterings agree with it, row by row; and the rules that label rows by their codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.incidence import agreed_rows, agreement_rows, count_together
from ..pipeline.lift import LiftedRows, embed_block, sure_centers
from ..pipeline.lloyd import NearestCenters
from ..runtime.execution import FAN_IN, add_parts, tiles
from ..runtime.forecast import Cost, Sizes
from ..runtime.passes import reduced
from ..runtime.stages import Run, Stage
from .incidence import Coded, LabelBook, incidence_edges

__all__ = ["Agreement", "LabelsOf", "Rule", "agreement_block", "agreement_shares", "lifted_rule"]

#: Of a base cluster that has no place in the embedding: a row's others decide.
NO_SAY = -2
#: Block of codes -> label of each row (n,) int32, -1 for none.
LabelsOf = Callable[[NDArray[Any]], NDArray[np.int32]]


@dataclass(frozen=True)
class Rule:
    """What a fitted consensus says of rows by their codes; picklable functions of a block of codes.

    Attributes
    ----------
    labels : callable
        -> (n,) int32, -1 for rows without a known label.
    points : callable or None
        -> (n, q), the space in which rows are clustered, NaN for such rows; None where there is none.
    n_points : int
        q.
    """

    labels: LabelsOf
    points: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    n_points: int = 0


def lifted_rule(book: LabelBook, vectors: NDArray[np.float64], centers: NDArray[np.float64]) -> Rule:
    """Rule of a row's nearest centre; a row is the mean of its base clusters' vectors (c, q), at unit length."""
    points = LiftedRows(partial(incidence_edges, offsets=book.offsets), vectors)
    return Rule(AgreedLabels(points, book.offsets, centers), partial(embed_block, points=points), vectors.shape[1])


class AgreedLabels:
    """Block of codes -> labels (n,), the nearest centres of the embedded rows; a picklable callable.

    Parameters
    ----------
    points : LiftedRows
    offsets : (m + 1,) int64
        Of the base clusters.
    centers : (k, q) float64

    Notes
    -----
    Rows whose base clusters are all sure of one label are not embedded; most rows, where base clusterings agree.
    """

    def __init__(self, points: LiftedRows, offsets: NDArray[np.int64], centers: NDArray[np.float64]) -> None:
        self.offsets, self.nearest = offsets, NearestCenters(points, centers)
        vectors = points.vectors[:, : points.n_components].astype(np.float64)
        half = 0.5 * np.einsum("ij,ij->i", centers, centers)
        products = np.einsum("ij,kj->ik", vectors, centers)
        sure = sure_centers(products, half, np.linalg.norm(vectors, axis=1))
        self.sure = np.where(points.linked, sure, NO_SAY).astype(np.int32)

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """Label a block; -1 for rows without labels."""
        labels = agreed_rows(codes, self.offsets, self.sure)
        left = np.flatnonzero(labels < 0)
        if len(left):
            labels[left] = self.nearest.labels(codes[left])
        return labels


@dataclass(frozen=True)
class Agreement(Stage):
    """How the rows of each base cluster spread over the clusters.

    Attributes
    ----------
    n_clusters : int
    """

    title = "agreement"
    n_clusters: int

    def __call__(self, run: Run, coded: Coded, labels_of: LabelsOf, n_clusters: int) -> dict[str, Any]:
        """`agreement_shares` of the clusters that were found."""
        make = partial(agreement_shares, coded.codes, coded.book, labels_of, n_clusters)
        return run.products.small("sums", make)

    def cost(self, sizes: Sizes) -> Cost:
        """One pass; a task has sums of c k numbers, and combines some of them."""
        sums = 8 * (sizes.n_right + sizes.n_features) * self.n_clusters
        task = sizes.tile_rows * (9 * sizes.n_edges + 8 * self.n_clusters) + (FAN_IN + 2) * sums
        return sizes.over_held(task, small_bytes=4 * sums)

    @property
    def kept(self) -> tuple[str, ...]:
        """The sums."""
        return ("sums",)


def agreement_shares(codes: da.Array, book: LabelBook, labels_of: LabelsOf, n_clusters: int) -> dict[str, Any]:
    """Pass over all rows: in which clusters the rows of each base cluster lie.

    Parameters
    ----------
    codes : dask array (n, m) int
    book : LabelBook
    labels_of : callable
        Block of codes -> labels.
    n_clusters : int

    Returns
    -------
    dict
        ``counts`` (c, k) int64, rows of each base cluster in each cluster; ``masses`` (m, k) float64 and ``constant``,
        as `kernels.incidence.count_together` gives them, from which the objective of SEC follows.
    """
    task = partial(_count_block, book=book, labels_of=labels_of, n_clusters=n_clusters)
    return dict(reduced(task, add_parts, codes, name="dc-agree"))


def _count_block(block: NDArray[Any], book: LabelBook, labels_of: LabelsOf, n_clusters: int) -> dict[str, Any]:
    counts = np.zeros((book.n_base_clusters, n_clusters), np.int64)
    masses = np.zeros((book.n_base_clusterings, n_clusters))
    constant = 0.0
    for tile in tiles(len(block)):
        labels = labels_of(block[tile])
        constant += count_together(block[tile], book.offsets, book.sizes, labels, counts, masses)
    return {"counts": counts, "masses": masses, "constant": constant}


def agreement_block(
    codes: NDArray[Any], labels_of: LabelsOf, offsets: NDArray[np.int64], shares: NDArray[np.float64]
) -> NDArray[np.float32]:
    """How far the base clusterings agree with the consensus on each row of a block of codes, in [0, 1].

    The mean, over the base clusterings that label the row, of the share of the row's base cluster that lies in the
    row's consensus cluster. NaN for a row without labels.
    """
    return agreement_rows(codes, offsets, labels_of(codes), shares)
