"""SEC: spectral ensemble clustering as weighted k-means; with a random projection SECRP."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ensemble.agreement import Rule
from ...ensemble.incidence import Coded, LabelBook
from ...ensemble.projected_kmeans import NearestProjected
from ...ensemble.projection import ProjectedRows, projection_of
from ...ensemble.sec import SECPasses, SECStarts, mean_weight
from ...ensemble.weighted_kmeans import NearestCenter, objective_of
from ...runtime.stages import Run
from ...typing import ArrayInput, PathInput, Seed
from .base import Consensus

__all__ = ["SEC"]


class SEC(Consensus):
    """Spectral ensemble clustering: the co-association matrix's normalized cut as weighted k-means.

    Rows count with the weights w, the row sums of the co-association matrix, and lie at b/w, b the binary row of the
    incidence matrix. A row's distance to a centre is a sum over its m labels: no matrix of n rows is formed. Missing
    labels add nothing, to a distance or to a centre.

    Parameters
    ----------
    n_clusters : int
        k.
    n_components : int, optional
        rd: cluster a sparse random projection of the rows on so many components instead (SECRP).
    n_init : int
        k-means++ starts; five partitions of the bipartite cut are added. They are compared on a sample of 16,384
        rows, 512 k if that is more (on all rows when there are no more than twice as many); the best five are improved
        there by exchanges of single rows, and the one with the lowest objective goes on. With `n_components` every
        start has a random projection of its own, and there is no bipartite cut: the best partitions, by the objective
        without projection, are improved on the sample without projection, the best of these is brought into every
        projection, and the one in which it serves best goes on.
    max_iter : int
        Lloyd passes over all rows, at most.
    tol : float
        Stop when a pass lowers the objective by no more than this share of it; with 0, when nothing changes.
    random_state : int, numpy RandomState or Generator, or None
    storage : path or URL, optional
        Named store for the products of the stages: a killed run continues there. See `USPEC`.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input. Clusters are numbered by their first row; -1 for rows
        without labels.
    agreement_ : (n,) float32
        As in `BipartiteCut`.
    n_clusters_ : int
        k, or fewer (with a `FewerClustersWarning`) when the base clusterings do not tell more apart.
    objective_ : float
        ``sum_x w |b/w - m|^2`` of the partition and its own centres, over the labels that are there; for SECRP too.
    history_ : (n_iter_,) float64
        The objective of every pass, with the centres that it started from; it never rises. For SECRP its last value
        only, in the projection.
    cluster_centers_ : (n_clusters_, c) or (n_clusters_, rd) float64
        Centres m_k: of base cluster j, the rows in both over the weights of the cluster's rows.
    base_cluster_sizes_ : (c,) int64
        Rows of each base cluster, those of the first base clustering first.
    n_iter_ : int
        Lloyd passes over all rows.
    n_features_in_ : int
        m.

    Raises
    ------
    ValueError
        In `fit`: if a parameter is not acceptable, or a label is no whole number >= -1 (its place is named).

    Notes
    -----
    Liu, Liu, Wu, Tao, Fu, KDD 2015 (sec_2015): Theorem 1, Theorem 5 for missing labels. SECRP: Algorithm 2 of
    fast_csc_and_secrp_2017, with the projection of its eq. (10). Departures: the starts, see `n_init`; a cluster that
    loses all its rows keeps its centre; with missing labels a projected row has zeros there, and they count; of
    several projections the one that serves best is kept.
    A Lloyd pass costs m k additions a row. SECRP projects once, m rd additions a row, and holds the projected rows as
    small integers: rd bytes a row up to 127 base clusterings, 2 rd above, and 8 for the weight. Its passes are matrix
    products, rd k multiplications a row. What it costs is quality, see `docs/ensembles.md`.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> base = np.array([[0, 5, 7], [0, 5, 7], [0, 5, -1], [3, 8, 7], [3, 8, 2], [3, 8, 2]])
    >>> dc.SEC(n_clusters=2, random_state=0).fit_predict(base)
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """

    _fitted_names = (
        *Consensus._book_names,
        "objective_",
        "history_",
        "cluster_centers_",
        "n_iter_",
        "_matrix",
        "_mean_weight",
    )

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        n_init: int = 20,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _solving(self) -> tuple[SECStarts, SECPasses]:
        shared = (self.n_clusters, self.n_components, self.max_iter)
        return SECStarts(*shared, n_init=self.n_init), SECPasses(*shared, tol=self.tol)

    def _solve(self, run: Run, coded: Coded) -> None:
        starting, passing = self._solving()
        starts, number = run(starting, coded)
        self._mean_weight = mean_weight(coded)
        self._matrix = np.empty((0, 0), np.float32)
        if self.n_components is not None:
            self._matrix = projection_of(coded.book, self.n_components, run.seed, number)
        made = run(passing, coded, starts, self._matrix)
        self.cluster_centers_ = made["centers"]
        self.n_clusters_ = len(made["centers"])
        self.history_ = np.atleast_1d(made["history"])
        self.n_iter_ = int(made["n_iter"])

    def _finish(self, sums: dict[str, Any], book: LabelBook) -> None:
        self.objective_ = objective_of(sums["counts"], sums["masses"], float(sums["constant"]), book)

    def _rule(self) -> Rule:
        centers = self.cluster_centers_
        if self.n_components is None:
            nearest = NearestCenter(self._book, centers)
            return Rule(nearest, nearest.distances, len(centers))
        nearest_projected = NearestProjected(ProjectedRows(self._book, self._matrix, self._mean_weight), centers)
        return Rule(nearest_projected, nearest_projected.distances, len(centers))

    def transform(self, X: ArrayInput) -> Any:
        """Distances to the cluster centres.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)

        Returns
        -------
        (n, n_clusters_) float64
            ``|b/w - m_k|`` over the labels that are there, in the projection with `n_components`; NaN for rows without.
        """
        return super().transform(X)
