"""What the consensus functions of distinct rows share: how they keep those rows, and how they label others."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from ...ensemble.agreement import Rule
from ...ensemble.distinct import Distinct, LikelyLabels, cluster_likeness
from ...ensemble.incidence import Coded
from .base import Consensus

__all__ = ["DistinctConsensus"]


class DistinctConsensus(Consensus):
    """Base of the consensus functions that cluster distinct rows of labels; new rows join the most similar cluster."""

    _fitted_names = (*Consensus._book_names, "n_distinct_", "_distinct", "_distinct_labels", "_likeness")

    def _keep(self, coded: Coded, distinct: Distinct, labels: NDArray[Any], *shares: Any) -> None:
        """Set the model: the distinct rows with their clusters, and what `cluster_likeness` makes of them."""
        self._distinct, self.n_distinct_, self._distinct_labels = distinct.codes, len(distinct.counts), labels
        self._likeness = cluster_likeness(distinct, labels, coded.book, *shares)
        self.n_clusters_ = self._likeness.shape[1]

    def _rule(self) -> Rule:
        labels = LikelyLabels(self._distinct, self._distinct_labels, self._offsets, self._likeness)
        return Rule(labels, labels.means, self._likeness.shape[1])
