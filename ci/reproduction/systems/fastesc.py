"""FastESC: spectral clustering by explicit features, He, Ray, Guan, Zhang, IEEE Transactions on Cybernetics 49, 2019.

The paper was not at hand: the features are the random Fourier features of Rahimi and Recht, 2007, and their number and
the bandwidth are ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ci.reproduction.systems.common import cluster_rows, left_vectors, squared_distances
from daskcluster.constraints.embedding import unit_rows
from daskcluster.runtime.seeding import root_seed
from daskcluster.typing import Seed

__all__ = ["explicit_spectral_clustering", "explicit_vectors", "fourier_features"]


def fourier_features(
    X: NDArray[np.float64], n_features: int, sigma: float, draw: np.random.Generator
) -> NDArray[np.float64]:
    """Features (n, D) whose inner products are near exp(-|x - y|**2 / (2 sigma**2))."""
    frequencies = draw.standard_normal((X.shape[1], n_features)) / sigma
    phases = draw.uniform(0, 2 * np.pi, n_features)
    result: NDArray[np.float64] = np.sqrt(2 / n_features) * np.cos(X @ frequencies + phases)
    return result


def explicit_vectors(Z: NDArray[np.float64], n_components: int) -> NDArray[np.float64]:
    """First eigenvectors (n, n_components) of D^-1/2 W D^-1/2 with W = Z Z', as left singular vectors of D^-1/2 Z.

    Notes
    -----
    Degrees Z (Z' 1) that are not above 0, which the features do not rule out, are set to the smallest that is.
    """
    degrees = Z @ Z.sum(axis=0)
    degrees = np.maximum(degrees, degrees[degrees > 0].min())
    return left_vectors(Z / np.sqrt(degrees)[:, None], n_components)


def explicit_spectral_clustering(
    X: NDArray[np.float64], n_clusters: int, *, n_features: int = 500, random_state: Seed = None
) -> NDArray[np.int32]:
    """Labels (n,): k-means on unit rows of the left singular vectors of D^-1/2 Z, with W = Z Z'.

    Notes
    -----
    sigma is the mean distance of 1000 drawn rows.
    """
    draw = np.random.default_rng(root_seed(random_state))
    some = X[draw.choice(len(X), min(1000, len(X)), replace=False)]
    sigma = float(np.sqrt(squared_distances(some, some)).mean()) or 1.0
    Z = fourier_features(X, n_features, sigma, draw)
    return cluster_rows(unit_rows(explicit_vectors(Z, n_clusters)), n_clusters, random_state)
