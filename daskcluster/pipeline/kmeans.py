"""Weighted k-means: its starts, on a sample or by passes over all rows, and the stages of the `KMeans` estimator.

The iteration itself is in `lloyd`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.lloyd import assign_rows, search_bytes
from ..kernels.points import (
    distinct_points,
    like_points,
    lower_closest,
    mean_variance,
    packed_points,
    stacked,
    start_rows,
    unpacked_points,
)
from ..kernels.sparse_rows import is_sparse
from ..runtime.execution import FAN_IN, add_parts
from ..runtime.forecast import Cost, Sizes
from ..runtime.passes import mapped, reduced
from ..runtime.seeding import stream
from ..runtime.stages import Run, Stage
from ..validation import check_integer, check_option, check_real
from .directions import row_points
from .farthest import NO_WEIGHTS, Points, weights_of
from .lloyd import Centers, best_of_starts, lloyd_block, lloyd_in_memory, lloyd_over_blocks
from .scan import RowScan

__all__ = [
    "INITS",
    "START_ROWS",
    "Given",
    "LloydPasses",
    "Starts",
    "center_bytes",
    "center_starts",
    "parallel_starts",
    "partial_bytes",
    "sample_size",
]

#: Starts are chosen and compared on so many sampled rows at least.
START_ROWS = 2**14
#: k-means|| as in Bahmani et al. 2012: rounds, and candidates a round for each centre.
PARALLEL_ROUNDS = 5
PARALLEL_FACTOR = 2

INITS = ("k-means++", "k-means||", "random")
#: Centres that move by less, relative to the variance, move by rounding only.
LEAST_TOL = 1e-24


#: Centres (k, d) that a user gives, or a function of the sampled rows and a seed that gives them.
Given = NDArray[np.float64] | Callable[[NDArray[Any], int], NDArray[np.float64]]


class Sampled(NamedTuple):
    """Prepared rows of the sample that take part (s, d), and their weights (s,), or (0,) for weights of 1."""

    points: NDArray[np.floating]
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class Starts(Stage):
    """Where the clusters of `KMeans` start: the best of several starts on a sample.

    Attributes
    ----------
    n_clusters : int
    init : {"k-means++", "k-means||", "random", "given"}
    n_init, max_iter : int
    tol : float
    """

    title = "starts"
    n_clusters: int
    init: str
    n_init: int
    max_iter: int
    tol: float

    def check(self) -> None:
        """Refuse an unknown kind of starts, counts below 1 and a negative tolerance."""
        if self.init != "given":
            check_option("init", self.init, INITS)
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)
        check_real("tol", self.tol, 0.0)

    def __call__(self, run: Run, found: RowScan, weights: da.Array | None, given: Given | None) -> NDArray[np.float64]:
        """Centres (k', d), prepared; `given` are (k, d) in the units of the input, or made of the sample and a seed."""
        make = partial(self._find, run, found, weights, given)
        return unpacked_points("starts", run.products.small("starts", lambda: packed_points("starts", make())))

    def _find(self, run: Run, found: RowScan, weights: da.Array | None, given: Given | None) -> NDArray[np.float64]:
        if callable(given):
            sample: Any = found.sample
            sample = sample.matrix if is_sparse(sample) else sample
            given = given(sample, int(stream(run.seed, "starts", 0).integers(2**31)))
        if given is not None:
            return like_points(found.form.prepare_points(given), found.sample)
        sample = self._sampled(found)
        starts = (self._start(run, found, sample, weights, number) for number in range(self.n_init))
        options: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "unit_length": found.form.unit_length}
        return best_of_starts(sample.points, starts, sample.weights, **options)[0].centers

    def _sampled(self, found: RowScan) -> Sampled:
        points, rows = row_points(found.form)(found.sample)
        if not len(points):
            raise ValueError(
                "X must have rows that are not all 0, which have no direction, with metric='cosine'; "
                f"got none among {len(found.sample)} sampled ones"
            )
        weights = found.sample_weights
        return Sampled(points, weights_of(weights, rows) if len(weights) else weights)

    def _start(
        self, run: Run, found: RowScan, sample: Sampled, weights: da.Array | None, number: int
    ) -> NDArray[np.float64]:
        rng = stream(run.seed, "starts", number)
        if self.init != "k-means||":
            return center_starts(sample.points, self.n_clusters, rng, sample.weights, self.init)
        first = center_starts(sample.points, 1, rng, sample.weights)
        points = row_points(found.form)
        return parallel_starts(
            run.rows.blocks,
            points,
            first,
            self.n_clusters,
            run.seed + number,
            weights,
            unit_length=found.form.unit_length,
        )

    def cost(self, sizes: Sizes) -> Cost:
        """k-means on the sample; k-means|| goes over all rows in each of its rounds."""
        rounds = self.n_init * (PARALLEL_ROUNDS + 1) if self.init == "k-means||" else 0
        drawn = min(sample_size(self.n_clusters), sizes.n_samples)
        candidates = (PARALLEL_ROUNDS * PARALLEL_FACTOR + 1) * self.n_clusters
        task = sizes.block_rows * (sizes.prepared_bytes + 48) + partial_bytes(sizes, candidates)
        task += center_bytes(sizes, candidates, None)
        eager = drawn * (sizes.with_copies(3) + 44) + center_bytes(sizes, self.n_clusters, drawn)
        return sizes.over_input(task, times=rounds, reduced=True, eager_bytes=eager)

    @property
    def kept(self) -> tuple[str, ...]:
        """The starts."""
        return ("starts",)


