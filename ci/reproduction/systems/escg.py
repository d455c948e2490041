"""ESCG: efficient spectral clustering on graphs, Liu, Wang, Danilevsky, Han, IJCAI 2013.

The paper was not at hand. Lengths of edges, scaling and number of supernodes are those of the program `escg.m` and its
example of a run, as GitHub uta-smile/AAAI2016_Yeqing holds them; written anew.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import dijkstra

from ci.reproduction.systems.common import cluster_rows, left_vectors
from daskcluster.runtime.seeding import root_seed
from daskcluster.typing import Seed

__all__ = ["efficient_spectral_clustering", "supernodes"]


def supernodes(affinity: scipy.sparse.csr_matrix, seeds: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each row the number of the seed whose shortest path is the shortest; -1 where no path leads.

    An edge is as long as its affinity is small: -log of the affinity as a share of the largest, and a little more, so
    that no edge has length 0, which would be none.
    """
    lengths = affinity.copy()
    lengths.data = 1e-9 - np.log(np.maximum(affinity.data, np.finfo(np.float64).tiny) / affinity.data.max())
    _, _, sources = dijkstra(lengths, directed=False, indices=seeds, min_only=True, return_predecessors=True)
    number = np.full(affinity.shape[0], -1)
    number[seeds] = np.arange(len(seeds))
    return np.where(sources >= 0, number[np.maximum(sources, 0)], -1)


def efficient_spectral_clustering(
    affinity: scipy.sparse.csr_matrix, n_clusters: int, *, n_supernodes: int = 50, random_state: Seed = None
) -> NDArray[np.int32]:
    """Labels (n,): the bipartite graph of rows and supernodes is cut.

    Notes
    -----
    d rows are drawn, and every row joins the drawn one that is nearest in the graph: R (n, d). Rows and supernodes are
    linked by W R; the left singular vectors of D1^-1/2 W R D2^-1/2, scaled by D1^-1/2, are clustered by k-means. Rows
    that no drawn one reaches make one more supernode; there they join the first.
    """
    n = affinity.shape[0]
    draw = np.random.default_rng(root_seed(random_state))
    seeds = np.sort(draw.choice(n, min(n_supernodes, n), replace=False))
    member = supernodes(affinity, seeds)
    member[member < 0] = len(seeds)
    R = scipy.sparse.csr_matrix((np.ones(n), (np.arange(n), member)), shape=(n, len(seeds) + 1))
    linked = (affinity @ R).toarray()
    linked = linked[:, linked.any(axis=0)]
    rows = np.maximum(linked.sum(axis=1), np.finfo(np.float64).tiny)
    columns = linked.sum(axis=0)
    vectors = left_vectors(linked / np.sqrt(rows)[:, None] / np.sqrt(columns), n_clusters)
    return cluster_rows(vectors / np.sqrt(rows)[:, None], n_clusters, random_state)
