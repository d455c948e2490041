"""Agreement of two labelings, and the objectives of one; all work chunk by chunk.

contingency.py   two labelings -> table                                                (r, s)
external.py      normalized mutual information, accuracy, purity, Rand indices         from the table
confidence.py    base clusterings and a consensus -> how far they bear it out, row by row
internal.py      inertia of rows and centers; normalized-cut value of a small graph
"""

from __future__ import annotations

from .confidence import consensus_confidence
from .contingency import contingency_matrix, count_labels
from .external import (
    adjusted_rand_index,
    adjusted_rand_index_from_table,
    clustering_accuracy,
    clustering_accuracy_from_table,
    normalized_mutual_info,
    normalized_mutual_info_from_table,
    purity,
    purity_from_table,
    rand_index,
    rand_index_from_table,
)
from .internal import inertia, normalized_cut_value

__all__ = [
    "contingency_matrix",
    "count_labels",
    "normalized_mutual_info",
    "normalized_mutual_info_from_table",
    "clustering_accuracy",
    "clustering_accuracy_from_table",
    "purity",
    "purity_from_table",
    "rand_index",
    "rand_index_from_table",
    "adjusted_rand_index",
    "adjusted_rand_index_from_table",
    "inertia",
    "normalized_cut_value",
    "consensus_confidence",
]
