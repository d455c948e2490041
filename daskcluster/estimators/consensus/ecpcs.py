"""ECPCS: consensus by meta-clusters of base clusters, found by random walks over their similarities."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ensemble.agreement import Rule
from ...ensemble.incidence import Coded
from ...ensemble.meta_clusters import MetaClusters, Votes, Voting
from ...errors import FewerClustersWarning, warn_user
from ...runtime.stages import Run
from ...typing import ArrayInput, PathInput, Seed
from .base import Consensus

__all__ = ["ECPCS"]


class ECPCS(Consensus):
    """Consensus by meta-clusters of base clusters, whose similarities random walks have spread (ECPCS-MC).

    Base clusters are similar as far as they have the same rows, and as far as random walks from them go the same ways.
    A normalized cut makes k meta-clusters of them, and a row goes to the meta-cluster that has the largest share of its
    base clusters at the row. The rows are gone over a few times only, whatever k is.

    Parameters
    ----------
    n_clusters : int
        k.
    n_steps : int
        Steps of the random walks, t.
    n_init : int
        k-means++ starts of the discretisation of the cut.
    max_iter : int
        Lloyd passes of the discretisation, at most; over base clusters, not rows.
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
        k, or fewer (with a `FewerClustersWarning`) when there are meta-clusters that win no row.
    meta_clusters_ : (c,) int32
        Label of each base cluster's meta-cluster; -1 where that wins no row.
    base_cluster_sizes_ : (c,) int64
        Rows of each base cluster, those of the first base clustering first.
    n_features_in_ : int
        m.

    Raises
    ------
    ValueError
        In `fit`: if a parameter is not acceptable, or a label is no whole number >= -1 (its place is named).
    MemoryError
        If matrices of c by c numbers do not fit into memory.

    Notes
    -----
    Huang, Wang, Peng, Lai, Kwoh, Enhanced ensemble clustering via fast propagation of cluster-wise similarities, IEEE
    Transactions on Systems, Man, and Cybernetics: Systems 51 (2021), ECPCS-MC: Jaccard similarities without those of a
    cluster with itself, transition probabilities, trajectories of 1 to t steps, their cosines, normalized cut, majority
    voting. Departures: the cut is discretised by k-means on rows of eigenvectors at unit length; the Jaccard similarity
    of clusters with missing labels is that of the rows which both base clusterings label; meta-clusters that win no row
    are left out. It takes some 3 log2(t) products of (c, c) matrices. Labels are bit-equal for any chunking, dtype of
    the labels, scheduler, number of workers and BLAS threads.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> base = np.array([[0, 5, 7], [0, 5, 7], [0, 5, -1], [3, 8, 7], [3, 8, 2], [3, 8, 2]])
    >>> model = dc.ECPCS(n_clusters=2, random_state=0).fit(base)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.meta_clusters_
    array([0, 1, 0, 1, 1, 0], dtype=int32)
    """

    _fitted_names = (*Consensus._book_names, "meta_clusters_", "_meta", "_taken")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_steps: int = 20,
        n_init: int = 10,
        max_iter: int = 100,
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_steps = n_steps
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _solving(self) -> tuple[MetaClusters, Voting]:
        return MetaClusters(self.n_clusters, self.n_steps, self.n_init, self.max_iter), Voting(self.n_clusters)

    def _solve(self, run: Run, coded: Coded) -> None:
        grouping, voting = self._solving()
        self._meta = run(grouping, coded)
        self._taken = run(voting, coded, self._meta)
        self.n_clusters_ = len(self._taken)
        labels = np.full(int(self._meta.max()) + 1, -1, np.int32)
        labels[self._taken] = np.arange(len(self._taken))
        self.meta_clusters_ = labels[self._meta]

    def _rule(self) -> Rule:
        votes = Votes(self._book, self._meta, self._taken)
        return Rule(votes, votes.shares, self.n_clusters_)

    def _warn(self) -> None:
        if self.n_clusters_ < self.n_clusters:
            warn_user(
                f"ECPCS found {self.n_clusters_} clusters, not n_clusters={self.n_clusters}: the other meta-clusters "
                "win no row, or the base clusterings do not tell more apart",
                FewerClustersWarning,
            )

    def transform(self, X: ArrayInput) -> Any:
        """Shares of the votes.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)

        Returns
        -------
        (n, n_clusters_) float64
            The share of each meta-cluster's base clusters that hold the row; NaN for rows without labels.
        """
        return super().transform(X)
