"""Codes -> their distinct rows with counts, which consensus functions of u**2 work take instead of all rows.

Rows with equal labels are one micro-cluster: nothing tells them apart. One pass finds them, block by block; a rule
looks rows up again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..kernels.distinct import HASH_PRIME, find_rows, hash_rows, number_rows, place_rows
from ..kernels.label_sums import least_sums, sum_labels
from ..runtime.execution import FAN_IN
from ..runtime.forecast import Cost, Sizes
from ..runtime.limits import memory_limit
from ..runtime.passes import reduced
from ..runtime.stages import Run, Stage
from ..validation import check_integer
from .bipartite import SMALL_BYTES
from .incidence import Coded, LabelBook

__all__ = [
    "Distinct",
    "FindDistinct",
    "LabelsOfRows",
    "LikelyLabels",
    "check_distinct_size",
    "cluster_likeness",
    "distinct_rows",
]

#: The smallest hashes of so many distinct rows tell how many there are, where they are too many to be held: to 3 %.
SKETCH = 1024


@dataclass(frozen=True)
class Distinct:
    """The distinct rows of the codes that have a label, in the order in which they come first.

    Attributes
    ----------
    codes : (u, m) int
    counts : (u,) int64
        Rows of each kind.
    """

    codes: NDArray[Any]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class FindDistinct(Stage):
    """The distinct rows of the labels.

    Attributes
    ----------
    max_distinct : int
        More are refused.
    """

    title = "distinct rows"
    max_distinct: int

    def check(self) -> None:
        """Refuse a limit below 1."""
        check_integer("max_distinct", self.max_distinct, 1)

    def __call__(self, run: Run, coded: Coded) -> Distinct:
        """Find them; raises ValueError where there are too many."""
        return Distinct(**run.products.small("distinct", lambda: vars(distinct_rows(coded.codes, self.max_distinct))))

    def cost(self, sizes: Sizes) -> Cost:
        """One pass; a task numbers the rows of its block, and combines some lists of distinct rows."""
        one = sizes.held_bytes + 16
        few = min(sizes.n_samples, self.max_distinct)
        task = sizes.block_rows * (32 + one) + FAN_IN * min(sizes.block_rows, few) * (32 + one)
        return sizes.over_held(task, small_bytes=2 * few * one)

    @property
    def kept(self) -> tuple[str, ...]:
        """The rows."""
        return ("distinct",)


def distinct_rows(codes: da.Array, max_distinct: int) -> Distinct:
    """Pass over all rows: those that differ, with how many there are of each.

    Raises
    ------
    ValueError
        If there are more than `max_distinct`. From there on no rows are held but some of their hashes, and the number
        that it names is an estimate.
    """
    join = partial(_join_distinct, most=max_distinct)
    found = reduced(partial(_distinct_block, most=max_distinct), join, codes, name="dc-different")
    if found["codes"] is None:
        raise ValueError(
            f"the base clusterings have about {_estimate(found['hashes']):,} distinct rows of labels, more than "
            f"max_distinct={max_distinct:,}: use fewer or coarser base clusterings, raise max_distinct (memory grows "
            "with its square), or take another consensus, as BipartiteCut or ECPCS"
        )
    return Distinct(found["codes"], found["counts"])


def _distinct_block(block: NDArray[Any], most: int) -> dict[str, Any]:
    return _numbered(np.ascontiguousarray(block), np.ones(len(block), np.int64), most)


def _numbered(codes: NDArray[Any], counts: NDArray[np.int64], most: int) -> dict[str, Any]:
    """Distinct rows of some, and the smallest hashes of them; no rows where these are too many."""
    numbers, first = number_rows(codes)
    rows = codes[first]
    hashes = np.unique(hash_rows(rows))[:SKETCH]
    if len(rows) > most:
        return {"codes": None, "counts": None, "hashes": hashes}
    sums = np.zeros(len(rows), np.int64)
    labelled = numbers >= 0
    np.add.at(sums, numbers[labelled], counts[labelled])
    return {"codes": rows, "counts": sums, "hashes": hashes}


def _join_distinct(parts: list[dict[str, Any]], most: int) -> dict[str, Any]:
    """Combine parts in block order, so that first rows stay first."""
    if len(parts) == 1:
        return parts[0]
    if any(part["codes"] is None for part in parts):
        hashes = np.unique(np.concatenate([part["hashes"] for part in parts]))
        return {"codes": None, "counts": None, "hashes": hashes[:SKETCH]}
    codes, counts = (np.concatenate([part[key] for part in parts]) for key in ("codes", "counts"))
    return _numbered(codes, counts, most)


def _estimate(hashes: NDArray[np.int64]) -> int:
    """Distinct rows from the smallest of their hashes: their number where there are fewer than `SKETCH`."""
    if len(hashes) < SKETCH:
        return len(hashes)
    return round((SKETCH - 1) * HASH_PRIME / int(hashes[-1]))


def check_distinct_size(what: str, n_distinct: int, need: int) -> None:
    """Refuse what needs so many bytes for pairs of distinct rows, where they do not fit.

    Raises
    ------
    MemoryError
        Naming the bytes.
    """
    if need > SMALL_BYTES and need > memory_limit() // 2:
        raise MemoryError(
            f"{what} on {n_distinct:,} distinct rows of labels needs {need / 2**30:.1f} GiB, more than half of the "
            f"memory ({memory_limit() / 2**30:.1f} GiB): use fewer or coarser base clusterings, or another consensus, "
            "as BipartiteCut or ECPCS"
        )


class LabelsOfRows:
    """Block of codes -> the labels that such rows have; a picklable callable.

    Parameters
    ----------
    codes : (u, m) int
    labels : (u,) int32
        Equal rows get the label of the first of them; a row that is not there gets -1.
    """

    def __init__(self, codes: NDArray[Any], labels: NDArray[np.int32]) -> None:
        self.codes, self.labels = codes, labels
        self.table = place_rows(codes)

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """Label a block."""
        places = find_rows(codes, self.codes, self.table)
        return np.where(places >= 0, self.labels[places], np.int32(-1)).astype(np.int32)


class LikelyLabels(LabelsOfRows):
    """The same, and another row goes to the cluster that it is most like on average.

    Parameters
    ----------
    codes, labels
        As above.
    offsets : (m + 1,) int64
    likeness : (c, k) float64
        Of `cluster_likeness`.
    """

    def __init__(
        self,
        codes: NDArray[Any],
        labels: NDArray[np.int32],
        offsets: NDArray[np.int64],
        likeness: NDArray[np.float64],
    ) -> None:
        super().__init__(codes, labels)
        self.offsets, self.table_of_clusters = offsets, np.ascontiguousarray(-likeness)

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.int32]:
        """Label a block; -1 for rows without labels."""
        labels = super().__call__(codes)
        new = np.flatnonzero(labels < 0)
        labels[new] = least_sums(np.ascontiguousarray(codes[new]), self.offsets, self.table_of_clusters)
        return labels

    def means(self, codes: NDArray[Any]) -> NDArray[np.float64]:
        """Mean likeness (n, k) of the rows of a block to the rows of each cluster; NaN for rows without labels."""
        n_labels = np.maximum((codes >= 0).sum(axis=1, keepdims=True), 1)
        return 0.0 - sum_labels(codes, self.offsets, self.table_of_clusters) / n_labels


def cluster_likeness(
    distinct: Distinct, labels: NDArray[np.int32], book: LabelBook, likeness: Any = None
) -> NDArray[np.float64]:
    """Mean likeness (c, k) of a row in a base cluster to the rows of each cluster that the base clustering labels.

    Parameters
    ----------
    distinct : Distinct
    labels : (u,) int32
        Cluster of each distinct row.
    book : LabelBook
    likeness : callable, optional
        Of one base clustering: its number, shares (K_i, k) of the clusters' rows in its base clusters -> mean likeness
        (K_i, k) of a row in each of these. None: a row is like those of its base cluster.
    """
    k = int(labels.max()) + 1
    out = np.zeros((book.n_base_clusters, k))
    for number, (start, stop) in enumerate(pairwise(book.offsets)):
        there = distinct.codes[:, number] >= 0
        rows = distinct.codes[there, number].astype(np.intp)
        counts = np.zeros((stop - start, k))
        np.add.at(counts, (rows, labels[there]), distinct.counts[there])
        shares = counts / np.maximum(counts.sum(axis=0), 1.0)
        out[start:stop] = shares if likeness is None else likeness(number, shares)
    return out
