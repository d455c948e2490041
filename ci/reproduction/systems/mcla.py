"""MCLA: meta-clustering, Strehl and Ghosh, JMLR 3, 2002."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ci.reproduction.systems.partitioners import hyperedges, partition_graph
from daskcluster.typing import Seed

__all__ = ["meta_clustering", "meta_graph"]

#: METIS takes whole numbers: a Jaccard similarity of 1 is this.
UNIT = 10_000


def meta_graph(H: NDArray[np.float64]) -> NDArray[np.int64]:
    """Jaccard similarities (c, c) of hyperedges, as whole numbers."""
    shared = H.T @ H
    sizes = np.diag(shared)
    return np.rint(UNIT * shared / (sizes[:, None] + sizes - shared)).astype(np.int64)


def meta_clustering(labels: Any, n_clusters: int, *, random_state: Seed = None) -> NDArray[np.int32]:
    """Consensus (n,) of base clusterings (n, m): METIS on base clusters, then each row to its meta-cluster.

    Notes
    -----
    Base clusters are linked by their Jaccard similarities and weigh as much as they have rows. A row goes to the
    meta-cluster whose base clusters hold it in the largest share; of equal ones the first (the paper draws). A
    meta-cluster may stay without rows.
    """
    H = hyperedges(labels)
    sizes = H.sum(axis=0).astype(np.int64)
    meta = partition_graph(meta_graph(H), n_clusters, random_state, sizes)
    association = np.stack(
        [H[:, meta == k].mean(axis=1) if (meta == k).any() else np.zeros(len(H)) for k in range(n_clusters)], axis=1
    )
    return association.argmax(axis=1).astype(np.int32)
