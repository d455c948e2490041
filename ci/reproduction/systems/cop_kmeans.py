"""CK: constrained k-means, COP-KMEANS of Wagstaff, Cardie, Rogers, Schroedl, ICML 2001, Table 1 there."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin

from ci.reproduction.systems.common import constraint_matrix
from daskcluster.constraints import Constraints
from daskcluster.runtime.seeding import root_seed, stream
from daskcluster.typing import Seed
from daskcluster.validation import check_integer

__all__ = ["ConstraintsFailed", "constrained_kmeans"]


class ConstraintsFailed(ValueError):
    """A row has no cluster that keeps its constraints: the method's answer is the empty partition."""


def constrained_kmeans(
    X: NDArray[Any],
    constraints: Constraints,
    n_clusters: int,
    *,
    infeasible: str = "fail",
    max_iter: int = 100,
    random_state: Seed = None,
) -> NDArray[np.int32]:
    """Labels (n,): k-means in which each row, in turn, takes the nearest cluster that breaks none of its constraints.

    Parameters
    ----------
    infeasible : {"fail", "least"}
        What is done with a row that no cluster suits: the paper's answer, `ConstraintsFailed`, or the cluster that
        breaks the fewest of its constraints.

    Notes
    -----
    Constraints are hard, weights are not looked at, and must-links are taken with what follows from them; labels are
    closed already. The order of rows decides, as in the original; rows without constraints are not in each other's
    way. Starts are k-means++, which the original, of 2001, could not have; an empty cluster keeps its centre.
    """
    check_integer("n_clusters", n_clusters, 1)
    X = np.asarray(X, np.float64)
    closed = constraints if constraints.labels is not None else constraints.closure()
    Q = constraint_matrix(closed, len(X))
    rows = np.flatnonzero(np.diff(Q.indptr))
    seed = int(stream(root_seed(random_state), "centers").integers(2**31))
    centers = kmeans_plusplus(X, n_clusters, random_state=seed)[0]
    labels = np.full(len(X), -1, np.int32)
    for _ in range(max_iter):
        found = pairwise_distances_argmin(X, centers).astype(np.int32)
        _constrain(found, rows, X, centers, Q, infeasible)
        if np.array_equal(found, labels):
            break
        labels = found
        counts = np.bincount(labels, minlength=n_clusters)
        member = scipy.sparse.csr_array((np.ones(len(X)), (labels, np.arange(len(X)))), shape=(n_clusters, len(X)))
        sums = member @ X
        centers = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centers)
    return labels


def _constrain(
    labels: NDArray[np.int32],
    rows: NDArray[np.intp],
    X: NDArray[np.float64],
    centers: NDArray[np.float64],
    Q: scipy.sparse.csr_array,
    infeasible: str,
) -> None:
    """Labels of the constrained rows, one after the other, written over those of the nearest centres."""
    k = len(centers)
    labels[rows] = -1
    distances = ((centers**2).sum(axis=1) - 2 * X[rows] @ centers.T).astype(np.float64)
    for row, distance in zip(rows, distances, strict=True):
        part = slice(Q.indptr[row], Q.indptr[row + 1])
        there = labels[Q.indices[part]]
        placed, sign = there >= 0, Q.data[part]
        must = np.bincount(there[placed & (sign > 0)], minlength=k)
        cannot = np.bincount(there[placed & (sign < 0)], minlength=k)
        broken = must.sum() - must + cannot
        if broken.min() > 0 and infeasible == "fail":
            raise ConstraintsFailed(f"no cluster of {k} keeps the constraints of row {row}")
        labels[row] = np.argmin(np.where(broken == broken.min(), distance, np.inf))
