"""The metrics of a labeling, all of them from one table of counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from daskcluster import metrics

__all__ = ["scores"]


def scores(classes: Any, labels: Any, seconds: float) -> dict[str, float]:
    """NMI (geometric mean of the entropies), accuracy by one-to-one matching, purity, ARI, and the seconds given."""
    table = np.asarray(metrics.contingency_matrix(classes, np.asarray(labels)))
    return {
        "NMI": metrics.normalized_mutual_info_from_table(table),
        "accuracy": metrics.clustering_accuracy_from_table(table),
        "purity": metrics.purity_from_table(table),
        "ARI": metrics.adjusted_rand_index_from_table(table),
        "seconds": seconds,
    }
