"""KCC: consensus by k-means on the incidence matrix, with the distance of a utility."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ensemble.agreement import Rule
from ...ensemble.incidence import Coded, LabelBook
from ...ensemble.utility_kmeans import UtilityMeans, UtilityPasses, UtilityStarts, utility_objective
from ...runtime.stages import Run
from ...typing import ArrayInput, PathInput, Seed
from .base import Consensus

__all__ = ["KCC"]


class KCC(Consensus):
    """k-means-based consensus clustering: the consensus of the largest mean utility with the base clusterings.

    The utility says how much a consensus tells of a base clustering. For each there is a distance of rows to clusters
    by which k-means on the binary rows of the incidence matrix maximises it. A row's distance is a sum over its m
    labels: no matrix of n rows is formed. Missing labels add nothing, to a distance or to a cluster.

    Parameters
    ----------
    n_clusters : int
        k.
    utility : {"entropy", "categorical", "cosine", "lp"}
        "entropy": mutual information, Kullback-Leibler divergence; entropy-based consensus clustering. "categorical":
        the category utility function, squared Euclidean distance. "cosine": cosine distance. "lp": the norm of order
        `p`.
    p : float
        Order of the norm with "lp", above 1; 2 is "cosine".
    n_init : int
        k-means++ starts; five partitions of the bipartite cut are added. They are compared as in `SEC`.
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
        Sum of the rows' distances to their clusters, over the labels that are there: a constant less n m times the mean
        utility.
    history_ : (n_iter_,) float64
        The same in every pass, by the clusters with which it started. With "entropy" shares are a little evened out
        there, see Notes.
    cluster_centers_ : (n_clusters_, c) float64
        Of the rows of cluster k that a base clustering labels, the share in each of its base clusters.
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
    Wu, Liu, Xiong, Cao, Chen, k-means-based consensus clustering: a unified view, IEEE Transactions on Knowledge and
    Data Engineering 27 (2015), with equal weights of the base clusterings, missing labels as there; utilities U_c, U_H,
    U_cos and U_Lp. Departures: the starts; with "entropy" a millionth of each cluster is spread evenly over the base
    clusters of a base clustering, for else no row may go to a cluster that lacks one of its labels; a cluster that
    loses all its rows is moved to the farthest row. Labels are bit-equal for any chunking, dtype of the labels,
    scheduler, number of workers and BLAS threads.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> base = np.array([[0, 5, 7], [0, 5, 7], [0, 5, -1], [3, 8, 7], [3, 8, 2], [3, 8, 2]])
    >>> dc.KCC(n_clusters=2, random_state=0).fit_predict(base)
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """

    _fitted_names = (*Consensus._book_names, "objective_", "history_", "cluster_centers_", "n_iter_")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        utility: str = "entropy",
        p: float = 5.0,
        n_init: int = 20,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.utility = utility
        self.p = p
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _solving(self) -> tuple[UtilityStarts, UtilityPasses]:
        shared: dict[str, Any] = {"n_components": None, "max_iter": self.max_iter, "utility": self.utility, "p": self.p}
        return (
            UtilityStarts(self.n_clusters, n_init=self.n_init, **shared),
            UtilityPasses(self.n_clusters, tol=self.tol, **shared),
        )

    def _solve(self, run: Run, coded: Coded) -> None:
        starting, passing = self._solving()
        starts, _ = run(starting, coded)
        made = run(passing, coded, starts, np.empty((0, 0), np.float32))
        self.cluster_centers_ = made["centers"]
        self.n_clusters_ = len(made["centers"])
        self.history_ = np.atleast_1d(made["history"])
        self.n_iter_ = int(made["n_iter"])

    def _finish(self, sums: dict[str, Any], book: LabelBook) -> None:
        self.objective_ = utility_objective(sums["counts"], UtilityMeans(book, self.utility, self.p))

    def _rule(self) -> Rule:
        nearest = UtilityMeans(self._book, self.utility, self.p).nearest(self.cluster_centers_)
        return Rule(nearest, nearest.distances, len(self.cluster_centers_))

    def transform(self, X: ArrayInput) -> Any:
        """Distances to the clusters.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)

        Returns
        -------
        (n, n_clusters_) float64
            By the utility's distance, summed over the labels that are there; NaN for rows without.
        """
        return super().transform(X)
