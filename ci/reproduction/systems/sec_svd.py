"""SEC-SVD: spectral ensemble clustering on singular vectors, as fast_csc_and_secrp_2017 sets it beside SECRP."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from daskcluster.linalg import largest_eigenpairs
from daskcluster.runtime.seeding import root_seed, stream
from daskcluster.typing import Seed
from daskcluster.validation import check_integer

__all__ = ["binary_matrix", "projected_rows", "sec_by_svd"]


def sec_by_svd(
    labels: NDArray[Any], n_clusters: int, n_components: int, *, n_init: int = 10, random_state: Seed = None
) -> NDArray[np.int32]:
    """Consensus (n,) of base clusterings (n, g): weighted k-means on rows b / w that are projected on singular vectors.

    Notes
    -----
    Lemma 1 and section 4.1: the singular vectors of B come from its Gram matrix, (d', d'), and B is multiplied by
    them, O(d'**3 + n d'**2 + n d' rd). Rows are divided by w and weighted by it as without a projection.
    """
    check_integer("n_clusters", n_clusters, 1)
    points, weights = projected_rows(binary_matrix(labels), n_components)
    seed = int(stream(root_seed(random_state), "kmeans").integers(2**31))
    kmeans = KMeans(n_clusters, n_init=n_init, random_state=seed)
    return np.asarray(kmeans.fit(points, sample_weight=weights).labels_, np.int32)


def projected_rows(B: scipy.sparse.csr_array, n_components: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rows of B V / w (n, rd), with V the first right singular vectors of B, and w (n,), over the mean of w."""
    weights = np.asarray(B @ np.asarray(B.sum(axis=0)).ravel()).ravel()  # row sums of the co-association matrix
    weights = weights / weights.mean()
    gram = np.asarray((B.T @ B).todense())
    _, vectors = largest_eigenpairs(gram, min(n_components, len(gram)))
    return np.asarray(B @ vectors / weights[:, None]), weights


def binary_matrix(labels: NDArray[Any]) -> scipy.sparse.csr_array:
    """B (n, d') of eq. (8), one column a base cluster; every row has a label in every base clustering."""
    labels = np.asarray(labels)
    if labels.ndim != 2 or labels.min() < 0:
        raise ValueError("labels must be (n, g) whole numbers, none missing")
    n, g = labels.shape
    codes = np.empty((n, g), np.int64)
    start = 0
    for j in range(g):
        names, codes[:, j] = np.unique(labels[:, j], return_inverse=True)
        codes[:, j] += start
        start += len(names)
    return scipy.sparse.csr_array((np.ones(n * g), codes.ravel(), np.arange(0, n * g + 1, g)), shape=(n, start))
