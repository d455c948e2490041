"""Nyström spectral clustering as Chen, Song, Bai, Lin, Chang, IEEE TPAMI 33, 2011, section 4, compare it."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ci.reproduction.systems.common import cluster_rows, left_vectors, squared_distances
from daskcluster.constraints.embedding import unit_rows
from daskcluster.runtime.seeding import root_seed
from daskcluster.typing import Seed

__all__ = ["nystrom_spectral_clustering", "nystrom_vectors"]


def nystrom_vectors(
    affinity: NDArray[np.float64], sampled: NDArray[np.int64], n_components: int
) -> NDArray[np.float64]:
    """First eigenvectors (n, n_components) of the normalized affinity that the columns of sampled rows stand for.

    Notes
    -----
    With C (n, l) and its sampled rows A (l, l), W is taken as C A^+ C'; degrees are its row sums, those not above 0
    are set to the smallest that is. D^-1/2 C A^-1/2 has the eigenvectors of D^-1/2 W D^-1/2 as left singular vectors
    (orthogonalised in one step). Eigenvalues of A below 1e-10 of the largest count as 0.
    """
    values, vectors = scipy.linalg.eigh(affinity[sampled])
    kept = values > 1e-10 * values[-1]
    G = affinity @ (vectors[:, kept] / np.sqrt(values[kept]))  # G G' = C A^+ C'
    degrees = G @ G.sum(axis=0)
    degrees = np.maximum(degrees, degrees[degrees > 0].min())
    return left_vectors(G / np.sqrt(degrees)[:, None], n_components)


def nystrom_spectral_clustering(
    X: NDArray[np.float64], n_clusters: int, *, n_samples: int = 1000, random_state: Seed = None
) -> NDArray[np.int32]:
    """Labels (n,) from a Gaussian affinity with `n_samples` random rows; sigma is the mean distance to them (ours)."""
    draw = np.random.default_rng(root_seed(random_state))
    sampled = np.sort(draw.choice(len(X), min(n_samples, len(X)), replace=False))
    distances = squared_distances(X, X[sampled])
    sigma = float(np.sqrt(distances).mean()) or 1.0
    affinity = np.exp(-distances / (2 * sigma**2))
    return cluster_rows(unit_rows(nystrom_vectors(affinity, sampled, n_clusters)), n_clusters, random_state)
