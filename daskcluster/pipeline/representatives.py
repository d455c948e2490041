"""Stage 1: rows -> representatives (p, d)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..io.inputs import Rows
from ..kernels.points import distinct_points, mean_variance, packed_points, unpacked_points
from ..runtime.forecast import Cost, Sizes
from ..runtime.seeding import draw_ranks, stream
from ..runtime.stages import Run, Stage
from ..validation import check_integer, check_option
from .directions import row_points
from .kmeans import center_bytes, partial_bytes
from .lloyd import lloyd_in_memory, lloyd_over_blocks
from .scan import RowScan

__all__ = ["SELECTIONS", "Represent", "choose_representatives"]

#: Lloyd passes on the candidates; the authors' program does as many.
CANDIDATE_ITER = 10
#: k-means selection stops when the centres move by less, relative to the variance of the sample.
KMEANS_TOL = 1e-4


@dataclass(frozen=True)
class Represent(Stage):
    """Stage 1: choose the representatives.

    Attributes
    ----------
    n_representatives : int
        p.
    selection : {"hybrid", "random", "kmeans"}
    candidate_factor : int
        p' / p of the hybrid selection.
    max_iter : int
        Passes of ``selection="kmeans"``.
    """

    title = "representatives"
    n_representatives: int
    selection: str
    candidate_factor: int
    max_iter: int

    def check(self) -> None:
        """Refuse counts below 1 and an unknown selection."""
        check_integer("n_representatives", self.n_representatives, 1)
        check_option("selection", self.selection, SELECTIONS)
        check_integer("candidate_factor", self.candidate_factor, 1)
        check_integer("max_iter", self.max_iter, 1)

    @property
    def n_candidates(self) -> int:
        """Rows to draw: p' = candidate_factor * p candidates, or p for the random selection."""
        return self.n_representatives * (1 if self.selection == "random" else self.candidate_factor)

    def __call__(self, run: Run, found: RowScan) -> NDArray[np.float64]:
        """Choose representatives (p', d), p' <= p, in the units of the input."""
        name = "representatives"
        made = run.products.small(name, lambda: packed_points(name, self.choose(run.rows, found, run.seed)))
        return unpacked_points(name, made)

    def choose(self, rows: Rows, found: RowScan, seed: int) -> Any:
        """`choose_representatives` with these parameters."""
        return choose_representatives(
            rows,
            found,
            self.n_representatives,
            n_candidates=self.n_candidates,
            selection=self.selection,
            max_iter=self.max_iter,
            seed=seed,
        )

    def rows_behind(self, n_samples: int) -> int:
        """Rows that representatives are means of, at most."""
        return n_samples if self.selection == "kmeans" else min(self.n_candidates, n_samples)

    def cost(self, sizes: Sizes) -> Cost:
        """k-means on the candidates, and for the selection by k-means passes over the input."""
        p = min(self.n_representatives, sizes.n_samples)
        candidates, means_of = min(self.n_candidates, sizes.n_samples), self.rows_behind(sizes.n_samples)
        search, kept = center_bytes(sizes, p, means_of), sizes.point_bytes * sizes.point_numbers(p, means_of)
        eager = candidates * (sizes.with_copies(4) + 20) + 3 * kept + search
        times = self.max_iter if self.selection == "kmeans" else 0
        task = sizes.tile_rows * (sizes.prepared_bytes + 16) + partial_bytes(sizes, p)
        passes = sizes.over_input(task + search, times=times, reduced=True, eager_bytes=eager, small_bytes=kept)
        return passes + Cost(task_bytes=search)

    @property
    def kept(self) -> tuple[str, ...]:
        """The representatives."""
        return ("representatives",)


class Candidates(NamedTuple):
    """Prepared candidates (p', d), and those of them that differ."""

    rows: NDArray[np.floating]
    distinct: NDArray[np.floating]


def choose_representatives(
    rows: Rows,
    scan: RowScan,
    n_representatives: int,
    *,
    n_candidates: int,
    selection: str = "hybrid",
    max_iter: int = 100,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Choose p representatives; uspec_usenc_2019 section 3.1.1, eq. (1).

    Parameters
    ----------
    rows : Rows
    scan : RowScan
        Its sample holds the candidates.
    n_representatives : int
        p.
    n_candidates : int
        p', rows of the sample that are candidates.
    selection : {"hybrid", "random", "kmeans"}
        Cluster centres of the candidates (the paper's p' = 10 p); random rows; or cluster centres of all rows, which
        costs up to `max_iter` passes over the data.
    max_iter : int
        Passes of ``selection="kmeans"``.
    seed : int
        Root seed.

    Returns
    -------
    (p', d) float64
        In the units of the input. p' <= p distinct points; fewer when there are fewer distinct candidates.

    Notes
    -----
    k-means on the candidates starts at random distinct candidates and makes `CANDIDATE_ITER` passes. For
    ``unit_length`` rows the centres are brought to unit length after each pass, as in the authors' program.
    A representative that loses all its candidates stays where it is. Eager: two to three times 8 p' d bytes, and p' p d
    multiplications in each of the first passes, by as many tasks as there are `SPREAD_ROWS` candidates where that is
    much; later passes compare most candidates with the representatives that still move.
    """
    rng = stream(seed, "representatives")
    candidates = scan.form.prepare(scan.sample[draw_ranks(rng, len(scan.sample), n_candidates)])
    if scan.form.unit_length:
        directed = candidates[candidates.any(axis=1)]  # a row of zeros has no direction to represent
        candidates = directed if len(directed) else candidates[:1]
    distinct = candidates[distinct_points(candidates)]
    if len(distinct) <= n_representatives:
        chosen = distinct.astype(np.float64)
    else:
        found = Candidates(candidates, distinct)
        chosen = SELECTIONS[selection](rows, scan, found, n_representatives, max_iter, rng)
    if not scan.form.unit_length:
        return scan.form.restore(chosen)
    directed = chosen[chosen.any(axis=1)]  # nor has the mean of opposite directions
    return scan.form.prepare_points(directed if len(directed) else candidates[:1])


def _select_random(
    rows: Rows, scan: RowScan, candidates: Candidates, n_representatives: int, max_iter: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    distinct = candidates.distinct
    return distinct[np.sort(rng.permutation(len(distinct))[:n_representatives])].astype(np.float64)


def _select_hybrid(
    rows: Rows, scan: RowScan, candidates: Candidates, n_representatives: int, max_iter: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    starts = _select_random(rows, scan, candidates, n_representatives, max_iter, rng)
    unit = scan.form.unit_length
    # Ensembles choose for several graphs beside each other, in tasks that get no rows.
    found, _ = lloyd_in_memory(
        candidates.rows, starts, max_iter=CANDIDATE_ITER, unit_length=unit, refill=False, spread=rows is not None
    )
    return found.centers


def _select_kmeans(
    rows: Rows, scan: RowScan, candidates: Candidates, n_representatives: int, max_iter: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    starts = _select_hybrid(rows, scan, candidates, n_representatives, max_iter, rng)
    return lloyd_over_blocks(
        rows.blocks,
        row_points(scan.form),
        starts,
        max_iter=max_iter,
        limit=KMEANS_TOL * mean_variance(candidates.rows),
        unit_length=scan.form.unit_length,
        refill=False,
        name="dc-select",
    ).centers


SELECTIONS: dict[str, Callable[..., NDArray[np.float64]]] = {
    "hybrid": _select_hybrid,
    "random": _select_random,
    "kmeans": _select_kmeans,
}
