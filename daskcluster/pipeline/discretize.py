"""Stage 5: embedding -> labels (n,)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..errors import warn_user
from ..runtime.execution import FAN_IN, map_rows
from ..runtime.forecast import Cost, Sizes
from ..runtime.seeding import stream
from ..runtime.stages import Run, Stage
from ..runtime.threads import one_blas_thread
from ..validation import POINTS, check_integer, most_clusters
from .farthest import NO_WEIGHTS, Points
from .kmeans import center_starts, sample_size
from .lift import LinkedRows, table_bytes
from .lloyd import Centers, best_of_starts, lloyd_over_block, lloyd_over_blocks, nearest_centers

__all__ = [
    "DISCRETIZE_TOL",
    "MANY_CLUSTERS",
    "Discretize",
    "Place",
    "assign_labels",
    "discretize",
    "starting_points",
    "warn_few_points",
    "warn_fewer",
]

#: Lloyd passes over all rows stop when the centres move by less, squared and summed, relative to the rows' variance.
#: The centres come converged from the sample; what is left is less than the sample's own noise.
DISCRETIZE_TOL = 1e-4


#: From so many clusters on starts are sought among representatives; of fewer, those on sampled rows take little time.
MANY_CLUSTERS = 32
#: Lloyd passes over all rows that a forecast assumes; 2 to 6 are usual.
LIKELY_ITER = 6

#: Sampled rows in the form of a held block -> centres (k, q).
Place = Callable[[NDArray[Any]], NDArray[np.float64]]


@dataclass(frozen=True)
class Discretize(Stage):
    """Stage 5: cluster centres in the embedding.

    Attributes
    ----------
    n_clusters, n_init, max_iter : int
        As in `discretize`.
    product : str
        Its name in a named store.
    n_finer : int
        Clusters of finer clusterings which `place` makes.
    """

    title = "discretize"
    n_clusters: int
    n_init: int
    max_iter: int
    product: str = "centers"
    n_finer: int = 0

    def check(self) -> None:
        """Refuse counts below 1."""
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)

    def __call__(
        self, run: Run, held: da.Array, points: Points, draw: Callable[[], NDArray[Any]], place: Place | None = None
    ) -> Centers:
        """Find the centres; `draw` gives sampled rows in the form of a held block."""
        made = run.products.small(self.product, lambda: vars(self._find(run, held, points, draw, place)))
        return Centers(made["centers"], float(made.get("inertia", np.nan)), int(made.get("n_iter", 0)))

    def _find(
        self, run: Run, held: da.Array, points: Points, draw: Callable[[], NDArray[Any]], place: Place | None
    ) -> Centers:
        options = {"n_init": self.n_init, "max_iter": self.max_iter, "seed": run.seed}
        return discretize(held, points, draw(), self.n_clusters, place=place, **options)

    def cost(self, sizes: Sizes) -> Cost:
        """`LIKELY_ITER` passes, each with the lift; before them k-means on a sample, or on the right vertices."""
        k = self.n_clusters
        drawn = min(sample_size(k), sizes.n_samples) * (
            8 * (k + self.n_finer) + 20 * sizes.n_edges + 2 * sizes.held_bytes + 60
        )
        tables = table_bytes(sizes.n_right, k)
        return sizes.over_held(lifted_bytes(sizes, k) + tables, times=LIKELY_ITER, eager_bytes=drawn + 2 * tables)

    @property
    def kept(self) -> tuple[str, ...]:
        """The centres."""
        return (self.product,)


def lifted_bytes(sizes: Sizes, n_clusters: int) -> int:
    """Bytes of a tile's edges, its embedding, and the sums of a pass."""
    return sizes.tile_rows * (20 * sizes.n_edges + 8 * n_clusters + 16) + 8 * n_clusters * (n_clusters + 3) * FAN_IN


