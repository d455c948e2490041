"""k-means from random rows, as the programs do that the papers use: litekmeans (uspec_usenc_2019 [36]) and MATLAB's."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from ci.reproduction.systems.single_moves import move_single_rows
from daskcluster.runtime.seeding import root_seed
from daskcluster.typing import Seed

__all__ = ["kmeans"]


def kmeans(
    X: Any,
    n_clusters: int,
    *,
    cosine: bool = False,
    single_moves: bool = False,
    max_iter: int = 100,
    random_state: Seed = None,
) -> NDArray[np.int32]:
    """Labels (n,) of Lloyd's iteration from one random choice of rows.

    Parameters
    ----------
    X : (n, d), dense or sparse
    n_clusters : int
    cosine : bool
        Rows are scaled to unit length, similarity is the cosine, and a centre is the mean of its rows scaled to unit
        length, as in MATLAB's `kmeans` with "cosine". For sparse X.
    single_moves : bool
        A second phase moves single rows, as MATLAB's `kmeans` does; litekmeans has none.
    max_iter : int
    random_state : int, RandomState, Generator or None
    """
    seed = root_seed(random_state) % 2**32
    if cosine:
        X = scipy.sparse.csr_array(normalize(scipy.sparse.csr_array(X, dtype=np.float64)))
        labels = _spherical(X, n_clusters, max_iter, np.random.default_rng(seed))
    else:
        labels = KMeans(n_clusters, init="random", n_init=1, max_iter=max_iter, random_state=seed).fit(X).labels_
    return move_single_rows(X, labels, n_clusters, cosine=cosine, max_passes=max_iter) if single_moves else labels


def _spherical(
    rows: scipy.sparse.csr_array, n_clusters: int, max_iter: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Lloyd's iteration on rows of unit length."""
    n = rows.shape[0]
    centers = rows[np.sort(rng.choice(n, n_clusters, replace=False))].toarray()
    labels: NDArray[np.int32] = np.full(n, -1, np.int32)
    for _ in range(max_iter):
        likeness = rows @ centers.T
        found = likeness.argmax(axis=1).astype(np.int32)
        for empty in np.setdiff1d(np.arange(n_clusters), found):  # the row that suits its centre least, as there
            alone = likeness[np.arange(n), found].argmin()
            found[alone], likeness[alone] = empty, 1.0
        if (found == labels).all():
            break
        labels = found
        members = scipy.sparse.csr_array((np.ones(n), (labels, np.arange(n))), shape=(n_clusters, n))
        centers = normalize((members @ rows).toarray())
    return labels
