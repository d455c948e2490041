"""Ensemble: base clusterings by any clusterer, and any consensus."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import clone

from ...constraints.given import given_constraints
from ...ensemble.members import takes
from ...typing import ArrayInput, PathInput, Seed
from ..base import Clusterer, where_it_predicts
from ..consensus import BipartiteCut, Consensus
from ..uspec import USPEC
from .base import EnsembleBase

__all__ = ["Ensemble"]


@where_it_predicts
class Ensemble(EnsembleBase):
    """Base clusterings by any clusterer, and their consensus.

    Parameters
    ----------
    n_clusters : int
        k, clusters of the consensus.
    base : estimator, optional
        The base clusterer: one of this package, or any with scikit-learn's `get_params` and `fit_predict`, which then
        gets the rows in memory. None means `USPEC`. Its ``n_clusters``, ``random_state``, ``missing``, ``storage`` and
        ``verbose``, where it has them, are the ensemble's.
    consensus : estimator, optional
        `BipartiteCut` (None), `SEC`, `KCC`, `EAC`, `PTGP`, `ECPCS` or `ISEC`; an `ISEC` without `n_representatives`
        leaves the ensemble without `predict` and `transform`. Its ``n_clusters``, ``random_state``, ``storage`` and
        ``verbose`` are the ensemble's.
    n_base_clusterings : int
        m.
    k_range : pair of int, optional
        Smallest and largest number of clusters of a base clustering; each draws its own. None: from `n_clusters` to the
        square root of the number of rows, 200 at most, as in sec_2015; for a constrained base from `n_clusters` - 5 to
        `n_clusters` + 4, as in fast_csc_and_secrp_2017, for its constraints tell of k clusters; a base without
        ``n_clusters`` keeps to its own ways. Ranges are lowered where there are few rows: no more than twice the root
        of their number, see `k_range_`. Rows are those that a base clusterer sees.
    sample_rate : float
        Share of the rows that each base clusterer sees, drawn anew for each; the others have no label in this base
        clustering. It must leave `n_clusters` rows at least.
    predict_unsampled : bool
        With ``sample_rate`` < 1: give the others the label that the base clusterer predicts.
    missing : {"raise", "label"}
        Rows with NaN or infinity: an error that names the first one, or the label -1.
    random_state : int, numpy RandomState or Generator, or None
    storage : path or URL, optional
        Named store: a run that was killed continues at the first base clustering that is not there. See `USPEC`. It
        keeps the labels of all base clusterings, and the models of those by clusterers of this package; an ensemble
        that took a base clustering by another package's clusterer from there cannot label new rows.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input. Clusters are numbered by their first row.
    agreement_ : (n,) float32
        How far the base clusterings agree with the consensus on each row, see `BipartiteCut`.
    base_labels_ : (n, m) int32
        The base clusterings; -1 for no label. int64 where a base clusterer of another package needs it. Like `labels_`
        and `agreement_`, a lazy one that was fitted on a cluster, without `storage` and with ``sample_rate`` < 1, goes
        with the cluster if it is larger than the memory budget.
    base_n_clusters_ : (m,) int64
        Clusters of each base clustering.
    k_range_ : tuple of int
        The range from which numbers of clusters were drawn.
    estimators_ : list
        The fitted base clusterers, where they can label new rows.
    consensus_ : estimator
        The fitted consensus.
    n_clusters_ : int
        k, or fewer (with a `FewerClustersWarning`) when the base clusterings do not tell more apart.
    n_iter_ : int
        That of the consensus; 1 where it does not go over the rows until it stands.
    n_features_in_ : int

    Raises
    ------
    ValueError
        In `fit`, before any heavy work: if a parameter or the input is not acceptable.
        Also, after the base clusterings, if none of them labels any row.
    TypeError
        If `base` is no clusterer, or `consensus` no consensus of this package.
    MemoryError
        If the consensus is an `ISEC` and the rows are more than fit; before any base clustering.

    Notes
    -----
    Numbers of clusters by eq. (14) of uspec_usenc_2019, or the random parameter selection of sec_2015, section 6.1;
    `sample_rate` is the row segmentation of its section 5. `Ensemble(FastCSC(), SEC())` is CCSS-SE of
    fast_csc_and_secrp_2017, with ``SEC(n_components=40)`` CCSS-SER. Base clusterings by `USPEC` are made as `USENC`
    makes them. With the ensemble's seed and clusterers that are deterministic in theirs, labels are bit-equal for any
    chunking and scheduler.

    Examples
    --------
    >>> import daskcluster as dc
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = dc.Ensemble(n_clusters=3, base=dc.KMeans(), consensus=dc.SEC(), random_state=0).fit(X)
    >>> round(dc.metrics.normalized_mutual_info(y, model.labels_), 1)
    0.8
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        base: Any = None,
        consensus: Any = None,
        n_base_clusterings: int = 20,
        k_range: tuple[int, int] | None = None,
        sample_rate: float = 1.0,
        predict_unsampled: bool = False,
        missing: str = "raise",
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.base = base
        self.consensus = consensus
        self.n_base_clusterings = n_base_clusterings
        self.k_range = k_range
        self.sample_rate = sample_rate
        self.predict_unsampled = predict_unsampled
        self.missing = missing
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def fit(self, X: ArrayInput, y: Any = None, *, constraints: Any = None) -> Self:
        """Make the base clusterings and find their consensus.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
        y : (n,) NumPy array, dask array, zarr.Array or path, optional
            Partial labels for a constrained base clusterer, one whose `fit` takes `constraints`; others ignore it.
        constraints : Constraints, optional
            For a constrained base clusterer, instead of `y`. With ``sample_rate`` < 1 they must be from labels or
            groups.

        Returns
        -------
        self
        """
        self._check_parameters()
        base, _ = self._parts()
        if not takes(base, "constraints"):
            if constraints is not None:
                raise ValueError(f"constraints must be None for a base that takes none, got base={base!r}")
            return self._fit(X, None)
        given = given_constraints(y, constraints)
        if given is not None and self.sample_rate < 1 and given.column is None:
            raise ValueError("constraints must be from labels with sample_rate < 1: pairs name rows of the whole")
        return self._fit(X, given, y)

    def fit_predict(self, X: ArrayInput, y: Any = None, *, constraints: Any = None) -> Any:
        """Cluster the rows and return `labels_`; see `fit`."""
        return self.fit(X, y, constraints=constraints).labels_

    def _check_parameters(self) -> None:
        if self.base is not None:
            if isinstance(self.base, type | Consensus) or not all(
                hasattr(self.base, name) for name in ("get_params", "fit_predict")
            ):
                raise TypeError(f"base must be a clusterer of rows, with fit_predict, or None, got {self.base!r}")
            if self.predict_unsampled and not hasattr(self.base, "predict"):
                raise ValueError(f"predict_unsampled must be False for a base without predict, got {self.base!r}")
        if self.consensus is not None and not isinstance(self.consensus, Consensus):
            raise TypeError(
                f"consensus must be a BipartiteCut, SEC or another consensus, or None, got {self.consensus!r}"
            )
        super()._check_parameters()

    def _product_parameters(self) -> dict[str, Any]:
        base, consensus = self._parts()  # with the parameters that are the ensemble's
        return super()._product_parameters() | {"base": base, "consensus": consensus}

    def _parts(self) -> tuple[Any, Consensus]:
        base = USPEC() if self.base is None else clone(self.base)
        consensus = BipartiteCut() if self.consensus is None else clone(self.consensus)
        known = base.get_params(deep=False)
        own = {"n_clusters": self.n_clusters, "random_state": None, "storage": None, "verbose": False}
        consensus.set_params(**own)
        base.set_params(**{name: value for name, value in (own | {"missing": self.missing}).items() if name in known})
        for part in (base, consensus):
            if isinstance(part, Clusterer):  # others may have a method of this name, which is their own matter
                part._check_parameters()
        return base, consensus

    def _check_predicts(self) -> None:
        """Say why this ensemble cannot label new rows, before a fit or after it."""
        base, consensus = self.base, self.consensus_ if hasattr(self, "consensus_") else self.consensus
        why = ""
        if isinstance(consensus, Consensus) and not consensus._predicts:
            why = f"its consensus {type(consensus).__name__} learns on all rows and has no rule for others"
        elif base is not None and not hasattr(base, "predict"):
            why = f"its base {type(base).__name__} has no predict"
        elif len(getattr(self, "estimators_", ())) < self.n_base_clusterings and hasattr(self, "n_clusters_"):
            why = (
                f"base clusterings were read from a storage, which keeps only the labels of a {type(base).__name__}; "
                "its fitted models were not kept. Fit without storage, or into a new one"
            )
        if why:
            raise AttributeError(f"this Ensemble cannot label new rows: {why}")
