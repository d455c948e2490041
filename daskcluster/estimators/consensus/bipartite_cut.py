"""BipartiteCut: consensus by the transfer cut of rows against base clusters."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...ensemble.agreement import Rule, lifted_rule
from ...ensemble.bipartite import EnsembleCut
from ...ensemble.cut_centers import CutCenters, finer_number
from ...ensemble.incidence import Coded, incidence_graph
from ...ensemble.overlaps import WEIGHTS, LocalWeights
from ...pipeline.discretize import Discretize
from ...pipeline.kmeans import sample_size
from ...pipeline.lift import LiftedRows
from ...runtime.seeding import stream
from ...runtime.stages import Run, Stage
from ...typing import ArrayInput, PathInput, Seed
from ...validation import check_option
from .base import Consensus

__all__ = ["BipartiteCut"]


class BipartiteCut(Consensus):
    """Consensus by the transfer cut of the bipartite graph of rows and base clusters.

    Each row is linked to the base clusters that hold it, and the graph is cut by the first k eigenvectors of a (c, c)
    problem, as in `USPEC`. The consensus of U-SENC; with `weights="local"` locally weighted graph partitioning.

    Parameters
    ----------
    n_clusters : int
        k.
    weights : {"none", "local"}
        "none": every edge counts alike. "local": an edge counts as far as the other base clusterings bear out its base
        cluster, by its entropy in them; one more pass. Better on k-means clusterings of thousands of rows, worse on
        spectral ones and on few rows, see the page on ensembles.
    theta : float
        With "local": how fast weights fall with the entropy, in bits; less is faster.
    n_init : int
        Starts of the discretisation: four times as many by k-means++ on few rows, of which that of the smallest
        normalized cut goes on.
    max_iter : int
        Lloyd passes of the discretisation, at most.
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
        For each row the mean, over the base clusterings that label it, of the share of its base cluster that lies in
        its consensus cluster: 1 where all base clusters of the row belong to one cluster. NaN for rows without labels.
    n_clusters_ : int
        k, or fewer (with a `FewerClustersWarning`) when the base clusterings do not tell more apart.
    eigenvalues_ : (q,) float64
        The first eigenvalues of the normalized cut, ascending from 0.
    cluster_centers_ : (n_clusters_, q) float64
        Centres in the embedding.
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
    MemoryError
        If the (c, c) problem does not fit into memory.

    Notes
    -----
    Section 3.2.2 of uspec_usenc_2019, eq. (16) to (19), then the cut of section 3.1.3. A missing label is a missing
    edge. Local weights: Huang, Wang, Lai, Locally weighted ensemble clustering, IEEE Transactions on Cybernetics 48
    (2018), the ensemble-driven cluster index and LWGP; `ensemble.overlaps.cluster_entropies` says what missing labels
    do, which the paper does not have. Departures are those of the stages: `transfer_cut`, `discretize`, and the
    choice of the starts, `ensemble.cut_centers`. Labels are bit-equal for any chunking, dtype of the labels, scheduler,
    number of workers and BLAS threads.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> base = np.array([[0, 5, 7], [0, 5, 7], [0, 5, -1], [3, 8, 7], [3, 8, 2], [3, 8, 2]])
    >>> model = dc.BipartiteCut(n_clusters=2, random_state=0).fit(base)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.agreement_.round(2)
    array([0.89, 0.89, 1.  , 0.78, 1.  , 1.  ], dtype=float32)
    """

    _points_dtype = np.float32
    _fitted_names = (*Consensus._book_names, "eigenvalues_", "cluster_centers_", "n_iter_", "_vectors")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        weights: str = "none",
        theta: float = 0.4,
        n_init: int = 10,
        max_iter: int = 100,
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.weights = weights
        self.theta = theta
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_option("weights", self.weights, WEIGHTS)
        LocalWeights(self.theta).check()
        super()._check_parameters()

    def _product_parameters(self) -> dict[str, Any]:
        """Without weights at their defaults, so that stores which were made before there were any go on."""
        parameters = super()._product_parameters()
        if (self.weights, self.theta) == ("none", 0.4):
            del parameters["weights"], parameters["theta"]
        return parameters

    def _solving(self) -> tuple[Stage, ...]:
        n_finer = finer_number(self.n_clusters)
        weighing = (LocalWeights(self.theta),) if self.weights == "local" else ()
        return (
            *weighing,
            EnsembleCut(self.n_clusters, "consensus-cut", n_components=n_finer),
            Discretize(self.n_clusters, self.n_init, self.max_iter, "consensus", n_finer),
        )

    def _solve(self, run: Run, coded: Coded) -> None:
        *weighing, cutting, discretizing = self._solving()
        weights = run(weighing[0], coded) if weighing else np.ones(coded.book.n_base_clusters)
        cut = run(cutting, incidence_graph(coded.codes, coded.book, weights if weighing else None))
        self.eigenvalues_ = cut.eigenvalues[: self.n_clusters]
        # Rows are scaled to unit length, so that edges of these weights are edges of 1 to vectors of these lengths.
        vectors = cut.vectors * weights[:, None]
        self._vectors = vectors[:, : self.n_clusters]
        points, finer = (LiftedRows(coded.graph.edges_of, columns) for columns in (self._vectors, vectors))
        draw = partial(coded.draw, sample_size(self.n_clusters), stream(run.seed, "consensus sample"))
        parameters = (self.n_clusters, self.n_init, self.max_iter, run.seed)
        place = CutCenters(coded.book.offsets, weights, points, finer, self.eigenvalues_, *parameters)
        centers = run(discretizing, coded.codes, points, draw, place)
        self.cluster_centers_ = centers.centers
        self.n_clusters_ = len(centers.centers)
        self.n_iter_ = centers.n_iter

    def _rule(self) -> Rule:
        return lifted_rule(self._book, self._vectors, self.cluster_centers_)

    def transform(self, X: ArrayInput) -> Any:
        """Embed rows by their base clusterings.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)

        Returns
        -------
        (n, q) float32
            Rows of unit length, q eigenvectors (`eigenvalues_`); NaN for rows without labels.
        """
        return super().transform(X)
