"""What holds several arrays and is none: refused at once, with the names of what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scipy.sparse import issparse

__all__ = ["refuse_container"]


def refuse_container(name: str, X: Any) -> None:
    """Raise TypeError for an annotated matrix (AnnData and its like) and for a mapping of arrays.

    NumPy would make something of them, element by element, for as long as it takes.
    """
    kind = type(X).__name__
    if hasattr(X, "obsm") and hasattr(X, "obs"):
        inside = [f"{kind}.obsm[{key!r}]" for key in _names(X.obsm)] + [f"{kind}.X"] * hasattr(X, "X")
    elif isinstance(X, Mapping) and not issparse(X):  # one format of SciPy's is a mapping
        inside = [f"[{key!r}]" for key in _names(X)]
    else:
        return
    shown = ", ".join(inside[:6]) + (f" and {len(inside) - 6} more" if len(inside) > 6 else "")
    raise TypeError(f"{name} must be one array (rows, features), got {kind}; pass one of those it holds: {shown}")


def _names(mapping: Any) -> Iterable[Any]:
    keys = getattr(mapping, "keys", None)
    return list(keys()) if callable(keys) else []
