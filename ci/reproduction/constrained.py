"""Knowledge of some rows or pairs, drawn from the classes as the two papers on constraints draw it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import daskcluster as dc

__all__ = ["constraints_between", "draw_labels", "draw_pairs"]


def draw_labels(y: NDArray[Any], count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Labels of so many random rows, -1 for the others."""
    known = np.full(len(y), -1)
    rows = rng.choice(len(y), min(count, len(y)), replace=False)
    known[rows] = y[rows]
    return known


def constraints_between(known: NDArray[np.int64], kind: str, rng: np.random.Generator) -> dc.Constraints:
    """All pairs of the rows whose label is known, by the kinds of csp_ml_and_fast_csp_ml_2019.

    "labels" (5.1) are as they are; "inconsistent" (5.2): 0.08 x pairs of x labels say the opposite; "noise" (5.3):
    30 % of all pairs do; "soft" (5.4): weights are drawn from 0.7 to 1.
    """
    if kind == "labels":
        return dc.Constraints.from_labels(known)
    rows = np.flatnonzero(known >= 0)
    a, b = np.triu_indices(len(rows), 1)
    pairs = np.stack([rows[a], rows[b]], axis=1)
    same = known[pairs[:, 0]] == known[pairs[:, 1]]
    weights = np.ones(len(pairs))
    if kind == "inconsistent":
        wrong = rng.choice(len(pairs), round(0.08 * len(rows)), replace=False)
        same[wrong] = ~same[wrong]
    elif kind == "noise":
        wrong = rng.choice(len(pairs), round(0.3 * len(pairs)), replace=False)
        same[wrong] = ~same[wrong]
    elif kind == "soft":
        weights = rng.uniform(0.7, 1.0, len(pairs))
    else:
        raise ValueError(f"no kind of constraints {kind!r}")
    return dc.Constraints.from_pairs(pairs[same], pairs[~same], weights[same], weights[~same], len(known))


def draw_pairs(y: NDArray[Any], count: int, rng: np.random.Generator) -> dc.Constraints:
    """So many random pairs of rows, with weights from 0.7 to 1: the "soft edge constraints" of section 5.5."""
    a, b = np.triu_indices(len(y), 1)
    chosen = rng.choice(len(a), min(count, len(a)), replace=False)
    pairs, weights = np.stack([a[chosen], b[chosen]], axis=1), rng.uniform(0.7, 1.0, len(chosen))
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return dc.Constraints.from_pairs(pairs[same], pairs[~same], weights[same], weights[~same], len(y))
