"""What holds several arrays and is none: one of them by its name, or refused at once with the names of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scipy.sparse import issparse

__all__ = ["array_of_obsm", "refuse_container"]


def array_of_obsm(X: Any, key: Any) -> Any:
    """The array ``X.obsm[key]`` of an annotated matrix, as it is there: in memory, lazy, or on disk."""
    if not _is_annotated(X):
        raise TypeError(
            f"obsm is the name of an array in an AnnData object, and X is {type(X).__name__}; pass X without obsm"
        )
    names = _names(X.obsm)
    if key not in names:
        raise ValueError(
            f"obsm must be one of {', '.join(map(repr, names)) or 'no names, as X.obsm is empty'}, got {key!r}"
        )
    return X.obsm[key]


def refuse_container(name: str, X: Any) -> None:
    """Raise TypeError for an annotated matrix (AnnData and its like) and for a mapping of arrays.

    NumPy would make something of them, element by element, for as long as it takes.
    """
    kind = type(X).__name__
    if _is_annotated(X):
        inside = [f"{kind}.obsm[{key!r}]" for key in _names(X.obsm)] + [f"{kind}.X"] * hasattr(X, "X")
    elif isinstance(X, Mapping) and not issparse(X):  # one format of SciPy's is a mapping
        inside = [f"[{key!r}]" for key in _names(X)]
    else:
        return
    shown = ", ".join(inside[:6]) + (f" and {len(inside) - 6} more" if len(inside) > 6 else "")
    raise TypeError(f"{name} must be one array (rows, features), got {kind}; pass one of those it holds: {shown}")


def _is_annotated(X: Any) -> bool:
    return hasattr(X, "obsm") and hasattr(X, "obs")


def _names(mapping: Any) -> Iterable[Any]:
    keys = getattr(mapping, "keys", None)
    return list(keys()) if callable(keys) else []
