"""Sample of codes -> where SECRP starts: a good partition, and the projection in which it is told apart best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..pipeline.kmeans import sample_size
from ..runtime.execution import beside
from ..runtime.seeding import draw_ranks, stream
from .incidence import LabelBook
from .projected_kmeans import NearestProjected, lloyd_projected_sample, partition_in_projection, projected_starts
from .projection import ProjectedRows, projection_of
from .weighted_kmeans import IncidenceCenters, NearestCenter, lloyd_sample, partition_centers, partition_objective

__all__ = ["find_projected_start"]

#: The projections are shared among so many tasks; the best of each goes on.
GROUPS = 5
#: Passes after which the k-means++ starts are compared: which serve is plain before they have come to rest.
FIRST_PASSES = 6
#: Partitions that are improved without projection, until a pass gains no more than this share.
IMPROVED = 2
IMPROVE_TOL = 1e-3


def find_projected_start(
    sample: NDArray[Any],
    book: LabelBook,
    n_clusters: int,
    n_components: int,
    n_init: int,
    max_iter: int,
    seed: int,
    mean_weight: float,
) -> dict[str, Any]:
    """The start of SECRP's passes over all rows.

    Parameters
    ----------
    sample : (s, m) int
        Codes of rows with labels.
    book : LabelBook
    n_clusters, n_components, n_init, max_iter, seed : int
    mean_weight : float
        Unit of the weights.

    Returns
    -------
    dict
        ``centers`` (k', rd), the ``number`` of the projection in which they are, and the ``objective`` of their
        partition of the sample, without projection.

    Notes
    -----
    Three steps, which together are a small part of what SEC's starts take. k-means++ and a few passes on an eighth of
    the sample give a partition a projection. The best two of them are improved without projection. The best of these is
    brought into every projection, for a partition from elsewhere stays there which k-means in so few components does
    not find; where its objective suffers least, passes follow until nothing changes.
    """
    shared: dict[str, Any] = {"book": book}
    drawn = {"n_clusters": n_clusters, "n_components": n_components, "seed": seed, "mean_weight": mean_weight}
    groups = [(range(first, n_init, GROUPS),) for first in range(min(GROUPS, n_init))]
    part = sample[draw_ranks(stream(seed, "starting rows"), len(sample), sample_size(n_clusters) // 8)]
    first = beside(_first_partition, "dc-start", groups, sample=part, **shared, **drawn)
    best = sorted(first, key=itemgetter("objective"))[:IMPROVED]
    parts = [(found["labels"],) for found in best]
    better = beside(_improve, "dc-improve", parts, sample=sample, part=part, max_iter=max_iter, **shared)
    labels = NearestCenter(book, min(better, key=attrgetter("objective")).centers)(sample)
    ends = beside(_bring, "dc-project", groups, sample=sample, labels=labels, max_iter=max_iter, **shared, **drawn)
    return min(ends, key=itemgetter("objective"))


@dataclass(frozen=True)
class _Projected:
    """A sample in the projection of a number."""

    number: int
    points: ProjectedRows
    rows: NDArray[Any]
    weights: NDArray[np.float64]

    def end(self, sample: NDArray[Any], book: LabelBook, centers: NDArray[np.float64]) -> dict[str, Any]:
        """The partition by some centres, and its objective without projection."""
        labels = NearestProjected(self.points, centers).assign(self.rows, self.weights)
        objective = partition_objective(sample, book, labels, len(centers))
        return {"objective": objective, "number": self.number, "centers": centers, "labels": labels}


def _project(
    number: int, sample: NDArray[Any], book: LabelBook, n_components: int, seed: int, mean_weight: float
) -> _Projected:
    points = ProjectedRows(book, projection_of(book, n_components, seed, number), mean_weight)
    return _Projected(number, points, points(sample), points.weights(sample))


def _first_partition(
    numbers: Iterable[int],
    sample: NDArray[Any],
    book: LabelBook,
    n_clusters: int,
    n_components: int,
    seed: int,
    mean_weight: float,
) -> dict[str, Any]:
    """The best of a few passes in the projections of these numbers, each from a k-means++ start there."""

    def found(number: int) -> dict[str, Any]:
        its = _project(number, sample, book, n_components, seed, mean_weight)
        starts = projected_starts(its.rows, its.points, its.weights, n_clusters, stream(seed, "starts", number))
        run = lloyd_projected_sample(its.rows, its.weights, its.points, starts, max_iter=FIRST_PASSES)
        return its.end(sample, book, run.centers)

    return min(map(found, numbers), key=itemgetter("objective"))


def _improve(
    labels: NDArray[np.int32], sample: NDArray[Any], part: NDArray[Any], book: LabelBook, max_iter: int
) -> IncidenceCenters:
    """Lloyd's iteration on the sample without projection, from a partition of a part of it."""
    centers = partition_centers(part, book, labels, int(labels.max()) + 1)
    return lloyd_sample(sample, book, centers, max_iter=max_iter, tol=IMPROVE_TOL)


def _bring(
    numbers: Iterable[int],
    sample: NDArray[Any],
    labels: NDArray[np.int32],
    book: LabelBook,
    n_clusters: int,
    n_components: int,
    seed: int,
    mean_weight: float,
    max_iter: int,
) -> dict[str, Any]:
    """Lloyd's iteration from a partition, in that projection of these numbers in which its centres serve best."""

    def found(number: int) -> tuple[float, _Projected, NDArray[np.float64]]:
        its = _project(number, sample, book, n_components, seed, mean_weight)
        centers = partition_in_projection(its.rows, its.weights, its.points, labels, int(labels.max()) + 1)
        return its.end(sample, book, centers)["objective"], its, centers

    _, its, centers = min(map(found, numbers), key=itemgetter(0))
    run = lloyd_projected_sample(its.rows, its.weights, its.points, centers, max_iter=max_iter, n_clusters=n_clusters)
    end = its.end(sample, book, run.centers)
    return {key: end[key] for key in ("objective", "number", "centers")}
