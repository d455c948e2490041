"""Incidence -> sparse random projection (n, rd): the rows of SECRP, Algorithm 2 of fast_csc_and_secrp_2017."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.incidence import label_weights
from ..kernels.projection import project_labels
from ..runtime.seeding import stream
from .incidence import LabelBook

__all__ = ["ProjectedRows", "integers_of", "projection_matrix", "projection_of", "strips_of"]


def strips_of(n_components: int) -> tuple[int, ...]:
    """Widths of the a strips into which rd components are cut; their sum is rd.

    Notes
    -----
    Lemma 2 of fast_csc_and_secrp_2017 asks for a = Theta(log(1/delta) / epsilon) strips of width v = Theta(1/epsilon),
    so for a / v of a few: here v is about sqrt(rd / 2). What rd does not divide into makes the first strips one wider.
    """
    width = max(1, int(np.sqrt(n_components / 2)))
    n_strips = n_components // width
    extra = n_components - n_strips * width
    return tuple(width + extra // n_strips + (strip < extra % n_strips) for strip in range(n_strips))


def projection_matrix(n_base_clusters: int, strips: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float32]:
    """The sparse random matrix R of fast_csc_and_secrp_2017, eq. (10), after Kane and Nelson.

    Parameters
    ----------
    n_base_clusters : int
        c, the rows of R.
    strips : tuple of int
        Widths of the a strips.
    rng : numpy.random.Generator

    Returns
    -------
    (c, rd) float32
        Each row has one entry a strip, plus or minus 1 / sqrt(a), at a place of its own.

    Notes
    -----
    Kept with its zeros: adding rd numbers of consecutive memory is faster than adding a of them at scattered places,
    and the matrix has c rows, not n.
    """
    matrix = np.zeros((n_base_clusters, sum(strips)), np.float32)
    rows = np.arange(n_base_clusters)
    begin = 0
    for width in strips:
        places = rng.integers(width, size=n_base_clusters)  # h of eq. (10)
        signs = rng.integers(2, size=n_base_clusters) * 2 - 1  # the diagonal of D_l
        matrix[rows, begin + places] = signs / np.sqrt(len(strips))
        begin += width
    return matrix


def projection_of(book: LabelBook, n_components: int, seed: int, number: int) -> NDArray[np.float32]:
    """The random projection (c, rd) of this number."""
    return projection_matrix(book.n_base_clusters, strips_of(n_components), stream(seed, "projection", number))


class ProjectedRows:
    """Block of codes -> projected rows (n, rd) as small integers; a picklable callable.

    Parameters
    ----------
    book : LabelBook
    matrix : (c, rd) float32
    mean_weight : float
        Unit of the weights: points are p = (b / (w / mean_weight)) R.

    Attributes
    ----------
    n_strips : int
        a.
    dtype : numpy.dtype
        Of the integers, between -m and m: int8 up to 127 base clusterings.

    Notes
    -----
    The integers are z = b (sqrt(a) R), so p = z mean_weight / (sqrt(a) w): a row takes rd bytes, and sums of w p over
    rows are exact.

    A missing label adds nothing, so its block of the row is zero. The distances of Theorem 5 of sec_2015, which leave
    out such blocks, cannot be had from projected rows: with missing labels SECRP is not an approximation of SEC.
    """

    def __init__(self, book: LabelBook, matrix: NDArray[np.float32], mean_weight: float) -> None:
        self.book, self.mean_weight = book, mean_weight
        self.signs = np.sign(matrix).astype(np.int8)
        self.n_strips = int(np.count_nonzero(self.signs[0]))
        self.dtype = integers_of(book.n_base_clusterings)

    @property
    def n_components(self) -> int:
        """Components of a row, rd."""
        return self.signs.shape[1]

    @property
    def unit(self) -> float:
        """What z / w is multiplied with to get p."""
        return self.mean_weight / float(np.sqrt(self.n_strips))

    def __call__(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Project a block; zeros for rows without labels."""
        projected = np.zeros((len(codes), self.n_components), self.dtype)
        project_labels(codes, self.book.offsets, self.signs, projected)
        return projected

    def weights(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Weights w of the rows of a block, 0 for rows without labels."""
        return np.asarray(label_weights(codes, self.book.offsets, self.book.sizes))

    def points(self, projected: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The points p (n, rd) of projected rows whose weights are positive."""
        return projected * (self.unit / weights)[:, None]


def integers_of(n_base_clusterings: int) -> np.dtype[Any]:
    """The smallest integers that hold a sum of so many signs."""
    return np.dtype(np.int8 if n_base_clusterings < 2**7 else np.int16 if n_base_clusterings < 2**15 else np.int32)
