"""USPEC: stages 0 to 5; predict repeats 2 to 5 on new rows."""

from __future__ import annotations

from typing import Any, Self

from ..pipeline.cut import Cut
from ..pipeline.discretize import Discretize
from ..pipeline.kmeans import sample_size
from ..pipeline.scan import Scan
from ..typing import ArrayInput, PathInput, Seed
from .spectral import SpectralClusterer, SpectralStages

__all__ = ["USPEC"]


class USPEC(SpectralClusterer):
    """Ultra-scalable spectral clustering, out of core.

    Each row is linked to its K nearest of p representatives, and the bipartite graph between rows and representatives
    is cut by the first k eigenvectors of a (p, p) problem. Two passes over the input, then passes over K edges a row;
    memory does not grow with the number of rows.

    Parameters
    ----------
    n_clusters : int
        k.
    n_representatives : int
        p; fewer are used when there are fewer distinct rows.
    n_neighbors : int
        K, representatives to which a row is linked. Follows the rows where they are few, see `n_neighbors_`.
    selection : {"hybrid", "random", "kmeans"}
        How representatives are chosen: cluster centres of ``candidate_factor * p`` random rows; random rows; cluster
        centres of all rows.
    neighbors : {"approximate", "exact"}
        How the K nearest are found: from coarse to fine, or by comparing with every representative. Of sparse rows
        always the latter.
    candidate_factor : int
        p' / p of the hybrid selection.
    neighbor_factor : int
        K' / K of the approximate search; enlarged when a check on sampled rows finds too low a recall.
    affinity : {"gaussian", "adaptive"}
        Affinity of a row and its K nearest representatives: the paper's Gaussian of their mean distance; or
        adaptive weights without a parameter, which fall with the squared distance to 0 at neighbor K + 1.
    metric : {"euclidean", "cosine"}
        With "cosine" rows count by their direction, and the distance is 1 - cos.
    n_init : int
        k-means++ starts of the discretisation.
    max_iter : int
        Lloyd passes of the discretisation, at most.
    missing : {"raise", "label"}
        Rows with NaN or infinity: an error that names the first one, or the label -1, and the others are clustered as
        if such rows were absent.
    random_state : int, numpy RandomState or Generator, or None
    storage : path or URL, optional
        Named store for the products of the stages: a run that was killed continues there, and a finished one is not
        computed again. A store made with other data or parameters is refused, and so is one to which another fit is
        writing, or that is, holds or lies inside an input; a damaged product is made again. None holds products in
        memory, or, where they are large, in a scratch store.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input, which is no part of a pickled or copied model. Clusters
        are numbered by their first row.
    n_clusters_ : int
        Clusters found: k, or fewer (with a `FewerClustersWarning`) when there are too few distinct rows.
    representatives_ : (p, d) float64
        In the units of the input; at unit length for "cosine". A CSR array where the rows were sparse.
    bandwidth_ : float
        sigma, the mean distance of rows to their K nearest representatives.
    eigenvalues_ : (q,) float64
        The first eigenvalues of the normalized cut, ascending from 0.
    cluster_centers_ : (n_clusters_, q) float64
        Centres in the embedding.
    n_neighbors_ : int
        K that was used: at least 5 with fewer than 4 p rows, at most p, and at most n / k (but for 2).
    neighborhood_size_ : int
        K' that was used; p - 1 means that the search was exact.
    n_iter_ : int
        Lloyd passes over all rows.
    n_features_in_ : int

    Raises
    ------
    ValueError
        In `fit`, before any heavy work: if a parameter or the input is not acceptable.

    Notes
    -----
    U-SPEC of Huang, Wang, Wu, Lai, Kwoh, TKDE 2019 (uspec_usenc_2019), section 3.1. Departures, each described where
    it is made: the neighbourhood size is checked and enlarged if need be (`choose_neighborhood`); rows of the
    embedding are scaled to unit length, as the authors' program does and the paper does not say; the discretisation
    starts on a sample (`discretize`); representatives without edges are dropped (`transfer_cut`).
    Labels are bit-equal for any chunking, scheduler, number of workers and BLAS threads.

    Examples
    --------
    >>> import daskcluster as dc
    >>> X, y = dc.datasets.make_concentric_circles(5000, chunks=1000, random_state=0)
    >>> model = dc.USPEC(n_clusters=3, n_representatives=200, random_state=0).fit(X)
    >>> round(dc.metrics.normalized_mutual_info(y, model.labels_), 2)
    1.0
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_representatives: int = 1000,
        n_neighbors: int = 5,
        selection: str = "hybrid",
        neighbors: str = "approximate",
        candidate_factor: int = 10,
        neighbor_factor: int = 10,
        affinity: str = "gaussian",
        metric: str = "euclidean",
        n_init: int = 3,
        max_iter: int = 100,
        missing: str = "raise",
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_representatives = n_representatives
        self.n_neighbors = n_neighbors
        self.selection = selection
        self.neighbors = neighbors
        self.candidate_factor = candidate_factor
        self.neighbor_factor = neighbor_factor
        self.affinity = affinity
        self.metric = metric
        self.n_init = n_init
        self.max_iter = max_iter
        self.missing = missing
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    @property
    def _affinity(self) -> str:
        return self.affinity

    def _stages(self) -> SpectralStages:
        represent, link, label = self._common_stages()
        return SpectralStages(
            Scan(self.n_clusters, max(represent.n_candidates, sample_size(self.n_clusters)), self.metric),
            represent,
            link,
            Cut(self.n_clusters, holds_graph=True),
            Discretize(self.n_clusters, self.n_init, self.max_iter),
            label,
        )

    def fit(self, X: ArrayInput, y: Any = None) -> Self:
        """Cluster the rows.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, sparse rows, (n, d)
        y : ignored

        Returns
        -------
        self
        """
        return self._fit(X)
