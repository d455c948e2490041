"""The warning that is one of scikit-learn's."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

__all__ = ["FewerClustersWarning"]


class FewerClustersWarning(ConvergenceWarning):
    """Fewer clusters were found than asked for: too few distinct rows or representatives.

    A kind of scikit-learn's `ConvergenceWarning`, with which its `KMeans` says the same.
    """
