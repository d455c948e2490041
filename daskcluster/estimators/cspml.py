"""CSPML, FastCSPML: constraints as layers of a multi-layer graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from ..constraints.constraints import Constraints
from ..constraints.embed import MOST_ROWS, EmbedAll, EmbedSampled
from ..constraints.given import ScanPresent
from ..constraints.present import present_rows
from ..pipeline.discretize import Discretize, assign_labels, warn_few_points, warn_fewer
from ..pipeline.outputs import Label
from ..runtime.forecast import Sizes
from ..runtime.stages import StageList
from ..typing import ArrayInput, PathInput, Seed
from .base import Clusterer

__all__ = ["CSPML", "FastCSPML", "LayerClusterer"]


@dataclass(frozen=True)
class LayerStages(StageList):
    """The stages of a fit on layers."""

    scan: ScanPresent
    embed: EmbedAll | EmbedSampled
    discretize: Discretize
    label: Label


class LayerClusterer(Clusterer):
    """Base of CSPML and FastCSPML. A row's place depends on its constraints, so neither labels new rows."""

    alpha: float
    gamma: float | None
    unlinked: str
    n_init: int
    max_iter: int

    def _embed_stage(self) -> EmbedAll | EmbedSampled:
        """The stage that embeds the rows."""
        raise NotImplementedError

    def _n_sampled(self) -> int:
        """Rows drawn in the first pass."""
        raise NotImplementedError

    def _stages(self) -> LayerStages:
        return LayerStages(
            ScanPresent(self.n_clusters, self._n_sampled(), method=type(self).__name__),
            self._embed_stage(),
            Discretize(self.n_clusters, self.n_init, self.max_iter),
            Label(task_row_bytes=16 * self.n_clusters),
        )

    def _check_size(self, rows: Any) -> None:
        super()._check_size(rows)
        self._embed_stage().check_size(rows.n_samples)

    def _sizes(self, sizes: Sizes) -> Sizes:
        return sizes.with_graph(0, 0, 4 * self.n_clusters)

    def fit(self, X: ArrayInput, y: Any = None, *, constraints: Constraints | None = None) -> Self:
        """Cluster the rows.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
        y : (n,) NumPy array, dask array, zarr.Array or path, optional
            Partial labels, -1, NaN or masked for unknown; the same as ``constraints=Constraints.from_labels(y)``.
        constraints : Constraints, optional
            Instead of `y`.

        Returns
        -------
        self
        """
        with self._run(X, y=y) as run:
            s = self._stages()
            found = run(s.scan, y, constraints)
            embedded = run(s.embed, found)
            draw = partial(embedded.draw, self.n_clusters, run.seed)
            centers = run(s.discretize, embedded.held, present_rows, draw)
            self._take(embedded)
            self.cluster_centers_ = centers.centers
            self.n_clusters_ = len(centers.centers)
            self.n_iter_ = centers.n_iter
            lazy = assign_labels(embedded.held, present_rows, self.cluster_centers_)
            self.labels_ = run(s.label, {"labels": lazy})["labels"]
        if self.n_clusters_ < self.n_clusters:
            warn_fewer(self, self.n_clusters_, self.n_clusters)
        else:
            warn_few_points(self)
        return self

    def fit_predict(self, X: ArrayInput, y: Any = None, *, constraints: Constraints | None = None) -> Any:
        """Cluster the rows and return `labels_`; see `fit`."""
        return self.fit(X, y, constraints=constraints).labels_

    def _take(self, embedded: Any) -> None:
        """Set the attributes that belong to the embedding."""
        self.eigenvalues_ = embedded.eigenvalues
        self.gamma_ = embedded.gamma


class CSPML(LayerClusterer):
    """Constrained spectral clustering on a multi-layer graph, exact, for rows that fit in memory.

    The layers are the Gaussian affinities of all pairs of rows, the must-links, and all pairs but the cannot-links. The
    embedding is near to the spectral subspaces of all layers at once.

    Parameters
    ----------
    n_clusters : int
        k.
    alpha : float
        Weight of the layers' subspaces against the layers themselves, >= 0.
    gamma : float or None
        Affinities are exp(-gamma sqdist), in the units of `X`. None follows the rows: 0.5, as in the paper, where this
        suits them, else 1 / e at the distance within which half an equal cluster lies. A given one that does not suit
        the rows is warned of.
    unlinked : {"penalized", "neutral"}
        What the must-link layer says of rows without must-links: L_ii = 1, as the Laplacian's formula has it, or 0.
        "neutral" is worth a try where a few labels push the clusters aside.
    n_init : int
        k-means++ starts of the discretisation.
    max_iter : int
        Lloyd passes of the discretisation, at most.
    missing : {"raise", "label"}
        Rows with NaN or infinity: an error that names the first one, or the label -1; constraints on them do not count.
    random_state : int, numpy RandomState or Generator, or None
    storage : path or URL, optional
        Named store; see `USPEC`.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input. Clusters are numbered by their first row.
    n_clusters_ : int
        Clusters found: k, or fewer (with a `FewerClustersWarning`).
    eigenvalues_ : (k,) float64
        Of the modified adjacency, descending.
    cluster_centers_ : (n_clusters_, k) float64
        Centres in the embedding.
    gamma_ : float
        The width that was used.
    n_iter_ : int
        Lloyd passes.
    n_features_in_ : int

    Raises
    ------
    ValueError
        In `fit`: if a parameter, the input or the constraints are not acceptable, or there are more than 12,000 rows;
        `FastCSPML` serves those.

    Notes
    -----
    CSP-ML, Algorithm 3 of Trokicic, Todorovic, 2019 (csp_ml_and_fast_csp_ml_2019). 8 n**2 bytes for the affinities;
    layers 2 and 3 are applied as sparse or low-rank matrices. What the paper leaves open: rows without must-links have
    no say in the subspace of layer 2, and L_ii = 1 there, a penalty on each of them, or 0 (`unlinked`); diagonals are
    zero; a layer's subspace has the eigenvectors of positive eigenvalues only. alpha is not given in the paper: with
    large values a far outlier pair of the affinity graph, whose eigenvalue is 1, wins over the constraints. See
    `multilayer_embedding`.

    Examples
    --------
    >>> import daskcluster as dc
    >>> X, y = dc.datasets.make_two_bananas(300, chunks=300, random_state=0)
    >>> known = dc.Constraints.from_labels([label if i % 10 == 0 else -1 for i, label in enumerate(y.compute())])
    >>> labels = dc.CSPML(n_clusters=2, gamma=50.0, random_state=0).fit_predict(X, constraints=known)
    >>> round(dc.metrics.rand_index(y, labels), 2)
    1.0
    """

    _fitted_names = ("cluster_centers_", "eigenvalues_", "n_clusters_", "n_iter_")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        alpha: float = 0.1,
        gamma: float | None = None,
        unlinked: str = "penalized",
        n_init: int = 10,
        max_iter: int = 100,
        missing: str = "raise",
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.alpha = alpha
        self.gamma = gamma
        self.unlinked = unlinked
        self.n_init = n_init
        self.max_iter = max_iter
        self.missing = missing
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _n_sampled(self) -> int:
        return MOST_ROWS  # all

    def _embed_stage(self) -> EmbedAll:
        return EmbedAll(type(self).__name__, self.n_clusters, self.alpha, self.gamma, self.unlinked)


