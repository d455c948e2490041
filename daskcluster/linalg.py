"""Eager eigenproblems, order and sign fixed."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg import cython_lapack

from .filtered import filtered_eigenpairs
from .runtime.threads import one_blas_thread

__all__ = ["largest_eigenpairs"]

_DSYEVR = b"void (char *, char *, char *, int *, __pyx_t_5scipy_6linalg_13cython_lapack_d *"


@cache
def _dsyevr() -> Any | None:
    """LAPACK's dsyevr as SciPy has it, called without the interpreter's lock; None where its integers are not C's."""
    capsule = cython_lapack.__pyx_capi__["dsyevr"]
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = name_of(capsule)
    if not name.startswith(_DSYEVR) or name.count(b",") != 20:
        return None
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 21)(pointer_of(capsule, name))


def _largest(matrix: NDArray[np.float64], n_components: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The largest eigenvalues, ascending, and their vectors as columns; the upper triangle is read.

    Notes
    -----
    `scipy.linalg.eigh` holds the interpreter's lock while LAPACK works, so eigenproblems in threads would run one after
    the other. The same routine with the same work space gives the same numbers without it.
    """
    n = len(matrix)
    function = _dsyevr()
    if function is None:
        return scipy.linalg.eigh(
            matrix, lower=False, subset_by_index=[n - n_components, n - 1], overwrite_a=True, check_finite=False
        )
    a = np.array(matrix, np.float64, order="F")
    values, vectors = np.empty(n), np.empty((n, n_components), order="F")
    support, found, info = np.empty(2 * n_components, np.intc), np.zeros(1, np.intc), np.zeros(1, np.intc)
    size, first, last = (np.array([number], np.intc) for number in (n, n - n_components + 1, n))
    zero = np.zeros(1)

    def call(work: NDArray[np.float64], n_work: int, iwork: NDArray[np.intc], n_iwork: int) -> None:
        lengths = np.array([n_work, n_iwork], np.intc)
        arrays = (size, a, size, zero, zero, first, last, zero, found, values, vectors, size, support, work)
        pointers = [array.ctypes.data for array in arrays]
        function(
            b"V",
            b"I",
            b"U",
            *pointers,
            lengths.ctypes.data,
            iwork.ctypes.data,
            lengths[1:].ctypes.data,
            info.ctypes.data,
        )
        if info[0] != 0:
            raise np.linalg.LinAlgError(f"dsyevr failed on a matrix of {n} rows: info {info[0]}")

    best, most = np.zeros(1), np.zeros(1, np.intc)
    call(best, -1, most, -1)
    call(np.empty(int(best[0])), int(best[0]), np.empty(int(most[0]), np.intc), int(most[0]))
    return values[:n_components], vectors


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
    On one BLAS thread: the result is the same for any number of threads, and a loaded machine does not slow it down.
    Dense LAPACK, but for a large sparse matrix of which few are wanted: see `filtered_eigenpairs`. 8 p**2 bytes besides
    the matrix. Vectors of equal eigenvalues are one basis of their space.
    """
    with one_blas_thread():
        found = filtered_eigenpairs(matrix, n_components)
        if found is None:
            values, vectors = _largest(matrix, n_components)
            found = values[::-1], vectors[:, ::-1]
    values, vectors = found
    largest = np.abs(vectors).argmax(axis=0)
    signs = np.where(vectors[largest, np.arange(n_components)] < 0, -1.0, 1.0)
    return values.copy(), np.ascontiguousarray(vectors * signs)
