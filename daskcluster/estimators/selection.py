"""How many clusters: gaps in the spectra of several graphs, and how stable the clusters of each number are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from ..io.inputs import Rows
from ..io.rasters import grid_rows
from ..markup import html_table, pretty_text
from ..pipeline.kmeans import center_starts
from ..pipeline.lloyd import best_of_starts
from ..pipeline.spectrum import CLEAR_GAP, Spectrum, largest_gap_of
from ..runtime.seeding import root_seed, stream
from ..runtime.threads import one_blas_thread
from ..typing import ArrayInput, Seed
from ..validation import check_integer
from .callbacks import without_callbacks
from .spectral import SpectralClusterer
from .uspec import USPEC

__all__ = ["ClusterNumber", "select_n_clusters"]

#: Clusters that agree less between graphs than by this adjusted Rand index are not those of the data.
STABLE = 0.8
#: Rows a cluster at least: of fewer a graph links none but neighbours.
LEAST_ROWS = 10
#: Numbers of clusters that are named where none is clear.
MOST_CANDIDATES = 3


@dataclass(frozen=True)
class ClusterNumber:
    """What several graphs say of the number of clusters.

    Attributes
    ----------
    n_clusters : int or None
        The number before the largest median gap, if that gap is clear and its clusters are stable; else None: there is
        no clear answer, or nothing is apart.
    relative_gaps : (k_max,) float64
        Median over the graphs; entry k - 1 is that of `Spectrum.relative_gaps` after the first k eigenvalues.
    stability : (k_max,) float64
        Entry k - 1 is the mean adjusted Rand index between the k clusters of each two graphs; NaN for k = 1.
    eigenvalues : (n_fits, k_max + 1) float64
        Of each graph.
    spectra : tuple of Spectrum
        Of each graph.
    """

    n_clusters: int | None
    relative_gaps: NDArray[np.float64]
    stability: NDArray[np.float64]
    eigenvalues: NDArray[np.float64]
    spectra: tuple[Spectrum, ...]

    @property
    def candidates(self) -> list[int]:
        """Numbers of clusters, at least 2, by the product of gap and stability, the best one first."""
        merit = self.relative_gaps[1:] * np.maximum(self.stability[1:], 0.0)
        return [int(place) + 2 for place in np.argsort(-merit, kind="stable")]

    def __int__(self) -> int:
        """The number of clusters.

        Raises
        ------
        ValueError
            If there is no clear answer.
        """
        if self.n_clusters is None:
            raise ValueError(self.summary)
        return self.n_clusters

    __index__ = __int__

    @property
    def summary(self) -> str:
        """The answer in one line."""

        def what(k: int) -> str:
            return f"gap {self.relative_gaps[k - 1]:.2f}, stability {self.stability[k - 1]:.2f}"

        if self.n_clusters is not None:
            return f"{self.n_clusters} clusters: {what(self.n_clusters)}, in {len(self.spectra)} graphs"
        named = "; ".join(f"{k} ({what(k)})" for k in self.candidates[:MOST_CANDIDATES])
        return f"no clear number of clusters, there may be one only; the most likely are {named}"

    def __str__(self) -> str:
        lines = [self.summary, "{:>4}{:>13}{:>10}{:>12}".format(*_HEADER)]
        lines += ["{:>4}{:>13}{:>10}{:>12}".format(*row) for row in self._rows()]
        return "\n".join(lines)

    _repr_pretty_ = pretty_text

    def _repr_html_(self) -> str:
        """The same as a table, which notebooks show."""
        return html_table(self._rows(), _HEADER, self.summary)

    def _rows(self) -> list[tuple[str, ...]]:
        median = np.median(self.eigenvalues, axis=0)
        return [
            (str(k + 1), f"{median[k]:.2e}", f"{gap:.2f}", "" if np.isnan(stable) else f"{stable:.2f}")
            for k, (gap, stable) in enumerate(zip(self.relative_gaps, self.stability, strict=True))
        ]


_HEADER = ("k", "eigenvalue", "gap", "stability")


def select_n_clusters(
    X: ArrayInput,
    k_max: int = 30,
    *,
    n_fits: int = 3,
    estimator: SpectralClusterer | None = None,
    random_state: Seed = None,
    sample_dims: str | Sequence[str] | None = None,
    feature_dim: str | None = None,
) -> ClusterNumber:
    """Look for the number of clusters.

    Parameters
    ----------
    X : NumPy array, dask array, zarr.Array or path, (n, d)
        Whatever `fit` takes.
    k_max : int
        Clusters at most, from 2 to fewer than there are representatives; one for `LEAST_ROWS` rows where they are few.
    n_fits : int
        Graphs, each of other representatives, at least 2.
    estimator : USPEC, optional
        Whose parameters the graphs are made with: metric, representatives, neighbors, missing values. Not fitted;
        its callbacks are not told, no fit ends.
    random_state : int, numpy RandomState or Generator, or None
    sample_dims, feature_dim : str, or sequence of str, optional
        Of an xarray DataArray or Dataset, as in `fit`.

    Returns
    -------
    ClusterNumber
        Print it; `n_clusters` is None where there is no clear answer. `daskcluster.plotting.plot_n_clusters` draws it.

    Raises
    ------
    TypeError
        If the estimator is another one.
    ValueError
        If a number or the input is not acceptable.

    Notes
    -----
    X is opened once, and `n_fits` graphs of U-SPEC are made and cut by `k_max` eigenvectors: two passes each. No row is
    clustered, and what follows needs none. For each graph the relative gaps of `Spectrum`. For each number k the
    representatives of the first graph are clustered by the first k eigenvectors of every graph: clusters of the data
    come out alike, those that a graph makes up do not (stability: von Luxburg, Foundations and Trends in Machine
    Learning 2, 2010). A number is the answer if its median gap is the largest one and at least `CLEAR_GAP`, and its
    stability at least `STABLE`. Overlapping clusters, of which one spectrum shows nothing, and data without clusters
    have no clear answer.

    Examples
    --------
    >>> import daskcluster as dc
    >>> X, _ = dc.datasets.make_concentric_circles(5000, chunks=1000, random_state=0)
    >>> found = dc.select_n_clusters(X, k_max=10, estimator=dc.USPEC(n_representatives=300), random_state=0)
    >>> found.n_clusters
    3
    """
    check_integer("n_fits", n_fits, 2)
    k_max = check_integer("k_max", k_max, 2)
    base = USPEC() if estimator is None else estimator
    if not isinstance(base, USPEC):
        raise TypeError(f"estimator must be a USPEC, got {type(base).__name__}")
    if k_max >= base.n_representatives:
        raise ValueError(
            f"k_max must be below n_representatives of the estimator, got {k_max} and {base.n_representatives}"
        )
    root = root_seed(random_state)
    opener = without_callbacks(clone(base).set_params(n_clusters=2, random_state=root, storage=None))
    opener._check_parameters()
    grid = grid_rows(X, sample_dims, feature_dim)
    rows = opener._open(X if grid is None else grid.rows, reset=True)  # once: what it warns of is said once
    k_max = max(2, min(k_max, rows.n_samples // LEAST_ROWS))
    models = [
        _graph(opener, rows, k_max, int(stream(root, "select", number).integers(2**31))) for number in range(n_fits)
    ]
    most = min(k_max, *(model.representatives_.shape[0] - 1 for model in models))
    if most < 2:
        raise ValueError("X must have at least 3 distinct rows that are linked to each other")
    spectra = tuple(model.spectrum(most) for model in models)
    most = min(len(spectrum.relative_gaps) for spectrum in spectra)
    gaps = np.median([spectrum.relative_gaps[:most] for spectrum in spectra], axis=0)
    stability = _stability(models, most)
    best = largest_gap_of(gaps)
    clear = most > 1 and gaps[best - 1] >= CLEAR_GAP and stability[best - 1] >= STABLE
    return ClusterNumber(
        best if clear else None,
        gaps,
        stability,
        np.array([spectrum.eigenvalues[: most + 1] for spectrum in spectra]),
        spectra,
    )


def _graph(base: USPEC, rows: Rows, k_max: int, seed: int) -> USPEC:
    """The cut of one graph, without the names of the columns: its own representatives have none."""
    return clone(base).set_params(n_clusters=k_max, random_state=seed)._fit_graph(rows)


def _stability(models: list[Any], k_max: int) -> NDArray[np.float64]:
    """Mean adjusted Rand index between the clusters of each two models (k_max,), on the first one's representatives."""
    places = models[0].representatives_
    points = [model.transform(places).astype(np.float64) for model in models]
    there = np.logical_and.reduce([np.isfinite(embedded).all(axis=1) for embedded in points])
    found = np.full(k_max, np.nan)
    with one_blas_thread():
        for k in range(2, k_max + 1):
            labels = [_clusters(embedded[there], k) for embedded in points]
            found[k - 1] = np.mean([adjusted_rand_score(one, other) for one, other in combinations(labels, 2)])
    return found


def _clusters(points: NDArray[Any], k: int) -> NDArray[np.int32]:
    """Labels (n,) of k clusters by the first k columns of an embedding."""
    first: Any = points[:, :k]
    first = first / np.maximum(np.linalg.norm(first, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    starts = (center_starts(first, k, stream(0, "stability", start)) for start in range(3))
    return best_of_starts(first, starts, max_iter=100)[1]
