"""Columns of partial labels and of weights: opened, and checked block by block."""

from __future__ import annotations

from numbers import Number, Real
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..io.columns import open_column
from ..runtime.execution import compute

__all__ = [
    "MOST_ROWS",
    "check_labels",
    "check_weights",
    "known_labels",
    "labels_in_memory",
    "open_confidence",
    "open_groups",
    "whole_labels",
]

#: The least weight: weights of rows are float32, in which smaller ones lose their digits or are 0.
LEAST_WEIGHT = float(np.finfo(np.float32).tiny)
#: Row numbers and labels are int64.
MOST_ROWS = 2**63


def open_groups(groups: Any) -> NDArray[Any] | da.Array:
    """Groups of rows (n,) in the form of labels: any negative number is -1.

    Raises
    ------
    ValueError
        If they are no numbers; numbers of a NumPy array are checked.
    """
    column = open_column("groups", groups)
    if column.dtype.kind not in "biuf":
        raise ValueError(f"groups must hold whole numbers, negative ones for none, got dtype {column.dtype}")
    if isinstance(column, np.ndarray):
        column = _without_negatives(column)
        check_labels(column, 0, "groups")
        return column
    return column.map_blocks(_without_negatives, dtype=column.dtype, meta=np.empty(0, column.dtype), token="dc-groups")


def _without_negatives(groups: NDArray[Any]) -> NDArray[Any]:
    if groups.dtype.kind not in "if":
        return np.asarray(groups)
    return np.where((groups < 0) & (groups == np.floor(groups)), groups.dtype.type(-1), groups)


def open_confidence(weight: Any, n_samples: int, of: str = "labels") -> Any:
    """Confidence of so many labels, in (0, 1]: a float, or one array (n,) whose numbers are not yet checked."""
    if isinstance(weight, np.ndarray) and weight.ndim == 0:
        weight = weight.item()
    if isinstance(weight, Number):
        if not isinstance(weight, Real):
            raise ValueError(f"weight must hold numbers, got {weight!r}")
        if not LEAST_WEIGHT <= float(weight) <= 1:
            raise ValueError(_bad_weight("weight", weight))
        return float(weight)
    column = open_column("weight", weight)
    if column.dtype.kind not in "biuf":
        raise ValueError(f"weight must hold numbers, got dtype {column.dtype}")
    if len(column) != n_samples:
        raise ValueError(
            f"weight must be one number or have one entry for each of the {n_samples} {of}, got {len(column)}"
        )
    return column


def known_labels(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels are known: NaN and -1 are not."""
    return ~np.isnan(labels) & (labels != -1) if labels.dtype.kind == "f" else labels != -1


def whole_labels(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Checked labels as int64, -1 for unknown."""
    return np.where(known_labels(labels), labels, -1).astype(np.int64)


def labels_in_memory(labels: NDArray[Any] | da.Array, name: str = "y") -> NDArray[np.int64]:
    """Partial labels (n,), or groups, checked, -1 for unknown.

    Raises
    ------
    ValueError
        Naming the first bad one and its row.
    """
    found = compute(labels)[0] if isinstance(labels, da.Array) else labels
    check_labels(found, 0, name)
    return whole_labels(found)


def check_labels(labels: NDArray[Any], first_row: int, name: str = "y") -> None:
    """Check partial labels (n,), or groups, of rows that follow each other.

    Raises
    ------
    ValueError
        Naming the first bad one and its row.
    """
    if labels.dtype.kind == "f":
        with np.errstate(over="ignore"):  # of long doubles
            numbers = labels.astype(np.float64)
        bad = known_labels(labels) & ~((numbers >= 0) & (numbers == np.floor(numbers)) & (numbers < 2**53))
    elif labels.dtype.kind == "u":
        bad = labels >= MOST_ROWS
    else:
        bad = labels < -1 if labels.dtype.kind == "i" else np.zeros(len(labels), np.bool_)
    if bad.any():
        row = int(np.argmax(bad))
        none = "unknown" if name == "y" else "none"
        raise ValueError(
            f"{name} must hold whole numbers from 0 up, and -1 or NaN for {none}, "
            f"got {labels[row]} at row {first_row + row}"
        )


def check_weights(
    weights: NDArray[Any],
    first_row: int,
    known: NDArray[np.bool_] | None = None,
    *,
    name: str = "weight",
    of: str = "row",
) -> None:
    """Check weights (n,), of rows that follow each other or of pairs; those of rows without a label do not count.

    Raises
    ------
    ValueError
        Naming the first bad one and its row.
    """
    numbers = np.asarray(weights, np.float64)
    bad = ~((numbers >= LEAST_WEIGHT) & (numbers <= 1))
    if known is not None:
        bad &= known
    if bad.any():
        place = int(np.argmax(bad))
        raise ValueError(f"{_bad_weight(name, numbers[place])} at {of} {first_row + place}")


def _bad_weight(name: str, value: Any) -> str:
    least = f"at least {LEAST_WEIGHT:.2g}" if 0 < value < LEAST_WEIGHT else "above 0"
    return f"{name} must be {least} and at most 1, got {value}"
