"""How far base clusterings bear out a consensus at each row: low where it splits or merges what they hold together."""

from __future__ import annotations

from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ..ensemble.bipartite import check_pairs_size
from ..ensemble.incidence import LabelBook, LabelCoder, check_base_clusterings, scan_labels
from ..ensemble.overlaps import overlap_bytes, overlaps
from ..kernels.incidence import agreement_rows
from ..linalg import largest_eigenpairs
from ..runtime.execution import compute, map_rows
from ..runtime.pieces import side_by_side
from ..runtime.threads import one_blas_thread
from ..typing import ArrayInput
from ..validation import check_integer
from .contingency import Opened, align_rows, open_input

__all__ = ["consensus_confidence"]

#: Steps of the walk at most; a power of two.
MOST_STEPS = 1024
#: Matrices (c, c) float64 at the peak.
N_MATRICES = 6


def consensus_confidence(X: ArrayInput, labels: ArrayInput, *, n_steps: int | None = None) -> Any:
    """How far base clusterings bear out a consensus at each row, in [0, 1].

    Parameters
    ----------
    X : array-like, dask array, zarr.Array, or path of a Zarr array, (n, m)
        Base clusterings, a column each: whole numbers >= 0, -1 for no label; `base_labels_` of an ensemble.
    labels : array-like, dask array, zarr.Array, or path of a Zarr array, (n,)
        The consensus to judge, of any origin: whole numbers >= 0, -1 for no label.
    n_steps : int, optional
        t, steps of the walk; by default as many as the base clusters suggest, a power of two up to 1024.

    Returns
    -------
    (n,) float32
        NumPy for NumPy; a lazy dask array, in chunks of the first chunked argument, for chunked input. NaN for rows
        without a label in `labels`, or in every base clustering.

    Raises
    ------
    ValueError
        If the lengths differ, a label is no whole number >= -1, or no row has a label.
    MemoryError
        If matrices of c by c numbers do not fit into memory, c the number of base clusters.

    Notes
    -----
    `agreement_` tells where single base clusterings contradict the consensus. It is 1 where a consensus cluster is
    joined of two, or cut along a border that all base clusterings have, as those that share one graph do. This measure
    looks further: a random walk goes from base cluster to base cluster by the rows that they share, with N = B^T B and
    transition probabilities N_ij / sum_j N_ij. After t steps it has spread over what the ensemble holds together. With
    q that distribution for a base cluster, s_j the share of base cluster j that lies in a consensus cluster, and r the
    distribution of the rows of that cluster over the base clusters, the confidence is sum_j min(q_j s_j, r_j), and that
    of a row its mean over the row's base clusters. Where a cluster is split the walk leaves it, where two are merged it
    covers one of them: about 1/2 for both where the parts are of equal size. Values say which rows to look at first,
    and are no probabilities; they compare rows of one consensus.

    With the relaxation times T_j = 1 / (1 - lambda_j) of the walk, the default t is sqrt(T_j T_(j+1)) at the largest
    T_j / T_(j+1) of j = k - 1, k, k + 1: long enough to mix what hangs together, too short to leave it.

    Two passes over the labels and some 15 products of (c, c) matrices at once; the rows' values are lazy and take one
    more. The same numbers for any chunking and scheduler.

    Examples
    --------
    Two clusters, of which one is cut in half:

    >>> import numpy as np
    >>> base = np.array([[0, 0], [0, 1], [0, 0], [0, 1], [1, 2], [1, 2], [1, 2], [1, 2]])
    >>> consensus_confidence(base, [0, 1, 0, 1, 2, 2, 2, 2], n_steps=8).round(2)
    array([0.5, 0.5, 0.5, 0.5, 1. , 1. , 1. , 1. ], dtype=float32)
    """
    if n_steps is not None:
        check_integer("n_steps", n_steps, 1)
    base, found = open_input("X", X, n_axes=2), open_input("labels", labels, n_axes=1)
    if found.dtype.kind not in "biu":
        raise ValueError(f"labels must hold whole numbers, got dtype {found.dtype}")
    both = _joined(base, found)
    rows = check_base_clusterings(both)
    book = scan_labels(rows).book
    values = map_rows(
        partial(
            _confidence_block,
            coder=LabelCoder(book),
            offsets=book.offsets,
            table=_confidences(rows.blocks, book, n_steps),
        ),
        both if isinstance(both, da.Array) else rows.blocks,
        name="dc-confidence",
        columns=None,
        dtype=np.float32,
    )
    return values if isinstance(both, da.Array) else compute(values)[0]


def _joined(base: Opened, labels: Opened) -> Any:
    """The consensus as one base clustering more: overlaps with it are the rows of each base cluster in each cluster."""
    blocks, beside = align_rows(("X", base), ("labels", labels))
    if isinstance(base, np.ndarray) and isinstance(labels, np.ndarray):
        return np.column_stack([base, labels])
    return side_by_side([blocks, beside], "base-labels")


def _confidences(blocks: da.Array, book: LabelBook, n_steps: int | None) -> NDArray[np.float64]:
    """Confidence of each base cluster's rows in each consensus cluster (c, k)."""
    c = int(book.offsets[-2])
    if c == 0 or c == book.n_base_clusters:
        raise ValueError("X and labels must have a row with a label")
    check_pairs_size("the confidence", c, overlap_bytes(c, blocks.numblocks[0], N_MATRICES))
    coder = LabelCoder(book)
    codes = map_rows(coder, blocks, name="dc-code", columns=book.n_base_clusterings, dtype=book.dtype)
    counts = overlaps(codes, book)
    within, inside = counts[:c, :c], counts[:c, c:]
    masses = within.sum(axis=1)
    if n_steps is None:
        n_steps = _natural_steps(within / np.sqrt(masses)[:, None] / np.sqrt(masses), inside.shape[1])
    spread = _walked(within / masses[:, None], n_steps)
    rows_of = inside / np.maximum(inside.sum(axis=0), 1)  # a cluster whose rows have no other label: all 0
    shares = inside / np.diag(within)[:, None]
    pairs = zip(shares.T, rows_of.T, strict=True)
    return np.stack([np.minimum(spread * share, rows).sum(axis=1) for share, rows in pairs], axis=1)


def _natural_steps(symmetric: NDArray[np.float64], n_clusters: int) -> int:
    """Steps that mix what hangs together and leave it not, see `consensus_confidence`."""
    n_values = min(n_clusters + 2, len(symmetric))
    values, _ = largest_eigenpairs(symmetric, n_values)
    times = 1 / np.maximum(1 - values, 1e-6)
    first = max(n_clusters - 2, 0)
    ratios = times[first:-1] / times[first + 1 :]
    if len(ratios) == 0:
        return 1
    gap = first + int(np.argmax(ratios))
    steps = np.sqrt(times[gap] * times[gap + 1])
    return int(2 ** np.clip(np.round(np.log2(steps)), 0, np.log2(MOST_STEPS)))


def _walked(step: NDArray[np.float64], n_steps: int) -> NDArray[np.float64]:
    """Distributions (c, c) after so many steps."""
    with one_blas_thread():
        return np.linalg.matrix_power(step, n_steps)


def _confidence_block(
    block: NDArray[Any], coder: LabelCoder, offsets: NDArray[np.int64], table: NDArray[np.float64]
) -> NDArray[np.float32]:
    codes = coder(block)
    return agreement_rows(np.ascontiguousarray(codes[:, :-1]), offsets[:-1], codes[:, -1].astype(np.int32), table)
