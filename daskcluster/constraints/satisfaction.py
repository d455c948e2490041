"""Which constraints a labeling keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..io.columns import open_column
from ..markup import html_table
from ..runtime.execution import map_to_objects, objects_of
from ..runtime.pieces import array_pieces, recut
from .labels import check_labels, check_weights, whole_labels
from .links import Links, named_rows
from .sampling import gather_rows

__all__ = ["Satisfaction", "open_assignment", "satisfaction_of_labels", "satisfaction_of_links"]

#: Rows of a block of labels in memory.
BLOCK_ROWS = 2**17


@dataclass(frozen=True)
class Satisfaction:
    """Shares of the constraints that a labeling keeps.

    Attributes
    ----------
    must_link, cannot_link : float
        Weight of the constraints that are kept, divided by the weight of all; 1 where there are none.
    n_must_link, n_cannot_link : int
        Constraints whose two rows have labels.
    """

    must_link: float
    cannot_link: float
    n_must_link: int
    n_cannot_link: int

    def _repr_html_(self) -> str:
        """The shares as a table, which notebooks show."""
        rows = [
            ("must-link", f"{self.n_must_link:,}", f"{self.must_link:.2%}" if self.n_must_link else ""),
            ("cannot-link", f"{self.n_cannot_link:,}", f"{self.cannot_link:.2%}" if self.n_cannot_link else ""),
        ]
        return html_table(rows, ("constraints", "pairs", "kept"), "Satisfaction: shares by weight")


def open_assignment(labels: Any) -> NDArray[Any] | da.Array:
    """Labels of a clustering (n,), -1 or masked for rows without one.

    Raises
    ------
    ValueError
        If they are something else.
    """
    column = open_column("labels", labels)
    if column.dtype.kind not in "biu":
        raise ValueError(f"labels must be integers, got dtype {column.dtype}")
    return column


def satisfaction_of_links(must: Links, cannot: Links, labels: NDArray[Any] | da.Array) -> Satisfaction:
    """Share of the pairs that a labeling keeps; only the labels of the rows that they name are gathered."""
    named = named_rows(must, cannot)
    at = labels[named] if isinstance(labels, np.ndarray) else gather_rows(labels, named, name="dc-take")
    must_kept = _kept(must, named, at, together=True)
    cannot_kept = _kept(cannot, named, at, together=False)
    return Satisfaction(must_kept[0], cannot_kept[0], must_kept[1], cannot_kept[1])


def _kept(links: Links, named: NDArray[np.int64], at: NDArray[Any], *, together: bool) -> tuple[float, int]:
    first, second = at[np.searchsorted(named, links.first)], at[np.searchsorted(named, links.second)]
    counts = (first != -1) & (second != -1)
    kept = counts & ((first == second) == together)
    total = float(links.weights[counts].sum())
    return (float(links.weights[kept].sum()) / total if total > 0 else 1.0), int(counts.sum())


def satisfaction_of_labels(
    known: NDArray[Any] | da.Array, weight: Any, labels: NDArray[Any] | da.Array, *, apart: bool = False
) -> Satisfaction:
    """Share of the constraints from partial labels, or from groups, that a labeling keeps.

    Parameters
    ----------
    known : NumPy or dask array (n,)
        Partial labels.
    weight : number, NumPy or dask array (n,), or None
    labels : NumPy or dask array (n,) of integers
    apart : bool
        Whether they are groups, of whose rows no two may meet.

    Raises
    ------
    ValueError
        If chunked partial labels or weights hold what is none.

    Notes
    -----
    The pairs are counted in closed form from the table of classes and labels, in one pass of both, block by block: with
    W the sum of w over a set and S that of w**2, its pairs weigh (W**2 - S) / 2.
    """
    if not np.ndim(weight):
        weight = None  # shares do not depend on a common one
    chunked = [part for part in (labels, known, weight) if isinstance(part, da.Array)]
    chunks = chunked[0].chunks if chunked else (BLOCK_ROWS,)
    known, labels = (_chunked(values, chunks) for values in (known, labels))
    starts = np.cumsum([0, *known.chunks[0]])
    name = "groups" if apart else "y"
    both = da.map_blocks(
        _both_columns,
        known,
        labels,
        starts=starts,
        name_of=name,
        dtype=np.int64,
        meta=np.empty((0, 0), np.int64),
        new_axis=1,
        chunks=(known.chunks[0], (2,)),
    )
    weights = None if weight is None else _chunked(weight, chunks)
    parts = objects_of(map_to_objects(_table_of_block, both, name="dc-satisfied", weights=weights, starts=starts))
    pairs, place = np.unique(np.concatenate([part["pairs"] for part in parts]), axis=0, return_inverse=True)
    n_pairs = len(pairs)
    counts, sums, squares = (
        np.bincount(place, np.concatenate([part[key] for part in parts]), n_pairs)
        for key in ("counts", "sums", "squares")
    )
    _, of_class = np.unique(pairs[:, 0], return_inverse=True)
    _, of_label = np.unique(pairs[:, 1], return_inverse=True)

    def pairs_inside(groups: NDArray[np.intp]) -> tuple[float, float]:
        """Number and weight of the pairs of rows inside groups."""
        size = int(groups.max()) + 1 if len(groups) else 0
        n, total, square = (np.bincount(groups, values, size) for values in (counts, sums, squares))
        return float((n * (n - 1)).sum() / 2), float((total**2 - square).sum() / 2)

    everything = pairs_inside(np.zeros(n_pairs, np.intp))
    same_class, same_label = pairs_inside(of_class), pairs_inside(of_label)
    same_both = pairs_inside(np.arange(n_pairs))
    if apart:
        parted = 1.0 - same_both[1] / same_class[1] if same_class[1] > 0 else 1.0
        return Satisfaction(1.0, min(1.0, max(0.0, parted)), 0, round(same_class[0]))
    separate = everything[1] - same_class[1]
    apart_kept = separate - (same_label[1] - same_both[1])
    n_must, n_cannot = round(same_class[0]), round(everything[0] - same_class[0])
    return Satisfaction(
        min(1.0, same_both[1] / same_class[1]) if n_must else 1.0,
        min(1.0, max(0.0, apart_kept / separate)) if n_cannot else 1.0,
        n_must,
        n_cannot,
    )


def _chunked(values: Any, chunks: Any) -> da.Array:
    if isinstance(values, da.Array):
        return recut(values, chunks)
    return array_pieces(values, chunks, "memory")


def _both_columns(
    known: NDArray[Any],
    labels: NDArray[Any],
    starts: NDArray[np.intp],
    name_of: str,
    block_id: tuple[int, ...] = (0,),
) -> NDArray[np.int64]:
    check_labels(known, int(starts[block_id[0]]), name_of)
    return np.stack([whole_labels(known), labels.astype(np.int64)], axis=1)


def _table_of_block(
    block: NDArray[np.int64], number: int, starts: NDArray[np.intp], weights: NDArray[Any] | None = None
) -> dict[str, Any]:
    """Distinct pairs of class and label of a block, with count, sum of w and sum of w**2."""
    w = np.ones(len(block)) if weights is None else np.asarray(weights[:, 0], np.float64)
    check_weights(w, int(starts[number]), block[:, 0] != -1)
    there = (block != -1).all(axis=1)
    classes, of_class = np.unique(block[there, 0], return_inverse=True)
    labels, of_label = np.unique(block[there, 1], return_inverse=True)
    keys, place = np.unique(of_class * max(1, len(labels)) + of_label, return_inverse=True)
    which, of_pair = np.divmod(keys, max(1, len(labels)))
    return {
        "pairs": np.stack([classes[which], labels[of_pair]], axis=1),
        "counts": np.bincount(place, minlength=len(keys)).astype(np.float64),
        "sums": np.bincount(place, w[there], len(keys)),
        "squares": np.bincount(place, w[there] ** 2, len(keys)),
    }
