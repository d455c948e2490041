"""The largest eigenpairs of a large sparse symmetric matrix: subspace iteration with Chebyshev filters.

A whole block of vectors is iterated, more of them than are wanted. So eigenvalues that are equal, such as those of a
graph in unlinked parts, come out as often as they are there; iterations from a single vector find each of them once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from .kernels.products import combine_product

__all__ = ["filtered_eigenpairs"]

#: Below so many rows the dense solver takes a few tenths of a second at most.
LEAST_ROWS = 2000
#: Columns of the block beside those wanted: so many, and one for each `WANTED_SHARE` wanted.
EXTRA_COLUMNS, WANTED_SHARE = 16, 2
#: Residuals abs(S v - theta v), relative to the largest theta, at which the iteration ends.
TOL = 1e-12
#: A filter raises the largest eigenvalue's part by at most exp of this over the parts that it holds down.
FILTER_NATS = 18.0
MOST_DEGREE = 100
#: Steps of the iteration that bounds the smallest eigenvalue.
BOUND_STEPS = 12

#: Rounds after which the pace of the iteration tells how long it will be.
SETTLED_ROUNDS = 4

#: Work in units of one multiplication of a product with S (all on one thread): what an entry of the block takes for
#: each column in a Rayleigh-Ritz step, and the dense solver for each entry of p**3.
RITZ_WORK, DENSE_WORK = 2.5, 0.5
#: Share of the dense solver's work after which the iteration gives up, and what it takes where eigenvalues are no
#: closer to each other than usual: products with S, and Rayleigh-Ritz steps.
MOST_WORK = 0.5
LIKELY_PRODUCTS, LIKELY_RITZ = 100, 5
#: Share of entries that are not 0 above which the sparse copies would take as much memory as the dense solver.
MOST_ENTRIES = 0.25


@dataclass
class _Product:
    """The matrix by compressed rows, and what was done with it."""

    matrix: scipy.sparse.csr_array
    work: float = 0.0

    def __call__(
        self,
        columns: NDArray[np.float64],
        before: NDArray[np.float64],
        out: NDArray[np.float64],
        product: float = 1.0,
        own: float = 0.0,
        other: float = 0.0,
    ) -> None:
        """See `combine_product`."""
        parts = self.matrix.indptr, self.matrix.indices, self.matrix.data
        combine_product(*parts, columns, before, out, product, own, other)
        self.work += self.matrix.nnz * columns.shape[1]


def filtered_eigenpairs(
    matrix: NDArray[np.float64], n_components: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """The largest eigenvalues of a symmetric matrix, descending, and their vectors; None where it does not pay.

    Parameters
    ----------
    matrix : (p, p) float64
        Only its upper triangle is read.
    n_components : int

    Returns
    -------
    eigenvalues : (n_components,) float64
    eigenvectors : (p, n_components) float64, orthonormal
        Each with a residual of at most `TOL`; or None for both: where the matrix is small or not sparse, where many are
        wanted, or where close eigenvalues make the iteration longer than the dense solver.

    Notes
    -----
    Zhou, Saad, Tiago, Chelikowsky, Journal of Computational Physics 2006 (Chebyshev-filtered subspace iteration), from
    a fixed random start. Each round filters the block by a Chebyshev polynomial that is small from a lower bound of the
    spectrum to the block's smallest Ritz value, and takes Ritz pairs anew. Departure: vectors that have converged stay
    in the block, since the filter raises what is left of them in the others. 24 p m bytes for m columns, and 12 bytes
    an entry. The order of operations is fixed; call it on one BLAS thread.
    """
    n_rows = len(matrix)
    width = n_components + EXTRA_COLUMNS + n_components // WANTED_SHARE
    most_work = MOST_WORK * DENSE_WORK * n_rows**3
    ritz_work = RITZ_WORK * n_rows * width**2
    if n_rows < LEAST_ROWS or LIKELY_RITZ * ritz_work > most_work:
        return None
    n_entries = np.count_nonzero(matrix)
    if (
        n_entries > MOST_ENTRIES * n_rows**2
        or LIKELY_PRODUCTS * n_entries * width + LIKELY_RITZ * ritz_work > most_work
    ):
        return None
    upper = scipy.sparse.triu(scipy.sparse.csr_array(matrix), format="csr")
    product = _Product(scipy.sparse.csr_array(upper + scipy.sparse.triu(upper, 1).T))
    rng = np.random.default_rng(0)
    lowest = _lower_bound(product, rng)
    block = rng.standard_normal((n_rows, width))
    spare = [np.empty_like(block), np.empty_like(block)]
    wanted, residuals = slice(n_components), []
    while True:
        begun = product.work
        values, block, images = _ritz_pairs(product, block, spare[0])
        product.work += ritz_work
        apart = images[:, wanted] - block[:, wanted] * values[wanted]
        residuals.append(float(np.sqrt(np.einsum("ij,ij->j", apart, apart).max() / max(values[0] ** 2, 1e-300))))
        if residuals[-1] <= TOL:
            return values[wanted].copy(), np.ascontiguousarray(block[:, wanted])
        if not lowest < values[-1] < np.inf:
            return None
        block, *spare = _filtered(product, block, spare, lowest, values)
        if product.work + _rounds_left(residuals) * (product.work - begun) > most_work:
            return None


def _rounds_left(residuals: list[float]) -> float:
    """Rounds that the iteration needs at the pace of the last one; the first ones say nothing of it."""
    if len(residuals) < SETTLED_ROUNDS:
        return 0.0
    pace = np.log(residuals[-2] / residuals[-1])
    return float(np.log(residuals[-1] / TOL) / pace) if pace > 0 else np.inf


def _ritz_pairs(
    product: _Product, block: NDArray[np.float64], images: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Ritz values of a block, descending, its Ritz vectors, and their products with the matrix."""
    basis = np.ascontiguousarray(np.linalg.qr(block)[0])
    product(basis, basis, images)
    projected = basis.T @ images
    values, turns = np.linalg.eigh((projected + projected.T) / 2)
    turns = turns[:, ::-1]
    return values[::-1], basis @ turns, images @ turns


