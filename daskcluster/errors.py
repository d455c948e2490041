"""Errors and warnings that users may want to catch."""

from __future__ import annotations

__all__ = ["FewerClustersWarning", "StorageMismatchError"]


class FewerClustersWarning(UserWarning):
    """Fewer clusters were found than asked for: too few distinct rows or representatives."""


class StorageMismatchError(ValueError):
    """A named store holds the products of other data, parameters or another method."""
