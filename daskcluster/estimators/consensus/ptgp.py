"""PTGP: consensus by the courses of random walks over rows that agree in many base clusterings."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ensemble.distinct import FindDistinct
from ...ensemble.incidence import Coded
from ...ensemble.linkage import Likeness
from ...ensemble.trajectories import Trajectories
from ...runtime.stages import Run
from ...typing import ArrayInput, PathInput, Seed
from .distinct import DistinctConsensus

__all__ = ["PTGP"]


class PTGP(DistinctConsensus):
    """Consensus by probability trajectories: random walks over the distinct rows of labels, and a bipartite cut.

    Each distinct row of labels keeps its links to the rows that agree with it in the most base clusterings. Two are
    similar as far as random walks from them take the same course; a base cluster is linked to all rows by their mean
    similarity to its own. So the graph that is cut, as in `BipartiteCut`, has links where the base clusterings say
    nothing directly.

    Parameters
    ----------
    n_clusters : int
        k.
    n_neighbors : int, optional
        Elite neighbors of a distinct row, K. None: half the root of the number of distinct rows.
    n_steps : int, optional
        Steps of the random walks, T. None: as many.
    n_init : int
        k-means++ starts of the discretisation of the cut.
    max_iter : int
        Lloyd passes of the discretisation, at most; over distinct rows.
    max_distinct : int
        Distinct rows of labels at most; more are an error. It takes some 32 times their square of bytes, and time that
        grows with their cube.
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
    n_distinct_ : int
        Distinct rows of labels, u.
    base_cluster_sizes_ : (c,) int64
        Rows of each base cluster, those of the first base clustering first.
    n_features_in_ : int
        m.

    Raises
    ------
    ValueError
        In `fit`: if a parameter is not acceptable, or a label is no whole number >= -1 (its place is named). Also,
        after two passes and before any heavy work, if there are more than `max_distinct` distinct rows of labels.
    MemoryError
        If matrices of u by u numbers do not fit into memory.

    Notes
    -----
    Huang, Lai, Wang, Robust ensemble clustering using probability trajectories, IEEE TKDE 28 (2016): micro-clusters,
    elite neighbor selection, transition probabilities by likeness and the rows of the micro-cluster that is gone to,
    trajectories of 1 to T steps, their cosines, edges by the mean over the micro-clusters of a cluster, transfer cut.
    Ties of the K-th neighbor are all kept, and a link stays if one of the two has it. Departures: with missing labels
    the share in which two rows agree is that of `EAC`; a micro-cluster without links is
    similar to itself only; new rows whose labels no row of `fit` has go to the cluster with whose rows they agree most
    on average. Walks are
    computed in float32. Labels are bit-equal for any chunking, dtype of the labels, scheduler, number of workers and
    BLAS threads.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> base = np.array([[0, 5, 7], [0, 5, 7], [0, 5, -1], [3, 8, 7], [3, 8, 2], [3, 8, 2]])
    >>> dc.PTGP(n_clusters=2, random_state=0).fit_predict(base)
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int | None = None,
        n_steps: int | None = None,
        n_init: int = 10,
        max_iter: int = 100,
        max_distinct: int = 10_000,
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.n_steps = n_steps
        self.n_init = n_init
        self.max_iter = max_iter
        self.max_distinct = max_distinct
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _solving(self) -> tuple[FindDistinct, Trajectories]:
        return FindDistinct(self.max_distinct), Trajectories(
            self.n_clusters, self.n_neighbors, self.n_steps, self.n_init, self.max_iter, self.max_distinct
        )

    def _solve(self, run: Run, coded: Coded) -> None:
        finding, walking = self._solving()
        distinct = run(finding, coded)
        alike = Likeness(coded.book, np.ones(coded.book.n_base_clusters), np.empty(0))
        self._keep(coded, distinct, run(walking, distinct, alike))

    def transform(self, X: ArrayInput) -> Any:
        """Agreement with the clusters.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)

        Returns
        -------
        (n, n_clusters_) float64
            Share of the rows of each cluster that have the row's label, in the mean over the base clusterings that
            label the row; NaN for rows without labels.
        """
        return super().transform(X)
