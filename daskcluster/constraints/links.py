"""Pairs of rows of one kind: checked, sorted, each once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..io.inputs import as_array
from ..runtime.execution import compute
from ..validation import check_kind
from .labels import MOST_ROWS, check_weights, labels_in_memory

__all__ = ["MOST_ENTRIES", "NO_LINKS", "Links", "check_links", "expand_groups", "expand_labels", "named_rows"]

#: Pairs are formed up to so many entries of a matrix.
MOST_ENTRIES = 2**26


@dataclass(frozen=True)
class Links:
    """Pairs of rows of one kind.

    Attributes
    ----------
    first, second : (m,) int64
        first < second, in ascending order, each pair once.
    weights : (m,) float64
        In (0, 1].
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.first)

    @property
    def pairs(self) -> NDArray[np.int64]:
        """The pairs (m, 2)."""
        return np.stack([self.first, self.second], axis=1)

    def among(self, rows: NDArray[np.int64]) -> Links:
        """The links between these rows, which ascend."""
        kept = np.isin(self.first, rows) & np.isin(self.second, rows)
        return Links(self.first[kept], self.second[kept], self.weights[kept])

    def renumbered(self, rows: NDArray[np.int64]) -> Links:
        """The links between these rows, which ascend, by their places in `rows`."""
        kept = self.among(rows)
        return Links(np.searchsorted(rows, kept.first), np.searchsorted(rows, kept.second), kept.weights)


NO_LINKS = Links(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


def named_rows(*links: Links) -> NDArray[np.int64]:
    """Numbers of the rows that links name, ascending."""
    return np.unique(np.concatenate([side for each in links for side in (each.first, each.second)]))


def check_links(name: str, pairs: Any, weight: Any) -> Links:
    """Links of given pairs: smaller row first, sorted, each once with its largest weight."""
    if pairs is not None:
        check_kind(name, pairs, "pairs of rows, shape (m, 2)")
    array = np.empty((0, 2), np.int64) if pairs is None else _in_memory(name, pairs, "be pairs of rows, shape (m, 2)")
    weights = np.ones(()) if weight is None else _in_memory(f"{name}_weight", weight, "be numbers")
    if weights.dtype.kind not in "biuf":
        raise ValueError(f"{name}_weight must hold numbers, got {weight!r:.100}")
    if array.size == 0:
        if weights.size > 1:
            raise ValueError(f"{name}_weight must have one entry a pair, got {weights.size} for no pairs")
        return NO_LINKS
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"{name} must be pairs of rows, shape (m, 2), got shape {array.shape}")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} must hold row numbers, got dtype {array.dtype}")

    def refuse(bad: NDArray[np.bool_], what: str) -> None:
        if bad.any():
            first, second = array[np.argmax(bad if bad.ndim == 1 else bad.any(axis=1))].tolist()
            raise ValueError(f"{name} must {what}, got the pair ({first}, {second})")

    if array.dtype.kind == "f":
        refuse(~np.isfinite(array) | (array != np.floor(array)), "hold row numbers")
    refuse(array < 0, "name rows from 0 up")
    refuse(array >= MOST_ROWS, "name rows below 2**63")
    array = array.astype(np.int64)
    refuse(array[:, 0] == array[:, 1], "not link a row to itself")
    if weights.ndim == 0:
        weights = np.full(len(array), weights)
    if weights.shape != (len(array),):
        raise ValueError(f"{name}_weight must be one number or have shape ({len(array)},), got shape {weights.shape}")
    check_weights(weights, 0, name=f"{name}_weight", of="place")
    first, second = array.min(axis=1), array.max(axis=1)
    order = np.lexsort((second, first))
    first, second, weights = first[order], second[order], weights[order].astype(np.float64)
    starts = np.flatnonzero(np.r_[True, (np.diff(first) != 0) | (np.diff(second) != 0)])
    return Links(first[starts], second[starts], np.maximum.reduceat(weights, starts))


def _in_memory(name: str, values: Any, wanted: str) -> NDArray[Any]:
    """A small array as it was given, without a mask."""
    if isinstance(values, da.Array):
        values = compute(values)[0]
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must {wanted}, without masked entries")
    return as_array(name, values, wanted)


def expand_groups(groups: NDArray[Any] | da.Array, weight: Any) -> tuple[Links, Links]:
    """All cannot-links of groups, and no must-links; see `expand_labels`."""
    found = labels_in_memory(groups, "groups")
    rows = np.flatnonzero(found >= 0)
    rows = rows[np.argsort(found[rows], kind="stable")]
    starts = np.flatnonzero(np.r_[True, np.diff(found[rows]) != 0]) if len(rows) else np.empty(0, np.intp)
    sizes = np.diff(np.r_[starts, len(rows)])
    if int((sizes**2).sum()) > MOST_ENTRIES:
        raise ValueError(f"the groups make {int((sizes**2).sum())} entries, more than {MOST_ENTRIES}")
    weight = compute(weight)[0] if isinstance(weight, da.Array) else weight
    confidences = np.broadcast_to(np.asarray(1.0 if weight is None else weight, np.float64), found.shape)
    check_weights(confidences, 0, found >= 0)
    first, second = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for size in np.unique(sizes[sizes > 1]):
        a, b = np.triu_indices(size, 1)
        places = starts[sizes == size][:, None]
        first.append(rows[places + a].ravel())
        second.append(rows[places + b].ravel())
    one, other = np.concatenate(first), np.concatenate(second)
    order = np.lexsort((other, one))
    one, other = one[order], other[order]
    return NO_LINKS, Links(one, other, confidences[one] * confidences[other])


def expand_labels(labels: NDArray[Any] | da.Array, weight: Any) -> tuple[Links, Links]:
    """All must-links and cannot-links of partial labels; a pair's weight is the product of its rows'.

    Raises
    ------
    ValueError
        If the labelled rows make more than 2**26 entries, or chunked labels or weights hold what is none.
    """
    found = labels_in_memory(labels)
    rows = np.flatnonzero(found >= 0)
    if len(rows) ** 2 > MOST_ENTRIES:
        raise ValueError(f"{len(rows)} labelled rows make {len(rows) ** 2} entries, more than {MOST_ENTRIES}")
    weight = compute(weight)[0] if isinstance(weight, da.Array) else weight
    confidences = np.broadcast_to(np.asarray(1.0 if weight is None else weight, np.float64), found.shape)
    check_weights(confidences, 0, found >= 0)
    a, b = np.triu_indices(len(rows), 1)
    first, second = rows[a], rows[b]
    weights = confidences[first] * confidences[second]
    same = found[first] == found[second]
    return Links(first[same], second[same], weights[same]), Links(first[~same], second[~same], weights[~same])
