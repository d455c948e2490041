"""Eigenvalues of a small graph beyond those of a fit, their gaps, and the number of clusters that they show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linalg import largest_eigenpairs
from ..markup import html_table, pretty_text
from ..runtime.seeding import stream
from .cut import sum_packed
from .kmeans import center_starts
from .lloyd import best_of_starts

__all__ = ["CLEAR_GAP", "Spectrum", "largest_gap_of", "spectrum_of"]

#: A relative gap from which on the number of clusters is clear: the eigenvalue grows sevenfold. Within a long strip it
#: grows fourfold.
CLEAR_GAP = 0.85
#: Eigenvalues of p representatives below so much / p**2 count as 0: those inside a ring of p points are above.
ZERO = 10.0
#: A group below this share of an equal share of the rows is no cluster.
OUTLIERS = 0.05
#: Times that groups of outliers are looked for.
MOST_LOOKS = 10


@dataclass(frozen=True)
class Spectrum:
    """The first eigenvalues of a normalized cut, and the gaps between them.

    Attributes
    ----------
    eigenvalues : (k_max + 1,) float64
        Ascending from 0. Fewer if the graph has fewer vertices.
    relative_gaps : (k_max,) float64
        Entry k - 1 is (lambda_{k+1} - lambda_k) / (lambda_{k+1} + zero) of the gap after the first k eigenvalues:
        between 0, no gap, and 1, where k clusters are not linked to each other and hold together well.
    n_clusters : int or None
        Eigenvalues before the largest relative gap, if that is `CLEAR_GAP` at least: else None:
        there is no clear answer, or one cluster.
    left_out : float
        Share of the rows in groups too small to be clusters, outliers, whose representatives were left out.
    """

    eigenvalues: NDArray[np.float64]
    relative_gaps: NDArray[np.float64]
    left_out: float = 0.0

    @property
    def largest_gap(self) -> int:
        """Number of eigenvalues, at least 2, before the largest relative gap, clear or not."""
        return largest_gap_of(self.relative_gaps)

    @property
    def n_clusters(self) -> int | None:
        """Number of clusters, if it is clear."""
        return self.largest_gap if self.is_clear else None

    @property
    def is_clear(self) -> bool:
        """Whether one gap stands out."""
        return bool(self.relative_gaps[self.largest_gap - 1] >= CLEAR_GAP)

    def __len__(self) -> int:
        return len(self.eigenvalues)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The eigenvalues."""
        return np.array(self.eigenvalues, dtype)

    def __str__(self) -> str:
        lines = (f"{k:>4}  {value:>10}  {gap:>12}  {mark}".rstrip() for k, value, gap, mark in [_HEADER, *self._rows()])
        return "\n".join([self.summary, *lines])

    _repr_pretty_ = pretty_text

    def _repr_html_(self) -> str:
        """The same as a table, which notebooks show."""
        return html_table(self._rows(), _HEADER, self.summary)

    @property
    def summary(self) -> str:
        """The answer in one line."""
        best = self.largest_gap
        times = 1 / max(1e-6, 1 - self.relative_gaps[best - 1])
        how = f"the eigenvalue grows {times:,.0f}-fold" if times >= 10 else f"the eigenvalue grows {times:.1f}-fold"
        rest = f"; {self.left_out:.2%} of the rows left out as outliers" if self.left_out else ""
        if self.n_clusters is None:
            return f"no clear number of clusters: the largest gap is after {best}, where {how}{rest}"
        return f"{best} cluster{'s' * (best != 1)}: {how} after {best}{rest}"

    def _rows(self) -> list[tuple[str, ...]]:
        best = self.largest_gap
        return [
            (str(k), f"{self.eigenvalues[k - 1]:.2e}", f"{gap:.2f}", "<" if k == best else "")
            for k, gap in enumerate(self.relative_gaps, start=1)
        ]


_HEADER = ("k", "eigenvalue", "gap after it", "")


def spectrum_of(packed: dict[str, Any], k_max: int) -> Spectrum:
    """The spectrum of the small graph of a transfer cut.

    Parameters
    ----------
    packed : dict
        The value of `small_affinity`.
    k_max : int
        Clusters at most, at least 1.

    Returns
    -------
    Spectrum

    Notes
    -----
    The eigengap heuristic (von Luxburg, Statistics and Computing 17, 2007, section 8.3) of eq. (9) of
    uspec_usenc_2019, by the ratio of neighbouring eigenvalues and not their difference: within clusters eigenvalues are
    as small as the clusters are long, so the largest difference is often far beyond the clusters. Eigenvalues below
    `ZERO` / p**2 are taken for 0. Unlike `cut_small_graph`, no parts are joined, since that would need the number that
    is sought. Groups that the cut before the largest gap tells apart and that have less than `OUTLIERS` of an equal
    share of the rows are left out, and the rest is looked at again: a few outliers are as far from all others as a
    cluster is. One to ten eigenproblems of p representatives; 24 p**2 bytes.
    """
    n_right = int(packed["n_right"])
    small = sum_packed([packed])
    small = np.triu(small) + np.triu(small, 1).T
    degrees = small.sum(axis=1)
    kept = degrees > 0
    for _ in range(MOST_LOOKS):
        found, outliers = _look(small[np.ix_(kept, kept)], k_max, n_right)
        if not outliers.any():
            break
        kept[np.flatnonzero(kept)[outliers]] = False
    left_out = 1.0 - float(degrees[kept].sum() / degrees.sum())
    return Spectrum(*found, left_out if left_out > 1e-9 else 0.0)


def _look(
    small: NDArray[np.float64], k_max: int, n_right: int
) -> tuple[tuple[NDArray[np.float64], NDArray[np.float64]], NDArray[np.bool_]]:
    """Eigenvalues and gaps of an affinity matrix, and its vertices that are outliers."""
    degrees = small.sum(axis=1)
    roots = np.sqrt(degrees)
    number = min(k_max + 1, len(small))
    values, vectors = largest_eigenpairs(small / roots[:, None] / roots, number)
    eigenvalues = np.clip(1.0 - values, 0.0, 2.0)
    floor = ZERO / n_right**2
    gaps = np.diff(eigenvalues) / (eigenvalues[1:] + floor) if number > 1 else np.ones(1)
    best = largest_gap_of(gaps)
    outliers = np.zeros(len(small), bool)
    if best < number:
        points = vectors[:, :best] / roots[:, None]
        points /= np.maximum(np.linalg.norm(points, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        starts = [center_starts(points, best, stream(0, "spectrum", start)) for start in range(2)]
        starts.append(_apart(points, best, int(np.argmax(degrees))))
        _, groups = best_of_starts(points, starts, max_iter=100)
        masses = np.bincount(groups, degrees, minlength=best)
        outliers = masses[groups] < OUTLIERS * degrees.sum() / best
    return (eigenvalues, gaps), outliers


def _apart(points: NDArray[np.float64], number: int, first: int) -> NDArray[np.float64]:
    """So many points, each the farthest from those before: a single one that is apart is among them."""
    chosen = [first]
    nearest = np.full(len(points), np.inf)
    for _ in range(number - 1):
        nearest = np.minimum(nearest, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(np.argmax(nearest)))
    return points[chosen]


def largest_gap_of(gaps: NDArray[np.float64]) -> int:
    """Number of eigenvalues before the largest gap but the first one: the first eigenvalue is 0 in any data."""
    return int(np.argmax(gaps[1:])) + 2 if len(gaps) > 1 else 1
