"""Contingency tables on one block: which pairs of labels occur together, and how often.

The table of a block is kept as its nonzero entries, so that a block costs no more than its rows even when
nearly every row has a label of its own. `contingency_finalize` makes the dense table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..typing import Array

__all__ = ["PairCounts", "contingency_chunk", "contingency_combine", "contingency_finalize"]

#: Rows counted at a time: their temporaries stay in the processor's cache.
SLICE_ROWS = 2**16


class PairCounts(NamedTuple):
    """Nonzero entries of a contingency table, ordered by row and column.

    Attributes
    ----------
    values_true : (r,)
        Distinct labels of the first labeling, ascending; they name the rows of the table.
    values_pred : (s,)
        Distinct labels of the second labeling, ascending; they name the columns.
    rows, columns : (c,) int64
        Place of every entry, 0 <= rows < r, 0 <= columns < s.
    counts : (c,) int64
        Rows of the data with this pair of labels, > 0.
    """

    values_true: Array
    values_pred: Array
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    counts: NDArray[np.int64]


def contingency_chunk(labels_true: Array, labels_pred: Array) -> PairCounts:
    """Count the pairs of labels of one block.

    Parameters
    ----------
    labels_true, labels_pred : (n,)
        Of any type that sorts, without missing values; the two may differ in type.

    Returns
    -------
    PairCounts

    Notes
    -----
    Integers whose ranges span a table of at most ``max(8 n, SLICE_ROWS)`` entries are counted in place,
    without sorting: O(n). Everything else (gaps, huge values, strings) is sorted: O(n log n). Memory O(n) in
    both cases.
    """
    true_range, pred_range = _integer_range(labels_true), _integer_range(labels_pred)
    if true_range and pred_range and true_range[1] * pred_range[1] <= max(8 * len(labels_true), SLICE_ROWS):
        return _count_in_place(labels_true, labels_pred, true_range, pred_range)
    values_true, codes_true = np.unique(labels_true, return_inverse=True)
    values_pred, codes_pred = np.unique(labels_pred, return_inverse=True)
    keys, counts = np.unique(codes_true.astype(np.int64) * len(values_pred) + codes_pred, return_counts=True)
    rows, columns = np.divmod(keys, max(1, len(values_pred)))
    return PairCounts(values_true, values_pred, rows, columns, counts.astype(np.int64))


def contingency_combine(parts: Sequence[PairCounts]) -> PairCounts:
    """Add the tables of several blocks; exact, so the order of the parts and their grouping do not matter.

    Parameters
    ----------
    parts : sequence of PairCounts
        At least one.
    """
    if len(parts) == 1:
        return parts[0]
    values_true = np.unique(np.concatenate([part.values_true for part in parts]))
    values_pred = np.unique(np.concatenate([part.values_pred for part in parts]))
    keys = np.concatenate(
        [
            np.searchsorted(values_true, part.values_true)[part.rows] * len(values_pred)
            + np.searchsorted(values_pred, part.values_pred)[part.columns]
            for part in parts
        ]
    )
    distinct, places = np.unique(keys, return_inverse=True)
    counts = np.zeros(len(distinct), np.int64)
    np.add.at(counts, places, np.concatenate([part.counts for part in parts]))
    rows, columns = np.divmod(distinct.astype(np.int64), max(1, len(values_pred)))
    return PairCounts(values_true, values_pred, rows, columns, counts)


def contingency_finalize(pairs: PairCounts) -> NDArray[np.int64]:
    """Make the dense table (r, s) int64."""
    table = np.zeros((len(pairs.values_true), len(pairs.values_pred)), np.int64)
    table[pairs.rows, pairs.columns] = pairs.counts
    return table


def _integer_range(labels: Array) -> tuple[int, int] | None:
    """Smallest label and length of the range of labels, in exact integers; None if there is no such thing."""
    if labels.dtype.kind not in "biu" or labels.size == 0:
        return None
    smallest = int(labels.min())
    return smallest, int(labels.max()) - smallest + 1


def _count_in_place(
    labels_true: Array, labels_pred: Array, true_range: tuple[int, int], pred_range: tuple[int, int]
) -> PairCounts:
    (first_true, n_true), (first_pred, n_pred) = true_range, pred_range
    flat = np.zeros(n_true * n_pred, np.int64)
    step = max(SLICE_ROWS, len(flat))  # so that filling and adding tables never outweighs counting
    for start in range(0, len(labels_true), step):
        codes = _shifted(labels_true[start : start + step], first_true)
        codes *= n_pred
        codes += _shifted(labels_pred[start : start + step], first_pred)
        flat += np.bincount(codes, minlength=len(flat))
    table = flat.reshape(n_true, n_pred)
    present_true: Array = np.any(table, axis=1)  # (r range,)
    present_pred: Array = np.any(table, axis=0)  # (s range,)
    rows, columns = np.nonzero(table[np.ix_(present_true, present_pred)])
    return PairCounts(
        _labels_of(present_true, first_true, labels_true.dtype),
        _labels_of(present_pred, first_pred, labels_pred.dtype),
        rows.astype(np.int64),
        columns.astype(np.int64),
        flat[flat > 0],
    )


def _shifted(labels: Array, smallest: int) -> NDArray[np.int64]:
    """Labels minus the smallest, which overflows neither narrow types nor uint64 beyond the int64 range."""
    if labels.dtype.kind == "u":
        return (labels - labels.dtype.type(smallest)).astype(np.int64)
    return labels.astype(np.int64) - smallest


def _labels_of(present: Array, smallest: int, dtype: np.dtype[np.generic]) -> Array:
    offsets = np.flatnonzero(present)
    if dtype.kind == "u":
        return offsets.astype(dtype) + dtype.type(smallest)
    return (offsets + smallest).astype(dtype)
