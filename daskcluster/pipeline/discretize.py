"""Stage 5: embedding -> labels (n,)."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..errors import FewerClustersWarning, warn_user
from ..kernels.lloyd import assign_rows
from ..runtime.execution import map_rows
from ..runtime.seeding import stream
from ..runtime.threads import one_blas_thread
from .kmeans import Centers, Points, center_starts, lloyd_in_memory, lloyd_over_blocks

__all__ = ["DISCRETIZE_TOL", "assign_block", "assign_labels", "discretize", "warn_fewer"]

#: Lloyd passes over all rows stop when the centres move by less, squared and summed, relative to the rows' variance.
#: The centres come converged from the sample; what is left is less than the sample's own noise.
DISCRETIZE_TOL = 1e-4


def discretize(
    held: da.Array,
    points: Points,
    sample: NDArray[np.floating],
    n_clusters: int,
    *,
    n_init: int = 3,
    max_iter: int = 100,
    seed: int = 0,
) -> Centers:
    """Cluster centres of an embedding by k-means.

    Parameters
    ----------
    held, points
        Row blocks and the function that embeds them.
    sample : (s, q)
        Embedded rows on which starts are made and compared.
    n_clusters : int
    n_init : int
        Starts on the sample; the one with the lowest inertia goes on.
    max_iter : int
        Lloyd passes on the sample, and again over all rows.
    seed : int
        Root seed.

    Returns
    -------
    Centers

    Notes
    -----
    Departure from uspec_usenc_2019, which says no more than "k-means": k-means++ starts on a sample that does not grow
    with n, then passes over all rows, each fused with the lift, until the centres stay.
    """
    best: Centers | None = None
    with one_blas_thread():
        for number in range(n_init):
            starts = center_starts(sample, n_clusters, stream(seed, "discretize", number))
            found, _ = lloyd_in_memory(sample, starts, max_iter=max_iter)
            if best is None or found.inertia < best.inertia:
                best = found
    assert best is not None
    limit = DISCRETIZE_TOL * float(np.var(sample, axis=0, dtype=np.float64).sum())
    return lloyd_over_blocks(held, points, best.centers, max_iter=max_iter, limit=limit)


def assign_labels(held: da.Array, points: Points, centers: NDArray[np.float64]) -> da.Array:
    """Label of every row, lazy (n,) int32: its nearest centre, -1 for rows that are missing."""
    return map_rows(assign_block, held, name="dc-assign", columns=None, dtype=np.int32, points=points, centers=centers)


def assign_block(block: NDArray[Any], points: Points, centers: NDArray[np.float64]) -> NDArray[np.int32]:
    """Labels of a held block."""
    values, rows = points(block)
    labels = assign_rows(values, centers)
    if rows is None:
        return labels
    every = np.full(len(block), -1, np.int32)
    every[rows] = labels
    return every


def warn_fewer(estimator: Any, n_found: int, n_clusters: int) -> None:
    """The one warning that fewer clusters were found than asked for."""
    warn_user(
        f"{type(estimator).__name__} found {n_found} clusters, not n_clusters={n_clusters}: "
        "there are not enough distinct rows or linked representatives",
        FewerClustersWarning,
    )
