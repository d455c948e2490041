"""USENC: spectral base clusterings of a few graphs, and their bipartite cut."""

from __future__ import annotations

from typing import Any

from ...typing import PathInput, Seed
from ...validation import check_integer
from ..consensus import BipartiteCut, Consensus
from ..uspec import USPEC
from .base import EnsembleBase

__all__ = ["USENC"]


class USENC(EnsembleBase):
    """Ultra-scalable ensemble clustering: m spectral base clusterings and their bipartite cut.

    The base clusterings share a few graphs of rows and representatives. Each graph is cut once, and a base clustering
    into k_j clusters is k-means on its first k_j eigenvectors.

    Parameters
    ----------
    n_clusters : int
        k, clusters of the consensus.
    n_base_clusterings : int
        m.
    n_graphs : int
        Graphs that the base clusterings share, at most m. As many as base clusterings: the scheme of the paper, m runs
        of U-SPEC; 1 is the fastest.
    k_range : pair of int
        Smallest and largest number of clusters of a base clustering; each draws its own. Lowered where there are few
        rows: the largest to a cluster for 50 rows, the smallest by the same share; with fewer than 200 rows for each of
        `n_clusters` all have as many. See `k_range_`.
    n_representatives : int
        Of every graph; fewer with fewer than 5 rows for each of them.
    n_neighbors, selection, neighbors, candidate_factor, neighbor_factor, metric
        Of every graph, see `USPEC`.
    affinity : {"adaptive", "gaussian"}
        See `USPEC`; "gaussian" is the paper's.
    n_init : int
        Starts of the consensus' discretisation, see `BipartiteCut`.
    max_iter : int
        Lloyd passes of it, at most; and of ``selection="kmeans"``.
    missing : {"raise", "label"}
        Rows with NaN or infinity: an error that names the first one, or the label -1, and the others are clustered as
        if such rows were absent.
    random_state : int, numpy RandomState or Generator, or None
    storage : path or URL, optional
        Named store: a run that was killed continues at the first graph whose base clusterings are not there. See
        `USPEC`.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input. Clusters are numbered by their first row.
    agreement_ : (n,) float32
        How far the base clusterings agree with the consensus on each row, see `BipartiteCut`.
    base_labels_ : (n, m) int32
        The base clusterings; -1 for missing rows.
    base_n_clusters_ : (m,) int64
        Clusters of each base clustering.
    k_range_ : tuple of int
        The range from which numbers of clusters were drawn.
    estimators_ : list of USPEC
        The base clusterings' models; those of one graph share its arrays.
    consensus_ : BipartiteCut
        The fitted consensus.
    n_clusters_ : int
        k, or fewer (with a `FewerClustersWarning`) when the base clusterings do not tell more apart.
    n_iter_ : int
        That of the consensus.
    n_features_in_ : int

    Raises
    ------
    ValueError
        In `fit`, before any heavy work: if a parameter or the input is not acceptable.

    Notes
    -----
    With ``n_graphs=n_base_clusterings`` and ``affinity="gaussian"`` U-SENC of Huang, Wang, Wu, Lai, Kwoh, TKDE 2019
    (uspec_usenc_2019), section 3.2, and the same as
    ``Ensemble(base=USPEC(), consensus=BipartiteCut(n_init=3), k_range=(20, 60))``. With fewer graphs a departure from
    it, after the ensembles of one anchor graph (FSEC, Information Fusion 113, 2025, 102587). Others are described where
    they are made: `ensemble.spectral_members.SpectralMembers` and `BipartiteCut`. Labels are bit-equal for any
    chunking, scheduler, number of workers and BLAS threads.

    Examples
    --------
    >>> import daskcluster as dc
    >>> X, y = dc.datasets.make_concentric_circles(3000, chunks=1000, random_state=0)
    >>> model = dc.USENC(n_clusters=3, n_base_clusterings=5, n_representatives=200, random_state=0).fit(X)
    >>> round(dc.metrics.normalized_mutual_info(y, model.labels_), 2)
    1.0
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_base_clusterings: int = 20,
        n_graphs: int = 4,
        k_range: tuple[int, int] = (20, 60),
        n_representatives: int = 1000,
        n_neighbors: int = 5,
        selection: str = "hybrid",
        neighbors: str = "approximate",
        candidate_factor: int = 10,
        neighbor_factor: int = 10,
        affinity: str = "adaptive",
        metric: str = "euclidean",
        n_init: int = 3,
        max_iter: int = 100,
        missing: str = "raise",
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_base_clusterings = n_base_clusterings
        self.n_graphs = n_graphs
        self.k_range = k_range
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

    def _check_parameters(self) -> None:
        if self.k_range is None:
            raise ValueError("k_range must be a pair (smallest, largest), got None")
        check_integer("n_graphs", self.n_graphs, 1)
        super()._check_parameters()

    @property
    def _n_graphs(self) -> int:
        return min(self.n_graphs, self.n_base_clusterings)

    def _parts(self) -> tuple[Any, Consensus]:
        base = USPEC(
            self.n_clusters,
            n_representatives=self.n_representatives,
            n_neighbors=self.n_neighbors,
            selection=self.selection,
            neighbors=self.neighbors,
            candidate_factor=self.candidate_factor,
            neighbor_factor=self.neighbor_factor,
            affinity=self.affinity,
            metric=self.metric,
            n_init=self.n_init,
            max_iter=self.max_iter,
            missing=self.missing,
        )
        consensus = BipartiteCut(self.n_clusters, n_init=self.n_init, max_iter=self.max_iter)
        base._check_parameters()
        consensus._check_parameters()
        return base, consensus
