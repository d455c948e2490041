"""CSPA: cluster-based similarity partitioning, Strehl and Ghosh, JMLR 3, 2002."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ci.reproduction.systems.partitioners import hyperedges, partition_graph
from daskcluster.typing import Seed

__all__ = ["cluster_based_similarity_partitioning"]


def cluster_based_similarity_partitioning(
    labels: Any, n_clusters: int, *, random_state: Seed = None
) -> NDArray[np.int32]:
    """Consensus (n,) of base clusterings (n, m): METIS on the graph of all rows, linked by how often they agree.

    Notes
    -----
    n**2 numbers in memory. Parts are of about equal size, whatever the clusters are.
    """
    H = hyperedges(labels)
    return partition_graph((H @ H.T).astype(np.int64), n_clusters, random_state)
