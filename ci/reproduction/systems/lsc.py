"""LSC-K and LSC-R: landmark-based spectral clustering, Chen and Cai, AAAI 2011, by exchanging one stage of U-SPEC.

docs/adding_a_method.md tells how it is made. What U-SPEC's other stages do and the paper does not: rows of the
embedding have unit length (as in the authors' program, which also leaves out the first vector), sigma is the mean
distance to the nearest landmarks, landmarks by k-means are where it rests and not after five iterations, specks of the
graph are left out, and k-means has three starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskcluster.estimators.spectral import SpectralClusterer, SpectralStages
from daskcluster.pipeline.bipartite import BipartiteGraph
from daskcluster.pipeline.cut import Cut
from daskcluster.pipeline.discretize import Discretize
from daskcluster.pipeline.kmeans import sample_size
from daskcluster.pipeline.scan import Scan
from daskcluster.typing import Seed

__all__ = ["LSC"]


def unit_edges(
    block: Any, edges_of: Callable[[Any], tuple[NDArray[np.int32], NDArray[np.float32]]]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Edges of a block whose weights sum to 1 in each row."""
    indices, weights = edges_of(block)
    sums = weights.sum(axis=1, keepdims=True)
    return indices, np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)


@dataclass(frozen=True)
class LandmarkCut(Cut):
    """The first k singular vectors of Zhat = D^-1/2 Z."""

    title = "singular vectors"

    def __call__(self, run: Any, graph: Any, found: Any = None) -> Any:
        scaled = BipartiteGraph(graph.held, partial(unit_edges, edges_of=graph.edges_of), graph.n_right)
        return super().__call__(run, scaled)


class LSC(SpectralClusterer):
    """LSC-K with `selection="kmeans"`, LSC-R with `selection="random"`; exact neighbours."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_representatives: int = 1000,
        n_neighbors: int = 5,
        selection: str = "kmeans",
        neighbors: str = "exact",
        candidate_factor: int = 10,
        neighbor_factor: int = 10,
        metric: str = "euclidean",
        n_init: int = 3,
        max_iter: int = 100,
        missing: str = "raise",
        random_state: Seed = None,
        storage: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_representatives = n_representatives
        self.n_neighbors = n_neighbors
        self.selection = selection
        self.neighbors = neighbors
        self.candidate_factor = candidate_factor
        self.neighbor_factor = neighbor_factor
        self.metric = metric
        self.n_init = n_init
        self.max_iter = max_iter
        self.missing = missing
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _stages(self) -> SpectralStages:
        represent, link, label = self._common_stages()
        return SpectralStages(
            Scan(self.n_clusters, max(represent.n_candidates, sample_size(self.n_clusters)), self.metric),
            represent,
            link,
            LandmarkCut(self.n_clusters),
            Discretize(self.n_clusters, self.n_init, self.max_iter),
            label,
        )

    def fit(self, X: Any, y: Any = None) -> LSC:
        return self._fit(X)
