"""GCC: graph-based consensus, the best of CSPA, HGPA and MCLA; Strehl and Ghosh, JMLR 3, 2002."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ci.reproduction.systems.cspa import cluster_based_similarity_partitioning
from ci.reproduction.systems.hgpa import hypergraph_partitioning
from ci.reproduction.systems.mcla import meta_clustering
from daskcluster.metrics import normalized_mutual_info
from daskcluster.typing import Seed

__all__ = ["PARTITIONS", "graph_based_consensus", "mean_information"]

#: The three, in the order in which equal ones are preferred.
PARTITIONS = {
    "CSPA": cluster_based_similarity_partitioning,
    "HGPA": hypergraph_partitioning,
    "MCLA": meta_clustering,
}


def mean_information(labels: NDArray[np.int32], base: NDArray[np.int32]) -> float:
    """Mean NMI of a labeling with base clusterings (n, m), each over the rows that it labels."""
    return float(np.mean([normalized_mutual_info(one[one >= 0], labels[one >= 0]) for one in base.T]))


def graph_based_consensus(base: Any, n_clusters: int, *, random_state: Seed = None) -> NDArray[np.int32]:
    """Consensus (n,) of base clusterings (n, m): of the three partitions the one of the largest mean NMI with them."""
    found = [partition(base, n_clusters, random_state=random_state) for partition in PARTITIONS.values()]
    return max(found, key=lambda labels: mean_information(labels, base))