def discretize(
    held: da.Array,
    points: Points,
    drawn: NDArray[Any],
    n_clusters: int,
    *,
    n_init: int = 3,
    max_iter: int = 100,
    seed: int = 0,
    place: Place | None = None,
) -> Centers:
    """Cluster centres of an embedding by k-means.

    Parameters
    ----------
    held, points
        Row blocks and the function that embeds them.
    drawn : (s, ...)
        Sampled rows in the form of a block.
    n_clusters : int
    n_init : int
        Starts; the one with the lowest inertia goes on.
    max_iter : int
        Lloyd passes on the starting points, on sampled rows, and over all rows.
    seed : int
        Root seed.
    place : callable, optional
        Sampled rows -> the centres with which the passes over all rows begin, instead of those by k-means.

    Returns
    -------
    Centers

    Notes
    -----
    Departure from uspec_usenc_2019, which says no more than "k-means": k-means++ starts on points that do not grow
    with n, then passes over all rows, each fused with the lift, until the centres stay. The starting points are the
    sampled rows. Of a graph between rows and representatives, and `MANY_CLUSTERS` clusters or more, they are the
    representatives, weighted by their mass, and each start goes on over the sampled rows, where the best is chosen: p
    points where the sample grows with k, so a start takes p k**2 operations and not k**3 times hundreds, and small
    clusters are there, since each has its representatives.
    """
    begin, weights = starting_points(points, drawn, n_clusters)
    options: dict[str, Any] = {"max_iter": max_iter, "limit": _limit(begin, weights), "n_clusters": n_clusters}
    with one_blas_thread():
        if place is not None:
            centers = place(drawn)
        else:
            rngs = (stream(seed, "discretize", number) for number in range(n_init))
            starts = (center_starts(begin, n_clusters, rng, weights) for rng in rngs)
            centers = _best_centers(drawn, points, (begin, weights), starts, options)
    return lloyd_over_blocks(held, points, centers, **options)


def _best_centers(
    drawn: NDArray[Any],
    points: Points,
    begin: tuple[NDArray[np.floating], NDArray[np.float64]],
    starts: Iterable[NDArray[np.float64]],
    options: dict[str, Any],
) -> NDArray[np.float64]:
    """Centres of the start with the lowest inertia on the starting points; of weighted ones on the sampled rows."""
    values, weights = begin
    if not len(weights):
        return best_of_starts(values, starts, max_iter=options["max_iter"])[0].centers
    found = (best_of_starts(values, [start], weights, max_iter=options["max_iter"])[0] for start in starts)
    runs = (lloyd_over_block(drawn, points, run.centers, **options) for run in found)
    return min(runs, key=lambda run: run.inertia).centers


def starting_points(
    points: Points, drawn: NDArray[Any], n_clusters: int
) -> tuple[NDArray[np.floating], NDArray[np.float64]]:
    """Points of an embedding (s, q) among which clusters start, and their weights (s,), or (0,) for weights of 1."""
    if isinstance(points, LinkedRows) and n_clusters >= MANY_CLUSTERS:
        return points.right_points(drawn)
    return points(drawn)[0], NO_WEIGHTS


def _limit(begin: NDArray[np.floating], weights: NDArray[np.float64]) -> float:
    """Movement of the centres, squared and summed, that is none."""
    if not len(weights):
        return DISCRETIZE_TOL * float(np.var(begin, axis=0, dtype=np.float64).sum())
    mean = np.average(begin, axis=0, weights=weights)
    return DISCRETIZE_TOL * float(np.average(((begin - mean) ** 2).sum(axis=1), weights=weights))


def assign_labels(held: da.Array, points: Points, centers: NDArray[np.float64]) -> da.Array:
    """Label of every row, lazy (n,) int32: its nearest centre, -1 for rows that are missing."""
    nearest = nearest_centers(points, centers)
    return map_rows(nearest.labels, held, name="dc-assign", columns=None, dtype=np.int32)


def warn_fewer(estimator: Any, n_found: int, n_clusters: int) -> None:
    """The one warning that fewer clusters were found than asked for."""
    from ..errors import FewerClustersWarning  # imports scikit-learn

    warn_user(
        f"{type(estimator).__name__} found {n_found} clusters, not n_clusters={n_clusters}: "
        "there are not enough distinct rows or linked representatives",
        FewerClustersWarning,
    )


def warn_few_points(estimator: Any) -> None:
    """Warn of a fit that found as many clusters as asked for, by fewer representatives or landmarks than these.

    Fewer rows are no mistake: the parameters are upper bounds then.
    """
    most, k = most_clusters(estimator), estimator.n_clusters
    if most is not None and most < k:
        name = next(name for name in POINTS if getattr(estimator, name, None) == most)
        warn_user(
            f"{name} should be at least n_clusters, got {name}={most} and n_clusters={k}: clusters that share their "
            "points are told apart by chance"
        )
