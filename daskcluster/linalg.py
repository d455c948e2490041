"""Small eager eigenproblems, order and sign fixed."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from .runtime.threads import one_blas_thread

__all__ = ["largest_eigenpairs"]


def largest_eigenpairs(
    matrix: NDArray[np.float64], n_components: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest eigenvalues of a symmetric matrix, descending, and their orthonormal eigenvectors.

    Parameters
    ----------
    matrix : (p, p) float64
        Symmetric; only its upper triangle is read. Overwritten.
    n_components : int
        1 <= n_components <= p.

    Returns
    -------
    eigenvalues : (n_components,) float64
    eigenvectors : (p, n_components) float64
        Of each column the entry that is largest in magnitude (the first of equal ones) is positive.

    Notes
    -----
    Dense LAPACK on one BLAS thread: the result is the same for any number of threads, and a loaded machine does not
    slow it down. 8 p**2 bytes besides the matrix. Vectors of equal eigenvalues are one basis of their space.
    """
    n_rows = len(matrix)
    with one_blas_thread():
        values, vectors = scipy.linalg.eigh(
            matrix,
            lower=False,
            subset_by_index=[n_rows - n_components, n_rows - 1],
            overwrite_a=True,
            check_finite=False,
        )
    values, vectors = values[::-1], vectors[:, ::-1]
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.where(vectors[largest, np.arange(n_components)] < 0, -1.0, 1.0)
    return values.copy(), np.ascontiguousarray(vectors * signs)
