"""What the consensus functions share: base clusterings (n, m) -> their consensus (n,)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from ...ensemble.agreement import Agreement, Rule, agreement_block
from ...ensemble.incidence import (
    LABEL_DTYPE,
    BaseClusters,
    Coded,
    LabelBook,
    LabelCoder,
    check_label_block,
    label_sizes,
)
from ...errors import FewerClustersWarning, warn_user
from ...io.inputs import Rows, Source, cut_rows
from ...pipeline.discretize import warn_few_points
from ...pipeline.outputs import Label
from ...runtime.execution import map_rows
from ...runtime.forecast import Sizes
from ...runtime.stages import Run, Stage, StageList
from ...typing import ArrayInput
from ..base import RowClusterer

__all__ = ["Consensus", "ConsensusStages"]


@dataclass(frozen=True)
class ConsensusStages(StageList):
    """The stages of a consensus; `solving` are those of the one method."""

    code: BaseClusters
    solving: tuple[Stage, ...]
    agreement: Agreement
    label: Label


class Consensus(RowClusterer):
    """Base of the consensus functions.

    The input are base clusterings (n, m), any whole numbers >= 0, -1 for no label. A subclass gives its parameters and
    three methods: `_solving`, the stages that find the consensus; `_solve`, which calls them and sets the attributes of
    the model; and `_rule`, what the model says of rows by their codes.
    """

    # The attributes of the model that every consensus has.
    _book_names = ("base_cluster_sizes_", "n_clusters_", "_values", "_offsets", "_shares")
    missing = "label"
    _fill = "-1"

    @abstractmethod
    def _solving(self) -> tuple[Stage, ...]:
        """The stages between the base clusters and the agreement, in their order."""

    @abstractmethod
    def _solve(self, run: Run, coded: Coded) -> Rule | None:
        """Call these stages on coded base clusterings and set the fitted attributes, `n_clusters_` among them.

        The rule of the rows of this fit, where the model has none: None means that `_rule` serves them too.
        """

    @abstractmethod
    def _rule(self) -> Rule:
        """What the fitted attributes say of rows by their codes."""

    def _finish(self, sums: dict[str, Any], book: LabelBook) -> None:
        """Set what follows from the sums of the final partition, see `agreement_shares`."""

    # -- fit -----------------------------------------------------------------------------------------------------------

    def _stages(self) -> ConsensusStages:
        solving = self._solving()
        return ConsensusStages(
            BaseClusters(self.n_clusters, solving),
            solving,
            Agreement(self.n_clusters),
            Label(task_row_bytes=16 * self.n_clusters, outputs=("labels", "agreement")),
        )

    def fit(self, X: ArrayInput, y: Any = None) -> Self:
        """Find the consensus.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)
            A base clustering a column: whole numbers >= 0 of any kind and with gaps, -1 for no label.
        y : ignored

        Returns
        -------
        self
        """
        with self._run(X) as run:
            s = self._stages()
            coded = run(s.code, run.rows)
            lazy = self._find(run, coded)
            outputs = run(s.label, lazy, self._again(run.rows))
            self.labels_, self.agreement_ = outputs["labels"], outputs["agreement"]
        n_without = run.rows.n_samples - coded.n_labelled
        if n_without:
            warn_user(f"{n_without} rows have no label in any base clustering; they get the label -1")
        self._warn()
        return self

    def _find(self, run: Run, coded: Coded) -> dict[str, da.Array]:
        """Fit the model on coded base clusterings; their labels and agreement, lazy."""
        book = coded.book
        self.base_cluster_sizes_ = book.sizes
        self._values, self._offsets = book.values, book.offsets
        rule = self._solve(run, coded) or self._rule()
        sums = run(self._stages().agreement, coded, rule.labels, self.n_clusters_)
        self._shares = sums["counts"] / np.maximum(book.sizes, 1)[:, None]
        self._finish(sums, book)
        return {
            "labels": map_rows(rule.labels, coded.codes, name="dc-assign", columns=None, dtype=np.int32),
            "agreement": map_rows(
                self._agreement_of(rule), coded.codes, name="dc-agree", columns=None, dtype=np.float32
            ),
        }

    def _agreement_of(self, rule: Rule) -> Any:
        return partial(agreement_block, labels_of=rule.labels, offsets=self._offsets, shares=self._shares)

    def _warn(self) -> None:
        """Say what the fitted model is short of."""
        if self.n_clusters_ < self.n_clusters:
            warn_user(
                f"{type(self).__name__} found {self.n_clusters_} clusters, not n_clusters={self.n_clusters}: "
                "the base clusterings do not tell more apart",
                FewerClustersWarning,
            )
        else:
            warn_few_points(self)

    def _sizes(self, sizes: Sizes) -> Sizes:
        return label_sizes(sizes)

    def _check_size(self, rows: Rows) -> None:
        super()._check_size(rows)
        if rows.n_features >= 50 and rows.n_features > 2 * rows.n_samples:
            warn_user(
                f"X has {rows.n_samples} rows and {rows.n_features} columns, a base clustering each: is it transposed? "
                "The labels of one base clustering are a column"
            )

    def _cut(self, source: Source) -> Rows:
        return cut_rows(source, "label", LABEL_DTYPE)

    # -- new rows ------------------------------------------------------------------------------------------------------

    @property
    def _book(self) -> LabelBook:
        return LabelBook(self._values, self._offsets, self.base_cluster_sizes_)

    @property
    def _n_features_out(self) -> int:
        return self._rule().n_points

    def _block_check(self, rows: Rows) -> Any:
        return check_label_block

    def _output(self, what: str, dtype: np.dtype[Any]) -> tuple[int | None, Any]:
        return (None, np.float32) if what == "agreement" else super()._output(what, dtype)

    def _block_function(self, what: str, dtype: np.dtype[Any]) -> tuple[Any, dict[str, Any]]:
        rule = self._rule()
        outcome = {"labels": rule.labels, "points": rule.points, "agreement": self._agreement_of(rule)}[what]
        return coded_block, {"coder": LabelCoder(self._book), "outcome": outcome}

    def predict(self, X: ArrayInput) -> Any:
        """Label rows by their base clusterings, new or old.

        Parameters
        ----------
        X : NumPy array, dask array, zarr.Array or path, (n, m)
            The same m base clusterings; a label that `fit` has not seen counts as missing.

        Returns
        -------
        labels : (n,) int32
            NumPy for NumPy, a lazy dask array for chunked input; -1 for rows without a known label. For the rows of
            `fit` equal to `labels_`.

        Raises
        ------
        ValueError
            If a label is no whole number >= -1 (its place is named), or there is another number of base clusterings.
        """
        return super().predict(X)

    def transform(self, X: ArrayInput) -> Any:
        """Bring rows into the space in which they are clustered; the class says what it is."""
        return super().transform(X)

    def __sklearn_tags__(self) -> Tags:
        """scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        tags.input_tags.categorical = True
        return tags


def coded_block(block: NDArray[Any], coder: LabelCoder, outcome: Any) -> NDArray[Any]:
    """Apply a function of codes to a block of labels."""
    return outcome(coder(block))
