"""HGPA: hypergraph partitioning, Strehl and Ghosh, JMLR 3, 2002."""

from __future__ import annotations

from functools import cache
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ci.reproduction.systems.partitioners import hyperedges, imported, small_seed
from daskcluster.typing import Seed
from daskcluster.validation import check_integer

__all__ = ["hypergraph_partitioning", "imbalance"]

#: Of two halves one may have so much: HMETIS with an UBfactor of 5, as the program of the paper's authors calls it.
HALF = 0.55


@cache
def _library() -> tuple[Any, Any]:
    """Mt-KaHyPar, started once a process."""
    module = imported("mtkahypar", "partitioning a hypergraph")
    return module, module.initialize(1)


def imbalance(n_parts: int) -> float:
    """By how much a part may be above an equal share: HMETIS halves, and halves the halves."""
    return n_parts * HALF ** log2(n_parts) - 1


def hypergraph_partitioning(labels: Any, n_clusters: int, *, random_state: Seed = None) -> NDArray[np.int32]:
    """Consensus (n,) of base clusterings (n, m): parts of about equal size that cut the fewest base clusters.

    Notes
    -----
    The paper's partitioner is HMETIS, which METIS does not include. This one is Mt-KaHyPar (deterministic, one thread)
    with the same objective, hyperedges of weight 1 that are cut, and parts as large as that one's may be: of two 55 %.
    """
    check_integer("n_clusters", n_clusters, 1)
    H = hyperedges(labels)
    if n_clusters == 1:
        return np.zeros(len(H), np.int32)
    mtkahypar, library = _library()
    mtkahypar.set_seed(small_seed(random_state))
    context = library.context_from_preset(mtkahypar.PresetType.DETERMINISTIC)
    context.set_partitioning_parameters(n_clusters, imbalance(n_clusters), mtkahypar.Objective.CUT)
    context.logging = False
    nets = [np.flatnonzero(column).tolist() for column in H.T]
    graph = library.create_hypergraph(context, len(H), len(nets), nets, [1] * len(H), [1] * len(nets))
    parts = graph.partition(context)
    return np.array([parts.block_id(row) for row in range(len(H))], np.int32)
