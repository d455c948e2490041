"""k-means from random rows, as the program does that uspec_usenc_2019 [36] and the ensembles of the papers use."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from daskcluster.runtime.seeding import root_seed
from daskcluster.typing import Seed

__all__ = ["kmeans"]


def kmeans(
    X: Any, n_clusters: int, *, cosine: bool = False, max_iter: int = 100, random_state: Seed = None
) -> NDArray[np.int32]:
    """Labels (n,) of Lloyd's iteration from one random choice of rows.

    Parameters
    ----------
    X : (n, d), dense or sparse
    n_clusters : int
    cosine : bool
        Rows are scaled to unit length, similarity is the cosine, and a centre is the mean of its rows scaled to unit
        length, as in MATLAB's `kmeans` with "cosine". For sparse X.
    max_iter : int
    random_state : int, RandomState, Generator or None
    """
    seed = root_seed(random_state) % 2**32
    if cosine:
        return _spherical(
            scipy.sparse.csr_array(X, dtype=np.float64), n_clusters, max_iter, np.random.default_rng(seed)
        )
    model = KMeans(n_clusters, init="random", n_init=1, max_iter=max_iter, random_state=seed)
    labels: NDArray[np.int32] = model.fit(X).labels_
    return labels


def _spherical(
    X: scipy.sparse.csr_array, n_clusters: int, max_iter: int, rng: np.random.Generator
) -> NDArray[np.int32]:
    rows = scipy.sparse.csr_array(normalize(X))
    n = rows.shape[0]
    centers = rows[np.sort(rng.choice(n, n_clusters, replace=False))].toarray()
    labels = np.full(n, -1, np.int32)
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
