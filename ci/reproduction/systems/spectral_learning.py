"""SL: spectral learning of Kamvar, Klein, Manning, IJCAI 2003.

As csp_ml_and_fast_csp_ml_2019 describes it in section 3, which gives its formulas no numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ci.reproduction.systems.common import checked_affinity, cluster_rows
from daskcluster.constraints import Constraints
from daskcluster.constraints.embedding import unit_rows
from daskcluster.linalg import largest_eigenpairs
from daskcluster.typing import Seed
from daskcluster.validation import check_integer

__all__ = ["spectral_learning"]


def spectral_learning(
    affinity: NDArray[np.float64], constraints: Constraints, n_clusters: int, *, random_state: Seed = None
) -> NDArray[np.int32]:
    """SL in memory; hard constraints only.

    Parameters
    ----------
    affinity : (n, n) float64
        Symmetric, not negative.
    constraints : Constraints
        Weights are not looked at. A pair of both kinds counts as a cannot-link.
    n_clusters : int
    random_state : int, RandomState, Generator or None

    Returns
    -------
    (n,) int32

    Raises
    ------
    ValueError
        If `affinity` is something else, or the constraints are for another number of rows.

    Notes
    -----
    W is 1 at must-links and 0 at cannot-links; the rows of the largest k eigenvectors of (W + d_max I - D) / d_max, at
    unit length as Kamvar et al. say, are clustered by k-means. O(n**3).
    """
    check_integer("n_clusters", n_clusters, 1)
    W = checked_affinity(affinity, constraints)
    Q = constraints.to_sparse(len(W)).todense()
    W[Q > 0] = 1.0
    W[Q < 0] = 0.0
    first, second = constraints.cannot_link.T
    W[first, second] = W[second, first] = 0.0  # of pairs of both kinds the entry in Q may be positive
    degrees = W.sum(axis=1)
    largest = max(float(degrees.max()), np.finfo(np.float64).tiny)
    transition = (W + np.diag(largest - degrees)) / largest
    _, vectors = largest_eigenpairs(transition, min(n_clusters, len(W)))
    return cluster_rows(unit_rows(vectors), n_clusters, random_state)
