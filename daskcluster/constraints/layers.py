"""Constraints -> layers of a multi-layer graph, each a matrix that is applied.

Layer 1 is the affinity graph of the rows, layer 2 the must-links, eq. (9) of csp_ml_and_fast_csp_ml_2019, and layer 3
all pairs but the cannot-links, eq. (10). Diagonals are zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..runtime.execution import compute
from ..runtime.threads import one_blas_thread
from .links import Links
from .row_constraints import RowConstraints

__all__ = [
    "TILE_ROWS",
    "Layer",
    "affinity_layer",
    "constraint_layers",
    "gaussian_columns",
    "row_tiles",
    "unlinked_rows",
]

Matrix = NDArray[np.float64]

#: Rows that are compared with all others, or with the sampled ones, at a time.
TILE_ROWS = 2**11


class Layer(Protocol):
    """An adjacency matrix W that is applied, not stored."""

    degrees: Matrix  # (n,)

    def apply(self, vectors: Matrix) -> Matrix:
        """W V of (n, q)."""
        ...


class MatrixLayer:
    """A layer whose W is in memory: dense, or sparse.

    Parameters
    ----------
    matrix : (n, n)
        Symmetric, zero diagonal.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.degrees: Matrix = np.asarray(matrix.sum(axis=1), np.float64).ravel()

    def apply(self, vectors: Matrix) -> Matrix:
        """W V."""
        return np.asarray(self.matrix @ vectors)


class ClassLayer:
    """Links of classes: w_i w_j between rows of one class, as the product of (n, T) memberships.

    Parameters
    ----------
    members : sparse (n, T)
        w_i at the class of row i.
    """

    def __init__(self, members: Any) -> None:
        self.members = members
        self.own: Matrix = np.asarray(members.multiply(members).sum(axis=1), np.float64).ravel()
        self.degrees: Matrix = np.maximum(self.apply(np.ones((members.shape[0], 1)))[:, 0], 0.0)

    def apply(self, vectors: Matrix) -> Matrix:
        """W V; O(n q)."""
        return np.asarray(self.members @ (self.members.T @ vectors)) - self.own[:, None] * vectors


class ComplementLayer:
    """All pairs but the cannot-links: ones minus a sparse or low-rank matrix, O(n q) a product.

    Parameters
    ----------
    apart : Layer or None
        Weights of the cannot-links.
    n_rows : int
    """

    def __init__(self, apart: Layer | None, n_rows: int) -> None:
        self.apart = apart
        self.degrees: Matrix = self.apply(np.ones((n_rows, 1)))[:, 0]
        self.degrees[self.degrees < 1e-9 * n_rows] = 0.0  # rounding of a row that is apart from every other

    def apply(self, vectors: Matrix) -> Matrix:
        """W V."""
        product = vectors.sum(axis=0) - vectors
        return product if self.apart is None else product - self.apart.apply(vectors)


class _ApartClasses:
    """Cannot-links of partial labels: w_i w_j between rows of different classes."""

    def __init__(self, members: Any, same: ClassLayer) -> None:
        self.same = same
        self.weights: Matrix = np.asarray(members.sum(axis=1), np.float64).ravel()
        self.degrees = self.apply(np.ones((members.shape[0], 1)))[:, 0]

    def apply(self, vectors: Matrix) -> Matrix:
        """W V."""
        together = self.same.apply(vectors) + self.same.own[:, None] * vectors
        return self.weights[:, None] * (self.weights @ vectors) - together


def affinity_layer(rows: NDArray[np.floating], gamma: float) -> MatrixLayer:
    """Layer 1: Gaussian affinities exp(-gamma sqdist) of all pairs of rows (n, d); 8 n**2 bytes."""
    points: Matrix = np.asarray(rows, np.float64)
    affinities = np.concatenate([gaussian_columns(points[tile], points, gamma) for tile in row_tiles(len(points))])
    affinities = (affinities + affinities.T) / 2
    np.fill_diagonal(affinities, 0.0)
    return MatrixLayer(affinities)


def gaussian_columns(rows: Matrix, landmarks: Matrix, gamma: float) -> Matrix:
    """Gaussian affinities (n, l) of rows to landmarks."""
    sqdist = (rows * rows).sum(axis=1)[:, None] + (landmarks * landmarks).sum(axis=1)
    with one_blas_thread():
        sqdist -= 2.0 * (rows @ landmarks.T)
    np.maximum(sqdist, 0.0, out=sqdist)
    sqdist *= -gamma
    return np.exp(sqdist, out=sqdist)


def constraint_layers(constraints: RowConstraints, n_rows: int) -> list[Layer]:
    """Layers 2 and 3 of constraints on rows in memory.

    Notes
    -----
    A cannot-link of weight t leaves 1 - t in layer 3, which the paper's text does not say and its hard case, 0, asks
    for. A layer without edges is left out: no must-links, or cannot-links between all rows.
    """
    layers = [together_layer(constraints, n_rows), ComplementLayer(_apart_layer(constraints, n_rows), n_rows)]
    return [layer for layer in layers if layer is not None and (layer.degrees > 0).any()]


def together_layer(constraints: RowConstraints, n_rows: int) -> Layer | None:
    """Layer 2, the must-links of constraints on rows in memory; None for none."""
    if len(constraints.must_link):
        return MatrixLayer(_symmetric(constraints.must_link, n_rows))
    if constraints.codes is None or not constraints.n_classes or constraints.apart:
        return None
    return ClassLayer(_memberships(constraints))


def _apart_layer(constraints: RowConstraints, n_rows: int) -> Layer | None:
    """Weights of the cannot-links; None for none."""
    if len(constraints.cannot_link):
        return MatrixLayer(_symmetric(constraints.cannot_link, n_rows))
    if constraints.codes is None or not constraints.n_classes:
        return None
    members = _memberships(constraints)
    return ClassLayer(members) if constraints.apart else _ApartClasses(members, ClassLayer(members))


def unlinked_rows(constraints: RowConstraints, n_rows: int) -> NDArray[np.bool_]:
    """Which rows have no must-link; none where no row has one, since the layer is then left out."""
    together = together_layer(constraints, n_rows)
    if together is None or not (together.degrees > 0).any():
        return np.zeros(n_rows, np.bool_)
    return together.degrees <= 0


def _memberships(constraints: RowConstraints) -> Any:
    codes, confidences = compute(constraints.codes, constraints.confidences)
    rows = np.flatnonzero(codes >= 0)
    weights = np.ones(len(rows)) if confidences is None else confidences[rows].astype(np.float64)
    return scipy.sparse.csr_array((weights, (rows, codes[rows])), shape=(len(codes), constraints.n_classes))


def _symmetric(links: Links, n_rows: int) -> Any:
    half = scipy.sparse.csr_array((links.weights, (links.first, links.second)), shape=(n_rows, n_rows))
    return (half + half.T).tocsr()


def row_tiles(n_rows: int) -> Iterator[slice]:
    """Slices of so many rows, `TILE_ROWS` each."""
    for start in range(0, n_rows, TILE_ROWS):
        yield slice(start, min(start + TILE_ROWS, n_rows))