@dataclass(frozen=True)
class LloydPasses(Stage):
    """Lloyd's iteration over all rows.

    Attributes
    ----------
    n_clusters, max_iter : int
    tol : float
    """

    title = "Lloyd passes"
    n_clusters: int
    max_iter: int
    tol: float

    def __call__(self, run: Run, found: RowScan, starts: NDArray[np.float64], weights: da.Array | None) -> Centers:
        """Centres, prepared."""
        made = run.products.small("centers", lambda: self._packed(self._iterate(run, found, starts, weights)))
        return Centers(unpacked_points("centers", made), float(made["inertia"]), int(made["n_iter"]))

    def _packed(self, found: Centers) -> dict[str, Any]:
        return {"inertia": found.inertia, "n_iter": found.n_iter, **packed_points("centers", found.centers)}

    def _iterate(self, run: Run, found: RowScan, starts: NDArray[np.float64], weights: da.Array | None) -> Centers:
        sample = found.form.prepare(found.sample)
        limit = max(self.tol, LEAST_TOL) * mean_variance(sample)
        points, unit = row_points(found.form), found.form.unit_length
        options: dict[str, Any] = {"max_iter": self.max_iter, "limit": limit, "n_clusters": self.n_clusters}
        options["unit_length"] = unit
        return lloyd_over_blocks(run.rows.blocks, points, starts, weights, **options)

    def cost(self, sizes: Sizes) -> Cost:
        """`max_iter` passes over the input, at most; few runs need so many."""
        k = self.n_clusters
        task = sizes.tile_rows * (sizes.prepared_bytes + 20) + sizes.block_rows * 8 + partial_bytes(sizes, k)
        task += center_bytes(sizes, k, None)
        eager = min(sample_size(k), sizes.n_samples) * sizes.prepared_bytes
        dense = 0 if sizes.row_entries is None else 8 * k * sizes.n_features  # the centres are handed out with zeros
        return sizes.over_input(task, times=self.max_iter, reduced=True, eager_bytes=eager + dense, small_bytes=dense)

    @property
    def kept(self) -> tuple[str, ...]:
        """The centres."""
        return ("centers",)


def partial_bytes(sizes: Sizes, n_clusters: int) -> int:
    """Partial results that a task of the tree of a pass adds up."""
    return 2 * FAN_IN * (sizes.point_bytes * sizes.point_numbers(n_clusters) + 24 * n_clusters)


def center_bytes(sizes: Sizes, n_clusters: int, of_rows: int | None) -> int:
    """A search for the nearest of centres that are means of so many rows; None for all rows."""
    numbers = None if sizes.row_entries is None else sizes.point_numbers(n_clusters, of_rows)
    return search_bytes(n_clusters, sizes.n_features, numbers)


def sample_size(n_clusters: int) -> int:
    """Rows of the sample on which starts are chosen: at least `START_ROWS`, and 256 for each cluster."""
    return max(START_ROWS, 256 * n_clusters)


