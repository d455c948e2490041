"""Easy data of few rows: every estimator finds the clusters, with the defaults.

`ci/benchmarks/run few_rows` is the table of which these are some cells.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import daskcluster as dc
from tests.slow import slowly

Rows = tuple[np.ndarray, np.ndarray]


def blobs(n: int, seed: int, k: int = 3, shares: tuple[float, ...] = ()) -> Rows:
    """Blobs whose centres are nine standard deviations apart, of equal sizes or of these shares."""
    ends = np.cumsum(shares or (1 / k,) * k) * n
    y = np.searchsorted(ends.round(), np.arange(n), side="right").clip(0, k - 1)
    rng = np.random.default_rng([seed, n])
    centers = 9.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 0]])
    X = centers[y] + rng.normal(size=(n, 2)).clip(-2.5, 2.5)
    order = rng.permutation(n)
    return X[order], y[order]


def rings(n: int, seed: int) -> Rows:
    """Two circles, one in the other, whose rows are much nearer to each other than the circles are."""
    rng = np.random.default_rng([seed, n, 1])
    y = (np.arange(n) % 4 > 0).astype(int)  # the larger one has three times the rows
    angle = 2 * np.pi * np.where(y == 0, np.arange(n) / n, rng.permutation(n) / n)
    radius = np.where(y == 0, 1.0, 3.0) + 0.05 * rng.normal(size=n)
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), y


def known(y: np.ndarray) -> np.ndarray:
    """Labels of the first two rows of each cluster."""
    labels = np.full(len(y), -1)
    for number in np.unique(y):
        labels[np.flatnonzero(y == number)[:2]] = number
    return labels


def partitions(X: np.ndarray, k: int) -> np.ndarray:
    """Base clusterings with k to 2 k clusters."""
    return np.stack([dc.KMeans(min(len(X), k + i), random_state=i).fit_predict(X) for i in range(k + 1)], axis=1)


#: Name -> labels of the rows of (X, y) in k clusters.
ESTIMATORS: dict[str, Callable[..., Any]] = {
    "KMeans": lambda X, y, k: dc.KMeans(k, n_init=3, random_state=0).fit_predict(X),
    "USPEC": lambda X, y, k: dc.USPEC(k, random_state=0).fit_predict(X),
    "USPEC, exact": lambda X, y, k: dc.USPEC(k, neighbors="exact", random_state=0).fit_predict(X),
    "FastCSC": lambda X, y, k: dc.FastCSC(k, random_state=0).fit_predict(X),
    "FastCSC, labels": lambda X, y, k: dc.FastCSC(k, random_state=0).fit_predict(X, known(y)),
    "FastCSPML, labels": lambda X, y, k: dc.FastCSPML(k, random_state=0).fit_predict(X, known(y)),
    "CSPML, labels": lambda X, y, k: dc.CSPML(k, random_state=0).fit_predict(X, known(y)),
    "USENC": lambda X, y, k: dc.USENC(k, n_base_clusterings=8, random_state=0).fit_predict(X),
    "Ensemble": lambda X, y, k: dc.Ensemble(k, n_base_clusterings=4, random_state=0).fit_predict(X),
    "BipartiteCut": lambda X, y, k: dc.BipartiteCut(k, random_state=0).fit_predict(partitions(X, k)),
    "SEC": lambda X, y, k: dc.SEC(k, random_state=0).fit_predict(partitions(X, k)),
    "KCC": lambda X, y, k: dc.KCC(k, random_state=0).fit_predict(partitions(X, k)),
    "KCC, categorical": lambda X, y, k: dc.KCC(k, utility="categorical", random_state=0).fit_predict(partitions(X, k)),
    "ECPCS": lambda X, y, k: dc.ECPCS(k, random_state=0).fit_predict(partitions(X, k)),
    "EAC": lambda X, y, k: dc.EAC(k).fit_predict(partitions(X, k)),
    "EAC, local": lambda X, y, k: dc.EAC(k, weights="local").fit_predict(partitions(X, k)),
    "EAC, wct": lambda X, y, k: dc.EAC(k, weights="wct").fit_predict(partitions(X, k)),
    "PTGP": lambda X, y, k: dc.PTGP(k, random_state=0).fit_predict(partitions(X, k)),
    "ISEC": lambda X, y, k: dc.ISEC(k, random_state=0).fit_predict(partitions(X, k)),
}
#: Those that find rings; to the others they are no clusters, or shapes of a size that they do not resolve.
SPECTRAL = ("USPEC", "USPEC, exact", "USENC", "Ensemble", "FastCSC", "FastCSC, labels")


def found(estimator: str, X: np.ndarray, y: np.ndarray) -> float:
    """Adjusted Rand index of what an estimator makes of the rows."""
    k = len(np.unique(y))
    with warnings.catch_warnings():
        warnings.simplefilter("error", dc.FewerClustersWarning)
        return float(dc.metrics.adjusted_rand_index(y, ESTIMATORS[estimator](X, y, k)))


@pytest.mark.parametrize("n", [10, 100, *slowly(20, 50, 300, 1000)])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_blobs(estimator, n, run_slow):
    for seed in range(3 if run_slow else 2):
        assert found(estimator, *blobs(n, seed)) >= 0.99


@pytest.mark.parametrize("n", [100, *slowly(50, 300)])
@pytest.mark.parametrize("estimator", ["USPEC", "FastCSC", "FastCSC, labels"])
def test_blobs_of_unequal_sizes(estimator, n):
    for seed in range(3):
        assert found(estimator, *blobs(n, seed, 5, (0.4, 0.2, 0.2, 0.1, 0.1))) >= 0.99


@pytest.mark.parametrize("n", [50, *slowly(100, 300)])
@pytest.mark.parametrize("estimator", SPECTRAL)
def test_rings(estimator, n):
    for seed in range(3):
        assert found(estimator, *rings(n, seed)) >= 0.99


@pytest.mark.parametrize("n", [500, 1000, 2000])
@pytest.mark.parametrize("n_graphs", [1, 4])
def test_base_clusterings_do_not_take_clusters_apart(n, n_graphs):
    """Where there are more of them than k, and few rows for each."""
    X, y = rings(n, 2)
    model = dc.USENC(2, n_graphs=n_graphs, random_state=1).fit(X)
    assert model.k_range_[1] > 2
    assert dc.metrics.adjusted_rand_index(y, model.labels_) > 0.99
