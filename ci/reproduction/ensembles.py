"""Base clusterings of a draw, and the consensus functions of the papers by the names that they have there."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import daskcluster as dc
from ci.reproduction.data import load_ensemble_set
from ci.reproduction.systems.ecmc import completed_consensus
from ci.reproduction.systems.gcc import PARTITIONS, graph_based_consensus
from ci.reproduction.systems.kmeans import kmeans

__all__ = ["CONSENSUS", "Pool", "base_clusterings", "find_consensus", "kmeans_pool"]

#: Base clusterings (n, m) and the seconds that making them took.
Pool = tuple[NDArray[np.int32], float]


@lru_cache(maxsize=1)
def kmeans_pool(
    column: str, number: int, paper_sizes: bool, m: int, low: int, high: int, share: float = 1.0, **options: bool
) -> Pool:
    """m base clusterings by k-means, each with a number of clusters drawn from low to high; draw `number`.

    With `share` below 1 each clusters that share of the rows, drawn for it; the others get -1. Options are those of
    `kmeans`.
    """
    X, _ = load_ensemble_set(column, paper_sizes)
    return base_clusterings(X, np.random.default_rng([number, m, low, high]), m, low, high, share, **options)


def base_clusterings(
    X: Any, rng: np.random.Generator, m: int, low: int, high: int, share: float = 1.0, **options: bool
) -> Pool:
    """The same of given rows."""
    start = time.process_time()
    labels = np.full((X.shape[0], m), -1, np.int32)
    for member in range(m):
        n_clusters, seed = int(rng.integers(low, high, endpoint=True)), int(rng.integers(2**31))
        rows = np.sort(rng.choice(len(labels), round(share * len(labels)), replace=False)) if share < 1 else slice(None)
        labels[rows, member] = kmeans(X[rows], n_clusters, random_state=seed, **options)
    return labels, time.process_time() - start


#: Rows up to which ISEC is exact, as an eigendecomposition of all takes hours beyond, and those it takes then.
EXACT_ROWS, FEW_ROWS = 5000, 3000


def _isec(partition: str, base: NDArray[np.int32], k: int, seed: int) -> Any:
    few = FEW_ROWS if len(base) > EXACT_ROWS else None
    return dc.ISEC(k, partition=partition, n_representatives=few, random_state=seed).fit_predict(base)


#: Distinct rows of labels for a number of each pair: 10 GB.
DISTINCT = 50_000
#: Name in the papers -> (base clusterings, k, seed) -> labels.
CONSENSUS: dict[str, Callable[[NDArray[np.int32], int, int], Any]] = {
    "EAC": lambda base, k, seed: dc.EAC(k, max_distinct=DISTINCT).fit_predict(base),
    "WCT": lambda base, k, seed: dc.EAC(k, weights="wct", max_distinct=DISTINCT).fit_predict(base),
    "HCC": lambda base, k, seed: dc.EAC(k, max_distinct=DISTINCT).fit_predict(base),
    "KCC": lambda base, k, seed: dc.KCC(k, utility="categorical", random_state=seed).fit_predict(base),
    "CCC": lambda base, k, seed: dc.KCC(k, utility="categorical", random_state=seed).fit_predict(base),
    "ECC": lambda base, k, seed: dc.KCC(k, utility="entropy", random_state=seed).fit_predict(base),
    "PTGP": lambda base, k, seed: dc.PTGP(k, max_distinct=DISTINCT, random_state=seed).fit_predict(base),
    "SEC": lambda base, k, seed: dc.SEC(k, random_state=seed).fit_predict(base),
    "LWGP": lambda base, k, seed: dc.BipartiteCut(k, weights="local", random_state=seed).fit_predict(base),
    "GCC": lambda base, k, seed: graph_based_consensus(base, k, random_state=seed),
    "CSPA": lambda base, k, seed: PARTITIONS["CSPA"](base, k, random_state=seed),
    "HGPA": lambda base, k, seed: PARTITIONS["HGPA"](base, k, random_state=seed),
    "MCLA": lambda base, k, seed: PARTITIONS["MCLA"](base, k, random_state=seed),
    "ECMC": lambda base, k, seed: completed_consensus(base, k, random_state=seed),
    "ISEC-H": partial(_isec, "H"),
    "ISEC-Z": partial(_isec, "Z"),
}


def find_consensus(name: str, base: NDArray[np.int32], n_clusters: int, seed: int) -> tuple[NDArray[np.int32], float]:
    """Labels by a consensus function, and its seconds."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.FewerClustersWarning)
        labels = np.asarray(CONSENSUS[name](base, n_clusters, seed))
    return labels, time.process_time() - start
