"""Errors and warnings that users may want to catch."""

from __future__ import annotations

import sys
import warnings

__all__ = ["FewerClustersWarning", "StorageMismatchError", "warn_user"]


class FewerClustersWarning(UserWarning):
    """Fewer clusters were found than asked for: too few distinct rows or representatives."""


class StorageMismatchError(ValueError):
    """A named store holds the products of other data, parameters or another method."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package and scikit-learn that led here: the user's, who can act on it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _package_of(frame.f_globals) in ("daskcluster", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package_of(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
