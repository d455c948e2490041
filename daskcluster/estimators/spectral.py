"""What USPEC and FastCSC share: rows linked to representatives, a cut of that graph, k-means in its embedding."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from ..io.inputs import Rows
from ..kernels.sparse_rows import SparseRows, is_sparse
from ..pipeline.cut import Cut, TransferCut
from ..pipeline.discretize import Discretize, assign_labels, warn_few_points, warn_fewer
from ..pipeline.lloyd import Centers
from ..pipeline.model import SpectralModel
from ..pipeline.neighbors import Link, Linked
from ..pipeline.outputs import Label
from ..pipeline.representatives import Represent
from ..pipeline.rows import RowForm
from ..pipeline.scan import RowScan, Scan
from ..pipeline.spectrum import Spectrum, spectrum_of
from ..runtime.forecast import Sizes
from ..runtime.products import Products
from ..runtime.stages import Run, Stage, StageList
from ..typing import ArrayInput
from ..validation import check_integer
from .base import RowClusterer

__all__ = ["SpectralClusterer", "SpectralStages"]


@dataclass(frozen=True)
class SpectralStages(StageList):
    """The stages of a spectral fit.

    A method is made by exchanging one of them for another that takes the same results and gives the same kind. `cut`
    is a stage of the graph and the scan that gives a `TransferCut`.
    """

    scan: Scan
    represent: Represent
    link: Link
    cut: Cut | Stage
    discretize: Discretize
    label: Label


@dataclass(frozen=True)
class _CutGraph:
    """What stages 1 to 4 found."""

    found: RowScan
    representatives: Any
    linked: Linked
    cut: TransferCut

    def model(self, centers: Centers, seed: int) -> SpectralModel:
        """The model with these centres."""
        return SpectralModel(
            representatives=self.representatives,
            neighborhood=self.linked.neighborhood,
            n_neighbors=self.linked.n_neighbors,
            bandwidth=self.linked.bandwidth,
            vectors=self.cut.vectors,
            eigenvalues=self.cut.eigenvalues,
            centers=centers.centers,
            form=self.found.form,
            seed=seed,
            n_iter=centers.n_iter,
            affinity=self.linked.affinity,
        )


class SpectralClusterer(RowClusterer):
    """Base of the spectral estimators. A subclass gives its parameters and `_stages`."""

    _takes_sparse = True
    _points_dtype = np.float32
    _fitted_names = (
        "representatives_",
        "bandwidth_",
        "eigenvalues_",
        "cluster_centers_",
        "n_clusters_",
        "n_iter_",
        "neighborhood_size_",
        "_vectors",
        "_shift",
        "_scale",
        "_seed",
    )
    n_representatives: int
    n_neighbors: int
    selection: str
    neighbors: str
    candidate_factor: int
    neighbor_factor: int
    metric: str
    n_init: int
    max_iter: int

    @property
    def _affinity(self) -> str:
        """Kind of the affinities between rows and representatives."""
        return "gaussian"

    def _stages(self) -> SpectralStages:
        raise NotImplementedError

    def _common_stages(self) -> tuple[Represent, Link, Label]:
        """The stages that follow from the parameters which all spectral estimators have; the first is checked."""
        represent = Represent(self.n_representatives, self.selection, self.candidate_factor, self.max_iter).checked()
        link = Link(self.n_neighbors, self.neighbors, self.neighbor_factor, self.n_clusters, self._affinity)
        return represent, link, Label(task_row_bytes=8 * self.n_clusters)

    def _fit(self, X: ArrayInput, *given: Any, beside: dict[str, Any] | None = None) -> Self:
        """Fit in stages; `given` goes to the first one, and `beside` is what else the user gave, by argument."""
        with self._run(X, **(beside or {})) as run:
            s = self._stages()
            made = self._cut_graph(run, s, *given)
            linked = made.linked
            draw = partial(linked.edges_of, made.found.sample)
            centers = run(s.discretize, linked.nearest, made.cut.points(linked.graph), draw)
            self._take(made.model(centers, run.seed))
            lazy = assign_labels(linked.nearest, self._model.points, self.cluster_centers_)
            self.labels_ = run(s.label, {"labels": lazy}, self._again(run.rows))["labels"]
        if self.n_clusters_ < self.n_clusters:
            warn_fewer(self, self.n_clusters_, self.n_clusters)
        else:
            warn_few_points(self)
        return self

    def _cut_graph(self, run: Run, s: SpectralStages, *given: Any) -> _CutGraph:
        """The stages that make the graph and cut it."""
        found = run(s.scan, *given)
        representatives = run(s.represent, found)
        linked = run(s.link, representatives, found)
        cut = run(s.cut, linked.graph, found)
        self._places, self._affinities = cut.places, cut.affinities
        return _CutGraph(found, representatives, linked, cut)

    def _fit_graph(self, rows: Rows) -> Self:
        """Fit as far as `spectrum` and `transform` need it: no clusters are sought, and no row gets a label."""
        self._check_parameters()
        products = Products(None, type(self).__name__, self._product_parameters(), self.random_state)
        with self._begin(None, rows, products) as run:
            made = self._cut_graph(run, self._stages())
            return self._take(made.model(Centers(np.empty((0, made.cut.vectors.shape[1])), 0.0, 0), run.seed))

    def _take(self, model: SpectralModel) -> Self:
        """Take a model as the fitted one."""
        points: Any = model.representatives
        self.representatives_ = points.matrix if is_sparse(points) else points
        self.n_neighbors_ = model.n_neighbors
        self.neighborhood_size_ = model.neighborhood
        self.bandwidth_ = model.bandwidth / model.form.scale
        self.eigenvalues_ = model.eigenvalues
        self.cluster_centers_ = model.centers
        self.n_clusters_ = len(model.centers)
        self.n_iter_ = model.n_iter
        self.n_features_in_ = model.representatives.shape[1]
        self._vectors, self._seed = model.vectors, model.seed
        self._shift, self._scale = model.form.shift, model.form.scale
        return self

    @property
    def _model(self) -> SpectralModel:
        """The model, from the fitted attributes."""
        points: Any = self.representatives_
        sparse = issparse(points)
        representatives: Any = SparseRows.of(points) if sparse else points
        return SpectralModel(
            representatives=representatives,
            neighborhood=self.neighborhood_size_,
            # Models of earlier versions have no `n_neighbors_`.
            n_neighbors=getattr(self, "n_neighbors_", min(self.n_neighbors, points.shape[0])),
            bandwidth=self.bandwidth_ * self._scale,
            vectors=self._vectors,
            eigenvalues=self.eigenvalues_,
            centers=self.cluster_centers_,
            form=RowForm(self._shift, self._scale, self.metric == "cosine", sparse),
            seed=self._seed,
            n_iter=self.n_iter_,
            affinity=self._affinity,
        )

    def spectrum(self, k_max: int = 30) -> Spectrum:
        """The eigenvalues of the fitted graph beyond those of the fit, and the number of clusters that they show.

        Parameters
        ----------
        k_max : int
            Clusters at most, from 2 to p - 1.

        Returns
        -------
        Spectrum
            Print it, or take its `n_clusters`, which is None where no gap is clear, its `eigenvalues` (k_max + 1,) and
            `relative_gaps` (k_max,).

        Raises
        ------
        ValueError
            If `k_max` is not acceptable, or the model was saved by a version that did not keep the graph.

        Notes
        -----
        No pass over the rows: the graph of p representatives is part of the model, 16 bytes for each pair that share a
        row. It does not depend on `n_clusters`; constraints are not in it. `spectrum_of` says what is done.

        See Also
        --------
        daskcluster.select_n_clusters : looks at several graphs, and at how stable the clusters are.
        """
        check_is_fitted(self, "n_clusters_")
        n_right = self.representatives_.shape[0]
        k_max = check_integer("k_max", k_max, 2)
        if k_max >= n_right:
            raise ValueError(f"k_max must be below the number of representatives, got {k_max} and {n_right}")
        if not len(getattr(self, "_places", ())):
            raise ValueError("this model was saved without its graph, by an earlier version of daskcluster: fit again")
        return spectrum_of({"n_right": n_right, "places": self._places, "values": self._affinities}, k_max)

    def _sizes(self, sizes: Sizes) -> Sizes:
        p = min(self.n_representatives, sizes.n_samples)
        stages = self._stages()
        n_neighbors = stages.link.held(p, sizes.n_samples)
        return sizes.with_graph(p, n_neighbors, 8 * n_neighbors, stages.represent.rows_behind(sizes.n_samples))

    @property
    def _n_features_out(self) -> int:
        return int(self._vectors.shape[1])

    def _block_function(self, what: str, dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
        return self._model.block_function(what, dtype)

    def transform(self, X: ArrayInput) -> Any:
        """Embed rows: the space in which they are clustered.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)

        Returns
        -------
        (n, q) float32
            Rows of unit length, q eigenvectors (`eigenvalues_`); NumPy for NumPy, a lazy dask array for chunked input;
            NaN for missing rows.
        """
        return super().transform(X)
