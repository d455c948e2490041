"""Two labelings of the same rows -> their contingency table, in one pass over both."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import Any, TypeAlias

import dask.array as da
import numpy as np
import zarr
from numpy.typing import NDArray

from ..files import open_rows
from ..io.inputs import open_dask, open_pieces
from ..io.rasters import grid_columns
from ..io.reading import known_rows
from ..io.sparse import is_sparse_input
from ..io.tables import open_table
from ..kernels.contingency import PairCounts, contingency_chunk, contingency_combine, contingency_finalize
from ..runtime.execution import compute, reduce_blocks
from ..runtime.pieces import array_pieces, recut
from ..runtime.visibility import check_shareable
from ..typing import Array, ArrayInput
from ..validation import check_kind

__all__ = [
    "align_rows",
    "contingency_matrix",
    "count_labels",
    "count_pairs",
    "dense_table",
    "open_input",
    "reduce_rows",
]

#: Rows of labels that one task takes from a store, or one step from memory.
BLOCK_ROWS = 2**20
#: A dense table may take so many bytes.
TABLE_BYTES = 2**31

#: An input whose values need not be in memory yet.
Opened: TypeAlias = Array | da.Array | zarr.Array[Any]


def contingency_matrix(labels_true: ArrayInput, labels_pred: ArrayInput) -> NDArray[np.int64]:
    """Count how many rows carry each pair of labels.

    Parameters
    ----------
    labels_true, labels_pred : array-like (n,), dask array, zarr.Array, or path of a Zarr array
        Integers of any size and sign, booleans, floating-point whole numbers or strings. The two may differ
        in type and in chunking; unknown chunk lengths are counted first. A path may name an array inside a
        group (``"run.zarr/labels"``). -1 is a label like any other: remove such rows first if they are not
        to count. A DataArray may lie on a grid; with one of the same grid, pixels are compared whatever the
        order of its dimensions.

    Returns
    -------
    ndarray of shape (r, s), int64
        Entry (i, j) is the number of rows with the i-th smallest distinct label of `labels_true` and the
        j-th smallest of `labels_pred` (numbers in numeric, strings in alphabetic order). Labels that do not
        occur have no row or column. Empty input gives a (0, 0) table.

    Raises
    ------
    ValueError
        If the labelings differ in length (both are named), are not one-dimensional, hold NaN, missing values
        or numbers that are not whole, or if the table would take more than 2 GiB.
    FileNotFoundError
        If there is nothing under a path.

    Notes
    -----
    One pass over both labelings, on the active dask scheduler. A task counts one chunk and keeps the nonzero
    entries of its table, so it needs O(chunk + table) bytes whatever the number of distinct labels; partial
    tables are added in a tree. Chunks are those of the first dask array, or whole chunks of the first store,
    and the other argument is brought to them; labels in memory then travel in the task graph, in the
    smallest type that holds them. Labelings that are both in memory are counted in place, without dask.

    Examples
    --------
    >>> contingency_matrix([0, 0, 1, 1], ["b", "b", "b", "a"]).tolist()
    [[0, 2], [1, 1]]
    """
    return dense_table(count_pairs(labels_true, labels_pred))


def count_pairs(labels_true: ArrayInput, labels_pred: ArrayInput) -> PairCounts:
    """Nonzero entries of the contingency table, with the labels that name its rows and columns.

    Parameters and errors are those of `contingency_matrix`, except that no table is too large.
    """
    labels_true, labels_pred = grid_columns(labels_true=labels_true, labels_pred=labels_pred)
    return _count(
        ("labels_true", open_input("labels_true", labels_true, n_axes=1)),
        ("labels_pred", open_input("labels_pred", labels_pred, n_axes=1)),
    )


def count_labels(labels: ArrayInput) -> tuple[Array, NDArray[np.int64]]:
    """Distinct labels, ascending, and how many rows carry each.

    Parameters
    ----------
    labels : array-like (n,), dask array, zarr.Array, or path of a Zarr array
        As in `contingency_matrix`, whose errors and cost this shares.

    Returns
    -------
    values : ndarray (k,)
    counts : ndarray (k,), int64

    Examples
    --------
    >>> values, counts = count_labels([3, -1, 3])
    >>> values.tolist(), counts.tolist()
    ([-1, 3], [1, 2])
    """
    (labels,) = grid_columns(labels=labels)
    opened = open_input("labels", labels, n_axes=1)
    if isinstance(opened, np.ndarray):
        nothing: Opened = np.broadcast_to(np.int8(0), opened.shape)
    else:
        (opened,) = align_rows(("labels", opened))
        nothing = da.zeros(opened.shape, chunks=opened.chunks, dtype=np.int8)
    pairs = _count(("labels", opened), ("", nothing))
    return pairs.values_true, pairs.counts


def dense_table(pairs: PairCounts) -> NDArray[np.int64]:
    """Make the dense table (r, s); raises ValueError when it would take more than `TABLE_BYTES`."""
    n_true, n_pred = len(pairs.values_true), len(pairs.values_pred)
    if 8 * n_true * n_pred > TABLE_BYTES:
        raise ValueError(
            f"the contingency table of {n_true:,} by {n_pred:,} labels would take "
            f"{8 * n_true * n_pred / 2**30:.1f} GiB; are these cluster labels?"
        )
    return contingency_finalize(pairs)


def _count(true: tuple[str, Opened], pred: tuple[str, Opened]) -> PairCounts:
    """Count the pairs of two opened labelings, each with the name that messages give it."""
    names = true[0], pred[0]
    if isinstance(true[1], np.ndarray) and isinstance(pred[1], np.ndarray):
        _check_lengths(true, pred)
        steps = [slice(start, start + BLOCK_ROWS) for start in range(0, max(1, len(true[1])), BLOCK_ROWS)]
        return contingency_combine([_count_block(true[1][step], pred[1][step], names) for step in steps])
    blocks_true, blocks_pred = align_rows(true, pred)
    counted: PairCounts = reduce_rows(
        _count_block, contingency_combine, blocks_true, blocks_pred, name="dc-contingency", names=names
    )
    return counted


# -- input -------------------------------------------------------------------------------------------------


def open_input(name: str, value: ArrayInput, n_axes: int) -> Opened:
    """Bring an argument into a form with a shape and a dtype, without reading what is stored.

    Parameters
    ----------
    name : str
        The argument's name, for messages.
    value : array-like, dask array, zarr.Array, or path of a Zarr array
    n_axes : int
        Axes that the argument must have.

    Returns
    -------
    ndarray, dask array or zarr.Array

    Raises
    ------
    TypeError
        If it is sparse.
    ValueError
        If it has another number of axes, is a masked array with masked values, or is a path to no array.
    FileNotFoundError
        If there is nothing under the path.
    """
    check_kind(name, value, f"an array of {n_axes} dimension{'s' * (n_axes > 1)}")
    if is_sparse_input(value):
        kind = type(getattr(value, "_meta", value)).__name__
        raise TypeError(
            f"{name} must be dense here, got sparse data ({kind}); give some of its columns or a projection, as of "
            "sklearn.decomposition.TruncatedSVD, or leave it out where it is optional"
        )
    if open_table(value) is not None:
        value = open_dask(value, name)
    elif isinstance(value, str | PathLike | zarr.Group):
        value = open_rows(value, n_axes=n_axes)
    elif hasattr(value, "to_dask_array"):
        value = value.to_dask_array()
    elif type(value).__module__.partition(".")[0] == "xarray":
        value = value.data
    if isinstance(value, zarr.Array):
        check_shareable(name, value)
    elif not isinstance(value, da.Array):
        if np.ma.is_masked(value):
            raise ValueError(f"{name} has masked values; fill or remove them first")
        try:
            value = np.asarray(value)
        except ValueError as error:  # lists of different lengths
            raise ValueError(f"{name} must be an array, got lists of different lengths: {value!r:.60}") from error
    if value.ndim != n_axes:
        raise ValueError(f"{name} must have {n_axes} dimension{'s' * (n_axes > 1)}, got shape {value.shape}")
    return value


def align_rows(*inputs: tuple[str, Opened], rows: int | None = None) -> tuple[da.Array, ...]:
    """Cut arrays of equal length into the same row chunks; other axes stay whole.

    Parameters
    ----------
    *inputs : (name, array) pairs
        As `open_input` returns them; at least one, of any number of axes.
    rows : int, optional
        Rows of a chunk. By default those of the first dask array; else whole stored chunks of the first Zarr
        array, several when they are small.

    Returns
    -------
    tuple of dask arrays
        Lazy, in the order given.

    Raises
    ------
    ValueError
        If the lengths differ; all are named.

    Notes
    -----
    Chunk lengths that are unknown are counted, which computes those arrays once; the arguments are not
    changed.
    """
    known = [(name, known_rows(name, array) if isinstance(array, da.Array) else array) for name, array in inputs]
    _check_lengths(*known)
    n_rows = int(known[0][1].shape[0])
    chunks = _row_chunks([array for _, array in known], n_rows, rows)
    return tuple(_in_chunks(name, array, chunks) for name, array in known)


def _row_chunks(arrays: list[Opened], n_rows: int, rows: int | None) -> tuple[int, ...]:
    if rows is None:
        for array in arrays:
            if isinstance(array, da.Array):
                return tuple(int(length) for length in array.chunks[0])
        stored = next(((a.shards or a.chunks)[0] for a in arrays if isinstance(a, zarr.Array)), BLOCK_ROWS)
        rows = stored * max(1, BLOCK_ROWS // stored)
    chunks: tuple[tuple[int, ...]] = da.core.normalize_chunks((max(1, min(rows, n_rows)),), (n_rows,))
    return chunks[0]


def _in_chunks(name: str, array: Opened, chunks: tuple[int, ...]) -> da.Array:
    wanted = (chunks, *((length,) for length in array.shape[1:]))
    if isinstance(array, zarr.Array):
        stored = (array.shards or array.chunks)[0]
        # In a larger one no stored chunk is to be read and unpacked again for each part of it.
        array = open_pieces(name, array, stored if stored > 2 * max(chunks) else max(1, max(chunks)))
    elif not isinstance(array, da.Array):
        array = array_pieces(_narrowed(array) if array.ndim == 1 else array, wanted, "memory")
    return recut(array, wanted)


def _narrowed(labels: Array) -> Array:
    """Return integer labels in the smallest type that holds them: they travel inside the task graph."""
    if labels.dtype.kind not in "iu" or labels.size == 0:
        return labels
    low, high = int(labels.min()), int(labels.max())
    smallest = np.result_type(np.min_scalar_type(low), np.min_scalar_type(high))
    if smallest.kind in "iu" and smallest.itemsize < labels.dtype.itemsize:
        return labels.astype(smallest)
    return labels


def _check_lengths(*named: tuple[str, Opened]) -> None:
    if len({int(array.shape[0]) for _, array in named}) > 1:
        listed = ", ".join(f"{name} has {int(array.shape[0])}" for name, array in named)
        raise ValueError(f"arguments differ in their number of rows: {listed}")


def reduce_rows(
    function: Callable[..., Any],
    combine: Callable[[list[Any]], Any],
    *arrays: da.Array,
    name: str,
    **kwargs: Any,
) -> Any:
    """Compute one value from aligned arrays: a partial result of every row chunk, combined in a tree.

    Parameters
    ----------
    function : callable
        One block of each array -> partial result of any type.
    combine : callable
        List of partial results in block order -> partial result.
    *arrays : dask arrays
        With equal row chunks, as `align_rows` returns them.
    name : str
        Prefix of the task names, as a dashboard shows it.
    **kwargs
        Handed to the function; a ``dask.delayed`` value travels once, not with every task.

    Returns
    -------
    The combined partial result.

    Notes
    -----
    Runs on the active dask scheduler. Partial results travel as dicts in arrays of one object, because dask
    takes tuples and lists apart.
    """
    operands = [part for array in arrays for part in (array, "ij"[: array.ndim])]
    boxed = da.blockwise(
        _boxed,
        "i",
        *operands,
        function=function,
        token=name,
        concatenate=True,
        dtype=object,
        meta=np.empty((0,), object),
        adjust_chunks={"i": 1},
        **kwargs,
    )
    reduced = reduce_blocks(_unboxed, partial(_combine_boxed, combine), boxed, name=f"{name}-combine")
    return compute(reduced)[0]["partial"]


# -- tasks -------------------------------------------------------------------------------------------------


def _boxed(*blocks: Array, function: Callable[..., Any], **kwargs: Any) -> Array:
    boxed = np.empty(1, object)
    boxed[0] = {"partial": function(*blocks, **kwargs)}
    return boxed


def _unboxed(boxed: Array) -> Any:
    return boxed[0]


def _combine_boxed(combine: Callable[[list[Any]], Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"partial": combine([part["partial"] for part in parts])}


def _count_block(labels_true: Array, labels_pred: Array, names: tuple[str, str]) -> PairCounts:
    return contingency_chunk(check_labels(names[0], labels_true), check_labels(names[1], labels_pred))


def check_labels(name: str, labels: Array) -> Array:
    """Labels of one block in a type that compares and sorts; whole floats become integers.

    Raises
    ------
    ValueError
        If a label is NaN, missing, infinite or not whole, or of a type that names nothing.
    """
    labels = np.asarray(labels)
    if labels.dtype.kind == "O":
        labels = _from_objects(name, labels)
    kind = labels.dtype.kind
    if kind in "biu":
        return labels
    if kind == "f":
        if not np.isfinite(labels).all():
            raise ValueError(f"{name} holds NaN or infinity; every row needs a label")
        broken = labels[labels != np.trunc(labels)]
        if broken.size:
            raise ValueError(f"{name} must hold whole numbers, got {float(broken[0])}")
        exact = float(np.abs(labels).max(initial=0)) < 2**53
        return labels.astype(np.int64) if exact else labels
    if kind in "UST":
        return labels
    raise ValueError(f"{name} must hold integers, whole numbers, booleans or strings, got dtype {labels.dtype}")


def _from_objects(name: str, labels: Array) -> Array:
    """Python objects as an array of one plain type."""
    items = labels.tolist()
    if all(isinstance(item, str) for item in items):
        return np.asarray(items, dtype=str)
    if all(isinstance(item, bool | int | float | np.number | np.bool_) for item in items):
        plain = np.asarray(items)
        if plain.dtype.kind in "biuf":
            return plain
    kinds = sorted({type(item).__name__ for item in items})
    raise ValueError(f"{name} must hold labels of one kind, numbers or strings, got objects of type {', '.join(kinds)}")
