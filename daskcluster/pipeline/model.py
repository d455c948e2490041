"""What a spectral fit leaves: small arrays that label and embed new blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.sparse_rows import is_sparse, row_keys
from ..runtime.pieces import once
from .affinity import edges_by, n_held
from .lift import LiftedLabels, LinkedRows, embed_block
from .neighbors import RepresentativeIndex, index_representatives, nearest_block
from .rows import RowForm

__all__ = ["SpectralModel", "labels_function"]


@dataclass(frozen=True)
class SpectralModel:
    """Representatives, and how rows are linked to them, embedded and labelled: stages 2 to 5 on new rows.

    Attributes
    ----------
    representatives : (p, d) float64
        In the units of the input; `SparseRows` where the rows of the fit were sparse.
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
    affinity : str
        See `affinity_graph`.
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
    affinity: str = "gaussian"

    @property
    def points(self) -> LinkedRows:
        """Block of packed edges with distances -> embedding."""
        return LinkedRows(edges_by(self.affinity, self.bandwidth, 2 * self.n_held), self.vectors)

    @property
    def n_held(self) -> int:
        """Neighbors that are found of each row."""
        return n_held(self.n_neighbors, len(self.representatives), self.affinity)

    def shares_graph(self, other: SpectralModel) -> bool:
        """Whether two models link rows in the same way, and one's embedding is the first columns of the other's."""
        q = min(self.vectors.shape[1], other.vectors.shape[1])
        mine, others = (
            (
                (model.neighborhood, model.n_neighbors, model.bandwidth, model.seed, model.affinity),
                (model.form.scale, model.form.unit_length),
                (model.representatives, model.form.shift, model.vectors[:, :q]),
            )
            for model in (self, other)
        )
        equal = (one is another or _equal(one, another) for one, another in zip(mine[2], others[2], strict=True))
        return mine[:2] == others[:2] and all(equal)

    def block_function(self, what: str, dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
        """Function of a raw block of a dtype that gives its "labels" or "points", and its other arguments."""
        points = self.points
        if what == "labels":
            return self._function(points.nearest_centers(self.centers).labels, dtype)
        return self._function(partial(embed_block, points=points), dtype)

    def _function(self, outcome: Any, dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
        index = index_representatives(
            self.representatives,
            self.form,
            dtype,
            self.n_held,
            neighborhood=self.neighborhood,
            seed=self.seed,
        )
        return new_rows_block, {
            "index": once(index, "index", pure=True),
            "n_neighbors": self.n_held,
            "outcome": outcome,
        }


def _equal(one: Any, another: Any) -> bool:
    if is_sparse(one) and is_sparse(another):
        return one.shape == another.shape and row_keys(one) == row_keys(another)
    return is_sparse(one) == is_sparse(another) and np.array_equal(one, another)


def labels_function(models: list[SpectralModel], dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
    """Function of a raw block that gives its labels (n, m) by models that share a graph, and its other arguments."""
    widest = max(models, key=lambda model: model.vectors.shape[1])
    return widest._function(LiftedLabels(widest.points, [model.centers for model in models]), dtype)


def new_rows_block(
    block: NDArray[Any],
    index: RepresentativeIndex,
    n_neighbors: int,
    outcome: Callable[[NDArray[np.int32]], NDArray[Any]],
) -> NDArray[Any]:
    """Stage 2 on a raw block, and then a function of its edges."""
    return outcome(nearest_block(block, index, n_neighbors))
