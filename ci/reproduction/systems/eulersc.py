"""EulerSC: Euler spectral clustering, Wu, Zheng, Lai, Suen, Euler clustering on large-scale dataset, 2018.

The paper was not at hand, only its abstract: the map is the one of Liwicki et al., Euler principal component analysis,
2013, with its alpha. The scaling of the data is ours, and so is the constant that keeps affinities from being negative,
where the paper has a "positive Euler kernel".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from daskcluster.runtime.seeding import root_seed
from daskcluster.typing import Seed

__all__ = ["euler_features", "euler_spectral_clustering"]


def euler_features(X: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Features (n, 2 d + 1) with inner products (d + sum_j cos(alpha pi (x_j - y_j))) / 2, which are not below 0.

    Each column is scaled to [0, 1] before.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    turned = alpha * np.pi * (X - low) / np.where(high > low, high - low, 1.0)
    ones = np.full((len(X), 1), np.sqrt(X.shape[1]))
    return np.hstack([np.cos(turned), np.sin(turned), ones]) / np.sqrt(2)


def euler_spectral_clustering(
    X: NDArray[np.float64], n_clusters: int, *, alpha: float = 1.9, random_state: Seed = None
) -> NDArray[np.int32]:
    """Labels (n,): the normalized cut of W = F F' as weighted k-means on the rows of D^-1 F with weights D."""
    F = euler_features(X, alpha)
    degrees = F @ F.sum(axis=0)
    degrees = np.maximum(degrees, np.finfo(np.float64).tiny)
    model = KMeans(n_clusters, init="random", n_init=1, random_state=root_seed(random_state) % 2**32)
    # The scale of the weights and points is free; points near 1 keep the tolerance of the iteration meaningful.
    points = F / degrees[:, None] * degrees.mean()
    labels: NDArray[np.int32] = model.fit(points, sample_weight=degrees / degrees.mean()).labels_
    return labels
