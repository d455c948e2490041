"""Classes that a stored model may name: estimators enter themselves here when they are defined."""

from __future__ import annotations

import importlib

__all__ = ["find_class", "register"]

#: Where the package's own estimators are defined, for a name that is asked for before they were imported.
_PROVIDER = "daskcluster.estimators"

_classes: dict[str, type] = {}


def register(cls: type) -> None:
    """Enter a class under its name. One of another package does not take the place of one of this package."""
    present = _classes.get(cls.__name__)
    if present is None or _is_own(cls) or not _is_own(present):
        _classes[cls.__name__] = cls


def find_class(name: str) -> type | None:
    """The class of this name, or None."""
    if name not in _classes:
        importlib.import_module(_PROVIDER)
    return _classes.get(name)


def _is_own(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == __name__.partition(".")[0]
