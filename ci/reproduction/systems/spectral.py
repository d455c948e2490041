"""SC: spectral clustering with the whole affinity, after von Luxburg, A tutorial on spectral clustering, 2007."""

from __future__ import annotations

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from ci.reproduction.systems.common import cluster_rows
from daskcluster.constraints.embedding import unit_rows
from daskcluster.linalg import largest_eigenpairs
from daskcluster.runtime.seeding import root_seed, stream
from daskcluster.typing import Seed

__all__ = ["spectral_clustering"]

#: Rows up to which LAPACK is asked: iterations do not end where the wanted eigenvalues are close, as on fbis.
DENSE_ROWS = 4000


def spectral_clustering(
    affinity: scipy.sparse.csr_matrix, n_clusters: int, *, random_state: Seed = None
) -> NDArray[np.int32]:
    """Labels (n,): k-means on the unit rows of the first eigenvectors of the normalized Laplacian (Ng, Jordan, Weiss).

    Notes
    -----
    The vectors are those of D^-1/2 W D^-1/2 to its largest eigenvalues. A graph in more than k pieces has more than k
    vectors to the eigenvalue 1: which of them are found is then chance, as with any program that asks for k.
    """
    degrees = np.asarray(affinity.sum(axis=1)).ravel()
    scale = scipy.sparse.diags_array(1 / np.sqrt(np.maximum(degrees, np.finfo(np.float64).tiny)))
    normalized = scale @ affinity @ scale
    if len(degrees) <= DENSE_ROWS:
        _, vectors = largest_eigenpairs(normalized.toarray(), n_clusters)
    else:
        start = stream(root_seed(random_state), "start").normal(size=len(degrees))
        _, vectors = scipy.sparse.linalg.eigsh(normalized, n_clusters, which="LA", v0=start)
    return cluster_rows(unit_rows(vectors), n_clusters, random_state)