def _filtered(
    product: _Product,
    block: NDArray[np.float64],
    spare: list[NDArray[np.float64]],
    lowest: float,
    values: NDArray[np.float64],
) -> tuple[NDArray[np.float64], ...]:
    """A block after the filter that holds down what is between `lowest` and the last Ritz value; and two spare arrays.

    The recurrence of Chebyshev's polynomials, scaled so that the largest Ritz value keeps its length.
    """
    radius, middle = (values[-1] - lowest) / 2, (values[-1] + lowest) / 2
    top = max((values[0] - middle) / radius, 1.0)
    degree = int(np.clip(FILTER_NATS / max(np.arccosh(top), 1e-9), 2, MOST_DEGREE))
    scale = 1 / top
    before, now, other = block, *spare
    product(before, before, now, scale / radius, -middle * scale / radius)
    for _ in range(1, degree):
        following = 1 / (2 * top - scale)
        factor = 2 * following / radius
        product(now, before, other, factor, -middle * factor, -scale * following)
        before, now, other = now, other, before
        scale = following
    return now, before, other


def _lower_bound(product: _Product, rng: np.random.Generator) -> float:
    """A number below all eigenvalues: the smallest Ritz value of a few steps from one vector, less its residual.

    Zhou and Li, Journal of Scientific Computing 2011, "Bounding the spectrum of large Hermitian matrices".
    """
    vector = rng.standard_normal((product.matrix.shape[0], 1))
    basis = [vector / np.linalg.norm(vector)]
    diagonal, beside = [], []
    for _ in range(BOUND_STEPS):
        image = np.empty_like(vector)
        product(basis[-1], basis[-1], image)
        diagonal.append(float((basis[-1] * image).sum()))
        for known in basis * 2:
            image -= (known * image).sum() * known
        beside.append(float(np.linalg.norm(image)))
        if beside[-1] <= TOL * np.abs(diagonal).max():
            break
        basis.append(image / beside[-1])
    smallest = scipy.linalg.eigvalsh_tridiagonal(np.array(diagonal), np.array(beside[:-1]))[0]
    return float(smallest - beside[-1])
