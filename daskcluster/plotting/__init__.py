"""Pictures of labels, eigenvalues and tables; matplotlib is imported when one is drawn."""

from .charts import (
    plot_cluster_sizes,
    plot_contingency,
    plot_eigenvalues,
    plot_labels,
    plot_n_clusters,
)
from .drawing import PALETTE, UNLABELED
from .maps import plot_agreement_map, plot_label_map
from .profiles import plot_profiles

__all__ = [
    "PALETTE",
    "UNLABELED",
    "plot_agreement_map",
    "plot_cluster_sizes",
    "plot_contingency",
    "plot_eigenvalues",
    "plot_label_map",
    "plot_labels",
    "plot_n_clusters",
    "plot_profiles",
]
