"""FastCSC: the stages of U-SPEC with constraints in the cut."""

from __future__ import annotations

from typing import Any, Self

from ..constraints.constraints import Constraints
from ..constraints.cut import ConstrainedCut
from ..constraints.given import ScanConstrained
from ..constraints.sampling import DiscretizeSampled
from ..pipeline.kmeans import sample_size
from ..typing import ArrayInput, PathInput, Seed
from .spectral import SpectralClusterer, SpectralStages

__all__ = ["FastCSC"]


class FastCSC(SpectralClusterer):
    """Fast constrained spectral clustering, out of core.

    Each row is linked to its r nearest of p landmarks; must-links and cannot-links enter the (p, p) generalized
    eigenproblem of that graph. Partial labels cost one pass over r edges a row, however many they are.

    Parameters
    ----------
    n_clusters : int
        k.
    n_representatives : int
        p, landmarks; fewer are used when there are fewer distinct rows.
    n_neighbors : int
        r, landmarks to which a row is linked. Follows the rows where they are few, see `n_neighbors_`.
    alpha : float
        Trust in the must-links against the data's own graph, >= 0.
    direction_factor : float or None
        Eigenvectors of the graph, beyond its first k, among which constraints choose, for each constrained row after
        the first 4 k: few labels cannot push the clusters aside that the data show. None opens all, as in the paper.
    sample_rate : float
        Share of the rows on which the k-means passes run, in (0, 1]; at least 16,384 rows and 256 a cluster, or all.
        1.0 is the paper's CCS-L, less its CCS-LS.
    selection : {"random", "hybrid", "kmeans"}
        How landmarks are chosen: random rows, as in the paper; cluster centres of ``candidate_factor * p`` random rows;
        cluster centres of all rows.
    neighbors : {"approximate", "exact"}
        How the r nearest are found; see `USPEC`.
    candidate_factor : int
        p' / p of the hybrid selection.
    neighbor_factor : int
        K' / r of the approximate search.
    metric : {"euclidean", "cosine"}
        With "cosine" rows count by their direction, and the distance is 1 - cos.
    n_init : int
        k-means++ starts of the discretisation.
    max_iter : int
        Lloyd passes of the discretisation, at most.
    missing : {"raise", "label"}
        Rows with NaN or infinity: an error that names the first one, or the label -1; constraints on them do not count.
    random_state : int, numpy RandomState or Generator, or None
    storage : path or URL, optional
        Named store for the products of the stages; see `USPEC`. Other constraints count as other data.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input. Clusters are numbered by their first row.
    n_clusters_ : int
        Clusters found: k, or fewer (with a `FewerClustersWarning`).
    representatives_ : (p, d) float64
        Landmarks, in the units of the input; at unit length for "cosine".
    bandwidth_ : float
        sigma, the mean distance of rows to their r nearest landmarks.
    eigenvalues_ : (q,) float64
        The first nontrivial generalized eigenvalues, ascending: cost of the cut against the cannot-links it serves.
    cluster_centers_ : (n_clusters_, q) float64
        Centres in the embedding.
    n_neighbors_ : int
        r that was used: at least 5 with fewer than 4 p rows, at most p, and at most n / k (but for 2).
    neighborhood_size_ : int
        K' that was used; p - 1 means that the search was exact.
    n_iter_ : int
        Lloyd passes over the sampled rows.
    n_features_in_ : int

    Raises
    ------
    ValueError
        In `fit`, before any heavy work: if a parameter, the input or the constraints are not acceptable.

    Notes
    -----
    Algorithm 1 of Liu, Ye, Wei, Hu, 2017 (fast_csc_and_secrp_2017). Departures, each described where it is made: the
    directions among which constraints choose, and the orthonormal embedding (`constrained_cut`); the demand graph
    beside the cannot-links, and the deflation of the trivial eigenvector; bandwidth sigma of eq. (4), which the paper
    leaves open, is the mean distance, as in LSC; the approximate search of the nearest landmarks; starts on a sample.
    Without constraints the method is landmark-based spectral clustering (LSC) on the first k nontrivial eigenvectors.

    Constraints are soft: contradictions are weighed up, and `Constraints.satisfaction` tells what a result keeps.
    Labels may be fewer or more than k, and of any names; they do not decide the clusters' numbers. `predict` labels new
    rows by their features alone. Labels are bit-equal for any chunking, scheduler, number of workers and BLAS threads.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> X, y = dc.datasets.make_two_bananas(5000, chunks=1000, random_state=0)
    >>> known = np.full(5000, -1)
    >>> known[::100] = y[::100]
    >>> model = dc.FastCSC(n_clusters=2, n_representatives=200, random_state=0).fit(X, known)
    >>> dc.Constraints.from_labels(known).satisfaction(model.labels_).cannot_link
    1.0
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_representatives: int = 500,
        n_neighbors: int = 3,
        alpha: float = 5.0,
        direction_factor: float | None = 0.3,
        sample_rate: float = 0.1,
        selection: str = "random",
        neighbors: str = "approximate",
        candidate_factor: int = 10,
        neighbor_factor: int = 10,
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
        self.alpha = alpha
        self.direction_factor = direction_factor
        self.sample_rate = sample_rate
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
        name, k = type(self).__name__, self.n_clusters
        n_sampled = max(represent.n_candidates, sample_size(k))
        return SpectralStages(
            ScanConstrained(k, n_sampled, self.metric, method=name, n_representatives=self.n_representatives),
            represent,
            link,
            ConstrainedCut(name, k, self.alpha, self.direction_factor),
            DiscretizeSampled(k, self.n_init, self.max_iter, sample_rate=self.sample_rate),
            label,
        )

    def fit(self, X: ArrayInput, y: Any = None, *, constraints: Constraints | None = None) -> Self:
        """Cluster the rows.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
        y : (n,) NumPy array, dask array, zarr.Array or path, optional
            Partial labels, -1, NaN or masked for unknown; the same as ``constraints=Constraints.from_labels(y)``.
        constraints : Constraints, optional
            Instead of `y`. Without both the method is the unconstrained one.

        Returns
        -------
        self
        """
        return self._fit(X, y, constraints, beside={"y": y})

    def fit_predict(self, X: ArrayInput, y: Any = None, *, constraints: Constraints | None = None) -> Any:
        """Cluster the rows and return `labels_`; see `fit`."""
        return self.fit(X, y, constraints=constraints).labels_
