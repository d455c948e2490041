"""Rows -> the width of their Gaussian affinities, and what is to be said of one that does not suit them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import warn_user
from ..runtime.threads import one_blas_thread

__all__ = ["QUERIES", "Widths", "following_gamma", "neighbor_widths", "warn_unsuited_gamma"]

#: The width of the paper's experiments.
USUAL_GAMMA = 0.5
#: The least neighbors of a row, and the least share of all, that the narrowest width takes in.
LEAST_NEIGHBORS, LEAST_SHARE = 15, 0.05
#: Rows whose neighbors are looked for.
QUERIES = 1024
#: Below this affinity to the neighbors all affinities vanish, above that one to the median row all are 1.
VANISHING, CONSTANT = 1e-2, 0.9
#: Squared distances below this share of the largest one are rounding.
LEAST_SQDIST = 1e-13


@dataclass(frozen=True)
class Widths:
    """Squared distances between rows, medians; 0 where all rows are equal.

    Attributes
    ----------
    narrow, wide : float
        To the last of few, and of half an equal cluster's, nearest rows.
    all : float
        To any other row.
    """

    narrow: float
    wide: float
    all: float


def neighbor_widths(points: NDArray[np.float64], n_clusters: int) -> Widths:
    """Widths of rows (n, d).

    Notes
    -----
    Of `QUERIES` rows, evenly spread, against all; rows at the same place do not count.
    """
    n = len(points)
    queries = points[:: max(1, n // QUERIES)]
    with one_blas_thread():
        sqdist = queries @ points.T
    sqdist *= -2.0
    sqdist += (queries * queries).sum(axis=1)[:, None] + (points * points).sum(axis=1)
    elsewhere = sqdist > LEAST_SQDIST * max(float(sqdist.max()), np.finfo(np.float64).tiny)
    others = sqdist[elsewhere]
    if not len(others):
        return Widths(0.0, 0.0, 0.0)
    sqdist[~elsewhere] = np.inf
    sqdist.sort(axis=1)
    n_others = elsewhere.sum(axis=1)
    some = n_others > 0
    wide = max(1, n // (2 * n_clusters))
    narrow = min(wide, max(LEAST_NEIGHBORS, int(LEAST_SHARE * n)))

    def median(rank: int) -> float:
        at = np.minimum(rank, n_others[some]) - 1
        return float(np.median(np.take_along_axis(sqdist[some], at[:, None], axis=1)))

    return Widths(median(narrow), median(wide), float(np.median(others)))


def following_gamma(widths: Widths, unit: float) -> float:
    """Width gamma of exp(-gamma sqdist) that follows the rows: the usual one where it suits them, else 1 / wide.

    It suits them between 1 / wide and 2 / narrow, times `unit`, the factor from a gamma of the prepared rows to one in
    the units of the input. The narrower a width is, the more outliers are parts of the graph of their own.
    """
    if widths.narrow <= 0 or unit / widths.wide <= USUAL_GAMMA <= 2 * unit / widths.narrow:
        return USUAL_GAMMA
    return unit / widths.wide


def warn_unsuited_gamma(method: str, gamma: float, widths: Widths, unit: float) -> None:
    """Warn of a given width at which affinities tell nothing; `unit` as in `following_gamma`."""
    if widths.narrow <= 0:
        return
    at_near, at_far = np.exp(-gamma * widths.narrow / unit), np.exp(-gamma * widths.all / unit)
    advice = f"gamma=None follows the data, here with {following_gamma(widths, unit):.2g}"
    if at_near < VANISHING:
        warn_user(
            f"{method}: nearly all affinities vanish at gamma={gamma:g}: {at_near:.1g} to a row's neighbors. The "
            f"clusters may follow outliers and constraints only; {advice}"
        )
    elif at_far > CONSTANT:
        warn_user(
            f"{method}: nearly all affinities are 1 at gamma={gamma:g}: {at_far:.3g} to a row in the middle. The "
            f"clusters may follow constraints only; {advice}"
        )
