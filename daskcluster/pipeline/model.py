"""What a spectral fit leaves: small arrays that label and embed new blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray

from .affinity import gaussian_edges
from .cut import LiftedRows, embed_block
from .discretize import assign_block
from .neighbors import RepresentativeIndex, index_representatives, nearest_block
from .rows import RowForm

__all__ = ["SpectralModel"]


@dataclass(frozen=True)
class SpectralModel:
    """Representatives, and how rows are linked to them, embedded and labelled: stages 2 to 5 on new rows.

    Attributes
    ----------
    representatives : (p, d) float64
        In the units of the input.
    neighborhood : int
        K' of the search, see `choose_neighborhood`.
    n_neighbors : int
        K, at most p.
    bandwidth : float
        sigma between prepared rows.
    vectors : (p, q) float64
        As `TransferCut` has them.
    eigenvalues : (q,) float64
    centers : (k, q) float64
    form : RowForm
    seed : int
        Root seed.
    n_iter : int
        Passes of the discretisation.
    """

    representatives: NDArray[np.float64]
    neighborhood: int
    n_neighbors: int
    bandwidth: float
    vectors: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    centers: NDArray[np.float64]
    form: RowForm
    seed: int
    n_iter: int = 0

    @property
    def points(self) -> LiftedRows:
        """Block of packed edges with distances -> embedding."""
        return LiftedRows(partial(gaussian_edges, bandwidth=self.bandwidth), self.vectors)

    def block_function(self, what: str, dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
        """Function of a raw block of a dtype that gives its "labels" or "points", and its other arguments."""
        index = index_representatives(
            self.representatives,
            self.form,
            dtype,
            self.n_neighbors,
            neighborhood=self.neighborhood,
            seed=self.seed,
        )
        return new_rows_block, {
            "index": dask.delayed(index, pure=True, traverse=False),
            "n_neighbors": self.n_neighbors,
            "points": self.points,
            "centers": self.centers if what == "labels" else None,
        }


def new_rows_block(
    block: NDArray[Any],
    index: RepresentativeIndex,
    n_neighbors: int,
    points: LiftedRows,
    centers: NDArray[np.float64] | None,
) -> NDArray[Any]:
    """Stages 2 to 5 on a raw block: labels, or without `centers` the embedding."""
    edges = nearest_block(block, index, n_neighbors)
    return embed_block(edges, points) if centers is None else assign_block(edges, points, centers)
