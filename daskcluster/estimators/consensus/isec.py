"""ISEC: consensus by a low-rank representation of the co-association matrix."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ...ensemble.agreement import Rule, lifted_rule
from ...ensemble.incidence import Coded
from ...ensemble.learned import DiscretizeLearned, LowRank
from ...ensemble.lowrank import mean_by_cluster
from ...errors import warn_user
from ...pipeline.kmeans import sample_size
from ...pipeline.lift import LiftedRows
from ...runtime.seeding import stream
from ...runtime.stages import Run
from ...typing import ArrayInput, PathInput, Seed
from ..base import where_it_predicts
from .base import Consensus

__all__ = ["ISEC"]


@where_it_predicts
class ISEC(Consensus):
    """Consensus by a low-rank representation of the co-association matrix, learned together with the partition.

    Robust against noise in the base clusterings, and O(n^3): exact for thousands of rows. With `n_representatives` it
    learns on so many rows, and the others follow through their base clusters.

    Parameters
    ----------
    n_clusters : int
        k.
    n_representatives : int, optional
        p: learn on p random rows, or on all where there are fewer, and label by base clusters. None learns on all, and
        has no `predict` and no `transform`.
    partition : {"H", "Z"}
        What is clustered at the end: the partition matrix H, or the spectral embedding of the representation Z.
    init : {"spectral", "random"}
        Where H starts: the first eigenvectors of the co-association matrix, near which it stays, or random columns,
        from which it finds other partitions, better or worse from seed to seed and worse in the mean.
    lambda_1, lambda_2 : float
        Weights of the rank of Z, and of the noise E.
    n_init : int
        k-means++ starts at the end.
    max_iter : int
        Rounds of the Lagrange multiplier method, and Lloyd passes, at most.
    tol : float
        Stop when the relative error ``|S - S Z - E| / |S|`` is below this.
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
    history_ : (n_iter_,) float64
        The relative error after every round.
    n_iter_ : int
        Rounds.
    n_clusters_ : int
        k, or fewer (with a `FewerClustersWarning`) when the base clusterings do not tell more apart.
    embedding_ : (n or p, k) float64
        What was clustered, at unit length: the rows that it learned on, in their order.
    base_cluster_sizes_ : (c,) int64
        Rows of each base cluster, those of the first base clustering first.
    n_features_in_ : int
        m.

    Raises
    ------
    ValueError
        In `fit`: if a parameter is not acceptable, or a label is no whole number >= -1 (its place is named).
    MemoryError
        In `fit`, after one pass that counts the labelled rows: if the matrices of so many need more than half of the
        memory.

    Notes
    -----
    Tong and Wu, 2020 (isec_2020), eq. (5) to (17), by augmented Lagrange multipliers. Departures, described in
    `ensemble.lowrank.low_rank_representation`: degrees from absolute values. Rows with equal labels are averaged, and
    scaled to unit length before the final k-means, which the paper does not say.

    The version with representatives is of this package: each base cluster gets the mean of the rows of H (or of Z's
    embedding) that belong to it, and each row the mean over its base clusters, at unit length, which k-means clusters.
    Base clusters without a representative do not count. Only this version labels new rows.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> base = np.array([[0, 5, 7], [0, 5, 7], [0, 5, -1], [3, 8, 7], [3, 8, 2], [3, 8, 2]])
    >>> dc.ISEC(n_clusters=2, random_state=0).fit_predict(base)
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """

    _points_dtype = np.float32
    _fitted_names = (*Consensus._book_names, "history_", "n_iter_", "embedding_", "cluster_centers_", "_vectors")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_representatives: int | None = None,
        partition: str = "H",
        init: str = "spectral",
        lambda_1: float = 0.1,
        lambda_2: float = 0.01,
        n_init: int = 10,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_representatives = n_representatives
        self.partition = partition
        self.init = init
        self.lambda_1 = lambda_1
        self.lambda_2 = lambda_2
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _product_parameters(self) -> dict[str, Any]:
        """Without the default start, so that stores which were made before there were others go on."""
        parameters = super()._product_parameters()
        if self.init == "spectral":
            del parameters["init"]
        return parameters

    def _solving(self) -> tuple[LowRank, DiscretizeLearned]:
        learning = LowRank(
            self.n_clusters,
            self.n_representatives,
            self.partition,
            self.lambda_1,
            self.lambda_2,
            self.max_iter,
            self.tol,
            self.init,
        )
        return learning, DiscretizeLearned(
            self.n_clusters, self.n_init, self.max_iter, "consensus", learns_all=self.n_representatives is None
        )

    def _solve(self, run: Run, coded: Coded) -> Rule | None:
        learning, discretizing = self._solving()
        learned = run(learning, coded)
        self.history_, self.embedding_ = learned.history, learned.embedding
        self.n_iter_ = len(self.history_)
        if self.n_representatives is None:
            self._vectors = np.empty((0, self.n_clusters))
            centers, rule = run(discretizing, learned)
        else:
            self._vectors = mean_by_cluster(learned.codes, coded.book, self.embedding_)
            points = LiftedRows(coded.graph.edges_of, self._vectors)
            draw = partial(coded.draw, sample_size(self.n_clusters), stream(run.seed, "consensus sample"))
            centers, rule = run(discretizing, coded.codes, points, draw), None
        self.cluster_centers_ = centers.centers
        self.n_clusters_ = len(self.cluster_centers_)
        return rule

    def _rule(self) -> Rule:
        return lifted_rule(self._book, self._vectors, self.cluster_centers_)

    def _warn(self) -> None:
        super()._warn()
        if self.history_[-1] >= self.tol > 0:
            warn_user(
                f"ISEC did not converge in max_iter={self.max_iter} rounds: the relative error is "
                f"{self.history_[-1]:.1e}, not below tol={self.tol:g}",
                ConvergenceWarning,
            )

    @property
    def _predicts(self) -> bool:  # type: ignore[override]
        return len(self._vectors) > 0 if hasattr(self, "_vectors") else self.n_representatives is not None

    def _check_predicts(self) -> None:
        if not self._predicts:
            raise AttributeError("this ISEC learns on all rows and has no rule for new ones: give n_representatives")

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters

    def transform(self, X: ArrayInput) -> Any:
        """Embed rows by their base clusterings; with `n_representatives` only.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)

        Returns
        -------
        (n, k) float32
            Means over the row's base clusters, at unit length; NaN for rows without labels.
        """
        return super().transform(X)
