"""Incidence -> sparse random projection (n, rd): the rows of SECRP, Algorithm 2 of fast_csc_and_secrp_2017."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.incidence import project_labels
from .incidence import LabelBook

__all__ = ["ProjectedRows", "projection_matrix", "strips_of"]


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


class ProjectedRows:
    """Block of codes -> projected rows (n', rd) of those with labels, and their numbers; a picklable callable.

    Parameters
    ----------
    book : LabelBook
    matrix : (c, rd) float32
    mean_weight : float
        Unit of the weights: rows are (b / (w / mean_weight)) R.

    Notes
    -----
    A missing label adds nothing, so its block of the row is zero. The distances of Theorem 5 of sec_2015, which leave
    out such blocks, cannot be had from projected rows: with missing labels SECRP is not an approximation of SEC.

    Rows are projected anew in every pass, m rd additions a row: they would take 4 rd bytes a row to keep, where the
    codes take m.
    """

    def __init__(self, book: LabelBook, matrix: NDArray[np.float32], mean_weight: float) -> None:
        self.offsets, self.sizes = book.offsets, book.sizes
        self.matrix, self.mean_weight = matrix, mean_weight

    def __call__(self, codes: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.intp] | None]:
        """Project a block."""
        there = (codes >= 0).any(axis=1)
        rows = None if there.all() else np.flatnonzero(there)
        taken = codes if rows is None else codes[rows]
        return project_labels(taken, self.offsets, self.sizes, self.matrix, self.mean_weight), rows
