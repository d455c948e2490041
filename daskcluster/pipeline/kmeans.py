"""Weighted k-means: in memory for small problems, and by passes over all row blocks.

Everything that needs centres goes through here: representatives, rep-clusters, the discretisation of an embedding and
the `KMeans` estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.lloyd import accumulate_rows, assign_rows, closest_sqdist, plus_plus_rows
from ..runtime.execution import FAN_IN, add_parts, compute, map_to_objects, reduce_blocks, tiles
from ..runtime.forecast import Cost, Sizes
from ..runtime.seeding import stream
from ..runtime.stages import Run, Stage
from ..runtime.threads import one_blas_thread
from ..validation import check_integer, check_option, check_real
from .rows import PreparedRows
from .scan import RowScan

__all__ = [
    "INITS",
    "START_ROWS",
    "Centers",
    "LloydPasses",
    "Points",
    "Starts",
    "best_of_starts",
    "center_starts",
    "distinct_rows",
    "lloyd_in_memory",
    "lloyd_over_blocks",
    "parallel_starts",
    "sample_size",
]

#: Starts are chosen and compared on so many sampled rows at least.
START_ROWS = 2**14
#: k-means|| as in Bahmani et al. 2012: rounds, and candidates a round for each centre.
PARALLEL_ROUNDS = 5
PARALLEL_FACTOR = 2

_NO_WEIGHTS = np.empty(0)

#: Held block -> (points (n', q), number of the rows in the block (n',) or None when all rows take part).
Points = Callable[[NDArray[Any]], tuple[NDArray[np.floating], NDArray[np.intp] | None]]


@dataclass(frozen=True)
class Centers:
    """Result of a k-means run.

    Attributes
    ----------
    centers : (k', q) float64
        Centres of the clusters that have rows, in the order of their first row.
    inertia : float
        Weighted sum of squared distances to them.
    n_iter : int
        Lloyd passes.
    """

    centers: NDArray[np.float64]
    inertia: float
    n_iter: int


INITS = ("k-means++", "k-means||", "random")
#: Centres that move by less, relative to the variance, move by rounding only.
LEAST_TOL = 1e-24


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

    def __call__(
        self, run: Run, found: RowScan, weights: da.Array | None, given: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Centres (k', d), prepared; `given` are (k, d) in the units of the input."""
        make = partial(self._find, run, found, weights, given)
        return np.asarray(run.products.small("starts", lambda: {"starts": make()})["starts"])

    def _find(
        self, run: Run, found: RowScan, weights: da.Array | None, given: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        if given is not None:
            return found.form.prepare_points(given)
        sample = found.form.prepare(found.sample)
        starts = (self._start(run, found, sample, weights, number) for number in range(self.n_init))
        best, _ = best_of_starts(sample, starts, found.sample_weights, max_iter=self.max_iter, tol=self.tol)
        return best.centers

    def _start(
        self, run: Run, found: RowScan, sample: NDArray[np.floating], weights: da.Array | None, number: int
    ) -> NDArray[np.float64]:
        rng = stream(run.seed, "starts", number)
        if self.init != "k-means||":
            return center_starts(sample, self.n_clusters, rng, found.sample_weights, self.init)
        first = center_starts(sample, 1, rng, found.sample_weights)
        points = PreparedRows(found.form)
        return parallel_starts(run.rows.blocks, points, first, self.n_clusters, run.seed + number, weights)

    def cost(self, sizes: Sizes) -> Cost:
        """k-means on the sample; k-means|| goes over all rows in each of its rounds."""
        rounds = self.n_init * (PARALLEL_ROUNDS + 1) if self.init == "k-means||" else 0
        drawn, d = min(sample_size(self.n_clusters), sizes.n_samples), sizes.n_features
        candidates = (PARALLEL_ROUNDS * PARALLEL_FACTOR + 1) * self.n_clusters
        task = sizes.block_rows * (sizes.prepared_bytes + 48) + 16 * candidates * (d + 3) * FAN_IN
        eager = drawn * (d * (sizes.raw_bytes + 2 * sizes.number_bytes) + 40)
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
        made = run.products.small("centers", lambda: vars(self._iterate(run, found, starts, weights)))
        return Centers(made["centers"], float(made["inertia"]), int(made["n_iter"]))

    def _iterate(self, run: Run, found: RowScan, starts: NDArray[np.float64], weights: da.Array | None) -> Centers:
        sample = found.form.prepare(found.sample)
        limit = max(self.tol, LEAST_TOL) * float(np.var(sample, axis=0, dtype=np.float64).mean())
        points = PreparedRows(found.form)
        return lloyd_over_blocks(run.rows.blocks, points, starts, weights, max_iter=self.max_iter, limit=limit)

    def cost(self, sizes: Sizes) -> Cost:
        """`max_iter` passes over the input, at most; few runs need so many."""
        sums = 16 * self.n_clusters * (sizes.n_features + 3) * FAN_IN
        task = sizes.tile_rows * (sizes.prepared_bytes + 20) + sizes.block_rows * 8 + sums
        eager = min(sample_size(self.n_clusters), sizes.n_samples) * sizes.prepared_bytes
        return sizes.over_input(task, times=self.max_iter, reduced=True, eager_bytes=eager)

    @property
    def kept(self) -> tuple[str, ...]:
        """The centres."""
        return ("centers",)


def sample_size(n_clusters: int) -> int:
    """Rows of the sample on which starts are chosen: at least `START_ROWS`, and 256 for each cluster."""
    return max(START_ROWS, 256 * n_clusters)


def center_starts(
    points: NDArray[np.floating],
    n_clusters: int,
    rng: np.random.Generator,
    weights: NDArray[np.float64] = _NO_WEIGHTS,
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
        return points[plus_plus_rows(points, weights, rng.random((n_clusters, n_trials)))].astype(np.float64)
    order = rng.permutation(len(points) if len(weights) == 0 else np.flatnonzero(weights > 0))
    return points[order[distinct_rows(points[order])[:n_clusters]]].astype(np.float64)


def distinct_rows(points: NDArray[np.floating]) -> NDArray[np.intp]:
    """Numbers of the rows (n, q) that differ from every row before them, ascending."""
    # Rows as strings of bytes: many times faster than np.unique(axis=0). Adding 0 makes -0.0 equal to 0.0.
    rows = np.ascontiguousarray(points + points.dtype.type(0))
    _, first = np.unique(rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel(), return_index=True)
    return np.sort(first)


def _pass(
    points: NDArray[np.floating], weights: NDArray[np.float64], centers: NDArray[np.float64]
) -> tuple[dict[str, Any], NDArray[np.int32]]:
    """One Lloyd pass over points in memory: the sums, and the labels."""
    found = _empty_pass(centers)
    labels = _add_rows(found, points, None, len(points), weights, centers)
    return found, labels


def _empty_pass(centers: NDArray[np.float64]) -> dict[str, Any]:
    n_clusters = len(centers)
    return {
        "rows": 0,
        "sums": np.zeros_like(centers),
        "masses": np.zeros(n_clusters),
        "first": np.full(n_clusters, -1, np.int64),
        "inertia": 0.0,
    }


def _add_rows(
    found: dict[str, Any],
    points: NDArray[np.floating],
    rows: NDArray[np.intp] | None,
    n_rows: int,
    weights: NDArray[np.float64],
    centers: NDArray[np.float64],
) -> NDArray[np.int32]:
    """Add points to the sums of a pass, in row order; `rows` are their numbers among `n_rows` rows. Labels."""
    labels = assign_rows(points, centers)
    first = np.full(len(centers), len(points), np.int64)
    found["inertia"] += accumulate_rows(points, weights, labels, centers, found["sums"], found["masses"], first)
    new = (found["first"] < 0) & (first < len(points))
    found["first"][new] = found["rows"] + (first[new] if rows is None else rows[first[new]])
    found["rows"] += n_rows
    return labels


def _moved(centers: NDArray[np.float64], found: dict[str, Any], unit_length: bool) -> NDArray[np.float64]:
    """Means of the clusters, if wanted at unit length; one without weight stays where it is."""
    masses = found["masses"][:, None]
    moved = centers + np.divide(found["sums"], masses, out=np.zeros_like(centers), where=masses > 0)
    if unit_length:
        norms = np.sqrt(np.einsum("ij,ij->i", moved, moved))[:, None]
        np.divide(moved, norms, out=moved, where=norms > 0)
    return moved


def _ordered(centers: NDArray[np.float64], found: dict[str, Any], n_iter: int) -> Centers:
    """Canonical order: clusters by their first row, those without rows dropped."""
    taken = np.flatnonzero(found["first"] >= 0)
    order = taken[np.argsort(found["first"][taken], kind="stable")]
    return Centers(centers[order], float(found["inertia"]), n_iter)


def lloyd_in_memory(
    points: NDArray[np.floating],
    centers: NDArray[np.float64],
    weights: NDArray[np.float64] = _NO_WEIGHTS,
    *,
    max_iter: int = 100,
    tol: float = 0.0,
    unit_length: bool = False,
) -> tuple[Centers, NDArray[np.int32]]:
    """Lloyd's iteration on a small problem.

    Parameters
    ----------
    points : (n, q)
    centers : (k, q) float64
        Where it starts.
    weights : (n,) or (0,) for weights of 1
    max_iter : int
    tol : float
        Stop when the centres move by less, squared and summed, relative to the mean variance of the columns; with 0,
        when no label changes.
    unit_length : bool
        Bring the centres to unit length after each pass (k-means of directions).

    Returns
    -------
    centers : Centers
    labels : (n,) int32
        Nearest of these centres.
    """
    with one_blas_thread():
        previous = None
        limit = tol * float(np.var(points, axis=0, dtype=np.float64).mean()) if tol > 0 else 0.0
        found, labels = _pass(points, weights, centers)
        n_iter = 1
        while n_iter < max_iter:
            moved = _moved(centers, found, unit_length)
            shift = float(((moved - centers) ** 2).sum())
            if shift <= limit or (previous is not None and np.array_equal(labels, previous)):
                break
            centers, previous = moved, labels
            found, labels = _pass(points, weights, centers)
            n_iter += 1
        result = _ordered(centers, found, n_iter)
        return result, assign_rows(points, result.centers)


def best_of_starts(
    points: NDArray[np.floating],
    starts: Iterable[NDArray[np.float64]],
    weights: NDArray[np.float64] = _NO_WEIGHTS,
    **options: Any,
) -> tuple[Centers, NDArray[np.int32]]:
    """`lloyd_in_memory` from several starts; the result with the lowest inertia, the first of equal ones."""
    runs = (lloyd_in_memory(points, start, weights, **options) for start in starts)
    return min(runs, key=lambda run: run[0].inertia)


def lloyd_over_blocks(
    held: da.Array,
    points: Points,
    centers: NDArray[np.float64],
    weights: da.Array | None = None,
    *,
    max_iter: int,
    limit: float,
    unit_length: bool = False,
    name: str = "dc-lloyd",
) -> Centers:
    """Lloyd's iteration over all row blocks, one pass each.

    Parameters
    ----------
    held : dask array (n, ...)
        Row blocks from which `points` makes the points of a block.
    points : callable
    centers : (k, q) float64
    weights : dask array (n,), optional
    max_iter : int
        Passes at most.
    limit : float
        Stop when the centres move by no more, squared and summed.
    unit_length : bool
        Bring the centres to unit length after each pass.

    Returns
    -------
    Centers
        Those by which the last pass assigned, not the ones to which they would move next: so their order, their
        inertia and which of them have rows are exact, and a final assignment gives the same labels.

    Notes
    -----
    A task holds the block, the points of a tile of `TILE_ROWS` rows, 8 q bytes each, and a partial result of
    8 k (q + 3) bytes. Partial results are summed in block order by a tree of fixed shape.
    """
    n_iter = 0
    while True:
        task = partial(_lloyd_block, points=points, centers=centers)
        (found,) = compute(reduce_blocks(task, add_parts, held, name=name, weights=weights))
        n_iter += 1
        moved = _moved(centers, found, unit_length)
        if n_iter >= max_iter or ((moved - centers) ** 2).sum() <= limit:
            return _ordered(centers, found, n_iter)
        centers = moved


def _lloyd_block(
    block: NDArray[Any],
    points: Points,
    centers: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
) -> dict[str, Any]:
    found = _empty_pass(centers)
    for tile in tiles(len(block)):
        values, rows = points(block[tile])
        weighted = _NO_WEIGHTS if weights is None else _block_weights(weights[tile], rows)
        _add_rows(found, values, rows, tile.stop - tile.start, weighted, centers)
    return found


def _block_weights(weights: NDArray[np.float64], rows: NDArray[np.intp] | None) -> NDArray[np.float64]:
    column = weights[:, 0] if weights.ndim == 2 else weights
    return np.ascontiguousarray(column if rows is None else column[rows], np.float64)


def parallel_starts(
    held: da.Array,
    points: Points,
    first: NDArray[np.float64],
    n_clusters: int,
    root: int,
    weights: da.Array | None = None,
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
    candidates = np.asarray(first, np.float64)
    n_draws = PARALLEL_FACTOR * n_clusters
    for number in range(PARALLEL_ROUNDS):
        task = partial(_draw_block, points=points, candidates=candidates, n_draws=n_draws, seed=(root, number))
        drawn = compute(map_to_objects(task, held, name="dc-draw", weights=weights))[0]
        keys = np.concatenate([part["keys"] for part in drawn])
        rows = np.concatenate([part["rows"] for part in drawn])
        best = np.argsort(-keys, kind="stable")[:n_draws]
        if len(best) == 0:
            break  # every row is a candidate already
        candidates = np.concatenate([candidates, rows[best]])
    task = partial(_lloyd_block, points=points, centers=candidates)
    (found,) = compute(reduce_blocks(task, add_parts, held, name="dc-weigh", weights=weights))
    masses = found["masses"]
    starts = center_starts(candidates, n_clusters, stream(root, "recluster"), masses)
    return lloyd_in_memory(candidates, starts, masses)[0].centers


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
        closest_sqdist(values[members], candidates[c], closest)
        sqdist[members] = closest
    mass = sqdist if weights is None else sqdist * _block_weights(weights, rows)
    drawn = uniforms if rows is None else uniforms[rows]
    able = np.flatnonzero(mass > 0)
    keys = np.log1p(-drawn[able]) / mass[able]  # log of u ** (1 / mass), u in (0, 1]
    best = np.argsort(-keys, kind="stable")[:n_draws]
    return {"keys": keys[best], "rows": values[able[best]].astype(np.float64)}
