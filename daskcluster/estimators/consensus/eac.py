"""EAC: consensus by linkage of rows that agree in many base clusterings."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ensemble.distinct import FindDistinct
from ...ensemble.incidence import Coded
from ...ensemble.linkage import ConnectedTriples, Likeness, Linkage
from ...ensemble.overlaps import LocalWeights
from ...runtime.stages import Run, Stage
from ...typing import ArrayInput, PathInput, Seed
from ...validation import check_option
from .distinct import DistinctConsensus

__all__ = ["EAC"]

#: How agreement in a base clustering is weighted.
WEIGHTS = ("none", "local", "wct")


class EAC(DistinctConsensus):
    """Consensus by evidence accumulation: linkage of rows by the share of the base clusterings in which they agree.

    Rows with equal labels are one point that has their weight, so the result is that of all rows, at the price of the
    distinct ones: time and memory grow with the square of their number, whatever the number of rows.

    Parameters
    ----------
    n_clusters : int
        k.
    linkage : {"average", "complete", "single"}
        Clusters are as similar as their rows in the mean, as the least similar pair of rows, or as the most similar.
    weights : {"none", "local", "wct"}
        "none": rows agree in a base clustering that gives them the same label. "local": that counts as far as the other
        base clusterings bear out the base cluster, as in `BipartiteCut`. "wct": rows of different clusters of a base
        clustering agree as well, as far as the two share rows with the same base clusters (weighted connected triples).
    theta : float
        With "local": how fast weights fall with the entropy, in bits; less is faster.
    decay : float
        With "wct": what the two most similar clusters of a base clustering count, from 0 to 1.
    max_distinct : int
        Distinct rows of labels at most; more are an error. It takes 4 times their square of bytes.
    random_state : int, numpy RandomState or Generator, or None
        Of no effect: nothing is drawn.
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
        k, or fewer (with a `FewerClustersWarning`) when there are fewer distinct rows.
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
        If a number for each pair of distinct rows, or (for weights) of base clusters, does not fit into memory.

    Notes
    -----
    Fred and Jain, Combining multiple clusterings using evidence accumulation, IEEE TPAMI 27 (2005). "local": locally
    weighted evidence accumulation, LWEA of Huang, Wang, Lai, Locally weighted ensemble clustering, IEEE Transactions on
    Cybernetics 48 (2018). "wct": Iam-On, Boongoen, Garrett, Price, A link-based approach to the cluster ensemble
    problem, IEEE TPAMI 33 (2011), its similarity of clusters, with linkage.

    Rows with equal labels are never parted, also with weights, where their similarity is below 1. With missing labels
    the mean is one over the base clusterings that label both rows and one more, in which they are as similar as any two
    rows: without it, rows with few labels would tie clusters together. Ties, of which there are many, go by the data:
    of equally similar pairs of clusters those with the fewest rows together are joined, and of these those whose first
    rows come first. Similarities within 2**-32 are equal. New rows whose labels no row of `fit` has go to the cluster
    to whose rows they are most similar on average, with any linkage. Labels are bit-equal for any chunking, dtype of
    the labels, scheduler and number of workers.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> base = np.array([[0, 5, 7], [0, 5, 7], [0, 5, -1], [3, 8, 7], [3, 8, 2], [3, 8, 2]])
    >>> model = dc.EAC(n_clusters=2).fit(base)
    >>> model.labels_
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> model.n_distinct_
    4
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        linkage: str = "average",
        weights: str = "none",
        theta: float = 0.4,
        decay: float = 0.8,
        max_distinct: int = 20_000,
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.weights = weights
        self.theta = theta
        self.decay = decay
        self.max_distinct = max_distinct
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _check_parameters(self) -> None:
        check_option("weights", self.weights, WEIGHTS)
        LocalWeights(self.theta).check()
        ConnectedTriples(self.decay).check()
        super()._check_parameters()

    def _solving(self) -> tuple[Stage, ...]:
        weighing: dict[str, tuple[Stage, ...]] = {
            "none": (),
            "local": (LocalWeights(self.theta),),
            "wct": (ConnectedTriples(self.decay),),
        }
        return (
            FindDistinct(self.max_distinct),
            *weighing[self.weights],
            Linkage(self.n_clusters, self.linkage, self.max_distinct),
        )

    def _solve(self, run: Run, coded: Coded) -> None:
        finding, *weighing, joining = self._solving()
        distinct = run(finding, coded)
        found = run(weighing[0], coded) if weighing else None
        likeness = Likeness(
            coded.book,
            found if found is not None and self.weights == "local" else np.ones(coded.book.n_base_clusters),
            found if found is not None and self.weights == "wct" else np.empty(0),
        )
        self._keep(coded, distinct, run(joining, distinct, likeness), likeness.of_shares)

    def transform(self, X: ArrayInput) -> Any:
        """Similarities to the clusters.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)

        Returns
        -------
        (n, n_clusters_) float64
            Mean similarity to the rows of each cluster, over the base clusterings that label the row; NaN for rows
            without labels.
        """
        return super().transform(X)
