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

__all__ = ["binary_matrix", "sec_by_svd"]


def sec_by_svd(
    labels: NDArray[Any], n_clusters: int, n_components: int, *, n_init: int = 10, random_state: Seed = None
) -> NDArray[np.int32]:
    """Consensus (n,) of base clusterings (n, g): weighted k-means on the rows b / w, projected on singular vectors.

    Notes
    -----
    Lemma 1 and section 4.1: the singular vectors of the rows b / w come from their Gram matrix, (d', d'), and the rows
    are multiplied by them, O(d'**3 + n d'**2 + n d' rd).
    """
    check_integer("n_clusters", n_clusters, 1)
    B = binary_matrix(labels)
    weights = np.asarray(B @ np.asarray(B.sum(axis=0)).ravel()).ravel()  # row sums of the co-association matrix
    scaled = scipy.sparse.csr_array(scipy.sparse.diags_array(weights.mean() / weights) @ B)
    gram = np.asarray((scaled.T @ scaled).todense())
    _, vectors = largest_eigenpairs(gram, min(n_components, len(gram)))
    seed = int(stream(root_seed(random_state), "kmeans").integers(2**31))
    kmeans = KMeans(n_clusters, n_init=n_init, random_state=seed)
    return np.asarray(kmeans.fit(scaled @ vectors, sample_weight=weights).labels_, np.int32)


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
