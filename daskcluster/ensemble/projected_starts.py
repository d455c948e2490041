"""Sample of codes -> where SECRP starts: a good partition, and the projection in which it is told apart best."""

from __future__ import annotations

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

#: Passes after which the k-means++ starts are compared: which serve is plain before they have come to rest.
FIRST_PASSES = 10
#: Partitions that are improved without projection, until a pass gains no more than this share.
IMPROVED = 3
IMPROVE_TOL = 1e-3
#: Projections in which Lloyd's iteration comes to rest.
RESTING = 3


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
    Three steps, of which each is a small part of what SEC's starts take. k-means++ and a few passes on a quarter of the
    sample give a partition a projection. The best three of them are improved without projection. The best of these is
    brought into every projection, for a partition from elsewhere stays there what k-means in so few components does not
    find; where its objective suffers least, passes follow until nothing changes.
    """
    shared: dict[str, Any] = {"book": book, "n_clusters": n_clusters}
    drawn = {"n_components": n_components, "seed": seed, "mean_weight": mean_weight}
    numbers = [(number,) for number in range(n_init)]
    part = sample[draw_ranks(stream(seed, "starting rows"), len(sample), sample_size(n_clusters) // 4)]
    first = beside(_first_partition, "dc-start", numbers, sample=part, **shared, **drawn)
    best = sorted(first, key=itemgetter("objective"))[:IMPROVED]
    parts = [(found["labels"],) for found in best]
    better = beside(_improve, "dc-improve", parts, sample=sample, part=part, max_iter=max_iter, **shared)
    labels = NearestCenter(book, min(better, key=attrgetter("objective")).centers)(sample)
    brought = beside(_bring, "dc-project", numbers, sample=sample, labels=labels, **shared, **drawn)
    best = sorted(brought, key=itemgetter("objective"))[:RESTING]
    starts = [(found["number"], found["centers"]) for found in best]
    return min(
        beside(_rest, "dc-rest", starts, sample=sample, max_iter=max_iter, **shared, **drawn),
        key=itemgetter("objective"),
    )


def _first_partition(
    number: int,
    sample: NDArray[Any],
    book: LabelBook,
    n_clusters: int,
    n_components: int,
    seed: int,
    mean_weight: float,
) -> dict[str, Any]:
    """A few passes in the projection of this number from a k-means++ start there: the labels of the sample."""
    points = ProjectedRows(book, projection_of(book, n_components, seed, number), mean_weight)
    projected, weights = points(sample), points.weights(sample)
    starts = projected_starts(projected, points, weights, n_clusters, stream(seed, "starts", number))
    run = lloyd_projected_sample(projected, weights, points, starts, max_iter=FIRST_PASSES)
    labels = NearestProjected(points, run.centers).assign(projected, weights)
    return {"objective": partition_objective(sample, book, labels, len(run.centers)), "labels": labels}


def _improve(
    labels: NDArray[np.int32], sample: NDArray[Any], part: NDArray[Any], book: LabelBook, n_clusters: int, max_iter: int
) -> IncidenceCenters:
    """Lloyd's iteration on the sample without projection, from a partition of a part of it."""
    centers = partition_centers(part, book, labels, int(labels.max()) + 1)
    return lloyd_sample(sample, book, centers, max_iter=max_iter, tol=IMPROVE_TOL)


def _bring(
    number: int,
    sample: NDArray[Any],
    labels: NDArray[np.int32],
    book: LabelBook,
    n_clusters: int,
    n_components: int,
    seed: int,
    mean_weight: float,
) -> dict[str, Any]:
    """The centres of a partition in the projection of this number, and the objective of the nearest of them."""
    points = ProjectedRows(book, projection_of(book, n_components, seed, number), mean_weight)
    projected, weights = points(sample), points.weights(sample)
    centers = partition_in_projection(projected, weights, points, labels, int(labels.max()) + 1)
    nearest = NearestProjected(points, centers).assign(projected, weights)
    objective = partition_objective(sample, book, nearest, len(centers))
    return {"objective": objective, "number": number, "centers": centers}


def _rest(
    number: int,
    centers: NDArray[np.float64],
    sample: NDArray[Any],
    book: LabelBook,
    n_clusters: int,
    n_components: int,
    seed: int,
    mean_weight: float,
    max_iter: int,
) -> dict[str, Any]:
    """Lloyd's iteration in the projection of this number until nothing changes."""
    points = ProjectedRows(book, projection_of(book, n_components, seed, number), mean_weight)
    projected, weights = points(sample), points.weights(sample)
    run = lloyd_projected_sample(projected, weights, points, centers, max_iter=max_iter, n_clusters=n_clusters)
    labels = NearestProjected(points, run.centers).assign(projected, weights)
    objective = partition_objective(sample, book, labels, len(run.centers))
    return {"objective": objective, "number": number, "centers": run.centers}