class FastCSPML(LayerClusterer):
    """Constrained spectral clustering on a multi-layer graph by Nystroem's method, out of core.

    The layers of `CSPML` are known through l sampled columns, common to all of them. Two passes over the rows; memory
    grows with n only by the k numbers of a row's embedding, which are held like the products of other estimators.

    Parameters
    ----------
    n_clusters : int
        k.
    n_landmarks : int
        l, sampled columns; with l >= n the result is that of `CSPML`.
    alpha : float
        Weight of the layers' subspaces against the layers themselves, >= 0.
    gamma : float or None
        Affinities are exp(-gamma sqdist), in the units of `X`. None follows the rows: 0.5, as in the paper, where this
        suits them, else 1 / e at the distance within which half an equal cluster lies. A given one that does not suit
        the rows is warned of.
    unlinked : {"penalized", "neutral"}
        What the must-link layer says of rows without must-links: L_ii = 1, as the Laplacian's formula has it, or 0.
        "neutral" is worth a try where a few labels push the clusters aside.
    n_init : int
        k-means++ starts of the discretisation.
    max_iter : int
        Lloyd passes of the discretisation, at most.
    missing : {"raise", "label"}
        Rows with NaN or infinity: an error that names the first one, or the label -1; constraints on them do not count.
    random_state : int, numpy RandomState or Generator, or None
    storage : path or URL, optional
        Named store for the products of the stages; see `USPEC`.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input. Clusters are numbered by their first row.
    n_clusters_ : int
        Clusters found: k, or fewer (with a `FewerClustersWarning`).
    landmarks_ : (l, d) float64
        Rows whose columns were sampled.
    eigenvalues_ : (q,) float64
        Approximate ones of the modified adjacency, descending.
    cluster_centers_ : (n_clusters_, q) float64
        Centres in the embedding.
    gamma_ : float
        The width that was used.
    n_iter_ : int
        Lloyd passes.
    n_features_in_ : int

    Raises
    ------
    ValueError
        In `fit`, before any heavy work: if a parameter, the input or the constraints are not acceptable.

    Notes
    -----
    FAST-CSP-ML, Algorithm 4 of Trokicic, Todorovic, 2019 (csp_ml_and_fast_csp_ml_2019); `sample_layers` has the
    formulas and the departures. Cost is O(n l (d + k)), however many labelled rows there are. Only constraints with a
    sampled row take part: labels give them in plenty, random pairs of a large data set hardly any; `fit` warns if there
    are none. The rows are sampled uniformly, as Theorem 2 asks, and not by their constraints.
    Labels are bit-equal for any chunking, scheduler, number of workers and BLAS threads.

    Examples
    --------
    >>> import daskcluster as dc, numpy as np
    >>> X, y = dc.datasets.make_two_bananas(5000, chunks=1000, random_state=0)
    >>> known = np.where(np.arange(5000) % 10 == 0, y, -1)
    >>> labels = dc.FastCSPML(n_clusters=2, n_landmarks=300, gamma=50.0, random_state=0).fit_predict(X, known)
    >>> float(dc.metrics.rand_index(y, labels)) > 0.8
    True
    """

    _fitted_names = ("landmarks_", "cluster_centers_", "eigenvalues_", "n_clusters_", "n_iter_")

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_landmarks: int = 300,
        alpha: float = 0.1,
        gamma: float | None = None,
        unlinked: str = "penalized",
        n_init: int = 10,
        max_iter: int = 100,
        missing: str = "raise",
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_landmarks = n_landmarks
        self.alpha = alpha
        self.gamma = gamma
        self.unlinked = unlinked
        self.n_init = n_init
        self.max_iter = max_iter
        self.missing = missing
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _n_sampled(self) -> int:
        return self._embed_stage().checked().n_drawn

    def _embed_stage(self) -> EmbedSampled:
        return EmbedSampled(
            type(self).__name__, self.n_clusters, self.alpha, self.gamma, self.unlinked, self.n_landmarks
        )

    def _take(self, embedded: Any) -> None:
        super()._take(embedded)
        self.landmarks_ = embedded.landmarks
