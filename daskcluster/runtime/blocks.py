"""Blocks as they were declared: what a dask array promises and what its tasks give may differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from .pieces import once
from .visibility import Seen

__all__ = ["as_declared", "check_blocks"]

#: Runs of equal chunk lengths that travel with every task; more of them travel once.
FEW_RUNS = 32


def as_declared(what: str, block: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A block as a NumPy array of the declared dtype, with every number as it came.

    Parameters
    ----------
    what : str
        The block, for messages.
    block : what a task gave
    shape, dtype
        As declared.

    Raises
    ------
    ValueError
        If the block has another shape, or a dtype whose numbers the declared one cannot all hold; or if it is sparse,
        or holds masked values.
    """
    found = type(block).__name__
    if hasattr(block, "todense") or hasattr(block, "sparse"):
        raise ValueError(f"{what} is sparse ({found}); it was declared as a dense array of {dtype}")
    if np.ma.is_masked(block):
        raise ValueError(f"{what} has masked values; it was declared as an array of {dtype} without a mask")
    block = np.asarray(block)
    if block.shape != shape:
        raise ValueError(
            f"{what} has shape {block.shape}, and was declared with shape {shape}: the array promises other rows or "
            "columns than its tasks give"
        )
    if block.dtype.newbyteorder("=") == dtype.newbyteorder("="):
        return block
    if not np.can_cast(block.dtype, dtype, "safe"):
        raise ValueError(f"{what} has dtype {block.dtype}, and was declared with dtype {dtype}")
    return block.astype(dtype)


def check_blocks(
    name: str,
    array: da.Array,
    chunks: Any = None,
    seen: tuple[Seen, ...] = (),
    *,
    convert: Callable[..., Any] = as_declared,
    meta: Any = None,
) -> da.Array:
    """The same lazy array, whose tasks refuse a block that is not as it was declared.

    Parameters
    ----------
    name : str
        The argument, for messages.
    array : dask array
    chunks : tuple of tuples of int, optional
        The lengths to hold it to, when its own are unknown.
    seen : tuple of Seen
        Stores that a process which has a block of it must see.
    convert : callable
        `as_declared`, or what stands for it where blocks are no NumPy arrays; `meta` is such a block then.
    """
    lengths = array.chunks if chunks is None else chunks
    runs: Any = tuple(_runs(axis) for axis in lengths)
    if sum(map(len, runs)) > FEW_RUNS:
        runs = once(runs, "lengths")
    return array.map_blocks(
        _checked_block,
        argument=name,
        runs=runs,
        declared=array.dtype,
        seen=seen,
        convert=convert,
        token="dc-blocks",
        dtype=array.dtype,
        meta=np.empty((0,) * array.ndim, array.dtype) if meta is None else meta,
        chunks=lengths,
    )


def _checked_block(
    block: Any,
    argument: str,
    runs: Any,
    declared: np.dtype[Any],
    seen: tuple[Seen, ...],
    convert: Callable[..., Any],
    block_id: tuple[int, ...],
) -> Any:
    for store in seen:
        store.prove()
    shape = tuple(_length(axis, number) for axis, number in zip(runs, block_id, strict=True))
    return convert(f"chunk {block_id} of {argument}", block, shape, declared)


def _runs(lengths: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Lengths as (how many, how long) of equal neighbours."""
    if not lengths:
        return ()
    values = np.asarray(lengths)
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])
    counts = np.diff(np.r_[starts, len(values)])
    return tuple((int(count), int(values[start])) for count, start in zip(counts, starts, strict=True))


def _length(runs: tuple[tuple[int, int], ...], number: int) -> int:
    for count, length in runs:
        if number < count:
            return length
        number -= count
    raise IndexError(number)
