"""What Ensemble and USENC share: base clusterings, then their consensus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ...constraints.constraints import Constraints
from ...constraints.given import ScanConstrained
from ...constraints.row_constraints import RowConstraints
from ...ensemble.agreement import Agreement
from ...ensemble.fitted_members import FittedMembers, predict_finite, unguided
from ...ensemble.incidence import LABEL_DTYPE, BaseClusters, Coded
from ...ensemble.members import Member, Members
from ...ensemble.row_sample import RowSample
from ...ensemble.spectral_members import ScanPool, SpectralMembers, center_rows
from ...errors import warn_user
from ...io.inputs import block_rows
from ...pipeline.discretize import warn_few_points
from ...pipeline.model import SpectralModel, labels_function
from ...pipeline.outputs import Label, hand_out
from ...pipeline.scan import RowScan, Scan
from ...runtime.execution import active_client
from ...runtime.forecast import Sizes
from ...runtime.stages import Run, Stage, StageList
from ...typing import ArrayInput
from ...validation import check_integer
from ..base import Clusterer, RowClusterer
from ..consensus import Consensus
from ..uspec import USPEC

__all__ = ["EnsembleBase", "EnsembleStages"]


@dataclass(frozen=True)
class EnsembleStages(StageList):
    """The stages of an ensemble: those of the base clusterings, then those of the consensus."""

    scan: Scan
    make: SpectralMembers | FittedMembers
    code: BaseClusters
    solving: tuple[Stage, ...]
    agreement: Agreement
    label: Label


class EnsembleBase(RowClusterer):
    """What `Ensemble` and `USENC` share; a subclass gives `_parts`."""

    _fitted_names = ("consensus_", "estimators_", "n_clusters_", "n_iter_", "base_n_clusters_")
    n_base_clusterings: int
    k_range: Any
    sample_rate = 1.0
    predict_unsampled = False

    def _parts(self) -> tuple[Any, Consensus]:
        """The base clusterer and the consensus, fresh, with the ensemble's own parameters in them."""
        raise NotImplementedError

    @property
    def _n_graphs(self) -> int:
        """Graphs that spectral base clusterings share: each has its own."""
        return self.n_base_clusterings

    @property
    def _takes_sparse(self) -> bool:  # type: ignore[override]
        base = self._parts()[0]
        return not isinstance(base, Clusterer) or base._takes_sparse

    @property
    def _whose_rows(self) -> str:
        return f"an {type(self).__name__} of {type(self._parts()[0]).__name__}"

    # -- fit and plan --------------------------------------------------------------------------------------------------

    def _stages(self) -> EnsembleStages:
        check_integer("n_base_clusterings", self.n_base_clusterings, 1)
        base, consensus = self._parts()
        after = consensus._stages()
        shared = (self.n_clusters, self.n_base_clusterings, self.k_range, after.solving)
        scan: Scan
        make: SpectralMembers | FittedMembers
        if type(base) is USPEC and self.sample_rate >= 1:
            spectral = base._stages()
            graphs = self._n_graphs
            make = SpectralMembers(*shared, represent=spectral.represent, link=spectral.link, n_graphs=graphs).checked()
            most = self.n_clusters if self.k_range is None else int(self.k_range[1])
            scan = ScanPool(
                self.n_clusters,
                center_rows(most),
                base.metric,
                n_candidates=spectral.represent.n_candidates,
                n_graphs=graphs,
            )
        else:
            own = isinstance(base, Clusterer)
            make = FittedMembers(
                *shared,
                base=base,
                lazy=own,
                sample_rate=self.sample_rate,
                predict_unsampled=self.predict_unsampled,
                base_cost=base._cost if own else None,
            )
            scan = Scan(self.n_clusters, 1)
        return EnsembleStages(
            scan,
            make,
            BaseClusters(self.n_clusters, opens=False),
            after.solving,
            after.agreement,
            replace(after.label, more_row_bytes=5 * self.n_base_clusterings),
        )

    def _sized_stages(self, sizes: Sizes) -> list[tuple[Stage, Sizes]]:
        m, (_, consensus) = self.n_base_clusterings, self._parts()
        size = min(block_rows(m, LABEL_DTYPE), sizes.n_samples)
        n_blocks = -(-sizes.n_samples // size)
        labels = Sizes(
            n_samples=sizes.n_samples,
            n_features=m,
            n_blocks=n_blocks,
            block_rows=size,
            raw_bytes=2,
            number_bytes=LABEL_DTYPE.itemsize,
            read_tasks=(2 * m + 4) * max(n_blocks, sizes.n_blocks),
            in_memory=sizes.in_memory,
        )
        return [
            (stage, sizes if number < 2 else consensus._sizes(labels)) for number, stage in enumerate(self._stages())
        ]

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
        return self._fit(X, None)

    def _fit(self, X: ArrayInput, given: Constraints | None, y: Any = None) -> Self:
        """Fit; `given` guides the base clusterers, which take constraints."""
        with self._run(X, y=y) as run:
            base, consensus = self._parts()
            s = self._stages()
            found = run(s.scan) if given is None else run(_constrained(s.scan), None, given)
            made: Members = run(s.make, found, _guide(given, getattr(found, "known", None), run))
            if made.k_range is not None:
                self.k_range_ = made.k_range
            nothing = (
                f"base must label rows, got no label for any row in any of {self.n_base_clusterings} base "
                f"clusterings by {type(base).__name__}"
            )
            coded = run(s.code, made.labels, nothing)
            lazy = consensus._find(run, coded)
            self.consensus_ = consensus
            self.estimators_ = self._estimators(base, made)
            self.base_n_clusters_ = np.diff(coded.book.offsets)
            self.n_clusters_, self.n_iter_ = consensus.n_clusters_, getattr(consensus, "n_iter_", 1)
            consensus.n_features_in_ = self.n_base_clusterings
            outputs = run(s.label, lazy, self._again(run.rows))
            self.labels_, self.agreement_ = outputs["labels"], outputs["agreement"]
            self.base_labels_ = self._keep_base_labels(made.labels.blocks, run)
        self._say(made, found, coded)
        return self

    def _estimators(self, base: Any, made: Members) -> list[Any]:
        """The fitted base clusterers, where there are any."""

        def estimator(member: Member, number: Any, seed: int) -> Any:
            if type(base) is USPEC and isinstance(member.model, SpectralModel):
                return clone(base).set_params(n_clusters=number, random_state=seed)._take(member.model)
            return member.model

        fitted = [estimator(*each) for each in zip(made.members, made.numbers, made.seeds, strict=True)]
        return [model for model in fitted if model is not None]

    def _say(self, made: Members, found: RowScan, coded: Coded) -> None:
        """Warn of what the base clusterings and the consensus are short of."""
        made.repeat_warnings()
        n_without = found.n_valid - coded.n_labelled
        if n_without > 0:
            advice = ""
            if self.sample_rate < 1 and not self.predict_unsampled:
                advice = ": raise n_base_clusterings or sample_rate, or set predict_unsampled"
            warn_user(f"{n_without} rows have no label in any base clustering; they get the label -1{advice}")
        self.consensus_._warn()
        if self.n_clusters_ == self.n_clusters:
            warn_few_points(self)

    def _keep_base_labels(self, labels: da.Array, run: Run) -> Any:
        """`base_labels_`: NumPy; or the held arrays."""
        if run.rows.chunked and not run.products.named and active_client() is not None:
            again = partial(self._map, run.rows, "base labels") if self._members_predict else None
            labels = run.results.keep("base labels", labels, again)
        dtype = np.promote_types(labels.dtype, np.int32)
        if run.rows.chunked:
            return hand_out(labels.astype(dtype), run.rows)
        return hand_out(labels, run.rows).astype(dtype)  # joined while they are small

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
        members = [_labels_of(models, dtype) for models in _by_graph(self.estimators_)]
        if what == "base labels":
            return members_block, {"members": members}
        outcome, arguments = self.consensus_._block_function(what, np.dtype(np.int32))
        return ensemble_block, {"members": members, "outcome": outcome, "arguments": arguments}

    def _output(self, what: str, dtype: np.dtype[Any]) -> tuple[int | None, Any]:
        if what == "base labels":
            most = int(self.consensus_._values.max())
            return self.n_base_clusterings, np.promote_types(np.int32, np.min_scalar_type(-most - 1))
        return self.consensus_._output(what, dtype)

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


def ensemble_block(
    block: NDArray[Any], members: list[tuple[Any, dict[str, Any]]], outcome: Any, arguments: dict[str, Any]
) -> NDArray[Any]:
    """Label a raw block by every base clusterer, then apply a function of base clusterings (n, m)."""
    return outcome(members_block(block, members), **arguments)


def members_block(block: NDArray[Any], members: list[tuple[Any, dict[str, Any]]]) -> NDArray[Any]:
    """Label a raw block by every base clusterer, (n, m)."""
    return np.concatenate([function(block, **own).reshape(len(block), -1) for function, own in members], axis=1)


def _by_graph(estimators: list[Any]) -> list[list[Any]]:
    """Base clusterers in their order; those beside each other that share a graph together."""
    together: list[list[Any]] = []
    for model in estimators:
        last = together[-1][0] if together else None
        if type(model) is USPEC and type(last) is USPEC and last._model.shares_graph(model._model):
            together[-1].append(model)
        else:
            together.append([model])
    return together


def _labels_of(models: list[Any], dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
    """Function of a raw block that gives the labels by some base clusterers, and its other arguments."""
    if len(models) > 1:
        return labels_function([model._model for model in models], dtype)
    (model,) = models
    if isinstance(model, RowClusterer):
        function, arguments = model._block_function("labels", dtype)
        return function, dict(arguments)
    return predict_finite, {"clusterer": model}


def _constrained(scan: Scan) -> ScanConstrained:
    """The first stage of an ensemble with constraints; what is to be said of them, its base clusterers say."""
    return ScanConstrained(scan.n_clusters, scan.n_sampled, scan.metric, quiet=True)


def _guide(
    given: Constraints | None, known: RowConstraints | None, run: Run
) -> Callable[[RowSample | None], dict[str, Any]]:
    """Function of a sample of the rows, or None for all, that gives what a base clusterer's `fit` gets beside them."""
    if given is None or known is None:
        return unguided
    if known.codes is not None:
        # Checked, and held: the user's labels may be costly to compute, and m fits read them.
        codes, _ = run.products.rows("classes", known.codes)
        given = given.with_column(codes, known.confidences, run.rows.n_samples)
    return partial(guided, constraints=given)


def guided(taken: RowSample | None, constraints: Constraints) -> dict[str, Any]:
    """What a `fit` on a sample of the rows gets beside these; its constraints are no pairs, see `Ensemble.fit`."""
    if taken is None:
        return {"constraints": constraints}
    column, weight = (
        taken.take(column) if isinstance(column, da.Array) else column
        for column in (constraints.column, constraints.weight)
    )
    return {"constraints": constraints.with_column(column, weight, sum(taken.counts))}