def center_starts(
    points: NDArray[np.floating],
    n_clusters: int,
    rng: np.random.Generator,
    weights: NDArray[np.float64] = NO_WEIGHTS,
    method: str = "k-means++",
) -> NDArray[np.float64]:
    """Rows of a small problem at which the clusters start.

    Parameters
    ----------
    points : (n, q)
    n_clusters : int
    rng : numpy.random.Generator
    weights : (n,) or (0,) for weights of 1
    method : {"k-means++", "random"}
        Greedy k-means++ with 2 + log(k) trials a step, or distinct random rows.

    Returns
    -------
    (k', q) float64; k' < k when there are fewer distinct rows with weight.
    """
    if method == "k-means++":
        n_trials = 2 + int(np.log(n_clusters))
        return points[start_rows(points, weights, rng.random((n_clusters, n_trials)))].astype(np.float64)
    order = rng.permutation(len(points) if len(weights) == 0 else np.flatnonzero(weights > 0))
    return points[order[distinct_points(points[order])[:n_clusters]]].astype(np.float64)


def parallel_starts(
    held: da.Array,
    points: Points,
    first: NDArray[np.float64],
    n_clusters: int,
    root: int,
    weights: da.Array | None = None,
    unit_length: bool = False,
) -> NDArray[np.float64]:
    """Starts by k-means|| over all rows.

    Parameters
    ----------
    held, points, weights
        As in `lloyd_over_blocks`.
    first : (1, q)
        The first candidate.
    n_clusters : int
    root : int
        Root seed; a row's random number depends on it, the round, and the row's block and place.
    unit_length : bool
        Whether the candidates are reclustered by their direction.

    Returns
    -------
    (k', q) float64, k' <= k

    Notes
    -----
    Bahmani, Moseley, Vattani, Kumar, Vassilvitskii, VLDB 2012. Departure: a round draws exactly 2 k rows without
    replacement with probability in proportion to weight * sqdist, by the keys of Efraimidis and Spirakis (2006),
    instead of a Bernoulli draw a row; this needs one pass a round, not two. Then one pass weighs the candidates, which
    are reclustered in memory.
    """
    candidates = first
    n_draws = PARALLEL_FACTOR * n_clusters
    for number in range(PARALLEL_ROUNDS):
        task = partial(_draw_block, points=points, candidates=candidates, n_draws=n_draws, seed=(root, number))
        drawn = mapped(task, held, name="dc-draw", weights=weights)
        keys = np.concatenate([part["keys"] for part in drawn])
        rows = stacked([part["rows"] for part in drawn])
        best = np.argsort(-keys, kind="stable")[:n_draws]
        if len(best) == 0:
            break  # every row is a candidate already
        candidates = stacked([candidates, rows[best]])
    task = partial(lloyd_block, points=points, centers=candidates)
    masses = reduced(task, add_parts, held, name="dc-weigh", weights=weights)["masses"]
    starts = center_starts(candidates, n_clusters, stream(root, "recluster"), masses)
    return lloyd_in_memory(candidates, starts, masses, unit_length=unit_length)[0].centers


def _draw_block(
    block: NDArray[Any],
    number: int,
    points: Points,
    candidates: NDArray[np.float64],
    n_draws: int,
    seed: tuple[int, int],
    weights: NDArray[np.float64] | None = None,
) -> dict[str, Any]:
    values, rows = points(block)
    root, round_number = seed
    uniforms = stream(root, "k-means||", round_number, number).random(len(block))
    sqdist = np.full(len(values), np.inf)
    nearest = assign_rows(values, candidates)
    for c in np.unique(nearest):
        members = nearest == c
        closest = np.full(int(members.sum()), np.inf)
        lower_closest(values[members], candidates, int(c), closest)
        sqdist[members] = closest
    mass = sqdist if weights is None else sqdist * weights_of(weights, rows)
    drawn = uniforms if rows is None else uniforms[rows]
    able = np.flatnonzero(mass > 0)
    keys = np.log1p(-drawn[able]) / mass[able]  # log of u ** (1 / mass), u in (0, 1]
    best = np.argsort(-keys, kind="stable")[:n_draws]
    return {"keys": keys[best], "rows": values[able[best]].astype(np.float64)}
