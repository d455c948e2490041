"""Ensemble, USENC: base clusterings, then their consensus."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..constraints.constraints import Constraints, RowConstraints
from ..ensemble.generation import (
    CENTER_ROWS,
    ROWS_PER_CENTER,
    Member,
    RowSample,
    SpectralBase,
    draw_numbers,
    drawn_range,
    fit_members,
    group_size,
    index_bytes,
    member_seeds,
    pool_size,
    predict_finite,
    rows_seen,
    spectral_members,
    takes,
)
from ..ensemble.incidence import check_base_clusterings, scan_labels
from ..errors import warn_user
from ..kernels.rows import compute_dtype
from ..pipeline.representatives import n_candidates
from ..pipeline.rows import Rows, RowScan, check_rows, scan
from ..runtime.boundary import Boundary, budget_bytes
from ..runtime.execution import active_client
from ..runtime.forecast import Plan, StagePlan, make_plan, tree_tasks
from ..runtime.progress import Progress
from ..runtime.seeding import stream
from ..typing import ArrayInput, PathInput, Seed
from ..validation import check_flag, check_integer, check_real
from .base import RowClusterer, on_client, where_it_predicts
from .consensus import BipartiteCut, Consensus
from .constrained import LayerClusterer, given_constraints
from .uspec import USPEC

__all__ = ["USENC", "Ensemble"]

#: With ``k_range=None`` the numbers of clusters go up to sqrt(n), as in sec_2015, but no further than this.
MOST_NUMBER = 200
#: Clusterers of this package: they take chunked rows.
OWN = (RowClusterer, LayerClusterer)
#: Constrained base clusterings differ from k by so much with ``k_range=None``, as in section 5.3 of
#: fast_csc_and_secrp_2017: from k - 5 to k + 4.
FEWER, MORE = 5, 4


class _EnsembleBase(RowClusterer):
    """What `Ensemble` and `USENC` share; a subclass gives `_parts`."""

    _fitted_names = ("consensus_", "estimators_", "n_clusters_", "n_iter_", "base_n_clusters_")
    n_base_clusterings: int
    k_range: Any
    verbose: bool

    def _parts(self) -> tuple[Any, Consensus]:
        """The base clusterer and the consensus, fresh, with the ensemble's own parameters in them."""
        raise NotImplementedError

    sample_rate = 1.0
    predict_unsampled = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_base_clusterings", self.n_base_clusterings, 1)
        if self.k_range is not None:
            try:
                low, high = self.k_range
            except (TypeError, ValueError):
                raise ValueError(f"k_range must be a pair (smallest, largest) or None, got {self.k_range!r}") from None
            check_integer("k_range[0]", low, 1)
            check_integer("k_range[1]", high, int(low))

    def fit(self, X: ArrayInput, y: Any = None) -> Self:
        """Make the base clusterings and find their consensus.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        return self._fit(X, None)

    def _fit(self, X: ArrayInput, given: Constraints | None) -> Self:
        """Fit with checked parameters; `given` guides the base clusterers, which take constraints."""
        base, consensus = self._parts()
        boundary = self._boundary()
        rows = self._open(X, reset=True)
        self._check_n_clusters(rows)
        seed = boundary.seed
        spectral = type(base) is USPEC and self.sample_rate >= 1
        with Progress(self.verbose) as progress:
            with progress.stage("check and sample"):
                known = None if given is None else given.on_rows(rows, fingerprint=boundary.named)
                found = self._scan(rows, base if spectral else None, seed, fingerprint=boundary.named)
                self._check_n_valid(found.n_valid)
                boundary.open(found.fingerprint if known is None else f"{found.fingerprint}-{known.fingerprint}")
                guide = _guide(given, known, boundary)
                seeds = member_seeds(seed, self.n_base_clusterings)
                n_seen = rows_seen(rows, self.sample_rate, seeds, found.n_valid)
            self._check_n_seen(base, n_seen)
            consensus._check_size(self._n_labelled(found.n_valid))
            numbers = self._numbers(base, n_seen, seed)
            if spectral:
                parameters = _spectral_parameters(base)
                members = spectral_members(rows, found, parameters, numbers, seeds, boundary, progress)
                estimators = [
                    _as_uspec(base, member.model, number, member_seed, found)
                    for member, number, member_seed in zip(members, numbers, seeds, strict=True)
                ]
            else:
                members = fit_members(
                    rows,
                    base,
                    numbers,
                    seeds,
                    boundary,
                    progress,
                    lazy=isinstance(base, OWN),
                    sample_rate=self.sample_rate,
                    predict_unsampled=self.predict_unsampled,
                    guide=guide,
                )
                estimators = [member.model for member in members]
            label_rows = self._label_rows(members)
            with progress.stage("base clusters"):
                book = scan_labels(label_rows)
            if book.n_labelled == 0:
                raise ValueError(
                    f"base must label rows, got no label for any row in any of {self.n_base_clusterings} base "
                    f"clusterings by {type(base).__name__}"
                )
            labels, agreement = consensus._fit_labels(label_rows, book, boundary, progress)
            with progress.stage("labels"):
                self.consensus_ = consensus
                self.estimators_ = [model for model in estimators if model is not None]
                self.base_n_clusters_ = np.diff(book.book.offsets)
                self.n_clusters_, self.n_iter_ = consensus.n_clusters_, consensus.n_iter_
                consensus.n_features_in_ = self.n_base_clusterings
                self.labels_ = self._keep("labels", labels, rows, boundary)
                self.agreement_ = self._keep("agreement", agreement, rows, boundary)
                self.base_labels_ = self._keep_base_labels(label_rows.blocks, rows, boundary)
        _repeat_warnings(members)
        n_without = found.n_valid - book.n_labelled
        if n_without > 0:
            advice = ""
            if self.sample_rate < 1 and not self.predict_unsampled:
                advice = ": raise n_base_clusterings or sample_rate, or set predict_unsampled"
            warn_user(f"{n_without} rows have no label in any base clustering; they get the label -1{advice}")
        consensus._warn()
        return self

    def _check_n_seen(self, base: Any, n_seen: int) -> None:
        least = self.n_clusters if "n_clusters" in base.get_params(deep=False) else 1
        if n_seen < least:
            raise ValueError(
                f"sample_rate must leave each base clusterer {least} rows at least, got "
                f"sample_rate={self.sample_rate}: {n_seen} rows without NaN or infinity, and "
                f"n_clusters={self.n_clusters}"
            )

    def _n_labelled(self, n_valid: int) -> int:
        """Rows with a label in some base clustering, as many as are likely."""
        if self.sample_rate >= 1 or self.predict_unsampled:
            return n_valid
        return int(n_valid * (1 - (1 - self.sample_rate) ** self.n_base_clusterings))

    def _keep_base_labels(self, labels: da.Array, rows: Rows, boundary: Boundary) -> Any:
        """`base_labels_`: NumPy; or the held arrays; or, on a cluster without a named store, the models' own labels."""
        if rows.chunked and not boundary.named and active_client() is not None:
            if self._members_predict:
                return self._map(rows, "base labels")
            labels = on_client(labels)
        return self._hand_out(labels.astype(np.promote_types(labels.dtype, np.int32)), rows)

    def _scan(self, rows: Rows, spectral: Any, seed: int, *, fingerprint: bool) -> RowScan:
        size, unit_length = 1, False
        if spectral is not None:
            size, unit_length = self._pool(rows, spectral), spectral.metric == "cosine"
        return scan(rows, size, stream(seed, "sample"), unit_length=unit_length, fingerprint=fingerprint)

    def _pool(self, rows: Rows, base: USPEC) -> int:
        highest = self.n_clusters if self.k_range is None else int(self.k_range[1])
        least = max(CENTER_ROWS, ROWS_PER_CENTER * highest)
        row_bytes = rows.n_features * rows.blocks.dtype.itemsize
        return pool_size(_spectral_parameters(base), self.n_base_clusterings, least, row_bytes)

    def _numbers(self, base: Any, n_seen: int, seed: int) -> list[Any]:
        if "n_clusters" not in base.get_params(deep=False):
            if self.k_range is not None:
                raise ValueError(
                    f"k_range must be None for a base without n_clusters ({type(base).__name__}), got {self.k_range!r}"
                )
            return [None] * self.n_base_clusterings
        asked = self.k_range
        if asked is None and takes(base, "constraints"):
            asked = (max(min(2, self.n_clusters), self.n_clusters - FEWER), self.n_clusters + MORE)
        elif asked is None:
            asked = (self.n_clusters, max(self.n_clusters, min(int(np.sqrt(n_seen)), MOST_NUMBER)))
        self.k_range_ = drawn_range((int(asked[0]), int(asked[1])), self.n_clusters, n_seen)
        return draw_numbers(self.k_range_, self.n_base_clusterings, seed)

    def _label_rows(self, members: list[Member]) -> Rows:
        dtype = np.result_type(*(member.labels.dtype for member in members))
        labels = da.stack([member.labels.astype(dtype) for member in members], axis=1)
        return check_base_clusterings(labels.rechunk({1: -1}))

    # -- new rows ------------------------------------------------------------------------------------------------------

    @property
    def _members_predict(self) -> bool:
        """Whether every base clusterer labels new rows, and fit's rows as it labelled them."""
        if len(self.estimators_) < self.n_base_clusterings:
            return False
        return self.sample_rate >= 1 or self.predict_unsampled

    @property
    def _predicts(self) -> bool:  # type: ignore[override]
        return self._members_predict and self.consensus_._predicts

    def _block_function(self, what: str, dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
        members = [
            model._block_function("labels", dtype)
            if isinstance(model, RowClusterer)
            else (predict_finite, {"clusterer": model})
            for model in self.estimators_
        ]
        if what == "base labels":
            return members_block, {"members": members}
        outcome, arguments = self.consensus_._block_function(what, np.dtype(np.int32))
        return ensemble_block, {"members": members, "outcome": outcome, "arguments": arguments}

    def _output(self, what: str) -> tuple[int | None, Any]:
        if what == "base labels":
            most = int(self.consensus_._values.max())
            return self.n_base_clusterings, np.promote_types(np.int32, np.min_scalar_type(-most - 1))
        return self.consensus_._output(what)

    @property
    def _n_features_out(self) -> int:
        return self.consensus_._n_features_out

    def predict(self, X: ArrayInput) -> Any:
        """Label rows, new or old: by every base clusterer, then by the consensus.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)

        Returns
        -------
        labels : (n,) int32
            NumPy for NumPy, a lazy dask array for chunked input; -1 for rows with NaN or infinity when
            ``missing="label"``. For the rows of `fit` equal to `labels_`, unless base clusterers saw a share of the
            rows.

        Raises
        ------
        AttributeError
            If a base clusterer, or the consensus, cannot label new rows: `hasattr` is false then, and the message says
            why.
        """
        return super().predict(X)

    def transform(self, X: ArrayInput) -> Any:
        """Bring rows into the space in which the consensus clusters them: the `transform` of `consensus_`.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)

        Returns
        -------
        (n, q) float
            NumPy for NumPy, a lazy dask array for chunked input; NaN for missing rows.
        """
        return super().transform(X)

    # -- the forecast --------------------------------------------------------------------------------------------------

    def plan(self, X: ArrayInput) -> Plan:
        """Forecast `fit`: passes, tasks, bytes and peak memory, before anything runs.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, d)
            Not read; unknown chunk lengths are counted.

        Returns
        -------
        Plan
            For U-SPEC base clusterings an upper bound, like that of `USPEC`. What other base clusterers cost they say
            themselves: it is taken m times from their `plan`, if they have one.
        """
        self._check_parameters()
        base, consensus = self._parts()
        rows = check_rows(X, self.missing)
        self._check_n_clusters(rows)
        n, m = rows.n_samples, self.n_base_clusterings
        shape = da.zeros((n, m), chunks=(rows.blocks.chunks[0], m), dtype=np.int32)
        after = consensus.plan(shape)
        stages, held, passes, small = self._base_stages(rows, base)
        return make_plan(
            type(self).__name__,
            rows,
            self.storage,
            [*stages, *after.stages],
            held_bytes=held + n * (2 * m + 8),
            input_passes=passes,
            small_bytes=small,
        )

    def _base_stages(self, rows: Rows, base: Any) -> tuple[list[StagePlan], int, int, int]:
        """Stages of the base clusterings; bytes that they hold at a time; reads of the input; small arrays' bytes."""
        n, d, blocks, m = rows.n_samples, rows.n_features, rows.blocks.numblocks[0], self.n_base_clusterings
        block = min(rows.block_rows, n)
        raw, number = rows.blocks.dtype.itemsize, compute_dtype(rows.blocks.dtype).itemsize
        read_tasks = len(rows.blocks.__dask_graph__())
        input_bytes, row_bytes = n * d * raw, d * (raw + 2 * number)
        per_pass = tree_tasks(blocks)
        if type(base) is USPEC and self.sample_rate >= 1:
            p = min(base.n_representatives, n)
            n_neighbors = min(base.n_neighbors, p)
            size = group_size(n, n_neighbors, m)
            groups = -(-m // size)
            pool = min(self._pool(rows, base), n)
            highest = int(self.k_range[1]) if self.k_range is not None else MOST_NUMBER
            index = index_bytes(_spectral_parameters(base), rows)
            candidates = min(n_candidates(base.selection, p, base.candidate_factor), pool)
            edges = 8 * n_neighbors * n
            full = self.n_base_clusterings * base.max_iter if base.selection == "kmeans" else 0
            stages = [
                StagePlan(
                    "check and sample", 1, blocks + read_tasks, input_bytes, 0, block * row_bytes + pool * d * raw
                ),
                StagePlan(
                    "base clusterings: nearest",
                    groups + full,
                    groups * (2 * blocks + read_tasks) + m + full * (per_pass + read_tasks),
                    (groups + full) * input_bytes,
                    m * edges,
                    max(
                        candidates * (d * (raw + 3 * number) + 16),
                        block * (d * raw + 8 * n_neighbors * size) + 2**13 * (row_bytes + 24 * n_neighbors),
                    ),
                ),
                StagePlan(
                    "base clusterings: cut",
                    m,
                    m * 2 * (per_pass + blocks + 1),
                    m * edges,
                    0,
                    max(24 * p * p, 8 * p * p * 2) + max(CENTER_ROWS, ROWS_PER_CENTER * highest) * 12 * highest,
                ),
                StagePlan(
                    "base clusterings: labels",
                    m,
                    m * 3 * blocks,
                    m * edges,
                    m * n,
                    block * (8 * n_neighbors + 2) + 2**13 * (16 * n_neighbors + 12 * highest),
                ),
            ]
            small = (
                max(size * index, min(m * index, 2 * budget_bytes()))
                + m * p * 8 * (d + highest)
                + pool * d * raw
                + 16 * 8 * p * p
            )
            return stages, edges * size, 1 + groups + full, small
        stages = [StagePlan("check", 1, blocks + read_tasks, input_bytes, 0, block * row_bytes)]
        if not hasattr(base, "plan"):
            one = StagePlan(
                "base clusterings", m, m * (blocks + read_tasks), m * input_bytes, 2 * m * n, 3 * input_bytes
            )
            return [*stages, one], 2 * m * n, 1 + m, input_bytes
        own = base.plan(rows.blocks)
        stages += [
            StagePlan(
                stage.name,
                m * stage.passes,
                m * stage.tasks,
                m * stage.read_bytes,
                m * stage.written_bytes,
                stage.task_bytes,
            )
            for stage in own.stages
        ]
        return stages, 2 * m * n + own.scratch_bytes, 1 + m * own.input_passes, 0


def ensemble_block(
    block: NDArray[Any], members: list[tuple[Any, dict[str, Any]]], outcome: Any, arguments: dict[str, Any]
) -> NDArray[Any]:
    """Label a raw block by every base clusterer, then apply a function of base clusterings (n, m)."""
    return outcome(members_block(block, members), **arguments)


def members_block(block: NDArray[Any], members: list[tuple[Any, dict[str, Any]]]) -> NDArray[Any]:
    """Label a raw block by every base clusterer, (n, m)."""
    return np.stack([function(block, **own) for function, own in members], axis=1)


def _guide(
    given: Constraints | None, known: RowConstraints | None, boundary: Boundary
) -> Callable[[RowSample | None], dict[str, Any]]:
    """Function of a sample of the rows, or None for all, that gives what a base clusterer's `fit` gets beside them."""
    if given is None or known is None:
        return unguided
    if known.codes is not None:
        # Checked, and held: the user's labels may be costly to compute, and m fits read them.
        codes, _ = boundary.rows("classes", known.codes)
        given = Constraints(labels=codes, weight=known.confidences, n_samples=given.n_samples)
    return partial(guided, constraints=given)


def unguided(taken: RowSample | None) -> dict[str, Any]:
    """What a `fit` without constraints gets beside the rows."""
    return {}


def guided(taken: RowSample | None, constraints: Constraints) -> dict[str, Any]:
    """What a `fit` on a sample of the rows gets beside these; its constraints are from labels, see `Ensemble.fit`."""
    if taken is None:
        return {"constraints": constraints}
    labels, weight = (
        taken.take(column) if isinstance(column, da.Array) else column
        for column in (constraints.labels, constraints.weight)
    )
    return {"constraints": Constraints(labels=labels, weight=weight, n_samples=sum(taken.counts))}


def _repeat_warnings(members: list[Member]) -> None:
    """Say once what base clusterers said, each about itself: the first of them, and how many did."""
    heard: dict[Any, list[str]] = {}
    for member in members:
        own = {(warned.category, warned.filename, warned.lineno): str(warned.message) for warned in member.warned}
        for what, text in own.items():
            heard.setdefault(what, []).append(text)
    for (category, *_), texts in heard.items():
        warn_user(f"in {len(texts)} of {len(members)} base clusterings: {texts[0]}", category)


def _spectral_parameters(base: USPEC) -> SpectralBase:
    return SpectralBase(
        n_representatives=base.n_representatives,
        n_neighbors=base.n_neighbors,
        selection=base.selection,
        neighbors=base.neighbors,
        candidate_factor=base.candidate_factor,
        neighbor_factor=base.neighbor_factor,
        n_candidates=n_candidates(base.selection, base.n_representatives, base.candidate_factor),
        max_iter=base.max_iter,
    )


def _as_uspec(base: USPEC, model: dict[str, Any], number: int, seed: int, found: RowScan) -> USPEC:
    """A U-SPEC base clustering as the fitted estimator that labels new rows."""
    fitted: USPEC = clone(base).set_params(n_clusters=number, random_state=seed)
    fitted.representatives_ = model["representatives"]
    fitted.neighborhood_size_ = int(model["neighborhood"])
    fitted.bandwidth_ = float(model["bandwidth"]) / found.form.scale
    fitted.eigenvalues_ = model["eigenvalues"]
    fitted.cluster_centers_ = model["centers"]
    fitted.n_clusters_ = len(model["centers"])
    fitted.n_iter_ = 0
    fitted.n_features_in_ = fitted.representatives_.shape[1]
    fitted._vectors, fitted._seed = model["vectors"], seed
    fitted._shift, fitted._scale = found.form.shift, found.form.scale
    return fitted


@where_it_predicts
class Ensemble(_EnsembleBase):
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
        `BipartiteCut` (None), `SEC` or `ISEC`; an `ISEC` without `n_representatives` leaves the ensemble without
        `predict` and `transform`. Its ``n_clusters``, ``random_state``, ``storage`` and ``verbose`` are
        the ensemble's.
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
    storage : path, optional
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
        That of the consensus.
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
            For a constrained base clusterer, instead of `y`. With ``sample_rate`` < 1 they must be from labels.

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
        if y is None and constraints is None:
            return self._fit(X, None)
        given = given_constraints(y, constraints)
        if self.sample_rate < 1 and given.labels is None:
            raise ValueError("constraints must be from labels with sample_rate < 1: pairs name rows of the whole")
        return self._fit(X, given)

    def fit_predict(self, X: ArrayInput, y: Any = None, *, constraints: Any = None) -> Any:
        """Cluster the rows and return `labels_`; see `fit`."""
        return self.fit(X, y, constraints=constraints).labels_

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not 0 < check_real("sample_rate", self.sample_rate, 0.0) <= 1:
            raise ValueError(f"sample_rate must be above 0 and at most 1, got {self.sample_rate}")
        check_flag("predict_unsampled", self.predict_unsampled)
        if self.base is not None:
            if isinstance(self.base, type | Consensus) or not all(
                hasattr(self.base, name) for name in ("get_params", "fit_predict")
            ):
                raise TypeError(f"base must be a clusterer of rows, with fit_predict, or None, got {self.base!r}")
            if self.predict_unsampled and not hasattr(self.base, "predict"):
                raise ValueError(f"predict_unsampled must be False for a base without predict, got {self.base!r}")
        if self.consensus is not None and not isinstance(self.consensus, Consensus):
            raise TypeError(f"consensus must be a BipartiteCut, SEC or ISEC, or None, got {self.consensus!r}")

    def _boundary(self, **instead: Any) -> Boundary:
        base, consensus = self._parts()  # with the parameters that are the ensemble's
        return super()._boundary(base=base, consensus=consensus, **instead)

    def _parts(self) -> tuple[Any, Consensus]:
        base = USPEC() if self.base is None else clone(self.base)
        consensus = BipartiteCut() if self.consensus is None else clone(self.consensus)
        known = base.get_params(deep=False)
        own = {"n_clusters": self.n_clusters, "random_state": None, "storage": None, "verbose": False}
        consensus.set_params(**own)
        base.set_params(**{name: value for name, value in (own | {"missing": self.missing}).items() if name in known})
        for part in (base, consensus):
            if isinstance(part, OWN):  # others may have a method of this name, which is their own matter
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


class USENC(_EnsembleBase):
    """Ultra-scalable ensemble clustering: m U-SPEC base clusterings and their bipartite cut.

    Parameters
    ----------
    n_clusters : int
        k, clusters of the consensus.
    n_base_clusterings : int
        m.
    k_range : pair of int
        Smallest and largest number of clusters of a base clustering; each draws its own. Lowered where there are few
        rows: no more than twice the square root of their number, see `k_range_`.
    n_representatives, n_neighbors, selection, neighbors, candidate_factor, neighbor_factor, metric
        Of every base clustering, see `USPEC`.
    n_init : int
        k-means++ starts of the consensus' discretisation.
    max_iter : int
        Lloyd passes of it, at most; and of ``selection="kmeans"``.
    missing : {"raise", "label"}
        Rows with NaN or infinity: an error that names the first one, or the label -1, and the others are clustered as
        if such rows were absent.
    random_state : int, numpy RandomState or Generator, or None
    storage : path, optional
        Named store: a run that was killed continues at the first base clustering that is not there. See `USPEC`.
    verbose : bool
        Show the progress of the stages on stderr.

    Attributes
    ----------
    labels_ : (n,) int32
        NumPy for NumPy; a lazy dask array for chunked input. Clusters are numbered by their first row.
    agreement_ : (n,) float32
        How far the base clusterings agree with the consensus on each row, see `BipartiteCut`.
    base_labels_ : (n, m) int32
        The base clusterings; -1 for missing rows.
    base_n_clusters_ : (m,) int64
        Clusters of each base clustering.
    k_range_ : tuple of int
        The range from which numbers of clusters were drawn.
    estimators_ : list of USPEC
        The base clusterings' models.
    consensus_ : BipartiteCut
        The fitted consensus.
    n_clusters_ : int
        k, or fewer (with a `FewerClustersWarning`) when the base clusterings do not tell more apart.
    n_iter_ : int
        That of the consensus.
    n_features_in_ : int

    Raises
    ------
    ValueError
        In `fit`, before any heavy work: if a parameter or the input is not acceptable.

    Notes
    -----
    U-SENC of Huang, Wang, Wu, Lai, Kwoh, TKDE 2019 (uspec_usenc_2019), section 3.2. Departures are described where they
    are made: `ensemble.generation.spectral_members` and `BipartiteCut`. The same as
    ``Ensemble(base=USPEC(), consensus=BipartiteCut(n_init=3), k_range=(20, 60))``. Labels are bit-equal for any
    chunking, scheduler, number of workers and BLAS threads.

    Examples
    --------
    >>> import daskcluster as dc
    >>> X, y = dc.datasets.make_concentric_circles(3000, chunks=1000, random_state=0)
    >>> model = dc.USENC(n_clusters=3, n_base_clusterings=5, n_representatives=200, random_state=0).fit(X)
    >>> round(dc.metrics.normalized_mutual_info(y, model.labels_), 2)
    1.0
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_base_clusterings: int = 20,
        k_range: tuple[int, int] = (20, 60),
        n_representatives: int = 1000,
        n_neighbors: int = 5,
        selection: str = "hybrid",
        neighbors: str = "approximate",
        candidate_factor: int = 10,
        neighbor_factor: int = 10,
        metric: str = "euclidean",
        n_init: int = 3,
        max_iter: int = 100,
        missing: str = "raise",
        random_state: Seed = None,
        storage: PathInput | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_base_clusterings = n_base_clusterings
        self.k_range = k_range
        self.n_representatives = n_representatives
        self.n_neighbors = n_neighbors
        self.selection = selection
        self.neighbors = neighbors
        self.candidate_factor = candidate_factor
        self.neighbor_factor = neighbor_factor
        self.metric = metric
        self.n_init = n_init
        self.max_iter = max_iter
        self.missing = missing
        self.random_state = random_state
        self.storage = storage
        self.verbose = verbose

    def _check_parameters(self) -> None:
        if self.k_range is None:
            raise ValueError("k_range must be a pair (smallest, largest), got None")
        super()._check_parameters()

    def _parts(self) -> tuple[Any, Consensus]:
        base = USPEC(
            n_representatives=self.n_representatives,
            n_neighbors=self.n_neighbors,
            selection=self.selection,
            neighbors=self.neighbors,
            candidate_factor=self.candidate_factor,
            neighbor_factor=self.neighbor_factor,
            metric=self.metric,
            n_init=self.n_init,
            max_iter=self.max_iter,
            missing=self.missing,
        )
        consensus = BipartiteCut(self.n_clusters, n_init=self.n_init, max_iter=self.max_iter)
        base._check_parameters()
        consensus._check_parameters()
        return base, consensus
