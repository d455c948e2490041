"""Layers -> their subspaces on the Grassmann manifold, and the embedding that is near to all of them.

Everything here works on normalized adjacencies A = D^-1/2 W D^-1/2 = I - L: the first eigenvectors of a Laplacian are
the largest of A. A row without edges in a layer stays zero in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..linalg import largest_eigenpairs
from ..runtime.seeding import stream
from ..runtime.threads import one_blas_thread
from .layers import Layer

__all__ = [
    "FORMED_ROWS",
    "LEAST_EIGENVALUE",
    "inverse_roots",
    "leading_eigenvectors",
    "multilayer_embedding",
    "unit_rows",
]

Matrix = NDArray[np.float64]

#: Up to so many rows the modified adjacency is formed, 8 n**2 bytes, and its eigenvectors are exact.
FORMED_ROWS = 4096
#: Eigenvalues below carry no direction.
LEAST_EIGENVALUE = 1e-9
#: The iteration above `FORMED_ROWS`: spare vectors, products between two restarts, restarts, residual.
SPARE_VECTORS = 8
KRYLOV_STEPS = 15
MOST_RESTARTS = 60
RESIDUAL = 1e-7


def multilayer_embedding(
    layers: Sequence[Layer],
    n_components: int,
    alpha: float,
    seed: int = 0,
    neutral: NDArray[np.bool_] | None = None,
) -> tuple[Matrix, Matrix]:
    """Spectral embedding of a multi-layer graph; Algorithm 2 and eq. (5) of csp_ml_and_fast_csp_ml_2019.

    Parameters
    ----------
    layers : sequence of Layer
    n_components : int
        k.
    alpha : float
        Weight of the layers' subspaces, >= 0.
    seed : int
        Of the start of the iteration that serves more than `FORMED_ROWS` rows.
    neutral : (n,) bool, optional
        Rows of which a layer has no edge, and which it is not to penalize: L_ii = 0 there, so that A_ii = 1.

    Returns
    -------
    embedding : (n, k) float64
        Rows at unit length.
    eigenvalues : (k,) float64
        Of the modified adjacency sum A_i + alpha sum U_i U_i^T, descending: m minus those of L_mod.

    Notes
    -----
    L_mod = sum L_i - alpha sum U_i U_i^T, so its first eigenvectors are the largest of the modified adjacency. U_i are
    the largest eigenvectors of A_i, without those whose eigenvalue is not positive: a layer of few classes has fewer
    than k directions, and the others would be arbitrary vectors of its rows without edges. Those of `neutral` rows are
    such, too, and not in U_i.
    """
    scales = [inverse_roots(layer.degrees)[:, None] for layer in layers]
    n_rows = len(scales[0])
    k = min(n_components, n_rows)

    def normalized(number: int, vectors: Matrix) -> Matrix:
        return scales[number] * layers[number].apply(scales[number] * vectors)

    subspaces = []
    if alpha > 0:
        for number in range(len(layers)):
            values, vectors = leading_eigenvectors(partial(normalized, number), n_rows, k, seed)
            subspaces.append(vectors[:, values > LEAST_EIGENVALUE])

    def modified(vectors: Matrix) -> Matrix:
        total = sum(normalized(number, vectors) for number in range(len(layers)))
        for subspace in subspaces:
            total = total + alpha * (subspace @ (subspace.T @ vectors))
        return np.asarray(total if neutral is None else total + neutral[:, None] * vectors)

    values, vectors = leading_eigenvectors(modified, n_rows, k, seed)
    return unit_rows(vectors), values


def leading_eigenvectors(
    apply: Callable[[Matrix], Matrix], n_rows: int, n_components: int, seed: int
) -> tuple[Matrix, Matrix]:
    """The largest eigenvalues of a symmetric operator, descending, and their vectors.

    Notes
    -----
    Up to `FORMED_ROWS` rows the matrix is formed and solved by LAPACK. Above, a restarted block Krylov iteration with
    full orthogonalization: a block finds the equal eigenvalues that a multi-layer graph has, where ARPACK's single
    vector does not. It ends at a residual of `RESIDUAL`, relative to the largest eigenvalue. 8 n bytes for each of
    (k + 8) * 16 vectors, twice.
    """
    with one_blas_thread():
        if n_rows <= FORMED_ROWS:
            matrix = apply(np.eye(n_rows))
            return largest_eigenpairs((matrix + matrix.T) / 2, n_components)
        width = n_components + SPARE_VECTORS
        block = stream(seed, "krylov").standard_normal((n_rows, width))
        for _ in range(MOST_RESTARTS):
            basis = np.linalg.qr(block)[0]
            images = apply(basis)
            newest = images
            for _ in range(KRYLOV_STEPS):
                for _ in range(3):  # a layer of low rank leaves rounding only, which the first round brings to length 1
                    newest = np.linalg.qr(newest - basis @ (basis.T @ newest))[0]
                basis = np.hstack([basis, newest])
                newest = apply(newest)
                images = np.hstack([images, newest])
            small = basis.T @ images
            values, vectors = largest_eigenpairs((small + small.T) / 2, width)
            block = basis @ vectors
            residual = images @ vectors[:, :n_components] - block[:, :n_components] * values[:n_components]
            if np.linalg.norm(residual, axis=0).max() <= RESIDUAL * max(1.0, abs(float(values[0]))):
                break
        return values[:n_components], np.ascontiguousarray(block[:, :n_components])


def inverse_roots(degrees: Matrix) -> Matrix:
    """1 / sqrt(degree), 0 for rows without edges."""
    there = degrees > 0
    return np.where(there, 1.0 / np.sqrt(np.where(there, degrees, 1.0)), 0.0)


def unit_rows(embedding: Matrix) -> Matrix:
    """Rows at unit length; rows of zeros stay."""
    norms = np.linalg.norm(embedding, axis=1, keepdims=True)
    return embedding / np.where(norms > 0, norms, 1.0)
