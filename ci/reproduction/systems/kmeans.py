"""k-means from random rows, as the program does that uspec_usenc_2019 [36] and the ensembles of the papers use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

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
        Rows are scaled to unit length before. Centres are means of unit rows, not of unit length themselves as in
        spherical k-means.
    max_iter : int
    random_state : int, RandomState, Generator or None
    """
    if cosine:
        from sklearn.preprocessing import normalize

        X = normalize(X.astype(np.float64))
    seed = root_seed(random_state) % 2**32
    model = KMeans(n_clusters, init="random", n_init=1, max_iter=max_iter, random_state=seed)
    labels: NDArray[np.int32] = model.fit(X).labels_
    return labels
